"""What a group of a site's nodes has of the fabric: its own cables, and what shape they make."""

from collections.abc import Collection, Sequence
from itertools import chain

from generator.fabric.addressing import Cable, Fabric
from generator.fabric.topologies import SINGLE, TOPOLOGIES
from generator.records import replace
from generator.sitefile.declaration import Topology


def group_kind(topology: Topology, fabric: Fabric, names: Sequence[str]) -> str | None:
    """The kind of topology that the nodes have among themselves; None if cables don't join them."""
    if len(names) == 1:
        return SINGLE
    joined = of_nodes(fabric, names).pairs
    return TOPOLOGIES[topology.kind].group_kind(names, joined, fabric.cabled)


def of_nodes(fabric: Fabric, names: Collection[str]) -> Fabric:
    """The part of a fabric that lies between these nodes; one alone has none."""
    near = {i.cable for name in names for i in fabric.interfaces[name]} if len(names) > 1 else ()
    placed = [fabric.numbered[number] for number in sorted(near)]
    kept = {cable.number: (cable, pair) for cable, pair in placed if _is_between(cable, names)}
    subnets = {number: cable.subnets for number, (cable, _) in kept.items()}
    members = {
        subnet: tuple(peer for peer in fabric.members[subnet] if peer.node in names)
        for subnet in dict.fromkeys(chain.from_iterable(subnets.values()))
    }
    return Fabric(
        cables=tuple(cable for cable, _ in kept.values()),
        pool_pairs=tuple(pair for _, pair in kept.values()),
        interfaces={
            name: tuple(
                replace(interface, members=members[subnets[interface.cable][interface.half.half]])
                for interface in fabric.interfaces[name]
                if interface.cable in kept
            )
            for name in names
        },
        members=members,
        mtu=fabric.mtu,
    )


def _is_between(cable: Cable, names: Collection[str]) -> bool:
    return all(port.node in names for port in cable.ports)
