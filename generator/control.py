"""Chooses the network of bootstrap and control traffic, and each node's address on it."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network

from generator.addressing import Fabric, FabricInterface
from generator.declaration import DeclaredNode, Plane, Topology
from generator.site import ControlPlane, Link

LOOPBACK = IPv4Address("127.0.0.1")


def control_planes(
    nodes: Sequence[DeclaredNode], fabric: Fabric, topology: Topology
) -> tuple[ControlPlane, ...]:
    """Each node's control plane, all on the same network: the fabric's is the head's first half."""
    plane = chosen_plane(nodes, topology)
    first = fabric.interfaces[nodes[0].name][:1]
    return tuple(_control(node, fabric.interfaces[node.name], plane, first) for node in nodes)


def links(nodes: Sequence[DeclaredNode], fabric: Fabric) -> tuple[Link, ...]:
    """Of each worker the first subnet that it shares with the head, which every one has."""
    head = {i.address.network: i.address.ip for i in fabric.interfaces[nodes[0].name]}
    shared = (
        next(i.address for i in fabric.interfaces[node.name] if i.address.network in head)
        for node in nodes[1:]
    )
    return tuple(Link(head[address.network], address.ip) for address in shared)


def chosen_plane(nodes: Sequence[DeclaredNode], topology: Topology) -> Plane:
    """Management on a ring, where no fabric interface reaches both peers; else the fabric.

    Where a node has no management network, only the fabric is left.
    """
    if topology.control_plane:
        return topology.control_plane
    has_management = all(node.management for node in nodes)
    return "management" if topology.kind in ("ring", "single") and has_management else "fabric"


def _control(
    node: DeclaredNode,
    interfaces: Sequence[FabricInterface],
    plane: Plane,
    first: Sequence[FabricInterface],
) -> ControlPlane:
    if plane == "management" and node.management:
        management = node.management
        return ControlPlane(
            "management",
            management.interface,
            management.address.ip,
            management.address.network,
        )
    if not interfaces:
        return ControlPlane("local", "lo", LOOPBACK, IPv4Network("127.0.0.0/8"))
    network = first[0].address.network
    own = next((i for i in interfaces if i.address.network == network), interfaces[0])
    return ControlPlane("fabric", own.name, own.address.ip, own.address.network)
