"""Makes the site of a sound declaration: ranks, addresses, environment, command lines."""

from collections.abc import Callable, Sequence
from functools import cache
from ipaddress import IPv4Network
from typing import TypedDict

from generator import environment, services
from generator.addressing import Fabric, FabricInterface
from generator.container import TIMES, container
from generator.control import control_planes, links
from generator.declaration import (
    Declaration,
    DeclaredEngine,
    DeclaredModel,
    DeclaredNode,
    Topology,
)
from generator.fit.assessment import Fit, assess
from generator.hardware import HALVES
from generator.serving import engine_of, model_of
from generator.site import Bandwidth, Engine, HostEntry, Model, Node, Rank, Site

# NVIDIA's own thresholds for a healthy cluster: NCCL bus bandwidth, and one cable.
LINK_GBIT_S = 184
TEST_NCCL = "2.30.7"
NCCL_GB_S = {"single": 0.0, "direct": 21.8, "switch": 21.8, "ring": 10.0}


def derive(declaration: Declaration, fabric: Fabric, file: str) -> Site:
    """The site of a declaration without errors; `file` is the site file's name."""
    identity, topology = declaration.identity, declaration.topology
    nodes, engine, model = declaration.nodes, declaration.engine, declaration.model
    assert identity
    assert topology
    assert nodes
    assert engine
    assert model
    return Site(
        name=identity.name,
        file=file,
        description=identity.description,
        kind=topology.kind,
        mtu=topology.mtu,
        renderer=topology.renderer,
        subnets=tuple(fabric.members),
        cables=fabric.cables,
        **_group(nodes, fabric, topology, engine, model, "qos" in (declaration.services or ())),
        services=tuple(sorted(declaration.services or ())),
        web_ui=services.web_ui(declaration.services or {}, nodes[0]),
        guard=services.guard(declaration.services or {}),
        monitoring=services.monitoring(declaration.services or {}),
        bandwidth=_bandwidth(topology),
        times=TIMES,
        test_nccl=_test_nccl(engine),
    )


def _test_nccl(engine: DeclaredEngine) -> str:
    """The release that the bandwidth test is built with; a patched build is in no repository.

    NCCL's tags have the number of the package behind the version: v2.30.7-1.
    """
    release = TEST_NCCL if engine.nccl_patched else engine.nccl or TEST_NCCL
    return release if "-" in release else f"{release}-1"


def _bandwidth(topology: Topology) -> Bandwidth:
    share = len(topology.halves) / len(HALVES)
    return Bandwidth(NCCL_GB_S[topology.kind] * share, round(LINK_GBIT_S * share))


class _Group(TypedDict):
    nodes: tuple[Node, ...]
    model: Model
    engine: Engine
    memory: Fit | None


def _group(
    nodes: Sequence[DeclaredNode],
    fabric: Fabric,
    topology: Topology,
    declared: DeclaredEngine,
    declared_model: DeclaredModel,
    qos: bool,
) -> _Group:
    """Nodes that serve one model together, in the order of their ranks."""
    controls = control_planes(nodes, fabric, topology)
    model = model_of(declared_model)
    engine = engine_of(declared, nodes[0], controls[0], fabric.interfaces[nodes[0].name])
    hosts = _hosts(nodes, fabric)
    shared = links(nodes, fabric)
    memory = assess(nodes, declared_model, declared)
    members = []
    for index, (node, control) in enumerate(zip(nodes, controls, strict=True)):
        head = controls[0].address
        rank = Rank(index, len(nodes), control.address, head, shared, node.visible_gib)
        interfaces = fabric.interfaces[node.name]
        hub = declared_model.cache or f"{_home(node.user)}/.cache/huggingface"
        read = None if model.file else hub
        groups = environment.derived(rank, control, interfaces, topology, engine, read, qos)
        variables = environment.with_overrides(groups, declared.env)
        members.append(
            Node(
                name=node.name,
                rank=index,
                host=node.host,
                user=node.user,
                memory_gb=node.memory_gb,
                visible_gib=node.visible_gib,
                management=node.management,
                interfaces=interfaces,
                control=control,
                link=shared[index - 1] if index else None,
                nccl=environment.nccl_part(variables),
                environment=variables,
                login=environment.login_part(variables),
                container=container(
                    rank, engine, model, declared.args, hub, bool(interfaces), memory
                ),
                hosts=hosts(interfaces),
            )
        )
    return {"nodes": tuple(members), "model": model, "engine": engine, "memory": memory}


def _hosts(
    nodes: Sequence[DeclaredNode], fabric: Fabric
) -> Callable[[Sequence[FabricInterface]], tuple[HostEntry, ...]]:
    """Names and addresses that a node can reach; nodes on the same subnets share one list."""
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

    return lambda interfaces: reachable(tuple(i.address.network for i in interfaces))


def _home(user: str) -> str:
    return "/root" if user == "root" else f"/home/{user}"
