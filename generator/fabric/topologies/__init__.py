"""The topologies: each module defines how nodes are cabled, and what follows from that.

A module has the name that its topology has in a site file.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from generator.fabric.topologies.kind import TopologyKind
from generator.on_demand import OnDemand
from generator.records import values
from generator.sitefile.sections import choices_at
from generator.sitefile.topology_kinds import kind_traits

SINGLE, DIRECT, PAIRS, RING, SWITCH, MIXED = (
    *("single", "direct", "pairs", "ring", "switch", "mixed"),
)


def _kind(name: str) -> TopologyKind:
    """A kind whose cables form nothing that a module would have to know has none."""
    module = f"{__name__}.{name}"
    own: type[TopologyKind] = import_module(module).KIND if find_spec(module) else TopologyKind
    return own(**values(kind_traits()[name]))


TOPOLOGIES: Mapping[str, TopologyKind] = OnDemand(lambda: choices_at(("topology", "kind")), _kind)


def without_a_switch(nodes: int) -> list[str]:
    """The kinds of topology that connect this many nodes without a switch."""
    return [
        name
        for name, kind in kind_traits().items()
        if kind.connects_directly and kind.fewest <= nodes <= kind.most
    ]


def likely(nodes: int) -> list[str]:
    """The likely topologies of this many nodes; a switch, too, if no kind usually has that many."""
    found = without_a_switch(nodes)
    usual = [name for name in found if nodes <= kind_traits()[name].assumed_for]
    return usual or [*found, SWITCH]
