"""What must hold before something is done to a cluster; each condition says what does not."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Concatenate, ParamSpec

from generator.operation import state
from generator.operation.firewall import lets_in
from generator.operation.meaning import same
from generator.records import record, replace

# What does not hold yet, in words; empty if the condition is met.
Requirement = Callable[[state.Cluster], str]
_P = ParamSpec("_P")


@record
class Doors:
    """The doors that drain engines, each with its bundle, and the names that nobody has after."""

    known: Sequence[tuple[state.Desired, state.Door]] = ()
    given_up: Collection[str] = ()


NO_DOORS, NO_FOLDER = Doors(), state.NodeFolder("", "")
NETPLAN = "etc/netplan/40-cx7.yaml"


def condition(check: Callable[Concatenate[state.Cluster, _P], str]) -> Callable[_P, Requirement]:
    """A check of a cluster as a condition about what it is given besides."""

    def about(*given: _P.args, **named: _P.kwargs) -> Requirement:
        return lambda now: check(now, *given, **named)

    return about


@condition
def is_on(now: state.Cluster, name: str) -> str:
    """A node can be reached, and nothing is about to be taken back there."""
    node = now.nodes.get(name)
    if node is None:
        return f"{name} has not been prepared"
    if not node.is_on:
        return f"{name} is off"
    return "" if node.is_confirmed else f"the last change of {name} is not confirmed"


@condition
def accepts(now: state.Cluster, name: str, folder: state.NodeFolder, renames: bool) -> str:
    """A node is reached as its folder says, and has the name in it or may take it."""
    node = now.nodes[name]
    if folder.user not in ("", node.user):
        return f"{folder.user} is no login on {name}"
    if folder.address not in ("", node.address):
        return f"{name} is not at {folder.address} yet"
    is_named = renames or node.name == folder.node
    return "" if is_named else f"the host of {folder.node} is called {node.name}"


@condition
def are_reached(now: state.Cluster, folders: Collection[state.NodeFolder]) -> str:
    """These nodes are on, and reached at the address and by the login in their folders."""
    said = (is_on(f.node)(now) or accepts(f.node, f, renames=True)(now) for f in folders)
    return next(filter(None, said), "")


@condition
def is_idle(now: state.Cluster, name: str) -> str:
    """No engine runs on a node, if it exists."""
    return next((f"{program.unit} runs on {name}" for program in engines_on(now, name)), "")


@condition
def is_renewed(now: state.Cluster, name: str, folder: state.NodeFolder | None) -> str:
    """A node has its new folder, or none if it has left the cluster."""
    node = now.nodes.get(name)
    return f"{name} has the previous folder" if node and node.installed != folder else ""


@condition
def is_down(now: state.Cluster, name: str, unit: str) -> str:
    """A unit does not run on a node."""
    return f"{unit} runs on {name}" if unit in now.nodes[name].running else ""


@condition
def is_prepared(now: state.Cluster, mark: str) -> str:
    """Something was done elsewhere, such as on a switch."""
    return "" if mark in now.prepared else f"this has not been done: {mark}"


@condition
def has_unused_address(now: state.Cluster, name: str) -> str:
    """No engine with a rank on a node was started with its present address."""
    old = now.nodes[name].address
    units = {program.unit for program in engines_on(now, name)}
    ran = (p for node in now.nodes.values() for p in node.running.values() if p.unit in units)
    is_used = bool(old) and any(program.mentions(old) for program in ran)
    return f"{old} is used by an engine that runs on {name}" if is_used else ""


@condition
def is_free(now: state.Cluster, address: str, name: str) -> str:
    """No other node with a bundle is reached at an address."""
    others = (n for n, node in now.nodes.items() if node.address == address and node.installed)
    holder = next((each for each in others if address and each != name), "")
    return f"{holder} still has {address}" if holder else ""


@condition
def has(now: state.Cluster, name: str, need: state.Need) -> str:
    """Something was brought to a node."""
    return "" if need in now.nodes[name].has else f"{name} lacks {need.kind} {need.name}"


@condition
def has_bundle(now: state.Cluster, name: str) -> str:
    """What a node keeps for its services has not been given up."""
    return "" if now.nodes[name].installed else f"the bundle is off {name}"


LETS_IN = "logins on {}"


@condition
def lets_logins_in(now: state.Cluster, name: str, address: str) -> str:
    """A node's firewall leaves SSH open to the network of an address, or was told to."""
    if lets_in(now.nodes[name].running, "22", address) or LETS_IN.format(name) in now.prepared:
        return ""
    return f"the firewall of {name} keeps logins from the network of {address}"


@condition
def is_unused(now: state.Cluster, name: str, need: state.Need) -> str:
    """Nothing runs on a node with other content at the same place."""
    for program in now.nodes[name].running.values():
        if any((n.kind, n.name) == (need.kind, need.name) for n in program.needs - {need}):
            return f"{program.unit} uses {need.name} on {name}"
    return ""


@condition
def has_folder(now: state.Cluster, name: str, need: state.Need) -> str:
    """A node has the file or folder that something is put into, and a copy of what makes it."""
    folder, copied = now.nodes[name].installed, now.nodes[name].copied
    if need.kind == "secret" and not (folder and folder.has_secrets):
        return f"{name} has no file for secrets yet"
    is_there = folder and (need.kind != "kept" or (copied and need in copied.needs))
    return "" if is_there else f"{name} has nothing yet that makes or keeps it"


@condition
def is_replaceable(now: state.Cluster, name: str, folder: state.NodeFolder) -> str:
    """A node has a copy of a folder, and runs no engine with other settings or over its links."""
    node = now.nodes[name]
    if node.copied != folder:
        return f"the folder of {name} has not been copied"
    for program in engines_on(now, name):
        if not program.is_like(folder.programs.get(program.unit)):
            return f"{program.unit} runs on {name} with what this replaces"
        if not has_links(node, folder):
            return f"{program.unit} runs on {name}, whose links drop"
    gone = (p.activation for p in node.running.values() if p.unit not in folder.programs)
    script = next((activation.before for activation in gone if activation.before), "")
    return f"{script} has not been run on {name}" if script else ""


@condition
def is_in(now: state.Cluster, cable: state.LiveCable | None, end: str) -> str:
    """A port has this cable, or none."""
    return "" if now.plugged.get(end) == cable else f"{cable} is not in {end}"


@condition
def is_out(now: state.Cluster, cable: state.LiveCable, end: str) -> str:
    """A port no longer has this cable."""
    return f"{cable} is still in {end}" if now.plugged.get(end) == cable else ""


@condition
def is_off(now: state.Cluster, name: str) -> str:
    """A node is off, or was never on: network cards are found at the boot."""
    return f"{name} is on" if name in now.nodes and now.nodes[name].is_on else ""


@condition
def are_linked(now: state.Cluster, folders: Mapping[str, state.NodeFolder]) -> str:
    """These nodes are on, and their links are as their folders say."""
    for name, folder in folders.items():
        if said := is_on(name)(now):
            return said
        if not has_links(now.nodes[name], folder):
            return f"the links of {name} are not configured"
    return ""


@condition
def is_checked(now: state.Cluster, name: str, is_measured: bool = True) -> str:
    """The links of a node have been tried since they changed, and measured if it was plugged."""
    node = now.nodes.get(name)
    known = node and node.is_checked and (node.is_measured or not is_measured)
    return "" if known else f"the links of {name} have not been tried"


@condition
def is_ready(now: state.Cluster, name: str, program: state.Program) -> str:
    """A program's files are installed on a node, and what it needs is there, or runs there."""
    if said := is_on(name)(now):
        return said
    node = now.nodes[name]
    known = (node.installed or NO_FOLDER).programs
    if known.get(program.unit) != program:
        return f"the files of {program.unit} are not installed on {name}"
    if lacking := sorted(f"{need.kind} {need.name}" for need in program.needs - node.has):
        return f"{name} lacks {lacking[0]}"
    first = (known[unit] for unit in state.RELIED_ON if program.is_engine and unit in known)
    late = next((each.unit for each in first if not each.is_like(node.running.get(each.unit))), "")
    return f"{late} does not run on {name} yet" if late else ""


@condition
def has_room(now: state.Cluster, name: str, engine: state.LiveEngine) -> str:
    """Nothing that is to stop, or takes turns with an engine, runs on its node."""
    folder = now.nodes[name].installed if name in now.nodes else None
    new = (folder or NO_FOLDER).programs
    for other in engines_on(now, name):
        if not other.is_like(new.get(other.unit)):
            return f"{other.unit} still runs on {name}"
        if other.unit in engine.rivals:
            return f"{other.unit} has its turn on {name}"
    return ""


@condition
def are_running(now: state.Cluster, programs: Mapping[str, state.Program]) -> str:
    """These nodes run these programs, as the new bundle has them."""
    for name, program in programs.items():
        node = now.nodes.get(name)
        if node is None or not program.is_like(node.running.get(program.unit)):
            return f"{name} does not run {program.unit}"
    return ""


@condition
def serves(now: state.Cluster, engine: state.LiveEngine) -> str:
    """An engine answers, unless it waits for its turn."""
    is_right = engine.place in now.serving or not engine.is_active
    return "" if is_right else f"{engine.group} does not serve"


@condition
def is_found(
    now: state.Cluster, node: str, group: str, known: Sequence[tuple[state.Desired, state.Door]]
) -> str:
    """The proxy on a node, as it runs, has a group at an address where an engine answers."""
    sent = replace(now, drained=now.drained - {(node, group)})
    own = ((b, d, b.by_group[group]) for b, d in known if d.node == node and group in d.groups)
    is_found = any(e.endpoint in now.listening and _lets_through(sent, b, d, e) for b, d, e in own)
    return "" if is_found else f"the proxy on {node} does not know where {group} is"


@condition
def runs(now: state.Cluster, name: str, unit: str) -> str:
    """A unit runs on a node."""
    return is_on(name)(now) or ("" if is_down(name, unit)(now) else f"{name} does not run {unit}")


@condition
def get_nothing(now: state.Cluster, engines: Sequence[state.LiveEngine], doors: Doors) -> str:
    """These engines get no requests, or these are to be answered by them and no others."""
    asked = (engine.group for engine in engines if any(spared(now, engine, doors)))
    return next((f"{group} is not drained" for group in asked), "")


@condition
def can_change(
    now: state.Cluster,
    gone: Sequence[state.LiveEngine],
    new: Sequence[state.LiveEngine],
    doors: Doors,
) -> str:
    """These engines get no requests and the new ones serve, or nobody answers to another name."""
    asked = [(b, d, b.by_group[name]) for b, d in doors.known for name in d.groups]
    answered = {n for b, d, known in asked if answering(now, b, d, known) for n in known.names}
    names = {n for *_, known in asked if known.is_active for n in known.names}
    if names - answered - {*doors.given_up}:
        return ""
    return get_nothing(gone, doors)(now) or next(filter(None, (serves(e)(now) for e in new)), "")


def spared(now: state.Cluster, engine: state.LiveEngine, doors: Doors) -> Iterator[tuple[str, str]]:
    """The proxies that send requests to an engine which others would answer, or nobody after.

    Each is the proxy's node, with the group that the proxy has at the engine's address.
    """
    running = now.serving.get(engine.place)
    for bundle, door in doors.known if running else ():
        for known in bundle.asked.get(running.endpoint, ()) if running else ():
            others = {
                n: (answering(now, bundle, door, e) for e in bundle.asked[n]) for n in known.names
            }
            is_spared = all(
                name in doors.given_up or any(each not in (None, running) for each in found)
                for name, found in others.items()
            )
            if is_spared and _lets_through(now, bundle, door, known):
                yield door.node, known.group


def answering(
    now: state.Cluster, bundle: state.Desired, door: state.Door, known: state.LiveEngine
) -> state.LiveEngine | None:
    """The engine that answers through a door where a bundle has one, whatever its group is."""
    engine = now.listening.get(known.endpoint)
    if engine is None or engine.names != known.names or engine.key not in ("", known.key):
        return None
    return engine if _lets_through(now, bundle, door, known) else None


def _lets_through(
    now: state.Cluster, bundle: state.Desired, door: state.Door, known: state.LiveEngine
) -> bool:
    """Whether a door as a bundle has it is open, and passes requests on to an engine's node."""
    node, head = now.nodes.get(door.node), now.nodes.get(known.nodes[0])
    if node is None or head is None or (door.node, known.group) in now.drained:
        return False
    address = bundle.folders[door.node].address
    if address != node.address and f"//{address}:" in door.url:
        return False
    programs, port = bundle.folders[door.node].programs, known.url.rpartition(":")[2]
    return (
        all(programs[unit].is_like(node.running.get(unit)) for unit in door.units)
        and ("://127." in door.url or lets_in(node.running, door.url.rpartition(":")[2]))
        and (head is node or lets_in(head.running, port, node.address))
    )


def engines_on(now: state.Cluster, name: str) -> list[state.Program]:
    """The ranks that run on a node."""
    node = now.nodes.get(name)
    return [program for program in node.running.values() if program.is_engine] if node else []


def has_links(node: state.LiveNode, folder: state.NodeFolder) -> bool:
    """Whether a node's links are as a folder says."""
    return same(NETPLAN, node.links, folder.links)


def is_guarded(node: state.LiveNode, folder: state.NodeFolder) -> bool:
    """Whether a timer takes an installation back: of links, of sshd's files, of no firewall."""
    before = node.installed or NO_FOLDER
    ends_firewall = "firewall" in before.programs and "firewall" not in folder.programs
    return not has_links(node, folder) or before.guarded != folder.guarded or ends_firewall
