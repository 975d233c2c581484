"""A plan that has been carried out on the model of a cluster before it is shown."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import groupby

from generator.operation import actions as do
from generator.operation.actions import Action
from generator.operation.answers import View
from generator.operation.conditions import has_links
from generator.operation.meaning import same
from generator.operation.needed import Change, needed
from generator.operation.state import Cluster, Desired, EnginePlace, LiveEngine
from generator.records import record

# What an action costs clients: nothing, a minute, a turn, a wait, more, a vain wait, time that
# others need, or an engine.
FREE, SHORT, TURN, BREAK, LOADS, HARM, WAITS, BESIDE, STOPS, SHOWN = range(10)


@record
class Moment:
    """An action, and the cluster before, while and after it is done.

    By then, nobody answers to the names in `lost`, and not only since an engine is loading.
    """

    action: Action
    before: Cluster
    during: Cluster
    after: Cluster
    lost: Set[str] = frozenset()


class PlanError(Exception):
    """A condition of an action does not hold, or the cluster does not become what it should."""


def plan(change: Change) -> list[Moment]:
    """The actions in an order in which each condition holds; raises PlanError.

    What takes nothing from clients is done first. An engine stops as late as possible, and once
    it has stopped, only what brings it back is done until it serves. Where doors move or people
    work, engines beside the doors go before the others or after them, whichever costs less.
    """
    courses = [_Course(change, is_front_first=True)]
    if courses[0].has_choice and courses[0].price:
        courses.append(_Course(change, is_front_first=False))
        for course in courses:
            course.shorten()
    return min(courses, key=lambda course: course.price).moments


# What people do is taken to last longer than what has a limit.
BY_HAND_SECONDS = 3600
# How many actions are tried at other places, so that large sites don't take minutes.
MOST_TRIES = 5000
_Step = list[Moment]


def steps_of(moments: Sequence[Moment]) -> list[_Step]:
    """The moments that people are told as one step."""
    return [list(own) for _, own in groupby(moments, lambda moment: moment.action.title)]


def _moves(steps: Sequence[_Step]) -> Iterator[tuple[int, int]]:
    """Where the steps of a time without answers might be, and where it might begin."""
    lost = [{name for moment in step for name in moment.lost} for step in steps]
    spans = dict[tuple[int, int], None]()
    for name in sorted({name for names in lost for name in names}):
        marked = groupby(range(len(steps)), [name in names for names in lost].__getitem__)
        runs = [[*own] for is_lost, own in marked if is_lost]
        spans |= {(run[0], run[-1]): None for run in runs}
    for first, last in spans:
        run = range(first, last + 1)
        tried = [at for at in run if _price(steps[at]) or steps[at][0].action.phase == do.START]
        yield from ((at, to) for at in tried for to in (first, last))
        yield from ((first, at) for at in run)


def _price(step: _Step) -> int:
    seconds = [moment.action.seconds for moment in step]
    limit = BY_HAND_SECONDS if None in seconds else max(each or 0 for each in seconds)
    return limit * len({name for moment in step for name in moment.lost})


class _Course:
    """A plan as far as it has been carried out."""

    def __init__(self, change: Change, *, is_front_first: bool) -> None:
        self.now, self.left, self.moments = change.now, needed(change), list[Moment]()
        self._change, self._view = change, View(change)
        # The groups that answer to each name now.
        self._groups = self._view.groups(self.now)
        # How many engines answer to each name that is to be answered all the time, at least.
        promised = {n: min(len(g), self._view.promised(n)) for n, g in self._groups.items()}
        self._kept = {name: count for name, count in promised.items() if count}
        self._waited_for = {"", *(n for e in change.active for n in e.nodes), *change.disturbed}
        both = (change.before, change.after)
        before, after = ({d.node: d.url for d in each.doors if d.units} for each in both)
        self._waited_for |= after.keys()
        # Where an address that others are reached at, too, opens and closes, the first ones first.
        opened = {node for node, url in after.items() if url != before.get(node)}
        self._fronts = [opened, before.keys() - after.keys()][:: 1 if is_front_first else -1]
        taken = {folder.address for folder in change.after.folders.values()}
        self._holding = {n for n, f in change.before.folders.items() if f.address in taken}
        addresses = {a.node for a in self.left if a.phase == do.ADDRESS and a.unmet(self.now)}
        self._waiting = [action for action in self.left if action.phase == do.WAIT]
        self._ends = [action for action in self.left if action.phase == do.UNDRAIN]
        self._active = {engine.place: engine for engine in change.active}
        self._awaits, self._switched = True, [*change.switched.values()]
        self._tries = MOST_TRIES
        checked = (action.nodes for action in self.left if action.nodes)
        self._linked = [change.disturbed, *map(set, checked)]
        # Where people work while an engine is down.
        self._by_hand = change.disturbed | addresses
        self.has_choice = any((*self._fronts, self._by_hand, self._switched))
        while self._goes_on():
            pass
        if missing := unreached(self.now, change.after):
            stuck = (f"{a.title}: {a.node}: {a.unmet(self.now)}" for a in self.left)
            raise PlanError("; ".join([missing, *stuck]))

    @property
    def price(self) -> int:
        """How long names are not answered, all together."""
        return sum(map(_price, steps_of(self.moments)))

    def shorten(self) -> None:
        """Move steps out of the time in which names are not answered, and stops to its end."""
        better = steps_of(self.moments)
        while better:
            steps = better
            tried = (self._moved(steps, at, to) for at, to in _moves(steps) if at != to)
            better = next(filter(None, tried), [])
        self.moments = [moment for step in steps for moment in step]

    def _moved(self, steps: Sequence[_Step], at: int, to: int) -> list[_Step]:
        """The steps with one of them at another place; none if that costs as much or can't be."""
        low, high = min(at, to), max(at, to)
        others = [*steps[low:at], *steps[at + 1 : high + 1]]
        others.insert(to - low, steps[at])
        self.now, self.moments = steps[low][0].before, []
        for action in (moment.action for step in others for moment in step):
            self._tries -= 1
            if self._tries < 0 or action.unmet(self.now):
                return []
            if not self.moments:
                self._groups = self._view.groups(self.now)
            self._do(action)
        new, old = steps_of(self.moments), steps[low : high + 1]
        is_same = self.now == old[-1][-1].after and sum(map(_price, new)) < sum(map(_price, old))
        return [*steps[:low], *new, *steps[high + 1 :]] if is_same else []

    def _goes_on(self) -> bool:
        """Whether more could be done; what costs clients least is tried first."""
        return (
            any(map(self._pass, (FREE, SHORT, TURN, BREAK)))
            or self._stop(is_urgent=True)
            or ((self._is_open() or self._kept.keys() & self._begun()) and self._pass(LOADS))
            or self._stop()
            or any(map(self._pass, (LOADS, HARM, WAITS, BESIDE, STOPS, SHOWN)))
        )

    def _is_open(self) -> bool:
        """Whether fewer engines than before answer to a name."""
        return any(len(self._groups[name]) < count for name, count in self._kept.items())

    def _begun(self) -> set[str]:
        """The names of engines that were started and are not awaited yet."""
        begun = (self._active[a.engine] for a in self._waiting if self._can_be_done(a))
        return {name for engine in begun for name in engine.names}

    def _is_stuck(self) -> bool:
        """Whether nobody answers to a name, and not only since an engine is loading."""
        lost = {name for name in self._kept if not self._groups[name]}
        return self._view.are_loading(self.now, lost) != lost

    def _is_awaited(self) -> bool:
        """Whether an engine was started for each name that nobody answers to."""
        lost = (name for name in self._kept if not self._groups[name])
        return {self._view.successors.get(name, name) for name in lost} <= self._begun()

    def _pass(self, level: int) -> bool:
        """Do all that can be done and costs that much, in the usual order."""
        self._awaits = level < LOADS or self._is_awaited()
        left, self.left = self.left, []
        for action in left:
            if self._can_be_done(action) and self._level(action) == level:
                self._do(action)
                for undrain in self._undrains(self.now, action):
                    self._do(undrain)
            else:
                self.left.append(action)
        return len(self.left) < len(left)

    def _undrains(self, now: Cluster, action: Action) -> list[Action]:
        """The drains that a proxy ends at once, now that it knows where these engines are."""
        pending = self._ends if now.drained and action.phase[0] == do.SERVICE else ()
        own = (a for a in pending if a.node == action.node and not a.has_nothing_to_do(now))
        return [undrain for undrain in own if not undrain.unmet(now)]

    def _can_be_done(self, action: Action) -> bool:
        return not action.has_nothing_to_do(self.now) and not action.unmet(self.now)

    def _do(self, action: Action) -> None:
        during, after = action.during(self.now), action.done(self.now)
        lost = self._groups | self._answering(during, action)
        self._groups |= self._answering(after, action)
        gone = {n for n in self._kept if not (lost[n] and self._groups[n])}
        if gone and action.seconds != 0:
            gone -= self._view.are_loading(during, self._view.are_loading(after, gone))
        self.moments.append(Moment(action, self.now, during, after, gone))
        self.now = after

    def _answering(self, after: Cluster, action: Action) -> dict[str, Set[str]]:
        """The groups that answer to each name for which that may have changed."""
        names = self._view.changed(self.now, after, action.node)
        return self._view.groups(after, names)

    def _lost(self, after: Cluster, action: Action, *, is_spare: bool) -> set[str]:
        """The names to which fewer engines answer; if some are to spare, than at least should."""
        lost = set()
        for name, groups in self._answering(after, action).items():
            now, least = len(self._groups[name]), self._kept.get(name, 0)
            if least and len(groups) < (min(now, least) if is_spare else now):
                lost.add(name)
        return lost

    def _level(self, action: Action) -> int:
        """What an action costs clients."""
        if action.phase in (do.DRAIN, do.STOP, do.LAST):
            return SHOWN if action.phase == do.LAST else STOPS
        after, meanwhile = action.done(self.now), action.during(self.now)
        for undrain in self._undrains(after, action):
            after = undrain.done(after) if undrain.unmet(self.now) else after
        found = self._answering(after, action).items()
        more = [name for name, groups in found if len(groups) > len(self._groups[name])]
        if action.phase == do.WAIT:
            is_vain = not more and not all(self._groups[name] for name in self._kept)
            return LOADS if self._awaits and not is_vain else WAITS
        is_harm = bool(self._lost(after, action, is_spare=True))
        is_later = action.phase >= do.LATER or not self._is_waited_for(action)
        if is_later and not more and self._is_open():
            return SHOWN if is_harm or action.phase >= do.LATER else BESIDE
        if is_harm:
            return HARM
        lost = self._lost(meanwhile, action, is_spare=action.phase == do.SWITCH)
        if action.phase == do.SWITCH:
            if not lost and any(len(self._groups[n]) < self._kept.get(n, 0) for n in more):
                return LOADS
            others = (e for place, e in self._active.items() if place != action.engine)
            due = {n for e in others if self.now.serving.get(e.place) != e for n in e.names}
            is_late = self._is_open() or (lost and lost <= due)
            return HARM if is_late else BREAK if lost else TURN
        spare = self._lost(after, action, is_spare=False)
        is_kept = not lost | spare and len(after.serving) >= len(self.now.serving)
        if is_kept or not all(self._groups[name] for name in more):
            return FREE
        is_short = action.seconds is not None and action.seconds <= do.SERVICE_SECONDS
        return SHORT if is_short and not spare else HARM

    def _is_waited_for(self, action: Action) -> bool:
        """Whether more than a new engine may depend on what is done on a node."""
        node = action.node
        if action.phase == do.ADDRESS and node in self._holding:
            return True
        if node and node not in self._change.before.folders:
            names = {n for e in self._active.values() if node in e.nodes for n in e.names}
            begun = (a.engine for a in self._waiting if self._can_be_done(a))
            names -= {n for place in begun for n in self._active[place].names}
            names -= {n for engine in self.now.serving.values() for n in engine.names}
            return any(not self._groups[name] for name in self._kept.keys() & names)
        return node in self._waited_for

    def _stop(self, *, is_urgent: bool = False) -> bool:
        """Stop what is in the way of engines that start, of as many as do not wait for others.

        If that `is_urgent`, of those alone to whose names nobody answers. What others do without
        stops first, and what that allows is done before the rest stops.
        """
        pending = (a for a in self.left if a.phase in (do.DRAIN, do.STOP))
        stops = [action for action in pending if not action.has_nothing_to_do(self.now)]
        chosen = self._chosen({action.engine for action in stops}, is_urgent=is_urgent)
        is_last = all(chosen.values())
        if is_last and not is_urgent:
            is_idle = all(map(self._groups.get, self._kept)) and self._pass(BESIDE)
            if is_idle or (self._is_stuck() and self._pass(HARM)):
                return True
        ready = [a for a in stops if chosen.get(a.engine, not is_last) == is_last]
        done = len(self.moments)
        # A drain ends by itself after an hour: what needs it comes next.
        drained = {a.engine for a in ready if a.phase == do.DRAIN and self._can_be_done(a)}
        order = sorted(chosen, key=lambda place: place not in drained)
        for action in sorted(ready, key=lambda a: (order.index(a.engine), a.phase)):
            if self._can_be_done(action):
                self._do(action)
                self.left.remove(action)
        return len(self.moments) > done

    def _chosen(self, stopping: set[EnginePlace], *, is_urgent: bool) -> dict[EnginePlace, bool]:
        """What stops now, each with whether no other engine answers to one of its names.

        Nothing stops whose names are about to be answered by what was started.
        """
        due = {action.engine for action in self.left if action.phase in (do.START, do.SWITCH)}
        begun = {action.engine for action in self.left if action.phase == do.WAIT} - due
        stops = [engine for engine in self._change.stopping if engine.place in stopping]
        active = self._change.active
        starts = [self._start(engine, stops) for engine in active if engine.place in due]
        soon = {n for e in active if e.place in begun for n in e.names}
        later = {n for start in starts if not start.first for n in start.names}
        back = {name for start in starts for name in start.names & start.gone}
        known = [e for e in active if self.now.serving.get(e.place) == e]
        found = {name for engine in known for name in engine.names}
        chosen: dict[EnginePlace, bool] = {}
        counts = {name: len(groups) for name, groups in self._groups.items()}
        alone = {name for name, groups in self._groups.items() if len(groups) < 2}
        for start in sorted(starts, key=lambda start: start.order(back, found, alone)):
            ends = start.gone & alone
            is_early = bool(soon & (ends if is_urgent else start.gone) or later & ends)
            is_asked = not (is_urgent and all(self._groups[name] for name in start.names))
            if is_early or not start.first or not is_asked or (start.is_alone and chosen):
                continue
            soon |= start.names - start.gone
            by_hand = sorted(start.behind.values(), key=lambda e: self._by_hand.isdisjoint(e.nodes))
            for each in by_hand:
                mine = self._names(each)
                is_last = any(len(self._groups[name]) < 2 for name in mine)
                is_due = each in start.first or not is_last
                if is_due and all(counts[n] > 1 or len(self._groups[n]) < 2 for n in mine):
                    chosen[each.place] = is_last
                    counts |= {name: counts[name] - 1 for name in mine}
            if start.is_alone:
                break
        return chosen

    def _holder(self, name: str) -> str | None:
        """The node that has the address which a node is about to get."""
        node, folder = self.now.nodes.get(name), self._change.after.folders.get(name)
        was = self._change.before.folders.get(name)
        is_first = name in self._change.exchanged and node and was and node.address == was.address
        if folder is None or is_first or (node and node.address == folder.address):
            return None
        return next((n for n, o in self.now.nodes.items() if o.address == folder.address), None)

    def _holders(self, nodes: Iterable[str]) -> set[str]:
        """The nodes that have to get other addresses first, one after the other."""
        found = [*nodes]
        for name in found:
            holder = self._holder(name)
            found += [holder] if holder and holder not in found else []
        return {*found}.difference(nodes)

    def _names(self, engine: LiveEngine) -> list[str]:
        """The names that an engine answers to now."""
        known = self._kept.keys() & engine.names
        return [name for name in known if engine.group in self._groups[name]]

    def _start(self, engine: LiveEngine, stops: Sequence[LiveEngine]) -> "_Start":
        """What stops is on its nodes, or where cables or links change with those of its nodes."""
        after = self._change.continued
        found, first = [engine], list[LiveEngine]()
        behind: dict[EnginePlace, LiveEngine] = {}
        holders = self._holders(engine.nodes)
        for each in found:
            nodes = {*each.nodes, *self._holders(each.nodes)}
            nodes |= {n for own in self._linked if not nodes.isdisjoint(own) for n in own}
            way = [other for other in stops if not nodes.isdisjoint(other.nodes)]
            first = first or way
            news = (after.get(o.group) for o in way if o.place not in behind)
            found += filter(None, news)
            behind |= {other.place: other for other in way}
        again = {n for e in first if e.group in after for n in after[e.group].names}
        opens, closes = (not n.isdisjoint(engine.nodes) for n in self._fronts)
        is_slow = not self._by_hand.isdisjoint(engine.nodes)
        return _Start(
            self._kept.keys() & engine.names,
            {n for each in first for n in self._names(each)},
            again,
            first,
            behind,
            not holders.isdisjoint(n for e in stops for n in e.nodes),
            closes - opens,
            is_slow,
            bool(closes or opens or is_slow) or engine in self._switched,
        )


@record
class _Start:
    """An engine that starts: its names, those `gone` once `first` stops, and which come `again`.

    What all wait for is `behind`. It `is_held` up by engines of nodes that have its addresses yet.
    Its `turn` is before the others, below 0, if an address of theirs opens with it, and after them
    if one closes. It `is_slow` where people work. It `is_alone` for
    these reasons, or if it takes the turn of another one.
    """

    names: Set[str]
    gone: Set[str]
    again: Set[str]
    first: Sequence[LiveEngine]
    behind: Mapping[EnginePlace, LiveEngine]
    is_held: bool
    turn: int
    is_slow: bool
    is_alone: bool

    def order(self, back: Set[str], found: Set[str], alone: Set[str]) -> tuple[bool | int, ...]:
        """Later if it leaves names to others that come `back` with them, or brings no new one.

        Still later if all its names are `found` at new places, once proxies know these, and first
        if other engines answer to each, which are not `alone`.
        """
        leaves = not back & self.gone <= self.names | self.again
        is_same = self.names <= self.gone
        is_spare = bool(self.gone) and self.gone <= found
        first = (self.is_held, not self.gone.isdisjoint(alone), self.turn, is_spare)
        return *first, leaves, self.is_slow, is_same, len(self.behind)


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
        left = (need for need in node.has - folder.needs if need.kind == "secret")
        yield from (f"{name} still has {need.name}" for need in left)
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
    if {*now.serving} != {engine.place for engine in after.running.values()}:
        yield "not every engine serves"
    for path in {**now.elsewhere, **after.elsewhere}:
        if not same(path, after.elsewhere.get(path, ""), now.elsewhere.get(path, "")):
            yield f"{path} has not been loaded"
    wanted = {end: {*cable.ends} for cable in after.cables for end in cable.ends}
    found = {end: {*cable.ends} for end, cable in now.plugged.items()}
    wrong = (end for end in sorted({**wanted, **found}) if wanted.get(end) != found.get(end))
    yield from (f"{end} has {now.plugged.get(end, 'no cable')}" for end in wrong)
    yield from (f"{group} is drained on {node}" for node, group in now.drained)
