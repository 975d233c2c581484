"""Nodes in a ring: each has a cable to the next one, and the last one to the first."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from generator.fabric.topologies.kind import Pair, TopologyKind

# In a ring of three, all nodes are neighbors.
_TRIANGLE = 3


class Ring(TopologyKind):
    """Three to eight nodes; each of a node's two ports leads to a different neighbor.

    From four nodes on, most are not neighbors, and RDMA is not routed. Stock NCCL works there if it
    only connects neighbors: with rings alone, which each communicator connects on first use.
    Measured with NCCL 2.28.9 on four, six and eight nodes.
    """

    def pairs(self, names: Sequence[str]) -> Sequence[Pair]:
        """Each node and the next one."""
        return tuple(pairwise([*names, names[0]]))

    def missing(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[Pair]:
        """The pairs of ends that connect open chains, one to the next, in the order of the names.

        Empty if the cables already form a ring.
        """
        chains = _chains(names, joined)
        ends = [(chain[-1], after[0]) for chain, after in pairwise([*chains, *chains[:1]])]
        usual = self.pairs(names)
        turned = [(b, a) if (b, a) in usual else (a, b) for a, b in ends]
        return tuple(sorted(turned, key=lambda pair: names.index(pair[0])))

    def closed_subset(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[str]:
        """The nodes of the first ring that doesn't include all nodes."""
        open_ones = {name for chain in _chains(names, joined) for name in chain}
        rings = (_walk(name, names, joined) for name in names if name not in open_ones)
        return next((along for along in rings if len(along) < len(names)), ())

    def order(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[str]:
        """The nodes from the first one towards the earlier of its two neighbors, and around.

        Empty unless the cables form a single ring of all nodes.
        """
        along = _walk(names[0], names, joined)
        is_closed = len(joined) == len(names) == len(along)
        return along if is_closed and not _chains(names, joined) else ()

    def is_oriented(self, nodes: int) -> bool:
        """Only so are three nodes all alike, and NVIDIA's setup accepts nothing else."""
        return nodes == _TRIANGLE

    def bus_bandwidth(self, nodes: int) -> float:
        """NVIDIA's threshold for three (dgx-spark-playbooks, spark_cluster_setup.py).

        There is none for more: 20 to 24 GB/s were measured on four and eight, and half of that over
        one half of each cable.
        """
        return 10.0 if nodes == _TRIANGLE else 18.0

    def description(self, nodes: int) -> str:
        """`Three Sparks in a ring`."""
        return f"{_WORDS[nodes]} Sparks in a ring"


_WORDS = {3: "Three", 4: "Four", 5: "Five", 6: "Six", 7: "Seven", 8: "Eight"}


def _chains(names: Sequence[str], joined: Collection[Pair]) -> list[tuple[str, ...]]:
    """The nodes of each open chain in cable order; a node without a cable is also a chain."""
    chains: list[tuple[str, ...]] = []
    for name in names:
        is_end = len(_neighbors(name, names, joined)) < 2
        if is_end and not any(name in chain for chain in chains):
            chains.append(_walk(name, names, joined))
    return chains


def _walk(start: str, names: Sequence[str], joined: Collection[Pair]) -> tuple[str, ...]:
    """The nodes from `start` on, each a neighbor of the previous one, until none is left."""
    order = [start]
    while following := [n for n in _neighbors(order[-1], names, joined) if n not in order]:
        order.append(following[0])
    return tuple(order)


def _neighbors(name: str, names: Sequence[str], joined: Collection[Pair]) -> list[str]:
    found = {other for pair in joined if name in pair for other in pair if other != name}
    return sorted(found, key=names.index)


KIND = Ring
