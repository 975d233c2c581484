"""A site file to start from: what is known of a cluster, as text that validates."""

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from itertools import chain, islice, product

from generator import catalogs
from generator.bundle.templates import printed
from generator.catalogs.advice import advised_flags, advised_parsers
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.engines.traits import NewSiteDefaults
from generator.diagnostics import listed, weight
from generator.fabric.topologies import SWITCH, TOPOLOGIES
from generator.hardware import PORTS, RJ45
from generator.pipeline import Reading, read_site
from generator.records import record, replace
from generator.scaffold.discovery import Discovery
from generator.scaffold.guessing import guesses
from generator.scaffold.plan import (
    Plan,
    PlannedCable,
    PlannedEngine,
    PlannedGroup,
    PlannedNode,
    Request,
)
from generator.sitefile.declaration import FIRST_HOST
from generator.sitefile.defaults import default

MODEL = "gpt-oss-120b"
CONTEXT_LENGTH = 32768
GROUP = "chat"
# The folder of the example weights on the head.
MODEL_FILES = "/srv/models"
OTHER_POOLS = (IPv4Network("172.28.0.0/16"), IPv4Network("10.200.0.0/16"))
# The network of example addresses, for nodes whose own are not known.
EXAMPLES = IPv4Network("10.0.0.0/24")
# The engines offered for a new site: version and image.
ENGINES: Mapping[str, NewSiteDefaults] = {
    name: traits.start for name, traits in ENGINE_TRAITS.items() if traits.start
}


class ScaffoldError(Exception):
    """No site file can be made from this; the message says why, in one line."""


@record
class Scaffold:
    """A site file to start from: its text, its reading, and what in it is only a guess."""

    text: str
    reading: Reading
    schema: str
    guesses: tuple[str, ...]


def scaffold(request: Request) -> Scaffold:
    """A site file for what is requested; it has no site if that isn't possible."""
    discovered, engine = request.plugged, request.engine
    known = catalogs.checkpoint(request.model)
    if known is None:
        near = catalogs.near_checkpoints(request.model)[:6]
        guess = f"did you mean {listed(map(repr, near))}?" if near else ""
        raise ScaffoldError(
            f"no model of the catalog is called '{request.model}'; "
            f"{guess or 'sparkgen models lists them'}"
        )
    start = ENGINES[engine]
    groups = tuple(_groups(request, start))
    plan = Plan(
        kind=request.kind,
        name=request.name,
        user=request.user or default("user"),
        schema=request.schema,
        nodes=tuple(_nodes(discovered)),
        cables=tuple(_cables(request.kind, discovered, groups)),
        model=known.name,
        file=f"{MODEL_FILES}/{known.name}.gguf" if ENGINE_TRAITS[engine].reads_gguf else "",
        context_length=min(known.max_context or CONTEXT_LENGTH, CONTEXT_LENGTH),
        engine=engine,
        version=start.version,
        serving=_engine(start, len(discovered)),
        groups=groups,
        pool=_pool(discovered.values()),
        memory_utilization=default("engine.memory_utilization"),
        args={**start.args, **_args(engine, start.version, known.architecture)},
    )
    text, reading = _best(plan, request.file)
    return Scaffold(text, reading, plan.schema, tuple(guesses(request, plan)))


def _engine(start: NewSiteDefaults, nodes: int) -> PlannedEngine:
    several = nodes > 1
    return PlannedEngine(
        image=(several and start.ranks_image) or start.image,
        is_image_made=start.is_made and (several or not start.ranks_image),
        launcher=start.launcher if several else "",
        layout="",
    )


def _groups(request: Request, start: NewSiteDefaults) -> Iterator[PlannedGroup]:
    """The groups, with the nodes in their order; groups of the same size are replicas."""
    names = iter(request.discovered)
    first: dict[int, str] = {}
    for index, size in enumerate(request.groups):
        name = GROUP if index == 0 else f"{GROUP}-{index + 1}"
        like = first.setdefault(size, name)
        nodes = tuple(islice(names, size))
        yield PlannedGroup(name, nodes, like if like != name else "", _engine(start, size))


def kind_of(discovered: Mapping[str, Discovery]) -> str:
    """The topology of this many nodes, if none is given."""
    for name, kind in TOPOLOGIES.items():
        if len(discovered) <= kind.assumed_for:
            return name
    most = TOPOLOGIES[SWITCH].most
    raise ScaffoldError(f"{len(discovered)} nodes; a {SWITCH} takes up to {most}")


def _best(plan: Plan, file: str) -> tuple[str, Reading]:
    """The text whose layout has the fewest findings, preferring tensor parallelism."""
    made = []
    sizes = {len(group.nodes) for group in plan.groups} or {len(plan.nodes)}
    for layouts in product(*(_layouts(size) for size in sizes)):
        chosen = dict(zip(sizes, layouts, strict=True))
        text = printed("site.yaml", plan=_laid_out(plan, chosen))
        reading = read_site(file, text.encode())
        if not reading.findings:
            return text, reading
        made.append((text, reading))
    return min(made, key=lambda pair: weight(pair[1].findings))


def _laid_out(plan: Plan, layouts: Mapping[int, str]) -> Plan:
    """The plan with the given layout for each number of nodes."""
    if not plan.groups:
        return replace(plan, serving=replace(plan.serving, layout=layouts[len(plan.nodes)]))
    groups = (
        replace(group, engine=replace(group.engine, layout=layouts[len(group.nodes)]))
        for group in plan.groups
    )
    return replace(plan, groups=tuple(groups))


def _layouts(count: int) -> Iterator[str]:
    for tensor in (size for size in range(count, 0, -1) if count % size == 0):
        sizes = {"tensor": tensor, "pipeline": count // tensor}
        yield ", ".join(f"{name}: {size}" for name, size in sizes.items() if size > 1 or count == 1)
    yield f"data: {count}"


def _nodes(discovered: Mapping[str, Discovery]) -> Iterator[PlannedNode]:
    known = [found.address for found in discovered.values() if found.address]
    network = known[0].network if known else EXAMPLES
    taken = {address.ip for address in known}
    for index, (name, found) in enumerate(discovered.items()):
        address = found.address
        if address is None:
            free = _free(network, FIRST_HOST + index, taken)
            if free is None:
                raise ScaffoldError(f"{network} has no address for {name}: give --from for it too")
            taken.add(free)
            address = IPv4Interface((free, network.prefixlen))
        yield PlannedNode(name, found.interface or RJ45, str(address), found.address is not None)


def _free(network: IPv4Network, host: int, taken: Container[IPv4Address]) -> IPv4Address | None:
    """A network's host with this number, or else its first free one."""
    wanted = (network[host],) if host < network.num_addresses - 1 else ()
    hosts = chain(wanted, network.hosts())
    return next((address for address in hosts if address not in taken), None)


def _cables(
    kind: str, discovered: Mapping[str, Discovery], groups: Sequence[PlannedGroup]
) -> Iterator[PlannedCable]:
    names, topology = list(discovered), TOPOLOGIES[kind]
    surveyed = [found for found in discovered.values() if found.linked]
    joined = [group.nodes for group in groups if topology.groups_alone and len(group.nodes) > 1]
    for a, b in topology.pairs(names) or joined:
        # A node of which nothing is known has its cable where the other one does.
        alike = topology.uses_same_port
        used = [_first(discovered[name], *surveyed) for name in (a, b)] if alike else (0, 1)
        yield _cable(discovered, (a, used[0]), (b, used[1]))
    if topology.switched:
        common = _common(list(discovered.values()))
        for index, (name, port) in enumerate((n, p) for n in names for p in common):
            yield PlannedCable(
                f"{name}:p{port}", f"switch:{index + 1}", _down(discovered, name, port)
            )


def _cable(discovered: Mapping[str, Discovery], *ends: tuple[str, int]) -> PlannedCable:
    a, b = (f"{name}:p{port}" for name, port in ends)
    down = [_down(discovered, name, port) for name, port in ends]
    return PlannedCable(a, b, " and ".join(filter(None, down)))


def _down(discovered: Mapping[str, Discovery], name: str, port: int) -> str:
    linked = discovered[name].linked
    return "" if linked is None or port in linked else f"{name}:p{port}"


def _first(*found: Discovery) -> int:
    """The left port, unless only the right one has a link; of the first node with a link."""
    return min(next((each.linked for each in found if each.linked), PORTS))


def _common(found: Sequence[Discovery]) -> list[int]:
    """The ports with a link on every node; the left one if there are none."""
    linked = [each.linked for each in found if each.linked is not None]
    common = set(PORTS).intersection(*linked) if linked else {PORTS[0]}
    return sorted(common) or [PORTS[0]]


def _pool(found: Iterable[Discovery]) -> IPv4Network:
    """The first pool that overlaps no network that a node is in."""
    used = [network for each in found for network in each.networks]
    usual = IPv4Network(default("topology.subnet_pool"))
    free = (
        pool
        for pool in (usual, *OTHER_POOLS)
        if not any(pool.overlaps(network) for network in used)
    )
    return next(free, usual)


def _args(engine: str, version: str, architecture: catalogs.Architecture) -> dict[str, str]:
    """The flags recommended for the model, and its parsers, if the engine uses those names."""
    advised = advised_flags(architecture, engine, version)
    flags = {**advised, **advised_parsers(architecture, engine)}
    return {name: json.dumps(value).strip('"') for name, value in flags.items()}
