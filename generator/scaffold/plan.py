"""What is asked for, and the site file that is planned from it."""

from collections.abc import Mapping
from ipaddress import IPv4Network

from generator.fabric.topologies import TOPOLOGIES
from generator.fabric.topologies.kind import TopologyKind
from generator.records import record
from generator.scaffold.discovery import Survey


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
    """What is asked for, or known, of a site in `file`; `surveys` are in the order of ranks.

    `user` and `ports`, those of each node that have a cable, are None where nobody said. `schema`
    is where the JSON Schema lies, from the site file. `said` are the names of what somebody said,
    so that it is no guess. `groups` are the numbers of nodes that serve together, none where all
    do.
    """

    file: str
    kind: str
    surveys: Mapping[str, Survey]
    name: str
    engine: str
    model: str
    user: str | None
    ports: tuple[int, ...] | None
    schema: str
    said: frozenset[str]
    groups: tuple[int, ...] = ()

    @property
    def plugged(self) -> Mapping[str, Survey]:
        """The surveys, with the ports that somebody said where no node told its own."""
        topology = TOPOLOGIES[self.kind]
        by_port = topology.plugged_alike
        if self.ports is None or not by_port or any(s.linked for s in self.surveys.values()):
            return self.surveys
        linked = Survey(linked=frozenset(self.ports))
        return {name: survey | linked for name, survey in self.surveys.items()}


@record
class PlannedEngine:
    """The engine of so many nodes; `layout` is what stands in `engine.parallel`."""

    image: str
    is_image_made: bool
    launcher: str
    layout: str


@record
class PlannedGroup:
    """Nodes that serve together, as another group does unless they have an engine of their own."""

    name: str
    nodes: tuple[str, ...]
    like: str
    engine: PlannedEngine


@record
class Plan:
    """All that the site file says; `serving` is the engine where all nodes serve together."""

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
    args: Mapping[str, str]

    @property
    def description(self) -> str:
        """One line for the head of the file."""
        count = len(self.nodes)
        serves = "serves" if count == 1 else "serve"
        return f"{self.topology.description(count)} that {serves} {self.model}"

    @property
    def topology(self) -> TopologyKind:
        """What its kind of topology says of itself."""
        return TOPOLOGIES[self.kind]
