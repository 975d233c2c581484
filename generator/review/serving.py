"""What a change does to the groups of a site: which engines restart, and in which order.

Where several groups serve one name, one of them goes on while the others restart.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from generator.activation import Effect
from generator.bundle.tree import Tree
from generator.records import record
from generator.review.changes import FileChange
from generator.site import Site


@record
class Serving:
    """The groups before and after: those that restart, in waves, those that are new, or gone.

    `before` has the nodes of each old group, the head first.
    """

    before: Mapping[str, tuple[str, ...]]
    waves: tuple[tuple[Site, ...], ...]
    new: tuple[Site, ...]
    gone: tuple[str, ...]
    staying: tuple[Site, ...]

    @property
    def restarting(self) -> tuple[Site, ...]:
        """All groups that restart."""
        return tuple(group for wave in self.waves for group in wave)

    @property
    def is_down(self) -> tuple[str, ...]:
        """The names that nobody answers to for a while."""
        return tuple(
            name
            for name, groups in _by_name(self.restarting).items()
            if not any(group.model.served_name == name for group in self.staying)
            and len({self._wave(group) for group in groups}) == 1
        )

    def _wave(self, group: Site) -> int:
        return next(index for index, wave in enumerate(self.waves) if group in wave)


def serving(
    site: Site,
    before: Tree,
    old: Site | None,
    files: Mapping[str, Sequence[FileChange]],
    unplugged: Collection[str],
) -> Serving:
    """What becomes of the groups; `files` are what changes on each node."""
    known = _groups_of(before, old)
    names = {part.group for part in site.groups}
    there = [part for part in site.groups if part.group in known]
    changed = [part for part in there if _restarts(part, known, files, unplugged)]
    return Serving(
        before=known,
        waves=tuple(_waves(changed, [part for part in there if part not in changed])),
        new=tuple(part for part in site.groups if part.group not in known),
        gone=tuple(name for name in known if name not in names),
        staying=tuple(part for part in there if part not in changed),
    )


def _groups_of(before: Tree, old: Site | None) -> dict[str, tuple[str, ...]]:
    """The nodes of each group of a bundle, the head first."""
    if old is not None:
        return {part.group: tuple(node.name for node in part.nodes) for part in old.groups}
    found: dict[str, tuple[str, ...]] = {}
    for path, file in before.items():
        node, _, rest = path.partition("/")
        if rest.startswith(_FOLDER) and rest.endswith(_FACTS):
            name = rest.removeprefix(_FOLDER).removesuffix(_FACTS)
            known = found.get(name, ())
            is_head = "\nRANK=0\n" in file.text
            found[name] = (node, *known) if is_head else (*known, node)
    return found


_FOLDER, _FACTS = "etc/sparkgen/groups/", ".node.env"


def _restarts(
    part: Site,
    before: Mapping[str, Sequence[str]],
    files: Mapping[str, Sequence[FileChange]],
    unplugged: Collection[str],
) -> bool:
    nodes = [node.name for node in part.nodes]
    if set(nodes) != set(before[part.group]) or not set(nodes).isdisjoint(unplugged):
        return True
    return any(
        file.activation.effect >= Effect.RESTART and is_about(file.path, part.group)
        for node in nodes
        for file in files.get(node, ())
    )


def is_about(path: str, group: str) -> bool:
    """Whether a file of a node is a group's, or that of all engines there."""
    _, _, rest = path.partition("/")
    if "/groups/" not in rest:
        return True
    name = rest.partition("/groups/")[2]
    return name.startswith((f"{group}/", f"{group}."))


def _by_name(groups: Iterable[Site]) -> dict[str, list[Site]]:
    found: dict[str, list[Site]] = {}
    for group in groups:
        found.setdefault(group.model.served_name, []).append(group)
    return found


def _waves(changed: Sequence[Site], staying: Sequence[Site]) -> Iterator[tuple[Site, ...]]:
    """The last of the groups that serve a name waits for the others, unless one of them stays."""
    names = {group.model.served_name for group in staying}
    later = [
        groups[-1]
        for name, groups in _by_name(changed).items()
        if len(groups) > 1 and name not in names
    ]
    nodes = {node.name for group in changed if group not in later for node in group.nodes}
    # What shares a node with one that restarts now is down with it.
    later = [g for g in later if nodes.isdisjoint(node.name for node in g.nodes)]
    first = tuple(group for group in changed if group not in later)
    yield from filter(None, (first, tuple(later)))
