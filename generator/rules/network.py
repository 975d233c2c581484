"""Rules about addresses, networks and the control plane."""

import re
from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network

from generator.diagnostics import KeyPath, Related, Severity, replacements
from generator.fabric.addressing import FABRIC_PREFIX, Fabric, pool_subnets
from generator.fabric.topologies import TOPOLOGIES
from generator.hardware import FABRIC_HALVES, HALVES, PORT_NAMES
from generator.records import record
from generator.rules.listening import PortsOfNodes
from generator.rules.nodes import Nodes, named
from generator.rules.registry import Fault, Faults, rule
from generator.site.control_plane import chosen_plane
from generator.sitefile.declaration import DeclaredCable, DeclaredEngine, Topology

Cabling = Sequence[DeclaredCable]

_POOL: KeyPath = ("topology", "subnet_pool")
_HOME = {
    IPv4Network("192.168.0.0/24"): "the usual network of a home router",
    IPv4Network("192.168.1.0/24"): "the usual network of a home router",
}
_SPECIAL = {
    IPv4Network("172.17.0.0/16"): "Docker's default bridge",
    IPv4Network("100.64.0.0/10"): "Tailscale's range",
}


@record
class SubnetUse:
    """A subnet, the cable and half that it belongs to, and its place in the site file.

    On a switch, the halves of all cables of a port share it, so `cable` is the first of them.
    """

    subnet: IPv4Network
    cable: int
    half: int
    place: KeyPath


def _uses(fabric: Fabric, cabling: Cabling) -> list[SubnetUse]:
    """Each half in the fabric once, by cable; the place is the pool unless a cable states it."""
    uses: dict[tuple[int, int], SubnetUse] = {}
    for cable, pair, declared in zip(fabric.cables, fabric.pool_pairs, cabling, strict=True):
        for half, subnet in enumerate(cable.subnets):
            given = bool(declared.subnets)
            known = uses.get((pair, half))
            if known is None or (given and known.place == _POOL):
                place = (*declared.subnets_path, half) if given else _POOL
                number = known.cable if known else cable.number
                uses[pair, half] = SubnetUse(subnet, number, half, place)
    return list(uses.values())


@rule("SG305", unless="SG203")
def subnet_count(cabling: Cabling, topology: Topology, nodes: Nodes) -> Faults:
    """A cable with explicit subnets has one for each half."""
    for cable in (cable for cable in cabling if cable.subnets):
        wanted = len(topology.halves_at(cable, (n for n in nodes if n.name in cable.ends)))
        if len(cable.subnets) != wanted:
            given = "1 subnet" if len(cable.subnets) == 1 else f"{len(cable.subnets)} subnets"
            halves = "1 half" if wanted == 1 else f"{wanted} halves"
            yield Fault(
                f"{given} for {halves} of a port",
                cable.subnets_path,
                f"write {'one for each half' if wanted > 1 else 'one'}, "
                f"or leave '{cable.subnets_path[-1]}' out",
            )


@rule("SG311", unless="SG305 SG316")
def switch_subnets_differ(fabric: Fabric, cabling: Cabling) -> Faults:
    """On a switch, a port number has the same two subnets on every node."""
    first: dict[int, DeclaredCable] = {}
    reported: set[int] = set()
    for cable, pair, declared in zip(fabric.cables, fabric.pool_pairs, cabling, strict=True):
        if not declared.subnets:
            continue
        owner = first.setdefault(pair, declared)
        if owner.subnets != declared.subnets and pair not in reported:
            reported.add(pair)
            yield Fault(
                f"port p{cable.a.port} has other subnets here than on another node",
                declared.subnets_path,
                "give them once, or the same ones",
                related=(Related("the other ones", owner.subnets_path),),
            )


@rule("SG303", unless="SG305")
def pool_too_small(fabric: Fabric, cabling: Cabling, topology: Topology) -> Faults:
    """The pool is large enough for all cables."""
    pool = topology.subnet_pool
    from_pool = [
        pair
        for pair, declared in zip(fabric.pool_pairs, cabling, strict=True)
        if not declared.subnets
    ]
    if not from_pool or all(use.place != _POOL for use in _uses(fabric, cabling)):
        return
    needed = len(HALVES) * max(from_pool) + len(topology.halves)
    held = pool_subnets(pool) if pool.prefixlen <= FABRIC_PREFIX else 0
    if held < needed:
        wanted = FABRIC_PREFIX - (needed - 1).bit_length()
        larger = pool.supernet(new_prefix=min(wanted, pool.prefixlen))
        yield Fault(
            f"the pool {pool} is too small: it holds {held or 'no'} /24 subnet"
            f"{'' if held == 1 else 's'}, and the cables need {needed}",
            _POOL,
            f"write {larger} or larger",
            proposals=replacements(_POOL, [str(larger)]),
        )


@rule("SG301", unless="SG303 SG305 SG311 SG316")
def fabric_subnets_overlap(fabric: Fabric, cabling: Cabling) -> Faults:
    """No two halves of a node, or of different cables, share a subnet."""
    seen: list[SubnetUse] = []
    reported: set[int] = set()
    for use in _uses(fabric, cabling):
        clash = next((other for other in seen if other.subnet.overlaps(use.subnet)), None)
        seen.append(use)
        # A copied line is a single mistake, even though both of its subnets clash.
        if clash is None or use.cable in reported:
            continue
        reported.add(use.cable)
        at, other = (clash, use) if use.place == _POOL else (use, clash)
        same = "is also" if at.subnet == other.subnet else f"overlaps {other.subnet},"
        yield Fault(
            f"{at.subnet} {same} the subnet of half {other.half} of cable {other.cable}",
            at.place,
            "each half of each cable needs a subnet of its own",
            related=(Related("the other one", other.place),),
        )


@rule("SG302", unless="SG303 SG305 SG311 SG316")
def fabric_overlaps_management(fabric: Fabric, cabling: Cabling, nodes: Nodes) -> Faults:
    """Fabric and management networks do not overlap."""
    managed = {n.management.address.network: n for n in reversed(nodes) if n.management}
    uses = _uses(fabric, cabling)
    for network, node in managed.items():
        inside = [use for use in uses if use.subnet.overlaps(network)]
        if not inside:
            continue
        more = f" and {len(inside) - 1} more" if len(inside) > 1 else ""
        yield Fault(
            f"the fabric's {inside[0].subnet}{more} overlap{'' if more else 's'} "
            f"the management network {network}",
            inside[0].place,
            "choose another range, or a longer prefix for management",
            related=(Related(f"{node.name}'s address", (*node.path, "management", "address")),),
        )


@rule("SG304", unless="SG303 SG305 SG311 SG316")
def host_out_of_subnet(fabric: Fabric, cabling: Cabling, nodes: Nodes) -> Faults:
    """A node's host number exists in every subnet that the node is on."""
    by_name = {node.name: node for node in nodes}
    places = {use.subnet: use.place for use in _uses(fabric, cabling)}
    reported: set[int | KeyPath] = set()
    for cable in fabric.cables:
        if cabling[cable.number - 1].addresses:
            continue
        for subnet in cable.subnets:
            last = subnet.num_addresses - 2
            high = max((by_name[port.node] for port in cable.ports), key=lambda node: node.host)
            if high.host <= last or cable.number in reported or places[subnet] in reported:
                continue
            reported |= {cable.number, places[subnet]}
            yield Fault(
                f"{subnet} is too small for {high.name}, host {high.host}: it ends at host {last}",
                places[subnet],
                f"use a larger subnet, or give the node a 'host' up to {last}",
                related=(Related(high.name, (*high.path, "host")),),
            )


@rule("SG306", Severity.WARNING, unless="SG302 SG303 SG305 SG316")
def common_ranges(fabric: Fabric, cabling: Cabling, nodes: Nodes) -> Faults:
    """The fabric avoids ranges that something else on the node is likely to use."""
    reported: set[KeyPath] = set()
    is_managed = all(node.management and node.management.address for node in nodes)
    special = _SPECIAL if is_managed else _HOME | _SPECIAL
    for use in _uses(fabric, cabling):
        owner = next((who for what, who in special.items() if use.subnet.overlaps(what)), "")
        if owner and use.place not in reported:
            reported.add(use.place)
            yield Fault(
                f"the fabric's {use.subnet} is in {owner}",
                use.place,
                "choose another range, such as 10.100.0.0/16",
            )


@rule("SG323", Severity.WARNING, unless="SG302 SG303 SG305")
def public_addresses(fabric: Fabric, cabling: Cabling) -> Faults:
    """The fabric's addresses are private."""
    reported: set[KeyPath] = set()
    for use in _uses(fabric, cabling):
        kind = "public addresses" if use.subnet.is_global else ""
        if not any(use.subnet.overlaps(each) for each in _FOR_INTERFACES):
            kind = kind or "addresses with a purpose of their own"
        if use.subnet.is_link_local:
            kind = "link-local addresses"
        if kind and use.place not in reported:
            reported.add(use.place)
            yield Fault(
                f"the fabric's {use.subnet} has {kind}",
                use.place,
                "write a range of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16",
            )


# Private addresses, and those that a provider shares among its customers, as Tailscale does.
_FOR_INTERFACES = tuple(
    map(IPv4Network, ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16"))
)


@rule("SG308", unless="SG304 SG305 SG316")
def ring_prefixes_differ(fabric: Fabric, cabling: Cabling, topology: Topology) -> Faults:
    """All subnets of a ring have the same prefix length."""
    if TOPOLOGIES[topology.kind].reaches_all:
        return
    uses = _uses(fabric, cabling)
    lengths = Counter(use.subnet.prefixlen for use in uses)
    usual = max(lengths, key=lengths.__getitem__, default=0)
    reported: set[int] = set()
    for use in uses:
        if use.subnet.prefixlen != usual and use.cable not in reported:
            reported.add(use.cable)
            yield Fault(
                f"{use.subnet} is a /{use.subnet.prefixlen}, "
                f"and the {topology.kind}'s other subnets /{usual}",
                use.place,
                f"use /{usual} on all cables: NCCL compares addresses by one prefix length",
            )


@rule("SG307", unless="SG201 SG208", of_serving=True)
def control_plane_without_network(nodes: Nodes, topology: Topology) -> Faults:
    """Control traffic uses a network that every node is on."""
    bare = [node for node in nodes if not node.management]
    reaches_all = TOPOLOGIES[topology.kind].reaches_all
    is_needed = not reaches_all or (len(nodes) > 1 and topology.control_plane == "management")
    if topology.control_plane == "fabric" and not reaches_all:
        peers = "both peers" if len(nodes) == 3 else "all peers"
        yield Fault(
            f"no fabric interface of a {topology.kind} reaches {peers}",
            ("topology", "control_plane"),
            "write 'control_plane: management'",
            proposals=replacements(("topology", "control_plane"), ["management"]),
        )
    elif bare and is_needed:
        have = "has" if len(bare) == 1 else "have"
        yield Fault(
            f"{named([node.name for node in bare])} {have} no management network, "
            "which control traffic takes",
            (*bare[0].path, "name"),
            "add 'management: {interface: enP7s7, address: ADDRESS/PREFIX}'",
            nodes=tuple(node.name for node in bare),
        )


def managed_control(nodes: Nodes, topology: Topology) -> bool:
    """Whether control traffic between nodes takes the management network."""
    return len(nodes) > 1 and chosen_plane(nodes, topology) == "management"


@rule("SG309", unless="SG201 SG202 SG208 SG307", of_serving=True)
def management_networks_differ(nodes: Nodes, topology: Topology) -> Faults:
    """If control traffic uses management, all nodes are in one network."""
    if not managed_control(nodes, topology):
        return
    managed = [(node, node.management.address) for node in nodes if node.management]
    networks = Counter(address.network for _, address in managed)
    usual = networks.most_common(1)[0][0]
    first = next(node for node, address in managed if address.network == usual)
    for node, address in managed:
        if address.network != usual:
            yield Fault(
                f"{node.name} is in {address.network}, and {first.name} in {usual}",
                (*node.path, "management", "address"),
                "give all nodes addresses of one network: control traffic takes it",
                related=(
                    Related(f"{first.name}'s address", (*first.path, "management", "address")),
                ),
            )


@rule("SG312", unless="SG201 SG203")
def management_on_fabric(nodes: Nodes, topology: Topology) -> Faults:
    """Management is not on a QSFP port of the fabric."""
    ports = {name: PORT_NAMES[half.port] for name, half in FABRIC_HALVES.items()}
    uplinks = {str(end) for end in topology.uplinks}
    wrong = {
        node.management.interface: node
        for node in reversed(nodes)
        if node.management
        and node.management.interface in ports
        and f"{node.name}:{ports[node.management.interface]}" not in uplinks
    }
    for interface, node in wrong.items():
        yield Fault(
            f"{interface} is an interface of a QSFP port, which is for the fabric",
            (*node.path, "management", "interface"),
            "enP7s7 is the RJ45 port, wlP9s9 the Wi-Fi; a QSFP port that leads elsewhere is named "
            f"by 'uplinks: [\"{node.name}:{ports[interface]}\"]' in topology",
        )


@rule("SG310", Severity.WARNING, unless="SG201 SG208 SG307", of_serving=True)
def wifi_control_plane(nodes: Nodes, topology: Topology) -> Faults:
    """Control traffic stays off Wi-Fi."""
    if not managed_control(nodes, topology):
        return
    by_air = [n for n in nodes if n.management and n.management.interface.startswith("wl")]
    if by_air:
        yield Fault(
            f"control traffic of {named([node.name for node in by_air])} goes over Wi-Fi",
            (*by_air[0].path, "management", "interface"),
            "use the RJ45 port, enP7s7",
            nodes=tuple(node.name for node in by_air),
        )


@rule("SG313", unless="SG201 SG202")
def gateway_elsewhere(nodes: Nodes) -> Faults:
    """A node's gateway is another machine on the management network."""
    reported: set[str] = set()
    owners = {str(node.management.address.ip): node for node in nodes if node.management}
    for node in nodes:
        management = node.management
        if management is None or management.gateway is None or management.gateway in reported:
            continue
        gateway, network = IPv4Address(management.gateway), management.address.network
        owner = owners.get(management.gateway)
        place = (*node.path, "management", "gateway")
        if owner:
            reported.add(management.gateway)
            yield Fault(
                f"the gateway {gateway} is {owner.name} itself",
                place,
                "write the router's address, or remove it",
                related=(Related(owner.name, (*owner.path, "management", "address")),),
            )
        elif gateway not in network:
            reported.add(management.gateway)
            yield Fault(
                f"the gateway {gateway} is not in {node.name}'s management network {network}",
                place,
                f"write an address of {network}, or remove it: the fabric has no gateway",
            )
        elif gateway in (network.network_address, network.broadcast_address):
            reported.add(management.gateway)
            kind = "address" if gateway == network.network_address else "broadcast address"
            yield Fault(
                f"the gateway {gateway} is the {kind} of {network} itself, which no machine has",
                place,
                "write the router's address, or remove it",
            )


@rule("SG314", unless="SG602 SG608")
def port_of_the_system(engine: DeclaredEngine, nodes: Nodes, service_ports: PortsOfNodes) -> Faults:
    """No service uses a port of DGX OS."""
    places: dict[KeyPath, int] = {("engine", "ports", name): n for name, n in engine.ports.items()}
    if engine.port:
        places["engine", "port"] = engine.port
    for node in nodes:
        places |= {port.path: port.number for port in service_ports[node.name].values()}
    for place, port in places.items():
        if port in _SYSTEM:
            yield Fault(
                f"port {port} is used by {_SYSTEM[port]} on every node", place, "choose another one"
            )


_SYSTEM = {22: "SSH", 11000: "the DGX Dashboard"}


@rule("SG315", unless="SG201")
def management_inside_the_machine(nodes: Nodes) -> Faults:
    """The management network reaches other machines."""
    inside = {
        node.management.interface: node
        for node in reversed(nodes)
        if node.management and re.fullmatch(_INSIDE, node.management.interface)
    }
    for interface, node in inside.items():
        yield Fault(
            f"behind {interface} there is no other machine",
            (*node.path, "management", "interface"),
            "enP7s7 is the RJ45 port, wlP9s9 the Wi-Fi",
        )


_INSIDE = r"lo|docker\d+|docker_gwbridge|br-[0-9a-f]{12}|virbr.+|veth.+"
