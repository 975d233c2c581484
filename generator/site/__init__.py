"""The derived site: every decision made and every number computed, so that templates only print."""

import re
from collections.abc import Mapping
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from generator.catalogs.advisories import Advisory
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.engines.traits import EngineTraits, Task
from generator.catalogs.vocabularies import Vocabulary
from generator.diagnostics import KeyPath
from generator.fabric.addressing import Cable, FabricInterface, Port, SwitchPort
from generator.fabric.routes import Route
from generator.fabric.topologies import TOPOLOGIES
from generator.fabric.topologies.kind import TopologyKind
from generator.fit.assessment import Fit
from generator.origin import Origin, origins
from generator.records import record
from generator.site.places import image_folder, place, project, unit
from generator.site.switch_setup import SwitchSetup
from generator.sitefile.declaration import FILES as FILES
from generator.sitefile.declaration import KvOffload, Management, Parallel, Speculative

if TYPE_CHECKING:
    from generator.site.service import Service

Words = tuple[str, ...]

# The environment of the engine: what all readers read the same way, what only Docker does; secrets.
ENGINE_ENV = "/etc/sparkgen/engine.env"
RAW_ENV = "/etc/sparkgen/engine.raw.env"
SECRETS_ENV = "/etc/sparkgen/secrets.env"
# The part that the engine's container gets, as a file: `docker inspect` shows variables.
GIVEN_SECRETS = "/run/sparkgen-engine/secrets"
SECRETS_SCRIPT = "/opt/sparkgen/secrets.sh"
HostEntry = tuple[str, str]
# What is watched on a head, and the address and port that show it.
Watched = tuple[Literal["rank", "replicas", "machine"], IPv4Address, int]

_RANK = Origin("nodes", "ranks follow the order of the list; the first node is the head")
_SETTINGS = Origin("engine", "the environment, generator/derive/environment.py")
_ROUTES = Origin("topology.routes", "on a ring of four or more, where the site asks for them")
_TIMES = Origin("", "times that hold for every site, generator/derive/container.py")
_MOUNTS = Origin(
    "model.cache|{node}.user|defaults.user|user model engine",
    "what the engine reads and writes, generator/derive/container.py",
)
# The ports that an engine's workers listen on.
PORTS_OF_WORKERS = ("rpc", "ssh")

MODEL_PART = r"-(\d{5})-of-(\d{5})\.gguf$"


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
class Mount:
    """A folder or file of the node, mounted at `inside` in the container.

    If it `may_be_made`, Docker creates a missing folder; all else must exist. If it `is_secret`, it
    is prepared at each start, with those of the node's secrets that the engine may know.
    """

    ORIGIN = _MOUNTS

    path: str
    read_only: bool
    inside: str
    may_be_made: bool = False
    is_secret: bool = False


@record
class CarriedFile:
    """A file that the bundle carries from beside the site file; `path` is its path on the node."""

    ORIGIN = Origin("engine.files", "carried from beside the site file")

    path: str
    data: bytes
    is_executable: bool


@record
class ImageBuild:
    """An image that is built on a node, from the files of its own folder.

    `copies` are paths in that folder and in the image, `mods` folders in both that contain a
    run.sh. `llama_cpp` is the commit of llama.cpp that is built in a stage of its own, if any.
    `inputs` is the checksum of everything it is built from, which the image has as a label.
    """

    ORIGIN = Origin("engine.image")

    name: str
    base: str
    files: tuple[CarriedFile, ...]
    copies: tuple[tuple[str, str], ...]
    mods: Words
    run: tuple[Words, ...]
    llama_cpp: str | None
    inputs: str


@record
class PlacedFile:
    """A file or folder that users put on the node, and its checksum if that is known.

    The engine may change it if it is `writable`.
    """

    ORIGIN = Origin("engine.files")

    path: str
    sha256: str | None
    writable: bool


@record
class Container:
    """What Docker runs on a node, by Compose or by hand.

    `command` is grouped as it is printed: one flag with its values per line. `options` are settings
    that the engine reads from a file. `cache_variables` name the folders that only the container
    has. `env_files` are in Docker's own format; Compose reads its own subset, `compose_env_files`,
    the same way. `ulimits` are both soft and hard; `log_size` is the size of each of the
    `log_files`.
    """

    ORIGIN = Origin("engine", "what Docker is told, generator/derive/container.py")
    ORIGINS = origins(
        command=Origin("model engine", "the engine's command line, generator/engines/"),
        cpus=Origin("engine.container.cpus"),
        devices=Origin(
            "cabling engine.container.devices", "RDMA devices only where there is a fabric"
        ),
        dropped=Origin("engine.container.hardened"),
        env_files=Origin("engine.env"),
        health=_RANK,
        image=Origin("engine.image"),
        memory_gib=Origin("engine.container.memory"),
        mounts=_MOUNTS,
        shm_size_gib=Origin("engine.container.shm", "64 GB have wedged unified-memory hosts"),
        ulimits=Origin("engine.container.ulimits", "RDMA pins the memory that it works on"),
    )

    image: str
    entrypoint: str
    command: tuple[Words, ...]
    options: Mapping[str, Any]
    mounts: tuple[Mount, ...]
    devices: Words
    env_files: Words
    cache_variables: Words
    shm_size_gib: int
    memory_gib: int | None
    cpus: str | None
    capabilities: Words
    dropped: Words
    security_options: Words
    ulimits: Mapping[str, int]
    log_size: str
    log_files: int
    stop_seconds: int
    health: "Health | None"

    @property
    def compose_env_files(self) -> Words:
        """The files that Compose reads in the same way as Docker."""
        return tuple(file for file in self.env_files if file != RAW_ENV)

    @property
    def keys(self) -> Words:
        """Files that a person creates on the node for MPI's SSH."""
        names = {"ssh_config": "known_hosts", "sshd_config": "authorized_keys"}
        mounted = {mount.path.rpartition("/")[2] for mount in self.mounts}
        own = [names[name] for name in names if name in mounted]
        return tuple(f"/etc/sparkgen/mpi/{name}" for name in ("key", *own) if own)

    @property
    def pyxis_mounts(self) -> str:
        """Mounts and devices in the syntax of pyxis, Slurm's container plugin."""
        mounts = [
            f"{mount.path}:{mount.inside}{':ro' if mount.read_only else ''}"
            for mount in self.mounts
        ]
        return ",".join([*mounts, *(f"{device}:{device}" for device in self.devices)])


@record
class Health:
    """The health check of the head's container; times in seconds.

    `key` names the variable with the API's key, None if the engine has none. `generates` is the
    engine's own endpoint that generates a token, None if the check requests one itself.
    """

    ORIGIN = _TIMES
    ORIGINS = origins(
        test=_RANK,
        url=Origin("engine.bind engine.port", "how the head is asked whether it serves"),
    )

    url: str
    key: str | None
    generates: str | None
    test: Words
    start_seconds: int
    interval_seconds: int
    answer_seconds: int
    timeout_seconds: int
    retries: int


@record
class Times:
    """Time limits in seconds, and how often a start may fail.

    A `step` is one that ranks compute together; an engine that waits longer for it exits.
    """

    ORIGIN = _TIMES
    ORIGINS = origins(step=Origin("engine.env", "how long an engine waits for a rank"))

    fabric: int
    join: int
    load: int
    start: int
    step: int
    stop: int
    restart: int
    burst: int

    @property
    def burst_interval(self) -> int:
        """Long enough to count starts that fail late, which would otherwise be repeated forever."""
        return self.burst * (self.start + self.load + self.step + self.restart + self.stop)


@record
class Link:
    """A subnet of the fabric that a worker shares with rank 0, and the address of each on it."""

    ORIGIN = Origin("topology.kind|nodes", "two nodes of a ring, and the cable between them")

    head: IPv4Address
    worker: IPv4Address


@record
class Node:
    """One machine of the site, with everything that its folder of the bundle contains.

    `starts_after` are the groups on it whose engines start before this one's.
    """

    ORIGIN = Origin("{node}")
    ORIGINS = origins(
        carried=Origin("engine.files", "carried from beside the site file"),
        placed=Origin("engine.files"),
        environment=_SETTINGS,
        raw_environment=Origin("engine.env", "values that Compose would read as syntax"),
        hosts=Origin("nodes cabling", "the names and addresses that the node reaches"),
        interfaces=Origin("{cable}.endpoints", "each port that a cable ends at has two halves"),
        is_head=_RANK,
        login=_SETTINGS,
        memory_gb=Origin("{node}.memory_gb|defaults.memory_gb"),
        model_path=Origin("{node}.model_path"),
        name=Origin("{node}.name"),
        nccl=_SETTINGS,
        rank=_RANK,
        forwards=_ROUTES,
        routes=_ROUTES,
        ssh=Origin("{node}.user|defaults.user|user {node}.management"),
        starts_after=Origin("groups", "engines of one node start one after the other"),
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
    model_path: str | None
    memory_gb: int
    visible_gib: float
    management: Management | None
    interfaces: tuple[FabricInterface, ...]
    control: ControlPlane
    link: Link | None
    nccl: Mapping[str, str]
    environment: tuple[Variables, ...]
    raw_environment: Mapping[str, str]
    login: Mapping[str, str]
    container: Container
    hosts: tuple[HostEntry, ...]
    routes: tuple[Route, ...]
    carried: tuple[CarriedFile, ...]
    placed: tuple[PlacedFile, ...]
    starts_after: Words = ()

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

    @cached_property
    def env(self) -> Mapping[str, str]:
        """The environment without its groups."""
        grouped = {name: text for group in self.environment for name, text in group.values.items()}
        return grouped | dict(self.raw_environment)


@record
class Model:
    """The model as the engine serves it; lengths in tokens, None is the engine's default."""

    ORIGIN = Origin("model")
    ORIGINS = origins(
        aliases=Origin("model.aliases"),
        commits=Origin("", "the lock beside the site file"),
        context_length=Origin("model.context_length"),
        kv_offload=Origin("model.kv_offload"),
        max_sequences=Origin("model.max_sequences"),
        served_name=Origin(
            "model.served_name|model.source|model.name", "the last part of the model's id"
        ),
        source=Origin("model.source|model.name", "the catalog has the Hugging Face id"),
        vocabularies=Origin("model.source|model.name", "what harmony is read and written with"),
    )

    source: str
    served_name: str
    aliases: Words
    format: str | None
    revision: str | None
    context_length: int | None
    max_sequences: int | None
    kv_cache_dtype: str | None
    quantization: str | None
    speculative: Speculative | None
    file: str | None
    gated: bool
    vocabularies: tuple[Vocabulary, ...] = ()
    kv_cache_memory: float | None = None
    kv_offload: KvOffload | None = None
    commits: Mapping[str, str] = {}

    @property
    def folders(self) -> Words:
        """Folders on the nodes from which the model and the draft model are read."""
        return tuple(source for source in self._sources if source.startswith("/"))

    @property
    def downloads(self) -> Words:
        """Those of the two that are in the Hugging Face cache, by id."""
        return tuple(source for source in self._sources if not source.startswith("/"))

    @property
    def files(self) -> Words:
        """The GGUF files that are read instead: all parts of the model, and the draft model.

        A part is named `NAME-00001-of-00003.gguf`.
        """
        if not self.file:
            return ()
        draft = self.speculative.checkpoint if self.speculative else None
        return (*_parts(self.file), *((draft,) if draft else ()))

    @property
    def file_folder(self) -> str:
        """The folder of the GGUF file."""
        return str(PurePosixPath(self.file or "").parent)

    @property
    def file_pattern(self) -> str:
        """The common pattern of the names of the GGUF file's parts, or its own name."""
        return re.sub(MODEL_PART, r"-*-of-\2.gguf", PurePosixPath(self.file or "").name)

    @property
    def repository(self) -> str | None:
        """The Hugging Face id of a GGUF file's repository; the catalog has none of those."""
        return None if self.format or self.source.startswith("/") else self.source

    @property
    def _sources(self) -> Words:
        if self.file:
            return ()
        draft = self.speculative.checkpoint if self.speculative else None
        return (self.source, draft) if draft else (self.source,)


def first_part(file: str) -> str:
    """The part of a GGUF file that an engine is given for the whole."""
    return re.sub(MODEL_PART, r"-00001-of-\2.gguf", file)


def _parts(file: str) -> Words:
    """All files of a model, given its first or only one."""
    found = re.search(MODEL_PART, file)
    if not found:
        return (file,)
    stem, count = file[: found.start()], found[2]
    return tuple(f"{stem}-{part:05}-of-{count}.gguf" for part in range(1, int(count) + 1))


@record
class Api:
    """Where the engine's API is: the address it listens on, and the one that clients use."""

    ORIGIN = Origin(
        "services.gateway|services.proxy|engine.bind|nodes[0].management",
        "the API listens on the head's management address unless engine.bind says otherwise",
    )
    ORIGINS = origins(
        has_tls=Origin("engine.args", "whether the engine is given a certificate"),
        port=Origin("engine.port", "the engine's own port unless the site says another"),
        url=Origin(
            "services.gateway|services.proxy|engine.bind|nodes[0].management engine.port",
            "the API listens on the head's management address unless engine.bind says otherwise",
        ),
    )

    listen: str
    host: str
    port: int
    has_tls: bool = False

    @property
    def scheme(self) -> str:
        """The scheme of its URLs."""
        return "https" if self.has_tls else "http"

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"{self.scheme}://{self.host}:{self.port}"

    @property
    def own_url(self) -> str:
        """The base URL for programs on the head itself."""
        host = "127.0.0.1" if self.listen == "0.0.0.0" else self.listen
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether only programs on the head itself can reach it."""
        return IPv4Address(self.listen).is_loopback


@record
class Engine:
    """The engine with all its settings determined.

    `key` names the secret with the API's key, None if the site has none. `held_by_others` is the
    largest share that other engines and the system may hold on any of its nodes, if any.
    """

    ORIGIN = Origin("engine")
    ORIGINS = origins(
        env_files=Origin("engine.env"),
        held_by_others=Origin(
            "groups", "what other engines and the system hold of its nodes at most"
        ),
        image=Origin("engine.image"),
        is_derived=Origin("engine.image", "whether it is built from another"),
        is_pinned=Origin("engine.image", "whether the image is named by its digest"),
        launcher=Origin("engine.launcher|engine.name", "the engine's first one by default"),
        memory_utilization=Origin("engine.memory_utilization"),
        nccl=Origin("engine.nccl"),
        ports=Origin("engine.ports|engine.name", "the engine's own unless the site differs"),
        secrets=Origin("engine.secrets"),
        task=Origin("engine.args", "what it serves: chats, embeddings or rankings"),
        title=Origin("engine.name", "the engine's name as people write it"),
        traits=Origin("engine.name", "what the engine is like, generator/catalogs/engines.py"),
        venv=Origin("engine.venv"),
        version=Origin("engine.version"),
    )

    name: str
    title: str
    version: str
    image: str
    venv: str | None
    nccl: str | None
    launcher: str
    api: Api
    ports: Mapping[str, int]
    parallel: Parallel
    memory_utilization: float
    key: str | None
    uses_nccl: bool
    secrets: Words
    env_files: Words
    is_derived: bool
    task: Task = "chat"
    held_by_others: float = 0.0

    @property
    def rendezvous(self) -> int | None:
        """The head's port at which ranks meet, open for as long as rank 0 lives."""
        return self.ports.get("master") or self.ports.get("dist_init")

    @property
    def replicas(self) -> int | None:
        """The port at which the head waits for replicas, until all of them have loaded."""
        return self.ports.get("data_parallel_rpc")

    @property
    def is_slurm_job(self) -> bool:
        """Whether Slurm starts the containers, so that no unit of systemd does."""
        return self.launcher == "slurm"

    @property
    def traits(self) -> EngineTraits:
        """The traits of the engine, independent of the site."""
        return ENGINE_TRAITS[self.name]

    @property
    def squashfs(self) -> str:
        """The path at which nodes keep the image for pyxis."""
        return f"/var/lib/sparkgen/{self.name}-{self.version}.sqsh"

    @property
    def is_pinned(self) -> bool:
        """Whether the image is named by its digest, which always means the same image."""
        return "@" in self.image

    @property
    def is_built_here(self) -> bool:
        """Whether no registry is known to have the image: it is built on a node and copied."""
        return self.is_derived or (bool(self.image) and "/" not in self.image)


@record
class Bandwidth:
    """The bandwidth of a healthy fabric: NCCL bus bandwidth in GB/s, that of one cable in Gb/s.

    `half_gbit_s` is that of one half, both ways at once.
    """

    ORIGIN = Origin(
        "topology.kind topology.halves", "NVIDIA's thresholds for a healthy fabric of this kind"
    )

    nccl_gb_s: float
    link_gbit_s: int
    half_gbit_s: int


@record
class Site:
    """A whole site; nodes by rank, cables by number.

    `test_nccl` is the NCCL release, 2.30.7-1, that the bandwidth test is built with on the nodes.
    `advisories` are those that only a node itself can check.

    A site of several engines has a site for each in its `groups`: its name as `group`, its nodes by
    rank in the group, the cables between them, and its model and engine. The model and engine of
    the whole site are those of its first group, and it has no `memory`. Groups that take turns on
    the same nodes each list the others as `alternatives`, and one is active; the `slot` of all of
    them is the name of the group that owns the nodes. `written` is the place of a group's model and
    engine in the site file.
    """

    ORIGIN = Origin("")
    ORIGINS = origins(
        both_halves=Origin("topology.halves", "one half alone gives about 100 Gb/s"),
        cabled=Origin("cabling nodes", "the first node that has a cable"),
        cables=Origin("cabling"),
        description=Origin("description"),
        file=Origin("", "the name of the site file"),
        alternatives=Origin("groups", "what takes turns on the same nodes"),
        group=Origin("groups"),
        groups=Origin("groups"),
        is_active=Origin("groups", "the group itself unless it names an alternative"),
        engine_secrets=Origin("engine.secrets"),
        job=Origin("name groups"),
        parts=Origin("groups|model"),
        slot=Origin("groups"),
        slots=Origin("groups"),
        project=Origin("groups", "one for each engine of a node"),
        title=Origin("name groups"),
        unit=Origin("groups", "one for each engine of a node"),
        has_fabric=Origin("cabling", "whether there are cables"),
        kv_offloads=Origin("model.kv_offload"),
        hubs=Origin("model.cache|user", "the folder that each node's engine reads models from"),
        kind=Origin("topology.kind"),
        mtu=Origin("topology.mtu|topology.kind", "9000, but 1500 on a switch"),
        name=Origin("name"),
        nodes=_RANK,
        placed=Origin("engine.files"),
        renderer=Origin("topology.renderer"),
        switches=Origin("cabling", "what the cables end at beside the nodes"),
        topology=Origin("topology.kind"),
        start_order=Origin("nodes", "workers before the head"),
        test_nccl=Origin("engine.nccl"),
        image_build=Origin("engine.image", "what the image is built from"),
        image_folder=Origin("engine.image", "where the image is built from"),
        address=Origin("services.gateway services.proxy nodes"),
        advisories=Origin("", "those that are about a kernel or a driver"),
        switch_setups=Origin("topology.switches"),
        uplinks=Origin("topology.uplinks"),
        workers=_RANK,
    )

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
    model: Model
    engine: Engine
    services: Mapping[str, "Service"]
    memory: Fit | None
    bandwidth: Bandwidth
    times: Times
    test_nccl: str
    image_build: ImageBuild | None
    advisories: tuple[Advisory, ...]
    group: str = ""
    groups: "tuple[Site, ...]" = ()
    slot: str = ""
    written: KeyPath = ()
    alternatives: Words = ()
    is_active: bool = True

    @property
    def parts(self) -> "tuple[Site, ...]":
        """The sites that serve a model each: the groups, or else the site itself."""
        return self.groups or (self,)

    @cached_property
    def slots(self) -> "tuple[tuple[Site, ...], ...]":
        """Its parts, grouped by those that take turns; the active one first."""
        found: dict[str, list[Site]] = {}
        for part in self.parts:
            found.setdefault(part.slot, []).append(part)
        return tuple(
            tuple(sorted(parts, key=lambda part: not part.is_active)) for parts in found.values()
        )

    def parts_of(self, name: str) -> "tuple[tuple[Site, Node], ...]":
        """The parts that a node serves in, with the node as it is in each."""
        return self._places.get(name, ())

    def slots_of(self, name: str) -> "tuple[tuple[Site, ...], ...]":
        """The parts that serve on a node, those that take turns together; the active one first."""
        return self._slots_by_node.get(name, ())

    @cached_property
    def _slots_by_node(self) -> "Mapping[str, tuple[tuple[Site, ...], ...]]":
        found: dict[str, tuple[tuple[Site, ...], ...]] = {}
        for slot in self.slots:
            for node in slot[0].nodes:
                found[node.name] = (*found.get(node.name, ()), slot)
        return found

    @cached_property
    def _places(self) -> "Mapping[str, tuple[tuple[Site, Node], ...]]":
        found: dict[str, tuple[tuple[Site, Node], ...]] = {}
        for part in self.parts:
            for node in part.nodes:
                found[node.name] = (*found.get(node.name, ()), (part, node))
        return found

    @property
    def unit(self) -> str:
        """The name of its engine's unit and container."""
        return unit(self.group)

    @staticmethod
    def unit_of(group: str) -> str:
        """The name of the unit of another group's engine."""
        return unit(group)

    @property
    def after(self) -> Words:
        """The groups that it takes turns with whose units its own is ordered after.

        One order for each pair is enough: stopping comes before starting, whichever way they are
        ordered.
        """
        names = sorted((self.group, *self.alternatives))
        return tuple(names[: names.index(self.group)])

    def units(self, node: Node) -> str:
        """The units of a node's engines, as systemd lists them."""
        return " ".join(f"{part.unit}.service" for part, _ in self.parts_of(node.name))

    @property
    def project(self) -> str:
        """The Compose project of the container."""
        return project(self.group)

    def place(self, path: str) -> str:
        """The path of a file of its engine."""
        return place(path, self.group)

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

    @property
    def cabled(self) -> Node:
        """The first node with a cable, whose interfaces are representative of all."""
        return next((node for node in self.nodes if node.interfaces), self.head)

    @property
    def workers(self) -> tuple[Node, ...]:
        """All ranks above 0."""
        return self.nodes[1:]

    @property
    def start_order(self) -> tuple[Node, ...]:
        """Workers before the head, which then waits for them for the shortest time."""
        return (*self.workers, self.head)

    @property
    def image_is_built(self) -> bool:
        """Whether the nodes build their image, because no registry has a suitable one."""
        built = self.engine.traits.is_built_for_ranks and bool(self.workers)
        return self.engine.is_built_here or built

    @property
    def hubs(self) -> dict[str, Words]:
        """Names of nodes, in rank order, by the folder that their engine reads models from."""
        folders = dict.fromkeys(node.env["HF_HUB_CACHE"] for node in self.nodes)
        return {
            folder: tuple(node.name for node in self.nodes if node.env["HF_HUB_CACHE"] == folder)
            for folder in folders
        }

    @staticmethod
    def is_roots(folder: str) -> bool:
        """Whether root must create a folder for downloads: it is in nobody's home."""
        return not folder.startswith(("/home/", "/root/"))

    def watched(self, node: Node) -> tuple[Watched, ...]:
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
        """Ports that programs of the bundle use on a node, by name; a group's ports are its own.

        llama.cpp's workers listen for the head, and so do MPI's; all other ports are the head's.
        """
        services = (service.listeners(node) for service in self.services.values())
        beside = {name: port for ports in services for name, port in ports.items()}
        return ({} if self.groups else self._engine_listeners(node)) | beside

    @property
    def engine_secrets(self) -> Words:
        """The names of its engines' secrets."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.engine.secrets))

    def runs_containers(self, node: "Node") -> bool:
        """Whether a node runs containers, for the engine or for a service."""
        return any(not part.engine.venv for part, _ in self.parts_of(node.name)) or any(
            image for service in self.services.values() for image in service.images(node)
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

    def _engine_listeners(self, node: Node) -> dict[str, int]:
        ports = self.engine.ports.items()
        if not node.is_head:
            return {name: port for name, port in ports if name in PORTS_OF_WORKERS}
        own = {name: port for name, port in ports if name not in PORTS_OF_WORKERS}
        return {"api": self.engine.api.port} | own

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

    @property
    def both_halves(self) -> bool:
        """Whether every cable uses both halves: one alone gives about 100 Gb/s."""
        return all(len(cable.subnets) == 2 for cable in self.cables)


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
