"""Who answers to which name in a cluster."""

from collections.abc import Iterable, Iterator, Set

from generator.operation.conditions import answering, are_running
from generator.operation.needed import Change
from generator.operation.state import Cluster, Desired, Door, LiveEngine
from generator.records import replace


class View:
    """Who answers to which name, as clients of the one bundle or the other see it."""

    def __init__(self, change: Change) -> None:
        self.successors = dict(successors(change))
        self._behind: dict[str, list[tuple[Desired, Door, LiveEngine]]] = {}
        # Those that may change with what is done at a node, or with the drain of a group there.
        self._at: dict[str, set[str]] = {}
        for bundle in (change.before, change.after):
            for door in bundle.doors:
                for engine in (bundle.by_group[group] for group in door.groups):
                    own = [name for name in engine.names if name in door.names]
                    was = [old for old, new in self.successors.items() if new in own]
                    for name in (*own, *was):
                        self._behind.setdefault(name, []).append((bundle, door, engine))
                    for place in (door.node, *engine.nodes, f"{door.node} {engine.group}"):
                        self._at.setdefault(place, set()).update(own, was)
        self._after = change.after
        self._starts: dict[str, list[LiveEngine]] = {}
        for engine in change.starting:
            for name in engine.names:
                self._starts.setdefault(name, []).append(engine)

    def answers(
        self, now: Cluster, names: Iterable[str] | None = None
    ) -> dict[str, Set[tuple[str, str]]]:
        """The addresses at which these names, or all, are answered, with the engines behind."""
        return {
            name: frozenset(
                (door.url, engine.group)
                for bundle, door, known in self._behind[name]
                if (engine := answering(now, bundle, door, known))
            )
            for name in (self._behind if names is None else names)
        }

    def groups(self, now: Cluster, names: Iterable[str] | None = None) -> dict[str, Set[str]]:
        """The groups whose engines answer to these names, or to all."""
        return {n: {g for _, g in found} for n, found in self.answers(now, names).items()}

    def are_loading(self, now: Cluster, names: Iterable[str]) -> set[str]:
        """Those of these names for which nothing has to be done until their engine serves."""
        found = set()
        for name in names:
            begun = {}
            for engine in self._starts.get(self.successors.get(name, name), ()):
                folders = ((node, self._after.folders[node]) for node in engine.nodes)
                ranks = {node: folder.programs[engine.unit] for node, folder in folders}
                if now.serving.get(engine.place) != engine and not are_running(ranks)(now):
                    begun[engine.place] = engine
            if begun and not self.groups(now, [name])[name]:
                loaded = replace(now, serving={**now.serving, **begun})
                found |= {name} if self.groups(loaded, [name])[name] else set()
        return found

    def promised(self, name: str) -> int:
        """How many engines answer to a name once the change is done."""
        behind = self._behind[name]
        return len({e.group for b, _, e in behind if b is self._after and e.is_active})

    def changed(self, before: Cluster, after: Cluster, node: str) -> Iterable[str]:
        """The names to which something else may answer now that something was done on a node."""
        drained = before.drained ^ after.drained
        names = {name for each in drained for name in self._at.get(" ".join(each), ())}
        was, now = before.nodes.get(node), after.nodes.get(node)
        is_like = was and now and (was.running, was.address) == (now.running, now.address)
        if before.serving is after.serving and (is_like or not was):
            return names
        return names | self._at.get(node, set()) if node else self._behind


def stray(change: Change) -> Iterator[tuple[str, str, LiveEngine]]:
    """The names that go from an address, where an engine answers all the same, whatever is asked.

    Each with the address and that engine.
    """
    after = change.after
    for door in change.before.doors:
        for new in after.doors:
            groups = [after.by_group[name] for name in new.groups]
            engine = next((e for e in groups if e.is_active and e.ignores_names), None)
            if engine and new.url == door.url and not new.checks_names:
                yield from ((n, new.url, engine) for n in door.names if n not in new.names)


def successors(change: Change) -> Iterator[tuple[str, str]]:
    """The names that nobody answers to any more, and the new one that the same engine has then."""
    both = (change.before, change.after)
    before, after = ({name for door in d.doors for name in door.names} for d in both)
    for group, engine in change.before.running.items():
        new = change.continued.get(group)
        if names := [name for name in new.names if name not in before] if new else ():
            yield from ((name, names[0]) for name in engine.names if name not in after)
