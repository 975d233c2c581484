"""Interfaces from NetworkManager's profiles and systemd-networkd's files."""

import re
from collections.abc import Iterator

from generator.adoption.found import FoundInterface, Word
from generator.adoption.items import of_entries
from generator.adoption.text import Text
from generator.scaffold.outputs import is_address

# Section and key of the interface's name, and of its MTU, in either program's files.
_NAMES = (("connection", "interface-name"), ("Match", "Name"))
_MTU = (("ethernet", "mtu"), ("802-3-ethernet", "mtu"), ("Link", "MTUBytes"))
_ADDRESSES = (("ipv4", r"address(es)?\d*"), ("Network", "Address"), ("Address", "Address"))


def is_keyfile(text: str) -> bool:
    """Whether a text is a NetworkManager profile, or networkd's file about an interface."""
    return bool(re.search(r"(?m)^\[(connection|Match)\]\s*$", text))


def interfaces(text: Text) -> Iterator[FoundInterface]:
    """The wired interface that a file is about; none unless it names exactly one."""
    entries = [
        (section, key, one.place)
        for one in of_entries(text, "keyfile")
        for section, _, key in [one.what.partition(".")]
    ]
    name = next((word for section, key, word in entries if (section, key) in _NAMES), None)
    if name is None or not re.fullmatch(r"[A-Za-z0-9]+", name.text):
        return
    addresses = tuple(
        address
        for section, key, word in entries
        if any(section == own and re.fullmatch(keys, key) for own, keys in _ADDRESSES)
        for address in _addresses(text, word)
    )
    mtu = next((word for section, key, word in entries if (section, key) in _MTU), None)
    yield FoundInterface(name.text, name, addresses, mtu if mtu and mtu.text.isdecimal() else None)


def _addresses(text: Text, word: Word) -> Iterator[Word]:
    """The addresses in a value; what follows a comma is a gateway."""
    start = text.offset(word.span.line, word.span.column)
    for part in re.finditer(r"[^;,\s]+", word.text):
        if is_address(part[0]):
            yield text.word(part[0], start + part.start(), start + part.end())
