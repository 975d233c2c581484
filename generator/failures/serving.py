"""What each engine and each name needs in order to serve, by the files of a bundle."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath

from generator.failures.files import FileTexts, value, values
from generator.failures.network import NOTHING, Element, LinkEnd, Needs, Network
from generator.records import record
from generator.site import Member, Part, Site
from generator.site.service import OpenService

_UNITS = "etc/systemd/system"


@record
class Process:
    """What runs on a node, and after how many seconds it is up again by itself.

    `within` is None if nothing starts it again. `title` is its unit, or says what else it is.
    `check` is what verify.py calls it, empty if it does not look at it.
    """

    node: str
    unit: str
    title: str
    within: int | None
    check: str = ""

    @property
    def element(self) -> Element:
        """It as something that can fail."""
        return ("program", self.node, self.unit)


@record
class Server:
    """What a group's engine needs to run and to start.

    `within` is how many seconds a start by itself may take, from the end of the last one; None if a
    person must start it. It starts once the engines of the groups in `after` serve.
    """

    group: str
    unit: str
    runs: Needs
    starts: Needs
    within: int | None
    after: frozenset[str]


@record
class Way:
    """What requests for a name need to reach an engine that serves it.

    `asked_on` is the node that alone can ask, because it listens on its loopback; or empty. `url`
    is the address of the engine, empty if the site has one for all.
    """

    engine: Server
    needs: Needs
    asked_on: str
    url: str


def programs(site: Site, files: FileTexts) -> dict[Element, Process]:
    """The units of each node, and the jobs of Slurm and of people, which no unit starts again."""
    found = [
        Process(node.name, part.unit, f"the job {part.job} of Slurm", None)
        for part in site.parts
        if part.engine.is_slurm_job
        for node in part.nodes
    ]
    for path, text in files.items():
        node, folder, name = path.partition(f"/{_UNITS}/sparkgen-")
        if folder and name.endswith(".service"):
            unit = f"sparkgen-{name.removesuffix('.service')}"
            timer = files.get(f"{path.removesuffix('service')}timer", "")
            check = f"unit {unit.removeprefix('sparkgen-')}" if "\n[Install]" in text else ""
            found.append(Process(node, unit, unit, _within(text, timer), check))
    for job in site.jobs:
        title = f"the job {job.job}"
        found += (Process(node.name, job.unit, title, None) for node in job.nodes)
    return {program.element: program for program in found}


def _within(unit: str, timer: str) -> int | None:
    """The longest that systemd takes to start a unit again: what is left of it is stopped first."""
    if timer:
        late = int(value(timer, "AccuracySec").removesuffix("s"))
        return 60 * int(value(timer, "OnUnitActiveSec").removesuffix("min")) + late
    if value(unit, "Restart") not in ("always", "on-failure"):
        return None
    # DefaultTimeoutStopSec and DefaultRestartSec of systemd-system.conf(5), the latter 100 ms.
    return int(value(unit, "TimeoutStopSec", "90")) + int(value(unit, "RestartSec", "1"))


def engine(part: Part, net: Network, units: Mapping[Element, Process], files: FileTexts) -> Server:
    """What a part's engine needs: nodes, programs, and what its ranks communicate over."""
    names = {node.name for node in part.nodes}
    nodes = frozenset(("node", name) for name in names)
    control = _control(part, net, files)
    own = frozenset(("program", name, part.unit) for name in names) & units.keys()
    started = [units[each].within for each in own]
    load = int(value(files[_path(part, part.head.name, "node.env")], "LOAD_SECONDS"))
    models = frozenset(("models", name) for name in names if reads_models(part, name, files))
    noticed = part.times.step if part.workers else 0
    seconds = [within for within in started if within is not None]
    is_restarted = bool(seconds) and len(seconds) == len(part.nodes)
    return Server(
        part.group,
        part.unit,
        nodes | own | control | _collectives(part, net, files),
        nodes | control | _waited_for(part, net, files) | models,
        noticed + max(seconds) + load if is_restarted else None,
        frozenset(group for node in part.nodes for group in _before_it(part, node, files)),
    )


def _before_it(part: Part, node: Member, files: FileTexts) -> list[str]:
    """The groups whose engines a node's unit waits for before it starts its own."""
    unit = files.get(f"{node.name}/{_UNITS}/{part.unit}.service", "")
    return unit.partition("/wait-engines.sh ")[2].partition("\n")[0].split()


def _path(part: Part, node: str, name: str) -> str:
    """The path of a file of a part's engine below /etc/sparkgen on a node."""
    return f"{node}{part.place(f'/etc/sparkgen/{name}')}"


def _control(part: Part, net: Network, files: FileTexts) -> Needs:
    """The ways between the head and each worker; those of an engine without NCCL carry all data."""
    found, head = NOTHING, part.head.name
    if part.engine.is_slurm_job and part.workers:
        # Slurm ends a job if it hears nothing of a node, by default for five minutes.
        found |= {("management", node.name) for node in part.nodes if node.name in net.management}
    workers = map(str.split, values(files[_path(part, head, "container.env")], "WORKER"))
    for worker, _, link in workers:
        if not part.engine.traits.uses_nccl and link != "-":
            found |= net.way(head, link) or NOTHING
        else:
            address = value(files[_path(part, worker, "container.env")], "HEAD_ADDRESS")
            found |= net.way(worker, address) or NOTHING
    return found


def _collectives(part: Part, net: Network, files: FileTexts) -> Needs:
    """The halves that NCCL uses: those of its HCAs that lead to another rank.

    It spreads each transfer over all of them, and a lost one ends the communicator.
    """
    if not part.engine.traits.uses_nccl or not part.workers:
        return NOTHING
    used: list[LinkEnd] = []
    for node in part.nodes:
        env = files[_path(part, node.name, "engine.env")]
        hcas = {hca.partition(":")[0] for hca in value(env, "NCCL_IB_HCA").strip("=").split(",")}
        if value(env, "NCCL_IB_DISABLE") != "1" and value(env, "NCCL_NET") != "Socket":
            used += (end for end in net.ends[node.name] if end.hca in hcas)
    return _shared(used)


def _shared(ends: list[LinkEnd]) -> Needs:
    """The halves of those ends whose subnet others of them, on other nodes, are on too."""
    nodes: dict[object, set[str]] = {}
    for end in ends:
        nodes.setdefault(end.subnet, set()).add(end.node)
    return frozenset(end.element for end in ends if len(nodes[end.subnet]) > 1)


def _waited_for(part: Part, net: Network, files: FileTexts) -> Needs:
    """The halves that wait-fabric.sh waits for, at this end and at those of the other ranks."""
    found, asked = set(), []
    for node in part.nodes:
        unit = files.get(f"{node.name}/{_UNITS}/{part.unit}.service", "wait-fabric.sh")
        if "wait-fabric.sh" in unit:
            known = map(str.split, values(files[_path(part, node.name, "node.env")], "HALF"))
            halves = {("half", half[-1], half[0][-1]) for half in known}
            own = [end for end in net.ends[node.name] if end.element in halves]
            found |= {end.element for end in own}
            asked += own
    return frozenset(found) | _shared(asked)


def reads_models(part: Part, node: str, files: FileTexts) -> bool:
    """Whether a node reads files of the model when its engine starts."""
    known = files[_path(part, node, "node.env")]
    return "\nMODEL=" in known or "\nMODEL_FILE=" in known


def ways(
    site: Site, net: Network, units: Mapping[Element, Process], files: FileTexts
) -> dict[str, list[Way]]:
    """The ways to each name that the site serves now, through what stands before the engines."""
    found: dict[str, list[Way]] = {}
    upstreams = tuple(_upstreams(site, files)) if site.address else ()
    active = [part for part in site.parts if part.is_active]
    for part in active:
        own = engine(part, net, units, files)
        host = _front(site) or part.engine.api.url.partition("://")[2].partition(":")[0]
        entry = net.owner(host) or part.head.name
        before = _before(site, entry, units)
        behind = _behind(part, entry, net, upstreams) if site.address else NOTHING
        if behind is not None:
            link = {("management", entry)} if host in net.nodes_managed else set()
            needs = frozenset({("node", entry), *link}) | before | behind
            local = entry if host.startswith("127.") else ""
            url = part.engine.api.url if len(active) > 1 and not _front(site) else ""
            for name in (part.model.served_name, *part.model.aliases):
                found.setdefault(name, []).append(Way(own, needs, local, url))
    return found


def _front(site: Site) -> str:
    """The address of the service that combines the engines, if there is one."""
    services = (s for s in site.services.values() if isinstance(s, OpenService))
    return next((service.listen for service in services if service.address), "")


def _before(site: Site, node: str, units: Mapping[Element, Process]) -> Needs:
    """The programs of a node that requests pass through before they reach an engine."""
    passed = (service for service in site.services.values() if service.IS_BEFORE_ENGINES)
    names = (PurePath(entry.path) for service in passed for entry in service.ENTRIES)
    own = frozenset(("program", node, path.stem) for path in names if path.suffix == ".service")
    return own & units.keys()


def _upstreams(site: Site, files: FileTexts) -> Iterator[tuple[str, int]]:
    """The addresses and ports that the files of what stands before the engines name."""
    passed = (service for service in site.services.values() if service.IS_BEFORE_ENGINES)
    names = {entry.path for service in passed for entry in service.ENTRIES}
    for node in site.nodes:
        for name in names:
            found = re.findall(r"\b([\d.]{7,15}):(\d+)\b", files.get(f"{node.name}/{name}", ""))
            yield from ((address, int(port)) for address, port in found)


def _behind(
    part: Part, entry: str, net: Network, upstreams: Iterable[tuple[str, int]]
) -> Needs | None:
    """What must work from the entry to an engine; None if no file there names its address."""
    for address, port in upstreams:
        owner = entry if address.startswith("127.") else net.owner(address)
        if (owner, port) == (part.head.name, part.engine.api.port):
            return net.way(entry, address)
    return None
