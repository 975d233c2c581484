"""Tests the fabric of a bundle in namespaces on this machine, before any cable is plugged in."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from generator.verify.bundle import BundleFolder
from generator.verify.checks import Complaints, Nothing, ProgramCheck
from generator.verify.namespaces import PROGRAMS, VirtualFabric, VirtualLink, VirtualPort, fabric
from generator.verify.programs import found, run

_SCRIPT = "opt/sparkgen/wait-fabric.sh"


class Forbidden(Exception):  # noqa: N818 (not an error: who runs it may not)
    """Namespaces can't be created here; the message says why."""


def network(bundle: BundleFolder, work: Path) -> Complaints:
    """Run each cabled node in its own namespace, as in the manifest, tested by its own script."""
    if not bundle.cables:
        raise Nothing
    for name in PROGRAMS:
        found(name)
    allow()
    trees = {node: bundle.copy(node, work / "network") for node in _cabled(bundle)}
    try:
        with fabric(trees, links(bundle), work) as nodes:
            yield from complaints(nodes)
    except (RuntimeError, ValueError, TimeoutError) as error:
        yield str(error).strip().partition("\n")[0]


NETWORK = ProgramCheck("network", "every cable of the fabric, in namespaces", network)


def complaints(nodes: VirtualFabric) -> Iterator[str]:
    """What wait-fabric.sh reports on each node, cable by cable; then what only an observer sees."""
    with ThreadPoolExecutor() as pool:
        by_node = list(pool.map(lambda node: list(_reported(nodes, node)), nodes.trees))
    reported = [line for lines in by_node for line in lines]
    yield from reported
    if not reported:
        yield from nodes.ping_all()
        yield from nodes.arp_flux()


def _reported(nodes: VirtualFabric, node: str) -> Iterator[str]:
    done = nodes.run(node, "bash", str(nodes.trees[node] / _SCRIPT), "0")
    if done.returncode:
        _, *lines = done.stderr.splitlines() or [""]
        yield from (f"{node}: {line}" for line in lines or [f"{_SCRIPT} failed"])


def links(bundle: BundleFolder) -> list[VirtualLink]:
    """The cables; the far end of one to a switch is not a node."""
    return [
        VirtualLink(_port(a), _port(b))
        if _name(b) in bundle.nodes
        else VirtualLink(_port(a), None, _name(b))
        for a, b in bundle.cables
    ]


def allow() -> None:
    """Continue only as a root that may create namespaces, which a container's root may not."""
    if os.geteuid() != 0:
        raise Forbidden("the network is tried by root alone")
    if run(found("unshare"), "--mount", "--net", "true").returncode:
        raise Forbidden("no namespaces can be made here")


def _cabled(bundle: BundleFolder) -> Iterator[str]:
    """The nodes with a cable, since others have nothing of the fabric."""
    ends = {end.partition(":")[0] for cable in bundle.cables for end in cable}
    yield from (node for node in bundle.nodes if node in ends)


def _name(end: str) -> str:
    return end.partition(":")[0]


def _port(end: str) -> VirtualPort:
    name, _, port = end.partition(":")
    return name, int(port.removeprefix("p"))
