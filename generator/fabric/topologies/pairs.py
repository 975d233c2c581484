"""Nodes in pairs, each with a cable of its own."""

from generator.fabric.topologies.kind import TopologyKind
from generator.sitefile.declaration import Plane


class Pairs(TopologyKind):
    """Several direct links on one site, each for a group of two nodes.

    Two neighbors in a ring are also such a pair: their cable connects different ports, as it must
    there.
    """

    usual = 0
    meaning = "pairs of nodes, each with a cable"
    summary_form = "{0} nodes, joined in pairs,"
    description_form = "{0} Sparks in pairs"
    mtu = 9000
    control_plane: Plane = "fabric"
    spare_cables = True


KIND: TopologyKind = Pairs()
