"""What people and scripts do to a cluster: what must hold before, and what holds afterwards.

Nothing here is executed. An action is its words, its conditions and its effects, so that a plan can
be carried out before it is shown.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from generator.operation import conditions as must
from generator.operation import state
from generator.operation.conditions import NO_FOLDER, Requirement
from generator.records import record, replace

Result = Callable[[state.Cluster], state.Cluster]
# Cables, each with one of the ports that it leaves or goes into.
Plugs = Sequence[tuple[state.LiveCable, str]]

# The limits of what install.sh runs, of starting or stopping a service, of a reload or of
# wait-fabric.sh as it is called here, and of how long proxy.sh waits for the requests that an
# engine has.
INSTALL_SECONDS = SERVICE_SECONDS = 60
FABRIC_SECONDS = RELOAD_SECONDS = 10
DRAIN_SECONDS = 600
# The phases that a plan knows.
ADDRESS, DRAIN, STOP, SERVICE, START = (2,), (8, 0), (8, 1), 18, (21,)
WAIT, UNDRAIN, SWITCH, LATER, LAST = (22,), (23,), (24,), (25,), (30,)
CONFIRMED = ", then install.sh --confirm in a new session within 120 s"


@record
class Action:
    """One thing that is done on a node, or elsewhere if that has no name.

    `phase` is its place in the usual order, and `title` its words, the same on all nodes. It takes
    `seconds` at most; None is as long as people and networks take. `needs` must hold. `until` is
    the cluster while it is done, `done` what it is afterwards. `is_needless` says whether there is
    nothing to do. What is done on several nodes at once has `nodes` instead, and what is done to an
    `engine` has its place.
    """

    phase: tuple[int | str, ...]
    title: str
    node: str
    needs: tuple[Requirement, ...]
    done: Result
    seconds: int | None = None
    until: Result | None = None
    is_needless: Callable[[state.Cluster], bool] | None = None
    nodes: tuple[str, ...] = ()
    engine: state.EnginePlace = ()

    def unmet(self, now: state.Cluster) -> str:
        """The first condition that does not hold, in words."""
        return next(filter(None, (condition(now) for condition in self.needs)), "")

    def has_nothing_to_do(self, now: state.Cluster) -> bool:
        """Whether the cluster is already as this would make it."""
        return bool(self.is_needless and self.is_needless(now))

    def during(self, now: state.Cluster) -> state.Cluster:
        """The cluster while it is done."""
        return self.until(now) if self.until else now


def prepare(node: str, folder: state.NodeFolder, has: frozenset[state.Need]) -> Action:
    """Put a new node into service, as far as no bundle does that."""
    fresh = state.LiveNode(node, folder.address, folder.user, has=has)

    def then(now: state.Cluster) -> state.Cluster:
        is_plugged = any(end.startswith(f"{node}:") for end in now.plugged)
        known = replace(fresh, is_checked=not is_plugged, is_measured=not is_plugged)
        return replace(now, nodes={**now.nodes, node: known})

    title = "start the node and prepare it as README.md says"
    return Action((1,), title, node, (must.is_free(folder.address, node),), then)


def make_login(node: str, user: str) -> Action:
    """Make sure that people can log in under the name that the site has for them."""
    title = f"see that {user} is a login, with sudo and Docker"
    return Action((2,), title, node, (must.is_on(node),), _changes(node, user=user))


def let_in(node: str, address: str) -> Action:
    """Leave SSH open to the network that a node is about to be reached from."""
    title = "let in logins from there: sudo ufw allow from NETWORK to any port 22 proto tcp"
    is_shut, mark = must.lets_logins_in(node, address), must.LETS_IN.format(node)
    then, needs = lambda now: _marked(now, mark), (must.is_on(node),)
    return Action((1,), title, node, needs, then, is_needless=lambda now: not is_shut(now))


def change_address(node: str, address: str, *more: Requirement) -> Action:
    """Give a node another address on the management network, which sparkgen never configures."""
    title = f"change the management address to {address} by hand"
    is_unused = must.has_unused_address(node)
    needs = (must.is_on(node), is_unused, must.is_free(address, node), *more)

    def then(now: state.Cluster) -> state.Cluster:
        old = f"://{now.nodes[node].address}:"
        serving = {
            place: replace(engine, url=engine.url.replace(old, f"://{address}:"))
            for place, engine in now.serving.items()
        }
        return _with(replace(now, serving=serving), node, address=address)

    return Action((2,), title, node, needs, then)


# Images before models, since less can go wrong there; secrets and keys after the installation.
_PHASES = {"image": 3, "built image": 3, "squashfs": 3, "secret": 17, "key": 17, "kept": 17}


def bring(
    node: str, needs: Sequence[state.Need], title: str, before: Iterable[Requirement]
) -> Action:
    """Bring what programs need and no bundle contains, all of one kind; `before` must hold too."""
    kind = needs[0].kind
    wanted = [must.is_on(node), *before]
    if kind in ("secret", "key", "kept"):
        wanted.append(must.has_folder(node, needs[0]))
    elif kind == "squashfs":
        wanted.append(must.has(node, state.Need("image", needs[0].source)))
    elif kind in ("environment", "file"):
        wanted += (must.is_unused(node, need) for need in needs)
    return Action(
        (_PHASES.get(kind, 4), title),
        title,
        node,
        tuple(wanted),
        lambda now: _with(now, node, has=now.nodes[node].has | {*needs}),
    )


def take_away(node: str, folder: state.NodeFolder, secrets: Sequence[state.Need]) -> Action:
    """Take secrets out of a node's file that nothing there reads any more."""
    title = f"take {', '.join(need.name for need in secrets)} out of /etc/sparkgen/secrets.env"
    return Action(
        LAST,
        f"{title}, which nothing reads any more",
        node,
        (must.is_on(node), must.is_renewed(node, folder)),
        lambda now: _with(now, node, has=now.nodes[node].has - {*secrets}),
    )


def copy(node: str, folder: state.NodeFolder, option: str, among: str) -> Action:
    """Copy a folder; other nodes are named if one of them would refuse the same command."""
    title = f"copy the folder (operator/deploy.sh {option}--run{among})"
    needs = (must.is_on(node), must.accepts(node, folder, bool(option)))
    return Action((5,), title, node, needs, _changes(node, copied=folder))


def set_up_switch(title: str) -> Action:
    """Set a switch up for what the nodes will send."""
    return Action((7,), title, "", (), lambda now: _marked(now, title))


def drain(node: str, group: str, engine: state.LiveEngine, doors: must.Doors) -> Action:
    """Have the proxy on a node, which calls its group so, send an engine no more requests."""
    called = f" (the proxy's name for {engine.group})" if group != engine.group else ""
    proxy = node, group
    return Action(
        DRAIN,
        f"/opt/sparkgen/proxy.sh drain {group}{called}",
        node,
        (must.runs(node, state.PROXY),),
        lambda now: replace(now, drained=now.drained | {proxy}),
        DRAIN_SECONDS,
        is_needless=lambda now: (
            _STOPPED.format(engine.place) in now.prepared
            or proxy not in must.spared(now, engine, doors)
        ),
        engine=engine.place,
    )


_STOPPED = "{} has stopped"


def undrain(
    node: str, group: str, engine: state.LiveEngine, was: state.LiveEngine, doors: must.Doors
) -> Action:
    """Have the proxy send a group requests again, where it finds one that serves after `was`."""
    proxy = node, group
    stopped = must.is_prepared(_STOPPED.format(was.place))
    needs = [must.runs(node, state.PROXY), must.serves(engine), stopped]
    if engine.is_active:
        needs.append(must.is_found(node, group, doors.known))
    return Action(
        UNDRAIN,
        f"/opt/sparkgen/proxy.sh undrain {group}",
        node,
        tuple(needs),
        lambda now: replace(now, drained=now.drained - {proxy}),
        0,
        is_needless=lambda now: proxy not in now.drained,
        engine=engine.place,
    )


def stop(
    node: str, engine: state.LiveEngine, doors: must.Doors = must.NO_DOORS, *, again: bool = False
) -> Action:
    """Stop one rank of an engine, or its job in Slurm; `again` if the boot has started it.

    The proxy of `doors` drains it first if others take its requests, or nobody does after.
    """
    head = engine.nodes[0]
    order = ", the head first" if len(engine.nodes) > 1 else ""
    how = ", which the boot has started" if again else order
    title = (
        f"scancel --name={engine.job[0]}" if engine.job else f"stop the engine{_of(engine)}{how}"
    )
    then = _stops(engine.nodes if engine.job else [node], [engine.unit])
    needs = [must.is_on(node)]
    if node != head:
        needs.append(must.is_down(head, engine.unit))
    else:
        needs.append(must.get_nothing([engine], doors))
        then = _then(then, lambda now: _marked(now, _STOPPED.format(engine.place)))
    return Action(
        (15,) if again else STOP,
        title,
        node,
        tuple(needs),
        then,
        engine.stop_seconds,
        then,
        lambda now: (
            engine.unit not in now.nodes[node].running or (again and now.nodes[node].is_measured)
        ),
        engine=engine.place,
    )


def uninstall(node: str) -> Action:
    """Take a bundle off a node."""

    def then(now: state.Cluster) -> state.Cluster:
        off = _stops([node], now.nodes[node].running)(now)
        return _with(off, node, installed=None, links="", is_checked=True, is_measured=True)

    needs = (must.is_on(node), must.is_idle(node))
    return Action((*LATER, 2), "install.sh --uninstall", node, needs, then, INSTALL_SECONDS, then)


def shut_down(node: str, cables: Plugs) -> Action:
    """Shut a node down, so that its network card finds other cables at the boot."""
    plugged = [must.is_in(cable, end) for cable, end in cables]

    def then(now: state.Cluster) -> state.Cluster:
        ran = now.nodes[node].running
        return _with(_stops([node], [u for u, p in ran.items() if p.boots])(now), node, is_on=False)

    needs = (must.is_on(node), must.is_idle(node))

    def is_plugged(now: state.Cluster) -> bool:
        return not any(is_out(now) for is_out in plugged)

    return Action((11,), "shut the node down", node, needs, then, None, then, is_plugged)


def unplug(
    cable: state.LiveCable,
    ends: Sequence[str],
    off: Collection[str],
    folders: Mapping[str, state.NodeFolder] | None,
) -> Action:
    """Take a cable out by its old number, while nothing runs or new folders do without it.

    Nodes that get other cables are `off` meanwhile.
    """

    def then(now: state.Cluster) -> state.Cluster:
        return replace(now, plugged={e: c for e, c in now.plugged.items() if e not in ends})

    quiet = [
        must.is_idle(node) if folders is None else must.is_renewed(node, folders.get(node))
        for node in cable.nodes
    ]
    quiet += (must.is_off(node) for node in cable.nodes if node in off)
    needs = (*(must.is_in(cable, end) for end in ends), *quiet)
    return Action((12,), f"unplug {cable} from {' and '.join(ends)}", "", needs, then)


def plug(
    cable: state.LiveCable, ends: Sequence[str], was: state.LiveCable | None, *, is_early: bool
) -> Action:
    """Put a cable into these ports; early if nothing that runs is at either end.

    If it was elsewhere, it is taken out of there first. Without a label, it is called what it was.
    """

    def then(now: state.Cluster) -> state.Cluster:
        now = replace(now, plugged={**now.plugged, **dict.fromkeys(cable.ends, cable)})
        for node in now.nodes.keys() & {*cable.nodes}:
            now = _with(now, node, is_checked=False, is_measured=False)
        return now

    off = (must.is_off(node) for node in cable.nodes)
    out = [must.is_out(was, end) for end in was.ends if end not in cable.ends] if was else []
    needs = (*(must.is_in(None, end) for end in ends), *off, *out)
    called = f" ({was} until now)" if was and not (was.label or was.number == cable.number) else ""
    title = f"plug {cable}{called} into {' and '.join(ends)}"
    return Action((0 if is_early else 13,), title, "", needs, then)


def start_node(node: str, gone: Plugs, cables: Plugs) -> Action:
    """Start a node again, with its cables in, which starts what is enabled in its bundle."""

    def then(now: state.Cluster) -> state.Cluster:
        folder = now.nodes[node].installed or NO_FOLDER
        started = {unit: program for unit, program in folder.programs.items() if program.boots}
        return _with(now, node, is_on=True, running={**now.nodes[node].running, **started})

    plugged = (must.is_in(cable, end) for cable, end in cables)
    needs = (must.is_off(node), *(must.is_out(cable, end) for cable, end in gone), *plugged)
    title = "start the node again"
    return Action((14,), title, node, needs, then, is_needless=lambda now: node not in now.nodes)


def install(
    node: str,
    folder: state.NodeFolder,
    plugs: Plugs,
    *,
    renames: bool,
    confirms: bool,
) -> Action:
    """Install a folder, and confirm it if need be.

    What changes at the node is plugged first, since the boot for that starts its services.
    """

    def until(now: state.Cluster) -> state.Cluster:
        ran = now.nodes[node].running
        gone = [u for u, p in ran.items() if u not in folder.programs and not p.activation.gone]
        return _stops([node], gone)(now)

    def then(now: state.Cluster) -> state.Cluster:
        was = now.nodes[node]
        return _with(
            until(now),
            node,
            name=folder.node,
            installed=folder,
            links=folder.links,
            is_confirmed=confirms or not must.is_guarded(was, folder),
            is_checked=not folder.links or (was.is_checked and must.has_links(was, folder)),
        )

    option, more = "--set-hostname " if renames else "", CONFIRMED if confirms else ""
    needs = (
        must.is_on(node),
        must.accepts(node, folder, renames),
        must.is_replaceable(node, folder),
        *(must.is_in(cable, end) for cable, end in plugs),
    )
    title = f"install.sh {option}--apply{more}"
    return Action((16,), title, node, needs, then, INSTALL_SECONDS, until)


def run(
    node: str, program: state.Program, title: str, order: int, before: Requirement, own: list[str]
) -> Action:
    """Start or restart a service beside the engine, or run its script; a reload has no break.

    After that, a proxy drains only some of its `own` groups.
    """
    needs = (must.is_ready(node, program), before)
    starts = _starts({node: program})
    if " reload " not in title:
        until = _stops([node], [program.unit])
        then = _then(until, starts)
        return Action((SERVICE, order), title, node, needs, then, SERVICE_SECONDS, until)

    def reloaded(now: state.Cluster) -> state.Cluster:
        left = frozenset(p for p in now.drained if p[0] != node or p[1] in own)
        return starts(replace(now, drained=left))

    known = (*needs, must.runs(node, program.unit))
    return Action((SERVICE, order), title, node, known, reloaded, RELOAD_SECONDS)


def undo(node: str, program: state.Program, folder: state.NodeFolder) -> Action:
    """Undo what a script did before its removal, or have a program see that its file is gone."""
    late = () if program.activation.before else (must.is_renewed(node, folder),)
    title = program.activation.before or program.activation.gone
    phase = (*LATER, 1, 0) if late else (9,)
    needs, then = (must.is_on(node), *late), _stops([node], [program.unit])
    return Action(phase, title, node, needs, then, SERVICE_SECONDS)


def check_fabric(
    group: str,
    nodes: Sequence[str],
    peers: Mapping[str, state.NodeFolder],
    cables: Plugs,
    setups: Sequence[str],
) -> Action:
    """Try each half of each cable from these nodes to their peers, once all else is done."""
    plugged = (must.is_in(cable, end) for cable, end in cables)
    checked = [must.is_checked(name, is_measured=False) for name in nodes]

    def then(now: state.Cluster) -> state.Cluster:
        tried = {name: replace(now.nodes[name], is_checked=True) for name in nodes}
        return replace(now, nodes={**now.nodes, **tried})

    return Action(
        (19,),
        f"check the fabric: wait-fabric.sh {f'--group {group} ' if group else ''}10",
        "",
        (must.are_linked(peers), *plugged, *map(must.is_prepared, setups)),
        then,
        FABRIC_SECONDS,
        is_needless=lambda now: not any(said(now) for said in checked),
        nodes=tuple(nodes),
    )


def measure(node: str) -> Action:
    """Measure the cables that were plugged: what is found late has a tenth of its speed."""
    title = "see that each plugged port is up at 200000Mb/s (operator/cables.txt), and measure the"
    return Action(
        (20,),
        f"{title} cables (verify.py --bandwidth)",
        node,
        (must.is_on(node), must.is_checked(node, is_measured=False), must.is_idle(node)),
        _changes(node, is_measured=True),
        is_needless=lambda now: node in now.nodes and now.nodes[node].is_measured,
    )


def start(
    node: str,
    engine: state.LiveEngine,
    programs: Mapping[str, state.Program],
    gone: Plugs,
    plugs: Plugs,
) -> Action:
    """Start one rank of an engine, workers before the head, once all its cables are in place.

    A job in Slurm starts all ranks.
    """
    head, own = engine.nodes[0], programs if engine.job else {node: programs[node]}
    last = ", the head last" if len(engine.nodes) > 1 else ""
    title, workers = f"start the engine{_of(engine)}{last}", {}
    if engine.job:
        title = f"drop the page caches as README.md says, then sbatch {engine.job[1]}"
    elif node == head:
        workers = {name: programs[name] for name in engine.nodes[1:]}
    needs = (
        *(must.is_ready(name, program) for name, program in programs.items()),
        *map(must.is_checked, own),
        *(must.has_room(name, engine) for name in engine.nodes),
        must.are_running(workers),
        *(must.is_out(cable, end) for cable, end in gone),
        *(must.is_in(cable, end) for cable, end in plugs),
    )
    return Action(
        START,
        title,
        node,
        needs,
        _starts(own),
        0,
        is_needless=lambda now: not must.are_running(own)(now),
        engine=engine.place,
    )


def wait_for(engine: state.LiveEngine, programs: Mapping[str, state.Program]) -> Action:
    """Wait until an engine serves; one that stops first serves until then."""
    return Action(
        WAIT,
        "wait until these serve",
        engine.nodes[0],
        (must.are_running(programs),),
        _serves(engine),
        engine.load_seconds,
        is_needless=lambda now: engine.place in now.serving,
        engine=engine.place,
    )


def switch(engine: state.LiveEngine, programs: Mapping[str, state.Program]) -> Action:
    """Run an engine in place of another one, with the operator's script, which waits for it."""

    def until(now: state.Cluster) -> state.Cluster:
        return _stops(programs, engine.rivals)(now)

    def then(now: state.Cluster) -> state.Cluster:
        return _serves(engine)(_starts(programs)(until(now)))

    ready = (must.is_ready(node, program) for node, program in programs.items())
    needs = (*ready, *map(must.is_checked, programs))
    seconds = engine.stop_seconds + engine.load_seconds
    title = f"operator/switch.sh {engine.group}"
    return Action(SWITCH, title, "", needs, then, seconds, until, engine=engine.place)


def load(path: str, text: str, program: str) -> Action:
    """Give a file to a program that is not on the nodes, or take it back if it is empty."""
    title = f"load {path} into {program}" if text else f"take {path} out of {program} again"
    return Action(
        LAST, title, "", (), lambda now: replace(now, elsewhere={**now.elsewhere, path: text})
    )


def _of(engine: state.LiveEngine) -> str:
    return f" of {engine.group}" if engine.group else ""


def _with(now: state.Cluster, key: str, **changes: Any) -> state.Cluster:
    return replace(now, nodes={**now.nodes, key: replace(now.nodes[key], **changes)})


def _changes(key: str, **changes: Any) -> Result:
    return lambda now: _with(now, key, **changes)


def _marked(now: state.Cluster, mark: str) -> state.Cluster:
    return replace(now, prepared=now.prepared | {mark})


def _starts(programs: Mapping[str, state.Program]) -> Result:
    """These programs run on their nodes."""

    def then(now: state.Cluster) -> state.Cluster:
        for name, program in programs.items():
            now = _with(now, name, running={**now.nodes[name].running, program.unit: program})
        return now

    return then


def _serves(engine: state.LiveEngine) -> Result:
    return lambda now: replace(now, serving={**now.serving, engine.place: engine})


def _stops(names: Collection[str], units: Collection[str]) -> Result:
    """These programs no longer run on nodes, and no engine serves that lacks one of them.

    Which engines are drained is in the folder of the proxy's unit below /run, which ends with it.
    """

    def then(now: state.Cluster) -> state.Cluster:
        for name in names:
            running = {u: p for u, p in now.nodes[name].running.items() if u not in units}
            lost = {g for g, e in now.serving.items() if e.unit in units and name in e.nodes}
            if lost:
                now = replace(now, serving={g: now.serving[g] for g in now.serving.keys() - lost})
            now = _with(now, name, running=running)
        if state.PROXY not in units:
            return now
        return replace(now, drained=frozenset(p for p in now.drained if p[0] not in names))

    return then


def _then(first: Result, second: Result) -> Result:
    return lambda now: second(first(now))
