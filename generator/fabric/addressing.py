"""Assigns an address to each half of every cabled port.

Faulty sites get a plan too, so that the rules can check the addresses that would result. The only
requirements are that every endpoint resolves and that no port is used twice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from ipaddress import IPv4Interface, IPv4Network

from generator.fabric.shapes import islands
from generator.fabric.topologies import DIRECT, SWITCH, TOPOLOGIES
from generator.fabric.topologies.kind import Pair
from generator.hardware import HALVES, PORTS, Half
from generator.records import record
from generator.sitefile.declaration import DeclaredCable, DeclaredNode, Topology

FABRIC_PREFIX = 24
_HOSTS_IN_SUBNET = 1 << (32 - FABRIC_PREFIX)


@record
class Peer:
    """A node reachable on an interface: its half of a port there, the address, its cable.

    A large switch has a hundred thousand peers, so the address is stored as the text to print.
    """

    node: str
    half: Half
    address: str
    cable: int


@record
class FabricInterface:
    """One addressed half of a cabled port of a node; `mtu` in bytes.

    `members` are all nodes on its subnet, including its own: the interfaces there share one list.
    """

    node: str
    half: Half
    address: IPv4Interface
    mtu: int
    cable: int
    members: tuple[Peer, ...]

    @cached_property
    def peers(self) -> tuple[Peer, ...]:
        """The other nodes on its subnet."""
        return tuple(peer for peer in self.members if peer.node != self.node)

    @property
    def name(self) -> str:
        """The Ethernet interface."""
        return self.half.interface

    @property
    def hca(self) -> str:
        """The RoCE device."""
        return self.half.hca

    @property
    def ping_size(self) -> int:
        """Payload of a ping that fills a frame: MTU less 20 bytes of IPv4 and 8 of ICMP headers."""
        return self.mtu - 28


@record
class Port:
    """A port of a node."""

    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.node}:p{self.port}"


@record
class SwitchPort:
    """A port of a switch, as the switch names it."""

    switch: str
    port: str

    def __str__(self) -> str:
        return f"{self.switch}:{self.port}"


@record
class Cable:
    """A cable with both ends resolved.

    `subnets` has one subnet per addressed half, `addresses` one address per half for each of the
    `ports`. `number` counts from 1, as on the cable's label.
    """

    number: int
    a: Port
    b: Port | SwitchPort
    subnets: tuple[IPv4Network, ...]
    addresses: tuple[tuple[IPv4Interface, ...], ...]
    kind: str | None
    length_m: float | None
    label: str | None

    @property
    def ports(self) -> tuple[Port, ...]:
        """Its ends on nodes."""
        return (self.a, self.b) if isinstance(self.b, Port) else (self.a,)


@record
class Fabric:
    """Cables by number, each node's interfaces by port and half, and the members of each subnet.

    `pool_pairs` has, for each cable, the pair of the pool's subnets that it uses; cables with the
    same pair share their subnets. `mtu` is in bytes.
    """

    cables: tuple[Cable, ...]
    pool_pairs: tuple[int, ...]
    interfaces: Mapping[str, tuple[FabricInterface, ...]]
    members: Mapping[IPv4Network, tuple[Peer, ...]]
    mtu: int

    @cached_property
    def numbered(self) -> Mapping[int, tuple[Cable, int]]:
        """Cables by number, with the pair of the pool's subnets that each uses."""
        placed = zip(self.cables, self.pool_pairs, strict=True)
        return {cable.number: (cable, pair) for cable, pair in placed}

    def subnet(self, interface: FabricInterface) -> IPv4Network:
        """The subnet of an interface, even if its address is not in it."""
        return self.numbered[interface.cable][0].subnets[interface.half.half]

    @cached_property
    def cabled(self) -> frozenset[str]:
        """The nodes with a cable."""
        return frozenset(port.node for cable in self.cables for port in cable.ports)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The two nodes of each cable between nodes."""
        return tuple((c.a.node, c.b.node) for c in self.cables if isinstance(c.b, Port))


def plan(
    nodes: Sequence[DeclaredNode], cabling: Sequence[DeclaredCable], topology: Topology
) -> Fabric:
    """The fabric of a site."""
    names = {node.name for node in nodes}
    pairs = tuple(_pool_pairs(cabling, names, topology))
    # If several cables of a pair specify subnets, those of the first one count.
    placed = [*zip(pairs, cabling, strict=True)]
    given = {pair: cable.subnets for pair, cable in reversed(placed) if cable.subnets}
    by_name = {node.name: node for node in nodes}
    subnets = {pair: given.get(pair) or _from_pool(pair, topology) for pair in set(pairs)}
    cables = tuple(_cable(cable, by_name, subnets[pair], topology) for pair, cable in placed)
    members = _members(cables)
    found: dict[str, list[FabricInterface]] = {name: [] for name in by_name}
    for cable in cables:
        mtu = topology.mtu or _usual_mtu(cable)
        for port, addresses in zip(cable.ports, cable.addresses, strict=True):
            found[port.node] += _interfaces(port, addresses, cable, members, mtu)
    return Fabric(
        cables=cables,
        pool_pairs=pairs,
        interfaces={name: tuple(sorted(own, key=lambda i: i.half)) for name, own in found.items()},
        members=members,
        mtu=topology.mtu or min(map(_usual_mtu, cables), default=TOPOLOGIES[topology.kind].mtu),
    )


def _usual_mtu(cable: Cable) -> int:
    """That of a switch, all of whose ports must agree, or the largest of two nodes."""
    return TOPOLOGIES[DIRECT if isinstance(cable.b, Port) else SWITCH].mtu


def _pool_pairs(
    cabling: Sequence[DeclaredCable], names: set[str], topology: Topology
) -> Iterator[int]:
    """The pair of the pool's subnets that each cable takes.

    A cable between nodes takes the pair of its own number. On a switch, all cables of one port
    number share a pair; if no port is cabled on all nodes, all first cables of nodes do. With other
    cables beside them, they take the pair of the first of them.
    """
    is_switched = TOPOLOGIES[topology.kind].switched
    planes = _planes(cabling, names)
    first: dict[tuple[str, int], int] = {}
    for cable in cabling:
        plane = planes.get(cable.index)
        if plane is None:
            yield cable.index
        elif is_switched:
            yield plane[1]
        else:
            yield first.setdefault(plane, cable.index)


def _planes(cabling: Sequence[DeclaredCable], names: set[str]) -> Mapping[int, tuple[str, int]]:
    """The network that each cable to a switch is part of: a node on it, and a number there."""
    switched = [cable for cable in cabling if not names.issuperset(cable.ends)]
    if not switched:
        return {}
    found: dict[int, tuple[str, int]] = {}
    for island in islands([*names], [cable.ends for cable in switched]):
        own = [cable for cable in switched if not {*cable.ends}.isdisjoint(island.names)]
        ports: dict[str, list[int]] = {}
        for cable in own:
            end = _node_end(cable, names)
            ports.setdefault(end.node, []).append(end.port)
        common = set(PORTS).intersection(*ports.values()) if ports else set()
        for cable in own:
            end = _node_end(cable, names)
            plane = end.port if common else sorted(ports[end.node]).index(end.port)
            found[cable.index] = (island.names[0], plane)
    return found


def pool_subnets(pool: IPv4Network) -> int:
    """The number of fabric subnets in a pool."""
    return 1 << max(0, FABRIC_PREFIX - pool.prefixlen)


def pool_subnet(pool: IPv4Network, index: int) -> IPv4Network:
    """The /24 with that index, even past the end of the pool."""
    base = int(pool.network_address) + index * _HOSTS_IN_SUBNET
    return IPv4Network((base % (1 << 32), FABRIC_PREFIX), strict=False)


def _from_pool(pair: int, topology: Topology) -> tuple[IPv4Network, ...]:
    """Pair i is subnets 2i and 2i+1 of the pool."""
    return tuple(pool_subnet(topology.subnet_pool, 2 * pair + half) for half in topology.halves)


def _node_end(cable: DeclaredCable, names: set[str]) -> Port:
    end = next(end for end in cable.endpoints if end.name in names)
    return Port(end.name, int(end.port[1:]))


def _cable(
    cable: DeclaredCable,
    nodes: Mapping[str, DeclaredNode],
    subnets: tuple[IPv4Network, ...],
    topology: Topology,
) -> Cable:
    """A cable with its ends in a fixed order: the order of the two endpoints has no meaning."""
    ends = [end for end in cable.endpoints if end.name in nodes]
    used = topology.halves_at(cable, (nodes[end.name] for end in ends))
    subnets = subnets[: len(used)]
    own = dict(zip(ends, zip(*cable.addresses, strict=False), strict=False))
    ends.sort(key=lambda end: (end.port, end.name))
    switches = [SwitchPort(e.name, e.port) for e in cable.endpoints if e.name not in nodes]
    ports = [Port(end.name, int(end.port[1:])) for end in ends]
    return Cable(
        number=cable.index + 1,
        a=ports[0],
        b=ports[1] if len(ports) == 2 else switches[0],
        subnets=subnets,
        addresses=tuple(
            own.get(end, ())[: len(used)]
            or tuple(_address(subnet, nodes[end.name].host) for subnet in subnets)
            for end in ends
        ),
        kind=cable.kind,
        length_m=cable.length_m,
        label=cable.label,
    )


def _members(cables: Iterable[Cable]) -> dict[IPv4Network, tuple[Peer, ...]]:
    """The members of each subnet, by cable and port."""
    members: dict[IPv4Network, list[Peer]] = {}
    for cable in cables:
        for half, subnet in zip(HALVES, cable.subnets, strict=False):
            members.setdefault(subnet, []).extend(
                Peer(port.node, Half(port.port, half), str(own[half].ip), cable.number)
                for port, own in zip(cable.ports, cable.addresses, strict=True)
                if half < len(own)
            )
    return {subnet: tuple(peers) for subnet, peers in members.items()}


def _interfaces(
    port: Port,
    addresses: Sequence[IPv4Interface],
    cable: Cable,
    members: Mapping[IPv4Network, tuple[Peer, ...]],
    mtu: int,
) -> Iterator[FabricInterface]:
    """The addressed halves of one end of a cable."""
    for half, subnet, address in zip(HALVES, cable.subnets, addresses, strict=False):
        yield FabricInterface(
            node=port.node,
            half=Half(port.port, half),
            address=address,
            mtu=mtu,
            cable=cable.number,
            members=members[subnet],
        )


def _address(subnet: IPv4Network, host: int) -> IPv4Interface:
    value = (int(subnet.network_address) + host) % (1 << 32)
    return IPv4Interface((value, subnet.prefixlen))
