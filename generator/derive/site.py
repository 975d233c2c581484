"""The whole site, its parts and their nodes, from a declaration without errors."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any

from generator import services
from generator.catalogs.engines import ENGINE_TRAITS
from generator.derive import environment, files
from generator.derive.container import TIMES, container, times
from generator.derive.files import home
from generator.derive.image import image_build
from generator.derive.serving import engine_of, model_of
from generator.derive.switches import switch_setups
from generator.fabric.addressing import Fabric, FabricInterface, Port
from generator.fabric.nccl import connections
from generator.fabric.routes import Route, routes
from generator.fabric.shapes import islands
from generator.fabric.subsets import ends_of, group_kind, of_nodes
from generator.fabric.topologies import RING, TOPOLOGIES
from generator.fit.assessment import held_share
from generator.fit.formulas import GIB, SYSTEM_BYTES
from generator.hardware import HALVES
from generator.records import made_of, record, replace
from generator.services import PROXY
from generator.settings.flags import EngineSettings
from generator.settings.values import Argument
from generator.site import (
    Bandwidth,
    Container,
    ControlPlane,
    Engine,
    HostEntry,
    Link,
    Member,
    Model,
    Node,
    Part,
    Rank,
    Site,
    Variables,
    Words,
)
from generator.site.complete import CompleteDeclaration, CompletePart
from generator.site.control_plane import control_planes, links, on_management
from generator.site.service import Service
from generator.sitefile.declaration import DeclaredEngine, DeclaredNode, Topology

if TYPE_CHECKING:
    from generator.site.job import Job

# NVIDIA's threshold for a healthy cable.
LINK_GBIT_S = 184
# One half, both ways at once: a healthy one has 213, a degraded one 119 or 26, and no error counter
# shows it (measured on a ring of eight).
HALF_GBIT_S = 190
TEST_NCCL = "2.30.7"


def derive(declared: CompleteDeclaration, file: str) -> Site:
    """The site of a declaration without errors; `file` is the site file's name."""
    beside = services.requested(declared.services, declared.nodes, declared.pins, declared.access)
    site = _derived(declared, file, beside)
    if not declared.jobs:
        return site
    return replace(site, jobs=tuple(_jobs(declared, file, site, beside)))


def _jobs(
    declared: CompleteDeclaration, file: str, site: Site, beside: Mapping[str, Service]
) -> "Iterator[Job]":
    """Each job, with the network that its nodes form on their own."""
    from generator.derive.jobs import job

    by_name = {node.name: node for node in declared.nodes}
    for each in declared.jobs:
        names = each.nodes or tuple(by_name)
        kind = group_kind(declared.fabric, names) or declared.topology.kind
        alone = replace(
            declared,
            nodes=tuple(by_name[name] for name in names),
            fabric=of_nodes(declared.fabric, names),
            topology=replace(declared.topology, kind=kind),
            groups=(),
        )
        network = _whole(alone, file, (), beside)
        yield job(each, network, site, declared.sources, declared.pins)


def _derived(declared: CompleteDeclaration, file: str, beside: Mapping[str, Service]) -> Site:
    """The same without its jobs."""
    if isinstance(declared, CompletePart):
        return _part(declared, file, beside, beside, _Place())
    configured = _configured(declared.groups)
    # Of groups that take turns, only one at a time runs on a node.
    serving = Counter(n.name for group in declared.groups if group.is_active for n in group.nodes)
    # Services that each group has for itself.
    own = {name: service for name, service in beside.items() if service.IS_OF_GROUPS}
    groups = tuple(
        _part(group, file, own, beside, _Place(group.group, earlier, configured, shares, held))
        for group, earlier in _with_earlier(declared.groups)
        for shares in [any(serving[node.name] > 1 for node in group.nodes)]
        for held in [_held_by_others(group, declared.groups) if shares else 0.0]
    )
    return _whole(declared, file, groups, beside)


@record
class _Place:
    """A group among others: its name, the groups before it on its nodes, and the nccl.conf of each.

    `held` is the largest share that the other groups and the system may hold on any of its nodes.
    """

    group: str = ""
    earlier: Mapping[str, Words] = {}
    configured: Mapping[str, str] = {}
    shares_a_node: bool = False
    held: float = 0.0

    def has_nccl_conf(self, node: str) -> bool:
        """Whether the node's nccl.conf is for this group."""
        return self.configured.get(node, self.group) == self.group


def _pool(declared: CompletePart) -> Mapping[str, Argument]:
    """The size of the KV cache for an engine that shares its node.

    With a share alone, an engine sizes its cache by what the others hold at that moment. The share
    is written anyway: the engine doesn't start unless that much is free (vLLM,
    vllm/v1/worker/utils.py, `request_memory`). SGLang's cache is limited in tokens, to as many as
    its share has room for.
    """
    traits, memory = ENGINE_TRAITS[declared.engine.name], declared.memory
    if traits.tokens_flag and memory and memory.pool_tokens:
        return {traits.tokens_flag: str(memory.pool_tokens)}
    flag = traits.pool_flag
    is_given = flag in declared.engine.settings or declared.model.kv_cache_gib is not None
    if not flag or is_given or memory is None or not memory.nodes:
        return {}
    room = min(node.kv_room_gib for node in memory.nodes)
    return {flag: str(int(room * _MIB_IN_GIB) << 20)}


_MIB_IN_GIB = 1024


def _held_by_others(group: CompletePart, groups: Sequence[CompletePart]) -> float:
    """The largest share of any of its nodes that others and the system may hold; 0 if it is alone.

    All others count, in whatever order they were started; of those that take turns, the one that
    holds the most.
    """
    names = {node.name for node in group.nodes}
    most: dict[str, dict[str, float]] = {name: {} for name in names}
    for other in groups:
        if other.slot == group.slot:
            continue
        for name in names.intersection(node.name for node in other.nodes):
            held = held_share(
                other.engine.name, other.engine.memory_utilization, other.memory, name
            )
            most[name][other.slot] = max(held, most[name].get(other.slot, 0.0))
    return max(
        sum(most[node.name].values()) + (SYSTEM_BYTES / GIB + node.other_gib) / node.visible_gib
        if most[node.name]
        else 0.0
        for node in group.nodes
    )


def _configured(groups: Sequence[CompletePart]) -> Mapping[str, str]:
    """The group that each node's nccl.conf is for: the first of those with the most nodes."""
    largest_first = sorted(groups, key=lambda group: -len(group.nodes))
    return {node.name: group.group for group in reversed(largest_first) for node in group.nodes}


def _with_earlier(
    groups: Sequence[CompletePart],
) -> Iterator[tuple[CompletePart, Mapping[str, Words]]]:
    """Each group, with the earlier groups in the list that may run beside it on each node."""
    known: dict[str, Words] = {}
    for group in groups:
        earlier = {
            node.name: tuple(o for o in known.get(node.name, ()) if o not in group.alternatives)
            for node in group.nodes
        }
        yield group, earlier
        for node in group.nodes:
            known[node.name] = (*known.get(node.name, ()), group.group)


def _whole(
    declared: CompleteDeclaration, file: str, groups: Sequence[Part], beside: Mapping[str, Service]
) -> Site:
    """A site of groups or without an engine: its machines, with all of their ports."""
    fabric, topology = declared.fabric, declared.topology
    hosts = _hosts(declared.nodes, fabric)
    ways = _routes(topology, declared.nodes, fabric)
    configured = _configured(declared.groups)
    members = {(node.name, group.group): node for group in groups for node in group.nodes}
    idle = _idle(declared, beside)
    is_one_network = not groups and len({each.head for each in idle.values()}) == 1
    nodes = []
    for rank, node in enumerate(declared.nodes):
        # As its engine has it, or without one, as jobs do that people start.
        known = members.get((node.name, configured.get(node.name, ""))) or idle[node.name]
        interfaces, routes_of = fabric.interfaces[node.name], ways.get(node.name, ())
        control = known.control
        if node.management and not is_one_network:
            control = on_management(node.management)
        nodes.append(
            made_of(
                Node,
                node,
                rank=rank,
                interfaces=interfaces,
                control=control,
                nccl=known.nccl,
                login=known.login,
                hosts=hosts(interfaces, routes_of),
                routes=routes_of,
            )
        )
    return Site(
        **_described(declared, file),
        nodes=tuple(nodes),
        services=beside,
        times=groups[0].times if groups else TIMES,
        test_nccl=groups[0].test_nccl if groups else f"{TEST_NCCL}-1",
        groups=tuple(groups),
    )


@record
class _Idle:
    """What a node has for jobs that people start, if no engine serves on it.

    `head` is the first node that its cables lead to.
    """

    head: str
    control: ControlPlane
    nccl: Mapping[str, str]
    login: Mapping[str, str]


def _idle(declared: CompleteDeclaration, beside: Mapping[str, Service]) -> Mapping[str, _Idle]:
    """Each node as part of the network that its own cables form."""
    found = {}
    ends = [ends_of(cable) for cable in declared.fabric.cables]
    for island in islands([node.name for node in declared.nodes], ends):
        own = replace(
            declared,
            nodes=tuple(node for node in declared.nodes if node.name in island.names),
            fabric=of_nodes(declared.fabric, island.names),
            topology=replace(declared.topology, kind=island.kind),
        )
        controls = control_planes(own.nodes, declared.fabric, own.topology)
        nccl = _nccl(own, beside)
        for node, control in zip(own.nodes, controls, strict=True):
            # Also those of a node alone, whose cable leads to a machine that is no node.
            interfaces = declared.fabric.interfaces[node.name]
            login = environment.control_plane(control, controls[0].address)
            found[node.name] = _Idle(
                island.names[0],
                control,
                environment.nccl(own.topology, interfaces, control, nccl),
                login if interfaces else {},
            )
    return found


def _part(
    declared: CompletePart,
    file: str,
    own: Mapping[str, Service],
    beside: Mapping[str, Service],
    place: _Place,
) -> Part:
    """A site of one engine, or a group in that form; most services belong to the whole site."""
    nodes, model, engine = _group(declared, beside, place)
    return made_of(
        Part,
        declared,
        **_described(declared, file, place.group),
        nodes=nodes,
        model=model,
        engine=engine,
        services=own,
        times=times(declared.engine),
        test_nccl=_test_nccl(declared.engine),
        image_build=image_build(declared.engine, declared.sources),
        groups=(),
        group=place.group,
        written=declared.place,
    )


def _described(declared: CompleteDeclaration, file: str, group: str = "") -> dict[str, Any]:
    """What a site, and a part of one, has from its declaration; switches are the whole site's."""
    identity, topology, fabric = declared.identity, declared.topology, declared.fabric
    return {
        "name": identity.name,
        "file": file,
        "description": identity.description,
        "kind": topology.kind,
        "mtu": fabric.mtu,
        "renderer": topology.renderer,
        "subnets": tuple(fabric.members),
        "cables": fabric.cables,
        "bandwidth": _bandwidth(topology, len(declared.nodes)),
        "switch_setups": () if group else switch_setups(topology, fabric, declared.services),
        "uplinks": tuple(Port(e.name, int(e.port[1:])) for e in topology.uplinks if not group),
        "jobs": (),
    }


def _test_nccl(engine: DeclaredEngine) -> str:
    """The release that the bandwidth test is built with; no repository has a patched build.

    NCCL's tags append the package revision to the version: v2.30.7-1.
    """
    release = TEST_NCCL if engine.nccl_patched else engine.nccl or TEST_NCCL
    return release if "-" in release else f"{release}-1"


def _bandwidth(topology: Topology, nodes: int) -> Bandwidth:
    nccl = TOPOLOGIES[topology.kind].bus_bandwidth(nodes)
    used = [half for half in topology.halves if half in topology.rdma_halves]
    return Bandwidth(
        nccl * len(used) / len(HALVES),
        round(LINK_GBIT_S * len(topology.halves) / len(HALVES)),
        HALF_GBIT_S,
    )


def _group(
    declared: CompletePart, beside: Mapping[str, Service], place: _Place
) -> tuple[tuple[Member, ...], Model, Engine]:
    """Nodes that serve one model together, in the order of their ranks, and what they serve."""
    nodes, fabric, topology = declared.nodes, declared.fabric, declared.topology
    controls = control_planes(nodes, fabric, topology)
    model = model_of(declared.model, declared.engine, declared.source, declared.commits)
    at_head = (nodes, controls[0], fabric.interfaces[nodes[0].name])
    engine = engine_of(
        declared.engine,
        *at_head,
        # Between clients and the API, on the API's node.
        is_behind_proxy=getattr(beside.get(PROXY), "node", None) == nodes[0].name,
        group=place.group,
        held_by_others=place.held,
    )
    members = _Members(
        declared,
        place,
        model,
        engine,
        declared.engine.settings.beside(_pool(declared) if place.shares_a_node else {}),
        _nccl(declared, beside),
        controls,
        links(nodes, fabric, controls),
        _routes(topology, nodes, fabric),
        _hosts(nodes, fabric),
    )
    return tuple(members.node(index) for index in range(len(nodes))), model, engine


def _nccl(declared: CompleteDeclaration, beside: Mapping[str, Service]) -> Mapping[str, str]:
    """NCCL's variables that are the same on all nodes: those of services, and of the fabric."""
    of_services = {name: value for s in beside.values() for name, value in s.nccl().items()}
    found = connections(declared.fabric, declared.topology.rdma_halves)
    return of_services | found.settings


@record
class _Members:
    """What the nodes of a group have in common, and each node by its place among them."""

    declared: CompletePart
    place: _Place
    model: Model
    engine: Engine
    settings: EngineSettings
    nccl: Mapping[str, str]
    controls: Sequence[ControlPlane]
    links: tuple[Link, ...]
    routes: Mapping[str, tuple[Route, ...]]
    hosts: Callable[[Sequence[FabricInterface], Sequence[Route]], tuple[HostEntry, ...]]

    def node(self, index: int) -> Member:
        """The node of a rank."""
        declared, node = self.declared, self.declared.nodes[index]
        interfaces = declared.fabric.interfaces[node.name]
        variables = self._variables(index)
        ways = self.routes.get(node.name, ())
        return made_of(
            Member,
            node,
            rank=index,
            interfaces=interfaces,
            control=self.controls[index],
            link=self.links[index - 1] if index else None,
            nccl=environment.nccl_part(variables),
            environment=environment.plain_part(variables),
            raw_environment=environment.raw_part(variables),
            login=environment.login_part(variables),
            container=self._container(index),
            hosts=self.hosts(interfaces, ways),
            routes=ways,
            carried=files.carried(declared.engine.given_files, declared.sources, node.name),
            placed=files.placed(declared.engine.files, node.name),
            starts_after=self.place.earlier.get(node.name, ()),
        )

    def _rank(self, index: int) -> Rank:
        nodes, head = self.declared.nodes, self.controls[0].address
        own, gib = self.controls[index].address, nodes[index].visible_gib
        return Rank(index, len(nodes), own, head, self.links, gib)

    def _variables(self, index: int) -> tuple[Variables, ...]:
        """The derived variables of a node, with the site's own in their place."""
        declared, node = self.declared, self.declared.nodes[index]
        groups = environment.derived(
            self._rank(index),
            self.controls[index],
            declared.fabric.interfaces[node.name],
            declared.topology,
            self.engine,
            None if self.model.file else self._hub(node),
            self.nccl,
            has_vocabularies=bool(self.model.vocabularies),
            offload=self.model.kv_offload,
        )
        return environment.with_overrides(groups, declared.engine.environment.on(node.name))

    def _container(self, index: int) -> Container:
        """The container of the engine on a node."""
        declared, node = self.declared, self.declared.nodes[index]
        return container(
            *(self._rank(index), self.engine, self.model, self.settings, self._hub(node)),
            *(declared, node, self.place.has_nccl_conf(node.name)),
        )

    def _hub(self, node: DeclaredNode) -> str:
        """The Hugging Face cache on a node."""
        return self.declared.model.cache or f"{home(node.user)}/.cache/huggingface"


def _routes(
    topology: Topology, nodes: Sequence[DeclaredNode], fabric: Fabric
) -> Mapping[str, tuple[Route, ...]]:
    """The routes of each node of a ring, empty if the site requests none."""
    if not topology.routes:
        return {}
    found: dict[str, tuple[Route, ...]] = {}
    for island in islands([node.name for node in nodes], fabric.pairs):
        if island.kind == RING:
            own = of_nodes(fabric, island.names)
            found |= routes(own, TOPOLOGIES[RING].order(island.names, own.pairs))
    return found


def _hosts(
    nodes: Sequence[DeclaredNode], fabric: Fabric
) -> Callable[[Sequence[FabricInterface], Sequence[Route]], tuple[HostEntry, ...]]:
    """The names and addresses that a node can reach; nodes on the same subnets share one list."""
    management = tuple(
        (str(node.management.address.ip), node.name) for node in nodes if node.management
    )
    bare = {node.name for node in nodes if not node.management}

    @cache
    def reachable(subnets: tuple[IPv4Network, ...]) -> tuple[HostEntry, ...]:
        peers = [peer for subnet in subnets for peer in fabric.members[subnet]]
        first = {peer.node: peer.address for peer in reversed(peers)}
        return (
            *management,
            *((first[node.name], node.name) for node in nodes if node.name in first.keys() & bare),
            *((peer.address, f"{peer.node}.{peer.half}") for peer in peers),
        )

    def entries(
        interfaces: Sequence[FabricInterface], ways: Sequence[Route]
    ) -> tuple[HostEntry, ...]:
        across = tuple((str(route.to), f"{route.node}.{route.half}") for route in ways)
        return reachable(tuple(i.address.network for i in interfaces)) + across

    return entries
