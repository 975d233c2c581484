"""What a change does to the groups of a site: which engines stop and start, in which order.

A name remains served if something that serves it now can run until something else does: what keeps
running until then, and everything that needs its nodes, comes later.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from generator.activation import Effect
from generator.bundle.tree import Tree
from generator.records import record
from generator.review.changes import FileChange
from generator.site import Part, Site


@record
class Wave:
    """Engines that stop, by the previous names of their groups, and those that start afterwards."""

    stops: tuple[str, ...]
    starts: tuple[Part, ...]


@record
class Serving:
    """The groups that ran before and those that will run, in one wave or two.

    `before` has the nodes of each running group, the head first. Of alternatives, only the running
    ones count; `switched` are those that replace another one, with the name of that. `is_down` are
    the names that are not served for a while, and `lost` those that are no longer served.
    `has_one_address` means that a gateway forwards requests to whatever serves a name.
    """

    before: Mapping[str, tuple[str, ...]]
    waves: tuple[Wave, ...]
    restarting: tuple[str, ...]
    gone: tuple[str, ...]
    switched: tuple[tuple[Part, str], ...]
    is_down: tuple[str, ...]
    lost: tuple[str, ...]
    has_one_address: bool

    @property
    def stopping(self) -> tuple[str, ...]:
        """All groups whose engines stop."""
        return (*self.gone, *self.restarting, *(name for _, name in self.switched))

    @property
    def interrupts(self) -> bool:
        """Whether a name of the site is not served for a while, as far as that is known."""
        return bool(self.is_down or self.switched or not self.before)

    @property
    def later(self) -> frozenset[str]:
        """The nodes on which nothing is done before the second wave."""
        waves = self.waves[1:]
        held = (node for wave in waves for name in wave.stops for node in self.before[name])
        taken = (node for wave in waves for group in wave.starts for node in _nodes(group))
        return frozenset([*held, *taken])


def serving(
    site: Site,
    before: Tree,
    old: Site | None,
    files: Mapping[str, Sequence[FileChange]],
    unplugged: Collection[str],
) -> Serving:
    """What happens to the groups; `files` are the changes on each node."""
    known = _running_in(before, old)
    active = [part for part in site.groups if part.is_active]
    changed = [
        part for part in active if part.group in known and _restarts(part, known, files, unplugged)
    ]
    switched = [(part, name) for part in active for name in _replaced(part, known)]
    names = {part.group for part in active} | {name for _, name in switched}
    gone = [name for name in known if name not in names]
    others = [part for part, _ in switched]
    fresh = [part for part in active if part.group not in known and part not in others]
    staying = [part for part in active if part.group in known and part not in changed]
    was = _names(old, known, changed)
    plan = _Plan(known, was, gone, changed, fresh)
    answers = {part.model.served_name for part in active}
    every = answers.union(*(part.model.aliases for part in active))
    stays = {part.model.served_name for part in staying}
    stopped = [*gone, *(part.group for part in changed), *(name for _, name in switched)]
    interrupted = dict.fromkeys(was[name] for name in stopped if was[name] not in stays)
    is_down = tuple(name for name in interrupted if name in answers and not plan.keeps(name))
    return Serving(
        before=known,
        waves=plan.waves(),
        restarting=tuple(part.group for part in changed),
        gone=tuple(gone),
        switched=tuple(switched),
        is_down=is_down,
        lost=tuple(name for name in [*interrupted, *_aliases(old)] if name and name not in every),
        has_one_address=all("gateway" in one.services for one in (site, old or site)),
    )


class _Plan:
    """Which groups stop in the first wave, and which run until that has started."""

    def __init__(
        self,
        before: Mapping[str, tuple[str, ...]],
        was: Mapping[str, str],
        gone: Sequence[str],
        changed: Sequence[Part],
        fresh: Sequence[Part],
    ) -> None:
        self.before = before
        self.was = was
        # Keeping a removed group running delays nothing; of the others, the last ones are best
        # kept.
        self.stopping = [*gone, *(part.group for part in reversed(changed))]
        self.order = [*gone, *(part.group for part in changed)]
        self.starting = [*changed, *fresh]
        self.held: frozenset[str] = frozenset()
        self.kept: list[str] = []

    def keeps(self, served_name: str) -> bool:
        """Whether a name can be served all the time, by holding back what has to wait for that."""
        for name in self.stopping:
            if self.was[name] == served_name:
                held = self._closed(self.held | {name})
                first = {part.model.served_name for part in self._starts(held, is_first=True)}
                if {*self.kept, served_name} <= first:
                    self.held = held
                    self.kept.append(served_name)
                    return True
        return False

    def waves(self) -> tuple[Wave, ...]:
        """The first wave and, if anything runs until then, the second."""
        found = (
            Wave(
                tuple(name for name in self.order if (name in self.held) is not is_first),
                tuple(self._starts(self.held, is_first)),
            )
            for is_first in (True, False)
        )
        return tuple(wave for wave in found if wave.stops or wave.starts)

    def _closed(self, held: frozenset[str]) -> frozenset[str]:
        """The held groups and all that can't stop or start meanwhile, because they share a node."""
        nodes = {node for name in held for node in self.before[name]}
        taking = {part.group for part in self.starting if not nodes.isdisjoint(_nodes(part))}
        sharing = {name for name in self.stopping if not nodes.isdisjoint(self.before[name])}
        more = held | sharing | (taking & {*self.stopping})
        return held if more == held else self._closed(more)

    def _starts(self, held: frozenset[str], is_first: bool) -> list[Part]:
        """What starts while the held groups run, or after them."""
        nodes = {node for name in held for node in self.before[name]}
        return [
            part
            for part in self.starting
            if (part.group not in held and nodes.isdisjoint(_nodes(part))) is is_first
        ]


def _nodes(part: Part) -> list[str]:
    return [node.name for node in part.nodes]


def _replaced(part: Part, before: Mapping[str, Sequence[str]]) -> list[str]:
    """The alternative that ran on its nodes until now, if that was another one."""
    if part.group in before:
        return []
    nodes = {*_nodes(part)}
    return [name for name in part.alternatives if {*before.get(name, ())} == nodes]


def _names(
    old: Site | None, before: Mapping[str, Sequence[str]], changed: Iterable[Part]
) -> dict[str, str]:
    """What each group served; if that is not known, what it serves now, or nothing."""
    known = dict.fromkeys(before, "")
    found = old.groups if old is not None else changed
    return known | {part.group: part.model.served_name for part in found}


def _aliases(old: Site | None) -> list[str]:
    """The aliases that were served, as far as that is known."""
    active = [part for part in old.groups if part.is_active] if old is not None else []
    return list(dict.fromkeys(alias for part in active for alias in part.model.aliases))


def _running_in(before: Tree, old: Site | None) -> dict[str, tuple[str, ...]]:
    """The nodes of each running group of a bundle, the head first."""
    if old is not None:
        return {part.group: tuple(_nodes(part)) for part in old.groups if part.is_active}
    found: dict[str, tuple[str, ...]] = {}
    waiting: set[str] = set()
    for path, file in before.items():
        node, _, rest = path.partition("/")
        if rest == _MACHINE:
            waiting |= _waiting(file.text)
        elif rest.startswith(_FOLDER) and rest.endswith(_FACTS):
            name = rest.removeprefix(_FOLDER).removesuffix(_FACTS)
            known = found.get(name, ())
            is_head = "\nRANK=0\n" in file.text
            found[name] = (node, *known) if is_head else (*known, node)
    return {name: nodes for name, nodes in found.items() if name not in waiting}


_FOLDER, _FACTS, _MACHINE = "etc/sparkgen/groups/", ".node.env", "etc/sparkgen/node.env"
_ALTERNATIVES = "ALTERNATIVES="


def _waiting(facts: str) -> set[str]:
    """The alternatives on a node that wait for their turn."""
    lines = (line for line in facts.splitlines() if line.startswith(_ALTERNATIVES))
    return {name for line in lines for name in line.removeprefix(_ALTERNATIVES).split()[1:]}


def _restarts(
    part: Part,
    before: Mapping[str, Sequence[str]],
    files: Mapping[str, Sequence[FileChange]],
    unplugged: Collection[str],
) -> bool:
    nodes = _nodes(part)
    if set(nodes) != set(before[part.group]) or not set(nodes).isdisjoint(unplugged):
        return True
    return any(
        file.activation.effect >= Effect.RESTART and is_about(file.path, part.group)
        for node in nodes
        for file in files.get(node, ())
    )


def is_about(path: str, group: str) -> bool:
    """Whether a file of a node belongs to a group, or to all engines there."""
    _, _, rest = path.partition("/")
    if "/groups/" not in rest:
        return True
    name = rest.partition("/groups/")[2]
    return name.startswith((f"{group}/", f"{group}."))
