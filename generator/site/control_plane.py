"""Chooses the network for bootstrap and control traffic, and each node's address on it."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network

from generator.fabric.addressing import Fabric, FabricInterface
from generator.fabric.topologies import TOPOLOGIES
from generator.site import ControlPlane, Link
from generator.sitefile.declaration import DeclaredNode, Management, Plane, Topology

LOOPBACK = IPv4Address("127.0.0.1")


def control_planes(
    nodes: Sequence[DeclaredNode], fabric: Fabric, topology: Topology
) -> tuple[ControlPlane, ...]:
    """Each node's control plane, all on the same network; on the fabric, the head's first half."""
    plane = chosen_plane(nodes, topology)
    first = fabric.interfaces[nodes[0].name][:1]
    return tuple(_control(node, fabric.interfaces[node.name], plane, first) for node in nodes)


def links(
    nodes: Sequence[DeclaredNode], fabric: Fabric, controls: Sequence[ControlPlane]
) -> tuple[Link, ...]:
    """The first subnet that each worker shares with the head.

    A worker that is not next to the head shares none, and is reached over the control plane.
    """
    head = {i.address.network: i.address.ip for i in fabric.interfaces[nodes[0].name]}
    found = []
    for node, control in zip(nodes[1:], controls[1:], strict=True):
        own = [i.address for i in fabric.interfaces[node.name] if i.address.network in head]
        through_control = Link(controls[0].address, control.address)
        found.append(Link(head[own[0].network], own[0].ip) if own else through_control)
    return tuple(found)


def chosen_plane(nodes: Sequence[DeclaredNode], topology: Topology) -> Plane:
    """The site's choice, or else that of its kind of topology.

    If a node has no management network, only the fabric is left.
    """
    if topology.control_plane:
        return topology.control_plane
    has_management = all(node.management for node in nodes)
    return TOPOLOGIES[topology.kind].control_plane if has_management else "fabric"


def on_management(management: Management) -> ControlPlane:
    """The control plane of a node on its management network."""
    address = management.address
    return ControlPlane("management", management.interface, address.ip, address.network)


def _control(
    node: DeclaredNode,
    interfaces: Sequence[FabricInterface],
    plane: Plane,
    first: Sequence[FabricInterface],
) -> ControlPlane:
    if plane == "management" and node.management:
        return on_management(node.management)
    if not interfaces:
        return ControlPlane("local", "lo", LOOPBACK, IPv4Network("127.0.0.0/8"))
    network = first[0].address.network
    own = next((i for i in interfaces if i.address.network == network), interfaces[0])
    return ControlPlane("fabric", own.name, own.address.ip, own.address.network)
