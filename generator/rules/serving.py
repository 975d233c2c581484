"""Rules about groups: which nodes serve what together, and under which names."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import (
    Add,
    KeyPath,
    Related,
    Replace,
    Severity,
    all_nearest,
    did_you_mean,
    listed,
    misspelt,
    replacements,
)
from generator.fabric.addressing import Fabric
from generator.fabric.subsets import group_kind
from generator.models.architecture import served_name, shape, source_of
from generator.rules.nodes import Nodes, called_alike, named, named_twice
from generator.rules.registry import Fault, Faults, rule
from generator.services import GATEWAY, SERVICES
from generator.sitefile.declaration import (
    DeclaredCable,
    DeclaredGroup,
    DeclaredModel,
    Settings,
    Topology,
)
from generator.sitefile.source import Document, value_at

Groups = Sequence[DeclaredGroup]


def _with_nodes(groups: Groups) -> Iterator[DeclaredGroup]:
    """The groups with a list of nodes: an alternative has the nodes of its group."""
    return (group for group in groups if not group.is_alternative)


@rule("SG240", unless="SG110")
def duplicate_group(groups: Groups) -> Faults:
    """No two groups have the same name."""
    return called_alike("group", groups)


@rule("SG241", unless="SG201 SG203")
def node_of_a_group(groups: Groups, nodes: Nodes, cabling: Sequence[DeclaredCable]) -> Faults:
    """A group names nodes of the site, each once."""
    names = [node.name for node in nodes]
    strangers: dict[str, list[KeyPath]] = {}
    for group in _with_nodes(groups):
        for index, name in enumerate(group.nodes):
            path = (*group.path, "nodes", index)
            if name not in names:
                strangers.setdefault(name, []).append(path)
            elif name in group.nodes[:index]:
                yield named_twice(name, path, "a node is one rank: remove the second name")
    members = {name for group in _with_nodes(groups) for name in group.nodes}
    cabled = {end.name for cable in cabling for end in cable.endpoints}
    for name, paths in strangers.items():
        free = [other for other in names if other not in members]
        near = all_nearest(name, free) or all_nearest(name, names)
        meant = misspelt(name, near)
        yield Fault(
            f"there is no node '{name}'",
            paths[0],
            did_you_mean(name, near) or f"the nodes are {named(names)}",
            related=tuple(Related("used again", path) for path in paths[1:]),
            proposals=tuple(tuple(Replace(path, one) for path in paths) for one in meant),
            # The name of a node that nothing else confirms may be the wrong one.
            unsafe=not cabled.issuperset(meant),
        )


@rule("SG242", Severity.NOTE, unless="SG201 SG202 SG203 SG241 SG243 SG256")
def node_of_no_group(groups: Groups, nodes: Nodes) -> Faults:
    """A node outside all groups is idle: it gets its network and services, and no engine."""
    members = {name for group in groups for name in group.nodes}
    idle = [node.name for node in nodes if node.name not in members]
    if groups and idle:
        yield Fault(
            f"no group has {listed(idle, 'and')}, so no engine runs there",
            ("groups",),
            "to serve there, write their names under 'nodes' of a group",
            at_key=True,
            nodes=tuple(idle),
        )


@rule("SG243", unless="SG240")
def like_another_group(groups: Groups) -> Faults:
    """`same_as` names a group of the same size with a model and an engine of its own."""
    written = [group.name for group in groups if group.same_as is None]
    by_name = {group.name: group for group in groups}
    for group in groups:
        other = by_name.get(group.same_as or "")
        if group.same_as is None or (group.source is not None and other is None):
            continue
        path = (*group.path, "same_as")
        meant: Sequence[str] = ()
        if other is group:
            message = f"group '{group.name}' names itself under 'same_as'"
            others = [name for name in written if name != group.name]
            known = f"; the groups with a model are {named(others)}" if others else ""
            help_text = f"name another group, or write 'model' and 'engine'{known}"
        elif other is None:
            guess = did_you_mean(group.same_as, written)
            meant = misspelt(group.same_as, all_nearest(group.same_as, written))
            message = f"there is no group '{group.same_as}'"
            some = f"the groups with a model are {named(written)}"
            help_text = guess or (some if written else "write 'model' and 'engine'")
        elif group.source is None:
            message = f"'{group.same_as}' has no model and engine of its own"
            meant = [other.same_as] if other.same_as in written else []
            help_text = (
                f"write 'same_as: {other.same_as}'" if meant else "write 'model' and 'engine'"
            )
        elif _size(other) != _size(group):
            message = f"'{group.name}' has {_count(group)}, and '{other.name}' {_count(other)}"
            help_text = "give it as many, or a 'model' and an 'engine' of its own"
        else:
            continue
        yield Fault(message, path, help_text, proposals=replacements(path, meant))


def _size(group: DeclaredGroup) -> int:
    return len({*group.nodes})


def _count(group: DeclaredGroup) -> str:
    return f"{_size(group)} node{'s' if _size(group) > 1 else ''}"


@rule("SG244", unless="SG201 SG241")
def group_without_a_cable(groups: Groups, topology: Topology, fabric: Fabric) -> Faults:
    """Cables join the nodes of a group."""
    for group in _with_nodes(groups):
        if group_kind(fabric, group.nodes):
            continue
        inside = set(group.nodes)
        joined = [set(pair) for pair in fabric.pairs if inside.issuperset(pair)]
        missing = next((p for p in combinations(group.nodes, 2) if set(p) not in joined), None)
        a, b = missing or (group.nodes[0], group.nodes[-1])
        yield Fault(
            f"no cable joins {a} and {b}",
            (*group.path, "nodes"),
            "put nodes into a group that a cable joins",
            nodes=tuple(group.nodes),
        )


@rule("SG248", unless="SG201 SG241")
def service_of_one_engine(groups: Groups, services: Mapping[str, Settings]) -> Faults:
    """With groups, a service that needs a single address requires the gateway."""
    for name in services:
        if SERVICES[name].IS_ON_HEAD and GATEWAY not in services:
            yield Fault(
                f"'{name}' can use only one engine, and the site has several",
                ("services", name),
                "write 'gateway: true' under 'services'",
                at_key=True,
                proposals=((Add(("services", GATEWAY), True),),),
            )


@rule("SG251", unless="SG240")
def active_alternative(groups: Groups, document: Document) -> Faults:
    """The active engine is the group's own or one of its alternatives."""
    for group in _with_nodes(groups):
        names = [group.name, *group.alternatives]
        active = value_at(document.data, group.entry).get("active", group.name)
        if active not in names:
            path = (*group.entry, "active")
            guess = did_you_mean(active, names)
            yield Fault(
                f"'{active}' is neither '{group.name}' nor one of its alternatives",
                path,
                guess or f"write {listed(names)}, or add it to 'alternatives'",
                proposals=replacements(path, misspelt(active, all_nearest(active, names))),
            )


@rule("SG252", unless="SG240 SG243")
def alternatives_as_slurm_jobs(groups: Groups) -> Faults:
    """Alternatives are started by systemd units."""
    engines = {g.written: g.engine for g in groups if g.alternatives and g.engine}
    for place, engine in engines.items():
        if engine.launcher != "slurm":
            continue
        path = (*place, "engine", "launcher")
        first = ENGINE_TRAITS[engine.name].launchers[0]
        yield Fault(
            "a Slurm job can't take turns with others",
            path,
            f"write 'launcher: {first}'",
            proposals=replacements(path, [first]),
        )


@rule("SG249", Severity.WARNING, unless="SG240 SG243")
def name_of_two_models(groups: Groups) -> Faults:
    """Groups that serve the same name serve the same model."""
    first: dict[str, tuple[DeclaredGroup, DeclaredModel, KeyPath]] = {}
    for group, model, name, path in _served(groups):
        known, other, place = first.setdefault(name, (group, model, path))
        is_other = (other.name, other.source) != (model.name, model.source)
        if is_other and known.runs_beside(group):
            yield Fault(
                f"{known.name} and {group.name} serve two models as '{name}'",
                path,
                "give one of them another name",
                related=(Related(known.name, place),),
            )


def _served(groups: Groups) -> Iterator[tuple[DeclaredGroup, DeclaredModel, str, KeyPath]]:
    """Each group with its model, a name that clients may use, and the place that states it."""
    for group in groups:
        model = group.model
        source = source_of(model) if model else None
        if model is None or source is None:
            continue
        place = (*group.written, "model")
        named = (*place, "served_name") if model.served_name else place
        yield group, model, served_name(model, source), named
        for index, alias in enumerate(model.aliases):
            yield group, model, alias, (*place, "aliases", index)


@rule("SG255", Severity.WARNING, unless="SG240 SG243 SG249")
def replicas_unlike(groups: Groups, services: Mapping[str, Settings]) -> Faults:
    """Replicas behind the gateway have the same context length."""
    first: dict[str, tuple[DeclaredGroup, int]] = {}
    for group, model, name, path in _served(groups) if GATEWAY in services else ():
        length = _context_length(model)
        if length is None or "aliases" in path:
            continue
        known, other = first.setdefault(name, (group, length))
        if other != length and known.runs_beside(group):
            yield Fault(
                f"{known.name} takes {other} tokens as '{name}', and {group.name} {length}",
                (*group.written, "model", "context_length")
                if model.context_length
                else (*group.written, "model"),
                f"write 'context_length: {min(other, length)}' in both, "
                f"'same_as: {known.name}', or another 'served_name'",
                related=(Related(known.name, (*known.path, "name")),),
            )


def _context_length(model: DeclaredModel) -> int | None:
    """How long a prompt may be, if known."""
    if "context_length" in model.automatic:
        return None
    known = shape(model)
    return model.context_length or (known.max_context if known else None)
