"""Nodes that are cabled in any other way: several rings and pairs, a chain, a switch and cables."""

from generator.fabric.topologies.kind import TopologyKind


class Mixed(TopologyKind):
    """Any cables; each group of nodes has the kind that its own cables form."""

    def bus_bandwidth(self, nodes: int) -> float:
        """The least of the other kinds, that of a ring of three."""
        return 10.0


KIND = Mixed
