"""The derived nodes: their addresses, and everything that their folders of a bundle contain."""

from collections.abc import Mapping
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from generator.fabric.addressing import FabricInterface
from generator.fabric.routes import Route
from generator.records import record
from generator.site.container import CarriedFile, Container, PlacedFile, Words
from generator.sitefile.declaration import Management, OtherProgram

HostEntry = tuple[str, str]


@record
class ControlPlane:
    """Where a node's bootstrap and control traffic goes; a single node uses the loopback."""

    plane: Literal["management", "fabric", "local"]
    interface: str
    address: IPv4Address
    network: IPv4Network


@record
class Variables:
    """A group of environment variables, and its purpose."""

    title: str
    values: Mapping[str, str]


@record
class Link:
    """A subnet of the fabric that a worker shares with rank 0, and the address of each on it."""

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
