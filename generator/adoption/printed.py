"""Interfaces from saved output of `ip address` and `ibdev2netdev`."""

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest

from generator.adoption import netplan
from generator.adoption.found import Interface, Word
from generator.adoption.text import Text
from generator.records import replace
from generator.scaffold.discovery import LINK_STATE

# The first line of an interface, `3: enp1s0f0np0: <UP,LOWER_UP> mtu 9000`; its only one with -br.
_LONG = re.compile(r"(?m)^\d+: ([A-Za-z0-9._-]+)(?:@[\w-]+)?: <([A-Z_,]*)> mtu (\d+)")
_BRIEF = re.compile(
    r"(?m)^((?:en|eth|wl|ib|lo)[A-Za-z0-9._-]{0,14})(?:@\w+)? +(UP|DOWN|UNKNOWN)\b(.*)$"
)
# With -o, each address is a line.
_SINGLE = re.compile(r"(?m)^\d+: ([A-Za-z][A-Za-z0-9._-]*) +inet [0-9.]+/\d+")
_INET = re.compile(r"inet ([0-9.]+/\d+)")
_ADDRESS = re.compile(r"(?<![\w:.])([0-9.]+/\d+)(?!\S)")


def interfaces(text: Text, configured: Mapping[str, Interface] = {}) -> dict[str, Interface]:
    """The interfaces in the output of either program, or of both; none in other text."""
    found = {one.name: one for one in _of_ip(text, configured)}
    for name, is_up in states(text.text).items():
        if name not in found and is_up:
            at = text.text.index(f"==> {name} ") + len("==> ")
            found[name] = Interface(name, text.word(name, at, at + len(name)))
        if name in found and found[name].has_link is None:
            found[name] = replace(found[name], has_link=is_up)
    return found


def states(text: str) -> dict[str, bool]:
    """Whether interfaces have a link, according to `ibdev2netdev`."""
    return {match[1]: match[2] == "Up" for match in LINK_STATE.finditer(text)}


def _of_ip(text: Text, configured: Mapping[str, Interface]) -> Iterator[Interface]:
    if (start := re.search(r"\[\s*[{]", text.text)) and '"ifname"' in text.text:
        yield from netplan.live(text, configured, start.start())
        return
    single = {found[1]: found for found in _SINGLE.finditer(text.text)}
    heads = list(_LONG.finditer(text.text))
    for head, behind in zip_longest(heads, heads[1:]):
        end = behind.start() if behind else len(text.text)
        addresses = [*_words(text, _INET, head.end(), end)]
        if one := single.pop(head[1], None):
            addresses += _words(text, _INET, *one.span())
        place, mtu = text.word(head[1], *head.span(1)), text.word(head[3], *head.span(3))
        yield Interface(head[1], place, tuple(addresses), mtu, "LOWER_UP" in head[2].split(","))
    for name, one in single.items():
        place = text.word(name, *one.span(1))
        yield Interface(name, place, tuple(_words(text, _INET, *one.span())))
    for head in () if heads or single else _BRIEF.finditer(text.text):
        addresses = [*_words(text, _ADDRESS, *head.span(3))]
        place = text.word(head[1], *head.span(1))
        yield Interface(head[1], place, tuple(addresses), None, head[2] == "UP")


def _words(text: Text, pattern: re.Pattern[str], start: int, end: int) -> Iterator[Word]:
    for found in pattern.finditer(text.text, start, end):
        if netplan.is_address(found[1]) and not found[1].startswith("127."):
            yield text.word(found[1], *found.span(1))
