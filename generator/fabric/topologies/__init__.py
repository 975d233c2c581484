"""The topologies: each module states how nodes are cabled, and what follows from that."""

from collections.abc import Mapping

from generator.fabric.topologies.kind import TopologyKind
from generator.on_demand import OnDemand


def _single() -> TopologyKind:
    from generator.fabric.topologies.single import Single

    return Single()


def _direct() -> TopologyKind:
    from generator.fabric.topologies.direct import Direct

    return Direct()


def _pairs() -> TopologyKind:
    from generator.fabric.topologies.pairs import Pairs

    return Pairs()


def _ring() -> TopologyKind:
    from generator.fabric.topologies.ring import Ring

    return Ring()


def _switch() -> TopologyKind:
    from generator.fabric.topologies.switch import Switch

    return Switch()


# One node alone, nodes in twos, and nodes of any number.
SINGLE, PAIRS, SWITCH = "single", "pairs", "switch"

TOPOLOGIES: Mapping[str, TopologyKind] = OnDemand(
    {SINGLE: _single, "direct": _direct, PAIRS: _pairs, "ring": _ring, SWITCH: _switch}
)


def without_a_switch(nodes: int) -> list[str]:
    """The kinds of topology that join so many nodes without a switch."""
    return [
        name
        for name, kind in TOPOLOGIES.items()
        if kind.fewest <= nodes <= kind.most and not (kind.switched or kind.groups_alone)
    ]


def likely(nodes: int) -> list[str]:
    """What so many nodes are joined by: with more than usual for a kind, it may be a switch."""
    found = without_a_switch(nodes)
    usual = [name for name in found if nodes <= TOPOLOGIES[name].usual]
    return usual or [*found, SWITCH]
