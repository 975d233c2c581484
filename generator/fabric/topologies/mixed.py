"""Nodes that are cabled in any other way: several rings and pairs, a chain, a switch and cables."""

from generator.fabric.topologies.kind import TopologyKind
from generator.sitefile.declaration import Plane


class Mixed(TopologyKind):
    """Any cables; each group of nodes has the kind that its own cables form."""

    usual = 0
    meaning = "nodes cabled in any other way, for groups"
    summary_form = "{0} nodes, cabled in several ways,"
    description_form = "{0} Sparks with cables of several kinds"
    mtu = 9000
    # No fabric interface reaches all nodes.
    control_plane: Plane = "management"
    reaches_all = False

    def bus_bandwidth(self, nodes: int) -> float:
        """The least of the other kinds, that of a ring of three."""
        return 10.0


KIND: TopologyKind = Mixed()
