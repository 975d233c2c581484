"""Changes to the cables of nodes in namespaces while these run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from generator.verify.namespaces import Plug, VirtualFabric, _ip


def unplug(fabric: VirtualFabric, node: str, interface: str) -> None:
    """Take the carrier from an interface, and from the one at the other end of its cable."""
    for plug in pull(fabric, node, interface):
        # networkd removes its addresses when the carrier is lost.
        _ip(fabric.namespace(plug[0]), f"address flush dev {plug[1]}")


def pull(fabric: VirtualFabric, node: str, *interfaces: str) -> list[Plug]:
    """Take the carrier only, for when networkd itself runs; return the affected interfaces."""
    return _switch(fabric, "down", node, interfaces)


def ends(fabric: VirtualFabric, node: str, interface: str) -> list[Plug]:
    """Both ends of the half of a cable on an interface, or its own end in the switch."""
    bridge = fabric._bridges.get((node, interface))
    return [
        plug
        for plug, other in fabric._bridges.items()
        if plug == (node, interface) or (other == bridge and bridge.startswith("cable"))
    ]


def _switch(fabric: VirtualFabric, state: str, node: str, interfaces: Sequence[str]) -> list[Plug]:
    plugs = [end for interface in interfaces for end in ends(fabric, node, interface)]
    _ip(fabric._name, *(f"link set plug{fabric._numbers[plug]} {state}" for plug in plugs))
    return plugs


def plug_in(fabric: VirtualFabric, node: str, *interfaces: str) -> None:
    """Give the carrier back that was taken from interfaces."""
    _switch(fabric, "up", node, interfaces)


def set_mtu(fabric: VirtualFabric, node: str, interface: str, mtu: int) -> None:
    """Change the MTU of an interface, but not the size of the pings that it is to carry."""
    _ip(fabric.namespace(node), f"link set {interface} mtu {mtu}")


@contextmanager
def opened(fabric: VirtualFabric, node: str, interface: str) -> Iterator[tuple[str, list[str]]]:
    """Split a half of a cable: its two ends, and a namespace where a program may join them."""
    half = fabric._bridges[node, interface]
    plugs = [f"plug{fabric._numbers[end]}" for end in ends(fabric, node, interface)]
    _ip(fabric._name, *(f"link set {plug} nomaster" for plug in plugs))
    try:
        yield fabric._name, plugs
    finally:
        _ip(fabric._name, *(f"link set {plug} master {half}" for plug in plugs))


@contextmanager
def replugged(fabric: VirtualFabric, node: str, interface: str, into: str) -> Iterator[None]:
    """Plug the end of a half into another interface of its node, which has no cable."""
    half = fabric._bridges[node, interface]
    right, wrong = (fabric._numbers[node, name] for name in (interface, into))
    _ip(fabric._name, f"link set plug{right} nomaster down")
    _ip(fabric._name, f"link set plug{wrong} master {half} up")
    try:
        yield
    finally:
        _ip(fabric._name, f"link set plug{wrong} nomaster down")
        _ip(fabric._name, f"link set plug{right} master {half} up")
