"""A node's interfaces in their own network namespace; the operator has the far ends in another."""

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
    """The network namespaces of a node and of its operator."""

    node: str
    operator: str

    @property
    def within(self) -> tuple[str, ...]:
        """The prefix that runs a program in the node's network, where it may set a host name."""
        return ("nsenter", f"--net=/run/netns/{self.node}", "unshare", "--uts")

    def answers(self, address: str) -> bool:
        """Whether an address answers the operator."""
        ping = ("ping", "-n", "-q", "-c", "1", "-W", "1", address)
        argv = ("ip", "netns", "exec", self.operator, *ping)
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0


@contextmanager
def wired(interfaces: Sequence[str], management: str, address: str) -> Iterator[Wires]:
    """Wires from all interfaces; the operator has that address on the management wire."""
    names = [f"cluster-{os.getpid()}-{next(_serial)}" for _ in range(2)]
    wires = Wires(*names)
    with networks(names):
        for number, interface in enumerate((management, *interfaces)):
            far = ("peer", "name", f"far{number}", "netns", wires.operator)
            _ip("link", "add", interface, "netns", wires.node, "type", "veth", *far)
            _ip("-n", wires.operator, "link", "set", f"far{number}", "up")
        # Requests for the operator on any other wire get no answer there.
        _ip("netns", "exec", wires.operator, "sysctl", "-q", "net.ipv4.conf.all.arp_ignore=1")
        _ip("-n", wires.operator, "address", "add", address, "dev", "far0")
        yield wires


def _ip(*arguments: str) -> None:
    subprocess.run(("ip", *arguments), check=True)
