"""What a group of a site's nodes has of the fabric: its own cables, and what shape they make."""

from collections.abc import Collection, Iterable, Sequence

from generator.fabric.addressing import Cable, Fabric, FabricInterface
from generator.fabric.topologies import SINGLE, TOPOLOGIES
from generator.records import replace
from generator.sitefile.declaration import Topology


def group_kind(topology: Topology, fabric: Fabric, names: Sequence[str]) -> str | None:
    """The kind of topology that the nodes have among themselves; None if cables don't join them."""
    if len(names) == 1:
        return SINGLE
    cabled = {port.node for cable in fabric.cables for port in cable.ports}
    joined = of_nodes(fabric, names).pairs
    return TOPOLOGIES[topology.kind].group_kind(names, joined, cabled)


def of_nodes(fabric: Fabric, names: Collection[str]) -> Fabric:
    """The part of a fabric that lies between these nodes; one alone has none."""
    near = {i.cable for name in names for i in fabric.interfaces[name]} if len(names) > 1 else ()
    kept = [cable for cable in fabric.cables if cable.number in near and _is_between(cable, names)]
    numbers = {cable.number for cable in kept}
    subnets = {subnet for cable in kept for subnet in cable.subnets}
    return Fabric(
        cables=tuple(kept),
        pool_pairs=tuple(
            pair
            for cable, pair in zip(fabric.cables, fabric.pool_pairs, strict=True)
            if cable.number in numbers
        ),
        interfaces={
            name: tuple(_between(fabric.interfaces[name], numbers, names)) for name in names
        },
        members={
            subnet: tuple(peer for peer in peers if peer.node in names)
            for subnet, peers in fabric.members.items()
            if subnet in subnets
        },
        mtu=fabric.mtu,
    )


def _is_between(cable: Cable, names: Collection[str]) -> bool:
    return all(port.node in names for port in cable.ports)


def _between(
    interfaces: Iterable[FabricInterface], numbers: Collection[int], names: Collection[str]
) -> Iterable[FabricInterface]:
    """Those on these cables, with those of their peers that are among the nodes."""
    for interface in interfaces:
        if interface.cable in numbers:
            peers = tuple(peer for peer in interface.peers if peer.node in names)
            yield replace(interface, peers=peers)
