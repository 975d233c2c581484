"""Writes the engines of a cluster to a draft, with what they say of their nodes and the fabric."""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import count

from generator.adoption import cables, mounts, offload, running, serving
from generator.adoption import variables as environment
from generator.adoption.cables import Edge, FoundCabling
from generator.adoption.command import Command, is_server
from generator.adoption.draft import Draft
from generator.adoption.found import Ended, FoundNode, FoundVariable, Item, ItemEnd, Word
from generator.adoption.nodes import (
    command_of,
    control_of,
    has_fabric,
    has_settings,
    is_mesh,
    uses_first_halves,
    variables_of,
)
from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import KeyPath
from generator.fabric.nccl import ROUTED_FROM
from generator.fabric.topologies import TOPOLOGIES
from generator.hardware import FABRIC_HALVES
from generator.records import replace

_UNIT = "sparkgen-engine-"
_SPLIT = "how the model is split over the nodes"
_ENGINE = (
    *("name", "version", "image", "nccl", "launcher"),
    *("port", "ports", "bind", "parallel", "memory_utilization"),
)


def alone(
    draft: Draft, nodes: list[FoundNode], stated_cables: Sequence[Edge]
) -> tuple[Command | None, FoundCabling]:
    """Write one engine on all nodes; returns its command, and how they are joined."""
    commands = {node.name: command_of(node) for node in nodes}
    nodes.sort(key=lambda node: own.rank if (own := commands[node.name]) else 1 << 10)
    head = commands[nodes[0].name] or next((c for c in commands.values() if c), None)
    ranks = running.size(head)
    if head is None and all(not node.interfaces for node in nodes):
        # A node with only NCCL settings is one of several.
        ranks = 2 if any(has_settings(node) for node in nodes) else ranks
    missing = _earlier_ranks(nodes, head)
    nodes[:0] = missing
    variables = {node.name: variables_of(node, commands.get(node.name)) for node in nodes}
    mine = variables[nodes[len(missing)].name]
    cabling = cables.FoundCabling(
        [cables.wired(node) for node in nodes],
        cables.named_ports(mine),
        ranks,
        stated_cables,
        is_mesh=is_mesh(nodes, mine),
    )
    cabling.guessed += [node.name for node in missing]
    is_known = running.is_sized(head) or any(node.place for node in nodes)
    is_joined = has_fabric(nodes) or (head is not None and head.ray)
    cabling.is_open = cabling.is_alone and not is_known and is_joined
    _fabric(draft, cabling, control_of(nodes[0], mine, head), uses_first_halves(mine, cabling))
    _engine(draft, draft, cabling, nodes, commands, head, variables)
    _other_engines(draft, nodes, [head] if head else [])
    if head is None:
        _without_engine(draft, nodes)
    return head, cabling


def grouped(
    draft: Draft,
    nodes: Sequence[FoundNode],
    several: Sequence[running.RunningEngine],
    stated_cables: Sequence[Edge],
) -> tuple[Command, FoundCabling]:
    """Write a group for each engine; returns the first one's command, and how nodes are joined."""
    groups = [engine.names for engine in several]
    members = {name for names in groups for name in names}
    known = {node.name: node for node in nodes if node.name in members}
    missing = [name for name in sorted(members) if name not in known]
    known |= {name: FoundNode(name) for name in missing}
    variables = [
        {name: variables_of(known[name], command) if command else [] for name, command in one.ranks}
        for one in several
    ]
    # The widest group's statements about the fabric hold for all.
    widest = max(range(len(several)), key=lambda number: len(groups[number]))
    mine = variables[widest][groups[widest][0]]
    cabling = cables.FoundCabling(
        [cables.wired(node) for node in known.values()],
        cables.named_ports(mine),
        0,
        stated_cables,
        groups,
    )
    cabling.guessed += missing
    control = control_of(known[groups[widest][0]], mine, several[widest].head)
    part = cabling.part(groups[widest])
    _fabric(draft, cabling, control, uses_first_halves(mine, part))
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


def _without_engine(draft: Draft, nodes: Sequence[FoundNode]) -> None:
    """Write what is known of an engine that sparkgen doesn't know; a network needs none."""
    container = next((c for node in nodes for c in node.containers if is_server(c)), None)
    if container:
        serving.unknown(draft, container)
        draft.serving.add(container.owner)
    elif not (draft.get("engine", "env") or any("env" in node for node in draft.data["nodes"])):
        draft.unsaid |= {"model", "engine"}
        draft.guesses = [one for one in draft.guesses if one != _SPLIT]


def _group(
    draft: Draft, name: str, nodes: Sequence[str], group: Draft, written: Mapping[str, Draft]
) -> None:
    """Write a group, or the group whose model and engine it shares."""
    path: KeyPath = ("groups", len(written))
    draft.put((*path, "name"), name)
    draft.put((*path, "nodes"), nodes)
    said = [group.data[key] for key in ("model", "engine")]
    alike = (n for n, own in written.items() if [own.data["model"], own.data["engine"]] == said)
    if other := next(alike, None):
        draft.put((*path, "same_as"), other)
        draft.remark(path, group, ())
    else:
        ordered_engine(group)
        draft.graft(path, group, ("model", "engine"))
    user = group.get("defaults", "user")
    if user and not draft.get("defaults", "user"):
        draft.graft((), group, ("defaults",))


def _group_name(head: Command, taken: Collection[str]) -> str:
    """A name for a group: from its unit in a bundle, or else from what it serves."""
    own = head.container.name.lstrip("/")
    alias = head.entry("served-model-name", "served_model_name", "alias")
    served = alias.place.text if alias else head.served.text if head.served else head.engine
    text = served.rpartition("/")[2].removesuffix(".gguf")
    text = own.removeprefix(_UNIT) if own.startswith(_UNIT) else text
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower())[:28].strip("-") or "group"
    names = (f"{plain}-{number}" if number > 1 else plain for number in count(1))
    return next(name for name in names if name not in taken)


def _fabric(draft: Draft, cabling: FoundCabling, control: tuple[str, str], by_half: bool) -> None:
    """Write everything below the engines."""
    cables.write(draft, cabling, *control)
    if by_half and not cabling.is_alone:
        draft.put(("topology", "rdma_halves"), "first")
    _together(draft, len(cabling.nodes))


def _engine(
    draft: Draft,
    site: Draft,
    cabling: FoundCabling,
    nodes: Sequence[FoundNode],
    commands: Mapping[str, Command | None],
    head: Command | None,
    variables: Mapping[str, Sequence[FoundVariable]],
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
    known = {(one.served.text, running.port(one)) for one in heads if one.served}
    for node in nodes if heads else ():
        commands = running.commands_of(node)
        mine = [command for command in commands if command in heads]
        for command in commands:
            served, port = command.served, running.port(command)
            if served and not command.rank and (served.text, port) not in known:
                known.add((served.text, port))
                why = "it is served too: a group of its own ('groups')"
                is_apart = not (command.around or running.takes_port(command))
                if running.is_instead(command, mine) and not is_apart:
                    why = "it shares a port or a condition with another: a node runs one of them"
                own = command.container
                others = (*own.words, *(v.value for v in own.env), *own.mounts)
                others += (*filter(None, [own.image]), *own.options.values())
                words = (served, *(word for word in others if word != served))
                why = f"{why}; none of its settings is here"
                item = Item(served.text, served.text, words)
                draft.ended.append(Ended(item, ItemEnd.LOST, why=why))


def ordered_engine(draft: Draft) -> None:
    """Put the keys of the engine in the order in which people write them."""
    engine = draft.data["engine"]
    rest = [key for key in engine if key not in _ENGINE]
    draft.data["engine"] = {key: engine[key] for key in (*_ENGINE, *rest) if key in engine}
