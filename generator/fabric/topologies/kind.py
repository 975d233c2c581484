"""The interface of every kind of topology."""

from collections.abc import Collection, Sequence

from generator.sitefile.topology_kinds import KindTraits

Pair = tuple[str, str]


class TopologyKind(KindTraits):
    """A way to connect nodes: what the schema says of it, and what its cables have to form."""

    @property
    def uses_same_port(self) -> bool:
        """Whether a new site has each node's cable in the same port."""
        return self.same_port or not self.connects_directly

    def pairs(self, names: Sequence[str]) -> Sequence[Pair]:
        """The pairs of nodes that cables should connect, if there are no cables yet."""
        return ()

    def missing(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[Pair]:
        """The pairs of nodes that cables have yet to connect; `joined` are those that have one."""
        return ()

    def closed_subset(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[str]:
        """Nodes whose cables form a closed shape without the others, if any."""
        return ()

    def order(self, names: Sequence[str], joined: Collection[Pair]) -> Sequence[str]:
        """The nodes in the order of a ring of cables; empty if there is no such ring."""
        return ()

    def is_oriented(self, nodes: int) -> bool:
        """Whether each cable should go from p0 of a node to p1 of the next."""
        return False

    def preparations(self, mtu: int, before: int | None) -> Sequence[str]:
        """What users set up on the fabric before the nodes; `before` is its MTU until then."""
        return ()

    def bus_bandwidth(self, nodes: int) -> float:
        """The minimum that NCCL's tests show on a healthy fabric with both halves, in GB/s.

        NVIDIA's threshold (dgx-spark-playbooks, spark_cluster_setup.py), rounded down.
        """
        return 21.8

    def summary(self, nodes: int) -> str:
        """The number of nodes and how they are connected, to begin a sentence with."""
        return self.summary_form.format(nodes, "s" if nodes > 1 else "")

    def description(self, nodes: int) -> str:
        """The same for the description of a site."""
        return self.description_form.format(nodes, "s" if nodes > 1 else "")
