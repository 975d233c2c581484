"""Rules about groups of ranks where not all nodes are neighbors: on a ring of four or more."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import Related, Severity, listed, removal, replacements
from generator.fabric.addressing import Fabric
from generator.fabric.groups import Communicator, gap, groups
from generator.fabric.nccl import connections
from generator.fabric.topologies import TOPOLOGIES
from generator.fabric.topologies.kind import Pair
from generator.fit.requested import context_ranks
from generator.models.architecture import shape
from generator.records import replace
from generator.rules import splits
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, Parallel, Topology

# Rules that the engine and its parallel sizes must meet first.
_LAYOUT = "SG602 SG603"


def _has_strangers(fabric: Fabric, topology: Topology) -> bool:
    """Whether some nodes can't reach each other over the fabric."""
    return connections(fabric, topology.halves).have_strangers


def _all_groups(engine: DeclaredEngine, model: DeclaredModel) -> list[Communicator]:
    """The groups that the engine creates for its parallel sizes."""
    known = shape(model)
    has_experts = known is None or known.experts != 0
    shared = ENGINE_TRAITS[engine.name].shares_experts and has_experts
    return list(groups(engine.parallel, context_ranks(engine), shared))


def _broken(
    names: Sequence[str], found: Iterable[Communicator], joined: Sequence[Pair]
) -> tuple[Communicator, Pair] | None:
    """The first group that the cables do not join, and two of its members without a cable."""
    for group in found:
        if missing := gap([names[rank] for rank in group.ranks], joined):
            return group, missing
    return None


@rule("SG219", unless=_LAYOUT)
def group_without_cables(
    engine: DeclaredEngine, model: DeclaredModel, nodes: Nodes, fabric: Fabric, topology: Topology
) -> Faults:
    """Each group of ranks is the whole ring in cable order, or the two ends of one cable."""
    if not _has_strangers(fabric, topology) or not ENGINE_TRAITS[engine.name].uses_nccl:
        return
    names, found = [node.name for node in nodes], _all_groups(engine, model)
    broken = _broken(names, found, fabric.pairs)
    if broken is None:
        return
    group, (a, b) = broken
    members = [names[rank] for rank in group.ranks]
    along = TOPOLOGIES[topology.kind].order(names, fabric.pairs)
    if not along:
        yield Fault(
            f"NCCL makes a ring of {listed(members, 'and')}, and no cable joins {a} and {b}",
            ("nodes",),
            "add one, or make groups of nodes that cables join in a ring, on a switch or in pairs",
            at_key=True,
            nodes=tuple(members),
        )
        return
    message = f"the {group.kind} group {listed(members, 'and')} has no cable from {a} to {b}"
    orders = [order for order in _orders(along) if not _broken(order, found, fabric.pairs)]
    if orders:
        fault = Fault(
            message,
            ("nodes",),
            f"list the nodes in the order {listed(orders[0], 'and')}",
            at_key=True,
            related=(Related("the sizes", ("engine", "parallel")),),
        )
    elif group.kind == "context":
        fault = _shared_by_others(message, engine, model)
    else:
        whole = groups(Parallel(tensor=len(nodes)), 1, False)
        splits_found = (
            [] if _broken(names, whole, fabric.pairs) else _whole_splits(len(nodes), model)
        )
        fault = _split_otherwise(message, engine.parallel, splits_found)
    yield replace(fault, nodes=tuple(members))


def _orders(along: Sequence[str]) -> Iterator[Sequence[str]]:
    """Other orders of the nodes with the same head: along the cables, and zigzag."""
    yield along
    if len(along) == 4:
        yield along[0], along[1], along[3], along[2]


def _shared_by_others(message: str, engine: DeclaredEngine, model: DeclaredModel) -> Fault:
    """At most as many ranks share a cache as hold copies of one KV head."""
    known = shape(model)
    heads = 1 if known is None or known.latent else known.kv_heads
    flags = ENGINE_TRAITS[engine.name].context_flags
    place = engine.settings.path(next(flag for flag in flags if flag in engine.settings))
    tensor = engine.parallel.tensor
    sizes = [size for size in (2, tensor) if size * heads <= tensor]
    return Fault(
        message,
        place,
        f"write {listed(map(str, sizes))}" if sizes else "remove it",
        proposals=replacements(place, sizes) or removal(place),
    )


def _split_otherwise(message: str, sizes: Parallel, found: Sequence[Mapping[str, int]]) -> Fault:
    return Fault(
        message,
        ("engine", "parallel"),
        f"write {listed(repr(splits.shown(split)) for split in found)}"
        if found
        else "split the model over all nodes alike, along the cables",
        at_key=True,
        proposals=splits.proposals(sizes, found),
    )


def _whole_splits(count: int, model: DeclaredModel) -> list[Mapping[str, int]]:
    """The splits by a single size over all nodes that the model allows."""
    sizes: list[Mapping[str, int]] = [{"tensor": count}, {"pipeline": count}]
    known = shape(model)
    legal = splits.legal_splits(Parallel(tensor=count), known) if known else sizes
    return [split for split in sizes if split in legal]


@rule("SG220", Severity.WARNING, unless=_LAYOUT + " SG219 SG223")
def unreported_layout(
    engine: DeclaredEngine, model: DeclaredModel, nodes: Nodes, fabric: Fabric, topology: Topology
) -> Faults:
    """On a ring of four or more, the model is split by tensors, as in reports of such rings."""
    traits = ENGINE_TRAITS[engine.name]
    if not _has_strangers(fabric, topology) or not traits.uses_nccl:
        return
    where = f"on a {topology.kind} of {len(nodes)}"
    if not traits.rings_reported:
        yield Fault(
            f"{traits.title} is not reported to work {where}", ("engine", "name"), _ONCE_IT_RUNS
        )
    elif engine.parallel.tensor < len(nodes):
        tensor = {"tensor": len(nodes)}
        in_use = f"'{splits.shown(tensor)}' is what others use; "
        yield Fault(
            f"this layout is not reported to work {where}",
            ("engine", "parallel"),
            (in_use if tensor in _whole_splits(len(nodes), model) else "") + _ONCE_IT_RUNS,
            at_key=True,
        )


_ONCE_IT_RUNS = "try it, and waive this if it works"


@rule("SG223", unless="SG602")
def ray_on_a_long_ring(
    engine: DeclaredEngine, nodes: Nodes, fabric: Fabric, topology: Topology
) -> Faults:
    """On a ring of four or more, the ranks are not started by Ray."""
    if engine.launcher == "ray" and _has_strangers(fabric, topology):
        yield Fault(
            f"on a {topology.kind} ranks must follow the cables, and Ray numbers them in any order",
            ("engine", "launcher"),
            "write 'launcher: native'",
            proposals=replacements(("engine", "launcher"), ["native"]),
        )


@rule("SG224")
def all_to_all_on_a_long_ring(
    engine: DeclaredEngine, nodes: Nodes, fabric: Fabric, topology: Topology
) -> Faults:
    """On a ring of four or more, no rank sends to all others."""
    if not _has_strangers(fabric, topology):
        return
    for flag, keeps in ENGINE_TRAITS[engine.name].exchanges.items():
        value, place = engine.settings.word(flag), engine.settings.path(flag)
        if value and value not in keeps:
            yield Fault(
                f"'{flag}: {value}' makes each rank send to all others, and not all are cabled",
                place,
                f"write '{flag}: {listed(keeps)}', or remove it",
                proposals=replacements(place, keeps) + removal(place),
            )
