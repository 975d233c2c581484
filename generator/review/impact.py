"""The impact of a change on the nodes: what is done, what is down for how long, in which order.

Each file of a bundle knows how a change of it is applied; everything here follows from that, and
from two facts: the ranks of a site serve together or not at all, and the head is the first to stop
and the last to start.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from generator.activation import Effect
from generator.bundle.committed import Committed
from generator.bundle.escaping import sh
from generator.bundle.tree import Tree
from generator.diagnostics import listed
from generator.fit.assessment import Fit
from generator.fit.table import bars
from generator.records import record, replace
from generator.review.addresses import left_behind, moved
from generator.review.cables import cables_of, listed_cables, pulled, under_new_names
from generator.review.changes import FileChange, changes
from generator.review.nodes import NodeReview, State, engine_title
from generator.review.serving import Serving, serving
from generator.review.steps import Change, Step, node_steps, order, renamed_nodes
from generator.site import Site
from generator.site.container import Times


@record
class Review:
    """Everything that a change of a site does; `files` are those that belong to no node.

    `was` is the site's previous name, empty if there was none, and `edits` what was changed in its
    file. `limits` are those of the engine that stops and starts. They are None if the API stays
    up or was not there before; with groups, if each name that is still served continues to answer.
    `served` and `serves` tell whether an engine runs before and after.
    `headroom` is the memory left on the fullest node before and after, in GiB,
    None if not known; `bars` show the memory of the nodes if it changes.
    """

    name: str
    against: str
    was: str
    edits: tuple[str, ...]
    notes: tuple[str, ...]
    nodes: tuple[NodeReview, ...]
    files: tuple[FileChange, ...]
    order: tuple[Step, ...]
    limits: Times | None
    headroom: tuple[float, float] | None
    bars: tuple[str, ...] = ()
    serving: Serving | None = None
    served: bool = True
    serves: bool = True

    @property
    def changed(self) -> bool:
        """Whether anything differs."""
        return bool(self.all_files)

    @property
    def is_removed(self) -> bool:
        """Whether the site is removed."""
        return bool(self.nodes) and all(node.state == "removed" for node in self.nodes)

    @property
    def all_files(self) -> tuple[FileChange, ...]:
        """Every file that differs."""
        return (*self.files, *(file for node in self.nodes for file in node.files))

    @property
    def downtime(self) -> str:
        """What clients notice."""
        if self.served and not self.serves:
            return "the API is gone"
        engines, services = self._of_engines, self._of_services
        return "; ".join(services if services and engines == _STAYS else (engines, *services))

    @property
    def _of_services(self) -> tuple[str, ...]:
        """What restarting services mean to clients; added or removed services don't restart."""
        files = [file for node in self.nodes if node.state == "changed" for file in node.files]
        kinds: dict[str, set[str]] = {}
        for file in files:
            if file.activation.notice:
                kinds.setdefault(file.activation.notice, set()).add(file.kind)
        return tuple(notice for notice, found in kinds.items() if "changed" in found)

    @property
    def _of_engines(self) -> str:
        limits = in_words(self.limits) if self.limits else ""
        if self.serving and (self.serving.stopping or limits):
            return _notice(self.serving, limits)
        if limits:
            return f"the API is down: stop, then load the model {limits}"
        if self.served:
            return _STAYS
        return "nothing runs yet" if self.serves else "no engine runs"


_STAYS = "the API stays up"


@record
class Before:
    """A bundle to compare with: its title, its files, and its site if that is known.

    `left_over` is its folder, if the site now has another folder or none.
    """

    title: str
    name: str
    bundle: Committed
    site: Site | None = None
    edits: tuple[str, ...] = ()
    left_over: str = ""


def review(site: Site, after: Tree, before: Before) -> Review:
    """Review what it means for a bundle to become `after`, the bundle of `site`."""
    names = renamed_nodes(site, before.site)
    tree = _under_new_names(before.bundle.tree, names)
    members = [names.get(name, name) for name in before.bundle.nodes]
    present = {node.name for node in site.nodes}
    gone = [name for name in members if name not in present]
    new = present - set(members)
    by_node, rest = _by_node(changes(tree, after), [*present, *gone])
    effects = {name: _effect(files) for name, files in by_node.items()}
    old_cables = cables_of(before.site) if before.site else listed_cables(before.bundle.cables)
    cables = under_new_names(old_cables, names)
    loose = pulled(cables, cables_of(site)) & present
    ran = {name for name in members if _has_engine(tree, name)}
    restarts = bool(members and (ran or site.parts)) and (
        bool(new or gone or loose) or any(effect >= Effect.RESTART for effect in effects.values())
    )
    was = {new_name: name for name, new_name in names.items()}
    parts = serving(site, tree, before.site, by_node, loose) if site.groups else None
    restarting = (_restarting(parts, members) if parts else set(members)) & ran
    stopped = restarting - new if restarts else set()
    nodes = tuple(
        _node_review(
            *(name, was.get(name, name), by_node[name]),
            is_new=name in new,
            is_gone=name in gone,
            engine=engine_title(name in ran, bool(name in present and site.parts_of(name))),
            restarts=name in stopped,
            is_unplugged=name in loose,
        )
        for name in (*(node.name for node in site.nodes), *gone)
    )
    change = Change(site, tree, members, ran, before.site, cables, nodes, restarts, parts)
    is_down = restarts if parts is None else parts.interrupts and not restarting.isdisjoint(members)
    is_down = bool(is_down and ran and site.parts)
    return Review(
        name=site.name,
        against=before.title,
        was=before.name,
        edits=before.edits,
        notes=(
            *_notes(site, before.site, names),
            *moved(tree, site),
            *left_behind(tree, site),
            *_left_over(before),
        ),
        nodes=nodes,
        files=tuple(rest),
        order=tuple(order(change)),
        limits=site.times if is_down else None,
        headroom=_headroom(before.site, site),
        bars=_bars(before.site, site),
        serving=parts if before.bundle.nodes else None,
        served=bool(ran),
        serves=bool(site.parts),
    )


def _has_engine(before: Tree, node: str) -> bool:
    folder = f"{node}/etc/sparkgen"
    return any(path.startswith((f"{folder}/engine.env", f"{folder}/groups/")) for path in before)


def _node_review(
    name: str,
    was: str,
    files: Sequence[FileChange],
    is_new: bool,
    is_gone: bool,
    engine: str,
    restarts: bool,
    is_unplugged: bool,
) -> NodeReview:
    state: State = "changed" if files else "unchanged"
    if is_new or is_gone:
        state = "new" if is_new else "removed"
    elif name != was:
        state = "renamed"
    return NodeReview(
        name=name,
        was=was,
        state=state,
        effect=_effect(files),
        files=tuple(files),
        steps=() if is_gone else tuple(node_steps(tuple(files), name != was)),
        engine=engine,
        restarts=restarts,
        is_unplugged=is_unplugged,
    )


def removal(before: Before) -> Review:
    """Review what it means for a site to be removed."""
    by_node, rest = _by_node(changes(before.bundle.tree, {}), before.bundle.nodes)
    names = before.bundle.nodes
    ran = tuple(name for name in names if _has_engine(before.bundle.tree, name))
    return Review(
        name=before.name,
        against=before.title,
        was=before.name,
        edits=(),
        notes=tuple(_left_over(before)),
        nodes=tuple(
            NodeReview(
                *(name, name, "removed", Effect.RESTART, tuple(files), ()),
                engine=engine_title(name in ran, False),
                restarts=False,
            )
            for name, files in by_node.items()
        ),
        files=tuple(rest),
        order=(
            *([Step("stop the engine, the head first", ran)] if ran else []),
            Step("install.sh --uninstall", names),
        ),
        limits=None,
        headroom=None,
        served=bool(ran),
        serves=False,
    )


def in_words(times: Times) -> str:
    """The limits of stopping and loading, none of which is a prediction."""
    return f"(stop limit {minutes(times.stop)}, start limit {minutes(times.load)})"


def minutes(seconds: int) -> str:
    """A duration in words."""
    return f"{-(-seconds // 60)} min" if seconds >= 60 else f"{seconds} s"


def _restarting(parts: Serving, members: Iterable[str]) -> set[str]:
    """The nodes on which an engine stops."""
    if not parts.before:
        return set(members)
    return {node for name in parts.stopping for node in parts.before[name]}


def _notice(parts: Serving, limits: str) -> str:
    """What clients notice, by the model names that they request."""
    if not parts.before:
        return f"the API is down: stop, then load the models {limits}"
    stopped, gone = parts.restarting, parts.gone
    clauses = [f"{listed(stopped, 'and')} restart{'s' * (len(stopped) == 1)}"] if stopped else []
    clauses += [f"{listed(gone, 'and')} {'is' if len(gone) == 1 else 'are'} gone"] if gone else []
    clauses += [
        f"{part.group} runs in place of {name} once it is loaded" for part, name in parts.switched
    ]
    if parts.lost:
        clauses.append(f"nobody answers to {listed(parts.lost, 'and')} any more")
    if parts.is_down:
        clauses.append(f"nobody answers to {listed(parts.is_down, 'and')} meanwhile {limits}")
    elif stopped and not parts.lost:
        where = "" if parts.has_one_address else ", at its own address"
        clauses.append(f"another group answers to the same name meanwhile{where}")
    return "; ".join(clauses)


def _by_node(
    found: Iterable[FileChange], names: Iterable[str]
) -> tuple[dict[str, list[FileChange]], list[FileChange]]:
    """Changes by the node whose folder they are in, and those that belong to no node."""
    by_node: dict[str, list[FileChange]] = {name: [] for name in names}
    rest: list[FileChange] = []
    for change in found:
        by_node.get(PurePosixPath(change.path).parts[0], rest).append(change)
    return by_node, rest


def _effect(files: Iterable[FileChange]) -> Effect:
    return max((file.activation.effect for file in files), default=Effect.NOTHING)


def _under_new_names(tree: Tree, names: Mapping[str, str]) -> Tree:
    """The files with the new names of their nodes' folders."""
    moved = {}
    for path, file in tree.items():
        folder, separator, rest = path.partition("/")
        new = f"{names.get(folder, folder)}{separator}{rest}"
        moved[new] = replace(file, path=new)
    return moved


def _notes(site: Site, old: Site | None, names: Mapping[str, str]) -> Iterable[str]:
    """Notes about nodes that moved to another host number because of another node."""
    before = {names.get(node.name, node.name): node.host for node in old.nodes} if old else {}
    for node in site.nodes:
        host = before.get(node.name, node.host)
        if host != node.host:
            yield (
                f"{node.name} has host number {node.host} in place of {host}: to leave it as it "
                f"was, add nodes at the end of the list, or write 'host: {host}'"
            )


def _left_over(before: Before) -> Iterable[str]:
    if before.left_over:
        yield f"{before.left_over} is left over; git rm -r {sh(before.left_over)}"


def _bars(old: Site | None, site: Site) -> tuple[str, ...]:
    """The nodes' memory as bars, if it is known and has changed."""
    now, was = _memory(site), _memory(old)
    return bars(now) if now and now.nodes != (was.nodes if was else ()) else ()


def _headroom(old: Site | None, site: Site) -> tuple[float, float] | None:
    now, was = _memory(site), _memory(old)
    return (was.worst.headroom_gib, now.worst.headroom_gib) if now and was else None


def _memory(site: Site | None) -> Fit | None:
    """How the only model fits its nodes, as far as that is known."""
    fit = site.serving.memory if site and site.serving else None
    return fit if fit and fit.nodes else None
