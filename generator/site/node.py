"""The derived nodes: their addresses, and everything that their folders of a bundle contain."""

from collections.abc import Mapping
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from generator.fabric.addressing import FabricInterface
from generator.fabric.routes import Route
from generator.origin import Origin, origins
from generator.records import record
from generator.site.container import RANK, CarriedFile, Container, PlacedFile, Words
from generator.sitefile.declaration import Management, OtherProgram

HostEntry = tuple[str, str]

_SETTINGS = Origin("engine", "the environment, generator/derive/environment.py")
_ROUTES = Origin("topology.routes", "on a ring of four or more, if the site requests them")


@record
class ControlPlane:
    """Where a node's bootstrap and control traffic goes; a single node uses the loopback."""

    ORIGIN = Origin(
        "topology.control_plane|topology.kind {node}.management",
        "control traffic takes the management network on a ring, else the fabric's first half",
    )

    plane: Literal["management", "fabric", "local"]
    interface: str
    address: IPv4Address
    network: IPv4Network


@record
class Variables:
    """A group of environment variables, and its purpose."""

    ORIGIN = _SETTINGS

    title: str
    values: Mapping[str, str]


@record
class Link:
    """A subnet of the fabric that a worker shares with rank 0, and the address of each on it."""

    ORIGIN = Origin("topology.kind|nodes", "two nodes of a ring, and the cable between them")

    head: IPv4Address
    worker: IPv4Address


@record
class Rank:
    """One rank of a serving group; `head` is the address at which the others find rank 0.

    `links` are those of all workers, in rank order; `visible_gib` is the memory that the GPU sees,
    in GiB.
    """

    index: int
    count: int
    address: IPv4Address
    head: IPv4Address
    links: tuple[Link, ...] = ()
    visible_gib: float = 0.0

    @property
    def is_head(self) -> bool:
        """Whether this is rank 0."""
        return self.index == 0


@record
class Node:
    """One machine of the site, with what its folder of the bundle contains besides engines.

    `other` are the units that share its memory.
    """

    ORIGIN = Origin("{node}")
    ORIGINS = origins(
        hosts=Origin("nodes cabling", "the names and addresses that the node reaches"),
        interfaces=Origin("{cable}.endpoints", "each port that a cable ends at has two halves"),
        is_head=RANK,
        login=_SETTINGS,
        memory_gb=Origin("{node}.memory_gb|defaults.memory_gb"),
        name=Origin("{node}.name"),
        nccl=_SETTINGS,
        other=Origin("{node}.other"),
        rank=RANK,
        forwards=_ROUTES,
        routes=_ROUTES,
        ssh=Origin("{node}.user|defaults.user|user {node}.management"),
        user=Origin("{node}.user|defaults.user|user"),
        visible_gib=Origin(
            "{node}.visible_gib|defaults.visible_gib|{node}.memory_gb|defaults.memory_gb",
            "what CUDA sees of the memory, generator/hardware.py",
        ),
    )

    name: str
    rank: int
    host: int
    user: str
    memory_gb: int
    visible_gib: float
    management: Management | None
    interfaces: tuple[FabricInterface, ...]
    control: ControlPlane
    nccl: Mapping[str, str]
    login: Mapping[str, str]
    hosts: tuple[HostEntry, ...]
    routes: tuple[Route, ...]
    other: tuple[OtherProgram, ...]

    @property
    def is_head(self) -> bool:
        """Whether the node is rank 0 and serves the API."""
        return self.rank == 0

    @property
    def address(self) -> IPv4Address:
        """The address at which a person reaches the node."""
        return self.management.address.ip if self.management else self.control.address

    @property
    def ssh(self) -> str:
        """The host for `ssh`; without a management network the node's name must resolve."""
        return f"{self.user}@{self.management.address.ip if self.management else self.name}"

    def routes_from(self, interface: FabricInterface) -> tuple[Route, ...]:
        """The routes that leave through an interface."""
        return tuple(route for route in self.routes if route.interface == interface.name)

    @property
    def forwards(self) -> tuple[tuple[str, str], ...]:
        """Pairs of interfaces, in and out, between which the node forwards other nodes' traffic."""
        if not self.routes:
            return ()
        return tuple(
            (one.name, other.name)
            for one in self.interfaces
            for other in self.interfaces
            if one.half.half == other.half.half and one.half.port != other.half.port
        )


@record
class Member(Node):
    """A node as it serves in a part of the site: a rank of an engine, and what that reads.

    `link` is the subnet that a worker shares with the head. `starts_after` are the groups on the
    node whose engines start before this one's.
    """

    ORIGINS = Node.ORIGINS | origins(
        carried=Origin("engine.files", "carried from beside the site file"),
        placed=Origin("engine.files"),
        environment=_SETTINGS,
        raw_environment=Origin("engine.env", "values that Compose would read as syntax"),
        model_path=Origin("{node}.model_path"),
        starts_after=Origin("groups", "engines of one node start one after the other"),
    )

    model_path: str | None
    link: Link | None
    environment: tuple[Variables, ...]
    raw_environment: Mapping[str, str]
    container: Container
    carried: tuple[CarriedFile, ...]
    placed: tuple[PlacedFile, ...]
    starts_after: Words = ()

    @cached_property
    def env(self) -> Mapping[str, str]:
        """The environment without its groups."""
        grouped = {name: text for group in self.environment for name, text in group.values.items()}
        return grouped | dict(self.raw_environment)
