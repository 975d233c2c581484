"""A site file to start from: in goes what is known of a cluster, out comes text that validates."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from itertools import chain

from generator import catalogs
from generator.declaration import FIRST_HOST, SUBNET_POOL, Kind
from generator.diagnostics import did_you_mean
from generator.hardware import PORTS, RJ45
from generator.pipeline import read_site
from generator.render import printed
from generator.starter.survey import Survey

MODEL = "gpt-oss-120b"
CONTEXT_LENGTH = 32768
POOLS = (IPv4Network(SUBNET_POOL), IPv4Network("172.28.0.0/16"), IPv4Network("10.200.0.0/16"))
# Where the examples of addresses are while no node says where it is itself.
EXAMPLES = IPv4Network("10.0.0.0/24")
# The engines that a start is offered with: version and image.
ENGINES: Mapping[str, tuple[str, str]] = {
    "vllm": ("0.33.0", "vllm/vllm-openai:v0.33.0"),
    "sglang": ("0.5.23", "lmsysorg/sglang:v0.5.23-cu130"),
}
# How many nodes each kind has: the fewest and the most.
SIZES: Mapping[Kind, tuple[int, int]] = {
    "single": (1, 1),
    "direct": (2, 2),
    "ring": (3, 3),
    "switch": (2, 244),
}


class StarterError(Exception):
    """No site file can be made of that; says why in one line."""


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node of the site file; `is_known` unless its address is only an example."""

    name: str
    interface: str
    address: str
    is_known: bool


@dataclass(frozen=True, slots=True)
class PlannedCable:
    """A cable; `down` is the end that had no link when its node was asked."""

    a: str
    b: str
    down: str


@dataclass(frozen=True, slots=True)
class Plan:
    """All that the site file says; `layout` is what stands in `engine.parallel`."""

    kind: Kind
    name: str
    nodes: tuple[PlannedNode, ...]
    cables: tuple[PlannedCable, ...]
    model: str
    context_length: int
    engine: str
    version: str
    image: str
    pool: IPv4Network
    layout: str
    args: Mapping[str, str]

    @property
    def description(self) -> str:
        """One line for the head of the file."""
        count = len(self.nodes)
        how = {
            "single": "One Spark",
            "direct": "Two Sparks on a cable",
            "ring": "Three Sparks in a ring",
            "switch": f"{count} Sparks on a switch",
        }
        serves = "serves" if count == 1 else "serve"
        return f"{how[self.kind]} that {serves} {self.model}"


def starter(kind: Kind, surveys: Mapping[str, Survey], name: str, engine: str, model: str) -> str:
    """The text of a site file; `surveys` holds what is known of each node, in order of ranks."""
    known = catalogs.checkpoint(model)
    if known is None:
        near = did_you_mean(model, catalogs.checkpoint_names())
        told = f"; {near}" if near else ""
        raise StarterError(f"no model of the catalog is called '{model}'{told}")
    version, image = ENGINES[engine]
    plan = Plan(
        kind=kind,
        name=name,
        nodes=tuple(_nodes(surveys)),
        cables=tuple(_cables(kind, surveys)),
        model=known.name,
        context_length=min(known.max_context or CONTEXT_LENGTH, CONTEXT_LENGTH),
        engine=engine,
        version=version,
        image=image,
        pool=_pool(surveys.values()),
        layout="",
        args=_args(engine, known.architecture),
    )
    return _sound(plan)


def kind_of(surveys: Mapping[str, Survey]) -> Kind:
    """The kind that so many nodes are joined by, if nobody says otherwise."""
    for kind, (_, most) in SIZES.items():
        if len(surveys) <= most:
            return kind
    raise StarterError(f"{len(surveys)} nodes; a switch takes up to {SIZES['switch'][1]}")


def _sound(plan: Plan) -> str:
    """The text with the first layout that nothing is wrong with, tensor parallel if it can be."""
    fault = ""
    for layout in _layouts(len(plan.nodes)):
        text = printed("site.yaml", plan=replace(plan, layout=layout))
        reading = read_site(f"{plan.name}.yaml", text.encode())
        if reading.site:
            return text
        fault = fault or reading.findings[0].message
    raise StarterError(fault)


def _layouts(count: int) -> Iterator[str]:
    for tensor in (size for size in range(count, 0, -1) if count % size == 0):
        sizes = {"tensor": tensor, "pipeline": count // tensor}
        yield ", ".join(f"{name}: {size}" for name, size in sizes.items() if size > 1 or count == 1)
    yield f"data: {count}"


def _nodes(surveys: Mapping[str, Survey]) -> Iterator[PlannedNode]:
    known = [found.address for found in surveys.values() if found.address]
    network = known[0].network if known else EXAMPLES
    taken = {address.ip for address in known}
    for index, (name, found) in enumerate(surveys.items()):
        address = found.address
        if address is None:
            free = _free(network, FIRST_HOST + index, taken)
            if free is None:
                raise StarterError(f"{network} has no address for {name}: give --from for it too")
            taken.add(free)
            address = IPv4Interface((free, network.prefixlen))
        yield PlannedNode(name, found.interface or RJ45, str(address), found.address is not None)


def _free(network: IPv4Network, host: int, taken: Container[IPv4Address]) -> IPv4Address | None:
    """A network's host of this number, or else its first one that is not taken."""
    wanted = (network[host],) if host < network.num_addresses - 1 else ()
    hosts = chain(wanted, network.hosts())
    return next((address for address in hosts if address not in taken), None)


def _cables(kind: Kind, surveys: Mapping[str, Survey]) -> Iterator[PlannedCable]:
    names = list(surveys)
    if kind == "direct":
        told = [found for found in surveys.values() if found.linked]
        # A node of which nothing is known is plugged like the other one.
        chosen = {name: _first(surveys[name], *told) for name in names}
        yield _cable(surveys, *chosen.items())
    elif kind == "ring":
        following = [*names[1:], names[0]]
        for name, other in zip(names, following, strict=True):
            yield _cable(surveys, (name, 0), (other, 1))
    elif kind == "switch":
        ports = _common(list(surveys.values()))
        for index, (name, port) in enumerate((n, p) for n in names for p in ports):
            yield PlannedCable(f"{name}:p{port}", f"switch:{index + 1}", _down(surveys, name, port))


def _cable(surveys: Mapping[str, Survey], *ends: tuple[str, int]) -> PlannedCable:
    a, b = (f"{name}:p{port}" for name, port in ends)
    down = [_down(surveys, name, port) for name, port in ends]
    return PlannedCable(a, b, " and ".join(filter(None, down)))


def _down(surveys: Mapping[str, Survey], name: str, port: int) -> str:
    linked = surveys[name].linked
    return "" if linked is None or port in linked else f"{name}:p{port}"


def _first(*found: Survey) -> int:
    """The left port, unless only the right one has a link; of the first node that has any."""
    return min(next((each.linked for each in found if each.linked), PORTS))


def _common(found: Sequence[Survey]) -> list[int]:
    """The ports that have a link on every node; the left one if there is none."""
    told = [each.linked for each in found if each.linked is not None]
    common = set(PORTS).intersection(*told) if told else {PORTS[0]}
    return sorted(common) or [PORTS[0]]


def _pool(found: Iterable[Survey]) -> IPv4Network:
    """The first pool that nobody's management network is in."""
    used = [each.address.network for each in found if each.address]
    free = (pool for pool in POOLS if not any(pool.overlaps(network) for network in used))
    return next(free, POOLS[0])


def _args(engine: str, architecture: catalogs.Architecture) -> dict[str, str]:
    """The parsers that the model's publisher advises, in vLLM's words: others have their own."""
    args: dict[str, str] = {}
    if engine != "vllm":
        return args
    if architecture.tool_call_parser:
        args |= {
            "enable-auto-tool-choice": "true",
            "tool-call-parser": architecture.tool_call_parser,
        }
    if architecture.reasoning_parser:
        args |= {"reasoning-parser": architecture.reasoning_parser}
    return args
