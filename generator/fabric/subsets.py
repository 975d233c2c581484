"""The part of the fabric that belongs to a group of nodes: its cables, and the shape they form."""

from collections.abc import Collection, Sequence

from generator.fabric.addressing import Cable, Fabric, Port
from generator.fabric.shapes import Ends, islands
from generator.fabric.topologies import DIRECT, PAIRS
from generator.records import replace


def group_kind(fabric: Fabric, names: Sequence[str]) -> str | None:
    """The kind of topology that the nodes form on their own; None if cables don't connect them."""
    own = _cables(fabric, names)
    found = [*islands(names, [ends_of(cable) for cable in own])]
    if len(found) > 1:
        return None
    numbers = {cable.number for cable in own}
    others = (i.cable not in numbers for name in names for i in fabric.interfaces[name])
    # The cable of two nodes of a larger island may connect any ports.
    return PAIRS if found[0].kind == DIRECT and any(others) else found[0].kind


def ends_of(cable: Cable) -> Ends:
    """The names at the ends of a cable."""
    return cable.a.node, cable.b.node if isinstance(cable.b, Port) else cable.b.switch


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
