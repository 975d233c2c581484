"""Rules about what an engine takes of a node's memory beside its share."""

from collections.abc import Iterable, Iterator, Sequence

from generator.diagnostics import Severity, listed
from generator.fit.assessment import LEAST_GIB, Fit
from generator.fit.beside import Beside, beside
from generator.fit.formulas import GIB
from generator.records import record
from generator.rules.registry import Fault, rule
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, DeclaredNode

_UNKNOWN = "SG222 SG501 SG503 SG504 SG506 SG507 SG510 SG511 SG512 SG513 SG529 SG532 SG603"


@rule("SG688", unless="SG520 SG523 SG678")
def pinned_beside_the_engine(
    nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine, fits: Sequence[Fit]
) -> Iterator[Fault]:
    """What the engine takes beside its share leaves the system enough memory."""
    taken = [each for each in beside(model, engine) if each.taken != "filled"]
    if taken:
        left = _tightest(nodes, engine, fits, taken)
        yield from left.fault(taken, taken, "from the start")


@rule(
    "SG539",
    Severity.WARNING,
    unless=f"SG520 SG523 SG524 SG525 SG678 SG688 {_UNKNOWN}",
    suppressed_by="SG670",
)
def filled_beside_the_engine(
    nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine, fits: Sequence[Fit]
) -> Iterator[Fault]:
    """What fills beside the engine's share while it serves leaves the system enough memory."""
    taken = beside(model, engine)
    filled = [each for each in taken if each.taken == "filled"]
    if filled:
        left = _tightest(nodes, engine, fits, taken)
        yield from left.fault(filled, taken, "while it serves")


@record
class _Left:
    """A node, what its system has while nothing is taken beside the share, and the room; in GiB."""

    node: str
    free: float
    room: float
    is_head: bool

    def after(self, taken: Iterable[Beside]) -> float:
        """What the system has beside these."""
        return self.free - sum(each.bytes(self.is_head, self.room * GIB) for each in taken) / GIB

    def fault(self, named: Sequence[Beside], taken: Sequence[Beside], when: str) -> Iterator[Fault]:
        """The finding at the setting that takes the most, if all leave the system too little."""
        left = self.after(taken)
        if left >= LEAST_GIB:
            return
        most = min(named, key=lambda each: self.after([each]))
        names = listed(dict.fromkeys(f"'{each.name}'" for each in named), "and")
        allowed = int(left + self.free - self.after([most]) - LEAST_GIB)
        less = "write a smaller 'engine.memory_utilization'"
        if allowed > 0:
            less = f"let '{most.name}' take {allowed} GiB or less, or {less}"
        yield Fault(
            f"{self.node} has too little memory {when}: {self.free - self.after(named):.1f} GiB "
            f"for {names} outside the engine's share leave {max(left, 0.0):.1f} GiB to the system, "
            f"and it needs {LEAST_GIB:.0f}",
            most.path,
            less,
            nodes=(self.node,),
        )


def _tightest(
    nodes: Sequence[DeclaredNode],
    engine: DeclaredEngine,
    fits: Sequence[Fit],
    taken: Sequence[Beside],
) -> _Left:
    """Computed for the model if that is known, else from the engine's share alone."""
    moved = sum(each.amount for each in taken if each.taken == "moved") / GIB
    found = [
        _Left(
            node.node, node.system_gib + node.beside_gib + moved, node.kv_room_gib, node.rank == 0
        )
        for fit in fits
        for node in fit.nodes
    ] or [
        _Left(node.name, node.visible_gib * (1 - engine.memory_utilization), 0.0, index == 0)
        for index, node in enumerate(nodes)
    ]
    return min(found, key=lambda left: left.after(taken))
