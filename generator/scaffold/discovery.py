"""Discovers a node's interfaces from what programs print about its network."""

import re
from collections.abc import Iterable
from ipaddress import IPv4Interface, IPv4Network

from generator.hardware import FABRIC_HALVES, HALVES, RJ45, Half
from generator.records import record
from generator.scaffold.outputs import Printed, interfaces

# Interfaces of containers and overlays, which are not for logins.
_VIRTUAL = re.compile(r"(lo|docker|br-|veth|virbr|cni|flannel|tailscale|tun|tap|wg|zt|ib|bond)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}")


class DiscoveryError(Exception):
    """Text that is no program's output, or another machine's; says so in one line."""


@record
class Discovery:
    """What is known of a node: its management network, and the ports that have a link.

    None means that the text doesn't say. `networks` are all networks that it is in, and `remarks`
    what is odd about its ports.
    """

    interface: str | None = None
    address: IPv4Interface | None = None
    linked: frozenset[int] | None = None
    networks: tuple[IPv4Network, ...] = ()
    remarks: tuple[str, ...] = ()

    def __or__(self, other: "Discovery") -> "Discovery":
        """Both combined; the second one takes precedence."""
        return Discovery(
            other.interface or self.interface,
            other.address or self.address,
            self.linked if other.linked is None else other.linked,
            (*self.networks, *other.networks),
            tuple(dict.fromkeys((*self.remarks, *other.remarks))),
        )


def discover(text: str) -> Discovery:
    """Reads the output of any of the programs, or of several in any order."""
    found = interfaces(text)
    if not found:
        raise DiscoveryError("no output of ip, ibdev2netdev, rdma link, ibv_devinfo or show_gids")
    fabric = {name: one for name, one in found.items() if name in FABRIC_HALVES}
    if not fabric:
        raise DiscoveryError("no QSFP interface of a DGX Spark in it, such as enp1s0f0np0")
    reached = [
        (name, IPv4Interface(address))
        for name, one in found.items()
        if name not in FABRIC_HALVES and not _VIRTUAL.match(name) and _NAME.fullmatch(name)
        for address, _ in one.addresses
    ]
    # The RJ45 before any other cable, and a cable before Wi-Fi.
    reached.sort(key=lambda known: (known[0] != RJ45, known[0].startswith("wl"), known[0]))
    name, address = reached[0] if reached else (None, None)
    networks = [IPv4Interface(own).network for one in found.values() for own, _ in one.addresses]
    told = {one.has_link for one in fabric.values()} != {None}
    linked = frozenset(FABRIC_HALVES[name].port for name, one in fabric.items() if one.has_link)
    return Discovery(
        name, address, linked if told else None, tuple(networks), tuple(_remarks(fabric))
    )


def _remarks(fabric: dict[str, Printed]) -> Iterable[str]:
    for name, one in fabric.items():
        # NetworkManager gives ports link-local addresses, which nobody asked for.
        for address in (a for a, _ in (*one.addresses, *one.bare) if not a.startswith("169.254.")):
            yield f"{name} has {address} already, which 'sparkgen import' keeps"
        half = FABRIC_HALVES[name]
        others = (fabric.get(Half(half.port, other).interface) for other in HALVES)
        if one.has_link is False and any(other and other.has_link for other in others):
            yield f"{name} has no link, and the other half of its port has one"
