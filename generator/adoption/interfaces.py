"""What becomes of each address and MTU that nodes have."""

from collections.abc import Iterator

from generator.adoption.cables import FoundCabling, is_pooled
from generator.adoption.draft import Draft
from generator.adoption.found import Ended, FoundInterface, FoundNode, Item, ItemEnd, Word
from generator.diagnostics import KeyPath
from generator.hardware import FABRIC_HALVES


def settle(draft: Draft, cabling: FoundCabling) -> None:
    """End every address and MTU of the nodes; what is in the site is there by now."""
    written = {word: path for path, word in draft.origins.items()}
    pooled = is_pooled(cabling)
    for wired in cabling.nodes:
        halves = {id(one) for one in wired.halves.values()} if pooled else set[int]()
        for one in wired.node.interfaces:
            draft.ended += _ends(wired.node, one, id(one) in halves, written)


def _ends(
    node: FoundNode, one: FoundInterface, pooled: bool, written: dict[Word, KeyPath]
) -> Iterator[Ended]:
    is_fabric = one.name in FABRIC_HALVES and one.name != node.gateway
    said = [("address", word) for word in one.addresses]
    for what, word in (*said, *([("mtu", one.mtu)] if one.mtu else [])):
        item = Item(f"{one.name} {what}", word.text, (word,))
        if word in written:
            yield Ended(item, ItemEnd.SITE, written[word])
        elif pooled and word in one.addresses[:1]:
            yield Ended(item, ItemEnd.SITE, ("topology", "subnet_pool"))
        elif not is_fabric:
            yield Ended(item, ItemEnd.OTHER, why="an interface that sparkgen leaves alone")
        elif word is one.mtu:
            yield Ended(item, ItemEnd.DEFAULT, why="the MTU of all ports")
        else:
            why = "a half has one address in a site file, in the subnet of its cable"
            yield Ended(item, ItemEnd.LOST, why=why)
