"""Rules about NCCL and the environment."""

import re
from collections.abc import Mapping, Sequence
from functools import cache, partial

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import versions
from generator.catalogs.nccl import BLACKWELL, LAZY, never_was, releases, releases_of
from generator.catalogs.versions import release
from generator.derive import environment
from generator.derive.serving import engine_of
from generator.diagnostics import KeyPath, Related, Replace, Severity, listed, replacements, slips
from generator.fabric.addressing import Fabric
from generator.fabric.nccl import ROUTED_FROM, connections
from generator.fabric.topologies import TOPOLOGIES
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule, to_remove
from generator.site import Rank
from generator.site.control_plane import control_planes
from generator.sitefile.declaration import DeclaredEngine, Topology
from generator.sitefile.source import Document, Plain, value_at
from generator.sitefile.text_types import before_comment

# Since this release, NCCL can choose a port by the peer's subnet.
SUBNET_AWARE_NCCL = (2, 30, 7)


@rule("SG401", unless="SG203 SG208 SG219 SG301 SG305 SG308 SG311 SG316 SG441")
def ring_needs_nccl(engine: DeclaredEngine, fabric: Fabric, topology: Topology) -> Faults:
    """A ring needs NCCL 2.30.7 or newer, and so do other nodes whose ports differ."""
    is_routed = connections(fabric, topology.rdma_halves).is_routed
    if not is_routed or engine.nccl_patched or not ENGINE_TRAITS[engine.name].uses_nccl:
        return
    if engine.nccl is None:
        if TOPOLOGIES[topology.kind].reaches_all:
            return
        yield Fault(
            f"this cabling needs NCCL {ROUTED_FROM} or later, and the image's NCCL is unknown",
            ("engine",),
            "write 'nccl: VERSION', which ncclGetVersion of the image's libnccl.so.2 returns",
            at_key=True,
        )
    elif release(engine.nccl) < release(ROUTED_FROM):
        yield Fault(
            f"NCCL {engine.nccl} fails on this cabling: it can't tell the ports apart",
            ("engine", "nccl"),
            f"use an image with NCCL {ROUTED_FROM}, the first that can, or newer",
        )


def derived_variables(
    engine: DeclaredEngine, nodes: Nodes, fabric: Fabric, topology: Topology, index: int = 0
) -> dict[str, str]:
    """A node's environment without what the site sets itself; the head's by default."""
    controls = control_planes(nodes, fabric, topology)
    head, interfaces = controls[0], fabric.interfaces[nodes[index].name]
    groups = environment.derived(
        Rank(index, len(nodes), controls[index].address, head.address),
        controls[index],
        interfaces,
        topology,
        engine_of(engine, nodes, head, fabric.interfaces[nodes[0].name]),
        hub="",
        more=connections(fabric, topology.rdma_halves).settings,
    )
    return {name: value for group in groups for name, value in group.values.items()}


@rule(
    "SG402",
    Severity.WARNING,
    unless="SG602 SG307",
    suppressed_by="SG410 SG411 SG412 SG413 SG414 SG415 SG416 SG417 SG423 SG424 SG431 SG433",
)
def overridden_variable(
    engine: DeclaredEngine, nodes: Nodes, fabric: Fabric, topology: Topology
) -> Faults:
    """A variable that sparkgen derives from the cabling is not set by hand."""
    derived = cache(partial(derived_variables, engine, nodes, fabric, topology))
    for variable in engine.environment:
        name = variable.name
        if (engine.nccl_patched and name in LAZY) or name not in derived(0):
            continue
        ours = ((n, derived(i)[name]) for i, n in enumerate(nodes) if n.name in variable.nodes)
        node, value = next(((n, v) for n, v in ours if v != variable.value), (None, ""))
        if node:
            own = f": on {node.name} it would be {value}" if value else ""
            yield Fault(
                f"sparkgen sets {name} itself{own}",
                variable.path,
                "remove it, unless you want another value",
                nodes=(node.name,) if own else (),
            )


@rule("SG403", unless="SG307 SG402 SG413 SG414 SG415 SG416 SG417 SG423 SG424 SG602")
def values_that_ray_copies(
    engine: DeclaredEngine, nodes: Nodes, fabric: Fabric, topology: Topology
) -> Faults:
    """Under Ray, NCCL's values are the same on all nodes."""
    if engine.launcher != "ray":
        return
    controls = control_planes(nodes, fabric, topology)
    values = [
        environment.nccl(topology, fabric.interfaces[node.name], control)
        | _copied_by_ray(engine.environment.on(node.name))
        for node, control in zip(nodes, controls, strict=True)
    ]
    for node, own in zip(nodes, values, strict=True):
        names = [name for name in {**own, **values[0]} if own.get(name) != values[0].get(name)]
        if names:
            yield Fault(
                f"Ray copies {names[0]} from {nodes[0].name} to {node.name}, which needs another",
                ("engine", "launcher"),
                "use 'launcher: native', or the same ports and interfaces on all nodes",
                related=(Related(node.name, node.path),),
                nodes=(nodes[0].name,),
            )
            return


def _copied_by_ray(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if name.startswith(("NCCL_", "UCX_"))}


@rule("SG426")
def nonexistent_devices(engine: DeclaredEngine) -> Faults:
    """A node has one GPU, device 0."""
    names = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
    for variable in (each for name in names for each in engine.environment.of(name)):
        value = variable.value
        if value != "0" and re.match(r"[-0-9]|(none|void)$", value):
            yield to_remove(
                f"'{variable.name}: {value}' is wrong: a node has one GPU, device 0",
                variable.path,
                "remove it: the engine finds the GPU by itself",
            )


@rule("SG427", suppressed_by="SG402")
def rank_set_by_hand(engine: DeclaredEngine) -> Faults:
    """No variable sets a rank."""
    for variable in engine.environment:
        if _is_of_a_rank(variable.name):
            yield to_remove(
                f"{variable.name} says which rank this is, and sparkgen sees to that itself",
                variable.path,
                "remove it: sparkgen tells each node its rank",
                at_key=True,
            )


_RANKS = {
    *("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    *("VLLM_DP_RANK", "VLLM_DP_RANK_LOCAL", "VLLM_DP_SIZE"),
    *("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS"),
}


def _is_of_a_rank(name: str) -> bool:
    of_pmi = name.startswith(("PMI_", "PMIX_")) and name.endswith("RANK")
    return name in _RANKS or of_pmi or name.removeprefix("OMPI_COMM_WORLD_") not in ("", name)


@rule("SG441", Severity.WARNING)
def nonexistent_nccl_release(engine: DeclaredEngine) -> Faults:
    """The version of NCCL is one that was released, and that runs on a GB10."""
    if engine.nccl and not engine.nccl_patched and never_was(engine.nccl):
        near = [one for one in releases() if slips(engine.nccl, one) == 1]
        if engine.version in releases() and engine.nccl in versions(engine.name):
            places = (("engine", "version"), engine.nccl), (("engine", "nccl"), engine.version)
            yield Fault(
                "the values of 'version' and 'nccl' are swapped",
                places[0][0],
                f"write 'version: {engine.nccl}' and 'nccl: {engine.version}'",
                related=(Related("the other one", places[1][0]),),
                proposals=(tuple(Replace(path, value) for path, value in places),),
            )
            return
        yield Fault(
            f"there is no NCCL {engine.nccl}",
            ("engine", "nccl"),
            _release_help(engine.nccl, near),
            proposals=replacements(("engine", "nccl"), near) if len(near) == 1 else (),
        )
    elif engine.nccl and not engine.nccl_patched and release(engine.nccl) < BLACKWELL:
        first = ".".join(map(str, BLACKWELL))
        yield Fault(
            f"NCCL {engine.nccl} does not run on a GB10: {first} is the first for Blackwell",
            ("engine", "nccl"),
            "write the version in the image: with 'NCCL_DEBUG: VERSION' the engine's log shows it",
        )


def _release_help(version: str, near: Sequence[str]) -> str:
    """What to write in place of a release that never existed."""
    known = listed(releases_of(version), "and")
    if known:
        return f"of {'.'.join(version.split('.')[:2])} there are {known}"
    return f"did you mean {near[0]}?" if len(near) == 1 else "write '2.MINOR.PATCH'"


@rule("SG429", Severity.WARNING, suppressed_by="SG413")
def comment_in_a_value(engine: DeclaredEngine, document: Document) -> Faults:
    """The value of a variable does not end in what was meant as a comment."""
    for variable in engine.environment:
        path, value, meant = variable.path, variable.value, before_comment(variable.value)
        if meant != value and meant and " " not in meant and not _is_quoted(document, path):
            yield Fault(
                f"'{value}' seems to end in a comment, which is part of the value",
                path,
                f"write {meant}, and the comment after a space and '#'; or quote the value",
                proposals=replacements(path, [int(meant) if meant.isdigit() else meant]),
            )


def _is_quoted(document: Document, path: KeyPath) -> bool:
    value = value_at(document.data, path)
    return value is not None and not isinstance(value, Plain)
