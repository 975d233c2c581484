"""Two nodes with a cable between them."""

from collections.abc import Collection, Sequence

from generator.fabric.topologies.kind import Pair, TopologyKind
from generator.sitefile.declaration import Plane


class Direct(TopologyKind):
    """Two nodes; a second cable works but brings no gain."""

    meaning = "two nodes, one cable"
    summary_form = "{0} nodes, joined directly,"
    description_form = "Two Sparks on a cable"
    mtu = 9000
    control_plane: Plane = "fabric"
    same_port = True
    spare_cables = True

    def pairs(self, names: Sequence[str]) -> Sequence[Pair]:
        """Both nodes."""
        first, second = names
        return ((first, second),)

    def missing(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[Pair]:
        """Both nodes, unless a cable connects them."""
        return () if joined else self.pairs(names)


KIND: TopologyKind = Direct()
