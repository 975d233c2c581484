"""The site as a whole, and the parts of it that serve a model each."""

from collections.abc import Mapping
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Literal

from generator.catalogs.advisories import Advisory, advisories
from generator.diagnostics import KeyPath
from generator.fabric.addressing import Cable, Port, SwitchPort
from generator.fabric.nccl import ROUTED_FROM
from generator.fabric.topologies import TOPOLOGIES
from generator.fabric.topologies.kind import TopologyKind
from generator.fit.assessment import Fit
from generator.grouping import grouped
from generator.records import record
from generator.site.container import ImageBuild, PlacedFile, Times, Words
from generator.site.node import Member, Node
from generator.site.places import image_folder, place, project, unit
from generator.site.serving import Engine, Model
from generator.site.switch_setup import SwitchSetup
from generator.sitefile.declaration import KvOffload

if TYPE_CHECKING:
    from generator.site.job import Job
    from generator.site.service import Service

# What is watched on a head, and the address and port that show it.
Watched = tuple[Literal["rank", "replicas", "machine"], IPv4Address, int]
# The ports that an engine's workers listen on.
PORTS_OF_WORKERS = ("rpc", "ssh")


@record
class Bandwidth:
    """The bandwidth of a healthy fabric: NCCL bus bandwidth in GB/s, that of one cable in Gb/s.

    `half_gbit_s` is that of one half, both ways at once.
    """

    nccl_gb_s: float
    link_gbit_s: int
    half_gbit_s: int


@record
class Site:
    """A whole site; nodes in the order of the list, cables by number.

    `test_nccl` is the NCCL release, 2.30.7-1, that the bandwidth test is built with on the nodes.

    A site of several engines has a part for each in its `groups`. A site of one engine is a part
    itself. A site without an engine has no parts: it is its network and services.
    """

    # The name of a part is that of its group, if the site has groups.
    group = ""

    name: str
    file: str
    description: str
    kind: str
    mtu: int
    renderer: str | None
    subnets: tuple[IPv4Network, ...]
    cables: tuple[Cable, ...]
    uplinks: tuple[Port, ...]
    switch_setups: tuple[SwitchSetup, ...]
    nodes: tuple[Node, ...]
    services: Mapping[str, "Service"]
    bandwidth: Bandwidth
    times: Times
    test_nccl: str
    groups: "tuple[Part, ...]"
    jobs: "tuple[Job, ...]"

    @property
    def serving(self) -> "Part | None":
        """The site itself if one engine serves on all of it."""
        return None

    @property
    def parts(self) -> "tuple[Part, ...]":
        """What serves a model each: the groups, or else the site itself if it has an engine."""
        return self.groups

    @cached_property
    def slots(self) -> "tuple[tuple[Part, ...], ...]":
        """Its parts, grouped by those that take turns; the active one first."""
        slots = grouped((part.slot, part) for part in self.parts).values()
        return tuple(tuple(sorted(parts, key=lambda part: not part.is_active)) for parts in slots)

    def parts_of(self, name: str) -> "tuple[tuple[Part, Member], ...]":
        """The parts that a node serves in, with the node as it is in each."""
        return self._places.get(name, ())

    def jobs_of(self, name: str) -> "tuple[tuple[Job, Node], ...]":
        """The jobs of a node, with the node as it is in each."""
        return tuple((job, node) for job in self.jobs for node in job.nodes if node.name == name)

    def slots_of(self, name: str) -> "tuple[tuple[Part, ...], ...]":
        """The parts that serve on a node, those that take turns together; the active one first."""
        own = {part.slot for part, _ in self.parts_of(name)}
        return tuple(slot for slot in self.slots if slot[0].slot in own)

    @cached_property
    def _places(self) -> "Mapping[str, tuple[tuple[Part, Member], ...]]":
        found: dict[str, tuple[tuple[Part, Member], ...]] = {}
        for part in self.parts:
            for node in part.nodes:
                found[node.name] = (*found.get(node.name, ()), (part, node))
        return found

    @staticmethod
    def unit_of(group: str) -> str:
        """The name of the unit of a group's engine."""
        return unit(group)

    def units(self, node: Node) -> str:
        """The units of a node's engines, as systemd lists them."""
        return " ".join(f"{part.unit}.service" for part, _ in self.parts_of(node.name))

    def place(self, path: str) -> str:
        """The path of a file, of which each group may have its own."""
        return place(path, self.group)

    @property
    def head(self) -> Node:
        """Rank 0."""
        return self.nodes[0]

    @property
    def address(self) -> str:
        """The address at which clients find all models, empty if each engine has its own."""
        return next(filter(None, (service.address for service in self.services.values())), "")

    def node(self, name: str) -> Node:
        """The node with this name."""
        return next(node for node in self.nodes if node.name == name)

    @cached_property
    def cabled(self) -> Node:
        """The first node with a neighbor, or a cable; its interfaces are representative of all."""
        rated = [(any(i.peers for i in n.interfaces), bool(n.interfaces), n) for n in self.nodes]
        return max(rated, key=lambda one: one[:2])[2]

    @property
    def workers(self) -> tuple[Node, ...]:
        """All ranks above 0."""
        return self.nodes[1:]

    @property
    def start_order(self) -> tuple[Node, ...]:
        """Workers before the head, which then waits for them for the shortest time."""
        return (*self.workers, self.head)

    def listeners(self, node: Node) -> dict[str, int]:
        """Ports that programs of the bundle use on a node, by name; a group's ports are its own."""
        services = (service.listeners(node) for service in self.services.values())
        return {name: port for ports in services for name, port in ports.items()}

    @property
    def engine_secrets(self) -> Words:
        """The names of its engines' secrets."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.engine.secrets))

    def runs_containers(self, node: Node) -> bool:
        """Whether a node runs containers, for the engine or for a service."""
        return (
            any(not part.engine.venv for part, _ in self.parts_of(node.name))
            or any(image for service in self.services.values() for image in service.images(node))
            or any(job.image for job, _ in self.jobs_of(node.name))
        )

    def kv_offloads(self, node: Node) -> tuple[KvOffload, ...]:
        """The KV caches on a node's disk."""
        kept = (part.model.kv_offload for part, _ in self.parts_of(node.name))
        return tuple(one for one in kept if one)

    def secrets(self, node: Node) -> Words:
        """The names that must have a value in a node's secrets.env."""
        engines = (name for part, _ in self.parts_of(node.name) for name in part.engine.secrets)
        beside = (
            name for service in self.services.values() for name in service.secrets(self, node)
        )
        return tuple(dict.fromkeys([*engines, *beside]))

    @property
    def placed(self) -> dict[PlacedFile, Words]:
        """The files that users put on nodes, and the names of these nodes."""
        found: dict[PlacedFile, dict[str, None]] = {}
        for node in (node for part in self.parts for node in part.nodes):
            for file in node.placed:
                found.setdefault(file, {})[node.name] = None
        return {file: tuple(names) for file, names in found.items()}

    @property
    def topology(self) -> TopologyKind:
        """The kind of its topology."""
        return TOPOLOGIES[self.kind]

    @cached_property
    def switches(self) -> Words:
        """The names of the switches that cables connect to."""
        return tuple(sorted({c.b.switch for c in self.cables if isinstance(c.b, SwitchPort)}))

    @property
    def has_fabric(self) -> bool:
        """Whether nodes are connected by QSFP cables."""
        return bool(self.cables)

    @cached_property
    def is_tested(self) -> bool:
        """Whether NCCL's test can connect all of its nodes: not different groups, or a chain."""
        if self.groups or not self.workers:
            return False
        is_whole = self.serving is not None or not self.topology.groups_alone
        return is_whole and all(node.interfaces for node in self.nodes)

    @cached_property
    def needed_nccl(self) -> str:
        """The oldest NCCL that can tell the ports of its nodes apart, empty if any works."""
        routed = any("NCCL_IB_SUBNET_AWARE_ROUTING" in node.nccl for node in self.nodes)
        return ROUTED_FROM if routed else ""

    @cached_property
    def advisories(self) -> tuple[Advisory, ...]:
        """Those that only a node itself can check."""
        return tuple(one for one in advisories() if one.kernel or one.driver)

    @property
    def both_halves(self) -> bool:
        """Whether every cable uses both halves: one alone gives about 100 Gb/s."""
        return all(len(cable.subnets) == 2 for cable in self.cables)


@record
class Part(Site):
    """Nodes that serve a model together, by rank: a group of a site, or all of a site.

    A group's cables are those between its nodes. Groups that take turns on the same nodes each list
    the others as `alternatives`, and one is active; the `slot` of all of them is the name of the
    group that owns the nodes. `written` is the place of its model and engine in the site file.
    """

    nodes: tuple[Member, ...]
    model: Model
    engine: Engine
    memory: Fit | None
    image_build: ImageBuild | None
    group: str
    slot: str
    written: KeyPath
    alternatives: Words
    is_active: bool

    @property
    def serving(self) -> "Part":
        """Itself."""
        return self

    @property
    def parts(self) -> "tuple[Part, ...]":
        """Itself."""
        return (self,)

    @property
    def unit(self) -> str:
        """The name of its engine's unit and container."""
        return unit(self.group)

    @property
    def after(self) -> Words:
        """The groups that it takes turns with whose units its own is ordered after.

        One order for each pair is enough: stopping comes before starting, whichever way they are
        ordered.
        """
        names = sorted((self.group, *self.alternatives))
        return tuple(names[: names.index(self.group)])

    @property
    def project(self) -> str:
        """The Compose project of the container."""
        return project(self.group)

    @property
    def image_folder(self) -> str:
        """The folder of its image's build files, if it is built here."""
        return image_folder(self.group)

    @property
    def title(self) -> str:
        """What its engine serves, for use in a sentence: the site, or a group of it."""
        return f"{self.group} of {self.name}" if self.group else self.name

    @property
    def job(self) -> str:
        """The name of the Slurm job."""
        return f"{self.name}-{self.group}" if self.group else self.name

    @property
    def head(self) -> Member:
        """Rank 0."""
        return self.nodes[0]

    @property
    def start_order(self) -> tuple[Member, ...]:
        """Workers before the head, which then waits for them for the shortest time."""
        return (*self.nodes[1:], self.head)

    @property
    def image_is_built(self) -> bool:
        """Whether the nodes build their image, because no registry has a suitable one."""
        built = self.engine.traits.is_built_for_ranks and bool(self.workers)
        return self.engine.is_built_here or built

    @staticmethod
    def is_roots(folder: str) -> bool:
        """Whether root must create a folder for downloads: it is in nobody's home."""
        return not folder.startswith(("/home/", "/root/"))

    def watched(self, node: Member) -> tuple[Watched, ...]:
        """What tells a worker that its head is gone; empty if it watches nothing."""
        head, engine = self.head.control.address, self.engine
        if port := engine.rendezvous:
            return (("rank", head, port),)
        if port := engine.replicas:
            return (("replicas", head, port),)
        if node.link and (port := engine.ports.get("rpc")):
            return (("machine", node.link.head, port),)
        return ()

    def listeners(self, node: Node) -> dict[str, int]:
        """The ports of its engine and services on a node.

        llama.cpp's workers listen for the head, and so do MPI's; all other ports are the head's.
        """
        ports = self.engine.ports.items()
        own = {name: port for name, port in ports if (name in PORTS_OF_WORKERS) is not node.is_head}
        api = {"api": self.engine.api.port} if node.is_head else {}
        # Called by its name, since a record's class is made anew.
        return api | own | Site.listeners(self, node)
