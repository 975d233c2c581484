"""What is requested, and the site file planned from that."""

from collections.abc import Mapping
from ipaddress import IPv4Network

from generator.fabric.nccl import ROUTED_FROM
from generator.fabric.topologies import TOPOLOGIES
from generator.fabric.topologies.kind import TopologyKind
from generator.records import record
from generator.scaffold.discovery import Discovery


@record
class PlannedNode:
    """A node of the site file; `is_known` unless its address is only an example."""

    name: str
    interface: str
    address: str
    is_known: bool


@record
class PlannedCable:
    """A cable; `down` is the end that had no link when its node was discovered."""

    a: str
    b: str
    down: str


@record
class Request:
    """What is requested, or known, for a site in `file`; `discovered` are in rank order.

    `user` and `ports`, those that each cabled node uses, are None if not given. `schema` is the
    path of the JSON Schema from the site file. `given` are the names of the options that were set,
    and so are not guesses. `groups` are the numbers of nodes that serve together, empty if all do.
    """

    file: str
    kind: str
    discovered: Mapping[str, Discovery]
    name: str
    engine: str
    model: str
    user: str | None
    ports: tuple[int, ...] | None
    schema: str
    given: frozenset[str]
    groups: tuple[int, ...] = ()

    @property
    def plugged(self) -> Mapping[str, Discovery]:
        """What was discovered, with the given ports for nodes that don't know their own."""
        topology = TOPOLOGIES[self.kind]
        by_port = topology.uses_same_port
        if self.ports is None or not by_port or any(s.linked for s in self.discovered.values()):
            return self.discovered
        linked = Discovery(linked=frozenset(self.ports))
        return {name: found | linked for name, found in self.discovered.items()}


@record
class PlannedEngine:
    """The engine for this many nodes; `layout` is the content of `engine.parallel`."""

    image: str
    is_image_made: bool
    launcher: str
    layout: str


@record
class PlannedGroup:
    """Nodes that serve together, as another group does unless they have an engine of their own."""

    name: str
    nodes: tuple[str, ...]
    same_as: str
    engine: PlannedEngine


@record
class Plan:
    """The content of the site file; `serving` is the engine if all nodes serve together."""

    kind: str
    name: str
    user: str
    schema: str
    nodes: tuple[PlannedNode, ...]
    cables: tuple[PlannedCable, ...]
    model: str
    file: str
    context_length: int
    engine: str
    version: str
    serving: PlannedEngine
    groups: tuple[PlannedGroup, ...]
    pool: IPv4Network
    memory_utilization: float
    args: Mapping[str, str]

    @property
    def description(self) -> str:
        """One line for the top of the file."""
        count = len(self.nodes)
        serves = "serves" if count == 1 else "serve"
        return f"{self.topology.description(count)} that {serves} {self.model}"

    @property
    def nccl(self) -> str:
        """The oldest NCCL that works, empty if any does."""
        return "" if self.topology.reaches_all else ROUTED_FROM

    @property
    def topology(self) -> TopologyKind:
        """The kind of its topology."""
        return TOPOLOGIES[self.kind]
