"""One node alone, without cables."""

from generator.fabric.topologies.kind import TopologyKind
from generator.sitefile.declaration import Plane


class Single(TopologyKind):
    """One node."""

    meaning = "one node alone"
    mtu = 1500
    control_plane: Plane = "management"

    def summary(self, nodes: int) -> str:
        """`One node`."""
        return "One node"

    def description(self, nodes: int) -> str:
        """`One Spark`."""
        return "One Spark"


KIND: TopologyKind = Single()
