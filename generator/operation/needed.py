"""What has to be done to a cluster so that it becomes what another bundle makes of it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property

from generator import resources
from generator.bundle.escaping import sh
from generator.bundle.plan import activations
from generator.operation import actions as do
from generator.operation import conditions as must
from generator.operation import state
from generator.operation.actions import LATER, Action
from generator.operation.conditions import Requirement
from generator.operation.meaning import same
from generator.operation.reading import ELSEWHERE
from generator.records import record, replace


@record
class Change:
    """Two bundles of a cluster, the first under the new names of its nodes.

    `hosts` are the present names of the nodes' hosts, `touched` the nodes with a folder to install,
    `setups` what is done on switches first. `had` tells whether a node's previous bundle needed
    something too.
    """

    before: state.Desired
    after: state.Desired
    hosts: Mapping[str, str]
    touched: Collection[str]
    setups: tuple[str, ...]
    had: Callable[[str, state.Need], bool]

    @cached_property
    def now(self) -> state.Cluster:
        """The cluster as its previous bundle has it run."""
        nodes = {name: self._node(name, folder) for name, folder in self.before.folders.items()}
        plugged = {end: cable for cable in self.before.cables for end in cable.ends}
        serving = {engine.place: engine for engine in self.before.running.values()}
        return state.Cluster(nodes, plugged, serving, elsewhere=self.before.elsewhere)

    def _node(self, name: str, folder: state.NodeFolder) -> state.LiveNode:
        new = self.after.folders.get(name, folder)
        turns = {e.unit for e in self.before.engines if not e.is_active}
        return state.LiveNode(
            self.hosts.get(name, name),
            folder.address,
            folder.user,
            copied=folder,
            installed=folder,
            links=folder.links,
            has=folder.needs | {n for n in new.needs - folder.needs if self._has(name, n)},
            running={unit: p for unit, p in folder.programs.items() if unit not in turns},
        )

    def _has(self, name: str, need: state.Need) -> bool:
        own = self.before.folders[name].needs
        # Its checksum may have been noted alone.
        if any((old.kind, old.name, old.place) == ("file", need.name, "") for old in own):
            return True
        return self.comes_by_itself(need) or (need.kind != "kept" and self.had(name, need))

    def comes_by_itself(self, need: state.Need) -> bool:
        """Whether a service makes what it keeps, since no other node has it."""
        return (
            need.kind == "kept"
            and not need.source
            and all(need not in folder.needs for folder in self.before.folders.values())
        )

    @cached_property
    def exchanged(self) -> list[str]:
        """A node of each circle of nodes that get each other's addresses, best without a proxy."""
        fronts = {door.node for door in self.before.doors if door.units}
        holders = {folder.address: name for name, folder in self.before.folders.items()}
        next_of = {n: holders.get(f.address, "") for n, f in self.after.folders.items()}
        circles = dict[frozenset[str], str]()
        for name in self.before.folders:
            circle = [name]
            while (following := next_of.get(circle[-1], "")) and following not in circle:
                circle.append(following)
            if len(circle) > 1 and following == name:
                circles[frozenset(circle)] = next((n for n in circle if n not in fronts), name)
        return [*circles.values()]

    @cached_property
    def start_order(self) -> list[str]:
        """The nodes of the new bundle, the head last."""
        names = [*self.after.folders]
        return [*names[1:], *names[:1]]

    @cached_property
    def _stays(self) -> set[frozenset[str]]:
        """The cables of both bundles, by their ends: which of them is the first does not matter."""
        before, after = ({frozenset(c.ends) for c in d.cables} for d in (self.before, self.after))
        return before & after

    @cached_property
    def moved(self) -> Mapping[state.LiveCable, state.LiveCable]:
        """The new place of each cable that moves: by its label, an end that stays, its number."""
        old = [cable for cable in self.before.cables if frozenset(cable.ends) not in self._stays]
        found: dict[state.LiveCable, state.LiveCable] = {}
        for cable in self.after.cables:
            if frozenset(cable.ends) not in self._stays:
                free = [one for one in old if one not in found and _likeness(one, cable)]
                if free:
                    found[max(free, key=lambda one: _likeness(one, cable))] = cable
        return found

    @cached_property
    def unplugs(self) -> list[tuple[state.LiveCable, tuple[str, ...]]]:
        """Each cable that is gone or moves, and the ports that it leaves."""
        return list(self._differing(self.before.cables, self.moved))

    @cached_property
    def plugs(self) -> list[tuple[state.LiveCable, tuple[str, ...]]]:
        """Each cable that is new or moves, and the ports that it goes into."""
        return list(self._differing(self.after.cables, {b: a for a, b in self.moved.items()}))

    def _differing(
        self, cables: Iterable[state.LiveCable], others: Mapping[state.LiveCable, state.LiveCable]
    ) -> Iterator[tuple[state.LiveCable, tuple[str, ...]]]:
        for cable in cables:
            if frozenset(cable.ends) not in self._stays:
                kept = others[cable].ends if cable in others else ()
                yield cable, tuple(end for end in cable.ends if end not in kept)

    def is_late(self, cable: state.LiveCable) -> bool:
        """Whether a cable can be unplugged in the end: it goes, and its ports stay free."""
        taken = {end for new in self.after.cables for end in new.ends}
        return cable not in self.moved and taken.isdisjoint(cable.ends)

    def is_early(self, cable: state.LiveCable) -> bool:
        """Whether a cable can be plugged before anything stops: at new nodes, in free ports."""
        is_new = self.before.folders.keys().isdisjoint(cable.nodes)
        is_free = self.now.plugged.keys().isdisjoint(cable.ends)
        return is_new and is_free and cable not in self.moved.values()

    @cached_property
    def power_cycled(self) -> list[str]:
        """The nodes that are shut down while a cable is plugged."""
        late = {name for cable, _ in self.plugs if not self.is_early(cable) for name in cable.nodes}
        return [name for name in self.start_order if name in late]

    def plugged_at(self, name: str) -> list[tuple[state.LiveCable, str]]:
        """The cables of a node that are new or move, with each port that they go into."""
        own = ((cable, ends) for cable, ends in self.plugs if name in cable.nodes)
        return [(cable, end) for cable, ends in own for end in ends]

    def unplugged_at(self, name: str) -> list[tuple[state.LiveCable, str]]:
        """The cables of a node that move, or make room for others, with each port they leave."""
        own = ((c, ends) for c, ends in self.unplugs if name in c.nodes and not self.is_late(c))
        return [(cable, end) for cable, ends in own for end in ends]

    def stops(self, engine: state.LiveEngine) -> bool:
        """Whether an engine that runs has to stop, other than to let another one take its turn."""
        new = self.after.by_group.get(engine.group)
        if new is None or new.nodes != engine.nodes or {*engine.nodes} & self.disturbed:
            return True
        before, after = self.before.folders, self.after.folders
        return any(
            not before[name].programs[engine.unit].is_like(after[name].programs[engine.unit])
            or not must.has_links(self.now.nodes[name], after[name])
            for name in engine.nodes
        )

    @cached_property
    def disturbed(self) -> set[str]:
        """The nodes at which a cable changes while nothing runs."""
        both = (*self.unplugs, *self.plugs)
        return {name for cable, _ in both if not self.is_late(cable) for name in cable.nodes}

    @cached_property
    def switched(self) -> Mapping[str, state.LiveEngine]:
        """The engines that get their turn, by the group that had it."""
        before, after = self.before.running, self.after.running
        return {
            old.group: new
            for new in after.values()
            for old in before.values()
            if new.group not in before
            if old.group in new.turns and {*old.nodes} == {*new.nodes}
        }

    @cached_property
    def continued(self) -> Mapping[str, state.LiveEngine]:
        """What becomes of each engine that runs, by its group, unless it goes."""
        found = dict(self.switched)
        alike = dict[object, list[state.LiveEngine]]()
        for engine in self.after.running.values():
            for trait in _traits(engine):
                alike.setdefault(trait, []).append(engine)
        old, taken = self.before.running.values(), {engine.group for engine in found.values()}
        all_kin = ((e, other) for e in old for t in _traits(e) for other in alike.get(t, ()))
        kin = {(one.group, other.group): (one, other) for one, other in all_kin}
        for one, other in sorted(kin.values(), key=lambda pair: -_kinship(*pair)):
            if one.group not in found and other.group not in taken:
                found[one.group] = other
                taken.add(other.group)
        return found

    @cached_property
    def stopping(self) -> list[state.LiveEngine]:
        """The engines that stop, those that stop for good first."""
        after = self.after.running
        stays = {*after, *self.switched}
        found = [e for e in self.before.running.values() if e.group not in stays or self.stops(e)]
        return sorted(found, key=lambda engine: engine.group in self.continued)

    @cached_property
    def starting(self) -> list[state.LiveEngine]:
        """The engines that start."""
        goes_on = self.before.running.keys() - {engine.group for engine in self.stopping}
        others = {*goes_on, *(engine.group for engine in self.switched.values())}
        return [e for group, e in self.after.running.items() if group not in others]

    @property
    def active(self) -> list[state.LiveEngine]:
        """The engines that start, or get their turn."""
        return [*self.starting, *self.switched.values()]


def needed(change: Change) -> list[Action]:
    """All actions, in the usual order: as far as their conditions allow, they are taken in it."""
    found = [
        *_cables(change),
        *_by_hand(change),
        *_brought(change),
        *_copies(change),
        *map(do.set_up_switch, change.setups),
        *_engines(change),
        *_installations(change),
        *_services(change),
        *_checks(change),
        *_elsewhere(change),
    ]
    return sorted(found, key=lambda action: action.phase)


def _cables(change: Change) -> Iterator[Action]:
    origin = {after: before for before, after in change.moved.items()}
    for cable, ends in change.unplugs:
        is_late, folders = change.is_late(cable), change.after.folders
        off = () if is_late else change.power_cycled
        action = do.unplug(cable, ends, off, folders if is_late else None)
        yield _later(action, 3, is_late=is_late)
    for cable, ends in change.plugs:
        yield do.plug(cable, ends, origin.get(cable), is_early=change.is_early(cable))
    for name in change.power_cycled:
        yield do.shut_down(name, change.plugged_at(name))
        yield do.start_node(name, change.unplugged_at(name), change.plugged_at(name))


def _by_hand(change: Change) -> Iterator[Action]:
    """What no file of a bundle does, but later steps need: new nodes, logins, addresses."""
    for name, folder in change.after.folders.items():
        if name not in change.before.folders:
            own = frozenset(need for need in folder.needs if change.comes_by_itself(need))
            yield do.prepare(name, folder, own)
    for name in change.exchanged:
        yield do.change_address(name, "a free one")
    for name, was in change.before.folders.items():
        if new := change.after.folders.get(name):
            if new.user not in ("", was.user):
                yield do.make_login(name, new.user)
            if new.address not in ("", was.address):
                if "firewall" in new.programs:
                    yield do.let_in(name, new.address)
                yield do.change_address(name, new.address, must.lets_logins_in(name, new.address))


def _brought(change: Change) -> Iterator[Action]:
    """What programs need that their nodes don't have, each kind of secret and key at once."""
    for name in change.after.folders:
        folder, node = change.after.folders[name], change.now.nodes.get(name)
        has = node.has if node else {n for n in folder.needs if change.comes_by_itself(n)}
        together: dict[str, list[state.Need]] = {}
        for need in sorted(folder.needs - has, key=str):
            together.setdefault(_title(change, name, need), []).append(need)
        waits = {engine.unit for engine in change.after.engines if not engine.is_active}
        running = [p for unit, p in folder.programs.items() if unit not in waits]
        urgent = {need for program in running if _is_urgent(program) for need in program.needs}
        for title, own in together.items():
            secrets = ", ".join(need.name for need in own)
            before = [each for need in own for each in _left_alone(change, name, need)]
            action = do.bring(name, own, title.replace("SECRETS", secrets), before)
            is_late = urgent.isdisjoint(own) and own[0].kind in ("secret", "key", "kept")
            yield _later(action, 0, is_late=is_late)
        if left := [need for need in sorted(has - folder.needs, key=str) if need.kind == "secret"]:
            yield do.take_away(name, folder, left)


def _left_alone(change: Change, name: str, need: state.Need) -> Iterator[Requirement]:
    """That what is copied from another node is still there, and nothing writes into it any more.

    A node whose address is taken before has no keys to give. For keys of MPI, all are reached.
    """
    if need.kind == "key":
        folders = change.after.folders.values()
        yield must.are_reached([f for f in folders if need.place in {n.place for n in f.needs}])
    others = {node: f for node, f in change.before.folders.items() if node != name}
    is_late = change.after.folders[name].address in {f.address for f in others.values()}
    for node, folder in others.items() if need.kind == "kept" else ():
        units = [unit for unit, program in folder.programs.items() if need in program.needs]
        yield from (must.is_down(node, unit) for unit in units if unit != state.PROXY)
        yield from (must.has_bundle(node) for unit in units if unit == state.PROXY and not is_late)


def _later(action: Action, order: int, *, is_late: bool) -> Action:
    return replace(action, phase=(*LATER, order, *action.phase)) if is_late else action


def _is_urgent(program: state.Program) -> bool:
    """Whether clients or engines rely on a program."""
    return program.is_engine or program.unit in (state.PROXY, *state.RELIED_ON)


def _title(change: Change, name: str, need: state.Need) -> str:
    """How something is brought, in words; several secrets are written at once."""
    if need.kind == "model":
        return _download(change, name, need)
    if need.kind == "kept":
        nodes = change.now.nodes.items()
        was = next((each for each, node in nodes if need in node.has and each != name), "")
        return f"copy {need.name} from {was}" if was else need.source
    path = sh(f"{need.place}/{need.name}")
    words = {"name": sh(need.name), "place": need.place, "path": path, "source": sh(need.source)}
    return _WORDS[need.kind].format_map(words)


_WORDS = dict(resources.rows("needs"))


def _download(change: Change, name: str, need: state.Need) -> str:
    revision = ("--revision", need.source) if need.source not in ("", "main") else ()
    command = sh(("hf", "download", need.name, *revision))
    had = change.now.nodes[name].has if name in change.now.nodes else ()
    if any((old.name, old.source) == (need.name, need.source) for old in had):
        return f"fetch or move the model first, into {sh(need.place)}: {command}"
    return f"fetch the model first: {command}"


def _copies(change: Change) -> Iterator[Action]:
    """The copies of folders; a renamed node accepts its own only if it may take the new name.

    Nodes are named if the command does not reach all of them yet, or not as they are called.
    """
    names = [name for name in change.start_order if name in change.touched]
    renamed = [name for name in names if change.hosts.get(name, name) != name]
    late = [
        action.node
        for action in _by_hand(change)
        if action.node in change.now.nodes and action.unmet(change.now)
    ]
    for name in (*(each for each in names if each not in renamed), *renamed):
        option = "--set-hostname " if name in renamed else ""
        alike = [n for n in names if (n in renamed) is bool(option) and n not in late]
        among = [name] if name in late else alike
        words = "".join(f" {each}" for each in among) if renamed or late else ""
        yield do.copy(name, change.after.folders[name], option, words)


def _engines(change: Change) -> Iterator[Action]:
    """Drains, stops, starts and switches."""
    doors = _draining(change, change.before, change.after)
    stays = {door.node for door in change.after.doors if door.drains}
    for engine in change.stopping:
        for node, group in _drained(engine, doors.known):
            yield do.drain(node, group, engine, doors)
            again = change.after.by_group.get(group) or change.continued.get(engine.group)
            if again and node in stays:
                yield do.undrain(node, group, again, engine, doors)
        booted = [name for name in engine.nodes if name in change.power_cycled]
        for name in engine.nodes[:1] if engine.job else engine.nodes:
            yield do.stop(name, engine, doors)
        yield from (do.stop(name, engine, again=True) for name in booted)
    for engine in change.starting:
        programs = {name: change.after.folders[name].programs[engine.unit] for name in engine.nodes}
        for name in engine.nodes[:1] if engine.job else (*engine.nodes[1:], engine.nodes[0]):
            gone, plugs = change.unplugged_at(name), change.plugged_at(name)
            yield do.start(name, engine, programs, gone, plugs)
        yield do.wait_for(engine, programs)
    for engine in change.switched.values():
        programs = {name: change.after.folders[name].programs[engine.unit] for name in engine.nodes}
        yield do.switch(engine, programs)


def _draining(change: Change, *bundles: state.Desired) -> must.Doors:
    doors = [(bundle, door) for bundle in bundles for door in bundle.doors if door.drains]
    ends = [e for group, e in change.before.running.items() if group not in change.continued]
    names = {name for engine in ends for name in engine.names}
    stays = {n for e in (*change.continued.values(), *change.active) for n in e.names}
    stays |= {n for group in change.continued for n in change.before.by_group[group].names}
    return must.Doors(doors, names - stays)


def _drained(
    engine: state.LiveEngine, doors: Iterable[tuple[state.Desired, state.Door]]
) -> Mapping[tuple[str, str], None]:
    """The proxies' nodes, each with the group that its proxy has at an engine's address."""
    return {
        (door.node, known.group): None
        for bundle, door in doors
        for known in (bundle.by_group[group] for group in door.groups)
        if known.is_active and known.nodes[0] == engine.nodes[0]
        if known.url.rpartition(":")[2] == engine.url.rpartition(":")[2]
    }


def _installations(change: Change) -> Iterator[Action]:
    for name in change.before.folders:
        if name not in change.after.folders:
            yield do.uninstall(name)
    for name in change.start_order:
        folder = change.after.folders[name]
        node = change.now.nodes.get(name) or state.LiveNode(name, folder.address, folder.user)
        if name in change.touched:
            renames = node.name != name
            confirms, plugs = must.is_guarded(node, folder), change.plugged_at(name)
            yield do.install(name, folder, plugs, renames=renames, confirms=confirms)


def _services(change: Change) -> Iterator[Action]:
    """The services that read something else now, in the order of the services."""
    order = [activation.unit for activation in activations().values()]
    for name in change.start_order:
        new = change.after.folders[name].programs
        old = change.before.folders[name].programs if name in change.before.folders else {}
        # The chat page leaves its address to a proxy that encrypts, and gets it back.
        encrypts = state.PROXY in new and new[state.PROXY].mentions("TLS_KEY")
        first, last = (state.WEB_UI, state.PROXY) if encrypts else (state.PROXY, state.WEB_UI)
        for unit, program in new.items():
            title = program.command(old.get(unit))
            if not program.is_engine and title and not program.is_like(old.get(unit)):
                waits = unit == last and first in new and first in old
                is_urgent = _is_urgent(program) or (unit == first and encrypts)
                place = order.index(unit) if unit in order else len(order)
                before = must.are_running({name: new[first]} if waits else {})
                if unit == state.PROXY and " reload " in title:
                    before = _rerouted(change)
                if unit == state.LOGINS:
                    before = must.are_reached([*change.after.folders.values()])
                groups = [g for d in change.after.doors if d.node == name for g in d.groups]
                action = do.run(name, program, title, place, before, groups)
                yield _later(action, 1, is_late=not is_urgent)
        for unit, program in old.items():
            if unit not in new and (program.activation.before or program.activation.gone):
                yield do.undo(name, program, change.after.folders[name])


def _rerouted(change: Change) -> Requirement:
    """That engines to which no route leads then get no requests, and those with a new one serve."""
    before, after = ({e.endpoint for e in d.engines} for d in (change.before, change.after))
    gone = [engine for engine in change.stopping if engine.endpoint not in after]
    new = [engine for engine in change.starting if engine.endpoint not in before]
    return must.can_change(gone, new, _draining(change, change.before))


def _checks(change: Change) -> Iterator[Action]:
    """The links that changed, by the engines that use them, and the cables that were plugged."""
    plugged = {name for cable, _ in change.plugs for name in cable.nodes}
    linked = {name: f for name, f in change.after.folders.items() if f.links}
    old, new = change.now.nodes, state.LiveNode("", "", "")
    due = (n for n, f in linked.items() if n in plugged or not must.has_links(old.get(n, new), f))
    left = dict.fromkeys(due)
    for engine in sorted(change.after.engines, key=lambda engine: not engine.is_active):
        ranks = {name: linked[name] for name in engine.nodes if name in linked}
        if len(ranks) > 1 and not left.keys().isdisjoint(ranks):
            for name in ranks:
                left.pop(name, None)
            yield _check(change, engine.group, ranks, ranks)
    if left:
        yield _check(change, "", left, linked)
    for name in change.start_order:
        if name in plugged:
            yield do.measure(name)


def _check(
    change: Change, group: str, nodes: Iterable[str], peers: Mapping[str, state.NodeFolder]
) -> Action:
    plugged = [each for name in peers for each in change.plugged_at(name)]
    return do.check_fabric(group, [*nodes], peers, plugged, change.setups)


def _elsewhere(change: Change) -> Iterator[Action]:
    before, after = change.before.elsewhere, change.after.elsewhere
    for path in {**before, **after}:
        if not same(path, after.get(path, ""), before.get(path, "")):
            yield do.load(path, after.get(path, ""), ELSEWHERE[path])


def _likeness(old: state.LiveCable, new: state.LiveCable) -> int:
    """How likely both are the same cable: by label, an end that stays, or number and nodes."""
    if old.label or new.label:
        return 2 * (old.label == new.label)
    is_alike = old.number == new.number and {*old.nodes} == {*new.nodes}
    return 2 if {*old.ends} & {*new.ends} else is_alike


def _traits(engine: state.LiveEngine) -> tuple[object, ...]:
    """What one of two engines has in common with the other if it may become that."""
    return ("group", engine.group), frozenset(engine.nodes), *engine.names


def _kinship(old: state.LiveEngine, new: state.LiveEngine) -> int:
    """How likely one becomes the other: by group and node, or else by names, nodes, or group."""
    has_group, has_names = old.group == new.group, not {*old.names}.isdisjoint(new.names)
    stays = has_group and not {*old.nodes}.isdisjoint(new.nodes)
    return 8 * stays + 4 * has_names + 2 * ({*old.nodes} == {*new.nodes}) + has_group
