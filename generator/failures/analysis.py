"""What still serves when one thing, or two, fail, by the files of a bundle.

The site says what there is: nodes, cables, switches. What each of them is needed for is read from
the files that the nodes get.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain, combinations
from typing import Any

from generator.fabric.addressing import SwitchPort
from generator.failures.files import FileTexts, values
from generator.failures.network import NOTHING, Element, LinkEnd, Needs, Network, network
from generator.failures.serving import Process, Server, Way, programs, reads_models, ways
from generator.records import record
from generator.site import Site

# What may fail, in the order of the table.
KINDS = (
    *("cable", "half", "port", "switch", "node", "management"),
    *("engine", "service", "job", "models"),
)


@record
class FailureMode:
    """Something that fails, and all that is lost with it.

    `within` is how many seconds a program takes to be up again by itself, None for anything else.
    `told_by` are the checks of verify.py that tell, and the nodes that they tell it on, except on
    one that is `blind`.
    """

    kind: str
    what: str
    lost: Needs
    told_by: tuple[tuple[str, tuple[str, ...]], ...] = ()
    within: int | None = None
    blind: str = ""


@record
class Availability:
    """Whether a name still answers: by how many of its replicas, and to whom.

    `to` is `clients`, the one node that alone can ask, or empty if nobody gets an answer. `urls`
    are the addresses that answer, if each engine has its own.
    """

    name: str
    to: str
    replicas: int
    of: int
    urls: tuple[str, ...]


@record
class Failure:
    """The effect of a fault.

    `within` is how many seconds after the fault (if it `heals`), or after its repair, everything
    serves again by itself; None if a person must start an engine. The groups in `waiting` serve on,
    but would not start before the repair. `cut` are nodes that no longer reach each other over the
    nodes in between.
    """

    fault: FailureMode
    answers: tuple[Availability, ...]
    within: int | None
    waiting: tuple[str, ...]
    cut: tuple[str, ...]

    @property
    def heals(self) -> bool:
        """Whether it is over without a person."""
        return self.fault.within is not None

    @property
    def lost(self) -> tuple[str, ...]:
        """The names that nobody gets an answer from."""
        return tuple(answer.name for answer in self.answers if not answer.to)


CLIENTS = "clients"
# What something is for: that a group runs or starts, that a name is reached, or that nodes are.
Purpose = tuple[str, ...]


@record
class FaultPair:
    """Two faults, each one of several alike, and the names that only both together take."""

    one: tuple[FailureMode, ...]
    other: tuple[FailureMode, ...]
    lost: tuple[str, ...]


@record
class Analysis:
    """A site's faults, the ways to each of its names, and those between nodes over others."""

    faults: tuple[FailureMode, ...]
    ways: Mapping[str, tuple[Way, ...]]
    relayed: Mapping[str, Needs]

    def failures(self) -> Iterator[Failure]:
        """The effect of each single fault; faults that end the same uses have the same effect."""
        known: dict[frozenset[Purpose], tuple[Any, ...]] = {}
        for fault in self.faults:
            ended = self._ended(fault)
            if ended not in known:
                known[ended] = self._effect(ended)
            answers, times, *rest = known[ended]
            if fault.kind in ("service", "job"):
                times = [*times, fault.within]
            within = None if None in times else max(filter(None, times), default=0)
            yield Failure(fault, answers, within, *rest)

    def _effect(self, ended: frozenset[Purpose]) -> tuple[Any, ...]:
        """The answers, the times of starts, the groups that could not start, the nodes cut off."""
        named = {what for _, what in ended}
        touched = [engine for engine in self._engines if engine.group in named]
        stopped = [engine for engine in touched if ("runs", engine.group) in ended]
        waiting = (each.group for each in touched if ("starts", each.group) in ended)
        return (
            self._answers(ended),
            [_start(engine, stopped) for engine in stopped],
            tuple(group for group in waiting if ("runs", group) not in ended),
            tuple(nodes for nodes in self.relayed if ("relays", nodes) in ended),
        )

    def pairs(self) -> Iterator[FaultPair]:
        """Each two faults that together take a name that neither of them takes alone."""
        alike: dict[frozenset[Purpose], list[FailureMode]] = {}
        for fault in self.faults:
            alike.setdefault(self._ended(fault), []).append(fault)
        lost = {ended: _lost_names(self._answers(ended)) for ended in alike}
        for (one, some), (other, more) in combinations(alike.items(), 2):
            both = _lost_names(self._answers(one | other)) - lost[one] - lost[other]
            if both:
                yield FaultPair(tuple(some), tuple(more), tuple(sorted(both)))

    def _ended(self, fault: FailureMode) -> frozenset[Purpose]:
        """The uses that a fault ends."""
        return frozenset(use for each in fault.lost for use in self._uses.get(each, ()))

    def _answers(self, ended: frozenset[Purpose]) -> tuple[Availability, ...]:
        """What each name still answers; a fault takes few of a large site's names."""
        touched = {name for _, what in ended for name in self._names.get(what, ())}
        harmed = {name: _answer(name, self.ways[name], ended) for name in touched}
        return tuple((self._unharmed | harmed).values())

    @cached_property
    def _unharmed(self) -> dict[str, Availability]:
        """What each name answers without a fault."""
        return {name: _answer(name, found, frozenset()) for name, found in self.ways.items()}

    @cached_property
    def _names(self) -> Mapping[str, set[str]]:
        """The names that each group answers to."""
        found: dict[str, set[str]] = {}
        for name, own in self.ways.items():
            for way in own:
                found.setdefault(way.engine.group, set()).add(name)
        return found

    @cached_property
    def _engines(self) -> tuple[Server, ...]:
        return tuple({way.engine.group: way.engine for way in chain(*self.ways.values())}.values())

    @cached_property
    def _uses(self) -> Mapping[Element, list[Purpose]]:
        """What each element is used for."""
        found: dict[Element, list[Purpose]] = {}
        uses = [
            *(("runs", engine.group, engine.runs) for engine in self._engines),
            *(("starts", engine.group, engine.starts) for engine in self._engines),
            *(("leads", way.engine.group, way.needs) for way in chain(*self.ways.values())),
            *(("relays", nodes, needs) for nodes, needs in self.relayed.items()),
        ]
        for kind, what, needs in uses:
            for element in needs:
                found.setdefault(element, []).append((kind, what))
        return found


def _start(engine: Server, stopped: Iterable[Server]) -> int | None:
    """The longest start of an engine, with those of the stopped ones that it waits for."""
    times = [one.within for one in stopped if one is engine or one.group in engine.after]
    return None if None in times else sum(filter(None, times))


def _answer(name: str, found: tuple[Way, ...], ended: frozenset[Purpose]) -> Availability:
    """Who still gets an answer."""
    lost = {what for kind, what in ended if kind in ("runs", "leads")}
    working = [way for way in found if way.engine.group not in lost]
    to = (min(way.asked_on for way in working) or CLIENTS) if working else ""
    urls = tuple(dict.fromkeys(way.url for way in working if way.url))
    return Availability(name, to, len(working), len(found), urls)


def _lost_names(answers: Iterable[Availability]) -> set[str]:
    return {answer.name for answer in answers if not answer.to}


def analysis(site: Site, files: FileTexts) -> Analysis:
    """The faults of a site and what each name needs, by the files of its bundle."""
    net = network(tuple(node.name for node in site.nodes), files)
    units = programs(site, files)
    found = {name: tuple(many) for name, many in ways(site, net, units, files).items()}
    faults = (*_of_cables(site, net), *_of_nodes(site, net, files), *_of_programs(site, units))
    in_order = tuple(sorted(faults, key=lambda one: KINDS.index(one.kind)))
    return Analysis(in_order, found, _relayed(net))


def _relayed(net: Network) -> Mapping[str, Needs]:
    """What the ways between nodes that no cable joins need."""
    found: dict[str, Needs] = {}
    for node, routes in net.routes.items():
        for address in routes:
            nodes = f"{node} to {net.owner(address)}"
            found[nodes] = found.get(nodes, NOTHING) | (net.way(node, address) or NOTHING)
    return found


def _of_cables(site: Site, net: Network) -> Iterator[FailureMode]:
    """Cables, their halves and ports, and switches; verify.py misses the carrier at both ends."""
    ends: dict[str, list[LinkEnd]] = {}
    for end in net.by_address.values():
        ends.setdefault(end.cable, []).append(end)
    switches: dict[str, list[LinkEnd]] = {}
    for cable in site.cables:
        own = ends[str(cable.number)]
        yield _lost("cable", f"cable {cable.number}", own)
        for half in dict.fromkeys(end.half for end in own):
            of_half = [end for end in own if end.half == half]
            yield _lost("half", f"half {half} of cable {cable.number}", of_half)
        for port in cable.ports:
            yield _lost("port", str(port), own)
        if isinstance(cable.b, SwitchPort):
            switches.setdefault(cable.b.switch, []).extend(own)
    for name, own in switches.items():
        yield _lost("switch", name, own)


def _lost(kind: str, what: str, ends: Iterable[LinkEnd]) -> FailureMode:
    lost, nodes = frozenset(end.element for end in ends), dict.fromkeys(end.node for end in ends)
    return FailureMode(kind, what, lost, (("link", tuple(nodes)),))


def _of_nodes(site: Site, net: Network, files: FileTexts) -> Iterator[FailureMode]:
    """Nodes, their management links, and the disks that they read models from."""
    neighbors: dict[object, list[str]] = {}
    for end in net.by_address.values():
        neighbors.setdefault(end.subnet, []).append(end.node)
    members = values(files.get(f"{site.head.name}/etc/sparkgen/nodes.env", ""), "MEMBER")
    asked = {member.rpartition("@")[2] for member in members} if len(members) > 1 else set()
    names = tuple(node.name for node in site.nodes)
    for name in names:
        ends = net.ends[name]
        missed = (("management", names),) if net.management.get(name) in asked else ()
        near = {tuple(neighbors[end.subnet]) for end in ends}
        told_on = near.pop() if len(near) == 1 else tuple(sorted({*chain(*near)}))
        seen = (("peers", told_on),) if len(told_on) > 1 else missed
        off = {("node", name), ("management", name), ("models", name)}
        lost = frozenset([*off, *(end.element for end in ends)])
        yield FailureMode("node", name, lost, seen, blind=name)
        if name in net.management:
            what, link = f"the management link of {name}", frozenset([("management", name)])
            yield FailureMode("management", what, link, missed)
        if any(reads_models(part, name, files) for part, _ in site.parts_of(name)):
            what, disk = f"the models on {name}", frozenset([("models", name)])
            yield FailureMode("models", what, disk, (("model", (name,)),))


def _of_programs(site: Site, units: Mapping[Element, Process]) -> Iterator[FailureMode]:
    """Engines that serve now, services and jobs; an alternative that waits runs nowhere."""
    engines = {part.unit: part.is_active for part in site.parts}
    jobs = {job.unit for job in site.jobs}
    for program in units.values():
        if engines.get(program.unit, True):
            kind = "service" if program.unit not in {*engines, *jobs} else "engine"
            kind = "job" if program.unit in jobs else kind
            what = f"{program.title} on {program.node}"
            told = ((program.check, (program.node,)),) if program.check else ()
            yield FailureMode(kind, what, frozenset([program.element]), told, program.within)
