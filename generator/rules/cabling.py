"""Rules about cables: whether their ends exist, and whether they form the topology."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from string import digits

from generator.diagnostics import (
    Add,
    Data,
    Proposal,
    Related,
    Replace,
    Severity,
    all_nearest,
    did_you_mean,
    listed,
    misspelt,
    removal,
    replacements,
)
from generator.fabric.nccl import ROUTED_FROM
from generator.fabric.topologies import (
    MIXED,
    PAIRS,
    SINGLE,
    SWITCH,
    TOPOLOGIES,
    likely,
    without_a_switch,
)
from generator.fabric.topologies.kind import Pair, TopologyKind
from generator.grouping import grouped
from generator.hardware import DAC_REACH_M, HALVES, PORT_NAMES, PORTS, Half
from generator.rules.nodes import Nodes, named, repeated
from generator.rules.registry import Fault, Faults, rule, shape_rule, to_remove
from generator.sitefile.declaration import DeclaredCable, DeclaredEngine, Endpoint, Topology
from generator.sitefile.source import Document

Cabling = Sequence[DeclaredCable]

_INVALID_CABLING = "SG201 SG203 SG204 SG205 SG213 SG218"


def _names(nodes: Nodes) -> set[str]:
    return {node.name for node in nodes}


def _node_ends(nodes: Nodes, cabling: Cabling) -> Iterator[list[Endpoint]]:
    """The ends of each cable that are nodes."""
    names = _names(nodes)
    return ([end for end in cable.endpoints if end.name in names] for cable in cabling)


@shape_rule("SG203", unless="SG201 SG218")
def unknown_endpoint(nodes: Nodes, cabling: Cabling, topology: Topology) -> Faults:
    """A cable ends at port p0 or p1 of a node of the site, or at a switch."""
    names = _names(nodes)
    counts = Counter(end.name for cable in cabling for end in cable.endpoints)
    strange = (end for cable in cabling for end in _strangers(cable, names, topology, counts))
    strangers = grouped((end.name, end) for end in strange)
    alone = len(strangers) == 1 and not TOPOLOGIES[topology.kind].switched
    switch = next(iter(strangers)) if alone else ""
    if switch and len(strangers[switch]) == len(cabling) > 1 and not did_you_mean(switch, names):
        yield Fault(
            f"all cables end at '{switch}', which is not a node",
            ("topology", "kind"),
            f"write 'kind: {SWITCH}' if it is a switch",
            related=(Related("first used", strangers[switch][0].path),),
            proposals=replacements(("topology", "kind"), [SWITCH]),
        )
        return
    cabled = {end.name for cable in cabling for end in cable.endpoints}
    for name, ends in strangers.items():
        near = all_nearest(name, names)
        if len(near) != 1:
            # With several near names, or none, assume the one that has no cable yet.
            bare = sorted(names - cabled)
            near = [known for known in near if known in bare] or (bare if len(bare) == 1 else near)
        bare_near = [node for node in nodes if node.name in near and node.name not in cabled]
        suspects = bare_near if _misspelt(name, bare_near, names)[1] else []
        yield Fault(
            f"no node is called '{name}'",
            ends[0].path,
            _advice(name, near, bare_near, names) + _free(near, nodes, cabling),
            related=(
                *(Related("used again", end.path) for end in ends[1:]),
                *(Related(f"no cable ends at {n.name},", (*n.path, "name")) for n in suspects),
            ),
            proposals=_readings(name, ends, near, bare_near, names),
            # The node may have been renamed on purpose, and the cables may still have its old name.
            unsafe=any(
                name not in misspelt(node.name, [name])
                or name.startswith(node.name)
                or node.name.startswith(name)
                for node in suspects
            ),
        )
    ends = [end for node_ends in _node_ends(nodes, cabling) for end in node_ends]
    if wrong := [end for end in ends if end.port not in PORT_NAMES]:
        yield _of_no_port(wrong, is_counted=len(wrong) < len(ends))


def _of_no_port(ends: Sequence[Endpoint], is_counted: bool) -> Fault:
    """All ends at ports that no node has; `is_counted` if other ends show that p0 is the first."""
    first, *others = ends
    count = f", and {len(others)} more" if others else ""
    meant = [[_meant_port(end.port) for end in ends]]
    # 1 is the second port, or the first one to those who count from 1.
    if not is_counted and all(re.fullmatch("(port)?[12]", end.port) for end in ends):
        meant.append([PORT_NAMES[int(end.port[-1]) - 1] for end in ends])
    known = [ports for ports in meant if all(ports)]
    texts = [f"'{first.name}:{ports[0]}'" for ports in known]
    return Fault(
        f"{first.name} has no port '{first.port}'{count}",
        first.path,
        (f"write {', or if they count from 1 '.join(texts)}; " if texts else "")
        + "a node has p0, the left port beside the RJ45, and p1, the right one",
        related=tuple(Related("also", end.path) for end in others),
        proposals=tuple(
            tuple(Replace(e.path, f"{e.name}:{p}") for e, p in zip(ends, ports, strict=True))
            for ports in known
        ),
        unsafe=len(meant) > 1,
    )


def _free(near: Sequence[str], nodes: Nodes, cabling: Cabling) -> str:
    """The only free port, if there is just one and no name is near."""
    free = [] if near else _free_ports((node.name for node in nodes), cabling)
    return f"; {free[0]} is free" if len(free) == 1 else ""


def _advice(name: str, near: Sequence[str], bare: Nodes, names: set[str]) -> str:
    """What to write at the cables or, for a node without one, in the list of nodes."""
    if not near:
        return _nodes_are(names)
    ends, at_node = _misspelt(name, bare, names)
    if not ends:
        return f"write 'name: {name}' in place of 'name: {bare[0].name}', where no cable ends"
    meant = f"did you mean {listed(map(repr, near))}"
    return f"{meant}, or is {bare[0].name} called '{name}'?" if at_node else f"{meant}?"


def _readings(
    name: str, ends: Sequence[Endpoint], near: Sequence[str], bare: Nodes, names: set[str]
) -> tuple[Proposal, ...]:
    """Corrections: known names at the cables' ends, or this name for a node without a cable."""
    at_ends = tuple(
        tuple(Replace(end.path, f"{known}:{end.port}") for end in ends) for known in near
    )
    at_nodes = tuple((Replace((*node.path, "name"), name),) for node in bare)
    ends_are, node_is = _misspelt(name, bare, names)
    return (at_ends if ends_are else ()) + (at_nodes if node_is else ())


def _misspelt(name: str, bare: Nodes, names: set[str]) -> tuple[bool, bool]:
    """Whether the cables' ends may be misspelt, and whether a node's name may be.

    Node names usually differ only in a number, so one that differs otherwise is probably wrong;
    names that count up without a gap are all right.
    """
    if len(bare) != 1 or _are_counted(names):
        return True, False
    others = {_stem(known) for known in names - {bare[0].name}}
    if len(others) != 1:
        return True, True
    return _stem(bare[0].name) in others, _stem(name) in others


def _are_counted(names: set[str]) -> bool:
    """Whether the names are spark1, spark2, ... without a gap."""
    stem = min(map(_stem, names), default="")
    return names == {f"{stem}{number}" for number in range(1, len(names) + 1)}


def _stem(name: str) -> str:
    return name.rstrip(digits)


def _meant_port(port: str) -> str:
    """The port that is meant by P0, 0, port0, left, enp1s0f0np0 or rocep1s0f0."""
    for port_number in PORTS:
        halves = [Half(port_number, half) for half in HALVES]
        if port in [name for half in halves for name in (half.interface, half.hca)]:
            return f"p{port_number}"
    meant = f"p{port.lower().removeprefix('port').removeprefix('p')}"
    return meant if meant in PORT_NAMES else _SIDES.get(port.lower(), "")


_SIDES = {"left": "p0", "right": "p1"}


def meant(end: Endpoint, names: Collection[str]) -> str:
    """The node that a misspelt end of a cable means; its own name if it is a switch."""
    near = all_nearest(end.name, names) if end.port in PORT_NAMES else []
    return end.name if end.name in names or not near else near[0]


def _strangers(
    cable: DeclaredCable, names: set[str], topology: Topology, counts: Mapping[str, int]
) -> list[Endpoint]:
    """The ends that should be nodes and are not; with a switch, one end is the switch's own."""
    strangers = [end for end in cable.endpoints if end.name not in names]
    if not TOPOLOGIES[topology.kind].switched and topology.kind != MIXED:
        return strangers
    if len(strangers) > 1:
        return sorted(strangers, key=lambda end: not did_you_mean(end.name, names))[:1]
    # A switch has more than one cable, and ports of other names.
    return [
        end
        for end in strangers
        if not topology.is_stated and counts[end.name] == 1 and end.port in PORT_NAMES
    ]


def _nodes_are(names: set[str]) -> str:
    one = len(names) == 1
    return f"the {'only node is' if one else 'nodes are'} {named(sorted(names))}"


@shape_rule("SG204", unless="SG201 SG218")
def port_used_twice(nodes: Nodes, cabling: Cabling) -> Faults:
    """A QSFP port takes one cable."""
    used: dict[str, Endpoint] = {}
    for cable in cabling:
        if _is_to_itself(nodes, cable) or _is_at_no_port(nodes, cable):
            continue
        owners = [used.get(str(end)) for end in cable.endpoints]
        cables = {owner.path[:2] for owner in owners if owner}
        if all(owners) and len(cables) == 1:
            a, b = cable.endpoints
            yield Fault(
                f"the cable from {a} to {b} is written twice",
                (*cable.path, "endpoints"),
                "remove it",
                related=(Related("first written", (*cables.pop(), "endpoints")),),
                proposals=removal(cable.path),
            )
            continue
        taken = [end for end, owner in zip(cable.endpoints, owners, strict=True) if owner]
        for end, owner in zip(cable.endpoints, owners, strict=True):
            if owner and len(taken) > 1:
                if end is taken[0]:
                    yield Fault(
                        f"ports {listed(map(str, taken), 'and')} have other cables",
                        (*cable.path, "endpoints"),
                        "each port takes one cable: remove this one, or correct its ends",
                        related=tuple(Related("used", one.path) for one in owners if one),
                    )
            elif owner:
                own = [end.name] if end.name in _names(nodes) else []
                free = next(iter(_free_ports(own, cabling)), "")
                yield Fault(
                    f"port {end} is used by two cables",
                    end.path,
                    f"write {free} at one of them, which is free"
                    if free
                    else "a port takes one cable: write another port",
                    related=(Related("first used", owner.path),),
                    # Either of the two cables may be the one that ends at the free port.
                    proposals=replacements(end.path, [free]) + replacements(owner.path, [free])
                    if free
                    else (),
                )
            used.setdefault(str(end), end)


def _is_at_no_port(nodes: Nodes, cable: DeclaredCable) -> bool:
    """Whether an end names a port that no node has: where the cable is, is not known."""
    names = _names(nodes)
    return any(end.name in names and end.port not in PORT_NAMES for end in cable.endpoints)


def _free_ports(names: Iterable[str], cabling: Cabling) -> list[str]:
    """The ports of these nodes that have no cable."""
    ends = {str(end) for cable in cabling for end in cable.endpoints}
    ports = [f"{name}:{port}" for name in names for port in PORT_NAMES]
    return [port for port in ports if port not in ends]


@shape_rule("SG205", unless="SG201 SG218")
def cable_to_itself(nodes: Nodes, cabling: Cabling) -> Faults:
    """A cable joins two machines."""
    for cable in cabling:
        if _is_to_itself(nodes, cable):
            yield Fault(
                f"both ends of the cable are at {cable.endpoints[0].name}",
                (*cable.path, "endpoints"),
                _free_of_others(cable, nodes, cabling)
                or "a cable joins two nodes, or a node and a switch",
            )


def _free_of_others(cable: DeclaredCable, nodes: Nodes, cabling: Cabling) -> str:
    """The ports of other nodes that have no cable, if there are one or two."""
    own = cable.endpoints[0].name
    free = _free_ports((node.name for node in nodes if node.name != own), cabling)
    return f"{listed(free)} {'is' if len(free) == 1 else 'are'} free" if 0 < len(free) <= 2 else ""


def _is_to_itself(nodes: Nodes, cable: DeclaredCable) -> bool:
    a, b = cable.endpoints
    return a.name == b.name and a.name in _names(nodes)


@shape_rule("SG208", unless="SG201 SG202 SG203 SG205 SG241")
def node_count(joined: Nodes, topology: Topology, document: Document) -> Faults:
    """One node is alone, two share a cable, three to eight form a ring, any number use a switch."""
    kind = TOPOLOGIES[topology.kind]
    count, in_groups = len(joined), "groups" in document.data
    if kind.groups_alone and topology.is_stated and "engine" in document.data and not in_groups:
        yield Fault(
            f"'{topology.kind}' needs groups, and the site has none",
            ("topology", "kind"),
            f"write {listed(repr(f'kind: {name}') for name in likely(count))}, or 'groups'",
        )
        return
    if kind.fewest <= count <= kind.most or not (count or topology.is_stated):
        return
    if in_groups and not count and kind.most == 1:
        return
    fitting = [*likely(count), *([PAIRS] if in_groups and count > 2 else [])] if count else [SINGLE]
    are = "is one" if count == 1 else f"are {count}"
    yield Fault(
        f"'{topology.kind}' needs {_count(kind.fewest, kind.most)}, and there {are}"
        f"{' that cables join' if in_groups else ''}",
        ("topology", "kind") if topology.is_stated else ("cabling",),
        f"write {listed(repr(f'kind: {name}') for name in fitting)}",
        at_key=not topology.is_stated,
        related=(Related("the nodes", ("nodes",)),),
        proposals=replacements(("topology", "kind"), fitting) if topology.is_stated else (),
    )


def _count(low: int, high: int) -> str:
    if low == high:
        return f"{low} node{'s' if low > 1 else ''}"
    return f"{low} to {high} nodes"


@shape_rule("SG218")
def cables_of_a_single_node(
    nodes: Nodes, cabling: Cabling, topology: Topology, document: Document
) -> Faults:
    """A single node has no cables."""
    is_single = TOPOLOGIES[topology.kind].most == 1
    if is_single and cabling and (len(nodes) == 1 or "groups" in document.data):
        yield to_remove(
            "a single node has no cables", ("cabling",), "remove the key 'cabling'", at_key=True
        )


@shape_rule("SG213", unless="SG201 SG203 SG205 SG208")
def direct_and_switch_mixed(nodes: Nodes, cabling: Cabling, topology: Topology) -> Faults:
    """On a switch every cable ends at the switch."""
    if not TOPOLOGIES[topology.kind].switched:
        return
    direct = [
        cable
        for cable, ends in zip(cabling, _node_ends(nodes, cabling), strict=True)
        if len(ends) == 2
    ]
    if direct and len(direct) == len(cabling):
        fitting = without_a_switch(len(nodes))
        yield Fault(
            "no cable ends at a switch",
            ("topology", "kind"),
            f"write 'kind: {fitting[0]}', or SWITCH:PORT at one end of each cable"
            if fitting
            else "write SWITCH:PORT at one end of each cable",
            related=(Related("the cables", ("cabling",)),),
        )
        return
    for cable in direct:
        a, b = cable.endpoints
        yield Fault(
            f"the cable from {a} to {b} does not end at the switch",
            (*cable.path, "endpoints"),
            f"write [{a}, SWITCH:PORT]",
        )


@shape_rule("SG207", unless=_INVALID_CABLING + " SG208")
def unconnected_node(joined: Nodes, cabling: Cabling, topology: Topology) -> Faults:
    """Every node on a switch has a cable to it."""
    if not TOPOLOGIES[topology.kind].switched:
        return
    if not cabling:
        yield Fault(
            "no cable joins the nodes and the switch",
            ("topology", "kind") if topology.is_stated else ("nodes",),
            f"add 'cabling:' with '- endpoints: [{joined[0].name}:p0, SWITCH:PORT]' for each node",
            at_key=not topology.is_stated,
        )
        return
    names = _names(joined)
    ends = [end for cable in cabling for end in cable.endpoints]
    cabled = {end.name for end in ends}
    # The port and the switch that most of the other nodes use.
    ports = Counter(end.port for end in ends if end.name in names)
    switches = Counter(end.name for end in ends if end.name not in names)
    port, switch = (next(iter(c.most_common(1)), ("", 0))[0] for c in (ports, switches))
    for node in joined:
        if node.name not in cabled:
            yield Fault(
                f"{node.name} has no cable",
                (*node.path, "name"),
                f"add '- endpoints: [{node.name}:{port or 'p0'}, {switch or 'SWITCH'}:PORT]' "
                "to cabling",
            )


@shape_rule("SG209", unless=_INVALID_CABLING + " SG208")
def missing_cable(joined: Nodes, cabling: Cabling, topology: Topology) -> Faults:
    """The cables form the topology."""
    kind = TOPOLOGIES[topology.kind]
    names = [node.name for node in joined]
    pairs = kind.pairs(names)
    second = _second_cable(cabling) if pairs and not kind.spare_cables else None
    if second:
        yield second
    elif cabling:
        yield from _apart(kind, names, cabling)
    elif pairs:
        yield _no_cables(pairs, "p0" if kind.same_port else "p1", topology)


def _no_cables(pairs: Sequence[Pair], port: str, topology: Topology) -> Fault:
    """The fault of a site without cables; `port` is the far end of a cable that starts at p0."""
    cables: Data = [{"endpoints": [f"{a}:p0", f"{b}:{port}"]} for a, b in pairs]
    (a, b), *others = pairs
    return Fault(
        "no cables join the nodes" if others else f"no cable joins {a} and {b}",
        ("topology", "kind") if topology.is_stated else ("nodes",),
        f"add 'cabling:' with a cable from p0 of each node to {port} of the next"
        if others
        else f"add 'cabling: [{{endpoints: [{a}:p0, {b}:{port}]}}]'",
        at_key=not topology.is_stated,
        proposals=((Add(("cabling",), cables, after="nodes"),),),
        unsafe=True,
        nodes=() if others else (a, b),
    )


def _second_cable(cabling: Cabling) -> Fault | None:
    """The fault of two cables between the same two nodes, where only one is allowed."""
    for _, first, cable in repeated(cabling, lambda cable: frozenset(cable.ends)):
        a, b = cable.ends
        return Fault(
            f"a second cable joins {a} and {b}",
            (*cable.path, "endpoints"),
            "a ring has one cable between every two neighbors",
            related=(Related("the first one", (*first.path, "endpoints")),),
        )
    return None


def _apart(kind: TopologyKind, names: Sequence[str], cabling: Cabling) -> Faults:
    """The faults of nodes that the cables do not join as the topology requires."""
    joined = [cable.ends for cable in cabling]
    if closed := kind.closed_subset(names, joined):
        others = [name for name in names if name not in closed]
        yield Fault(
            f"the cables close a ring of {listed(closed, 'and')}, without {listed(others, 'and')}",
            ("cabling",),
            "cable all nodes in one ring: each one to the next, and the last one to the first",
            at_key=True,
            nodes=tuple(names),
        )
        return
    yield from _open_gaps(kind.missing(names, joined), cabling)


def _open_gaps(missing: Sequence[Pair], cabling: Cabling) -> Faults:
    """The faults of missing cables, each with two free ports for one."""
    used = {str(end) for cable in cabling for end in cable.endpoints}
    for number, (a, b) in enumerate(missing, len(cabling)):
        first = next(f"{a}:{port}" for port in PORT_NAMES if f"{a}:{port}" not in used)
        ports = sorted(PORT_NAMES, reverse=first.endswith("p0"))
        second = next(f"{b}:{port}" for port in ports if f"{b}:{port}" not in used)
        yield Fault(
            f"no cable joins {a} and {b}: the ring is open",
            ("cabling",),
            f"add '- endpoints: [{first}, {second}]' to cabling",
            at_key=True,
            proposals=((Add(("cabling", number), {"endpoints": [first, second]}),),),
            # Only the machines show where a cable is plugged in, and its place decides its subnets.
            unsafe=True,
            nodes=(a, b),
        )
        used |= {first, second}


@shape_rule("SG210", Severity.WARNING, unless=_INVALID_CABLING + " SG208 SG209")
def ring_orientation(joined: Nodes, cabling: Cabling, topology: Topology) -> Faults:
    """Each cable of a ring of three goes from p0 of one node to p1 of the next."""
    if not TOPOLOGIES[topology.kind].is_oriented(len(joined)):
        return
    wrong = [cable for cable in cabling if len({end.port for end in cable.endpoints}) == 1]
    if not wrong:
        return
    # In a ring of three, two cables are wrong at once: the node they share has its ports swapped.
    first, second = wrong
    (node,) = {end.name for end in first.endpoints} & {end.name for end in second.endpoints}
    a, b = first.endpoints
    yield Fault(
        f"the cable from {a} to {b} joins {a.port} to {b.port}, not p0 to p1",
        (*first.path, "endpoints"),
        f"swap {node}:p0 and {node}:p1: each cable goes from p0 of a node to p1 of the next",
        related=(Related(f"{node}'s other cable", (*second.path, "endpoints")),),
        proposals=(
            tuple(
                Replace(end.path, f"{node}:{'p1' if end.port == 'p0' else 'p0'}")
                for end in (*first.endpoints, *second.endpoints)
                if end.name == node
            ),
        ),
        # Only the machines show where a cable is plugged in.
        unsafe=True,
    )


@shape_rule("SG211", Severity.WARNING, unless=_INVALID_CABLING + " SG208 SG209")
def different_ports(cabling: Cabling, topology: Topology, engine: DeclaredEngine) -> Faults:
    """A direct cable joins the same port of both nodes."""
    if not TOPOLOGIES[topology.kind].same_port or engine.launcher == "ray":
        return
    for cable in cabling:
        a, b = cable.endpoints
        if a.port != b.port:
            yield Fault(
                f"the cable joins different ports, {a} and {b}",
                (*cable.path, "endpoints"),
                "use the same port at both ends: NCCL's tests expect it",
            )
            return


@shape_rule("SG212", Severity.WARNING, unless=_INVALID_CABLING + " SG208 SG209")
def redundant_second_cable(cabling: Cabling, topology: Topology) -> Faults:
    """A second cable between two nodes adds no speed."""
    if not TOPOLOGIES[topology.kind].spare_cables:
        return
    for _, first, cable in repeated(cabling, lambda cable: frozenset(cable.ends)):
        is_crossed = len({end.port for end in cable.endpoints}) == 2
        yield Fault(
            "a second cable between two nodes makes them no faster",
            (*cable.path, "endpoints"),
            "remove it: one cable is as fast as a node's PCIe links"
            f"{_CROSSED if is_crossed else ''}",
            related=(Related("the first cable", (*first.path, "endpoints")),),
            proposals=removal(cable.path),
        )


_CROSSED = f", and NCCL before {ROUTED_FROM} can't tell the ports of crossed ones apart"


@rule("SG221")
def copper_too_long(cabling: Cabling) -> Faults:
    """A direct-attach copper cable of 200 Gb/s is at most five meters long."""
    for cable in cabling:
        if cable.kind == "dac" and cable.length_m and cable.length_m > DAC_REACH_M:
            yield Fault(
                f"a copper cable of {cable.length_m:g} m is too long: DACs reach {DAC_REACH_M:g} m",
                (*cable.path, "length_m"),
                "use a shorter one, or write 'kind: aoc' if it is optical",
            )


@shape_rule("SG214", Severity.WARNING, unless=_INVALID_CABLING + " SG207 SG208")
def another_switch(nodes: Nodes, cabling: Cabling, topology: Topology) -> Faults:
    """All cables of a port number end at the same switch."""
    if not TOPOLOGIES[topology.kind].switched:
        return
    names = _names(nodes)
    joined = (sorted(cable.endpoints, key=lambda end: end.name not in names) for cable in cabling)
    ends = grouped((own.port, there) for own, there in joined)
    for port, switch_ends in ends.items():
        usual = Counter(end.name for end in switch_ends).most_common(1)[0][0]
        first = next(end for end in switch_ends if end.name == usual)
        for end in switch_ends:
            if end.name == usual:
                continue
            near = all_nearest(end.name, [usual])
            yield Fault(
                f"{end} is on another switch than {port} of another node, which is on {usual}",
                end.path,
                did_you_mean(end.name, [usual])
                or f"cable {port} of all nodes to one switch, or waive this if they are linked",
                related=(Related("the other one", first.path),),
                proposals=replacements(end.path, [f"{name}:{end.port}" for name in near]),
            )
            break
