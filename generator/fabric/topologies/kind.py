"""The interface of every kind of topology."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from generator.origin import Origin
from generator.sitefile.declaration import Plane
from generator.sitefile.topology_kinds import KindTraits, kind_traits

Pair = tuple[str, str]


class TopologyKind(Protocol):
    """A way to connect nodes; the defaults here hold for most kinds.

    What a kind's name alone tells is in the schema: see `KindTraits`. `mtu`, in bytes, and
    `control_plane` hold unless the site overrides them, the latter only if every node has a
    management network. `nccl` is the first release of NCCL that works, None if all do. `meaning` is
    the description in `init`.
    """

    meaning: str
    mtu: int
    control_plane: Plane
    # Whether a fabric interface reaches all nodes; otherwise NCCL tells a node's ports apart by
    # subnet.
    reaches_all: bool = True
    # Whether a cable connects the same port of both nodes, and a second one may connect the same
    # two.
    same_port: bool = False
    spare_cables: bool = False
    nccl: str | None = None
    # The reason for each variable of `nccl_settings`.
    nccl_origins: Mapping[str, Origin] = {}

    @property
    def _traits(self) -> KindTraits:
        """What the schema says of the kind, whose name is its module's."""
        return kind_traits()[type(self).__module__.rpartition(".")[2]]

    @property
    def fewest(self) -> int:
        """The smallest number of nodes that it connects."""
        return self._traits.fewest

    @property
    def most(self) -> int:
        """The largest number of nodes that it connects."""
        return self._traits.most

    @property
    def usual(self) -> int:
        """The largest number of nodes for which `init` assumes this kind."""
        return self.most

    @property
    def switched(self) -> bool:
        """Whether each cable goes to a switch; there, all ports with one number form a network."""
        return self._traits.switched

    @property
    def groups_alone(self) -> bool:
        """Whether it only connects nodes in groups, and never all nodes of a site."""
        return self._traits.groups_alone

    @property
    def uses_same_port(self) -> bool:
        """Whether a new site has each node's cable in the same port."""
        return self.same_port or self.switched or self.groups_alone

    def pairs(self, names: Sequence[str]) -> Sequence[Pair]:
        """The pairs of nodes that cables should connect, if there are no cables yet."""
        return ()

    def missing(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[Pair]:
        """The pairs of nodes that cables have yet to connect; `joined` are those that have one."""
        return ()

    def closed_subset(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[str]:
        """Nodes whose cables form a closed shape without the others, if any."""
        return ()

    def group_kind(
        self, names: Sequence[str], joined: Collection[Pair], cabled: Collection[str]
    ) -> str | None:
        """The kind that some of a site's nodes form among themselves, None if they form none.

        `joined` are the pairs of them that cables connect, `cabled` all nodes of the site with a
        cable.
        """
        return None

    def order(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[str]:
        """The nodes in cable order; empty if the cables don't connect all of them correctly."""
        return names

    def is_oriented(self, nodes: int) -> bool:
        """Whether each cable has to go from p0 of a node to p1 of the next."""
        return False

    def pool_pair(self, cable: int, port: int) -> int:
        """The pair of the pool's subnets for a cable, by the cable's index and its end's port."""
        return cable

    def nccl_settings(self, nodes: int, prefix: int) -> dict[str, str]:
        """NCCL settings specific to the topology; `prefix` is the fabric's prefix length."""
        return {}

    def preparations(self, mtu: int, before: int | None) -> Sequence[str]:
        """What users set up on the fabric before the nodes; `before` is its MTU until then."""
        return ()

    def bus_bandwidth(self, nodes: int) -> float:
        """The minimum that NCCL's tests show on a healthy fabric with both halves, in GB/s."""
        return 0.0

    def summary(self, nodes: int) -> str:
        """The number of nodes and how they are connected, to begin a sentence with."""
        ...

    def description(self, nodes: int) -> str:
        """The same for the description of a site."""
        ...
