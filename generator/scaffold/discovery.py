"""Discovers a node's interfaces from the output of `ibdev2netdev` and `ip -j addr`."""

import json
import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Interface
from typing import Any

from generator.hardware import FABRIC_HALVES, RJ45
from generator.records import record

# mlnx-tools, ibdev2netdev: `rocep1s0f0 port 1 ==> enp1s0f0np0 (Up)`, with -v also the port's state.
# Its last line has no newline, so that another program's output may follow on it.
LINK_STATE = re.compile(r"port \d+(?: \([^)\n]*\))? ==> (\S+) \((Up|Down)\)")
# A prompt such as `[nvidia@spark1 ~]$` is not a list.
_LIST = re.compile(r"\[(?=\s*[\[\]{\"])")
# Interfaces of containers and overlays, which are not for logins.
_VIRTUAL = re.compile(r"(lo|docker|br-|veth|virbr|cni|flannel|tailscale|tun|tap|wg|zt)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}")


class DiscoveryError(Exception):
    """Text that is neither program's output, or another machine's; says so in one line."""


@record
class Discovery:
    """What is known of a node: its management network, and the ports that have a link.

    None means that the text doesn't say.
    """

    interface: str | None = None
    address: IPv4Interface | None = None
    linked: frozenset[int] | None = None

    def __or__(self, other: "Discovery") -> "Discovery":
        """Both combined; the second one takes precedence."""
        return Discovery(
            other.interface or self.interface,
            other.address or self.address,
            self.linked if other.linked is None else other.linked,
        )


def discover(text: str) -> Discovery:
    """Reads the output of either program, or of both in any order."""
    devices = [(match[1], match[2] == "Up") for match in LINK_STATE.finditer(text)]
    lists = _LIST.search(text)
    if not devices and not lists:
        raise DiscoveryError("neither the output of ibdev2netdev nor of ip -j addr")
    found = Discovery(linked=_linked(devices)) if devices else Discovery()
    return found | _addresses(text[lists.start() :]) if lists else found


def _addresses(text: str) -> Discovery:
    try:
        parsed, _ = json.JSONDecoder().raw_decode(text)
        # With a filter, ip prints an empty object for each link that it leaves out.
        links = [link for link in parsed if link and isinstance(link, dict)]
        linked = _linked((str(link["ifname"]), _has_carrier(link)) for link in links)
        management = sorted(_management(links), key=lambda found: _preference(found[0]))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DiscoveryError("not what ip -j addr prints") from None
    interface, address = management[0] if management else (None, None)
    return Discovery(interface, address, linked)


def _has_carrier(link: dict[str, Any]) -> bool:
    return "LOWER_UP" in link.get("flags", ())


def _management(links: Iterable[dict[str, Any]]) -> Iterator[tuple[str, IPv4Interface]]:
    """Addresses at which the node may be reached, on interfaces that are not QSFP ports."""
    for link in links:
        name = link["ifname"]
        if name in FABRIC_HALVES or _VIRTUAL.match(name) or not _NAME.fullmatch(name):
            continue
        for info in link.get("addr_info", ()):
            if info.get("family") == "inet" and info.get("scope") == "global":
                yield name, IPv4Interface(f"{info['local']}/{info['prefixlen']}")


def _preference(name: str) -> tuple[bool, bool, str]:
    """Prefer the RJ45 to any other cable, and a cable to Wi-Fi."""
    return name != RJ45, name.startswith("wl"), name


def _linked(states: Iterable[tuple[str, bool]]) -> frozenset[int]:
    """Ports with a link on at least one half."""
    known = [(name, up) for name, up in states if name in FABRIC_HALVES]
    if not known:
        raise DiscoveryError("no QSFP interface of a DGX Spark in it, such as enp1s0f0np0")
    return frozenset(FABRIC_HALVES[name].port for name, up in known if up)
