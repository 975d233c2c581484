"""Rules about engines that share a node: ports, memory, folders and the guard's order."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.versions import place
from generator.diagnostics import Related, Severity, listed, replacements
from generator.fit.assessment import Fit, assess, held_share
from generator.fit.beside import beside
from generator.fit.formulas import GIB, SYSTEM_BYTES
from generator.grouping import grouped
from generator.models.architecture import shape
from generator.records import replace
from generator.rules.dividing import SharedMemory, division, tokens_key
from generator.rules.listening import PortsOfNodes, launcher, ports_of_engine
from generator.rules.memory import WARNED
from generator.rules.nodes import Nodes, named_twice, unknown
from generator.rules.registry import Fault, Faults, rule
from generator.rules.serving import Groups
from generator.services.guard import Guard
from generator.site.service import RequestedPort
from generator.sitefile.declaration import DeclaredEngine, DeclaredGroup, Settings
from generator.sitefile.sections import GROUPS
from generator.sitefile.source import Document

# Each engine measures what is free at its start: more together leaves the system too little.
_TOGETHER = 0.92


@rule("SG110", unless="SG201 SG241")
def copy_of_a_group(groups: Groups) -> Faults:
    """A group is not the copy of another one."""
    known: list[DeclaredGroup] = []
    for group in groups:
        own = {*group.nodes}, group.model, group.engine
        first = next((g for g in known if ({*g.nodes}, g.model, g.engine) == own), None)
        if first and group.engine and not group.is_alternative and group.runs_beside(first):
            yield Fault(
                f"groups {first.name} and {group.name} have the same nodes, model and engine",
                (*group.path, "name"),
                "write other nodes, or remove one of the two",
                related=(Related("the other one", (*first.path, "name")),),
            )
        known.append(group)


@rule("SG245", unless="SG110 SG201 SG240 SG241 SG602 SG608")
def port_of_two_groups(groups: Groups, service_ports: PortsOfNodes) -> Faults:
    """Engines on one node do not share ports."""
    taken: dict[tuple[str, int], list[tuple[DeclaredGroup, str]]] = {}
    numbers = {port.number for group in groups for _, _, port in _ports(group)}
    numbers |= {port.number for ports in service_ports.values() for port in ports.values()}
    for group in groups:
        reported: set[int] = set()
        for node, name, port in _ports(group):
            owners = taken.setdefault((node, port.number), [])
            beside = [(owner, known) for owner, known in owners if owner.runs_beside(group)]
            owners.append((group, name))
            if beside and port.number not in reported:
                owner, known = beside[0]
                reported.add(port.number)
                free = next(n for n in count(port.number + 1) if n not in numbers)
                numbers.add(free)
                path = (*group.path, *port.path)
                yield Fault(
                    f"port {port.number} on {node} is '{known}' of {owner.name} and '{name}' of "
                    f"{group.name}",
                    path if port.is_written else group.path,
                    f"write another one as {'.'.join(map(str, port.path))}, such as {free}"
                    if group.is_own
                    else f"use other nodes: its ports are those of {group.same_as}",
                    related=(Related(owner.name, (*owner.path, "name")),),
                    proposals=replacements(path, [free]) if group.is_own else (),
                    unsafe=port.is_written,
                    nodes=(node,),
                )


def _ports(group: DeclaredGroup) -> Iterator[tuple[str, str, RequestedPort]]:
    """The node, name and number of each port that the engine uses."""
    if group.engine is None:
        return
    for node, ports in ports_of_engine(group.engine, group.nodes).items():
        for name, port in ports.items():
            # Ports of a group that is like another are written in the other group.
            yield node, name, replace(port, is_written=group.is_own and port.is_written)


@rule("SG246", unless="SG110 SG201 SG241")
def memory_of_two_groups(groups: Groups, nodes: Nodes, document: Document) -> Faults:
    """The engines on a node leave the system the memory that it needs."""
    for shared in _shared_memory(groups, nodes):
        if shared.total >= _TOGETHER:
            taken = f"take {shared.total} of its memory together"
            yield shared.fault(taken, division(shared, nodes, document))


@rule("SG254", Severity.WARNING, unless="SG110 SG201 SG241 SG246")
def much_memory_of_two_groups(groups: Groups, nodes: Nodes, document: Document) -> Faults:
    """The engines on a node take at most 0.85 of its memory together, and leave 16 GiB."""
    for shared in _shared_memory(groups, nodes):
        if shared.most + 0.0005 < shared.total < _TOGETHER:
            taken = f"take {shared.total} of its memory together, which leaves little to the system"
            yield shared.fault(taken, division(shared, nodes, document))


def _shared_memory(groups: Groups, nodes: Nodes) -> Iterator[SharedMemory]:
    """One node for each distinct set of engines that share one."""
    reported: set[tuple[object, ...]] = set()
    fits: dict[str, Fit | None] = {}
    groups_of = grouped((name, group) for group in groups for name in dict.fromkeys(group.nodes))
    for node in nodes:
        here = groups_of.get(node.name, [])
        if len({group.index for group in here}) < 2:
            continue
        fits |= {group.name: _fit(group, nodes) for group in here if group.name not in fits}
        shares = _shares(here, fits, node.name)
        most = min(WARNED, 1 - (SYSTEM_BYTES / GIB + node.other_gib) / node.visible_gib)
        if (*shares, most) in reported:
            continue
        reported.add((*shares, most))
        total = round(sum(shares.values()), 3)
        last = max(group.index for group in here)
        shown = tuple(_shown(shares, groups))
        yield SharedMemory(node.name, total, most, shares, shown, last, tuple(here))


def _shown(shares: Mapping[str, float], groups: Groups) -> Iterator[str]:
    """Each share as the site states it, or including the engine's reserve."""
    stated = {g.name: g.engine.memory_utilization for g in groups if g.engine}
    for name, share in shares.items():
        more = " with its reserve" if share > stated.get(name, 0.0) else ""
        yield f"{name} {round(share, 3)}{more}"


def _shares(
    groups: Iterable[DeclaredGroup], fits: Mapping[str, Fit | None], node: str
) -> dict[str, float]:
    """The share of a node's memory that each engine takes; only the largest among alternatives."""
    largest: dict[int, tuple[str, float]] = {}
    for group in groups:
        engine = group.engine
        if engine is None:
            continue
        share = held_share(engine.name, engine.memory_utilization, fits[group.name], node)
        known = largest.setdefault(group.index, (group.name, share))
        if share > known[1]:
            largest[group.index] = group.name, share
    return dict(largest.values())


def _fit(group: DeclaredGroup, nodes: Nodes) -> Fit | None:
    """How a group's model fits, if the memory that its engine takes depends on it."""
    if not group.model or not group.engine:
        return None
    if not tokens_key(group.engine) and not beside(group.model, group.engine):
        return None
    by_name = {node.name: node for node in nodes}
    return assess([by_name[name] for name in group.nodes], group.model, group.engine)


def _says_tokens(engine: DeclaredEngine) -> bool:
    """Whether the site limits the engine's cache in tokens."""
    traits = ENGINE_TRAITS[engine.name]
    if traits.tokens_flag:
        return traits.tokens_flag in engine.settings
    keys = traits.tokens_setting.split(".")
    return engine.settings.value(traits.settings_flag, *keys) is not None


@rule("SG247", unless="SG201 SG241")
def engines_that_share_a_node(groups: Groups, nodes: Nodes) -> Faults:
    """When engines share a node, each can be told how much memory to take."""
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
        path = (*group.path, "engine") if group.is_own else group.path
        where = f"{node}, where {other.name} serves too"
        if place(engine.version) < traits.shares_since:
            since = ".".join(map(str, traits.shares_since))
            yield Fault(
                f"{traits.title} {engine.version} takes all memory that is free on {where}",
                (*path, "version"),
                f"use {since} or later, whose cache can be limited, or another node",
                nodes=(node,),
            )
        elif lacking := list(_unbounded(group, nodes)):
            inside = f", under '{traits.settings_flag}'" if traits.tokens_setting else ""
            yield Fault(
                f"the KV cache of {group.name} has no limit on {where}",
                (*path, "name"),
                f"write {listed(map(repr, lacking), 'and')} into 'args'{inside}",
                nodes=(node,),
            )
        elif launcher(engine) != ENGINE_TRAITS[engine.name].launchers[0]:
            yield Fault(
                f"launcher '{launcher(engine)}' can't share {where}",
                (*path, "launcher"),
                f"write 'launcher: {ENGINE_TRAITS[engine.name].launchers[0]}', or use another node",
                nodes=(node,),
            )


def _unbounded(group: DeclaredGroup, nodes: Nodes) -> Iterator[str]:
    """The flags that limit an engine's cache, if neither the site nor `fit` determines them."""
    if not group.engine or not group.model or not tokens_key(group.engine):
        return
    fit, known = _fit(group, nodes), shape(group.model)
    is_misspelt = known is None and group.model.name is not None
    if is_misspelt or (fit and fit.pool_tokens is not None):
        return
    traits, settings = ENGINE_TRAITS[group.engine.name], group.engine.settings
    slots_flag = traits.pools.slots_flag if traits.pools and known and known.keeps_states else ""
    has_free_states = bool(slots_flag) and slots_flag not in settings
    if has_free_states:
        yield slots_flag
    # With a known number of states, the tokens can be computed.
    if not _says_tokens(group.engine) and not (has_free_states and fit and fit.nodes):
        yield tokens_key(group.engine)


@rule("SG253", unless="SG201 SG241")
def folder_of_two_groups(groups: Groups) -> Faults:
    """No two groups keep their KV cache in the same folder."""
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


@rule("SG256", unless="SG240")
def order_of_the_guard(groups: Groups, services: Mapping[str, Settings]) -> Faults:
    """The guard's order lists groups, each once."""
    names = [group.name for group in groups]
    order = services.get(Guard.NAME, {}).get("order", ())
    for index, name in enumerate(order):
        path = (*_GUARD_ORDER, index)
        if name not in names:
            yield unknown("group", name, path, names)
        elif name in order[:index]:
            yield named_twice(name, path, "remove it")


_GUARD_ORDER = ("services", Guard.NAME, "order")


@rule("SG257")
def order_of_one_engine(document: Document, services: Mapping[str, Settings]) -> Faults:
    """The guard has an order only if there are groups."""
    has_groups = GROUPS in document.data or "engine" not in document.data
    if "order" in services.get(Guard.NAME, {}) and not has_groups:
        yield Fault(
            "there is one engine, and no group",
            _GUARD_ORDER,
            "write 'guard: true'",
            at_key=True,
            proposals=replacements(_GUARD_ORDER[:-1], [True]),
        )
