"""A site file as typed records with the defaults filled in, and nothing derived yet.

A section that the schema found fault with is None, so that a rule which needs it is not judged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network
from typing import Any, Literal

from generator.diagnostics import Finding, KeyPath, nearest
from generator.hardware import RJ45, VISIBLE_GIB

Kind = Literal["single", "direct", "ring", "switch"]
Plane = Literal["management", "fabric"]

FIRST_HOST = 11
SUBNET_POOL = "10.100.0.0/16"
MTU = {"single": 1500, "direct": 9000, "ring": 9000, "switch": 1500}
MEMORY_UTILIZATION = 0.8

Scalar = bool | str
Argument = Scalar | list[Any] | dict[str, Any]
Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Identity:
    """The name of the site and what it is for."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Management:
    """A node's place on the network that people use; sparkgen never configures it."""

    interface: str
    address: IPv4Interface
    gateway: str | None


@dataclass(frozen=True, slots=True)
class DeclaredNode:
    """One node; `host` is its host number on every fabric subnet, `visible_gib` in GiB."""

    index: int
    name: str
    management: Management | None
    host: int
    memory_gb: int
    visible_gib: float
    user: str

    @property
    def path(self) -> KeyPath:
        """Where the node stands in the site file."""
        return ("nodes", self.index)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a cable as written, `NAME:PORT`: a node's port, or one of a switch."""

    name: str
    port: str
    path: KeyPath

    def __str__(self) -> str:
        return f"{self.name}:{self.port}"


@dataclass(frozen=True, slots=True)
class DeclaredCable:
    """One cable as written; `length_m` in meters."""

    index: int
    endpoints: tuple[Endpoint, Endpoint]
    subnets: tuple[IPv4Network, ...]
    kind: str | None
    length_m: float | None
    label: str | None

    @property
    def path(self) -> KeyPath:
        """Where the cable stands in the site file."""
        return ("cabling", self.index)


@dataclass(frozen=True, slots=True)
class Topology:
    """How the nodes are joined; `control_plane` is None where the kind decides."""

    kind: Kind
    subnet_pool: IPv4Network
    mtu: int
    control_plane: Plane | None
    renderer: str | None
    halves: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Speculative:
    """Speculative decoding: `tokens` drafted at a time, by a `source` or the model's own head.

    `weight_gb` is the size of the source's checkpoint in GB.
    """

    method: Literal["eagle3", "draft", "mtp"]
    source: str | None
    tokens: int
    weight_gb: float | None = None


@dataclass(frozen=True, slots=True)
class DeclaredModel:
    """The model section; a `name` of the catalog or a `source` of its own."""

    name: str | None
    source: str | None
    architecture: Mapping[str, Any] | None
    revision: str | None
    served_name: str | None
    context_length: int | None
    max_sequences: int | None
    kv_cache_dtype: str | None
    quantization: str | None
    speculative: Speculative | None
    cache: str | None
    file: str | None


@dataclass(frozen=True, slots=True)
class Parallel:
    """How the model is split over ranks; `expert` adds nothing to the product."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: bool = False

    @property
    def ranks(self) -> int:
        """Ranks that the split needs: one GPU, so one node, each."""
        return self.tensor * self.pipeline * self.data


@dataclass(frozen=True, slots=True)
class DeclaredEngine:
    """The engine section; None where the engine's own default holds."""

    name: str
    version: str
    image: str
    nccl: str | None
    nccl_patched: bool
    launcher: str | None
    port: int | None
    ports: Mapping[str, int]
    bind: str | None
    parallel: Parallel
    memory_utilization: float
    args: Mapping[str, Argument]
    env: Mapping[str, str]
    secrets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Waiver:
    """A warning that is accepted."""

    rule: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """The sections of a site file; None for one that the schema found fault with.

    `services` has those that are asked for, with the settings of each.
    """

    identity: Identity | None
    nodes: tuple[DeclaredNode, ...] | None
    cabling: tuple[DeclaredCable, ...] | None
    topology: Topology | None
    model: DeclaredModel | None
    engine: DeclaredEngine | None
    services: Mapping[str, Settings] | None
    waivers: tuple[Waiver, ...] | None


_OPTIONAL = {"defaults", "cabling", "services", "waivers", "user", "description"}


def declare(data: Mapping[str, Any], findings: Iterable[Finding]) -> Declaration:
    """The typed records of checked data; `findings` are what reading and the schema said of it."""
    broken = _broken(findings)

    def sound(*keys: str) -> bool:
        return all(key not in broken and (key in data or key in _OPTIONAL) for key in keys)

    return Declaration(
        identity=_identity(data) if sound("name", "description") else None,
        nodes=_nodes(data) if sound("nodes", "defaults", "user") else None,
        cabling=_cabling(data.get("cabling", ())) if sound("cabling") else None,
        topology=_topology(data["topology"]) if sound("topology") else None,
        model=_model(data["model"]) if sound("model") else None,
        engine=_engine(data["engine"]) if sound("engine") else None,
        services=_services(data.get("services", {})) if sound("services") else None,
        waivers=tuple(Waiver(**w) for w in data.get("waivers", ())) if sound("waivers") else None,
    )


def _broken(findings: Iterable[Finding]) -> set[str | int | None]:
    """The sections that something is wrong with; one under a misspelt name is not a missing one."""
    paths = [finding.path for finding in findings if finding.path]
    misspelt = (str(path[0]) for path in paths if len(path) == 1)
    return {path[0] for path in paths} | {nearest(word, _OPTIONAL) for word in misspelt}


def _services(items: Mapping[str, Any]) -> dict[str, Settings]:
    """The services that are asked for, each with what is set of it."""
    return {name: own if isinstance(own, dict) else {} for name, own in items.items() if own}


def _identity(data: Mapping[str, Any]) -> Identity:
    return Identity(data["name"], data.get("description", ""))


def _nodes(data: Mapping[str, Any]) -> tuple[DeclaredNode, ...]:
    defaults = {"user": data.get("user", "nvidia")} | data.get("defaults", {})
    return tuple(_node(i, item, defaults) for i, item in enumerate(data["nodes"]))


def _node(index: int, own: Mapping[str, Any], defaults: Mapping[str, Any]) -> DeclaredNode:
    item = {**defaults, **own}
    management = None
    if "management" in own:
        merged = {**defaults.get("management", {}), **own["management"]}
        management = Management(
            merged.get("interface", RJ45), IPv4Interface(merged["address"]), merged.get("gateway")
        )
    memory = item.get("memory_gb", 128)
    return DeclaredNode(
        index=index,
        name=item["name"],
        management=management,
        host=item.get("host", FIRST_HOST + index),
        memory_gb=memory,
        visible_gib=item.get("visible_gib", VISIBLE_GIB[memory]),
        user=item["user"],
    )


def _endpoint(text: str, path: KeyPath) -> Endpoint:
    name, _, port = text.partition(":")
    return Endpoint(name, port, path)


def _cabling(items: Iterable[Mapping[str, Any]]) -> tuple[DeclaredCable, ...]:
    return tuple(_cable(i, item) for i, item in enumerate(items))


def _cable(index: int, item: Mapping[str, Any]) -> DeclaredCable:
    first, second = (
        _endpoint(text, ("cabling", index, "endpoints", end))
        for end, text in enumerate(item["endpoints"])
    )
    return DeclaredCable(
        index=index,
        endpoints=(first, second),
        subnets=tuple(IPv4Network(text) for text in item.get("subnets", ())),
        kind=item.get("kind"),
        length_m=item.get("length_m"),
        label=item.get("label"),
    )


def _topology(item: Mapping[str, Any]) -> Topology:
    return Topology(
        kind=item["kind"],
        subnet_pool=IPv4Network(item.get("subnet_pool", SUBNET_POOL)),
        mtu=item.get("mtu", MTU[item["kind"]]),
        control_plane=item.get("control_plane"),
        renderer=item.get("renderer"),
        halves=(0,) if item.get("halves") == "first" else (0, 1),
    )


def _model(item: Mapping[str, Any]) -> DeclaredModel:
    values = {key: item.get(key) for key in DeclaredModel.__dataclass_fields__}
    if drafts := values["speculative"]:
        values["speculative"] = Speculative(
            drafts["method"], drafts.get("source"), drafts["tokens"], drafts.get("weight_gb")
        )
    return DeclaredModel(**values)


def _engine(item: Mapping[str, Any]) -> DeclaredEngine:
    nccl = item.get("nccl")
    patched = isinstance(nccl, dict) and nccl.get("patched", False)
    return DeclaredEngine(
        name=item["name"],
        version=item["version"],
        image=item["image"],
        nccl=nccl["version"] if isinstance(nccl, dict) else nccl,
        nccl_patched=patched,
        launcher=item.get("launcher"),
        port=item.get("port"),
        ports=item.get("ports", {}),
        bind=item.get("bind"),
        parallel=Parallel(**item.get("parallel", {})),
        memory_utilization=item.get("memory_utilization", MEMORY_UTILIZATION),
        args=item.get("args", {}),
        env=item.get("env", {}),
        secrets=tuple(item.get("secrets", ())),
    )
