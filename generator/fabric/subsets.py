"""The part of the fabric that belongs to a group of nodes: its cables, and the shape they form."""

from collections.abc import Collection, Sequence

from generator.fabric.addressing import Cable, Fabric, Port
from generator.fabric.topologies import SINGLE, TOPOLOGIES
from generator.records import replace
from generator.sitefile.declaration import Topology


def group_kind(topology: Topology, fabric: Fabric, names: Sequence[str]) -> str | None:
    """The kind of topology that the nodes form on their own; None if cables don't connect them."""
    if len(names) == 1:
        return SINGLE
    joined = [(c.a.node, c.b.node) for c in _cables(fabric, names) if isinstance(c.b, Port)]
    return TOPOLOGIES[topology.kind].group_kind(names, joined, fabric.cabled)


def of_nodes(fabric: Fabric, names: Collection[str]) -> Fabric:
    """The part of a fabric between these nodes; empty for a single node."""
    cables = {cable.number: cable for cable in _cables(fabric, names)}
    members = {
        subnet: tuple(peer for peer in fabric.members[subnet] if peer.node in names)
        for subnet in dict.fromkeys(subnet for c in cables.values() for subnet in c.subnets)
    }
    return Fabric(
        cables=tuple(cables.values()),
        pool_pairs=tuple(fabric.numbered[number][1] for number in cables),
        interfaces={
            name: tuple(
                replace(each, members=members[cables[each.cable].subnets[each.half.half]])
                for each in fabric.interfaces[name]
                if each.cable in cables
            )
            for name in names
        },
        members=members,
        mtu=fabric.mtu,
    )


def _cables(fabric: Fabric, names: Collection[str]) -> list[Cable]:
    """The cables between some nodes, and from them to switches, by number."""
    near = {i.cable for name in names for i in fabric.interfaces[name]} if len(names) > 1 else ()
    cables = [fabric.numbered[number][0] for number in sorted(near)]
    return [cable for cable in cables if all(port.node in names for port in cable.ports)]
