"""A node's interfaces in a network of its own; the operator has the far ends in another one."""

import itertools
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from generator.verify.namespaces import networks

_serial = itertools.count()


@dataclass(frozen=True)
class Wires:
    """The networks of a node and of who operates it."""

    node: str
    operator: str

    @property
    def within(self) -> tuple[str, ...]:
        """What leads a program into the node's network, and lets it have a name of its own."""
        return ("nsenter", f"--net=/run/netns/{self.node}", "unshare", "--uts")

    def answers(self, address: str) -> bool:
        """Whether the operator has an answer of an address."""
        ping = ("ping", "-n", "-q", "-c", "1", "-W", "1", address)
        argv = ("ip", "netns", "exec", self.operator, *ping)
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0


@contextmanager
def wired(interfaces: Sequence[str], management: str, address: str) -> Iterator[Wires]:
    """Wires from all interfaces; the operator has that address at the one for management."""
    names = [f"cluster-{os.getpid()}-{next(_serial)}" for _ in range(2)]
    wires = Wires(*names)
    with networks(names):
        for number, interface in enumerate((management, *interfaces)):
            far = ("peer", "name", f"far{number}", "netns", wires.operator)
            _ip("link", "add", interface, "netns", wires.node, "type", "veth", *far)
            _ip("-n", wires.operator, "link", "set", f"far{number}", "up")
        # Who asks for the operator on another wire gets no answer there.
        _ip("netns", "exec", wires.operator, "sysctl", "-q", "net.ipv4.conf.all.arp_ignore=1")
        _ip("-n", wires.operator, "address", "add", address, "dev", "far0")
        yield wires


def _ip(*arguments: str) -> None:
    subprocess.run(("ip", *arguments), check=True)
