"""What a change does to each node, by the plan that was carried out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from generator.activation import Scope
from generator.operation.conditions import NETPLAN, NO_FOLDER
from generator.operation.meaning import same
from generator.operation.needed import Change
from generator.operation.state import NodeFolder
from generator.records import record
from generator.review.changes import FileChange

NodeState = Literal["new", "changed", "unchanged", "renamed", "removed"]

_TITLES = {Scope.NOTHING: "nothing", Scope.RELOAD: "systemctl daemon-reload only"}
_ENGINE = {(True, True): "restart", (False, True): "start", (True, False): "stop"}


@record
class NodeReview:
    """What changes on one node.

    `was` is its previous name. In the plan, an engine `stops` and `starts` there, and `done` is
    what happens besides the installation, in words.
    """

    name: str
    was: str
    state: NodeState
    effect: Scope
    files: tuple[FileChange, ...]
    stops: bool
    starts: bool
    done: tuple[str, ...]

    @property
    def title(self) -> str:
        """What must be done, in a few words."""
        if self.state == "new":
            return f"new: install all{', start the engine' if self.starts else ''}"
        if self.state == "removed":
            return f"removed: {'stop the engine, ' if self.stops else ''}remove the files"
        done = ", ".join(self.done) or _TITLES.get(self.effect, "files only, nothing restarts")
        is_renamed = self.state == "renamed"
        return f"taken as the same machine as {self.was}, renamed: {done}" if is_renamed else done


def node_reviews(
    change: Change, by_node: Mapping[str, Sequence[FileChange]]
) -> Iterator[NodeReview]:
    """What becomes of each node in a plan, those that are removed last."""
    switched = change.switched.values()
    stopped = {name for engine in (*change.stopping, *switched) for name in engine.nodes}
    started = {name for engine in change.active for name in engine.nodes}
    for name, files in by_node.items():
        old, new = (d.folders.get(name, NO_FOLDER) for d in (change.before, change.after))
        stops, starts = name in stopped, name in started
        is_relinked, services = not same(NETPLAN, old.links, new.links), [*_services(old, new)]
        dropped = "netplan apply" if is_relinked else "another cable"
        links = [f"{dropped} (links drop)"] if is_relinked or name in change.disturbed else []
        verb = _ENGINE.get((stops, starts))
        engine = [f"engine {verb}"] if verb else []
        known = {Scope.LINKS: links, Scope.RESTART: engine, Scope.SERVICE: services}
        if stops and starts and not links and _is_as_before(change, name):
            engine, known[Scope.RESTART] = ["engine restart, with the other ranks"], []
        beside = max((file.activation.effect for file in files), default=Scope.NOTHING)
        effect = next((s for s, words in known.items() if words), min(beside, Scope.RELOAD))
        was, state = change.hosts.get(name, name), _state(change, name, files)
        done = (*links, *engine, *services)
        yield NodeReview(name, was, state, effect, tuple(files), stops, starts, done)


def _state(change: Change, name: str, files: Sequence[FileChange]) -> NodeState:
    if name not in change.before.folders:
        return "new"
    if name not in change.after.folders:
        return "removed"
    if change.hosts.get(name, name) != name:
        return "renamed"
    return "changed" if files else "unchanged"


def _is_as_before(change: Change, name: str) -> bool:
    """Whether the ranks on a node restart for the sake of those on others alone."""
    before, after = (d.folders[name].programs for d in (change.before, change.after))
    own = [e for e in change.starting if name in e.nodes]
    alone = [e for e in own if len(e.nodes) < 2]
    return bool(own) and not alone and all(after[e.unit].is_like(before.get(e.unit)) for e in own)


def _services(old: NodeFolder, new: NodeFolder) -> Iterator[str]:
    """What is done about the services beside the engine, in the words of the steps."""
    for unit, program in {**old.programs, **new.programs}.items():
        if unit not in new.programs and not program.is_engine:
            yield program.activation.gone or program.activation.before or f"{unit} stops"
        elif not program.is_engine and not program.is_like(old.programs.get(unit)):
            yield program.command(old.programs.get(unit))
