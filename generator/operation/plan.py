"""A plan that has been carried out on the model of a cluster before it is shown."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from generator.operation.actions import Action
from generator.operation.conditions import has_links
from generator.operation.meaning import same
from generator.operation.needed import Change, needed
from generator.operation.state import Cluster, Desired
from generator.records import record


@record
class Moment:
    """An action, and the cluster before, while and after it is done."""

    action: Action
    before: Cluster
    during: Cluster
    after: Cluster


class PlanError(Exception):
    """A condition of an action does not hold, or the cluster does not become what it should."""


def plan(change: Change) -> list[Moment]:
    """The actions in an order in which each condition holds; raises PlanError.

    Each pass takes what it can, in the usual order, and spares what answers. If nothing else can
    be done, one thing is done that does not spare it.
    """
    now, left = change.now, needed(change)
    moments: list[Moment] = []
    while True:
        taken, left = _pass(now, left) or _pass(now, left, spares=False) or ([], left)
        if not taken:
            break
        moments += taken
        now = moments[-1].after
    if missing := unreached(now, change.after):
        stuck = (f"{action.title}: {action.node}: {action.unmet(now)}" for action in left)
        raise PlanError("; ".join([missing, *stuck]))
    return moments


def _pass(
    now: Cluster, left: Sequence[Action], *, spares: bool = True
) -> tuple[list[Moment], list[Action]] | None:
    """What can be done of the rest, one after the other, and what can't yet; None if nothing.

    It ends as soon as something earlier in the order can be done.
    """

    def can_be_done(action: Action) -> bool:
        return not action.has_nothing_to_do(now) and not action.unmet(now, spares=spares)

    taken: list[Moment] = []
    rest: list[Action] = []
    for _, phase in groupby(left, attrgetter("phase")):
        if taken and (not spares or any(map(can_be_done, rest))):
            rest += phase
            continue
        late = []
        for action in phase:
            if (taken and not spares) or not can_be_done(action):
                late.append(action)
            else:
                taken.append(Moment(action, now, action.during(now), action.done(now)))
                now = taken[-1].after
        rest += late
    return (taken, rest) if taken else None


def unreached(now: Cluster, after: Desired) -> str:
    """What a cluster lacks of what a bundle makes of it; empty if nothing."""
    return next(_lacks(now, after), "")


def _lacks(now: Cluster, after: Desired) -> Iterator[str]:
    waiting = {engine.unit for engine in after.engines if not engine.is_active}
    for name, folder in after.folders.items():
        node = now.nodes.get(name)
        if node is None or not node.is_on or node.installed != folder:
            yield f"{name} does not have its folder"
            return
        if not (node.is_confirmed and node.is_checked and node.is_measured):
            yield f"{name} is not confirmed or not checked"
        if not has_links(node, folder) or node.name != folder.node:
            yield f"{name} has other links or another name"
        yield from (f"{name} lacks {need.kind} {need.name}" for need in folder.needs - node.has)
        for unit, program in folder.programs.items():
            if unit not in waiting and not program.is_like(node.running.get(unit)):
                yield f"{name} does not run {unit}"
        yield from (f"{name} still runs {unit}" for unit in node.running.keys() - folder.programs)
    for name, node in now.nodes.items():
        if name not in after.folders and (node.installed or node.running):
            yield f"{name} still has a folder"
    yield from _lacks_beside(now, after)


def _lacks_beside(now: Cluster, after: Desired) -> Iterator[str]:
    """What is not on the nodes: answers, what was loaded elsewhere, cables."""
    if {*now.serving} != {engine.place for engine in after.engines if engine.is_active}:
        yield "not every engine serves"
    for path, text in after.elsewhere.items():
        if not same(path, text, now.elsewhere.get(path, "")):
            yield f"{path} has not been loaded"
    ends = {end for cable in after.cables for end in cable.ends}
    yield from (f"nothing is in {end}" for end in sorted(ends - now.plugged.keys()))
    yield from (f"{now.plugged[end]} is in {end}" for end in sorted(now.plugged.keys() - ends))
    yield from (f"{group} is drained" for group in now.drained)
