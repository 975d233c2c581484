"""One node alone, without cables."""

from generator.fabric.topologies.kind import TopologyKind
from generator.sitefile.declaration import Plane


class Single(TopologyKind):
    """One node."""

    meaning = "one node alone"
    summary_form = "One node"
    description_form = "One Spark"
    mtu = 1500
    control_plane: Plane = "management"


KIND: TopologyKind = Single()
