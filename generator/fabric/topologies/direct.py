"""Two nodes with a cable between them."""

from collections.abc import Collection, Sequence

from generator.fabric.topologies.kind import Pair, TopologyKind


class Direct(TopologyKind):
    """Two nodes; a second cable works but brings no gain."""

    def pairs(self, names: Sequence[str]) -> Sequence[Pair]:
        """Both nodes."""
        first, second = names
        return ((first, second),)

    def missing(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[Pair]:
        """Both nodes, unless a cable connects them."""
        return () if joined else self.pairs(names)


KIND = Direct
