"""The setup of each switch that a site describes."""

from collections.abc import Collection, Iterator

from generator.catalogs.switches import OWN_MAP, known
from generator.catalogs.versions import version
from generator.fabric.addressing import Fabric, SwitchPort
from generator.services import QOS
from generator.site.switch_setup import LosslessQueue, SwitchLine, SwitchSetup
from generator.sitefile.declaration import DeclaredSwitch, Topology

# The MTU of every port before it is set up.
_COMMON_MTU = 1500
# RouterOS has different modes for copper and fiber; both ends are set by hand, as neither
# negotiates.
_MODES = {"aoc": "200G-baseSR4-LR4"}
_COPPER = "200G-baseCR4"


def switch_setups(
    topology: Topology, fabric: Fabric, services: Collection[str]
) -> tuple[SwitchSetup, ...]:
    """The setups in the order of the site file."""
    in_order = sorted(topology.switches, key=lambda switch: switch.name)
    return tuple(_setup(switch, fabric, QOS in services) for switch in in_order)


def _setup(switch: DeclaredSwitch, fabric: Fabric, is_lossless: bool) -> SwitchSetup:
    model = known(switch.model)
    queue = None
    if is_lossless:
        from generator.services.qos import DSCP, PRIORITY

        is_mapped = not switch.os or version(switch.os) < version(OWN_MAP)
        queue = LosslessQueue(DSCP, PRIORITY, is_mapped)
    return SwitchSetup(
        name=switch.name,
        model=switch.model,
        title=model.title if model else None,
        os=switch.os,
        lines=tuple(_lines(switch.name, fabric)),
        mtu=fabric.mtu if fabric.mtu > _COMMON_MTU else None,
        l2mtu=model.l2mtu if model else fabric.mtu,
        queue=queue,
    )


def _lines(name: str, fabric: Fabric) -> Iterator[SwitchLine]:
    for cable in fabric.cables:
        if isinstance(cable.b, SwitchPort) and cable.b.switch == name:
            mode = _MODES.get(cable.kind or "", _COPPER)
            yield SwitchLine(cable.b.port, cable.number, str(cable.a), mode)
