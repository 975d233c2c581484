"""Interfaces of the fabric: links, addresses and MTU."""

import re
from collections.abc import Iterator, Sequence

from generator.diagnostics import listed
from generator.drift.seen import Seen
from generator.fabric.addressing import FabricInterface
from generator.reports.remarks import Remark


def interfaces(seen: Seen) -> Iterator[Remark]:
    """How links and addresses differ from the bundle."""
    path = "commands/ip-addr.json"
    if seen.node.interfaces and not seen.parsed(path):
        yield seen.lacks("addresses and links")
        return
    known = {interface.name: interface for interface in seen.found.interfaces}
    for wanted in seen.node.interfaces:
        there = known.get(wanted.name)
        if there is None:
            advice = "see that the cable is in: without one the system may not show the port at all"
            yield seen.remark("SG861", f"there is no {wanted.name}", advice, path)
            continue
        if there.has_link is False:
            advice = f"look at cable {wanted.cable} at both ends"
            yield seen.remark("SG861", f"{wanted.name} has no link", advice, path)
        elif there.has_link is None:
            yield seen.lacks(f"whether {wanted.name} has a link")
        yield from _port(seen, wanted)
        yield from _addresses(seen, wanted, [word.text for word in there.addresses], path)
        if there.mtu and int(there.mtu.text) != wanted.mtu:
            message = f"{wanted.name} has an MTU of {there.mtu.text}, and the bundle {wanted.mtu}"
            yield seen.remark("SG862", message, _NETPLAN, path)


_NETPLAN = "see /etc/netplan for a file that sets it too; run netplan apply, or install the bundle"


def _port(seen: Seen, wanted: FabricInterface) -> Iterator[Remark]:
    """Its speed, and the state of its RDMA device."""
    least = seen.site.bandwidth.half_gbit_s * 1000
    for path, pattern, what in (
        (f"commands/ethtool-{wanted.name}.txt", r"(?m)^Speed: (\d+)Mb/s$", "speed"),
        ("commands/rdma-link.txt", rf"state (\S+) .*netdev {wanted.name}\b", "RDMA device"),
    ):
        found = re.search(pattern, seen.text(path))
        if found is None:
            yield seen.lacks(f"the {what} of {wanted.name}")
        elif found[1] != "ACTIVE" and not (found[1].isdigit() and int(found[1]) >= least):
            message = f"the {what} of {wanted.name} is {found[1]}"
            advice = f"look at cable {wanted.cable} at both ends"
            yield seen.remark("SG861", message, advice, path)


def _addresses(
    seen: Seen, wanted: FabricInterface, there: Sequence[str], path: str
) -> Iterator[Remark]:
    own = str(wanted.address)
    if own not in there:
        has = listed(there, "and") or "none"
        message = f"{wanted.name} has no address {own}: it has {has}"
        yield seen.remark("SG862", message, _NETPLAN, path)
        return
    for other in there:
        if other != own:
            message = f"{wanted.name} has another address, {other}"
            yield seen.remark("SG862", message, _NETPLAN, path)
