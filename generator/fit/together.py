"""What several engines on a node hold together."""

from collections.abc import Iterable, Sequence

from generator.columns import columns
from generator.fit.assessment import Fit, held_share
from generator.records import record
from generator.sitefile.declaration import DeclaredEngine, DeclaredNode

_HEAD = ("NODE", "ENGINES IN THE ORDER OF THEIR START", "TOGETHER", "SYSTEM")


@record
class GroupFit:
    """A group and how its model fits; groups that take turns have the same slot."""

    group: str
    slot: str
    nodes: tuple[DeclaredNode, ...]
    engine: DeclaredEngine
    fit: Fit | None


@record
class HeldBy:
    """What one engine holds, in GiB; of engines that take turns, the one that holds the most."""

    group: str
    gib: float


@record
class SharedNode:
    """A node with several engines, in the order in which they start; memory in GiB."""

    node: str
    engines: tuple[HeldBy, ...]
    together_gib: float
    system_gib: float


def shared_nodes(parts: Sequence[GroupFit]) -> list[SharedNode]:
    """The nodes that several engines share at the same time."""
    known = {node.name: node for part in parts for node in part.nodes}
    found = []
    for node in known.values():
        here = [part for part in parts if any(each.name == node.name for each in part.nodes)]
        engines = tuple(_largest(here, node))
        if len(engines) > 1:
            held = sum(engine.gib for engine in engines)
            left = node.visible_gib - node.other_gib - held
            found.append(SharedNode(node.name, engines, round(held, 2), round(left, 2)))
    return found


def _largest(parts: Iterable[GroupFit], node: DeclaredNode) -> Iterable[HeldBy]:
    """The engine of each slot that holds the most."""
    slots: dict[str, HeldBy] = {}
    for part in parts:
        share = held_share(part.engine.name, part.engine.memory_utilization, part.fit, node.name)
        held = HeldBy(part.group, round(share * node.visible_gib, 2))
        if part.slot not in slots or held.gib > slots[part.slot].gib:
            slots[part.slot] = held
    return slots.values()


def table(nodes: Sequence[SharedNode], width: int | None) -> str:
    """A row for each shared node."""
    rows = [
        (
            node.node,
            ", ".join(f"{engine.group} {engine.gib:.1f}" for engine in node.engines),
            f"{node.together_gib:.1f}",
            f"{node.system_gib:.1f}",
        )
        for node in nodes
    ]
    return f"Engines that share a node, in GiB:\n\n{columns(_HEAD, rows, width)}\n"
