"""Creates a site file from what people already run, with the place of each part in their files."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count

from generator.adoption import cables, interfaces, mounts, offload, running, serving
from generator.adoption import variables as environment
from generator.adoption.cables import Cabling, Edge
from generator.adoption.captures import serves
from generator.adoption.command import Command, find, is_server
from generator.adoption.draft import Draft
from generator.adoption.found import REMOVED as REMOVED
from generator.adoption.found import Ended, Found, FoundNode, Variable, Word
from generator.adoption.items import closed
from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import Finding, KeyPath, Severity, Stage
from generator.fabric.nccl import ROUTED_FROM
from generator.fabric.topologies import TOPOLOGIES
from generator.hardware import FABRIC_HALVES
from generator.pipeline import Reading, read_site
from generator.records import record, replace
from generator.sitefile.beside import Beside, nothing_beside

_UNIT = "sparkgen-engine-"
_MOST_REFUSED = 20
_SPLIT = "how the model is split over the nodes"
# As different as can be from the model that is assumed.
_OTHER_MODEL = "qwen3.5-9b"


@record
class Adoption:
    """A site file created from what was found.

    `ended` is all that the user's files say, item by item, with what became of it. `assumed` is the
    reading with what is most usual in place of every TODO, with no finding about such a model.
    """

    draft: Draft
    text: str
    reading: Reading
    found: Found
    command: Command | None
    ended: tuple[Ended, ...]
    assumed: Reading

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the site file, also with what its TODO say nothing about."""
        if all(path[0] in self.draft.unsaid for path in self.draft.todo):
            return self.reading.findings
        known = (one for one in self.assumed.findings if one.path and self.origin(one.path))
        return (*self.reading.findings, *known)

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
    head, cabling = (
        _grouped(draft, nodes, several, stated_cables)
        if several
        else _alone(draft, nodes, stated_cables)
    )
    interfaces.settle(draft, cabling)
    _ordered(draft)
    full = _assumed(draft, file, beside)
    ended = closed(found, draft)
    text = draft.text(ended)
    reading = read_site(file, text.encode(), beside)
    full = replace(full, findings=tuple(_of_any_model(draft, full, file, beside)))
    return Adoption(draft, text, reading, found, head, ended, full)


def _assumed(draft: Draft, file: str, beside: Beside) -> Reading:
    """The site with what is assumed; values that no site file can have are left out of it."""
    for _ in range(_MOST_REFUSED):
        reading = read_site(file, draft.text(assumed=True).encode(), beside)
        wrong = {f.path: f.message for f in reading.findings if _is_of_form(draft, f)}
        if not wrong:
            break
        # From the end, so that the numbers of those before stay.
        for path in sorted(wrong, key=str, reverse=True):
            draft.refuse(path, wrong[path])
    return reading


def _of_any_model(draft: Draft, full: Reading, file: str, beside: Beside) -> Iterator[Finding]:
    """The findings that are the same with another model where nobody said which."""
    unknown = [path for path in draft.todo if path[-2:] == ("model", "name")]
    if not unknown:
        return iter(full.findings)
    for path in unknown:
        draft.get(*path[:-1])["name"] = _OTHER_MODEL
    again = read_site(file, draft.text(assumed=True).encode(), beside).findings
    others = {(one.rule, one.path, one.message, one.help) for one in again}
    return (one for one in full.findings if (one.rule, one.path, one.message, one.help) in others)


def _is_of_form(draft: Draft, finding: Finding) -> bool:
    """Whether a finding is that a value has the wrong form, which is then not written."""
    is_form = finding.stage == Stage.READING and finding.severity == Severity.ERROR
    is_there = bool(finding.path) and draft.get(*finding.path) is not None
    return is_form and is_there and finding.path not in draft.todo


def _alone(
    draft: Draft, nodes: list[FoundNode], stated_cables: Sequence[Edge]
) -> tuple[Command | None, Cabling]:
    """Write one engine on all nodes; returns its command, and how they are joined."""
    commands = {node.name: _command(node) for node in nodes}
    nodes.sort(key=lambda node: own.rank if (own := commands[node.name]) else 1 << 10)
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
        [cables.wired(node) for node in nodes],
        _named_ports(mine),
        ranks,
        stated_cables,
        is_mesh=_is_mesh(nodes, mine),
    )
    cabling.guessed += [node.name for node in missing]
    is_known = running.is_sized(head) or any(node.place for node in nodes)
    cabling.is_open = cabling.is_alone and not is_known and _has_fabric(nodes)
    _fabric(draft, cabling, _control(nodes[0], mine, head), _uses_first_halves(mine, cabling))
    _engine(draft, draft, cabling, nodes, commands, head, variables)
    _other_engines(draft, nodes, [head] if head else [])
    if head is None:
        _without_engine(draft, nodes)
    return head, cabling


def _without_engine(draft: Draft, nodes: Sequence[FoundNode]) -> None:
    """Write what is known of an engine that sparkgen doesn't know; a network needs none."""
    container = next((c for node in nodes for c in node.containers if is_server(c)), None)
    if container:
        serving.unknown(draft, container)
        draft.serving.add(container.owner)
    elif not (draft.get("engine", "env") or any("env" in node for node in draft.data["nodes"])):
        draft.unsaid |= {"model", "engine"}
        draft.guesses = [one for one in draft.guesses if one != _SPLIT]


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
    known_words = (word for _, word in filter(None, map(cables.management, nodes)))
    subnets = {word.text.partition("/")[0].rpartition(".")[0] for word in known_words}
    if found and place and master and master[0].rpartition(".")[0] in subnets:
        found[0] = replace(found[0], management=Word(master[0], place.file, place.span))
    return found


def _grouped(
    draft: Draft,
    nodes: Sequence[FoundNode],
    several: Sequence[running.Engine],
    stated_cables: Sequence[Edge],
) -> tuple[Command, Cabling]:
    """Write a group for each engine; returns the first one's command, and how nodes are joined."""
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
        part = cabling.part(engine.names)
        _engine(group, draft, part, ranks, dict(engine.ranks), engine.head, own)
        _group(draft, name, engine.names, group, written)
        written[name] = group
    for node in nodes:
        if node.name not in members and node.place:
            text = f"{node.name}, on which nothing is seen that serves"
            draft.lose(text, node.place)
    heads = [engine.head for engine in several]
    _other_engines(draft, nodes, heads)
    return heads[0], cabling


def _group(
    draft: Draft, name: str, nodes: Sequence[str], group: Draft, written: Mapping[str, Draft]
) -> None:
    """Write a group, or the group whose model and engine it shares."""
    path: KeyPath = ("groups", len(written))
    draft.put((*path, "name"), name)
    draft.put((*path, "nodes"), nodes)
    alike = (other for other, own in written.items() if _serves_alike(own, group))
    if other := next(alike, None):
        draft.put((*path, "same_as"), other)
        draft.remark(path, group, ())
    else:
        _ordered_engine(group)
        draft.graft(path, group, ("model", "engine"))
    user = group.get("defaults", "user")
    if user and not draft.get("defaults", "user"):
        draft.graft((), group, ("defaults",))


def _serves_alike(one: Draft, other: Draft) -> bool:
    """Whether two groups have the same model and engine."""
    return all(one.data[key] == other.data[key] for key in ("model", "engine"))


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
    commands: Mapping[str, Command | None],
    head: Command | None,
    variables: Mapping[str, Sequence[Variable]],
) -> None:
    """Write a model and its engine to a draft, and what belongs to single nodes to the site's."""
    serving.fill(draft, head)
    _listening(draft, nodes[0], head)
    _parallel(draft, len(cabling.nodes))
    _nccl(draft, nodes, cabling.kind)
    environment.write(draft, site, cabling, variables, head)
    offload.fill(draft, head)
    for command in commands.values():
        if command and head:
            site.serving.add(command.container.owner)
            serving.compare(draft, head, command)
    if head:
        mounts.fill(draft, head.container)


def _is_mesh(nodes: Sequence[FoundNode], variables: Sequence[Variable]) -> bool:
    """Whether a recipe or a variable says that cables join the nodes without a switch."""
    said = {f"{v.name}={v.value.text}".lower() for v in variables}
    words = (i.value for node in nodes for c in node.containers if c.is_launched for i in c.items)
    mesh = {"nccl_ib_subnet_aware_routing=1", "nccl_net=mesh"}
    return not mesh.isdisjoint(said) or any(re.search(r"(?i)\bmesh\b", text) for text in words)


def _named_ports(variables: Sequence[Variable]) -> tuple[int, ...]:
    """The ports that are named in variables."""
    return cables.named_ports(
        v.value.text for v in variables if "IFNAME" in v.name or "HCA" in v.name
    )


def _uses_first_halves(variables: Sequence[Variable], cabling: Cabling) -> bool:
    """Whether RDMA is configured to use only the first halves."""
    named = [v.value.text for v in variables if v.name == "NCCL_IB_HCA"]
    return any(environment.is_by_half(text, cabling) for text in named)


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


def _has_fabric(nodes: Sequence[FoundNode]) -> bool:
    """Whether anything is said of nodes' ports, or of NCCL on them."""
    said = (v.name for node in nodes for c in node.containers for v in c.env)
    is_linked = any(i.has_link and i.name in FABRIC_HALVES for n in nodes for i in n.interfaces)
    return is_linked or any(map(_has_settings, nodes)) or any(v.startswith("NCCL_") for v in said)


def _has_settings(node: FoundNode) -> bool:
    """Whether a node has NCCL's file, or a script that sets its variables."""
    loose = [c for c in node.containers if not (c.words or c.image)]
    return bool(node.settings) or any(v.name.startswith("NCCL_") for c in loose for v in c.env)


def _variables(node: FoundNode, command: Command | None) -> list[Variable]:
    """The variables from NCCL's file and the container's, which take precedence even if empty."""
    merged = {variable.name: variable for variable in node.settings}
    for container in node.containers:
        is_loose = not (container.words or container.image)
        is_own = command is not None and container.words == command.container.words
        if command is None or is_own or is_loose:
            env = command.container.env if command and is_own else container.env
            merged |= {variable.name: variable for variable in env}
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
        if first and first[0] not in "^$":
            return first, "fabric" if first.startswith(("enp1s0", "enP2p1s0")) else "management"
    addresses = {w.text.partition("/")[0]: i.name for i in head.interfaces for w in i.addresses}
    entry = command.entry("master-addr", "dist-init-addr") if command else None
    own = ENGINE_TRAITS[command.engine].address_variable if command else ""
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


def _parallel(draft: Draft, count: int) -> None:
    """Write how the model is split over the nodes, if nothing states it."""
    engine = draft.data["engine"]
    sizes = {key: size for key, size in engine.pop("parallel", {}).items() if str(size) != "1"}
    if sizes:
        engine["parallel"] = sizes
    elif count > 1:
        splits = ENGINE_TRAITS[engine["name"]].splits_tensors
        key = "tensor" if splits and count != 3 else "pipeline"
        draft.put(("engine", "parallel"), {key: count}, guess=_SPLIT if splits else "")


def _nccl(draft: Draft, nodes: Sequence[FoundNode], kind: str) -> None:
    found = {node.programs["nccl"] for node in nodes if "nccl" in node.programs}
    if not ENGINE_TRAITS[draft.get("engine", "name")].uses_nccl:
        return
    if len(found) == 1:
        draft.put(("engine", "nccl"), found.pop())
    elif not TOPOLOGIES[kind].reaches_all:
        draft.put(("engine", "nccl"), ROUTED_FROM, None, "the NCCL in the image")


def _other_engines(draft: Draft, nodes: Sequence[FoundNode], heads: Sequence[Command]) -> None:
    """Record what is served besides what the site file contains."""
    served = {one.served.text for one in heads if one.served}
    for node in nodes:
        for container in node.containers if heads else ():
            command = find(container, dict(node.programs))
            if command and command.served and command.served.text not in served:
                served.add(command.served.text)
                text = f"{command.served.text}, which is served too: a group of its own ('groups')"
                draft.lose(text, command.served)


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
