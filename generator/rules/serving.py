"""Rules about groups: which nodes serve what together, and what they share."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import (
    Add,
    KeyPath,
    Related,
    Severity,
    all_nearest,
    did_you_mean,
    listed,
    misspelt,
    removal,
    replacements,
)
from generator.engines import ENGINES
from generator.fabric.addressing import Fabric
from generator.fabric.subsets import group_kind
from generator.fit.assessment import Fit, assess, held_share
from generator.fit.formulas import GIB, SYSTEM_BYTES
from generator.models.architecture import shape
from generator.records import replace
from generator.rules.listening import launcher, ports_of_engine
from generator.rules.memory import WARNED
from generator.rules.nodes import Nodes, named
from generator.rules.registry import Fault, rule
from generator.services import SERVICES
from generator.services.gateway import Gateway
from generator.site.service import RequestedPort
from generator.sitefile.declaration import (
    DeclaredEngine,
    DeclaredGroup,
    DeclaredModel,
    Settings,
    Topology,
)
from generator.sitefile.sections import GROUPS
from generator.sitefile.source import Document
from generator.sitefile.values import value_at

Groups = Sequence[DeclaredGroup]


def _with_nodes(groups: Groups) -> Iterator[DeclaredGroup]:
    """Those that name their nodes: an alternative has the nodes of its group."""
    return (group for group in groups if not group.is_alternative)


@rule("SG240")
def group_twice(groups: Groups) -> Iterator[Fault]:
    """Every group has a name of its own.

    It names a unit, a container and folders of each node.

    Bad:
        groups:
          - name: chat
            nodes: [spark1]
          - name: chat
            nodes: [spark2]

    Good:
        groups:
          - name: chat
            nodes: [spark1]
          - name: chat-b
            nodes: [spark2]
    """
    first: dict[str, DeclaredGroup] = {}
    for group in groups:
        known = first.setdefault(group.name, group)
        if known is not group:
            yield Fault(
                f"two groups are called '{group.name}'",
                (*group.path, "name"),
                "give one of them another name",
                related=(Related("first used", (*known.path, "name")),),
            )


@rule("SG241", unless="SG201 SG203")
def node_of_a_group(groups: Groups, nodes: Nodes) -> Iterator[Fault]:
    """A group's nodes are nodes of the list, each once.

    Bad:
        groups:
          - name: chat
            nodes: [spark1, spark22]

    Good:
        groups:
          - name: chat
            nodes: [spark1, spark2]
    """
    names = [node.name for node in nodes]
    for group in _with_nodes(groups):
        for index, name in enumerate(group.nodes):
            path = (*group.path, "nodes", index)
            if name not in names:
                near = [n for n in names if n not in group.nodes]
                guess = did_you_mean(name, near)
                yield Fault(
                    f"there is no node '{name}'",
                    path,
                    guess or f"the nodes are {named(names)}",
                    proposals=replacements(path, misspelt(name, near[:1] if guess else [])),
                )
            elif name in group.nodes[:index]:
                yield Fault(
                    f"{name} is named twice",
                    path,
                    "each node is one rank: take it out",
                    proposals=removal(path),
                )


@rule("SG242", unless="SG201 SG241")
def node_of_no_group(groups: Groups, nodes: Nodes) -> Iterator[Fault]:
    """Every node serves in a group.

    A bundle sets up what serves; a node without an engine needs none of it.

    Bad:
        nodes:
          - name: spark1
          - name: spark2
        groups:
          - name: chat
            nodes: [spark1]

    Good:
        nodes:
          - name: spark1
        groups:
          - name: chat
            nodes: [spark1]
    """
    members = {name for group in groups for name in group.nodes}
    for node in nodes:
        if node.name not in members:
            yield Fault(
                f"{node.name} is in no group",
                (*node.path, "name"),
                "write it into one, or take the node out",
            )


@rule("SG243", unless="SG240")
def like_another_group(groups: Groups) -> Iterator[Fault]:
    """A group is like one that has a model and an engine written out.

    Bad:
        groups:
          - name: chat
            nodes: [spark1]
          - name: chat-b
            nodes: [spark2]
            like: chta

    Good:
        groups:
          - name: chat
            nodes: [spark1]
          - name: chat-b
            nodes: [spark2]
            like: chat
    """
    written = [group.name for group in groups if group.like is None]
    by_name = {group.name: group for group in groups}
    for group in groups:
        if group.like is None or group.source is not None:
            continue
        path = (*group.path, "like")
        other = by_name.get(group.like)
        if other is None:
            guess = did_you_mean(group.like, written)
            message = f"there is no group '{group.like}'"
            help_text = guess or f"the groups with a model are {named(written)}"
        else:
            message = f"'{group.like}' has no model and engine of its own"
            meant = other.like if other.like in written else None
            help_text = f"write 'like: {meant}'" if meant else "write 'model' and 'engine'"
        yield Fault(message, path, help_text)


@rule("SG244", unless="SG201 SG241")
def group_without_a_cable(groups: Groups, topology: Topology, fabric: Fabric) -> Iterator[Fault]:
    """Cables join the nodes of a group.

    Two nodes need a cable between them, or a switch; of a ring a group is the whole, two
    neighbors, or one node. A longer part of a ring is an open chain, whose ends NCCL can't connect.
    A node alone in its group needs no cable.

    Source: NCCL, `connectRings` (src/graph/connect.cc).

    Bad:
        topology:
          kind: pairs
        cabling:
          - endpoints: [spark1:p0, spark2:p0]
          - endpoints: [spark3:p0, spark4:p0]
        groups:
          - name: chat
            nodes: [spark1, spark3]
          - name: second
            nodes: [spark2]
          - name: fourth
            nodes: [spark4]

    Good:
        topology:
          kind: pairs
        cabling:
          - endpoints: [spark1:p0, spark2:p0]
          - endpoints: [spark3:p0, spark4:p0]
        groups:
          - name: chat
            nodes: [spark1, spark2]
          - name: chat-b
            nodes: [spark3, spark4]
    """
    for group in _with_nodes(groups):
        if group_kind(topology, fabric, group.nodes):
            continue
        inside = set(group.nodes)
        joined = [pair for pair in fabric.pairs if inside.issuperset(pair)]
        missing = next((p for p in combinations(group.nodes, 2) if not _is_joined(p, joined)), None)
        if joined and len(group.nodes) > 2:
            message = f"the cables between {named(group.nodes)} are an open chain"
            help_text = "a group is all nodes of a ring, two neighbors, or one node"
        else:
            a, b = missing or (group.nodes[0], group.nodes[-1])
            message = f"no cable joins {a} and {b}"
            help_text = "put nodes into a group that a cable joins"
        yield Fault(message, (*group.path, "nodes"), help_text)


def _is_joined(pair: tuple[str, ...], joined: Sequence[tuple[str, str]]) -> bool:
    return any(set(pair) == set(other) for other in joined)


@rule("SG245", unless="SG201 SG241 SG602 SG608")
def port_of_two_groups(groups: Groups) -> Iterator[Fault]:
    """Engines on one node have ports of their own.

    The second one would not start. Alternatives may have the same, for one of them runs at a time.

    Bad:
        groups:
          - name: chat
            nodes: [spark1]
          - name: embed
            nodes: [spark1]
            engine: {port: 8000}

    Good:
        groups:
          - name: chat
            nodes: [spark1]
          - name: embed
            nodes: [spark1]
            engine: {port: 8001}
    """
    taken: dict[tuple[str, int], list[tuple[DeclaredGroup, str]]] = {}
    for group in groups:
        said: set[int] = set()
        for node, name, port in _ports(group):
            owners = taken.setdefault((node, port.number), [])
            beside = [(owner, known) for owner, known in owners if owner.runs_beside(group)]
            owners.append((group, name))
            if beside and port.number not in said:
                owner, known = beside[0]
                said.add(port.number)
                yield Fault(
                    f"port {port.number} on {node} is '{known}' of {owner.name} and '{name}' of "
                    f"{group.name}",
                    (*group.path, *port.path) if port.is_written else group.path,
                    f"write another one as {'.'.join(map(str, port.path))}",
                    related=(Related(owner.name, (*owner.path, "name")),),
                )


def _ports(group: DeclaredGroup) -> Iterator[tuple[str, str, RequestedPort]]:
    """The node, name and number of each port that the engine takes."""
    if group.engine is None:
        return
    for node, ports in ports_of_engine(group.engine, group.nodes).items():
        for name, port in ports.items():
            # What is written in the group that it is like stands there.
            yield node, name, replace(port, is_written=group.is_own and port.is_written)


@rule("SG246", unless="SG201 SG241")
def memory_of_two_groups(groups: Groups, nodes: Nodes) -> Iterator[Fault]:
    """What the engines of a node take together leaves the system what it needs.

    Each of them takes its `memory_utilization` of all that is visible, and looks at its start
    whether so much is free: what the others hold already is not. Together they may have as much as
    one alone, and 16 GiB are left to the system. Of alternatives the one that takes most counts.
    SGLang has its reserve beside its share, which counts too.

    Source: vLLM, vllm/v1/worker/utils.py, `request_memory`; NVIDIA/dgx-spark-playbooks issue 101
    (0.35 and 0.35).

    Bad:
        groups:
          - name: chat
            nodes: [spark1]
            engine: {memory_utilization: 0.6}
          - name: embed
            nodes: [spark1]
            engine: {port: 8001, memory_utilization: 0.35}

    Good:
        groups:
          - name: chat
            nodes: [spark1]
            engine: {memory_utilization: 0.5}
          - name: embed
            nodes: [spark1]
            engine: {port: 8001, memory_utilization: 0.3}
    """
    said: set[tuple[str, ...]] = set()
    fits: dict[str, Fit | None] = {}
    for node in nodes:
        here = [group for group in groups if node.name in group.nodes]
        if len({group.index for group in here}) < 2:
            continue
        fits |= {group.name: _fit(group, nodes) for group in here if group.name not in fits}
        shares_of = _shares(here, fits, node.name)
        if tuple(shares_of) in said:
            continue
        total = round(sum(shares_of.values()), 3)
        most = min(WARNED, 1 - SYSTEM_BYTES / GIB / node.visible_gib)
        if total <= most + 0.0005:
            continue
        said.add(tuple(shares_of))
        shares = ", ".join(_shown(shares_of, groups))
        last = max(g.index for g in groups if node.name in g.nodes)
        yield Fault(
            f"the engines of {node.name} take {total} of its memory together ({shares})",
            (GROUPS, last, "name"),
            f"lower 'memory_utilization' of some, to {int(most * 100) / 100} together",
        )


def _shown(shares: Mapping[str, float], groups: Groups) -> Iterator[str]:
    """Each share as the site says it, or with what the engine has beside it."""
    said = {g.name: g.engine.memory_utilization for g in groups if g.engine}
    for name, share in shares.items():
        more = " with its reserve" if share > said.get(name, 0.0) else ""
        yield f"{name} {round(share, 3)}{more}"


def _shares(
    groups: Iterable[DeclaredGroup], fits: Mapping[str, Fit | None], node: str
) -> dict[str, float]:
    """The share of a node's memory that each takes; of alternatives the largest."""
    largest: dict[int, tuple[str, float]] = {}
    for group in groups:
        share = held_share(group.engine, fits[group.name], node) if group.engine else 0.0
        known = largest.setdefault(group.index, (group.name, share))
        if share > known[1]:
            largest[group.index] = group.name, share
    return dict(largest.values())


def _fit(group: DeclaredGroup, nodes: Nodes) -> Fit | None:
    """How a group's model fits, where what its engine takes beside others depends on that."""
    if not group.model or not group.engine or not _has_tokens(group.engine):
        return None
    by_name = {node.name: node for node in nodes}
    return assess([by_name[name] for name in group.nodes], group.model, group.engine)


def _has_tokens(engine: DeclaredEngine) -> bool:
    """Whether a bound in tokens keeps the engine from taking all that its share allows."""
    return bool(ENGINE_TRAITS[engine.name].tokens_flag)


@rule("SG247", unless="SG201 SG241")
def engines_that_share_a_node(groups: Groups, nodes: Nodes) -> Iterator[Fault]:
    """Of several engines on a node each can be told what to take, whatever the others hold.

    vLLM takes its share of all that is visible, llama.cpp what its model needs. SGLang takes a
    share of what is free at its start: the bundle has the one that is enough beside all others,
    and bounds the tokens of the cache. Where it can't be computed how many there is room for, as
    of a model with states, which take a part of what is free, the site says it.

    TensorRT-LLM takes the page cache for used, which the weights of another engine fill, and its
    bounds in bytes and tokens only lower what it finds. A Slurm job has its nodes to itself.

    Source: SGLang 0.5.23, mem_cache/kv_cache_configurator.py, `_profile_available_bytes`;
    TensorRT-LLM, tensorrt_llm/_torch/pyexecutor/_util.py, `configure_kv_cache_capacity`
    (torch.cuda.mem_get_info).

    Bad:
        groups:
          - name: chat
            nodes: [spark1]
          - name: embed
            nodes: [spark1]
            engine: {name: tensorrt-llm, port: 8001}

    Good:
        groups:
          - name: chat
            nodes: [spark1]
          - name: embed
            nodes: [spark1]
            engine: {name: vllm, port: 8001}
    """
    for group in groups:
        shared = [
            (other, node)
            for other in groups
            for node in group.nodes
            if other.runs_beside(group) and node in other.nodes
        ]
        engine = group.engine
        if not shared or engine is None:
            continue
        traits, (other, node) = ENGINE_TRAITS[engine.name], shared[0]
        place = (*group.path, "engine") if group.is_own else group.path
        where = f"{node}, where {other.name} serves too"
        if not traits.shares_memory:
            yield Fault(
                f"{traits.title} takes what is free on {where}",
                (*place, "name"),
                "use vLLM, SGLang or llama.cpp there, or another node",
            )
        elif lacking := list(_unbounded(group, nodes)):
            yield Fault(
                f"it is not known how much {group.name} caches on {where}",
                (*place, "name"),
                f"write {listed(map(repr, lacking), 'and')} into 'args'",
            )
        elif launcher(engine) != ENGINES[engine.name].LAUNCHERS[0]:
            yield Fault(
                f"the launcher '{launcher(engine)}' has "
                f"{where.replace(', where', ' to itself, and')}",
                (*place, "launcher"),
                f"write 'launcher: {ENGINES[engine.name].LAUNCHERS[0]}', or use another node",
            )


def _unbounded(group: DeclaredGroup, nodes: Nodes) -> Iterator[str]:
    """The flags that bound what an engine caches, where neither the site nor `fit` knows them."""
    if not group.engine or not group.model or not _has_tokens(group.engine):
        return
    fit, known = _fit(group, nodes), shape(group.model)
    is_misspelt = known is None and group.model.name is not None
    if is_misspelt or (fit and fit.pool_tokens is not None):
        return
    traits, args = ENGINE_TRAITS[group.engine.name], group.engine.args
    slots_flag = traits.pools.slots_flag if traits.pools and known and known.recurrent else ""
    has_free_states = bool(slots_flag) and slots_flag not in args
    if has_free_states:
        yield slots_flag
    # Beside states of a known number the tokens can be computed.
    if traits.tokens_flag not in args and not (has_free_states and fit and fit.nodes):
        yield traits.tokens_flag


@rule("SG248", unless="SG201 SG241")
def service_of_one_engine(groups: Groups, services: Mapping[str, Settings]) -> Iterator[Fault]:
    """What is for one address stands before the gateway where there are groups.

    The proxy and the chat page ask one address, and the engines of groups have several: the gateway
    makes them one.

    Bad:
        services: {proxy: true}
        groups:
          - name: chat
            nodes: [spark1]

    Good:
        services: {gateway: true}
        groups:
          - name: chat
            nodes: [spark1]
    """
    for name in services:
        if SERVICES[name].IS_ON_HEAD and Gateway.NAME not in services:
            yield Fault(
                f"'{name}' asks one address, and several engines have as many",
                ("services", name),
                "write 'gateway: true' beside it",
                at_key=True,
                proposals=((Add(("services", Gateway.NAME), True),),),
            )


@rule("SG253", unless="SG201 SG241")
def folder_of_two_groups(groups: Groups) -> Iterator[Fault]:
    """Each group keeps its KV cache in a folder of its own.

    The engines would count each other's blocks as their own, and each folder has one size.
    Alternatives keep theirs while others run.

    Bad:
        groups:
          - name: chat
            nodes: [spark1]
            model: {name: gpt-oss-20b, kv_offload: {path: /srv/kv, gib: 200}}
          - name: small
            nodes: [spark1]
            model: {name: gpt-oss-20b, kv_offload: {path: /srv/kv, gib: 100}}
            engine: {port: 8001}

    Good:
        groups:
          - name: chat
            nodes: [spark1]
            model: {name: gpt-oss-20b, kv_offload: {path: /srv/kv/chat, gib: 200}}
          - name: small
            nodes: [spark1]
            model: {name: gpt-oss-20b, kv_offload: {path: /srv/kv/small, gib: 100}}
            engine: {port: 8001}
    """
    taken: dict[tuple[str, str], DeclaredGroup] = {}
    for group in groups:
        kept = group.model.kv_offload if group.model else None
        if kept is None:
            continue
        owners = [taken.setdefault((node, kept.path), group) for node in group.nodes]
        other = next((owner for owner in owners if owner is not group), None)
        if other:
            yield Fault(
                f"{other.name} keeps its KV cache in {kept.path} too",
                (*group.written, "model", "kv_offload", "path"),
                "write a folder of its own",
                related=(Related(other.name, (*other.path, "name")),),
            )


@rule("SG251", unless="SG240")
def active_alternative(groups: Groups, document: Document) -> Iterator[Fault]:
    """What is active is the group itself, or one of its alternatives.

    Its unit is enabled at the first installation, and `verify.sh` expects it to run.

    Bad:
        groups:
          - name: chat
            nodes: [spark1]
            active: codr
            alternatives:
              - name: coder

    Good:
        groups:
          - name: chat
            nodes: [spark1]
            active: coder
            alternatives:
              - name: coder
    """
    for group in _with_nodes(groups):
        names = [group.name, *group.alternatives]
        active = value_at(document.data, group.entry).get("active", group.name)
        if active not in names:
            path = (*group.entry, "active")
            guess = did_you_mean(active, names)
            yield Fault(
                f"'{active}' is none of what {group.name} can serve",
                path,
                guess or f"write {listed(names)}, or add it to 'alternatives'",
                proposals=replacements(path, misspelt(active, all_nearest(active, names))),
            )


@rule("SG252", unless="SG240 SG243")
def turns_of_a_job(groups: Groups) -> Iterator[Fault]:
    """What takes turns on the same nodes is started by a unit of systemd.

    A job of Slurm has no unit that could stop the others; the queue decides when it starts.

    Bad:
        groups:
          - name: chat
            nodes: [spark1]
            engine: {name: tensorrt-llm, launcher: slurm}
            alternatives:
              - name: coder

    Good:
        groups:
          - name: chat
            nodes: [spark1]
            engine: {name: tensorrt-llm, launcher: mpi}
            alternatives:
              - name: coder
    """
    engines = {g.written: g.engine for g in groups if g.alternatives and g.engine}
    for place, engine in engines.items():
        if engine.launcher != "slurm":
            continue
        path = (*place, "engine", "launcher")
        first = ENGINES[engine.name].LAUNCHERS[0]
        yield Fault(
            "a job of Slurm takes no turns with others",
            path,
            f"write 'launcher: {first}'",
            proposals=replacements(path, [first]),
        )


@rule("SG249", Severity.WARNING, unless="SG240 SG243")
def name_of_two_models(groups: Groups) -> Iterator[Fault]:
    """Groups that serve the same name serve the same model.

    Clients ask for a name, and take what answers for the same.

    Bad:
        groups:
          - name: chat
            nodes: [spark1]
            model: {name: gpt-oss-20b, served_name: assistant}
          - name: chat-b
            nodes: [spark2]
            model: {name: llama-3.1-8b-instruct-fp8, served_name: assistant}

    Good:
        groups:
          - name: chat
            nodes: [spark1]
            model: {name: gpt-oss-20b, served_name: assistant}
          - name: chat-b
            nodes: [spark2]
            like: chat
    """
    first: dict[str, tuple[DeclaredGroup, DeclaredModel, KeyPath]] = {}
    for group in groups:
        model = group.model
        if model is None:
            continue
        for name, path in _names(group, model):
            known, other, place = first.setdefault(name, (group, model, path))
            is_other = (other.name, other.source) != (model.name, model.source)
            if is_other and known.runs_beside(group):
                yield Fault(
                    f"{known.name} and {group.name} serve two models as '{name}'",
                    path,
                    "give one of them another name",
                    related=(Related(known.name, place),),
                )


def _names(group: DeclaredGroup, model: DeclaredModel) -> Iterator[tuple[str, KeyPath]]:
    """What clients may ask a group for, as it is written, and where."""
    if model.served_name:
        yield model.served_name, (*group.path, "model", "served_name")
    for index, alias in enumerate(model.aliases):
        yield alias, (*group.path, "model", "aliases", index)
