"""What becomes of each address and MTU that nodes have."""

from collections.abc import Iterator

from generator.adoption.cables import Cabling, is_pooled
from generator.adoption.draft import Draft
from generator.adoption.found import End, Ended, FoundNode, Interface, Item, Word
from generator.diagnostics import KeyPath
from generator.hardware import FABRIC_HALVES

_OTHER = "an interface that sparkgen leaves alone"


def settle(draft: Draft, cabling: Cabling) -> None:
    """End every address and MTU of the nodes; what is in the site is there by now."""
    written = {word: path for path, word in draft.origins.items()}
    pooled = is_pooled(cabling)
    for wired in cabling.nodes:
        halves = {id(one) for one in wired.halves.values()} if pooled else set[int]()
        for one in wired.node.interfaces:
            for end in _ends(wired.node, one, id(one) in halves, written):
                draft.ended.append(end)


def _ends(
    node: FoundNode, one: Interface, pooled: bool, written: dict[Word, KeyPath]
) -> Iterator[Ended]:
    is_fabric = one.name in FABRIC_HALVES and one.name != node.gateway
    for number, word in enumerate(one.addresses):
        item = Item(f"{one.name} address", word.text, (word,))
        if word in written:
            yield Ended(item, End.SITE, written[word])
        elif pooled and not number:
            yield Ended(item, End.SITE, ("topology", "subnet_pool"))
        elif is_fabric:
            why = "a half has one address in a site file, in the subnet of its cable"
            yield Ended(item, End.LOST, why=why)
        else:
            yield Ended(item, End.OTHER, why=_OTHER)
    if one.mtu:
        item = Item(f"{one.name} mtu", one.mtu.text, (one.mtu,))
        if one.mtu in written:
            yield Ended(item, End.SITE, written[one.mtu])
        elif is_fabric:
            yield Ended(item, End.DEFAULT, why="the MTU of all ports")
        else:
            yield Ended(item, End.OTHER, why=_OTHER)
