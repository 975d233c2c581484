"""What starts the ranks of a job: one module per launcher, named after it."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Protocol

from generator.on_demand import OnDemand
from generator.site import Node, Site, Words
from generator.sitefile.sections import entry_keys


class Launcher(Protocol):
    """How ranks are started; the name of a launcher is that of its module."""

    def rank(self, network: Site, node: Node, port: int, command: Words) -> Iterable[Words]:
        """What each node runs as its rank, in its container or environment: the program alone."""
        return (command,)

    def lead(self, network: Site, job: str) -> Iterable[Words]:
        """What the first node runs to start all ranks; nothing if each node starts its own."""
        return ()


def _launcher(name: str) -> Launcher:
    found: Launcher = import_module(f"{__name__}.{name}").LAUNCHER
    return found


LAUNCHERS: Mapping[str, Launcher] = OnDemand(
    lambda: tuple(entry_keys("jobs")["launcher"]["allowed"]), _launcher
)
