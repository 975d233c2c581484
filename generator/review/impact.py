"""What a change means on the nodes: what is done, what is down for how long, in which order.

Each file of a bundle knows what a change of it needs; all that is said here follows from that, and
from two facts: the ranks of a site serve together or not at all, and the head is the first to stop
and the last to start. The words are kept here, for whatever prints them.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import PurePosixPath
from typing import Literal

from generator.render import sh
from generator.review.changes import FileChange, changes
from generator.site import Node, Site
from generator.tree import Change, Tree

State = Literal["new", "changed", "unchanged", "removed"]


class Effect(IntEnum):
    """How much a node notices, from nothing to all; a greater one has the lesser ones in it."""

    NOTHING = 0
    FILES = 1
    RELOAD = 2
    SERVICE = 3
    RESTART = 4
    LINKS = 5


EFFECTS = {
    Change.NOTHING: Effect.FILES,
    Change.HOSTS: Effect.FILES,
    Change.LOGIN: Effect.FILES,
    Change.SYSCTL: Effect.FILES,
    Change.UNIT: Effect.RELOAD,
    Change.DROP_IN: Effect.RELOAD,
    Change.WEB_UI: Effect.SERVICE,
    Change.GUARD: Effect.SERVICE,
    Change.FIREWALL: Effect.SERVICE,
    Change.QOS: Effect.SERVICE,
    Change.MONITORING: Effect.SERVICE,
    Change.SSH: Effect.SERVICE,
    Change.RESTART: Effect.RESTART,
    Change.NETPLAN: Effect.LINKS,
}

TITLES = {
    Effect.NOTHING: "nothing",
    Effect.FILES: "files only, nothing restarts",
    Effect.RELOAD: "systemctl daemon-reload only",
    Effect.SERVICE: "restart of a service beside the engine",
    Effect.RESTART: "engine restart",
    Effect.LINKS: "netplan apply (links drop), engine restart",
}
NEW = "new: install all, start the engine"
REMOVED = "removed: stop the engine, take the files off"
WITH_THE_OTHERS = "engine restart, with the other ranks"

# What is left to do on a node after install.sh, in this order.
_ON_NODE = (
    (Change.WEB_UI, "systemctl restart sparkgen-web-ui"),
    (Change.GUARD, "systemctl restart sparkgen-guard"),
    (Change.QOS, "systemctl restart sparkgen-qos"),
    (Change.MONITORING, "systemctl restart sparkgen-monitoring"),
    (Change.FIREWALL, "/opt/sparkgen/firewall.sh"),
    (Change.SSH, "systemctl restart fail2ban"),
)


@dataclass(frozen=True, slots=True)
class NodeReview:
    """What changes on one node; `steps` are done there once its files are installed."""

    name: str
    state: State
    effect: Effect
    files: tuple[FileChange, ...]
    steps: tuple[str, ...]
    restarts: bool

    @property
    def title(self) -> str:
        """What must be done, in a few words."""
        if self.state in ("new", "removed"):
            return NEW if self.state == "new" else REMOVED
        if self.restarts and self.effect < Effect.RESTART:
            return WITH_THE_OTHERS
        return TITLES[self.effect]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do, on these nodes in this order."""

    text: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Review:
    """All that a change of a site does; `files` are those of no node.

    `seconds` is how long the API may be down: to stop, and to load the model. It is None where it
    stays up, or was not there before.
    """

    name: str
    against: str
    nodes: tuple[NodeReview, ...]
    files: tuple[FileChange, ...]
    order: tuple[Step, ...]
    seconds: int | None

    @property
    def changed(self) -> bool:
        """Whether anything differs."""
        return bool(self.all_files)

    @property
    def all_files(self) -> tuple[FileChange, ...]:
        """Every file that differs."""
        return (*self.files, *(file for node in self.nodes for file in node.files))

    @property
    def downtime(self) -> str:
        """What clients notice."""
        if self.seconds is not None:
            return f"the API is down for up to {minutes(self.seconds)}: stop, then load the model"
        if self.nodes and all(node.state == "new" for node in self.nodes):
            return "nothing runs yet"
        return "the API stays up"


def review(site: Site, after: Tree, before: Tree, members: Sequence[str], against: str) -> Review:
    """What it means that `before` becomes `after`, which is the bundle of `site`.

    `members` are the nodes of `before` by rank, or in any order where that is not known.
    """
    found = changes(before, after)
    present = {node.name for node in site.nodes}
    old = list(members) or sorted(_folders(before))
    gone = [name for name in old if name not in present]
    by_node: dict[str, list[FileChange]] = {name: [] for name in (*present, *gone)}
    rest: list[FileChange] = []
    for change in found:
        by_node.get(_folder(change.path), rest).append(change)
    new = {node.name for node in site.nodes if node.name not in old}
    effects = {name: _effect(files) for name, files in by_node.items()}
    restarts = bool(old) and (
        bool(new or gone) or any(effect >= Effect.RESTART for effect in effects.values())
    )
    nodes = tuple(
        NodeReview(
            name,
            _state(name, new, gone, by_node[name]),
            effects[name],
            tuple(by_node[name]),
            tuple(_steps(by_node[name])) if name in present else (),
            restarts and name not in new,
        )
        for name in (*(node.name for node in site.nodes), *gone)
    )
    return Review(
        name=site.name,
        against=against,
        nodes=nodes,
        files=tuple(rest),
        order=tuple(_order(site, before, old, nodes, restarts)),
        seconds=site.times.stop + site.times.load if restarts else None,
    )


def minutes(seconds: int) -> str:
    """A time as people say it."""
    return f"{-(-seconds // 60)} min" if seconds >= 60 else f"{seconds} s"


def _folder(path: str) -> str:
    return PurePosixPath(path).parts[0]


def _folders(tree: Tree) -> set[str]:
    """Folders with a root tree in them: the nodes."""
    return {_folder(path) for path in tree if path.endswith("/SHA256SUMS") and path.count("/") == 1}


def _effect(files: Iterable[FileChange]) -> Effect:
    return max((EFFECTS[file.change] for file in files), default=Effect.NOTHING)


def _state(name: str, new: Collection[str], gone: Collection[str], files: object) -> State:
    if name in new:
        return "new"
    if name in gone:
        return "removed"
    return "changed" if files else "unchanged"


def _steps(files: Sequence[FileChange]) -> Iterator[str]:
    """What the installed files of a node need; the engine is started when all nodes are done."""
    needed = {file.change for file in files}
    if files:
        yield "install.sh --apply"
    yield from (text for change, text in _ON_NODE if change in needed)


def _order(
    site: Site, before: Tree, old: Sequence[str], nodes: Sequence[NodeReview], restarts: bool
) -> Iterator[Step]:
    """The runbook's order: fetch, stop head first, install, check the fabric, start head last."""
    touched = {node.name: node for node in nodes if node.files}
    gone = tuple(node.name for node in nodes if node.state == "removed")
    yield from _fetches(site, before)
    if restarts:
        yield Step("stop the engine, the head first", tuple(old))
    if gone:
        yield Step("install.sh --uninstall", gone)
    by_steps: dict[tuple[str, ...], list[str]] = {}
    for node in site.start_order:
        if node.name in touched:
            by_steps.setdefault(touched[node.name].steps, []).append(node.name)
    for steps, names in by_steps.items():
        yield Step("; ".join(steps), tuple(names))
    if any(node.effect is Effect.LINKS and node.state != "removed" for node in nodes):
        yield Step("check the fabric: wait-fabric.sh 10", tuple(node.name for node in site.nodes))
    if restarts or any(node.state == "new" for node in nodes):
        order = tuple(node.name for node in site.start_order)
        last = ", the head last" if len(order) > 1 else ""
        yield Step(f"start the engine{last}", order)


def _fetches(site: Site, before: Tree) -> Iterator[Step]:
    """What is fetched while the old engine still serves, on nodes that have not had it."""
    image, model = site.engine.image, site.model
    if pulling := _without(site.nodes, before, image):
        built = f"build and load the image first: {sh(image)}"
        pulled = f"fetch the image first: docker pull {sh(image)}"
        yield Step(built if site.engine.is_built_here else pulled, pulling)
    wanted = (model.source, *((model.revision,) if model.revision else ()))
    if fetching := _without(site.nodes, before, *wanted):
        if model.source in model.folders:
            yield Step(f"copy the model first: {sh(model.source)}", fetching)
        else:
            command = sh(("hf", "download", *" --revision ".join(wanted).split()))
            yield Step(f"fetch the model first: {command}", fetching)


def _without(nodes: Iterable[Node], before: Tree, *texts: str) -> tuple[str, ...]:
    """The nodes whose container was given something else until now."""
    words = [re.compile(rf"(?<![\w./:-]){re.escape(text)}(?![\w./:-])") for text in texts]
    files = ((node.name, before.get(f"{node.name}/opt/sparkgen/compose.yaml")) for node in nodes)
    return tuple(
        name
        for name, file in files
        if file is None or not all(word.search(file.text) for word in words)
    )
