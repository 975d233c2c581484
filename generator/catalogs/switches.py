"""Switches whose setup is known: the names of their ports at 200 Gb/s, and the largest frame.

Source: MikroTik, "MikroTik wired interface compatibility" (QSFP56 and QSFP56-DD) and "MTU in
RouterOS"; a CRS804 with eight Sparks is reported with an L2 MTU of 9500.
"""

from collections.abc import Mapping

from generator.records import record

# The first release with lossless queues for RoCE, and the first that maps DSCP itself (MikroTik,
# "Quality of Service").
LOSSLESS, OWN_MAP = "7.17", "7.23"


@record
class SwitchModel:
    """A switch model; `l2mtu` in bytes is set on all of its ports."""

    title: str
    ports: tuple[str, ...]
    l2mtu: int = 9500


def _halves(cages: int) -> tuple[str, ...]:
    """A 400G cage provides two 200 Gb/s ports, at its first and fifth lane."""
    return tuple(f"qsfp56-dd-{cage}-{lane}" for cage in range(1, cages + 1) for lane in (1, 5))


SWITCHES: Mapping[str, SwitchModel] = {
    "crs804": SwitchModel("MikroTik CRS804", _halves(4)),
    "crs812": SwitchModel("MikroTik CRS812", ("qsfp56-1-1", "qsfp56-2-1", *_halves(2))),
}


def known(model: str) -> SwitchModel | None:
    """The switch with which a model's name begins, as in `crs804-4ddq-hrm`."""
    name = model.lower()
    return next((found for key, found in SWITCHES.items() if name.startswith(key)), None)
