"""PyTorch's torchrun: each node starts its own rank, and all meet at the first node's port."""

from collections.abc import Iterator

from generator.jobs import Launcher
from generator.site import Node, Site, Words


class Torchrun(Launcher):
    """An agent on each node, with ranks that the site file determines.

    A restart of one rank alone would hang the others, so there is none (PyTorch, torchrun,
    `--max-restarts`).
    """

    def rank(self, network: Site, node: Node, port: int, command: Words) -> Iterator[Words]:
        """The agent and the program; what is no script or module of Python is run as it is."""
        yield ("torchrun",)
        yield (f"--nnodes={len(network.nodes)}",)
        yield ("--nproc-per-node=1",)
        yield (f"--node-rank={node.rank}",)
        yield (f"--master-addr={network.head.control.address}",)
        yield (f"--master-port={port}",)
        yield ("--max-restarts=0",)
        first, *rest = command
        if first == "-m":
            yield ("--module", *rest)
        else:
            yield (first, *rest) if first.endswith(".py") else ("--no-python", *command)


LAUNCHER = Torchrun()
