"""What every kind of topology says of itself."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from generator.origin import Origin
from generator.sitefile.declaration import Plane

Pair = tuple[str, str]


class TopologyKind(Protocol):
    """A way to join nodes; what stands here holds for most of them.

    `fewest` and `most` are the nodes that it joins. `mtu`, in bytes, and `control_plane` hold
    unless the site says otherwise, the latter where every node has a management network. `nccl` is
    the first release of NCCL that works, None where any does. `meaning` is what `init` offers, and
    `usual` the most nodes that it takes the kind for by itself.
    """

    fewest: int
    most: int
    usual: int
    meaning: str
    mtu: int
    control_plane: Plane
    # Whether each cable ends at a switch, where a port number of all nodes is one network.
    switched: bool = False
    # Whether a fabric interface reaches all nodes: else NCCL tells a node's ports apart by subnet.
    reaches_all: bool = True
    # Whether a cable joins the same port of both nodes, and a second one may join the same two.
    same_port: bool = False
    spare_cables: bool = False
    # Whether it joins nodes in groups alone, and not all of a site.
    groups_alone: bool = False
    nccl: str | None = None
    # Why NCCL is told what `nccl_settings` has, by variable.
    nccl_origins: Mapping[str, Origin] = {}

    @property
    def plugged_alike(self) -> bool:
        """Whether a site starts with the cable of each node in the same port."""
        return self.same_port or self.switched or self.groups_alone

    def pairs(self, names: Sequence[str]) -> Sequence[Pair]:
        """The nodes that a cable joins each, where none is there yet."""
        return ()

    def missing(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[Pair]:
        """The nodes that a cable has yet to join each; `joined` are those that have one."""
        return ()

    def closed_apart(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[str]:
        """Nodes that the cables close a shape of without the others, if there are any."""
        return ()

    def group_kind(
        self, names: Sequence[str], joined: Collection[Pair], cabled: Collection[str]
    ) -> str | None:
        """The kind that some of a site's nodes have among themselves, None if they have none.

        `joined` are those of them that a cable joins, `cabled` all nodes of the site that have one.
        """
        return None

    def order(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[str]:
        """The nodes along the cables; empty where these don't join all as they should."""
        return names

    def is_oriented(self, nodes: int) -> bool:
        """Whether each cable has to go from p0 of a node to p1 of the next."""
        return False

    def pool_pair(self, cable: int, port: int) -> int:
        """Which pair of the pool's subnets a cable takes, by its index and its end's port."""
        return cable

    def nccl_settings(self, nodes: int, prefix: int) -> dict[str, str]:
        """What NCCL is told beside the rest; `prefix` is the length of the fabric's prefixes."""
        return {}

    def preparations(self, mtu: int, before: int | None) -> Sequence[str]:
        """What people do on the fabric ahead of the nodes; `before` is its MTU until then."""
        return ()

    def bus_bandwidth(self, nodes: int) -> float:
        """The least that NCCL's tests show on a healthy fabric with both halves, in GB/s."""
        return 0.0

    def summary(self, nodes: int) -> str:
        """So many nodes and how they are joined, as a sentence about them begins."""
        ...

    def description(self, nodes: int) -> str:
        """The same for the description of a site."""
        ...
