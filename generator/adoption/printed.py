"""Interfaces from saved output of programs about a node's network."""

from collections.abc import Mapping

from generator.adoption.found import FoundInterface, Word
from generator.adoption.text import Text
from generator.scaffold.outputs import TextPart
from generator.scaffold.outputs import interfaces as printed


def interfaces(
    text: Text, configured: Mapping[str, FoundInterface] = {}
) -> dict[str, FoundInterface]:
    """The interfaces in the output; those that are `configured` have their places there."""
    found = {}
    for name, one in printed(text.text).items():
        known = configured.get(name, FoundInterface(name, _word(text, one.name)))
        written = {word.text: word for word in known.addresses}
        addresses = tuple(written.get(part[0]) or _word(text, part) for part in one.addresses)
        mtu = _word(text, one.mtu) if one.mtu else None
        if known.mtu and (mtu is None or known.mtu.text == mtu.text):
            mtu = known.mtu
        master = known.master or (_word(text, one.master) if one.master else None)
        found[name] = FoundInterface(name, known.place, addresses, mtu, one.has_link, master)
    return found


def _word(text: Text, part: TextPart) -> Word:
    value, at = part
    return text.word(value, at, at + len(value.partition("/")[0]))
