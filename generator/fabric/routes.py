"""Routes through the nodes of a ring, for TCP between nodes that are not neighbors.

RDMA can't be routed: a queue pair needs both ends on one cable.
"""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address

from generator.fabric.addressing import Fabric
from generator.fabric.topologies import TOPOLOGIES
from generator.hardware import Half
from generator.records import record

# In a ring of three, all nodes are neighbors.
_FEWEST = 4


@record
class Route:
    """A route to a half of another node that is not on a cable of this one's.

    It leaves through an interface, `via` a neighbor's address.
    """

    to: IPv4Address
    node: str
    half: Half
    interface: str
    via: str


def is_routed(kind: str, nodes: int) -> bool:
    """Whether this many nodes of a topology include some that are not neighbors."""
    return not TOPOLOGIES[kind].reaches_all and nodes >= _FEWEST


def routes(fabric: Fabric, order: Sequence[str]) -> Mapping[str, tuple[Route, ...]]:
    """The routes of each node of a ring, with the nodes in the order of the cables.

    Each address is reached by the shorter way around; if both are equally long, by the side that
    its cable is on. Replies then take the same way back, as strict reverse-path filtering requires.
    """
    return {name: tuple(_routes(fabric, order, name)) for name in order}


def _routes(fabric: Fabric, order: Sequence[str], name: str) -> Iterator[Route]:
    count, place = len(order), order.index(name)
    ahead = _halves_to(fabric, name, order[(place + 1) % count])
    behind = _halves_to(fabric, name, order[place - 1])
    for distance in range(1, count):
        index = (place + distance) % count
        for target in fabric.interfaces[order[index]]:
            peer = order.index(target.peers[0].node)
            if peer == place:
                continue
            is_opposite = 2 * distance == count
            goes_ahead = (index - peer) % count == 1 if is_opposite else 2 * distance < count
            interface, via = (ahead if goes_ahead else behind)[target.half.half]
            yield Route(target.address.ip, order[index], target.half, interface, via)


def _halves_to(fabric: Fabric, name: str, neighbor: str) -> dict[int, tuple[str, str]]:
    """For each half, the interface that faces a neighbor, and the neighbor's address there."""
    return {
        interface.half.half: (interface.name, peer.address)
        for interface in fabric.interfaces[name]
        for peer in interface.peers
        if peer.node == neighbor
    }
