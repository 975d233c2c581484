"""A site file as typed records with defaults filled in, but nothing derived yet.

A section in which the schema found errors is None, and rules that need it are skipped.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from ipaddress import IPv4Interface, IPv4Network
from shlex import split
from typing import Any, Literal, TypeVar

from generator.catalogs.speculation import canonical
from generator.diagnostics import Add, Finding, KeyPath, Rename, Severity, nearest
from generator.grouping import grouped
from generator.hardware import HALVES, VISIBLE_GIB
from generator.records import record, replace
from generator.settings.environment import Environment, OfNode, Written
from generator.settings.flags import EngineSettings
from generator.sitefile.automatic import Automatic
from generator.sitefile.defaults import default, defaults
from generator.sitefile.sections import ALTERNATIVES, GROUPS

Plane = Literal["management", "fabric"]

FIRST_HOST = 11

Settings = Mapping[str, Any]
_Made = TypeVar("_Made")


@record
class Identity:
    """The name of the site, its purpose, and the required sparkgen version: `>=0.3`, or empty."""

    name: str
    description: str
    requires: str


@record
class Management:
    """A node's address on the network for users; sparkgen never configures it."""

    interface: str
    address: IPv4Interface
    gateway: str | None


@record
class OtherProgram:
    """A unit that shares a node's memory, starts `before` or `after` the engine; its OOM score."""

    name: str
    gib: float
    starts: str = "before"
    oom_score: int | None = None


@record
class DeclaredNode:
    """One node; `host` is its host number in every fabric subnet, `visible_gib` in GiB.

    `halves` are those of its ports that are used, None if the topology decides. `other` is what
    else runs on it.

    `measured` is true if the site file states the visible memory; otherwise the lower of two known
    counts is assumed.
    """

    index: int
    name: str
    management: Management | None
    host: int
    memory_gb: int
    visible_gib: float
    user: str
    os: str | None = None
    halves: tuple[int, ...] | None = None
    measured: bool = True
    env: Written = Written()
    model_path: str | None = None
    other: tuple[OtherProgram, ...] = ()

    @property
    def other_gib(self) -> float:
        """The memory that everything else on it holds."""
        return sum(each.gib for each in self.other)

    @property
    def path(self) -> KeyPath:
        """The node's place in the site file."""
        return ("nodes", self.index)


@record
class Endpoint:
    """One end of a cable as written, `NAME:PORT`: the port of a node or a switch."""

    name: str
    port: str
    path: KeyPath

    def __str__(self) -> str:
        return f"{self.name}:{self.port}"


@record
class DeclaredCable:
    """One cable as written; `length_m` in meters.

    `addresses` lists, for each half, the addresses of the ends that are nodes; `subnets` then has
    their subnets.
    """

    index: int
    endpoints: tuple[Endpoint, Endpoint]
    subnets: tuple[IPv4Network, ...]
    addresses: tuple[tuple[IPv4Interface, ...], ...]
    kind: str | None
    length_m: float | None
    label: str | None
    halves: tuple[int, ...] | None = None

    @property
    def ends(self) -> tuple[str, str]:
        """The names at both ends."""
        first, second = self.endpoints
        return first.name, second.name

    @property
    def path(self) -> KeyPath:
        """The cable's place in the site file."""
        return ("cabling", self.index)

    @property
    def subnets_path(self) -> KeyPath:
        """The place of its subnets, if they are given."""
        return (*self.path, "addresses" if self.addresses else "subnets")


@record
class DeclaredSwitch:
    """A switch that cables connect to: its model, and the release of its operating system."""

    name: str
    model: str
    os: str | None

    @property
    def path(self) -> KeyPath:
        """The switch's place in the site file."""
        return ("topology", "switches", self.name)


@record
class Topology:
    """How the nodes are connected; `mtu` and `control_plane` are None if the kind decides.

    If the kind is not written, which is the case unless `is_stated`, it is what the cables form.
    """

    kind: str
    subnet_pool: IPv4Network
    mtu: int | None
    control_plane: Plane | None
    renderer: str | None
    halves: tuple[int, ...]
    rdma_halves: tuple[int, ...]
    uplinks: tuple[Endpoint, ...]
    routes: bool
    switches: tuple[DeclaredSwitch, ...]
    is_stated: bool = True

    def halves_at(self, cable: DeclaredCable, nodes: Iterable[DeclaredNode]) -> tuple[int, ...]:
        """The halves that are used at the ends of a cable: those that all of them have."""
        own = (self.halves, cable.halves, *(node.halves for node in nodes))
        return min((each for each in own if each is not None), key=len)


@record
class Speculative:
    """Speculative decoding: `tokens` are drafted at a time, by a `source` or without one.

    `topk` and `steps` describe a tree of drafts; `config` has the engine's other settings.
    `weight_gb` is the size of the source's checkpoint in GB, and `kv_elements_per_token` how much
    it caches.
    """

    method: str
    source: str | None
    tokens: int | None
    weight_gb: float | None = None
    topk: int | None = None
    steps: int | None = None
    config: Mapping[str, Any] = {}
    kv_elements_per_token: int | None = None

    @property
    def checkpoint(self) -> str | None:
        """The draft model; empty for the dotted path of a class, which comes with the image."""
        return self.source if self.source and "/" in self.source else None


@record
class KvOffload:
    """Where each node keeps KV cache blocks on disk, the size in GiB, and what moves them there."""

    path: str
    gib: int
    buffer_gib: int
    connector: str


@record
class DeclaredModel:
    """The model section: a `name` of the catalog, or a `source`.

    A source is `like` a model of the catalog, or has an `architecture`. `kv_cache_gib` is in
    GiB. `tables` says whether tables beside the layers are in memory or on disk. `automatic` names
    what is to be determined of context length and number of sequences. `correction_gib` is how much
    the measured reserve exceeds the computed one, None if it was not measured. `others` are the
    keys that only a flag of the engine gets.
    """

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
    aliases: tuple[str, ...] = ()
    like: str | None = None
    weight_gb: float | None = None
    format: str | None = None
    kv_cache_gib: float | None = None
    tables: str | None = None
    kv_offload: KvOffload | None = None
    automatic: tuple[str, ...] = ()
    correction_gib: float | None = None
    others: Mapping[str, Any] = {}

    @property
    def path(self) -> KeyPath:
        """The key that says which model it is."""
        return ("model", "name" if self.name else "source")


@record
class Parallel:
    """How the model is split over ranks; `expert` does not multiply their number.

    Experts are spread over `experts_over` ranks, if that is not all that share a layer.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: bool = False
    experts_over: int | None = None

    @property
    def ranks(self) -> int:
        """The number of ranks, each with a GPU and so a node of its own."""
        return self.tensor * self.pipeline * self.data


@record
class OwnBuild:
    """What only a custom build has: flags without their dashes, variables, parsers, features."""

    flags: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    parsers: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()

    def has_flag(self, name: str) -> bool:
        """Whether it has the flag, also if a dotted name is a key of the flag's JSON."""
        spelled = (name.replace("_", "-"), name.partition(".")[0].replace("_", "-"))
        return any(flag.replace("_", "-") in spelled for flag in self.flags)


@record
class DerivedImage:
    """An image that is built on a node; `copies` are pairs of a source and its destination."""

    base: str
    copies: tuple[tuple[str, str], ...] = ()
    mods: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()


@record
class DeclaredContainer:
    """What the container gets beyond what is derived; sizes in GiB, None if not written."""

    memory_gib: int | None = None
    cpus: str | None = None
    shm_gib: int | None = None
    ulimits: Mapping[str, int] = {}
    devices: tuple[str, ...] = ()
    hardened: bool = False


# Where the files that a bundle carries are on a node.
FILES = "/opt/sparkgen/files"


@record
class DeclaredFile:
    """A file or a folder that the engine reads.

    It has either `source`, a path beside the site file, or `path`, one on the nodes. `nodes` is
    empty if all nodes have it. The engine may change it if it is `writable`.
    """

    index: int
    source: str | None
    path: str | None = None
    target: str | None = None
    nodes: tuple[str, ...] = ()
    sha256: str | None = None
    writable: bool = False

    @property
    def place(self) -> str:
        """Its path on a node."""
        return self.path or f"{FILES}/{(self.source or '').removeprefix('files/')}"

    @property
    def inside(self) -> str:
        """Its path in the container."""
        return self.target or self.place

    def is_on(self, node: str) -> bool:
        """Whether a node has it."""
        return not self.nodes or node in self.nodes


@record
class DeclaredEngine:
    """The engine section; None stands for the engine's own default.

    `settings` are its flags, and `environment` the variables that each of its nodes gets.
    """

    name: str
    version: str
    image: str
    venv: str | None
    nccl: str | None
    nccl_patched: bool
    launcher: str | None
    port: int | None
    ports: Mapping[str, int]
    bind: str | None
    parallel: Parallel
    memory_utilization: float
    settings: EngineSettings
    environment: Environment
    secrets: tuple[str, ...] = ()
    own: OwnBuild = OwnBuild()
    files: tuple[DeclaredFile, ...] = ()
    container: DeclaredContainer = DeclaredContainer()
    derived: DerivedImage | None = None
    prepare: str | None = None

    def on(self, nodes: Iterable[DeclaredNode]) -> "DeclaredEngine":
        """The engine on these nodes, with the variables that each has for itself."""
        of_nodes = tuple(OfNode(node.name, node.path, node.env) for node in nodes)
        return replace(self, environment=replace(self.environment, of_nodes=of_nodes))

    def has_all(self, flags: Sequence[str]) -> bool:
        """Whether it gets all of these flags, and there are any."""
        return bool(flags) and all(flag in self.settings for flag in flags)

    @property
    def sources(self) -> tuple[str, ...]:
        """The paths that it names beside the site file."""
        own = [file.source for file in self.files if file.source]
        own += [self.prepare] if self.prepare else []
        if image := self.derived:
            own += [*(source for source, _ in image.copies), *image.mods]
        return tuple(dict.fromkeys(own))

    @property
    def given_files(self) -> tuple[DeclaredFile, ...]:
        """Its files, including the script that prepares its container."""
        if not self.prepare:
            return self.files
        return (*self.files, DeclaredFile(len(self.files), self.prepare))


@record
class DeclaredGroup:
    """Nodes that serve a model together, by name in rank order.

    If several take turns on the same nodes, each is such a group: `slot` is the name of the group
    that owns the nodes, and `alternatives` are the names of the others. One of them runs, the one
    that `is_active`.

    `source` is where its model and engine are written: in the group itself, at its `path`, or in
    the one that `same_as` names; None if there is no such group. `index` is that of its entry.
    """

    index: int
    name: str
    nodes: tuple[str, ...]
    same_as: str | None
    source: KeyPath | None
    model: DeclaredModel | None
    engine: DeclaredEngine | None
    path: KeyPath
    slot: str
    alternatives: tuple[str, ...]
    is_active: bool

    @property
    def entry(self) -> KeyPath:
        """The place of the entry that lists its nodes."""
        return (GROUPS, self.index)

    @property
    def written(self) -> KeyPath:
        """The place that a message about its model and engine belongs to."""
        return self.path if self.source is None else self.source

    @property
    def is_alternative(self) -> bool:
        """Whether it is an alternative of the group that owns its nodes."""
        return len(self.path) > 2

    @property
    def is_own(self) -> bool:
        """Whether its model and engine are written in the group itself."""
        return self.source == self.path

    def runs_beside(self, other: "DeclaredGroup") -> bool:
        """Whether both can run on a node at the same time."""
        return other is not self and other.name not in self.alternatives


@record
class DeclaredJob:
    """A program that people start on its nodes, whose names are empty for all nodes.

    Neither an `image` nor a `venv` means the node itself. The engines of the groups in `stops` end
    while it runs; None stands for those on its nodes.
    """

    index: int
    name: str
    launcher: str
    command: tuple[str, ...]
    stops: tuple[str, ...] | None
    nodes: tuple[str, ...] = ()
    image: str = ""
    venv: str = ""
    directory: str = ""
    env: Mapping[str, str] = {}
    files: tuple[DeclaredFile, ...] = ()

    @property
    def path(self) -> KeyPath:
        """The job's place in the site file."""
        return ("jobs", self.index)


@record
class Waiver:
    """A warning that is accepted at these places; they may be patterns."""

    rule: str
    paths: tuple[str, ...]
    reason: str
    is_list: bool


@record
class Access:
    """How clients reach the proxy and the chat page; the name of that node, if it has one in DNS.

    `certificate` and `key` are files on that node, empty if nothing is encrypted. `has_authority`:
    they are the site's own. `redirects`: requests that are not encrypted are sent on to https.
    """

    name: str = ""
    certificate: str = ""
    key: str = ""
    has_authority: bool = False
    redirects: bool = False

    @property
    def scheme(self) -> str:
        """The scheme of URLs."""
        return "https" if self.certificate else "http"


# Where a certificate of the site's own authority lies.
_OWN_CERTIFICATE, _OWN_KEY = "/etc/sparkgen/tls/certificate.pem", "/etc/sparkgen/tls/key.pem"


@record
class Declaration:
    """The sections of a site file; one in which the schema found errors is None.

    `services` has the requested services, with the settings of each. `calibration` is the path of a
    file of measurements, empty if there is none. A site that does not say what it `serves` is a
    network; its model, its engine and its groups are None.
    """

    identity: Identity | None
    nodes: tuple[DeclaredNode, ...] | None
    cabling: tuple[DeclaredCable, ...] | None
    topology: Topology | None
    model: DeclaredModel | None
    engine: DeclaredEngine | None
    services: Mapping[str, Settings] | None
    waivers: tuple[Waiver, ...] | None
    calibration: str = ""
    groups: tuple[DeclaredGroup, ...] | None = None
    serves: bool = True
    jobs: tuple[DeclaredJob, ...] | None = ()
    access: Access | None = Access()

    def of_group(self, group: DeclaredGroup) -> "Declaration":
        """The sections as the group sees them; nodes and cables keep their places."""
        by_name = self._nodes_by_name
        members = tuple(by_name[name] for name in group.nodes if name in by_name)
        is_whole = self.nodes is not None and len({node.name for node in members}) == len(
            group.nodes
        )
        near = {c.index: c for name in group.nodes for c in self._cables_by_end.get(name, ())}
        cables = (
            c for _, c in sorted(near.items()) if {e.name for e in c.endpoints} <= {*group.nodes}
        )
        return replace(
            self,
            nodes=members if is_whole else None,
            cabling=None if self.cabling is None else tuple(cables),
            model=group.model,
            engine=group.engine.on(members) if group.engine and is_whole else group.engine,
            groups=None,
            jobs=(),
        )

    @cached_property
    def _nodes_by_name(self) -> Mapping[str, DeclaredNode]:
        return {node.name: node for node in self.nodes or ()}

    @cached_property
    def _cables_by_end(self) -> Mapping[str, Sequence[DeclaredCable]]:
        return grouped((name, cable) for cable in self.cabling or () for name in cable.ends)


_OPTIONAL = {
    *("defaults", "cabling", "topology", "jobs", "fit", "services", "access", "waivers"),
    *("user", "description", "requires"),
}


_SERVED = ("model", "engine", GROUPS)


def declare(
    data: Mapping[str, Any], findings: Iterable[Finding], faulty: Iterable[str] = ()
) -> Declaration:
    """The typed records of checked data; `findings` are those of reading and of the schema.

    Sections that are `faulty` have no records, nor have those that a finding is about.
    """
    invalid = {*_invalid(findings), *faulty}

    def valid(*keys: str) -> bool:
        return all(key not in invalid and (key in data or key in _OPTIONAL) for key in keys)

    nodes = _nodes(data) if valid("nodes", "defaults", "user") else None
    engine = _engine(data["engine"]) if valid("engine") else None
    topology = _topology(data.get("topology", {})) if valid("topology") else None
    if topology and not topology.is_stated and GROUPS in invalid:
        # What the cables form depends on whether there are groups.
        topology = None
    return Declaration(
        identity=Identity(data["name"], data.get("description", ""), data.get("requires", ""))
        if valid("name", "description", "requires")
        else None,
        nodes=nodes,
        cabling=_each(_cable, data.get("cabling", ())) if valid("cabling") else None,
        topology=topology,
        model=_model(data["model"]) if valid("model") else None,
        engine=engine.on(nodes) if engine and nodes else engine,
        services=_services(data.get("services", {})) if valid("services") else None,
        waivers=tuple(map(_waiver, data.get("waivers", ()))) if valid("waivers") else None,
        calibration=data.get("fit", {}).get("calibration", "") if valid("fit") else "",
        groups=_groups(data[GROUPS]) if valid(GROUPS) and data[GROUPS] else None,
        serves=any(key in invalid or data.get(key) for key in _SERVED),
        jobs=_each(_job, data.get("jobs", ())) if valid("jobs") else None,
        access=_access(data.get("access", {})) if valid("access") else None,
    )


def serving(
    data: Mapping[str, Any],
) -> tuple[tuple[DeclaredNode, ...], DeclaredModel, DeclaredEngine]:
    """The nodes, model and engine of data that is known to have all three."""
    nodes = _nodes(data)
    return nodes, _model(data["model"]), _engine(data["engine"]).on(nodes)


def _invalid(findings: Iterable[Finding]) -> set[str | int | None]:
    """The sections that contain an error, or lack a key that is written in another place.

    A section under a misspelled name, or under another section, is not missing.
    """
    found = [f for f in findings if f.path and f.severity is Severity.ERROR]
    edits = [edit for f in found for proposal in f.proposals for edit in proposal]
    paths = [f.path for f in found] + [edit.path for edit in edits if isinstance(edit, Add)]
    paths += [(*edit.path[:-1], edit.key) for edit in edits if isinstance(edit, Rename)]
    known = [*_OPTIONAL, *_SERVED]
    paths += [f.path[-1:] for f in found if f.rule == "SG101" and f.path[-1] in known]
    misspelt = (str(path[0]) for path in paths if len(path) == 1)
    return {path[0] for path in paths} | {nearest(word.lower(), known) for word in misspelt}


def _waiver(item: Mapping[str, Any]) -> Waiver:
    paths = item["path"]
    is_list = isinstance(paths, list)
    return Waiver(item["rule"], tuple(paths) if is_list else (paths,), item["reason"], is_list)


def _services(items: Mapping[str, Any]) -> dict[str, Settings]:
    """The requested services and their settings; a gateway reaches the engine through the proxy."""
    found: dict[str, Settings] = {
        name: own if isinstance(own, dict) else {} for name, own in items.items() if own
    }
    return found | ({"proxy": found.get("proxy", {})} if "gateway" in found else {})


def _access(item: Mapping[str, Any]) -> Access:
    tls = item.get("tls", {})
    own = "authority" in tls
    return Access(
        name=item.get("name", ""),
        certificate=_OWN_CERTIFICATE if own else tls.get("certificate", ""),
        key=_OWN_KEY if own else tls.get("key", ""),
        has_authority=own,
        redirects=item.get("clear") == "redirect",
    )


def _made(kind: Callable[..., _Made], item: Mapping[str, Any], /, **own: Any) -> _Made:
    """A record of what is written under the names of its fields, and of its own values.

    A key that is not written has the field's default, and None if it has none.
    """
    fields: Any = kind
    absent = dict.fromkeys(fields.__match_args__) | fields._defaults
    written = {key: value for key, value in item.items() if key in absent}
    lists = {key: tuple(value) for key, value in written.items() if isinstance(value, list)}
    return kind(**{**absent, **written, **lists, **own})


def _each(
    make: Callable[[int, Mapping[str, Any]], _Made], items: Iterable[Mapping[str, Any]]
) -> tuple[_Made, ...]:
    """The records of a list's entries, each with its place there."""
    return tuple(make(index, item) for index, item in enumerate(items))


def _nodes(data: Mapping[str, Any]) -> tuple[DeclaredNode, ...]:
    defaults = {"user": data.get("user", default("user"))} | data.get("defaults", {})
    return tuple(_node(i, item, defaults) for i, item in enumerate(data["nodes"]))


def _node(index: int, own: Mapping[str, Any], defaults: Mapping[str, Any]) -> DeclaredNode:
    item = {**defaults, **own}
    management = None
    if "management" in own:
        merged = {**defaults.get("management", {}), **own["management"]}
        management = Management(
            merged.get("interface", default("nodes.management.interface")),
            IPv4Interface(merged["address"]),
            merged.get("gateway"),
        )
    memory = item.get("memory_gb", default("nodes.memory_gb"))
    return _made(
        DeclaredNode,
        item,
        index=index,
        management=management,
        host=item.get("host", FIRST_HOST + index),
        memory_gb=memory,
        visible_gib=item.get("visible_gib", VISIBLE_GIB[memory]),
        halves=_halves(item.get("halves")),
        measured="visible_gib" in item,
        env=Written(item.get("env", {})),
        other=tuple(OtherProgram(**each) for each in item.get("other", ())),
    )


def _endpoint(text: str, path: KeyPath) -> Endpoint:
    name, _, port = text.partition(":")
    return Endpoint(name, port, path)


def _cable(index: int, item: Mapping[str, Any]) -> DeclaredCable:
    first, second = (
        _endpoint(text, ("cabling", index, "endpoints", end))
        for end, text in enumerate(item["endpoints"])
    )
    addresses = tuple(
        tuple(IPv4Interface(text) for text in half) for half in item.get("addresses", ())
    )
    subnets = tuple(IPv4Network(text) for text in item.get("subnets", ()))
    return _made(
        DeclaredCable,
        item,
        index=index,
        endpoints=(first, second),
        subnets=tuple(half[0].network for half in addresses) or subnets,
        addresses=addresses,
        halves=_halves(item.get("halves")),
    )


def _topology(item: Mapping[str, Any]) -> Topology:
    return _made(
        Topology,
        item,
        kind=item.get("kind", ""),
        subnet_pool=IPv4Network(item.get("subnet_pool", default("topology.subnet_pool"))),
        halves=_halves(item.get("halves")) or HALVES,
        rdma_halves=_halves(item.get("rdma_halves")) or HALVES,
        uplinks=tuple(
            _endpoint(text, ("topology", "uplinks", index))
            for index, text in enumerate(item.get("uplinks", ()))
        ),
        routes=item.get("routes", default("topology.routes")),
        switches=tuple(
            DeclaredSwitch(name, own["model"], own.get("os"))
            for name, own in item.get("switches", {}).items()
        ),
        is_stated="kind" in item,
    )


def _halves(word: str | None) -> tuple[int, ...] | None:
    return HALVES[:1] if word == "first" else HALVES if word else None


def _groups(items: Sequence[Mapping[str, Any]]) -> tuple[DeclaredGroup, ...]:
    """Each group, followed by its alternatives."""
    places = {path: item for index, item in enumerate(items) for path, item in _turns(index, item)}
    models = {path: _model(item["model"]) for path, item in places.items() if "model" in item}
    engines = {path: _engine(item["engine"]) for path, item in places.items() if "engine" in item}
    # If two have the same name, which a rule reports, the first is used.
    own = reversed([(path, item) for path, item in places.items() if "same_as" not in item])
    written = {item["name"]: path for path, item in own}
    found = []
    for path, item in places.items():
        source = written.get(item["same_as"]) if "same_as" in item else path
        entry = items[int(path[1])]
        names = [each["name"] for _, each in _turns(int(path[1]), entry)]
        found.append(
            DeclaredGroup(
                index=int(path[1]),
                name=item["name"],
                nodes=tuple(entry["nodes"]),
                same_as=item.get("same_as"),
                source=source,
                model=models.get(source) if source else None,
                engine=engines.get(source) if source else None,
                path=path,
                slot=entry["name"],
                alternatives=tuple(name for name in names if name != item["name"]),
                is_active=item["name"] == entry.get("active", entry["name"]),
            )
        )
    return tuple(found)


def _turns(index: int, item: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    """A group and its alternatives, each with its place."""
    yield (GROUPS, index), item
    for other, each in enumerate(item.get(ALTERNATIVES, ())):
        yield (GROUPS, index, ALTERNATIVES, other), each


def _model(item: Mapping[str, Any]) -> DeclaredModel:
    values: dict[str, Any] = {key: item.get(key) for key in DeclaredModel.__match_args__}
    found = ("context_length", "max_sequences")
    automatic = tuple(key for key in found if isinstance(item.get(key), Automatic))
    values |= {"automatic": automatic, "correction_gib": None} | dict.fromkeys(automatic)
    values["aliases"] = tuple(item.get("aliases", ()))
    values["others"] = {key: value for key, value in item.items() if key not in values}
    if drafts := values["speculative"]:
        own = {key: drafts.get(key) for key in Speculative.__match_args__}
        own |= {"method": canonical(drafts["method"]), "config": drafts.get("config", {})}
        values["speculative"] = Speculative(**own)
    if offload := values["kv_offload"]:
        values["kv_offload"] = KvOffload(**{**defaults("model.kv_offload"), **offload})
    return DeclaredModel(**values)


def _engine(item: Mapping[str, Any]) -> DeclaredEngine:
    nccl, image = item.get("nccl"), item.get("image", "")
    patched = isinstance(nccl, dict) and nccl.get("patched", default("engine.nccl.patched"))
    return _made(
        DeclaredEngine,
        item,
        image=image["name"] if isinstance(image, dict) else image,
        nccl=nccl["version"] if isinstance(nccl, dict) else nccl,
        nccl_patched=patched,
        ports=item.get("ports", {}),
        parallel=_parallel(item.get("parallel", {})),
        memory_utilization=item.get("memory_utilization", default("engine.memory_utilization")),
        settings=EngineSettings(item["name"], item["version"], item.get("args", {})),
        environment=Environment(Written(item.get("env", {}))),
        own=_made(OwnBuild, item.get("own", {})),
        files=_each(_file, item.get("files", ())),
        container=_container(item.get("container", {})),
        derived=_derived(image) if isinstance(image, dict) else None,
    )


def _derived(item: Mapping[str, Any]) -> DerivedImage:
    copies = tuple((file["source"], file["target"]) for file in item.get("files", ()))
    return _made(DerivedImage, item, base=item["from"], copies=copies)


def _container(item: Mapping[str, Any]) -> DeclaredContainer:
    memory, shm = (
        int(item[key].removesuffix("g")) if key in item else None for key in ("memory", "shm")
    )
    return _made(DeclaredContainer, item, memory_gib=memory, shm_gib=shm)


def _job(index: int, item: Mapping[str, Any]) -> DeclaredJob:
    command, stops = item["command"], item.get("stops", default("jobs.stops"))
    return _made(
        DeclaredJob,
        item,
        index=index,
        command=tuple(split(command) if isinstance(command, str) else command),
        files=_each(_file, item.get("files", ())),
        stops=None if stops is True else tuple(stops or ()),
    )


def _file(index: int, item: Mapping[str, Any]) -> DeclaredFile:
    return _made(DeclaredFile, {**defaults("engine.files"), **item}, index=index)


def _parallel(written: Mapping[str, Any]) -> Parallel:
    sizes = {**defaults("engine.parallel"), **written}
    over = None if isinstance(sizes["expert"], bool) else sizes["expert"]
    # Experts on one rank are not spread at all.
    expert = sizes["expert"] is True or (over or 1) > 1
    return _made(Parallel, sizes, expert=expert, experts_over=over)
