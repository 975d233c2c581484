"""Nodes on a switch."""

from collections.abc import Sequence

from generator.fabric.topologies.kind import TopologyKind
from generator.sitefile.declaration import Plane


class Switch(TopologyKind):
    """One node or more; all ports with the same number form one network."""

    meaning = "nodes on a switch"
    summary_form = "{0} node{1} on a switch"
    description_form = "{0} Spark{1} on a switch"
    # Every port of the switch must agree, and this is the default of a switch.
    mtu = 1500
    control_plane: Plane = "fabric"

    def preparations(self, mtu: int, before: int | None) -> Sequence[str]:
        """Set all ports of the switch to carry what the nodes send; larger frames do no harm."""
        return () if before and mtu <= before else (f"set the MTU of every switch port to {mtu}",)


KIND: TopologyKind = Switch()
