"""Which engines run on the nodes, and the ranks of each."""

import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Interface
from itertools import count

from generator.adoption.captures import serves
from generator.adoption.command import Command, find
from generator.adoption.found import FoundNode
from generator.adoption.text import is_open
from generator.catalogs.engines import ENGINE_TRAITS
from generator.hardware import FABRIC_HALVES
from generator.records import record, replace

_SPLITS = (
    ("tensor-parallel-size", "tp-size", "tensor_parallel_size"),
    ("pipeline-parallel-size", "pp-size", "pipeline_parallel_size"),
    ("data-parallel-size", "dp-size"),
)
DATA_PARALLEL_ATTENTION = "enable-dp-attention"
_PUBLISH = ("p", "publish")
_ADDRESS = re.compile(r"(?<![\d.])\d+\.\d+\.\d+\.\d+(?![\d.])")


@record
class RunningEngine:
    """An engine: its head's command, and its nodes by rank, each with its own command."""

    head: Command
    ranks: tuple[tuple[str, Command | None], ...]

    @property
    def names(self) -> list[str]:
        """Its nodes, the head first."""
        return [name for name, _ in self.ranks]

    @property
    def is_full(self) -> bool:
        """Whether all of its ranks are known."""
        return len(self.ranks) >= size(self.head)

    def joined(self, node: str, command: Command | None = None) -> "RunningEngine":
        """The engine with one more rank."""
        first, *others = (*self.ranks, (node, command))
        others.sort(key=lambda one: one[1].rank if one[1] else 1)
        return replace(self, ranks=(first, *others))


def size(command: Command | None) -> int:
    """The number of nodes that a command is for."""
    if command is None:
        return 1
    if nodes := command.entry("nnodes"):
        return int(nodes.value) if str(nodes.value).isdecimal() else 1
    product = 1
    # Attention alone may be data parallel, within the ranks of the tensors.
    for names in _SPLITS[: 2 if command.entry(DATA_PARALLEL_ATTENTION) else 3]:
        entry = command.entry(*names)
        product *= int(entry.value) if entry and str(entry.value).isdecimal() else 1
    if rpc := command.entry("rpc"):
        product = max(product, 1 + len(str(rpc.value).split(",")))
    return min(product, 244)


def is_sized(command: Command | None) -> bool:
    """Whether a command says for how many nodes it is."""
    if command is None or (command.ray and not command.served):
        return False
    stated = (command.entry(*names) for names in (("nnodes",), *_SPLITS))
    said = (*command.rest, *(entry.place for entry in stated if entry))
    return not any(is_open(word.text) for word in said)


def engines(nodes: Sequence[FoundNode]) -> list[RunningEngine]:
    """The engines, if there are several and it is known which node belongs to which; else none."""
    heads: list[RunningEngine] = []
    workers: list[tuple[FoundNode, Command]] = []
    for node in nodes:
        for command in commands_of(node):
            if command.rank:
                workers.append((node, command))
            elif command.served is None:
                return []
            elif (first := _same_job(heads, node, command)) is not None:
                heads[first] = heads[first].joined(node.name, command)
            elif not is_instead(command, [e.head for e in heads if e.names[0] == node.name]):
                heads.append(RunningEngine(command, ((node.name, command),)))
    for node, command in workers:
        mine = _meeting(heads, nodes, node, command)
        if mine is None:
            return []
        heads[mine] = heads[mine].joined(node.name, command)
    return list(_filled(heads, nodes)) if len(heads) > 1 else []


def commands_of(node: FoundNode) -> list[Command]:
    """What a node runs; a unit's `docker run` doesn't count if Docker reports what runs."""
    own = [container for container in node.containers if serves(container)]
    running = [container for container in own if "image-id" in container.options]
    found = (find(container, dict(node.programs)) for container in running or own)
    return [command for command in found if command]


def port(command: Command) -> str:
    """The port of a head's API."""
    if published := command.published:
        return published.text
    entry = command.entry("port")
    return str(entry.value if entry else ENGINE_TRAITS[command.engine].api_port)


def takes_port(command: Command) -> bool:
    """Whether a command takes its port on the node, not only on a network of its container's."""
    given = command.container.options
    is_shared = any(given[key].text == "host" for key in ("net", "network") if key in given)
    return is_shared or command.container.image is None or not given.keys().isdisjoint(_PUBLISH)


def is_instead(command: Command, others: Sequence[Command]) -> bool:
    """Whether only one of a command and others of its node runs: by its port, or by its branch."""
    mine = dict(block.split(":") for block in command.around if ":" in block)
    blocks = [block.partition(":") for one in others for block in one.around]
    is_apart = any(mine.get(condition, branch) != branch for condition, _, branch in blocks)
    return is_apart or port(command) in map(port, others)


def _same_job(heads: Sequence[RunningEngine], node: FoundNode, command: Command) -> int | None:
    """The engine of a rank whose command doesn't say so, as Slurm starts all ranks alike."""
    if size(command) < 2 or command.entry("node-rank"):
        return None
    own = [w.text for w in command.container.words]
    for number, engine in enumerate(heads):
        is_alike = [w.text for w in engine.head.container.words] == own
        if is_alike and node.name not in engine.names and not engine.is_full:
            return number
    return None


def _meeting(
    heads: Sequence[RunningEngine], nodes: Sequence[FoundNode], node: FoundNode, command: Command
) -> int | None:
    """The engine of a worker: whose head it names, or whose head names it."""
    by_name = {one.name: one for one in nodes}
    own, named = _addresses(node), set(_named(command))
    fitting = [
        number
        for number, engine in enumerate(heads)
        if engine.head.engine == command.engine
        and size(engine.head) > 1
        and node.name not in engine.names
        and (_addresses(by_name[engine.names[0]]) & (named - own) or own & set(_named(engine.head)))
    ]
    ports = {"master-port", "dist-init-addr"}
    alike = [
        number
        for number in fitting
        if all(
            str(entry.value) == str(there.value)
            for entry in command.entries
            if entry.name in ports and (there := heads[number].head.entry(entry.name))
        )
    ]
    return next(iter(alike or fitting), None)


def _named(command: Command) -> Iterator[str]:
    """The addresses in a command and its variables."""
    container = command.container
    for word in (*container.words, *(variable.value for variable in container.env)):
        yield from _ADDRESS.findall(word.text)


def _addresses(node: FoundNode) -> set[str]:
    """The addresses of a node."""
    words = [word for interface in node.interfaces for word in interface.addresses]
    words += [node.management] if node.management else []
    return {word.text.partition("/")[0] for word in words}


def _filled(heads: Sequence[RunningEngine], nodes: Sequence[FoundNode]) -> Iterator[RunningEngine]:
    """The engines, with idle nodes for missing ranks, and names for the rest."""
    by_name = {node.name: node for node in nodes}
    busy = {name for engine in heads for name in engine.names}
    idle = [node for node in nodes if node.name not in busy]
    spare = (f"spark{n}" for n in count(1) if f"spark{n}" not in by_name)
    for head in heads:
        engine, subnets = head, _subnets(by_name[head.names[0]])
        while not engine.is_full:
            # Nodes on its cables come first.
            idle.sort(key=lambda node: not subnets & _subnets(node))
            engine = engine.joined(idle.pop(0).name if idle else next(spare))
        yield engine


def _subnets(node: FoundNode) -> set[str]:
    """The subnets of a node's ports."""
    return {
        str(IPv4Interface(word.text).network)
        for interface in node.interfaces
        if interface.name in FABRIC_HALVES
        for word in interface.addresses
    }
