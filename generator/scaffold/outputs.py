"""Interfaces in what programs print about a node's network.

The programs are `ip` (address or link, also with -j, -o and -br), `ibdev2netdev`, `rdma link`,
`ibv_devinfo` and `show_gids`; one text may have the output of several.
"""

import json
import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Interface
from itertools import chain, zip_longest
from typing import Any

from generator.hardware import FABRIC_HALVES
from generator.records import record, replace

TextPart = tuple[str, int]

# mlnx-tools, ibdev2netdev: `rocep1s0f0 port 1 ==> enp1s0f0np0 (Up)`, with -v also the port's state.
# Its last line has no newline, so that another program's output may follow on it.
_DEVICE = re.compile(r"port \d+(?: \([^)\n]*\))? ==> (\S+) \((Up|Down)\)")
_RDMA = re.compile(r"(?m)^link \S+ state (\w+).* netdev (\S+)")
_VERBS = re.compile(r"(?m)^hca_id:[ \t]*(\S+)(?:\n(?!hca_id).*)*?\n[ \t]*state:[ \t]*(\w+)")
_GID = re.compile(
    r"(?m)^\S+[ \t]+\d+[ \t]+\d+[ \t]+[0-9a-f:]{20,}[ \t]+([0-9.]+)?[ \t]*v2[ \t]+(\S+)"
)
# The first line of an interface, `3: enp1s0f0np0: <UP,LOWER_UP> mtu 9000`; its only one with -br.
_LONG = re.compile(r"(?m)^\d+: ([A-Za-z0-9._-]+)(?:@[\w-]+)?: <([A-Z_,0-9]*)> mtu (\d+)")
_BRIEF = re.compile(r"(?m)^([A-Za-z][A-Za-z0-9._-]{0,14})(?:@\w+)? +(UP|DOWN|UNKNOWN)\b(.*)$")
# With -o, each address is a line.
_SINGLE = re.compile(r"(?m)^\d+: ([A-Za-z][A-Za-z0-9._-]*) +inet [0-9.]+/\d+")
_INET = re.compile(r"inet ([0-9.]+/\d+)")
_ADDRESS = re.compile(r"(?<![\w:.])([0-9.]+/\d+)(?!\S)")
# A prompt such as `[nvidia@spark1 ~]$` is not a list.
_LIST = re.compile(r"\[(?=\s*[\[\]{\"])")


@record
class Printed:
    """An interface: its name, addresses, MTU and master, each with the offset of its text.

    `has_link` is None if nothing tells. `bare` are addresses without the length of their prefix.
    """

    name: TextPart
    addresses: tuple[TextPart, ...] = ()
    mtu: TextPart | None = None
    has_link: bool | None = None
    master: TextPart | None = None
    bare: tuple[TextPart, ...] = ()


def interfaces(text: str) -> dict[str, Printed]:
    """The interfaces in the output of any of the programs, by name; none in other text."""
    found: dict[str, Printed] = {}
    for one in chain(_of_ip(text), _of_devices(text)):
        known = found.get(one.name[0], one)
        found[one.name[0]] = replace(
            known,
            addresses=known.addresses or one.addresses,
            has_link=one.has_link if known.has_link is None else known.has_link,
            bare=known.bare or one.bare,
        )
    return found


def is_address(text: str) -> bool:
    """Whether a text is an IPv4 address with a prefix length."""
    try:
        IPv4Interface(text)
    except ValueError:
        return False
    return "/" in text


def _of_devices(text: str) -> Iterator[Printed]:
    for found in _DEVICE.finditer(text):
        yield Printed((found[1], found.start(1)), has_link=found[2] == "Up")
    for found in _RDMA.finditer(text):
        yield Printed((found[2], found.start(2)), has_link=found[1] == "ACTIVE")
    names = {half.hca: name for name, half in FABRIC_HALVES.items()}
    for found in _VERBS.finditer(text):
        if found[1] in names:
            has_link = found[2] == "PORT_ACTIVE"
            yield Printed((names[found[1]], found.start(1)), has_link=has_link)
    for found in _GID.finditer(text):
        bare = ((found[1], found.start(1)),) if found[1] else ()
        yield Printed((found[2], found.start(2)), has_link=True if bare else None, bare=bare)


def _of_ip(text: str) -> Iterator[Printed]:
    lists = _LIST.search(text)
    if lists and '"ifname"' in text:
        yield from _of_json(text, lists.start())
        return
    single = {found[1]: found for found in _SINGLE.finditer(text)}
    heads = list(_LONG.finditer(text))
    for head, behind in zip_longest(heads, heads[1:]):
        end = behind.start() if behind else len(text)
        addresses = [*_parts(text, _INET, head.end(), end)]
        if one := single.pop(head[1], None):
            addresses += _parts(text, _INET, *one.span())
        name, mtu = (head[1], head.start(1)), (head[3], head.start(3))
        yield Printed(name, tuple(addresses), mtu, "LOWER_UP" in head[2].split(","))
    for one in single.values():
        yield Printed((one[1], one.start(1)), tuple(_parts(text, _INET, *one.span())))
    for head in () if heads or single else _BRIEF.finditer(text):
        addresses = [*_parts(text, _ADDRESS, *head.span(3))]
        yield Printed((head[1], head.start(1)), tuple(addresses), None, head[2] == "UP")


def _parts(text: str, pattern: re.Pattern[str], start: int, end: int) -> Iterator[TextPart]:
    for found in pattern.finditer(text, start, end):
        if is_address(found[1]) and not found[1].startswith("127."):
            yield found[1], found.start(1)


def _of_json(text: str, start: int) -> Iterator[Printed]:
    try:
        links, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return
    for link in links if isinstance(links, list) else ():
        # With a filter, ip prints an empty object for each link that it leaves out.
        if not isinstance(link, dict) or not isinstance(link.get("ifname"), str):
            continue
        name, over, mtu = link["ifname"], link.get("master"), link.get("mtu")
        yield Printed(
            _in(text, name, name, start),
            tuple(_in(text, address, name, start) for address in _addresses(link)),
            _in(text, str(mtu), name, start) if mtu else None,
            "LOWER_UP" in link.get("flags", ()) if "flags" in link else _is_active(link),
            _in(text, over, name, start) if isinstance(over, str) else None,
        )


def _is_active(link: Mapping[str, Any]) -> bool | None:
    return link["state"] == "ACTIVE" if "state" in link else None


def _addresses(link: Mapping[str, Any]) -> Iterator[str]:
    for info in link.get("addr_info", ()):
        if isinstance(info, dict) and info.get("family") == "inet" and info.get("scope") != "host":
            address = f"{info.get('local')}/{info.get('prefixlen')}"
            if is_address(address):
                yield address


def _in(text: str, value: str, name: str, start: int) -> TextPart:
    """A value at its place behind the name of its interface."""
    begin = max(text.find(f'"{name}"', start), start)
    found = text.find(value.partition("/")[0], begin)
    return value, found if found >= 0 else begin
