"""The topologies: each module states how nodes are cabled, and what follows from that."""

from collections.abc import Mapping

from generator.fabric.topologies.direct import Direct
from generator.fabric.topologies.kind import TopologyKind
from generator.fabric.topologies.pairs import Pairs
from generator.fabric.topologies.ring import Ring
from generator.fabric.topologies.single import Single
from generator.fabric.topologies.switch import Switch

TOPOLOGIES: Mapping[str, TopologyKind] = {
    "single": Single(),
    "direct": Direct(),
    "pairs": Pairs(),
    "ring": Ring(),
    "switch": Switch(),
}

# The kind that joins nodes in twos.
PAIRS = next(name for name, kind in TOPOLOGIES.items() if kind.groups_alone)
# The kind of one node alone.
SINGLE = next(name for name, kind in TOPOLOGIES.items() if kind.most == 1)
# The kind for nodes of any number.
SWITCH = next(name for name, kind in TOPOLOGIES.items() if kind.switched)


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
