"""Which engines go on until others serve their names.

A name goes on being answered if something that serves it now can run until something else does.
What is held for that, and all that needs its nodes, comes later.
"""

from collections.abc import Iterable, Sequence

from generator.operation.state import Engine
from generator.records import record


@record
class Held:
    """The groups whose engines stop later, and the names that are answered all the time."""

    groups: frozenset[str]
    names: frozenset[str]


def held(stopping: Sequence[Engine], starting: Sequence[Engine], staying: Iterable[Engine]) -> Held:
    """What is held of the engines that stop; those that stop for good come first in `stopping`."""
    kept = {name for engine in staying for name in engine.names}
    after = {name for engine in starting for name in engine.names}
    names = dict.fromkeys(name for engine in stopping for name in engine.names)
    # Keeping what goes for good delays nothing; of the others, the last ones are best kept.
    gone = [e for e in stopping if e.group not in {each.group for each in starting}]
    order = [*gone, *(engine for engine in reversed(stopping) if engine not in gone)]
    found = Held(frozenset(), frozenset(kept & {*names}))
    for name in names:
        if name in after and name not in kept:
            found = _with(name, found, order, starting, kept)
    return found


def _with(
    name: str, known: Held, order: Sequence[Engine], starting: Sequence[Engine], kept: set[str]
) -> Held:
    """The same, with what has to be held so that a name is answered all the time, if it can be."""
    wanted = (known.names - kept) | {name}
    # If what starts later can't be down later too, it is down longer.
    for delayed in (starting, ()):
        for engine in (each for each in order if name in each.names):
            groups = _closed(known.groups | {engine.group}, order, delayed)
            taken = _nodes(e for e in order if e.group in groups)
            first = (each for each in starting if taken.isdisjoint(each.nodes))
            if wanted <= {each for e in first for each in e.names}:
                return Held(groups, known.names | {name})
    return known


def _closed(
    groups: frozenset[str], stopping: Sequence[Engine], starting: Sequence[Engine]
) -> frozenset[str]:
    """The held groups and all that can't stop or start meanwhile, because they share a node."""
    stops = {engine.group for engine in stopping}
    while True:
        taken = _nodes(engine for engine in stopping if engine.group in groups)
        sharing = {e.group for e in stopping if not taken.isdisjoint(e.nodes)}
        taking = {e.group for e in starting if not taken.isdisjoint(e.nodes)}
        more = groups | sharing | (taking & stops)
        if more == groups:
            return groups
        groups = more


def _nodes(engines: Iterable[Engine]) -> set[str]:
    return {node for engine in engines for node in engine.nodes}
