"""The network that a bundle's files configure, and what a node needs to reach an address."""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from generator.failures.files import FileTexts, netplan, value, values
from generator.records import record

# What can fail, by kind and name: ("half", "1", "0") of cable 1, ("node", "spark1"),
# ("management", "spark1") for its link, ("program", "spark1", UNIT), ("models", "spark1").
Element = tuple[str, ...]
Needs = frozenset[Element]

NOTHING: Needs = frozenset()


@record
class LinkEnd:
    """An end of a half of a cable, its `element`; `subnet` is the prefix and as many bits."""

    node: str
    hca: str
    element: Element
    address: str
    subnet: tuple[int, int]

    @property
    def half(self) -> str:
        """0 or 1."""
        return self.element[2]

    @property
    def cable(self) -> str:
        """The number of the cable."""
        return self.element[1]


@record
class Network:
    """Each node's ends, management address, and next hops by destination.

    `forwarding` is what each node that forwards needs for that.
    """

    ends: Mapping[str, tuple[LinkEnd, ...]]
    management: Mapping[str, str]
    routes: Mapping[str, Mapping[str, str]]
    forwarding: Mapping[str, Needs]

    def way(self, node: str, address: str) -> Needs | None:
        """What must work for a node to reach an address; None if nothing leads there."""
        if address.startswith("127.") or self.owner(address) == node:
            return NOTHING
        if owner := self.nodes_managed.get(address):
            return frozenset({("management", node), ("management", owner), ("node", owner)})
        far = self.by_address.get(address)
        near = [end for end in self.ends.get(node, ()) if far and self._meet(end, far)]
        if far and near:
            return frozenset({near[0].element, far.element, ("node", far.node)})
        via = self.routes.get(node, {}).get(address)
        relay = self.owner(via) if via else None
        if not via or not relay or relay not in self.forwarding:
            return None
        first, rest = self.way(node, via), self.way(relay, address)
        if first is None or rest is None:
            return None
        return first | rest | self.forwarding[relay]

    def owner(self, address: str) -> str | None:
        """The node that has an address."""
        end = self.by_address.get(address)
        return end.node if end else self.nodes_managed.get(address)

    @cached_property
    def by_address(self) -> Mapping[str, LinkEnd]:
        """The ends by their addresses."""
        return {end.address: end for ends in self.ends.values() for end in ends}

    @cached_property
    def nodes_managed(self) -> Mapping[str, str]:
        """The nodes by their management addresses."""
        return {address: node for node, address in self.management.items()}

    @cached_property
    def _ends_of(self) -> Mapping[Element, int]:
        return Counter(end.element for end in self.by_address.values())

    def _meet(self, one: LinkEnd, other: LinkEnd) -> bool:
        """Whether two ends share a subnet, and a cable or the switch: both have an end there."""
        ends, is_same = self._ends_of, one.element == other.element
        is_joined = is_same or ends[one.element] == ends[other.element] == 1
        return one.subnet == other.subnet and is_joined


def network(nodes: tuple[str, ...], files: FileTexts) -> Network:
    """Read the network of these nodes from the files of their bundle."""
    ends, management, ways = {}, {}, {}
    for node in nodes:
        known = files[f"{node}/etc/sparkgen/node.env"]
        configured = tuple(netplan(files.get(f"{node}/etc/netplan/40-cx7.yaml", "")))
        addresses = {interface: address for interface, address, _, _ in configured if address}
        halves = map(str.split, values(known, "HALF"))
        ends[node] = tuple(_end(node, half, addresses) for half in halves if half[1] in addresses)
        ways[node] = {to: via for _, _, to, via in configured if to}
        if address := value(known, "MANAGEMENT"):
            management[node] = address
    forwarding = {
        name: frozenset([("program", name, _ROUTES)] if f"{name}/{_UNIT}" in files else [])
        for name in nodes
        if ".forwarding = 1" in files.get(f"{name}/{_SYSCTL}", "")
    }
    return Network(ends, management, ways, forwarding)


_SYSCTL, _ROUTES = "etc/sysctl.d/90-sparkgen.conf", "sparkgen-routes"
_UNIT = f"etc/systemd/system/{_ROUTES}.service"


def _end(node: str, half: list[str], addresses: Mapping[str, str]) -> LinkEnd:
    """A half with the address that netplan gives its interface, and the cable that facts name."""
    port_and_half, interface, hca, _, _, cable = half
    address, _, prefix = addresses[interface].partition("/")
    bits = int.from_bytes(bytes(map(int, address.split("."))), "big") >> (32 - int(prefix))
    return LinkEnd(node, hca, ("half", cable, port_and_half[-1]), address, (int(prefix), bits))
