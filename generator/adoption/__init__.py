"""Creates a site file from what people already run, with the place of each part in their files."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from generator.adoption import cables, mounts, offload, running, serving
from generator.adoption.cables import Cabling, Edge
from generator.adoption.captures import serves
from generator.adoption.command import Command, find
from generator.adoption.draft import Draft
from generator.adoption.found import REMOVED as REMOVED
from generator.adoption.found import Found, FoundNode, Loss, Variable, Word
from generator.catalogs.commands import version_variables
from generator.catalogs.engines import ENGINE_TRAITS
from generator.derive import environment
from generator.diagnostics import KeyPath
from generator.engines import ENGINES
from generator.fabric.nccl import ROUTED_FROM
from generator.fabric.topologies import TOPOLOGIES
from generator.hardware import FABRIC_HALVES, HALVES, Half
from generator.pipeline import Reading, read_site
from generator.records import record, replace
from generator.sitefile.beside import Beside, nothing_beside

_UNIT = "sparkgen-engine-"
_INTERFACES = re.compile(
    r"(.*_SOCKET_IFNAME|UCX_NET_DEVICES|MN_IF_NAME|OMPI_MCA_btl_tcp_if_include)"
)
_OWN_ADDRESS = re.compile(
    r"(MASTER_ADDR|MASTER_PORT|HOST_IP|NODE_IP|HEAD_IP|RAY_NODE_IP_ADDRESS"
    r"|RAY_OVERRIDE_NODE_IP_ADDRESS|NODE_RANK|RANK|WORLD_SIZE|LOCAL_RANK|NNODES|LOCAL_IP)"
)
# Variables that the system sets in every container, and shells in every process.
_SYSTEM = re.compile(
    r"(PATH|HOME|HOSTNAME|TERM|PWD|SHLVL|OLDPWD|LANG|LC_\w+|LD_LIBRARY_PATH|DEBIAN_FRONTEND|CUDA_VERSION"
    r"|NVIDIA_\w+|SLURM_\w+|NV_\w+|NVARCH|PYTHON\w*|TORCH_CUDA_ARCH_LIST|UV_\w+|GPG_KEY|IMAGE|MODEL"
    r"|HF_HOME|HF_HUB_CACHE|HF_HUB_OFFLINE|TRANSFORMERS_OFFLINE|TRANSFORMERS_CACHE|XDG_CACHE_HOME|HEADLESS|NCCL_VERSION)"
)


@record
class Adoption:
    """A site file created from what was found.

    `origin` finds the place in the user's files of the value at a path; `guesses` are what nobody
    stated.
    """

    draft: Draft
    text: str
    reading: Reading
    found: Found
    command: Command | None
    kind: str

    @property
    def guesses(self) -> tuple[str, ...]:
        """The guesses: what nobody stated."""
        return tuple(self.draft.guesses)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the site file does not contain."""
        return tuple(self.draft.losses)

    def origin(self, path: KeyPath) -> Word | None:
        """The place at which the value at a path was found."""
        return self.draft.origin(path)


def adopt(
    found: Found,
    name: str,
    file: str,
    stated_cables: Sequence[Edge] = (),
    beside: Beside = nothing_beside,
) -> Adoption:
    """A site file named `file` from everything that was found, with the cables the user states.

    `beside` reads the files beside it.
    """
    draft = Draft()
    draft.losses += found.losses
    draft.put(("version",), 1)
    draft.put(("name",), name)
    nodes = _nodes(found)
    several = running.engines(nodes)
    head, kind = (
        _grouped(draft, nodes, several, stated_cables)
        if several
        else _alone(draft, nodes, stated_cables)
    )
    _ordered(draft)
    text = draft.text()
    return Adoption(draft, text, read_site(file, text.encode(), beside), found, head, kind)


def _alone(
    draft: Draft, nodes: list[FoundNode], stated_cables: Sequence[Edge]
) -> tuple[Command | None, str]:
    """Write one engine on all nodes; returns its command, and the kind of topology."""
    commands = {node.name: _command(node) for node in nodes}
    nodes.sort(key=lambda node: _rank(commands[node.name]))
    head = commands[nodes[0].name] or next((c for c in commands.values() if c), None)
    ranks = running.size(head)
    if head is None and all(not node.interfaces for node in nodes):
        # A node with only NCCL settings is one of several.
        ranks = 2 if any(_has_settings(node) for node in nodes) else ranks
    missing = _earlier_ranks(nodes, head)
    nodes[:0] = missing
    variables = {node.name: _variables(node, commands.get(node.name)) for node in nodes}
    mine = variables[nodes[len(missing)].name]
    cabling = cables.Cabling(
        [cables.wired(node) for node in nodes], _named_ports(mine), ranks, stated_cables
    )
    cabling.guessed += [node.name for node in missing]
    _fabric(draft, cabling, _control(nodes[0], mine, head), _uses_first_halves(mine, cabling))
    _engine(draft, draft, cabling, nodes, head, variables)
    _other_engines(draft, nodes, head)
    _left_out(draft, variables)
    return head, cabling.kind


def _earlier_ranks(nodes: Sequence[FoundNode], first: Command | None) -> list[FoundNode]:
    """The nodes before the first known one, according to the rank that it states."""
    rank = first.entry("node-rank") if first else None
    if first is None or rank is None:
        return []
    known = {node.name for node in nodes}
    free = (name for name in (f"spark{n}" for n in count(1)) if name not in known)
    entry = first.entry("master-addr", "dist-init-addr")
    place = entry.place if entry else None
    master = re.match(r"[\d.]+", place.text) if place else None
    found = [FoundNode(next(free)) for _ in range(min(first.rank, running.size(first) - 1))]
    reached = {word.text.partition("/")[0] for n in nodes for word in _management(n)}
    if found and place and master and any(_is_beside(master[0], address) for address in reached):
        found[0] = replace(found[0], management=Word(master[0], place.file, place.span))
    return found


def _management(node: FoundNode) -> Iterator[Word]:
    """The address at which people reach a node."""
    if known := cables.management(node):
        yield known[1]


def _is_beside(one: str, other: str) -> bool:
    """Whether two addresses are in one subnet of the usual size."""
    return one.rpartition(".")[0] == other.rpartition(".")[0]


def _grouped(
    draft: Draft,
    nodes: Sequence[FoundNode],
    several: Sequence[running.Engine],
    stated_cables: Sequence[Edge],
) -> tuple[Command, str]:
    """Write a group for each engine; returns the first one's command, and the kind of topology."""
    groups = [engine.names for engine in several]
    members = {name for names in groups for name in names}
    known = {node.name: node for node in nodes if node.name in members}
    missing = [name for name in sorted(members) if name not in known]
    known |= {name: FoundNode(name) for name in missing}
    variables = [
        {name: _variables(known[name], command) if command else [] for name, command in one.ranks}
        for one in several
    ]
    # The widest group's statements about the fabric hold for all.
    widest = max(range(len(several)), key=lambda number: len(groups[number]))
    mine = variables[widest][groups[widest][0]]
    cabling = cables.Cabling(
        [cables.wired(node) for node in known.values()],
        _named_ports(mine),
        0,
        stated_cables,
        groups,
    )
    cabling.guessed += missing
    control = _control(known[groups[widest][0]], mine, several[widest].head)
    part = cabling.part(groups[widest])
    _fabric(draft, cabling, control, _uses_first_halves(mine, part))
    written: dict[str, Draft] = {}
    for engine, own in zip(several, variables, strict=True):
        name, group = _group_name(engine.head, written), Draft()
        ranks = [known[rank] for rank in engine.names]
        _engine(group, draft, cabling.part(engine.names), ranks, engine.head, own)
        _left_out(group, own)
        _group(draft, name, engine.names, group, written)
        written[name] = group
    for node in nodes:
        if node.name not in members and node.place:
            text = f"{node.name}, on which nothing is seen that serves"
            draft.losses.append(Loss(text, node.place))
    heads = [engine.head for engine in several]
    _other_engines(draft, nodes, heads[0], heads)
    return heads[0], cabling.kind


def _group(
    draft: Draft, name: str, nodes: Sequence[str], group: Draft, written: Mapping[str, Draft]
) -> None:
    """Write a group, or the group whose model and engine it shares."""
    path: KeyPath = ("groups", len(written))
    draft.put((*path, "name"), name)
    draft.put((*path, "nodes"), nodes)
    alike = (other for other, own in written.items() if _serves_alike(own, group))
    if other := next(alike, None):
        draft.put((*path, "like"), other)
        draft.remark(path, group, ())
    else:
        _ordered_engine(group)
        draft.graft(path, group, ("model", "engine"))
    user = group.get("defaults", "user")
    if user and not draft.get("defaults", "user"):
        draft.graft((), group, ("defaults",))


def _serves_alike(one: Draft, other: Draft) -> bool:
    """Whether two groups have the same model and engine."""
    return all(_plain(one.data[key]) == _plain(other.data[key]) for key in ("model", "engine"))


def _plain(value: Any) -> str:
    """A value as text, regardless of the order of its keys."""
    return json.dumps(value, sort_keys=True, default=str)


def _group_name(head: Command, taken: Collection[str]) -> str:
    """A name for a group: from its unit in a bundle, or else from what it serves."""
    own = head.container.name.lstrip("/")
    alias = head.entry("served-model-name", "served_model_name", "alias")
    served = alias.place.text if alias else head.served.text if head.served else head.engine
    text = (
        own.removeprefix(_UNIT)
        if own.startswith(_UNIT)
        else served.rpartition("/")[2].removesuffix(".gguf")
    )
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower())[:28].strip("-") or "group"
    names = (f"{plain}-{number}" if number > 1 else plain for number in count(1))
    return next(name for name in names if name not in taken)


def _fabric(draft: Draft, cabling: Cabling, control: tuple[str, str], by_half: bool) -> None:
    """Write everything below the engines."""
    cables.write(draft, cabling, *control)
    if by_half and not cabling.is_alone:
        draft.put(("topology", "rdma_halves"), "first")
    _together(draft, len(cabling.nodes))


def _engine(
    draft: Draft,
    site: Draft,
    cabling: Cabling,
    nodes: Sequence[FoundNode],
    head: Command | None,
    variables: Mapping[str, Sequence[Variable]],
) -> None:
    """Write a model and its engine to a draft, and what belongs to single nodes to the site's."""
    serving.fill(draft, head)
    _listening(draft, nodes[0], head)
    _parallel(draft, len(cabling.nodes), cabling.kind)
    _nccl(draft, nodes, cabling.kind)
    _environment(draft, site, cabling, variables)
    offload.fill(draft, head)
    if head:
        mounts.fill(draft, head.container)
    _secrets(draft, head)


def _named_ports(variables: Sequence[Variable]) -> tuple[int, ...]:
    """The ports that are named in variables."""
    return cables.named_ports(
        v.value.text for v in variables if "IFNAME" in v.name or "HCA" in v.name
    )


def _uses_first_halves(variables: Sequence[Variable], cabling: Cabling) -> bool:
    """Whether RDMA is configured to use only the first halves."""
    return any(v.name == "NCCL_IB_HCA" and _is_by_half(v.value.text, cabling) for v in variables)


def _nodes(found: Found) -> list[FoundNode]:
    """The nodes; whatever belongs to none is the head's."""
    named = [node for node in found.nodes if node.name]
    loose = [node for node in found.nodes if not node.name]
    if not named:
        own = loose[0] if loose else FoundNode()
        return [replace(own, name="spark1")]
    if loose:
        first = named[0]
        named[0] = replace(
            first,
            containers=first.containers + loose[0].containers,
            settings=first.settings + loose[0].settings,
        )
    return named


def _command(node: FoundNode) -> Command | None:
    """What a node serves, or helps to serve, with the settings of its other containers."""
    found = [
        (container, command)
        for container in node.containers
        if serves(container) and (command := find(container, dict(node.programs)))
    ]
    found.sort(key=lambda pair: (not pair[1].entries, pair[1].rank))
    return found[0][1] if found else None


def _rank(command: Command | None) -> int:
    return command.rank if command else 1 << 10


def _has_settings(node: FoundNode) -> bool:
    """Whether a node has NCCL's file, or a script that sets its variables."""
    loose = [c for c in node.containers if not (c.words or c.image)]
    return bool(node.settings) or any(v.name.startswith("NCCL_") for c in loose for v in c.env)


def _variables(node: FoundNode, command: Command | None) -> list[Variable]:
    """The variables from NCCL's file and the container's, which take precedence even if empty."""
    merged = {variable.name: variable for variable in node.settings}
    for container in node.containers:
        is_loose = not (container.words or container.image)
        if command is None or container is command.container or is_loose:
            merged |= {variable.name: variable for variable in container.env}
    # Without a known command that serves a model, only NCCL's variables concern the cluster.
    kept = (v for v in merged.values() if command or v.name.startswith("NCCL_"))
    return list(kept)


def _control(
    head: FoundNode, variables: Iterable[Variable], command: Command | None
) -> tuple[str, str]:
    """The interface for control traffic, and whether that is on the fabric; empty if unknown."""
    values = {variable.name: variable.value.text for variable in variables}
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "MN_IF_NAME", "TP_SOCKET_IFNAME"):
        first = values.get(name, "").lstrip("=").partition(",")[0]
        if first and not first.startswith("^"):
            return first, "fabric" if first.startswith(("enp1s0", "enP2p1s0")) else "management"
    addresses = {w.text.partition("/")[0]: i.name for i in head.interfaces for w in i.addresses}
    entry = command.entry("master-addr", "dist-init-addr") if command else None
    own = ENGINES[command.engine].ADDRESS_VARIABLE if command else ""
    for text in (values.get(own, ""), str(entry.value) if entry else ""):
        if name := addresses.get(text.partition(":")[0], ""):
            return name, "fabric" if name in FABRIC_HALVES else "management"
    return "", ""


def _listening(draft: Draft, head: FoundNode, command: Command | None) -> None:
    """Write that the API listens on the fabric, if it does."""
    entry = command.entry("host") if command else None
    ours = [i for i in head.interfaces if i.name in FABRIC_HALVES and i.name != head.gateway]
    own = {word.text.partition("/")[0] for one in ours for word in one.addresses}
    if entry and entry.place.text in own:
        draft.put(("engine", "bind"), "fabric", entry.place)


def _together(draft: Draft, count: int) -> None:
    """Write values that all nodes share only once."""
    for key in ("user", "os"):
        values = {value for number in range(count) if (value := draft.get("nodes", number, key))}
        if len(values) != 1:
            continue
        origins = [draft.origins.pop(("nodes", number, key), None) for number in range(count)]
        for node in draft.data["nodes"]:
            node.pop(key, None)
        origin = next((origin for origin in origins if origin), None)
        draft.put(("defaults", key), values.pop(), origin)


def _parallel(draft: Draft, count: int, kind: str) -> None:
    """Write how the model is split over the nodes, if nothing states it."""
    sizes = draft.get("engine", "parallel") or {}
    for key in ("tensor", "pipeline", "data"):
        if str(sizes.get(key, "")) == "1":
            del sizes[key]
    if sizes or count == 1:
        if not sizes and "parallel" in draft.data["engine"]:
            del draft.data["engine"]["parallel"]
        return
    splits = ENGINE_TRAITS[draft.get("engine", "name")].splits_tensors
    key = "tensor" if splits and count != 3 else "pipeline"
    draft.put(("engine", "parallel", key), count)
    if splits:
        draft.guesses.append("how the model is split over the nodes")


def _nccl(draft: Draft, nodes: Sequence[FoundNode], kind: str) -> None:
    found = {node.programs["nccl"] for node in nodes if "nccl" in node.programs}
    if len(found) == 1 and _uses_nccl(draft):
        draft.put(("engine", "nccl"), found.pop())
    elif not TOPOLOGIES[kind].reaches_all and _uses_nccl(draft):
        draft.put(("engine", "nccl"), ROUTED_FROM, None, "the NCCL in the image")


def _uses_nccl(draft: Draft) -> bool:
    return ENGINE_TRAITS[draft.get("engine", "name")].uses_nccl


def _environment(
    draft: Draft, site: Draft, cabling: Cabling, variables: Mapping[str, Sequence[Variable]]
) -> None:
    """Write variables that sparkgen would not set itself, or would set differently."""
    order = [wired.node.name for wired in cabling.nodes]
    kept = {name: dict(_kept(variables.get(name, ()), cabling)) for name in order}
    known = [own for name, own in kept.items() if variables.get(name)]
    names = {name for own in known for name in own}
    for name in sorted(names):
        values = {own[name].value.text if name in own else None for own in known}
        if len(values) == 1:
            word = next(own[name].value for own in known if name in own)
            draft.put(("engine", "env", name), str(word.text), word)
            continue
        numbers = {node["name"]: number for number, node in enumerate(site.data["nodes"])}
        for node in order:
            if found := kept[node].get(name):
                path = ("nodes", numbers[node], "env", name)
                site.put(path, str(found.value.text), found.value)


def _kept(variables: Sequence[Variable], cabling: Cabling) -> Iterator[tuple[str, Variable]]:
    derived = {name for name, _ in environment.ORIGINS.items()} | {
        "NCCL_NET_PLUGIN",
        "NCCL_IB_SUBNET_AWARE_ROUTING",
    }
    of_engines = {
        name
        for module in ENGINES.values()
        for name in (*module.CACHES, *module.VARIABLE_ORIGINS, *module.REPLACED_VARIABLES)
    }
    set_anyway = {*environment.CACHES, *of_engines, *version_variables()}
    usual = {"NCCL_NET": "IB", "NCCL_IB_DISABLE": "0", "NCCL_NET_PLUGIN": "none"}
    for variable in variables:
        name, text = variable.name, variable.value.text
        if _SYSTEM.fullmatch(name) or _OWN_ADDRESS.fullmatch(name) or name in set_anyway:
            continue
        if text == REMOVED or serving.is_open(text) or serving_secret(name):
            continue
        if usual.get(name) == text or (name == "NCCL_IB_SUBNET_AWARE_ROUTING" and text == "1"):
            continue
        if _INTERFACES.fullmatch(name) and _names_interfaces(text, cabling):
            continue
        if name == "NCCL_IB_HCA" and (_names_devices(text, cabling) or _is_by_half(text, cabling)):
            continue
        if name in derived and cabling.is_alone and name != "NCCL_IB_DISABLE":
            continue
        if cabling.is_alone and (name, text) == ("NCCL_IB_DISABLE", "1"):
            continue
        yield name, variable


def _other_engines(
    draft: Draft, nodes: Sequence[FoundNode], head: Command | None, heads: Sequence[Command] = ()
) -> None:
    """Record what is served besides what the site file contains."""
    served = {one.served.text for one in (head, *heads) if one and one.served}
    for node in nodes:
        for container in node.containers:
            command = find(container, dict(node.programs))
            if head and command and command.served and command.served.text not in served:
                served.add(command.served.text)
                text = f"{command.served.text}, which is served too: a group of its own ('groups')"
                draft.losses.append(Loss(text, command.served))


def _left_out(draft: Draft, variables: Mapping[str, Sequence[Variable]]) -> None:
    """Record the engine's variables whose values a capture removed, or only a shell knows."""
    reported = set()
    for own in variables.values():
        for variable in own:
            name = variable.name
            is_system = _SYSTEM.fullmatch(name) or name in version_variables()
            is_own = not (is_system or serving_secret(name) or name in reported)
            is_removed = variable.value.text == REMOVED
            if is_own and (is_removed or serving.is_open(variable.value.text)):
                reported.add(name)
                why = "the capture left out" if is_removed else "only the shell knows"
                draft.losses.append(Loss(f"the value of {name}, which {why}", variable.value))


def serving_secret(name: str) -> bool:
    """Whether a variable's name implies that it holds a key."""
    return bool(re.search(r"(?i)(^|_)(TOKEN|API_?KEY|KEY|SECRET|PASSWORD|PASSWD)$", name))


def _names_interfaces(text: str, cabling: Cabling) -> bool:
    """Whether a value names existing interfaces; the first of them counts."""
    parts = [part for part in text.lstrip("=").split(",") if part]
    cabled = {Half(p, h).interface for w in cabling.nodes for p, h in w.halves}
    cabled |= {Half(p, 0).interface for (_, p), _ in cabling.cables} if not cabled else set()
    others = {i.name for w in cabling.nodes for i in w.node.interfaces} - {*FABRIC_HALVES}
    known = cabled | others | {"enP7s7"} | {_device(name) for name in cabled}
    return bool(parts) and all(part.partition(":")[0] in known for part in parts)


def _names_devices(text: str, cabling: Cabling) -> bool:
    """Whether a value names the RoCE devices of all cabled ports."""
    return _devices_in(text) == {Half(p, h).hca for p in _cabled(cabling) for h in HALVES}


def _is_by_half(text: str, cabling: Cabling) -> bool:
    """Whether a value names the first half of each cabled port, and no other."""
    return _devices_in(text) == {Half(p, 0).hca for p in _cabled(cabling)}


def _devices_in(text: str) -> set[str]:
    return {part.partition(":")[0] for part in text.lstrip("=").split(",") if part}


def _cabled(cabling: Cabling) -> set[int]:
    return {p for w in cabling.nodes for p in w.ports} or {p for (_, p), _ in cabling.cables}


def _device(interface: str) -> str:
    return FABRIC_HALVES[interface].hca if interface in FABRIC_HALVES else ""


def _secrets(draft: Draft, command: Command | None) -> None:
    """Write the names of keys; the runbook says where their values belong."""
    if command is None:
        return
    known = {"HF_TOKEN", "RAY_AUTH_TOKEN", ENGINES[command.engine].API_KEY or ""}
    listed = list(draft.get("engine", "secrets") or [])
    for word in serving.secrets([command.container]):
        if word.text in known and word.text not in listed:
            listed.append(word.text)
            draft.origins["engine", "secrets"] = word
    if listed:
        draft.put(("engine", "secrets"), listed)


_ORDER = (
    *("version", "name", "description", "user", "defaults"),
    *("nodes", "cabling", "topology", "groups", "model", "engine"),
)
_ENGINE = (
    *("name", "version", "image", "nccl", "launcher"),
    *("port", "ports", "bind", "parallel", "memory_utilization"),
)


def _ordered(draft: Draft) -> None:
    draft.data = {key: draft.data[key] for key in _ORDER if key in draft.data}
    if "engine" in draft.data:
        _ordered_engine(draft)


def _ordered_engine(draft: Draft) -> None:
    engine = draft.data["engine"]
    rest = [key for key in engine if key not in _ENGINE]
    draft.data["engine"] = {key: engine[key] for key in (*_ENGINE, *rest) if key in engine}
