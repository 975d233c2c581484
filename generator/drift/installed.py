"""What sparkgen has installed on a node, compared with its bundle: files, and what they set."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from ipaddress import IPv4Network

from generator.diagnostics import listed
from generator.drift.seen import Seen
from generator.reports.remarks import Remark
from generator.site import Site

INSTALL = "run install.sh of the node's bundle"
_STATES = "commands/installed.txt"
SYSCTL, HOSTS, FIREWALL = "etc/sysctl.d/90-sparkgen.conf", "etc/sparkgen/hosts", "firewall.rules"


def files(seen: Seen) -> Iterator[Remark]:
    """The files: of another bundle, changed or removed since, or with another mode."""
    if not seen.is_recorded:
        yield seen.lacks("which files are installed")
        return
    stale, known = seen.stale, seen.installed
    if stale:
        more = f" and {len(stale) - 4} more" if len(stale) > 4 else ""
        names = ", ".join(f"/{path}" for path in stale[:4])
        message = f"not applied: {names}{more}"
        yield seen.remark("SG890", message, INSTALL, "files/etc/sparkgen/bundle/SHA256SUMS")
    unknown = sorted(seen.recorded.keys() - known.keys())
    if unknown:
        yield seen.lacks(f"how {len(unknown)} files are now, such as /{unknown[0]}")
    for path, there in known.items():
        if there.state == "unreadable":
            yield seen.lacks(f"/{path}, which only root can read")
        if path in stale or path not in seen.files:
            continue
        # nccl.conf is compared line by line.
        if there.state in ("edited", "missing") and path != "etc/nccl.conf":
            message = f"/{path} is {there.state} since it was installed"
            yield seen.remark("SG891", message, INSTALL, _STATES)
        elif there.mode not in (0, seen.files[path].mode):
            message = f"/{path} has mode {there.mode:04o}, and {seen.files[path].mode:04o} once "
            yield seen.remark("SG891", f"{message}installed", INSTALL, _STATES)


def restarts(unit: str, seen: Seen, started: str, read: Iterable[str]) -> Iterator[Remark]:
    """The files that a unit would `read` again, installed after it was last `started`."""
    since, there = _seconds(started), seen.installed
    if not since:
        yield seen.lacks(f"when {unit} was started")
    late = [f"/{p}" for p in read if p in there and there[p].changed > since > 0]
    if late:
        message = f"applied, not restarted: {unit} was started before {listed(late, 'and')}"
        yield seen.remark("SG892", message, f"systemctl restart {unit}", _STATES)


def _seconds(started: str) -> float:
    """The seconds since 1970 of Docker's time, or of a file's; 0 if not known."""
    try:
        if started.startswith("@"):
            return int(started[1:])
        known = datetime.fromisoformat(started)
        return known.replace(microsecond=0).timestamp() if known.tzinfo else 0
    except (ValueError, OverflowError):
        return 0


def effects(site: Site, seen: Seen) -> Iterator[Remark]:
    """What the installed files have set in the system, and what others have set beside it."""
    yield from _sysctl(seen)
    yield from _hosts(seen)
    yield from _firewall(seen)
    yield from _routes(seen)
    yield from _gpu(site, seen)


def _sysctl(seen: Seen) -> Iterator[Remark]:
    path = "commands/sysctl-own.txt"
    there = dict(line.split(" ", 1) for line in seen.text(path).splitlines() if " " in line)
    text = seen.files[SYSCTL].text if SYSCTL in seen.files else ""
    wanted: dict[str, str] = dict(re.findall(r"(?m)^([a-z]\S*) = (.+)$", text))
    if any(name.replace(".", "/") not in there for name in wanted):
        yield seen.lacks("the kernel's settings")
    for name, value in wanted.items():
        has = there.get(name.replace(".", "/"), value).split()
        if has != value.split():
            message = f"{name} is {' '.join(has)}, and {value} in the bundle"
            yield seen.remark("SG893", message, f"sysctl --load /{SYSCTL}", path)


def _hosts(seen: Seen) -> Iterator[Remark]:
    lines = seen.files[HOSTS].text.splitlines() if HOSTS in seen.files else ()
    wanted = [line for line in lines if line[:1] != "#"]
    there = [line for line in seen.text("commands/hosts.txt").splitlines() if line[:1] != "#"]
    if seen.is_recorded and there != wanted:
        message = "/etc/hosts has other names of nodes than the bundle"
        yield seen.remark("SG893", message, INSTALL, "commands/hosts.txt")
    path = "commands/hosts-others.txt"
    for other in (line for line in seen.text(path).splitlines() if line not in wanted):
        message = f"/etc/hosts also has '{other}', outside of the bundle's lines"
        yield seen.remark("SG893", message, "remove it: the first line of a name counts", path)


def _firewall(seen: Seen) -> Iterator[Remark]:
    path = "commands/ufw.txt"
    file = seen.files.get(f"etc/sparkgen/{FIREWALL}")
    if file is None:
        return
    status, *there = seen.text(path).splitlines() or [""]
    advice = "run /opt/sparkgen/firewall.sh"
    if not status:
        yield seen.lacks("the firewall")
        return
    if status != "Status: active":
        yield seen.remark("SG893", "the firewall is off", advice, path)
    policy = next((line for line in there if line.startswith("Default: ")), "")
    if status == "Status: active" and not policy:
        yield seen.lacks("the firewall's default policy")
    elif policy and not policy.startswith(("Default: deny", "Default: reject")):
        yield seen.remark("SG893", "the firewall lets in what no rule is about", advice, path)
    lacking = [rule for rule in file.text.splitlines() if rule[:1] != "#" and rule not in there]
    if lacking and status == "Status: active":
        yield seen.remark("SG893", f"the firewall lacks '{lacking[0]}'", advice, path)


def _routes(seen: Seen) -> Iterator[Remark]:
    path, own = "commands/ip-route.json", {one.name for one in seen.node.interfaces}
    routes = seen.parsed(path)
    if own and not routes:
        yield seen.lacks("routes")
        return
    for other in routes:
        to, dev = str(other.get("dst")), other.get("dev")
        if to == "default" and dev in own:
            message = f"what goes to other networks leaves by {dev}, which is of the fabric"
            yield seen.remark("SG893", message, "remove that route", path)
        elif dev and dev not in own and _is_within(to, seen):
            message = f"{to} is reached by {dev} too, not by the fabric alone"
            yield seen.remark("SG893", message, "remove that route", path)
    there = {(str(route.get("dst")), str(route.get("gateway"))) for route in routes}
    for route in seen.node.routes:
        if (str(route.to), str(route.via)) not in there:
            message = f"there is no route to {route.to} via {route.via}"
            yield seen.remark("SG893", message, "netplan apply, or install the bundle", path)


def _is_within(to: str, seen: Seen) -> bool:
    """Whether a route is to the fabric's addresses; one to more than these comes after theirs."""
    with suppress(ValueError):
        return any(IPv4Network(to).subnet_of(one.address.network) for one in seen.node.interfaces)
    return False


def _gpu(site: Site, seen: Seen) -> Iterator[Remark]:
    """What else computes on the GPU; what Slurm runs can't be told from it."""
    parts = [part for part, _ in site.parts_of(seen.node.name)]
    if any(part.engine.is_slurm_job for part in parts):
        return
    if parts and "commands/gpu.txt" not in seen.capture.texts:
        yield seen.lacks("what computes on the GPU")
    path = "commands/gpu-processes.txt"
    own = {
        found[1]
        for name in seen.capture.texts
        if name.startswith("containers/sparkgen-")
        for found in re.finditer(r'(?m)^id "([0-9a-f]{64})"$', seen.text(name))
    }
    for line in sorted(set(seen.text(path).splitlines())):
        name, _, owner = line.partition(" ")
        if owner not in own and not owner.startswith("sparkgen-"):
            of = f" of {owner[:12] if len(owner) == 64 else owner}" if owner != "-" else ""
            message = f"{name}{of} computes on the GPU too"
            yield seen.remark("SG894", message, "end it, or name what it takes in the site", path)


def owners(seen: Seen) -> Iterator[Remark]:
    """Files of others that configure an interface of the fabric."""
    for path in sorted(seen.capture.texts):
        if not re.match(r"files/(etc|run)/(netplan|systemd/network|NetworkManager)/", path):
            continue
        name = path.removeprefix("files")
        # The name of a drop-in's folder is that of the file that it changes.
        text = f"{name} {seen.text(path)}"
        both = [i.name for i in seen.node.interfaces if re.search(rf"\b{i.name}\b", text)]
        if both and name != "/etc/netplan/40-cx7.yaml":
            message = f"{name} configures {listed(both, 'and')} too"
            yield seen.remark("SG894", message, f"remove {listed(both, 'and')} from it", path)
