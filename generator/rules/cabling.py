"""Rules about cables: which ends exist, and whether the cables make the topology."""

from collections import Counter
from collections.abc import Iterator, Sequence

from generator.declaration import DeclaredCable, DeclaredEngine, Endpoint, Topology
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
    removal,
    replacements,
)
from generator.hardware import DAC_REACH_M, HALVES, PORTS, Half
from generator.rules.nodes import Nodes, named
from generator.rules.registry import Fault, rule

Cabling = Sequence[DeclaredCable]

_PORTS = tuple(f"p{port}" for port in PORTS)
_UNSOUND = "SG201 SG203 SG204 SG205 SG213 SG218"


def _names(nodes: Nodes) -> set[str]:
    return {node.name for node in nodes}


def _node_ends(nodes: Nodes, cable: DeclaredCable) -> list[Endpoint]:
    names = _names(nodes)
    return [end for end in cable.endpoints if end.name in names]


@rule("SG203", unless="SG201 SG218")
def unknown_endpoint(nodes: Nodes, cabling: Cabling, topology: Topology) -> Iterator[Fault]:
    """A cable ends at port p0 or p1 of a node of the list, or at a switch.

    p0 is the left port, beside the RJ45; p1 the right one. On a switch, one end of each cable is
    the switch's own, SWITCH:PORT.

    Source: NVIDIA, "Connect three Sparks", step 2.

    Bad:
        cabling:
          - endpoints: [spark1:p0, sparc2:p0]

    Good:
        cabling:
          - endpoints: [spark1:p0, spark2:p0]
    """
    names = _names(nodes)
    strangers: dict[str, list[Endpoint]] = {}
    for cable in cabling:
        for end in _strangers(cable, names, topology):
            strangers.setdefault(end.name, []).append(end)
    switch = next(iter(strangers)) if len(strangers) == 1 and topology.kind != "switch" else ""
    if switch and len(strangers[switch]) == len(cabling) > 1 and not did_you_mean(switch, names):
        yield Fault(
            f"all cables end at '{switch}', which is no node",
            ("topology", "kind"),
            "write 'kind: switch' if it is a switch",
            related=(Related("first used", strangers[switch][0].path),),
            proposals=replacements(("topology", "kind"), ["switch"]),
        )
        return
    cabled = {end.name for cable in cabling for end in cable.endpoints}
    for name, ends in strangers.items():
        near = all_nearest(name, names)
        if len(near) != 1:
            # Of names that are as near, or where none is, one that has no cable yet was meant.
            bare = sorted(names - cabled)
            near = [known for known in near if known in bare] or (bare if len(bare) == 1 else near)
        yield Fault(
            f"no node is called '{name}'",
            ends[0].path,
            f"did you mean {listed(map(repr, near))}?" if near else _nodes_are(names),
            related=tuple(Related("used again", end.path) for end in ends[1:]),
            proposals=tuple(
                tuple(Replace(end.path, f"{known}:{end.port}") for end in ends) for known in near
            ),
        )
    for cable in cabling:
        for end in _node_ends(nodes, cable):
            if end.port not in _PORTS:
                meant = _meant_port(end.port)
                yield Fault(
                    f"{end.name} has no port '{end.port}'",
                    end.path,
                    (f"write '{end.name}:{meant}'; " if meant else "")
                    + "p0 is the left port, beside the RJ45; p1 the right one",
                    proposals=replacements(end.path, [f"{end.name}:{meant}"] if meant else []),
                )


def _meant_port(port: str) -> str:
    """P0, 0, port0, enp1s0f0np0 and rocep1s0f0 are p0."""
    for port_number in PORTS:
        halves = [Half(port_number, half) for half in HALVES]
        if port in [name for half in halves for name in (half.interface, half.hca)]:
            return f"p{port_number}"
    meant = f"p{port.lower().removeprefix('port').removeprefix('p')}"
    return meant if meant in _PORTS else ""


def _strangers(cable: DeclaredCable, names: set[str], topology: Topology) -> list[Endpoint]:
    """The ends that should be nodes and are not; on a switch one end is the switch's own."""
    strangers = [end for end in cable.endpoints if end.name not in names]
    if topology.kind != "switch":
        return strangers
    if len(strangers) < 2:
        return []
    return sorted(strangers, key=lambda end: not did_you_mean(end.name, names))[:1]


def _nodes_are(names: set[str]) -> str:
    one = len(names) == 1
    return f"the {'only node is' if one else 'nodes are'} {named(sorted(names))}"


@rule("SG204", unless="SG201 SG218")
def port_used_twice(nodes: Nodes, cabling: Cabling) -> Iterator[Fault]:
    """A QSFP port takes one cable.

    A port that stands in two cables is a misreading of the rack: one of the two ends is elsewhere.

    Bad:
        topology:
          kind: ring
        cabling:
          - endpoints: [spark1:p0, spark2:p1]
          - endpoints: [spark2:p1, spark3:p1]
          - endpoints: [spark3:p0, spark1:p1]

    Good:
        topology:
          kind: ring
        cabling:
          - endpoints: [spark1:p0, spark2:p1]
          - endpoints: [spark2:p0, spark3:p1]
          - endpoints: [spark3:p0, spark1:p1]
    """
    used: dict[str, Endpoint] = {}
    for cable in cabling:
        if _is_to_itself(nodes, cable):
            continue
        owners = [used.get(str(end)) for end in cable.endpoints]
        cables = {owner.path[:2] for owner in owners if owner}
        if all(owners) and len(cables) == 1:
            a, b = cable.endpoints
            yield Fault(
                f"the cable from {a} to {b} is written twice",
                (*cable.path, "endpoints"),
                "take it out",
                related=(Related("first written", (*cables.pop(), "endpoints")),),
                proposals=removal(cable.path),
            )
            continue
        for end, owner in zip(cable.endpoints, owners, strict=True):
            if owner:
                free = _free_port(end, nodes, cabling)
                yield Fault(
                    f"port {end} is used by two cables",
                    end.path,
                    f"{free} is free" if free else "each port takes one cable",
                    related=(Related("first used", owner.path),),
                    # Either of the two cables may end at the free one.
                    proposals=replacements(end.path, [free]) + replacements(owner.path, [free])
                    if free
                    else (),
                )
            used.setdefault(str(end), end)


def _free_port(end: Endpoint, nodes: Nodes, cabling: Cabling) -> str:
    ends = {str(end) for cable in cabling for end in cable.endpoints}
    ports = [f"{end.name}:{port}" for port in _PORTS if end.name in _names(nodes)]
    return next((port for port in ports if port not in ends), "")


@rule("SG205", unless="SG201 SG218")
def cable_to_itself(nodes: Nodes, cabling: Cabling) -> Iterator[Fault]:
    """A cable joins two machines.

    A cable between the two ports of one node reaches no peer.

    Bad:
        cabling:
          - endpoints: [spark1:p0, spark1:p1]

    Good:
        cabling:
          - endpoints: [spark1:p0, spark2:p0]
    """
    for cable in cabling:
        if _is_to_itself(nodes, cable):
            yield Fault(
                f"both ends of the cable are at {cable.endpoints[0].name}",
                (*cable.path, "endpoints"),
                "a cable joins two nodes, or a node and a switch",
            )


def _is_to_itself(nodes: Nodes, cable: DeclaredCable) -> bool:
    a, b = cable.endpoints
    return a.name == b.name and a.name in _names(nodes)


@rule("SG208", unless="SG201 SG203")
def node_count(nodes: Nodes, topology: Topology) -> Iterator[Fault]:
    """One node is alone, two are on a cable, three in a ring; more need a switch.

    A node has two ports: with four nodes and no switch some pair is not adjacent, and RoCE between
    them is not routed.

    Source: NVIDIA, "Connect multiple Sparks" (ring for three, four need a switch).

    Bad:
        topology:
          kind: direct
        nodes:
          - name: spark1
          - name: spark2
          - name: spark3

    Good:
        topology:
          kind: direct
        nodes:
          - name: spark1
          - name: spark2
    """
    wanted = {"single": (1, 1), "direct": (2, 2), "ring": (3, 3), "switch": (2, 244)}
    low, high = wanted[topology.kind]
    count = len(nodes)
    if low <= count <= high:
        return
    why = ": two ports can't reach three peers, and RoCE isn't routed" if count > 3 else ""
    yield Fault(
        f"'{topology.kind}' is for {_count(low, high)}, and there {_are(count)}{why}",
        ("topology", "kind"),
        f"write 'kind: {_FITTING.get(count, 'switch')}'",
        related=(Related("the nodes", ("nodes",)),),
        proposals=replacements(("topology", "kind"), filter(None, [_FITTING.get(count)])),
    )


_FITTING = {1: "single", 2: "direct", 3: "ring"}


def _are(count: int) -> str:
    return "is one" if count == 1 else f"are {count}"


def _count(low: int, high: int) -> str:
    if low == high:
        return f"{low} node{'s' if low > 1 else ''}"
    return f"{low} to {high} nodes"


@rule("SG218")
def cables_of_a_single_node(nodes: Nodes, cabling: Cabling, topology: Topology) -> Iterator[Fault]:
    """A single node has no cables.

    It has no fabric; a cable without a peer would be configured for nothing.

    Bad:
        topology:
          kind: single
        cabling:
          - endpoints: [spark1:p0, spark2:p0]

    Good:
        topology:
          kind: single
    """
    if topology.kind == "single" and len(nodes) == 1 and cabling:
        yield Fault(
            "a single node has no cables",
            ("cabling",),
            "take the key 'cabling' out",
            at_key=True,
            proposals=removal(("cabling",)),
        )


@rule("SG213", unless="SG201 SG203 SG205 SG208")
def direct_and_switch_mixed(nodes: Nodes, cabling: Cabling, topology: Topology) -> Iterator[Fault]:
    """On a switch every cable ends at the switch.

    Subnets there are for the whole fabric; a direct cable would need one of its own.

    Source: NVIDIA, "Connect multiple Sparks": do not mix direct and switch links.

    Bad:
        topology:
          kind: switch
        nodes:
          - name: spark1
          - name: spark2
        cabling:
          - endpoints: [spark1:p0, switch:1]
          - endpoints: [spark1:p1, spark2:p0]

    Good:
        topology:
          kind: switch
        nodes:
          - name: spark1
          - name: spark2
        cabling:
          - endpoints: [spark1:p0, switch:1]
          - endpoints: [spark2:p0, switch:2]
    """
    if topology.kind != "switch":
        return
    direct = [cable for cable in cabling if len(_node_ends(nodes, cable)) == 2]
    if direct and len(direct) == len(cabling):
        fitting = _FITTING.get(len(nodes), "")
        yield Fault(
            "no cable ends at a switch",
            ("topology", "kind"),
            f"write 'kind: {fitting}', or SWITCH:PORT at one end of each cable"
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


@rule("SG207", unless=_UNSOUND + " SG208")
def unconnected_node(nodes: Nodes, cabling: Cabling, topology: Topology) -> Iterator[Fault]:
    """Every node of a switch has a cable to it.

    A node without one has no fabric, and the other ranks wait for it in vain.

    Bad:
        topology:
          kind: switch
        nodes:
          - name: spark1
          - name: spark2
        cabling:
          - endpoints: [spark1:p0, switch:1]

    Good:
        topology:
          kind: switch
        nodes:
          - name: spark1
          - name: spark2
        cabling:
          - endpoints: [spark1:p0, switch:1]
          - endpoints: [spark2:p0, switch:2]
    """
    if topology.kind != "switch":
        return
    if not cabling:
        yield Fault(
            "no cable joins the nodes and the switch",
            ("topology", "kind"),
            f"add 'cabling:' with '- endpoints: [{nodes[0].name}:p0, SWITCH:PORT]' for each node",
        )
        return
    cabled = {end.name for cable in cabling for end in cable.endpoints}
    for node in nodes:
        if node.name not in cabled:
            yield Fault(
                f"{node.name} has no cable",
                (*node.path, "name"),
                f"add '- endpoints: [{node.name}:p0, SWITCH:PORT]' to cabling",
            )


@rule("SG217", unless=_UNSOUND + " SG207 SG208")
def uneven_switch_ports(nodes: Nodes, cabling: Cabling, topology: Topology) -> Iterator[Fault]:
    """All nodes cable the same ports to a switch.

    p0 of one has no subnet with p1 of another.

    Source: NVIDIA's cluster setup refuses nodes whose sets of ports differ.

    Bad:
        topology:
          kind: switch
        nodes:
          - name: spark1
          - name: spark2
        cabling:
          - endpoints: [spark1:p0, switch:1]
          - endpoints: [spark2:p1, switch:2]

    Good:
        topology:
          kind: switch
        nodes:
          - name: spark1
          - name: spark2
        cabling:
          - endpoints: [spark1:p0, switch:1]
          - endpoints: [spark2:p0, switch:2]
    """
    if topology.kind != "switch":
        return
    ports: dict[str, set[str]] = {node.name: set() for node in nodes}
    for cable in cabling:
        for end in _node_ends(nodes, cable):
            ports[end.name].add(end.port)
    usual = Counter(frozenset(own) for own in ports.values()).most_common(1)[0][0]
    for cable in cabling:
        for end in _node_ends(nodes, cable):
            if ports[end.name] != usual and end.port not in usual:
                yield Fault(
                    f"{end} is cabled, and {listed(sorted(usual), 'and')} on the other nodes",
                    end.path,
                    "use the same ports on every node of a switch",
                )
    for node in nodes:
        if missing := usual - ports[node.name]:
            if ports[node.name] - usual:
                continue
            yield Fault(
                f"{node.name} does not cable {listed(sorted(missing), 'and')}, as the others do",
                (*node.path, "name"),
                "use the same ports on every node of a switch",
            )


@rule("SG209", unless=_UNSOUND + " SG208")
def missing_cable(nodes: Nodes, cabling: Cabling, topology: Topology) -> Iterator[Fault]:
    """The cables make the topology.

    One joins two nodes, and three close a ring of three: each pair of nodes has one.

    Bad:
        topology:
          kind: ring
        cabling:
          - endpoints: [spark1:p0, spark2:p1]
          - endpoints: [spark2:p0, spark3:p1]

    Good:
        topology:
          kind: ring
        cabling:
          - endpoints: [spark1:p0, spark2:p1]
          - endpoints: [spark2:p0, spark3:p1]
          - endpoints: [spark3:p0, spark1:p1]
    """
    if topology.kind == "direct" and not cabling:
        a, b = (node.name for node in nodes)
        yield Fault(
            f"no cable joins {a} and {b}",
            ("topology", "kind"),
            f"add 'cabling: [{{endpoints: [{a}:p0, {b}:p0]}}]'",
            proposals=_first_cables((f"{a}:p0", f"{b}:p0")),
        )
    if topology.kind == "ring" and not cabling:
        yield Fault(
            "no cables join the nodes",
            ("topology", "kind"),
            "add 'cabling:' with a cable from p0 of each node to p1 of the next",
            proposals=_first_cables(
                *((f"{a}:p0", f"{b}:p1") for a, b in _ring_of([node.name for node in nodes]))
            ),
        )
    elif topology.kind == "ring":
        yield from _open_ring(nodes, cabling)


def _first_cables(*ends: tuple[str, str]) -> tuple[Proposal, ...]:
    """The proposal to write the section with these cables."""
    cables: Data = [{"endpoints": list(pair)} for pair in ends]
    return ((Add(("cabling",), cables, after="nodes"),),)


def _ring_of(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each node and the next one."""
    return zip(names, [*names[1:], names[0]], strict=True)


def _open_ring(nodes: Nodes, cabling: Cabling) -> Iterator[Fault]:
    """What keeps three nodes from being a ring: each pair of them has one cable."""
    joined: dict[frozenset[str], DeclaredCable] = {}
    for cable in cabling:
        a, b = cable.endpoints
        first = joined.setdefault(frozenset((a.name, b.name)), cable)
        if first is not cable:
            yield Fault(
                f"a second cable joins {a.name} and {b.name}",
                (*cable.path, "endpoints"),
                "a ring has one cable between each two nodes",
                related=(Related("the first one", (*first.path, "endpoints")),),
            )
            return
    names = [node.name for node in nodes]
    used = {str(end) for cable in cabling for end in cable.endpoints}
    count = len(cabling)
    for a_name, b_name in _ring_of(names):
        if frozenset((a_name, b_name)) in joined:
            continue
        first_free = next(f"{a_name}:{port}" for port in _PORTS if f"{a_name}:{port}" not in used)
        other = "p1" if first_free.endswith("p0") else "p0"
        ports = (other, *(port for port in _PORTS if port != other))
        second_free = next(f"{b_name}:{port}" for port in ports if f"{b_name}:{port}" not in used)
        yield Fault(
            f"no cable joins {a_name} and {b_name}: the ring is open",
            ("cabling",),
            f"add '- endpoints: [{first_free}, {second_free}]' to cabling",
            at_key=True,
            proposals=((Add(("cabling", count), {"endpoints": [first_free, second_free]}),),),
        )
        used |= {first_free, second_free}
        count += 1


@rule("SG210", unless=_UNSOUND + " SG208 SG209")
def ring_orientation(cabling: Cabling, topology: Topology) -> Iterator[Fault]:
    """Each cable of a ring goes from p0 of one node to p1 of the next.

    A ring of three closes in no other way that treats all nodes alike, and NVIDIA's setup takes no
    other.

    Source: NVIDIA, "Connect three Sparks".

    Bad:
        topology:
          kind: ring
        cabling:
          - endpoints: [spark1:p0, spark2:p0]
          - endpoints: [spark2:p1, spark3:p1]
          - endpoints: [spark3:p0, spark1:p1]

    Good:
        topology:
          kind: ring
        cabling:
          - endpoints: [spark1:p0, spark2:p1]
          - endpoints: [spark2:p0, spark3:p1]
          - endpoints: [spark3:p0, spark1:p1]
    """
    if topology.kind != "ring":
        return
    wrong = [cable for cable in cabling if len({end.port for end in cable.endpoints}) == 1]
    if not wrong:
        return
    # Of three cables two are wrong at a time, for the node where they meet has its ports swapped.
    first, second = wrong
    (node,) = {end.name for end in first.endpoints} & {end.name for end in second.endpoints}
    a, b = first.endpoints
    yield Fault(
        f"the cable from {a} to {b} joins two ports {a.port}",
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
    )


@rule("SG211", Severity.WARNING, unless=_UNSOUND + " SG208 SG209")
def different_ports(
    cabling: Cabling, topology: Topology, engine: DeclaredEngine
) -> Iterator[Fault]:
    """A direct cable joins the same port of both nodes.

    One that joins p0 with p1 works, and trips tools that expect the same port. Under Ray it does
    not work, which is a rule of its own.

    Source: NVIDIA, "Connect two Sparks": the same physical port on both, "to prevent issues with
    NCCL tests".

    Bad:
        cabling:
          - endpoints: [spark1:p0, spark2:p1]

    Good:
        cabling:
          - endpoints: [spark1:p0, spark2:p0]
    """
    if topology.kind != "direct" or engine.launcher == "ray":
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


@rule("SG212", Severity.WARNING, unless=_UNSOUND + " SG208 SG209")
def second_cable(cabling: Cabling, topology: Topology) -> Iterator[Fault]:
    """A second cable between two nodes brings no speed.

    One cable carries all that a node's PCIe links do.

    Source: NVIDIA, "Connect multiple Sparks": "using two cables will not increase performance".

    Bad:
        cabling:
          - endpoints: [spark1:p0, spark2:p0]
          - endpoints: [spark1:p1, spark2:p1]

    Good:
        cabling:
          - endpoints: [spark1:p0, spark2:p0]
    """
    if topology.kind == "direct":
        for cable in cabling[1:]:
            yield Fault(
                "a second cable between two nodes brings no speed",
                (*cable.path, "endpoints"),
                "take it out: one cable carries all that a node's PCIe links do",
                related=(Related("the first cable", (*cabling[0].path, "endpoints")),),
                proposals=removal(cable.path),
            )


@rule("SG221")
def long_copper(cabling: Cabling) -> Iterator[Fault]:
    """A direct-attach copper cable of 200 Gb/s reaches five meters.

    A longer one is optical, or it does not come up.

    Bad:
        cabling:
          - {endpoints: [spark1:p0, spark2:p0], kind: dac, length_m: 7}

    Good:
        cabling:
          - {endpoints: [spark1:p0, spark2:p0], kind: aoc, length_m: 7}
    """
    for cable in cabling:
        if cable.kind == "dac" and cable.length_m and cable.length_m > DAC_REACH_M:
            yield Fault(
                f"a DAC of {cable.length_m:g} m; copper reaches {DAC_REACH_M:g} m",
                (*cable.path, "length_m"),
                "use a shorter one, or write 'kind: aoc' if it is optical",
            )


@rule("SG214", Severity.WARNING, unless=_UNSOUND + " SG207 SG208")
def another_switch(nodes: Nodes, cabling: Cabling, topology: Topology) -> Iterator[Fault]:
    """All cables of a port number end at one switch.

    They share a subnet, so the switches would have to be joined. More often one of the names is
    misspelt: a switch's name is free text, and nothing else would notice.

    Bad:
        topology:
          kind: switch
        nodes:
          - name: spark1
          - name: spark2
        cabling:
          - endpoints: [spark1:p0, crs812:1]
          - endpoints: [spark2:p0, crs821:2]

    Good:
        topology:
          kind: switch
        nodes:
          - name: spark1
          - name: spark2
        cabling:
          - endpoints: [spark1:p0, crs812:1]
          - endpoints: [spark2:p0, crs812:2]
    """
    if topology.kind != "switch":
        return
    names = _names(nodes)
    ends: dict[str, list[Endpoint]] = {}
    for cable in cabling:
        own, there = sorted(cable.endpoints, key=lambda end: end.name not in names)
        ends.setdefault(own.port, []).append(there)
    for port, switch_ends in ends.items():
        usual = Counter(end.name for end in switch_ends).most_common(1)[0][0]
        first = next(end for end in switch_ends if end.name == usual)
        for end in switch_ends:
            if end.name == usual:
                continue
            near = all_nearest(end.name, [usual])
            yield Fault(
                f"{end} is another switch than {usual}, where {port} of another node ends",
                end.path,
                did_you_mean(end.name, [usual])
                or "cable a port number to one switch, or waive this if the switches are joined",
                related=(Related("the other one", first.path),),
                proposals=replacements(end.path, [f"{name}:{end.port}" for name in near]),
            )
            break
