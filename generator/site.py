"""The derived site: every decision made and every number computed, so that templates only print."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import PurePosixPath
from typing import Any, Literal

from generator.addressing import Cable, FabricInterface
from generator.declaration import Kind, Management, Parallel, Speculative
from generator.fit.assessment import Fit

Words = tuple[str, ...]
HostEntry = tuple[str, str]

# Ports of an engine that its workers listen on.
_OF_WORKERS = ("rpc", "ssh")

_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Where bootstrap and control traffic of a node goes; local is a single node's loopback."""

    plane: Literal["management", "fabric", "local"]
    interface: str
    address: IPv4Address
    network: IPv4Network


@dataclass(frozen=True, slots=True)
class Variables:
    """A group of environment variables and what they are for."""

    title: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of the node, at the same path in the container."""

    path: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Container:
    """What Docker runs on a node, by Compose or by hand.

    `command` is grouped as it is printed: one flag with its values a line. `options` are settings
    that the engine reads from a file. `cache_variables` name the folders that only the container
    has.
    """

    image: str
    entrypoint: str
    command: tuple[Words, ...]
    options: Mapping[str, Any]
    mounts: tuple[Mount, ...]
    devices: Words
    env_files: Words
    cache_variables: Words
    shm_size_gib: int
    stop_seconds: int
    health: "Health | None"

    @property
    def keys(self) -> Words:
        """Files that a person makes on the node for the SSH of MPI."""
        names = {"ssh_config": "known_hosts", "sshd_config": "authorized_keys"}
        mounted = {PurePosixPath(mount.path).name for mount in self.mounts}
        own = [names[name] for name in names if name in mounted]
        return tuple(f"/etc/sparkgen/mpi/{name}" for name in ("key", *own) if own)

    @property
    def pyxis_mounts(self) -> str:
        """Mounts and devices as pyxis, Slurm's plugin for containers, takes them."""
        mounts = [
            f"{mount.path}:{mount.path}{':ro' if mount.read_only else ''}" for mount in self.mounts
        ]
        return ",".join([*mounts, *(f"{device}:{device}" for device in self.devices)])


@dataclass(frozen=True, slots=True)
class Health:
    """How the head's container is asked whether it serves; times in seconds.

    `key` names the variable with the API's key, None where the engine knows none. `generates` is
    the engine's own endpoint that proves a token, None where the check asks for one itself.
    """

    url: str
    key: str | None
    generates: str | None
    test: Words
    start_seconds: int
    interval_seconds: int
    answer_seconds: int
    timeout_seconds: int
    retries: int


@dataclass(frozen=True, slots=True)
class Times:
    """How long things may take, in seconds, and how often a start may fail."""

    fabric: int
    join: int
    load: int
    start: int
    stop: int
    restart: int
    burst: int

    @property
    def burst_interval(self) -> int:
        """Long enough that starts which fail late count too: else they would go on for ever."""
        return self.burst * (self.start + self.load + self.restart + self.stop)


@dataclass(frozen=True, slots=True)
class Link:
    """A subnet of the fabric that a worker shares with rank 0: the address of each on it."""

    head: IPv4Address
    worker: IPv4Address


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of the site, with all that its folder of the bundle says."""

    name: str
    rank: int
    host: int
    user: str
    memory_gb: int
    visible_gib: float
    management: Management | None
    interfaces: tuple[FabricInterface, ...]
    control: ControlPlane
    link: Link | None
    nccl: Mapping[str, str]
    environment: tuple[Variables, ...]
    login: Mapping[str, str]
    container: Container
    hosts: tuple[HostEntry, ...]

    @property
    def is_head(self) -> bool:
        """Whether the node is rank 0 and serves the API."""
        return self.rank == 0

    @property
    def address(self) -> IPv4Address:
        """Where a person reaches the node."""
        return self.management.address.ip if self.management else self.control.address

    @property
    def ssh(self) -> str:
        """What `ssh` is told: without a management network the node's name must resolve."""
        return f"{self.user}@{self.management.address.ip if self.management else self.name}"

    @property
    def env(self) -> dict[str, str]:
        """The environment without its groups."""
        return {name: value for group in self.environment for name, value in group.values.items()}


@dataclass(frozen=True, slots=True)
class Model:
    """The model as the engine is asked for it; lengths in tokens, None is the engine's default."""

    source: str
    served_name: str
    format: str | None
    revision: str | None
    context_length: int | None
    max_sequences: int | None
    kv_cache_dtype: str | None
    quantization: str | None
    speculative: Speculative | None
    file: str | None
    gated: bool

    @property
    def folders(self) -> Words:
        """Folders of the nodes that the model, and the draft model, are read from."""
        return tuple(source for source in self._sources if source.startswith("/"))

    @property
    def downloads(self) -> Words:
        """What of the two is in the Hugging Face cache, by its id."""
        return tuple(source for source in self._sources if not source.startswith("/"))

    @property
    def files(self) -> Words:
        """The GGUF files that are read in place of those: of the model, all parts, and the draft's.

        A part is called `NAME-00001-of-00003.gguf`.
        """
        if not self.file:
            return ()
        draft = self.speculative.source if self.speculative else None
        return (*_parts(self.file), *((draft,) if draft else ()))

    @property
    def file_folder(self) -> str:
        """The folder that the GGUF file is in."""
        return str(PurePosixPath(self.file or "").parent)

    @property
    def file_pattern(self) -> str:
        """What the names of the GGUF file's parts have in common, or its own name."""
        return _PART.sub(r"-*-of-\2.gguf", PurePosixPath(self.file or "").name)

    @property
    def repository(self) -> str | None:
        """The Hugging Face id that a GGUF file is from; the catalog knows none of those."""
        return None if self.format or self.source.startswith("/") else self.source

    @property
    def _sources(self) -> Words:
        if self.file:
            return ()
        draft = self.speculative.source if self.speculative else None
        return (self.source, draft) if draft else (self.source,)


def _parts(file: str) -> Words:
    """All files of a model, of which this is the first or the only one."""
    found = _PART.search(file)
    if not found:
        return (file,)
    stem, count = file[: found.start()], found[2]
    return tuple(f"{stem}-{part:05}-of-{count}.gguf" for part in range(1, int(count) + 1))


@dataclass(frozen=True, slots=True)
class Api:
    """Where the engine answers: the address it listens on, and the one that clients use."""

    listen: str
    host: str
    port: int

    @property
    def url(self) -> str:
        """The base address for clients."""
        return f"http://{self.host}:{self.port}"

    @property
    def own_url(self) -> str:
        """The base address for programs on the head itself."""
        host = "127.0.0.1" if self.listen == "0.0.0.0" else self.listen
        return f"http://{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether only programs on the head itself reach it."""
        return IPv4Address(self.listen).is_loopback


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine with all its choices made.

    `key` names the secret with the API's key, None where the site has none.
    """

    name: str
    title: str
    version: str
    image: str
    nccl: str | None
    launcher: str
    api: Api
    ports: Mapping[str, int]
    parallel: Parallel
    memory_utilization: float
    key: str | None
    uses_nccl: bool
    secrets: Words

    @property
    def rendezvous(self) -> int | None:
        """The port of the head at which ranks meet, open for as long as rank 0 lives."""
        return self.ports.get("master") or self.ports.get("dist_init")

    @property
    def is_slurm_job(self) -> bool:
        """Whether Slurm starts the containers, so that no unit of systemd does."""
        return self.launcher == "slurm"

    @property
    def squashfs(self) -> str:
        """Where nodes keep the image for pyxis."""
        return f"/var/lib/sparkgen/{self.name}-{self.version}.sqsh"

    @property
    def is_pinned(self) -> bool:
        """Whether the image is named by its digest, which cannot move."""
        return "@" in self.image

    @property
    def is_built_here(self) -> bool:
        """Whether no registry is known to have the image: it is built on a node, and copied."""
        return "/" not in self.image


@dataclass(frozen=True, slots=True)
class WebUi:
    """The chat page on the head: where it listens, and the service's image."""

    image: str
    listen: str
    port: int

    @property
    def url(self) -> str:
        """Where people open it."""
        return f"http://{self.listen}:{self.port}"


@dataclass(frozen=True, slots=True)
class Guard:
    """What of a node's memory must be left: below it the engine is killed."""

    floor_gib: int

    @property
    def floor_kib(self) -> int:
        """The floor in the unit of /proc/meminfo."""
        return self.floor_gib << 20


@dataclass(frozen=True, slots=True)
class Monitoring:
    """The exporters of each node: their images, and the ports that they listen on."""

    node_image: str
    node_port: int
    gpu_image: str
    gpu_port: int


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """What a healthy fabric gives: GB/s of NCCL bus bandwidth, Gb/s of one cable."""

    nccl_gb_s: float
    link_gbit_s: int


@dataclass(frozen=True, slots=True)
class Site:
    """A whole site; nodes by rank, cables by number.

    `test_nccl` is the NCCL release, 2.30.7-1, that the bandwidth test is built with on the nodes.
    """

    name: str
    file: str
    description: str
    kind: Kind
    mtu: int
    renderer: str | None
    subnets: tuple[IPv4Network, ...]
    cables: tuple[Cable, ...]
    nodes: tuple[Node, ...]
    model: Model
    engine: Engine
    services: Words
    web_ui: WebUi | None
    memory: Fit | None
    guard: Guard | None
    monitoring: Monitoring | None
    bandwidth: Bandwidth
    times: Times
    test_nccl: str

    @property
    def head(self) -> Node:
        """Rank 0."""
        return self.nodes[0]

    @property
    def workers(self) -> tuple[Node, ...]:
        """All ranks above 0."""
        return self.nodes[1:]

    @property
    def start_order(self) -> tuple[Node, ...]:
        """Workers before the head, which waits for them the shortest time that way."""
        return (*self.workers, self.head)

    @property
    def hubs(self) -> dict[str, Words]:
        """Names of nodes by the folder that their engine reads models from, in order of ranks."""
        folders = dict.fromkeys(node.env["HF_HUB_CACHE"] for node in self.nodes)
        return {
            folder: tuple(node.name for node in self.nodes if node.env["HF_HUB_CACHE"] == folder)
            for folder in folders
        }

    @staticmethod
    def is_roots(folder: str) -> bool:
        """Whether root must make a folder for who downloads: it lies in nobody's home."""
        return not folder.startswith(("/home/", "/root/"))

    def listeners(self, node: Node) -> dict[str, int]:
        """Ports that programs of the bundle take on a node, by name.

        llama.cpp's workers listen for the head, MPI's too; all else is on the head alone.
        """
        ports = self.engine.ports.items()
        if not node.is_head:
            return {name: port for name, port in ports if name in _OF_WORKERS}
        own = {name: port for name, port in ports if name not in _OF_WORKERS}
        page = {"web_ui": self.web_ui.port} if self.web_ui else {}
        return {"api": self.engine.api.port} | own | page

    @property
    def has_fabric(self) -> bool:
        """Whether nodes are joined by QSFP cables."""
        return bool(self.cables)

    @property
    def both_halves(self) -> bool:
        """Whether every cable carries both halves: one alone gives about 100 Gb/s."""
        return all(len(cable.subnets) == 2 for cable in self.cables)


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank of a serving group; `head` is the address at which the others find rank 0.

    `links` are those of all workers, in the order of their ranks; `visible_gib` is what the GPU
    sees, in GiB.
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
