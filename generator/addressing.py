"""Gives every half of a cabled port its address: in go nodes, cables, topology, out a fabric.

The plan is total: it is made for faulty sites too, so that the rules can judge the addresses that
would come out. Only every endpoint must resolve and no port be used twice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network

from generator.declaration import DeclaredCable, DeclaredNode, Topology
from generator.hardware import HALVES, Half

FABRIC_PREFIX = 24
_HOSTS_IN_SUBNET = 1 << (32 - FABRIC_PREFIX)


@dataclass(frozen=True, slots=True)
class Peer:
    """A node that answers on an interface: its half of a port there, the address, its cable.

    A large switch has a hundred thousand peers, so the address is the text that is printed.
    """

    node: str
    half: Half
    address: str
    cable: int


@dataclass(frozen=True, slots=True)
class FabricInterface:
    """One addressed half of a cabled port of a node; `mtu` in bytes."""

    half: Half
    address: IPv4Interface
    mtu: int
    cable: int
    peers: tuple[Peer, ...]

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
        """Payload of a ping that fills a frame: MTU less 20 bytes of IPv4 and 8 of ICMP header."""
        return self.mtu - 28


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a node."""

    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.node}:p{self.port}"


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable with both ends resolved; the second end is text where it is a switch's port.

    `subnets` holds one subnet an addressed half. `number` counts from 1, as on the cable's label.
    """

    number: int
    a: Port
    b: Port | str
    subnets: tuple[IPv4Network, ...]
    kind: str | None
    length_m: float | None
    label: str | None

    @property
    def ports(self) -> tuple[Port, ...]:
        """Its ends on nodes."""
        return (self.a, self.b) if isinstance(self.b, Port) else (self.a,)


@dataclass(frozen=True, slots=True)
class Fabric:
    """Cables by number, each node's interfaces by port and half, and who is on each subnet."""

    cables: tuple[Cable, ...]
    interfaces: Mapping[str, tuple[FabricInterface, ...]]
    members: Mapping[IPv4Network, tuple[Peer, ...]]


def plan(
    nodes: Sequence[DeclaredNode], cabling: Sequence[DeclaredCable], topology: Topology
) -> Fabric:
    """The fabric of a site."""
    names = {node.name for node in nodes}
    shared = _switch_subnets(cabling, names, topology) if topology.kind == "switch" else {}
    cables = tuple(
        _cable(cable, names, shared.get(cable.index) or _own_subnets(cable, topology))
        for cable in cabling
    )
    hosts = {node.name: node.host for node in nodes}
    members = _members(cables, hosts)
    found: dict[str, list[FabricInterface]] = {name: [] for name in hosts}
    for cable in cables:
        for port in cable.ports:
            found[port.node] += _interfaces(port, cable, hosts, members, topology.mtu)
    return Fabric(
        cables,
        {name: tuple(sorted(own, key=lambda i: i.half)) for name, own in found.items()},
        members,
    )


def pool_subnets(pool: IPv4Network) -> int:
    """How many fabric subnets a pool holds."""
    return 1 << max(0, FABRIC_PREFIX - pool.prefixlen)


def pool_subnet(pool: IPv4Network, index: int) -> IPv4Network:
    """The /24 of that index; past the end of the pool it is the next one all the same."""
    base = int(pool.network_address) + index * _HOSTS_IN_SUBNET
    return IPv4Network((base % (1 << 32), FABRIC_PREFIX), strict=False)


def _own_subnets(cable: DeclaredCable, topology: Topology) -> tuple[IPv4Network, ...]:
    """Cable i of a direct link or ring takes subnets 2i and 2i+1 of the pool."""
    return cable.subnets or _from_pool(cable.index, topology)


def _from_pool(pair: int, topology: Topology) -> tuple[IPv4Network, ...]:
    return tuple(pool_subnet(topology.subnet_pool, 2 * pair + half) for half in topology.halves)


def _switch_subnets(
    cabling: Sequence[DeclaredCable], names: set[str], topology: Topology
) -> dict[int, tuple[IPv4Network, ...]]:
    """On a switch port p of every node takes subnets 2p and 2p+1, or those that a cable gives."""
    ports = {cable.index: _node_end(cable, names).port for cable in cabling}
    given = {ports[c.index]: c.subnets for c in reversed(cabling) if c.subnets}
    return {index: given.get(port) or _from_pool(port, topology) for index, port in ports.items()}


def _node_end(cable: DeclaredCable, names: set[str]) -> Port:
    end = next(end for end in cable.endpoints if end.name in names)
    return Port(end.name, int(end.port[1:]))


def _cable(cable: DeclaredCable, names: set[str], subnets: tuple[IPv4Network, ...]) -> Cable:
    """Both ends in an order of their own: the order of the two endpoints means nothing."""
    ports = sorted(
        (Port(end.name, int(end.port[1:])) for end in cable.endpoints if end.name in names),
        key=lambda port: (port.port, port.node),
    )
    switch = next((str(end) for end in cable.endpoints if end.name not in names), "")
    return Cable(
        number=cable.index + 1,
        a=ports[0],
        b=ports[1] if len(ports) == 2 else switch,
        subnets=subnets,
        kind=cable.kind,
        length_m=cable.length_m,
        label=cable.label,
    )


def _members(
    cables: Iterable[Cable], hosts: Mapping[str, int]
) -> dict[IPv4Network, tuple[Peer, ...]]:
    """Who is on each subnet, by cable and port."""
    members: dict[IPv4Network, list[Peer]] = {}
    for cable in cables:
        for half, subnet in zip(HALVES, cable.subnets, strict=False):
            members.setdefault(subnet, []).extend(
                Peer(
                    port.node,
                    Half(port.port, half),
                    str(_address(subnet, hosts[port.node]).ip),
                    cable.number,
                )
                for port in cable.ports
            )
    return {subnet: tuple(peers) for subnet, peers in members.items()}


def _interfaces(
    port: Port,
    cable: Cable,
    hosts: Mapping[str, int],
    members: Mapping[IPv4Network, Sequence[Peer]],
    mtu: int,
) -> Iterator[FabricInterface]:
    """The addressed halves of one end of a cable."""
    for half, subnet in zip(HALVES, cable.subnets, strict=False):
        yield FabricInterface(
            half=Half(port.port, half),
            address=_address(subnet, hosts[port.node]),
            mtu=mtu,
            cable=cable.number,
            peers=tuple(peer for peer in members[subnet] if peer.node != port.node),
        )


def _address(subnet: IPv4Network, host: int) -> IPv4Interface:
    value = (int(subnet.network_address) + host) % (1 << 32)
    return IPv4Interface((value, subnet.prefixlen))
