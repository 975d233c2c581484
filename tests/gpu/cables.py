"""A network namespace per node, cabled like the site, on a machine that needs only `ip`.

NCCL's sockets use one interface, whereas its RoCE uses all ports. So each node has one more
address, which only its neighbors can reach, each over its own cable.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from generator.fabric.addressing import Port
from generator.site import Node, Site
from generator.verify.namespaces import halves, networks

FABRIC = "fabric0"
_NETWORK = "10.255.0"


@contextmanager
def cabled(site: Site) -> Iterator[dict[str, str]]:
    """The namespace of each node, by the node's name."""
    prefix = f"gpu-{os.getpid()}"
    names = {node.name: f"{prefix}-{node.name}" for node in site.nodes}
    switch = f"{prefix}-switch"
    with networks((switch, *names.values())):
        for bridge in ("cables", "management"):
            _ip("-n", switch, "link", "add", bridge, "mtu", "9000", "type", "bridge")
            _ip("-n", switch, "link", "set", bridge, "up")
        for cable in site.cables:
            if isinstance(cable.b, Port):
                _join(names, cable.a, cable.b)
            else:
                _plug(names[cable.a.node], switch, cable.a)
        for node in site.nodes:
            _configure(node, names[node.name], switch)
        for node in site.nodes:
            _route(node, names[node.name], site)
        yield names


def _join(names: dict[str, str], a: Port, b: Port) -> None:
    for near, far in zip(halves(a.port), halves(b.port), strict=True):
        peer = ("peer", "name", far, "mtu", "9000", "netns", names[b.node])
        _ip("-n", names[a.node], "link", "add", near, "mtu", "9000", "type", "veth", *peer)


def _plug(name: str, switch: str, port: Port) -> None:
    for interface in halves(port.port):
        plug = f"{port.node}-{interface}"[-15:]
        peer = ("peer", "name", plug, "mtu", "9000", "netns", switch)
        _ip("-n", name, "link", "add", interface, "mtu", "9000", "type", "veth", *peer)
        _ip("-n", switch, "link", "set", plug, "master", "cables", "up")


def _configure(node: Node, name: str, switch: str) -> None:
    _ip("-n", name, "link", "set", "lo", "up")
    # Its far end leads nowhere.
    far = ("peer", "name", f"end{node.rank}", "netns", switch)
    _ip("-n", name, "link", "add", FABRIC, "mtu", "9000", "type", "veth", *far)
    _ip("-n", switch, "link", "set", f"end{node.rank}", "up")
    _ip("-n", name, "link", "set", FABRIC, "up")
    _ip("-n", name, "address", "add", f"{_NETWORK}.{node.rank + 1}/32", "dev", FABRIC)
    if node.management:
        plug = f"mgmt{node.rank}"
        near = (node.management.interface, "type", "veth", "peer", "name", plug, "netns", switch)
        _ip("-n", name, "link", "add", *near)
        _ip("-n", switch, "link", "set", plug, "master", "management", "up")
        _ip("-n", name, "link", "set", node.management.interface, "up")
        address = ("add", str(node.management.address), "dev", node.management.interface)
        _ip("-n", name, "address", *address)
    for interface in node.interfaces:
        _ip("-n", name, "link", "set", interface.name, "up")
        _ip("-n", name, "address", "add", str(interface.address), "dev", interface.name)


def _route(node: Node, name: str, site: Site) -> None:
    ranks = {other.name: other.rank for other in site.nodes}
    reached = set()
    for interface in node.interfaces:
        for peer in interface.peers:
            if peer.node not in reached:
                reached.add(peer.node)
                to = f"{_NETWORK}.{ranks[peer.node] + 1}"
                way = ("via", str(peer.address), "dev", interface.name)
                _ip("-n", name, "route", "add", to, *way)
    _ip("-n", name, "route", "add", "unreachable", f"{_NETWORK}.0/24")


def _ip(*arguments: str) -> None:
    subprocess.run(("ip", *arguments), check=True)
