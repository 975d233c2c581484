"""Interfaces from netplan's files."""

from collections.abc import Iterable, Iterator
from pathlib import PurePath

import yaml

from generator.adoption.found import FoundInterface, Loss, Word
from generator.adoption.yaml_file import Yaml
from generator.records import replace
from generator.scaffold.outputs import is_address

_ETHERNETS = ("network", "ethernets")
_YES = ("true", "True", "yes", "on")


def is_netplan(file: Yaml) -> bool:
    """Whether a YAML file is a netplan file."""
    return isinstance(file.get(file.root, "network"), yaml.MappingNode)


def interfaces(file: Yaml) -> Iterator[FoundInterface]:
    """The wired interfaces of one file, including those that are part of a bond or bridge."""
    for kind in ("bonds", "bridges"):
        for name, node in file.pairs(file.get(file.root, "network", kind)):
            for item in file.items(file.get(node, "interfaces")):
                if word := file.word(item):
                    master = Word(name, word.file, word.span)
                    yield FoundInterface(word.text, word, master=master)
    for name, node in file.pairs(file.get(file.root, *_ETHERNETS)):
        addresses = []
        for item in file.items(file.get(node, "addresses")):
            plain = item
            if isinstance(item, yaml.MappingNode) and item.value:
                plain = item.value[0][0]
            word = file.word(plain)
            if word and is_address(word.text):
                addresses.append(word)
        mtu, dhcp = (file.word(file.get(node, key)) for key in ("mtu", "dhcp4"))
        yield FoundInterface(name, file.place(node), tuple(addresses), mtu, dhcp=dhcp)


def repeats(
    interfaces: Iterable[FoundInterface],
) -> Iterator[tuple[FoundInterface, FoundInterface]]:
    """Interfaces that two files set up differently, in the order in which netplan reads them."""
    first: dict[str, FoundInterface] = {}
    for one in sorted(interfaces, key=lambda one: PurePath(one.place.file).name):
        known = first.setdefault(one.name, one)
        if known.place.file != one.place.file and _differs(known, one):
            yield known, one


def _differs(known: FoundInterface, later: FoundInterface) -> bool:
    """Whether two files contradict each other about an interface."""
    own, others = ({word.text for word in one.addresses} for one in (known, later))
    if own and others and own != others:
        return True
    asks = [one.dhcp is not None and one.dhcp.text in _YES for one in (known, later)]
    if asks[0] != asks[1] and (others if asks[0] else own):
        return True
    return bool(known.mtu and later.mtu and known.mtu.text != later.mtu.text)


def gateway(file: Yaml) -> str:
    """The interface of the default route; empty if no file sets one."""
    for name, node in file.pairs(file.get(file.root, *_ETHERNETS)):
        routes = (file.word(file.get(r, "to")) for r in file.items(file.get(node, "routes")))
        leads = any(to and to.text in ("default", "0.0.0.0/0") for to in routes)
        if leads or file.get(node, "gateway4") is not None:
            return name
    return ""


def losses(file: Yaml) -> Iterator[Loss]:
    """What a netplan file sets up besides wired interfaces, and invalid addresses."""
    for kind in ("bonds", "bridges", "vlans", "tunnels", "wifis", "modems", "vrfs"):
        for name, node in file.pairs(file.get(file.root, "network", kind)):
            yield Loss(f"{name}, of netplan's '{kind}'", file.place(node))
    for name, node in file.pairs(file.get(file.root, *_ETHERNETS)):
        for item in file.items(file.get(node, "addresses")):
            word = file.word(item)
            if word and not is_address(word.text) and ":" not in word.text:
                yield Loss(f"the address {word.text} of {name}, which is none", word)


def merged(interfaces: Iterable[FoundInterface]) -> dict[str, FoundInterface]:
    """The interfaces of several files as netplan merges them: lists of addresses add up."""
    found: dict[str, FoundInterface] = {}
    for one in interfaces:
        known = found.get(one.name, one)
        own = tuple({word.text: word for word in (*known.addresses, *one.addresses)}.values())
        mtu, master = one.mtu or known.mtu, one.master or known.master
        found[one.name] = replace(known, addresses=own, mtu=mtu, master=master)
    return found
