"""Nodes on a switch."""

from collections.abc import Sequence

from generator.fabric.topologies.kind import TopologyKind


class Switch(TopologyKind):
    """One node or more; all ports with the same number form one network."""

    def preparations(self, mtu: int, before: int | None) -> Sequence[str]:
        """Set all ports of the switch to carry what the nodes send; larger frames do no harm."""
        return () if before and mtu <= before else (f"set the MTU of every switch port to {mtu}",)


KIND = Switch
