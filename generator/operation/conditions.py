"""What must hold before something is done to a cluster; each condition says what does not."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from generator.operation.meaning import same
from generator.operation.state import Cable, Cluster, Door, Engine, Folder, Need, Node, Program

# What does not hold yet, in words; empty if the condition is met.
Condition = Callable[[Cluster], str]

NO_FOLDER = Folder("", "")
_NETPLAN = "etc/netplan/40-cx7.yaml"


def is_on(name: str) -> Condition:
    """A node can be reached, and nothing is about to be taken back there."""

    def reason(now: Cluster) -> str:
        node = now.nodes.get(name)
        if node is None:
            return f"{name} has not been prepared"
        if not node.is_on:
            return f"{name} is off"
        return "" if node.is_confirmed else f"the last change of {name} is not confirmed"

    return reason


def accepts(name: str, folder: Folder, renames: bool) -> Condition:
    """A node is reached as its folder says, and has the name in it or may take it."""

    def reason(now: Cluster) -> str:
        node = now.nodes[name]
        if folder.user not in ("", node.user):
            return f"{folder.user} is no login on {name}"
        if folder.address not in ("", node.address):
            return f"{name} is not at {folder.address} yet"
        is_named = renames or node.name == folder.node
        return "" if is_named else f"the host of {folder.node} is called {node.name}"

    return reason


def is_idle(name: str) -> Condition:
    """No engine runs on a node, if it exists."""

    def reason(now: Cluster) -> str:
        units = [program.unit for program in engines_on(now, name)]
        return f"{units[0]} runs on {name}" if units else ""

    return reason


def is_down(name: str, unit: str) -> Condition:
    """A unit does not run on a node."""
    return lambda now: f"{unit} runs on {name}" if unit in now.nodes[name].running else ""


def is_prepared(mark: str) -> Condition:
    """Something was done elsewhere, such as on a switch."""
    return lambda now: "" if mark in now.prepared else f"this has not been done: {mark}"


def are_free_of(address: Callable[[Node], str], name: str) -> Condition:
    """No engine with a rank on a node was started with its present address."""

    def reason(now: Cluster) -> str:
        old = address(now.nodes[name])
        units = {program.unit for program in engines_on(now, name)}
        ran = (p for node in now.nodes.values() for p in node.running.values() if p.unit in units)
        is_used = bool(old) and any(program.mentions(old) for program in ran)
        return f"{old} is used by an engine that runs on {name}" if is_used else ""

    return reason


def has_folder(name: str, need: Need) -> Condition:
    """A node has the file or the folder that something is put into; it comes with a bundle."""

    def reason(now: Cluster) -> str:
        folder = now.nodes[name].installed
        if need.kind == "secret" and not (folder and folder.has_secrets):
            return f"{name} has no file for secrets yet"
        return "" if folder else f"nothing is installed on {name} yet"

    return reason


def is_replaceable(name: str, folder: Folder) -> Condition:
    """A node has a copy of a folder, and runs no engine with other settings or over its links."""

    def reason(now: Cluster) -> str:
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

    return reason


def are_in(ends: Iterable[str]) -> Condition:
    """A cable is in each of these ports."""

    def reason(now: Cluster) -> str:
        missing = next((end for end in ends if end not in now.plugged), "")
        return f"no cable is in {missing}" if missing else ""

    return reason


def is_in(cable: Cable, end: str) -> Condition:
    """A port has this cable."""
    return lambda now: "" if now.plugged.get(end) == cable else f"{cable} is not in {end}"


def is_out(cable: Cable, end: str) -> Condition:
    """A port no longer has this cable."""
    return lambda now: f"{cable} is still in {end}" if now.plugged.get(end) == cable else ""


def is_empty(end: str) -> Condition:
    """A port has no cable."""
    return lambda now: f"{now.plugged[end]} is in {end}" if end in now.plugged else ""


def is_off(name: str) -> Condition:
    """A node is off, or was never on: network cards are found at the boot."""
    return lambda now: f"{name} is on" if name in now.nodes and now.nodes[name].is_on else ""


def are_linked(folders: Mapping[str, Folder]) -> Condition:
    """These nodes are on, and their links are as their folders say."""

    def reason(now: Cluster) -> str:
        for name, folder in folders.items():
            if said := is_on(name)(now):
                return said
            if not has_links(now.nodes[name], folder):
                return f"the links of {name} are not configured"
        return ""

    return reason


def is_checked(name: str, is_measured: bool = True) -> Condition:
    """The links of a node have been tried since they changed, and measured if it was plugged."""

    def reason(now: Cluster) -> str:
        node = now.nodes.get(name)
        known = node and node.is_checked and (node.is_measured or not is_measured)
        return "" if known else f"the links of {name} have not been tried"

    return reason


def is_ready(name: str, program: Program) -> Condition:
    """A program's files are installed on a node, and what it needs is there."""

    def reason(now: Cluster) -> str:
        if said := is_on(name)(now):
            return said
        node = now.nodes[name]
        if (node.installed or NO_FOLDER).programs.get(program.unit) != program:
            return f"the files of {program.unit} are not installed on {name}"
        lacking = sorted(f"{need.kind} {need.name}" for need in program.needs - node.has)
        return f"{name} lacks {lacking[0]}" if lacking else ""

    return reason


def has_no_files(name: str, unit: str) -> Condition:
    """The files of a program are not installed on a node."""

    def reason(now: Cluster) -> str:
        folder = now.nodes[name].installed or NO_FOLDER
        return f"{name} still has the files of {unit}" if unit in folder.programs else ""

    return reason


def has_room(name: str, engine: Engine) -> Condition:
    """Nothing that is to stop, or takes turns with an engine, runs on its node."""

    def reason(now: Cluster) -> str:
        new = (now.nodes[name].installed or NO_FOLDER).programs
        for other in engines_on(now, name):
            if not other.is_like(new.get(other.unit)):
                return f"{other.unit} still runs on {name}"
            if other.unit in engine.rivals:
                return f"{other.unit} has its turn on {name}"
        return ""

    return reason


def are_running(programs: Mapping[str, Program]) -> Condition:
    """These nodes run these programs, as the new bundle has them."""

    def reason(now: Cluster) -> str:
        for name, program in programs.items():
            node = now.nodes.get(name)
            if node is None or not program.is_like(node.running.get(program.unit)):
                return f"{name} does not run {program.unit}"
        return ""

    return reason


def serves(group: str) -> Condition:
    """An engine answers."""
    return lambda now: "" if group in now.serving else f"{group} does not serve"


def answer_elsewhere(engine: Engine, names: frozenset[str]) -> Condition:
    """Other engines answer to these names."""

    def reason(now: Cluster) -> str:
        if now.serving.get(engine.group) != engine:
            return ""
        others = (other for group, other in now.serving.items() if group != engine.group)
        answered = {name for other in others for name in other.names}
        return ", ".join(sorted((names & {*engine.names}) - answered))

    return reason


def are_open(doors: Sequence[Door]) -> Condition:
    """What replaces a door that closes runs."""

    def reason(now: Cluster) -> str:
        running = {name: node.running.keys() for name, node in now.nodes.items()}
        shut = (door.url for door in doors if not {*door.units} <= {*running.get(door.node, ())})
        return ", ".join(shut)

    return reason


def engines_on(now: Cluster, name: str) -> list[Program]:
    """The ranks that run on a node."""
    node = now.nodes.get(name)
    return [program for program in node.running.values() if program.is_engine] if node else []


def has_links(node: Node, folder: Folder) -> bool:
    """Whether a node's links are as a folder says."""
    return same(_NETPLAN, node.links, folder.links)


def is_guarded(node: Node, folder: Folder) -> bool:
    """Whether a timer takes an installation back: of links, of sshd's files, of no firewall."""
    before = node.installed or NO_FOLDER
    ends_firewall = "firewall" in before.programs and "firewall" not in folder.programs
    return not has_links(node, folder) or before.guarded != folder.guarded or ends_firewall
