"""The shape that cables give to nodes: which of them they connect, and as what kind of topology.

An end of a cable that is not a node is a switch.
"""

from collections.abc import Collection, Iterator, Sequence

from generator.fabric.topologies import DIRECT, MIXED, PAIRS, RING, SINGLE, SWITCH, likely
from generator.records import record

# The names at the ends of a cable.
Ends = tuple[str, str]


@record
class Island:
    """Nodes that cables connect, directly or over switches, in the order of the list."""

    names: tuple[str, ...]
    cables: tuple[Ends, ...]

    @property
    def kind(self) -> str:
        """The kind of topology that they form."""
        if not self.cables:
            return SINGLE
        nodes = {*self.names}
        direct = {frozenset(ends) for ends in self.cables if nodes.issuperset(ends)}
        if not direct:
            return SWITCH
        if not all(nodes.issuperset(ends) for ends in self.cables):
            return MIXED
        if len(nodes) == 2:
            return DIRECT
        # They are connected, so two neighbors each make one ring of all.
        neighbors = {sum(name in pair for pair in direct) for name in nodes}
        return RING if neighbors == {2} else MIXED


def islands(names: Sequence[str], cables: Collection[Ends]) -> Iterator[Island]:
    """All nodes, by the island that they are on."""
    at: dict[str, list[Ends]] = {}
    for ends in cables:
        for end in ends:
            at.setdefault(end, []).append(ends)
    left = dict.fromkeys(names)
    while left:
        held: set[str] = set()
        reached = [next(iter(left))]
        while reached:
            name = reached.pop()
            if name not in held:
                held.add(name)
                reached += (end for ends in at.get(name, ()) for end in ends)
        own = tuple(name for name in left if name in held)
        yield Island(own, tuple(dict.fromkeys(e for name in own for e in at.get(name, ()))))
        left = {name: None for name in left if name not in held}


def site_kind(names: Sequence[str], cables: Collection[Ends], has_groups: bool) -> str:
    """The kind of a whole site: that of its only island of several nodes, if there is one."""
    if not cables:
        return PAIRS if has_groups and len(names) > 1 else likely(len(names))[0]
    found = [*islands(names, cables)]
    kinds = [island.kind for island in found if island.cables]
    if len(found) == 1 or kinds in ([RING], [SWITCH]):
        return kinds[0]
    return PAIRS if {*kinds} == {DIRECT} else MIXED
