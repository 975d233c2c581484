"""What to write when the engines on a node take too much of its memory together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import KeyPath, Proposal, Replace, listed
from generator.fit.alternatives import Deployment
from generator.fit.assessment import held_share
from generator.fit.division import divided, least_share, sharing
from generator.records import record
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault
from generator.sitefile.declaration import DeclaredEngine, DeclaredGroup
from generator.sitefile.sections import GROUPS
from generator.sitefile.source import Document, value_at


@record
class SharedMemory:
    """How much of a node's memory its engines take together, and how much they may.

    `shares` has only the largest of the engines that take turns.
    """

    node: str
    total: float
    most: float
    shares: Mapping[str, float]
    shown: tuple[str, ...]
    last: int
    groups: tuple[DeclaredGroup, ...]

    def fault(self, taken: str, advice: "Advice") -> Fault:
        """The finding, at the last of the groups."""
        return Fault(
            f"the engines of {self.node} {taken} ({', '.join(self.shown)})",
            (GROUPS, self.last, "name"),
            advice.words,
            proposals=advice.proposals,
            unsafe=advice.unsafe,
            nodes=(self.node,),
        )


@record
class Advice:
    """What to write; `unsafe` if it changes a share that the site states."""

    words: str
    proposals: tuple[Proposal, ...] = ()
    unsafe: bool = False


@record
class _Member:
    """A group that shares the node, and the least memory that is enough for it.

    `beside` is what its engine takes on top of its configured share, which belongs at `path`.
    """

    group: DeclaredGroup
    engine: DeclaredEngine
    path: KeyPath
    is_written: bool
    least: float
    beside: float


def division(shared: SharedMemory, nodes: Nodes, document: Document) -> Advice:
    """Shares that hold the models and leave the system enough, if the needs are known.

    Only shares that the site does not state are set, or else the largest is lowered, if that is
    enough.
    """
    most = int(shared.most * 100) / 100
    members = list(_members(shared, nodes, document))
    known = [f"{member.group.name} needs {round(member.least, 3)}" for member in members]
    words = f"lower 'memory_utilization' of some, to {most} together"
    general = Advice(": ".join(filter(None, (words, listed(known, "and")))))
    if len(members) < len(shared.groups):
        return general
    least = _largest((member.group.slot, member.least) for member in members)
    if sum(least.values()) > most:
        figures = ", ".join(f"{slot} {round(share, 3)}" for slot, share in least.items())
        words = (
            f"use other nodes or smaller models: together they need more than {most} ({figures})"
        )
        return Advice(words)
    slots = {group.name: group.slot for group in shared.groups}
    held = {slots[name]: share for name, share in shared.shares.items()}
    free = {member.group.slot for member in members if not member.is_written}
    free = free or {max(held, key=lambda slot: held[slot])}
    growing = {
        member.group.slot
        for member in members
        if not ENGINE_TRAITS[member.engine.name].allocates_all
    }
    kept = sum(share for slot, share in held.items() if slot not in free)
    shares = divided({slot: least[slot] for slot in free}, growing, most - kept)
    shares = shares or divided(least, growing, most)
    found = _advice(
        [(member, share) for member in members if (share := shares.get(member.group.slot))]
    )
    return found or general


def tokens_key(engine: DeclaredEngine) -> str:
    """What limits the engine's cache in tokens, so that it takes less than its share allows."""
    traits = ENGINE_TRAITS[engine.name]
    return traits.tokens_flag or traits.tokens_setting


def _members(shared: SharedMemory, nodes: Nodes, document: Document) -> Iterator[_Member]:
    """The groups whose needs are known."""
    by_name = {node.name: node for node in nodes}
    for declared in shared.groups:
        model, engine = declared.model, declared.engine
        if model is None or engine is None:
            continue
        group = Deployment(tuple(by_name[name] for name in declared.nodes), model, engine)
        share = least_share(group)
        if share is None:
            continue
        fit = sharing(group, share).assess() if tokens_key(engine) else None
        least = held_share(engine.name, share, fit, shared.node)
        path = (*declared.written, "engine", "memory_utilization")
        is_written = value_at(document.data, path) is not None
        yield _Member(declared, engine, path, is_written, least, least - share)


def _largest(shares: Iterable[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for slot, share in shares:
        found[slot] = max(share, found.get(slot, 0.0))
    return found


def _advice(found: Sequence[tuple[_Member, float]]) -> Advice | None:
    """The shares to lower."""
    shares = [(member, int((share - member.beside) * 100 + 1e-6) / 100) for member, share in found]
    changes = [each for each in shares if each[1] < each[0].engine.memory_utilization]
    if not changes:
        return None
    (member, share), *others = changes
    words = [f"'memory_utilization: {share}' for {member.group.name}"]
    words += [f"{share} for {member.group.name}" for member, share in others]
    return Advice(
        f"write {listed(words, 'and')}",
        # Groups that are like this one would get the same share.
        (tuple(Replace(member.path, share) for member, share in changes),)
        if all(member.group.is_own for member, _ in changes)
        else (),
        any(member.is_written for member, _ in changes),
    )
