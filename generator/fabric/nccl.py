"""NCCL's settings for a fabric: which of a node's ports it takes for a peer, and whom it connects.

The choice of ports is NCCL's own (2.30.7, src/transport/net_ib/connect.cc). It numbers a node's
network cards by PCI device, which is a half here; unless `NCCL_IB_MERGE_NICS` is 0, both ports of a
half are one card. Between two nodes, cards of the same number are connected, and the devices of
merged cards one by one in their order. With `NCCL_IB_SUBNET_AWARE_ROUTING` each side instead takes
a card all of whose devices share a subnet with one of the peer's, its default card first.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from ipaddress import IPv4Network
from itertools import groupby, product

from generator.fabric.addressing import Fabric
from generator.hardware import Half
from generator.records import record

# The first release with `NCCL_IB_SUBNET_AWARE_ROUTING`, and the length that it compares by default.
ROUTED_FROM = "2.30.7"
_COMPARED_BITS = 24

# A tree, or the connections that NCCL makes at startup unless cuMem manages memory, would lead to
# nodes that no cable reaches (src/init.cc, `runtimeConn`; src/graph/tuning.cc). cuMem for host
# memory requires NUMA, which a container without SYS_NICE doesn't have (NCCL, "Runtime and MPI
# issues").
NEIGHBORS_ALONE = {
    "NCCL_ALGO": "Ring",
    "NCCL_RUNTIME_CONNECT": "1",
    "NCCL_CUMEM_ENABLE": "1",
    "NCCL_CUMEM_HOST_ENABLE": "0",
}

# A RoCE device: its half, and the subnet that it is on.
Device = tuple[Half, IPv4Network]
Card = tuple[Device, ...]
# The devices of a node.
DeviceLayout = tuple[Device, ...]


@record
class Choice:
    """How NCCL chooses ports: whether it merges those of a half, and chooses by subnet."""

    is_merged: bool = True
    is_routed: bool = False

    def connects(self, sender: DeviceLayout, receiver: DeviceLayout) -> bool:
        """Whether all devices that NCCL would connect between two nodes share a subnet."""
        own, other = _Cards(sender, self.is_merged), _Cards(receiver, self.is_merged)
        pairs: Iterable[tuple[Card, Card]] = product(own.default, other.default)
        if len(own.default) == len(other.default):
            pairs = zip(own.default, other.default, strict=True)
        return all(self._is_right(own, other, *pair) for pair in pairs)

    def _is_right(self, own: "_Cards", other: "_Cards", sends: Card, receives: Card) -> bool:
        if self.is_routed:
            sends = own.towards(receives, sends)
            receives = other.towards(sends, receives)
        count = max(len(sends), len(receives))
        pairs = ((sends[i % len(sends)], receives[i % len(receives)]) for i in range(count))
        return all(network == there for (_, network), (_, there) in pairs)


class _Cards:
    """The cards of a node: those that NCCL takes unless it routes, and all that it knows."""

    def __init__(self, layout: DeviceLayout, is_merged: bool) -> None:
        # In the order of their PCI addresses.
        devices = sorted(layout, key=lambda device: (device[0].half, device[0].port))
        alone: list[Card] = [(device,) for device in devices]
        merged: list[Card] = [
            tuple(own) for _, own in groupby(devices, lambda device: device[0].half)
        ]
        self.default = merged if is_merged else alone
        self._all = [*alone, *self.default]

    def towards(self, peer: Card, default: Card) -> Card:
        """The card whose devices all share a subnet with one of the peer's, if there is one."""
        near = {network for _, network in peer}
        fitting = (card for card in (default, *self._all) if near.issuperset(n for _, n in card))
        return next(fitting, default)


_CHOICES = (Choice(), Choice(is_routed=True), Choice(is_merged=False, is_routed=True))


@record
class Connections:
    """The nodes that NCCL connects, by their RoCE devices; nodes with the same ones are alike."""

    layouts: Mapping[DeviceLayout, int]

    @property
    def _pairs(self) -> Iterator[tuple[DeviceLayout, DeviceLayout]]:
        """Every two different nodes, by their layouts."""
        for own, other in product(self.layouts, repeat=2):
            if own != other or self.layouts[own] > 1:
                yield own, other

    @cached_property
    def choice(self) -> Choice | None:
        """The plainest way to choose ports that is right between all nodes on one subnet."""
        near = [pair for pair in self._pairs if _are_joined(*pair)]
        return next((c for c in _CHOICES if all(c.connects(*pair) for pair in near)), None)

    @property
    def is_routed(self) -> bool:
        """Whether NCCL has to choose a port by the subnet of the peer."""
        return self.choice is None or self.choice.is_routed

    @property
    def have_strangers(self) -> bool:
        """Whether some nodes share no subnet, so that no RDMA connects them."""
        return not all(_are_joined(*pair) for pair in self._pairs)

    @property
    def settings(self) -> dict[str, str]:
        """What NCCL needs to be told; nothing about a plain cable or switch."""
        values: dict[str, str] = {}
        if self.is_routed:
            values |= {"NCCL_NET_PLUGIN": "none", "NCCL_IB_SUBNET_AWARE_ROUTING": "1"}
            prefix = max(network.prefixlen for layout in self.layouts for _, network in layout)
            if prefix != _COMPARED_BITS or self.have_strangers:
                values["NCCL_IB_SUBNET_PREFIX_LEN"] = str(prefix)
        if self.choice and not self.choice.is_merged:
            values["NCCL_IB_MERGE_NICS"] = "0"
        return values | (NEIGHBORS_ALONE if self.have_strangers else {})


def connections(fabric: Fabric, halves: Collection[int]) -> Connections:
    """What NCCL connects on a fabric whose RDMA uses these halves of each port."""
    nodes = (
        tuple((i.half, fabric.subnet(i)) for i in interfaces if i.half.half in halves)
        for interfaces in fabric.interfaces.values()
    )
    return Connections(Counter(filter(None, nodes)))


def _are_joined(own: DeviceLayout, other: DeviceLayout) -> bool:
    return not {network for _, network in own}.isdisjoint(network for _, network in other)
