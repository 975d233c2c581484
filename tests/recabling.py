"""Changes to the cables of nodes in namespaces while these run."""

from collections.abc import Iterator
from contextlib import contextmanager

from generator.verify.namespaces import Fabric, _ip


def plug_in(fabric: Fabric, node: str, *interfaces: str) -> None:
    """Give the carrier back that was taken from interfaces."""
    fabric._switch("up", node, interfaces)


def set_mtu(fabric: Fabric, node: str, interface: str, mtu: int) -> None:
    """Change the MTU of an interface, but not the size of the pings that it is to carry."""
    _ip(fabric.namespace(node), f"link set {interface} mtu {mtu}")


@contextmanager
def opened(fabric: Fabric, node: str, interface: str) -> Iterator[tuple[str, list[str]]]:
    """Split a half of a cable: its two ends, and a namespace where a program may join them."""
    half = fabric._bridges[node, interface]
    plugs = [f"plug{fabric._numbers[end]}" for end in fabric.ends(node, interface)]
    _ip(fabric._name, *(f"link set {plug} nomaster" for plug in plugs))
    try:
        yield fabric._name, plugs
    finally:
        _ip(fabric._name, *(f"link set {plug} master {half}" for plug in plugs))


@contextmanager
def replugged(fabric: Fabric, node: str, interface: str, into: str) -> Iterator[None]:
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
