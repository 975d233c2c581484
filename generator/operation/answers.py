"""Who answers to which name in a cluster."""

from collections.abc import Iterable, Iterator

from generator.operation.conditions import is_answered
from generator.operation.needed import Change
from generator.operation.state import Cluster, Desired, Door, Engine

# The addresses at which a name is answered, each with the engine behind it.
Answers = frozenset[tuple[str, str]]


def engines_in(found: Answers) -> int:
    """How many engines answer."""
    return len({group for _, group in found})


class View:
    """Who answers to which name, as clients of the one bundle or the other see it."""

    def __init__(self, change: Change) -> None:
        self.successors = dict(successors(change))
        self._behind: dict[str, list[tuple[Desired, Door, Engine]]] = {}
        self._at: dict[str, set[str]] = {}
        for bundle in (change.before, change.after):
            for door in bundle.doors:
                for engine in (bundle.by_group[group] for group in door.groups):
                    own = [name for name in engine.names if name in door.names]
                    was = [old for old, new in self.successors.items() if new in own]
                    for name in (*own, *was):
                        self._behind.setdefault(name, []).append((bundle, door, engine))
                        for node in (door.node, engine.nodes[0]):
                            self._at.setdefault(node, set()).add(name)
        self._after = change.after

    def answers(self, now: Cluster, names: Iterable[str] | None = None) -> dict[str, Answers]:
        """The answers to these names, or to all."""
        return {
            name: frozenset(
                (door.url, engine.group)
                for bundle, door, engine in self._behind[name]
                if is_answered(now, bundle, door, engine)
            )
            for name in (self._behind if names is None else names)
        }

    def promised(self, name: str) -> int:
        """How many engines answer to a name once the change is done."""
        behind = self._behind[name]
        return len({e.group for b, _, e in behind if b is self._after and e.is_active})

    def changed(self, before: Cluster, after: Cluster, node: str) -> Iterable[str]:
        """The names to which something else may answer now that something was done on a node."""
        if before.drained.keys() != after.drained.keys():
            return self._behind
        names = set[str]()
        was, now = before.nodes.get(node), after.nodes.get(node)
        if was and now and (was.running != now.running or was.address != now.address):
            names |= self._at.get(node, set())
        if before.serving is not after.serving:
            both = {**before.serving, **after.serving}
            places = (p for p in both if before.serving.get(p) != after.serving.get(p))
            found = {name for place in places for name in both[place].names}
            names |= found | {old for old, new in self.successors.items() if new in found}
        return names & self._behind.keys()


def successors(change: Change) -> Iterator[tuple[str, str]]:
    """The names that nobody answers to any more, and what the same engine answers to then."""
    after = {name for door in change.after.doors for name in door.names}
    for group, engine in change.before.running.items():
        if new := change.switched.get(group) or change.after.running.get(group):
            yield from ((name, new.names[0]) for name in engine.names if name not in after)
