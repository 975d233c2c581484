"""The kinds of topology that the nodes and cables of a site file can have, if it names none."""

from collections.abc import Iterator
from typing import Any

from generator.sitefile.sections import GROUPS
from generator.sitefile.source import value_at
from generator.sitefile.topology_kinds import kind_traits

Cables = list[tuple[str, ...]]


def possible_kinds(data: Any) -> list[str]:
    """The possible kinds, the most likely first, whatever else is wrong with the data."""
    names = [str(value_at(node, ("name",))) for node in _entries(data, "nodes")]
    cables = [
        tuple(str(end).partition(":")[0] for end in _entries(cable, "endpoints"))
        for cable in _entries(data, "cabling")
    ]
    if not names:
        return list(kind_traits())
    return list(_fitting(names, cables, _groups(data)))


def _fitting(names: list[str], cables: Cables, groups: list[int]) -> Iterator[str]:
    kinds = kind_traits().items()
    switched = [name for name, kind in kinds if kind.switched]
    if cables and all(any(end not in names for end in cable) for cable in cables):
        yield from switched
        return
    count = len(names)
    if groups and cables:
        # Nodes without a cable are alone in their groups.
        count = len({end for cable in cables for end in cable})
    elif groups and max(groups) == 1:
        count = 1
    if groups and count > 2 and _are_pairs(cables):
        yield from (name for name, kind in kinds if kind.groups_alone)
        return
    direct = [
        name for name, kind in kinds if kind.connects_directly and kind.fewest <= count <= kind.most
    ]
    yield from direct
    if not (direct and (cables or count == 1)):
        yield from switched


def _are_pairs(cables: Cables) -> bool:
    """Whether the cables connect nodes only in pairs."""
    joined = {frozenset(cable) for cable in cables}
    return len({end for pair in joined for end in pair}) == 2 * len(joined)


def _groups(data: Any) -> list[int]:
    """The number of nodes in each group; empty if there are no groups."""
    return [len(_entries(group, "nodes")) for group in _entries(data, GROUPS)]


def _entries(data: Any, key: str) -> list[Any]:
    found = value_at(data, (key,))
    return found if isinstance(found, list) else []
