"""How nodes differ from the bundle that they were given, by what each difference means."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from generator.adoption.captures import node_of
from generator.adoption.found import REMOVED, Container, FoundNode
from generator.bundle.plan import node_entries
from generator.capture import Capture
from generator.diagnostics import listed
from generator.drift.uncaptured import NEVER, is_unreadable, uncaptured
from generator.fabric.addressing import FabricInterface
from generator.locking import commit_on, image_on
from generator.records import record
from generator.reports.remarks import Place, Remark
from generator.rules import live as _documented  # noqa: F401 (registers its rules)
from generator.rules.registry import DOCUMENTED
from generator.site import Member, Node, Part, Site
from generator.site.complete import DEFAULT_REVISION
from generator.sitefile.lock import Lock

_UNIT = re.compile(r"sparkgen-[a-z0-9-]+\.service")


@record
class _Seen:
    """A node of the site, and its capture."""

    node: Node
    capture: Capture
    found: FoundNode

    def remark(self, rule: str, message: str, advice: str, path: str = "") -> Remark:
        """A remark about this node."""
        severity = DOCUMENTED[rule][0]
        place = Place(self.capture.place(path))
        return Remark(rule, severity, f"{self.node.name}: {message}", advice, place)


def drift(site: Site, captures: Sequence[Capture], lock: Lock | None) -> list[Remark]:
    """What differs on the captured nodes, in the order of the nodes."""
    by_name = {capture.node.lower(): capture for capture in captures}
    seen = [
        _Seen(node, by_name[node.name], node_of(by_name[node.name])[0])
        for node in site.nodes
        if node.name in by_name
    ]
    found = [remark for one in seen for remark in _node(site, one, lock)]
    return [*found, *_between(site, seen), *_strangers(site, captures)]


def missing(site: Site, captures: Iterable[Capture]) -> list[str]:
    """The nodes without a capture."""
    names = {capture.node.lower() for capture in captures}
    return [node.name for node in site.nodes if node.name not in names]


def unseen(site: Site, captures: Iterable[Capture]) -> list[str]:
    """What captures don't show of their nodes, so that it was not compared."""
    by_name = {capture.node.lower(): capture for capture in captures}
    there = [node for node in site.nodes if node.name in by_name]
    found = [
        f"{node.name}: not captured: {what}"
        for node in there
        for what in uncaptured(site, node, by_name[node.name])
    ]
    return [*found, f"not compared on any node: {NEVER}"]


def _strangers(site: Site, captures: Iterable[Capture]) -> Iterator[Remark]:
    known = {node.name for node in site.nodes}
    for capture in captures:
        if capture.node.lower() not in known:
            message = f"{capture.node} is not a node of {site.name}"
            advice = f"its nodes are {listed(sorted(known), 'and')}"
            yield Remark("SG860", DOCUMENTED["SG860"][0], message, advice, Place(capture.archive))


def _node(site: Site, seen: _Seen, lock: Lock | None) -> Iterator[Remark]:
    yield from _interfaces(seen)
    yield from _settings(seen)
    yield from _units(site, seen)
    containers = {c.name.lstrip("/"): c for c in seen.found.containers if c.words}
    for part, node in site.parts_of(seen.node.name):
        if engine := containers.get(part.unit):
            yield from _image(part, seen, engine, lock)
            yield from _variables(seen, node, engine)
            yield from _words(seen, node, engine)
        elif part.engine.venv:
            yield from _process(part, seen, node)
        elif part.is_active and _DOCKER in seen.capture.texts and _is_installed(seen, part):
            advice = f"journalctl -u {part.unit} says why it does not run"
            yield seen.remark("SG866", f"there is no container {part.unit}", advice, _DOCKER)
        yield from _models(part, seen, lock)


_DOCKER = "commands/docker-info.txt"


def _process(part: Part, seen: _Seen, node: Member) -> Iterator[Remark]:
    """The process of an engine without a container."""
    bare = (c for c in seen.found.containers if c.is_running and c.image is None)
    own = [process for process in bare if _is_of(node, process)]
    for process in own:
        yield from _variables(seen, node, process)
    if not own and _port(node) and part.is_active and _is_installed(seen, part):
        advice = f"journalctl -u {part.unit} says why it does not run; capture it as root"
        yield seen.remark("SG866", f"there is no process of {part.unit}", advice)


def _is_installed(seen: _Seen, part: Part) -> bool:
    """Whether a node has an engine's unit, not only another way to run it."""
    return f"files/etc/systemd/system/{part.unit}.service" in seen.capture.texts


def _port(node: Member) -> set[str]:
    """The word of an engine's command by which its process is recognized, if it has one."""
    return {word for word in _command(node) if word.startswith("--port=")}


def _is_of(node: Member, process: Container) -> bool:
    """Whether a process is the engine that a node should run."""
    return _port(node) <= {word.text for word in process.words}


def _interfaces(seen: _Seen) -> Iterator[Remark]:
    path = "commands/ip-addr.json"
    if path not in seen.capture.texts:
        return
    known = {interface.name: interface for interface in seen.found.interfaces}
    for wanted in seen.node.interfaces:
        there = known.get(wanted.name)
        if there is None:
            advice = "see that the cable is in: without one the system may not show the port at all"
            yield seen.remark("SG861", f"there is no {wanted.name}", advice, path)
            continue
        if there.has_link is False:
            advice = f"look at cable {wanted.cable} at both ends"
            yield seen.remark("SG861", f"{wanted.name} has no link", advice, path)
        yield from _addresses(seen, wanted, [word.text for word in there.addresses], path)
        if there.mtu and int(there.mtu.text) != wanted.mtu:
            message = f"{wanted.name} has an MTU of {there.mtu.text}, and the bundle {wanted.mtu}"
            yield seen.remark("SG862", message, _NETPLAN, path)


_NETPLAN = "see /etc/netplan for a file that sets it too; run netplan apply, or install the bundle"


def _addresses(
    seen: _Seen, wanted: FabricInterface, there: Sequence[str], path: str
) -> Iterator[Remark]:
    own = str(wanted.address)
    if own not in there:
        has = listed(there, "and") or "none"
        message = f"{wanted.name} has no address {own}: it has {has}"
        yield seen.remark("SG862", message, _NETPLAN, path)
        return
    for other in there:
        if other != own:
            message = f"{wanted.name} has another address, {other}"
            yield seen.remark("SG862", message, _owner(seen, other), path)


def _owner(seen: _Seen, address: str) -> str:
    """What to do about an address, depending on the file that sets it."""
    files = [p for p, text in seen.capture.texts.items() if p.startswith("files/etc/netplan/")]
    named = [p.removeprefix("files") for p in sorted(files) if address in seen.capture.texts[p]]
    return f"it is in {named[0]}: netplan adds up the addresses of all files" if named else _NETPLAN


def _settings(seen: _Seen) -> Iterator[Remark]:
    """nccl.conf compared with the bundle's."""
    path = "files/etc/nccl.conf"
    if path not in seen.capture.texts:
        if not is_unreadable(seen.capture, "etc/nccl.conf"):
            yield seen.remark("SG865", "there is no /etc/nccl.conf", _INSTALL)
        return
    there = {variable.name: variable.value.text for variable in seen.found.settings}
    yield from _values(seen, dict(seen.node.nccl), there, "/etc/nccl.conf", path)


def _variables(seen: _Seen, member: Member, engine: Container) -> Iterator[Remark]:
    """Variables of the running process."""
    wanted = {n: v for group in member.environment for n, v in group.values.items()}
    there = {variable.name: variable.value.text for variable in engine.env}
    path = _path(seen, engine)
    yield from _values(seen, wanted, there, "the running engine", path)


def _values(
    seen: _Seen, wanted: Mapping[str, str], there: Mapping[str, str], where: str, path: str
) -> Iterator[Remark]:
    for name, value in wanted.items():
        has = there.get(name)
        if has is None:
            yield seen.remark("SG865", f"{where} has no {name}", _RESTART, path)
        elif has not in (value, REMOVED):
            message = f"{name} is {has} in {where}, and {value} in the bundle"
            yield seen.remark("SG865", message, _RESTART, path)
    for name in sorted(there):
        if name.startswith("NCCL_") and name not in wanted and name != "NCCL_VERSION":
            message = f"{where} has {name}={there[name]}, which the bundle has not"
            yield seen.remark("SG865", message, _RESTART, path)


_INSTALL = "run install.sh of the node's bundle"
_RESTART = "install the bundle and restart the engine, or take it over into engine.env"


def _words(seen: _Seen, member: Member, engine: Container) -> Iterator[Remark]:
    """The running command; what the capture removed matches any word."""
    wanted = [member.container.entrypoint, *_command(member)]
    there = [word.text for word in engine.words]
    if _alike(wanted, there):
        return
    gone = [word for word in wanted if word not in there]
    new = [word for word in there if word not in wanted and REMOVED not in word]
    if gone or new:
        more = [f"without {' '.join(gone)}"] if gone else []
        more += [f"with {' '.join(new)}"] if new else []
        message = f"the engine runs {' and '.join(more)}"
        yield seen.remark("SG868", message, _RESTART, _path(seen, engine))


def _command(member: Member) -> list[str]:
    """The arguments of a node's entrypoint."""
    items = ((item,) if isinstance(item, str) else item for item in member.container.command)
    return [word for item in items for word in item]


def _alike(wanted: Sequence[str], there: Sequence[str]) -> bool:
    return len(wanted) == len(there) and all(
        REMOVED in has or has == want for want, has in zip(wanted, there, strict=True)
    )


def _path(seen: _Seen, engine: Container) -> str:
    name = engine.name.lstrip("/")
    path = f"containers/{name}.txt"
    return path if path in seen.capture.texts else ""


def _image(part: Part, seen: _Seen, engine: Container, lock: Lock | None) -> Iterator[Remark]:
    path, wanted = _path(seen, engine), part.engine.image
    has = engine.image.text if engine.image else ""
    if has != wanted:
        message = f"the engine runs {has}, and the bundle says {wanted}"
        yield seen.remark("SG863", message, _RESTART, path)
        return
    name = wanted.partition("@")[0]
    locked = lock.image(name) if lock else None
    there = image_on(seen.capture, name, bool(locked and locked.inputs))
    if (
        locked
        and there
        and (locked.digest or locked.layers) != (there.digest if locked.digest else there.layers)
    ):
        own = (there.digest or there.layers or "nothing that is locked")[:19]
        message = f"{name} is {own} there, and {(locked.digest or locked.layers)[:19]} in the lock"
        yield seen.remark("SG863", message, "pull what is locked, or lock what is there", path)


def _models(part: Part, seen: _Seen, lock: Lock | None) -> Iterator[Remark]:
    path = "commands/models.txt"
    if path not in seen.capture.texts or part.model.file:
        return
    for source in part.model.downloads:
        own = source == part.model.source
        revision = (part.model.revision if own else None) or DEFAULT_REVISION
        there = commit_on(seen.capture, source, revision)
        locked = lock.commit(source, revision) if lock else ""
        if not there:
            message = f"{source}, revision {revision}, is not in the cache of the hub"
            yield seen.remark("SG864", message, "run models.sh", path)
        elif locked and there != locked:
            message = f"{source} is at {there[:12]}, and the lock has {locked[:12]}"
            yield seen.remark("SG864", message, "run models.sh, or lock what is there", path)


def _units(site: Site, seen: _Seen) -> Iterator[Remark]:
    path = "commands/units.txt"
    blocks = (
        dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line)
        for block in seen.capture.texts.get(path, "").split("\n\n")
    )
    units = {properties.get("Id", ""): properties for properties in blocks}
    for name in _installed_units(site, seen.node):
        is_known = name in units or path not in seen.capture.texts
        if not is_known or f"files/{_UNITS}{name}" not in seen.capture.texts:
            yield seen.remark("SG866", f"there is no unit {name}", _INSTALL, path)
    waiting = _waiting(site, seen, units)
    for unit, instead in waiting.items():
        part = next(p for p in site.groups if f"{p.unit}.service" == unit)
        if part.is_active:
            message = f"{instead} runs in place of {unit}, which the site names"
            advice = f"operator/switch.sh {part.group}, or write another one as 'active'"
            yield seen.remark("SG866", message, advice, path)
        if units.get(unit, {}).get("UnitFileState") == "enabled":
            message = f"{unit} starts at boot, and {instead} runs in its place"
            yield seen.remark("SG866", message, f"systemctl disable {unit}", path)
    for name, properties in units.items():
        state = properties.get("ActiveState", "")
        if (
            not _UNIT.fullmatch(name)
            or properties.get("UnitFileState") == "static"
            or name in waiting
        ):
            continue
        if state not in _STARTED:
            message = f"{name} is {state} ({properties.get('SubState', '')})"
            yield seen.remark("SG866", message, f"journalctl -u {name} says why", path)
        if properties.get("UnitFileState") == "disabled":
            message = f"{name} is not started at boot"
            yield seen.remark("SG866", message, f"systemctl enable {name}", path)


_UNITS = "etc/systemd/system/"


def _installed_units(site: Site, node: Node) -> Iterator[str]:
    """The services that the bundle installs on a node."""
    for entry in node_entries(site):
        for part, _ in entry.instances(site, node):
            path = part.place(entry.path) if entry.of_engine else entry.path
            if path.startswith(_UNITS) and path.endswith(".service"):
                yield path.removeprefix(_UNITS)


def _waiting(site: Site, seen: _Seen, units: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """The units on a node that wait for their turn, with the one that has it."""
    found: dict[str, str] = {}
    for slot in site.slots_of(seen.node.name):
        names = [f"{part.unit}.service" for part in slot]
        # If none of them runs, the one that should be running is reported.
        running = [n for n in names if units.get(n, {}).get("ActiveState") in _STARTED]
        turn = running[0] if running else names[0]
        found |= {name: turn for name in names if name != turn}
    return found


_STARTED = ("active", "activating")


def _between(site: Site, seen: Sequence[_Seen]) -> Iterator[Remark]:
    """Versions that differ between nodes, or between the nodes of an engine."""
    values: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for one in seen:
        for what, value in _versions(one.capture):
            values[what][value].append(one.node.name)
    for part in site.parts:
        names = {node.name for node in part.nodes}
        for one in (one for one in seen if one.node.name in names and len(names) > 1):
            for what, value in _contents(part, one):
                values[what][value].append(one.node.name)
    for what, by_value in values.items():
        if len(by_value) > 1:
            versions = "; ".join(f"{v} on {listed(names, 'and')}" for v, names in by_value.items())
            message = f"{what} differs: {versions}"
            place = Place(seen[0].capture.archive)
            advice = "bring all nodes to the same: what one is updated to, the others wait for"
            yield Remark("SG867", DOCUMENTED["SG867"][0], message, advice, place)


def _contents(part: Part, seen: _Seen) -> Iterator[tuple[str, str]]:
    """What an engine's names refer to on a node: its image, its models and its libraries."""
    image = image_on(seen.capture, part.engine.image) if part.engine.image else None
    if image and (known := image.digest or image.layers):
        kind = "digest" if image.digest else "layers"
        yield f"{image.image}, by its {kind},", known[:19]
    for source in part.model.downloads if not part.model.file else ():
        revision = (
            part.model.revision if source == part.model.source else None
        ) or DEFAULT_REVISION
        if commit := commit_on(seen.capture, source, revision):
            yield f"{source}, revision {revision},", commit[:12]
    for name, version in seen.found.programs.items():
        yield f"{name} of the running process", version


def _versions(capture: Capture) -> Iterator[tuple[str, str]]:
    texts = capture.texts
    if found := re.search(r"(?m)^.*, ([0-9][0-9.]+)$", texts.get("commands/gpu.txt", "")):
        yield "the driver of the GPU", found[1]
    if words := texts.get("commands/uname.txt", "").split():
        yield "the kernel", words[1] if len(words) > 1 else words[0]
    release = texts.get("commands/dgx-release.txt", "")
    if updates := re.findall(r'DGX_OTA_VERSION="?([0-9.]+)', release):
        yield "the release of DGX OS", updates[-1]
    firmware = {
        match[1]
        for path, text in texts.items()
        if path.startswith(("commands/ethtool-enp", "commands/ethtool-enP2"))
        for match in re.finditer(r"(?m)^firmware-version: (\S+)", text)
    }
    if firmware:
        yield "the firmware of the ConnectX-7", ", ".join(sorted(firmware))
