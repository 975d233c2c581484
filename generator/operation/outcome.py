"""What people notice of a plan: its steps, and who answers to which name meanwhile."""

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import groupby

from generator.operation.answers import View, stray
from generator.operation.needed import Change
from generator.operation.plan import Moment, steps_of
from generator.operation.state import Cluster
from generator.records import record


@record
class Step:
    """One thing to do, on these nodes in this order; no nodes if it is done elsewhere.

    It takes `seconds` at most, None if people or networks take their time. Meanwhile nobody answers
    to the names in `down`, and one engine alone to those in `alone`. Of the former, an engine is
    `loading` that was started before, whatever else is done meanwhile.
    """

    text: str
    nodes: tuple[str, ...] = ()
    seconds: int | None = None
    down: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    loading: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.text}: {', '.join(self.nodes)}" if self.nodes else self.text


@record
class Outage:
    """A time in which nobody answers to a name: its first and last step, counted from 1.

    `was` is what the same engine answers to before, if the name is new. It takes `seconds` at most,
    and as long as people take for the steps in `by_hand`.
    """

    name: str
    first: int
    last: int
    seconds: int
    by_hand: tuple[int, ...]
    was: str = ""


@record
class Outcome:
    """A plan that was carried out: its steps, outages, and the names that nobody answers to after.

    `renamed` are those of them that the same engine has another name for, or answers unchecked.
    `stopped` are the engines that stop, each with its group when it runs again, None if it does
    not, `switched` those whose turn ends, each with the one that runs instead. `spread` are the
    names that are answered at several addresses, of which one does not answer for a while.
    """

    steps: tuple[Step, ...]
    outages: tuple[Outage, ...]
    lost: tuple[str, ...]
    renamed: Mapping[str, str]
    stopped: Mapping[str, str | None]
    switched: Mapping[str, str]
    spread: tuple[str, ...] = ()

    @property
    def seconds(self) -> int | None:
        """The limit of the longest outage; None if there is none."""
        return max((outage.seconds for outage in self.outages), default=None)

    @property
    def alone(self) -> tuple[str, ...]:
        """The names that one engine alone answers to for a while."""
        return tuple(dict.fromkeys(name for step in self.steps for name in step.alone))


NOTHING_DONE = Outcome((), (), (), {}, {}, {})


def outcome(change: Change, moments: Sequence[Moment]) -> Outcome:
    """What the moments of a plan mean to people."""
    view = View(change)
    first = view.answers(change.now)
    steps = tuple(_steps(view, change.now, moments))
    after = {name for door in change.after.doors for name in door.names}
    lost = tuple(name for name, found in first.items() if found and name not in after)
    known = {name: view.successors.get(name, name) for name in first}
    kept = [(name, engine) for name, _, engine in stray(change)]
    names = {name: new for name, new in known.items() if new in after}
    stopped = [each.group for each in change.stopping if each.group not in change.switched]
    return Outcome(
        steps,
        tuple(dict.fromkeys(o for name, new in names.items() for o in _outages(name, new, steps))),
        lost,
        {n: names[n] for n in lost if n in names} | {n: e.names[0] for n, e in kept if n in lost},
        {group: new.group if (new := change.continued.get(group)) else None for group in stopped},
        {group: engine.group for group, engine in change.switched.items()},
        tuple(name for name, found in first.items() if len({url for url, _ in found}) > 1),
    )


def _steps(view: View, start: Cluster, moments: Sequence[Moment]) -> Iterator[Step]:
    """Actions with the same words after each other are one step."""
    now, end = view.groups(start), view.groups(moments[-1].after if moments else start)
    had = {name: min(len(own), len(end[name])) for name, own in now.items() if own}
    for own in steps_of(moments):
        down, alone = _fewer(had, now)
        loading = {*had}
        for moment in own:
            missed = _fewer(had, now)[0]
            for after in (moment.during, moment.after):
                now |= view.groups(after, view.changed(moment.before, after, moment.action.node))
                more = _fewer(had, now)
                down, alone = down | more[0], alone | more[1]
                missed |= more[0]
            begun = view.are_loading(moment.after, missed & loading)
            loading -= missed - view.are_loading(moment.during, begun)
        seconds = [moment.action.seconds for moment in own]
        nodes = (name for m in own for name in m.action.nodes or (m.action.node,) if name)
        yield Step(
            own[0].action.title,
            tuple(dict.fromkeys(nodes)),
            None if None in seconds else max(each or 0 for each in seconds),
            tuple(name for name in had if name in down),
            tuple(name for name in had if name in alone - down),
            tuple(name for name in had if name in loading & down),
        )
        # What nobody is to answer to any more is gone, not down.
        had = {name: count for name, count in had.items() if count or now[name]}


def _fewer(had: Mapping[str, int], now: Mapping[str, Set[str]]) -> tuple[set[str], set[str]]:
    """The names that nobody answers to, and those to which one engine of several still does."""
    down = {name for name in had if not now[name]}
    return down, {name for name, count in had.items() if len(now[name]) == 1 < count}


def _outages(name: str, new: str, steps: Sequence[Step]) -> Iterator[Outage]:
    """The times in which nobody answers to a name, or to what it is called then."""
    for is_down, group in groupby(enumerate(steps, 1), lambda each: name in each[1].down):
        if is_down:
            own = list(group)
            counted = [each for each in own if name not in each[1].loading]
            yield Outage(
                new,
                own[0][0],
                own[-1][0],
                sum(step.seconds or 0 for _, step in counted),
                tuple(number for number, step in counted if step.seconds is None),
                name if name != new else "",
            )
