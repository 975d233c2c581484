"""Rules about ports outside the fabric, routes, and addresses that are given explicitly."""

from collections.abc import Sequence
from ipaddress import IPv4Interface

from generator.diagnostics import KeyPath, Related, all_nearest, did_you_mean, replacements
from generator.fabric.addressing import Fabric, Peer
from generator.fabric.routes import is_routed
from generator.hardware import PORT_NAMES
from generator.rules.nodes import Nodes, named_twice
from generator.rules.registry import Fault, Faults, rule, to_remove
from generator.sitefile.declaration import DeclaredCable, Endpoint, Topology

Cabling = Sequence[DeclaredCable]


@rule("SG225", unless="SG201 SG203")
def uplink(nodes: Nodes, cabling: Cabling, topology: Topology) -> Faults:
    """An uplink is a QSFP port of a node that no cable of the fabric ends at."""
    known = [f"{node.name}:{port}" for node in nodes for port in PORT_NAMES]
    cabled = {str(end): end for cable in cabling for end in cable.endpoints}
    seen: dict[str, Endpoint] = {}
    for end in topology.uplinks:
        name = str(end)
        if name not in known:
            free = [port for port in known if port not in cabled]
            yield Fault(
                f"'{name}' is not a port of a node",
                end.path,
                did_you_mean(name, free) or "write NODE:p0 or NODE:p1",
                proposals=replacements(end.path, all_nearest(name, free)),
            )
        elif name in cabled:
            yield to_remove(
                f"a cable of the fabric ends at {name}",
                end.path,
                "remove it: a port is the fabric's or leads elsewhere",
                related=(Related("the cable", cabled[name].path),),
                unsafe=True,
            )
        elif name in seen:
            first = Related("first named", seen[name].path)
            yield named_twice(name, end.path, "remove it", first)
        seen.setdefault(name, end)


@rule("SG316", unless="SG203 SG305")
def addresses_of_a_cable(nodes: Nodes, cabling: Cabling, fabric: Fabric) -> Faults:
    """A cable with explicit addresses has one for each end at a node, in one subnet per half."""
    names = {node.name for node in nodes}
    for cable in cabling:
        ends = [end for end in cable.endpoints if end.name in names]
        if not cable.addresses:
            continue
        for half, addresses in enumerate(cable.addresses):
            place = (*cable.path, "addresses", half)
            if len(addresses) != len(ends):
                one = len(addresses) == 1
                given = "1 address" if one else f"{len(addresses)} addresses"
                wanted = (
                    "an end that is a node"
                    if len(ends) == 1
                    else f"{len(ends)} ends that are nodes"
                )
                yield Fault(
                    f"{given} for {wanted}",
                    place,
                    f"write one for {' and one for '.join(map(str, ends))}",
                )
                return
            yield from _unlike(addresses, place)
    yield from _taken_twice(cabling, fabric)


def _unlike(addresses: Sequence[IPv4Interface], place: KeyPath) -> Faults:
    """The fault of two ends of a half in different subnets."""
    first, *others = addresses
    for index, other in enumerate(others, 1):
        if other.network != first.network:
            yield Fault(
                f"{other} and {first} are not in one subnet",
                (*place, index),
                "both ends of a half are in one subnet, and each half has its own",
                related=(Related("the other end", (*place, 0)),),
            )


def _taken_twice(cabling: Cabling, fabric: Fabric) -> Faults:
    """The faults of addresses that two interfaces would share."""
    reported: set[int] = set()
    for members in fabric.members.values():
        first: dict[str, Peer] = {}
        for peer in members:
            owner = first.setdefault(peer.address, peer)
            written = [c for c in (peer.cable, owner.cable) if cabling[c - 1].addresses]
            if owner is peer or not written or written[0] in reported:
                continue
            reported.add(written[0])
            yield Fault(
                f"{owner.node} and {peer.node} both have the address {peer.address}",
                _last_place(cabling[written[0] - 1], peer),
                "give each end an address of its own",
                nodes=(owner.node, peer.node),
            )


def _last_place(cable: DeclaredCable, peer: Peer) -> KeyPath:
    """The place of an address in a cable, the last one if it occurs twice."""
    texts = [str(address.ip) for address in cable.addresses[peer.half.half]]
    index = max(index for index, text in enumerate(texts) if text == peer.address)
    return (*cable.path, "addresses", peer.half.half, index)


@rule("SG317", unless="SG208 SG209")
def needless_routes(nodes: Nodes, topology: Topology) -> Faults:
    """Routes lead across a ring of four nodes or more."""
    if topology.routes and not is_routed(topology.kind, len(nodes)):
        yield to_remove(
            "no node is further away than a neighbor",
            ("topology", "routes"),
            "remove it: routes lead across a ring of four nodes or more",
            at_key=True,
        )
