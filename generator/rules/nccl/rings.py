"""Rules about NCCL settings that do not work on a ring."""

import re

from generator.catalogs.nccl import LAZY
from generator.diagnostics import Severity, removal, replacements
from generator.fabric.addressing import Fabric, Port
from generator.fabric.nccl import connections
from generator.fabric.topologies import TOPOLOGIES
from generator.rules.registry import Fault, Faults, rule, to_remove
from generator.settings.environment import Values
from generator.sitefile.declaration import DeclaredEngine, Topology

_INVALID_SETTINGS = "SG410 SG411 SG412 SG413"
_MERGE, _CROSS, _PAT = "NCCL_IB_MERGE_NICS", "NCCL_CROSS_NIC", "NCCL_PAT_ENABLE"
_TRIANGLE = 3


@rule("SG431", unless="SG208", suppressed_by=_INVALID_SETTINGS)
def connections_across_a_ring(engine: DeclaredEngine, fabric: Fabric, topology: Topology) -> Faults:
    """On a ring of four or more, NCCL connects only neighbors."""
    needed = connections(fabric, topology.rdma_halves).settings
    for values in engine.environment.together((*needed, _PAT)):
        for name in needed:
            if name in values.given and _leads_across(name, values, engine):
                yield to_remove(
                    f"with '{name}: {values.get(name)}' NCCL connects nodes that no cable joins",
                    values.path(name),
                    f"remove it: sparkgen sets it to {needed[name]}",
                )


def _leads_across(name: str, values: Values, engine: DeclaredEngine) -> bool:
    if name == "NCCL_ALGO":
        return not _is_ring_alone(values.get(name), values)
    return not engine.nccl_patched and name in LAZY and values.get(name) == "0"


def _is_ring_alone(value: str, values: Values) -> bool:
    """Whether no other algorithm is left; CollNet and NVLS need a switch that no Spark has."""
    if not value.startswith("^"):
        return bool(re.fullmatch(r"((\w+:)?ring;?)+", value, re.IGNORECASE))
    left_out = set(value[1:].lower().split(","))
    left_out |= {"pat"} if values.get(_PAT) == "0" else set()
    return left_out >= {"tree", "pat"}


@rule("SG432", unless="SG208", suppressed_by=_INVALID_SETTINGS)
def unmerged_ports_of_a_ring(engine: DeclaredEngine, fabric: Fabric, topology: Topology) -> Faults:
    """On a ring, ports that are not merged have uniform cables and a matching `NCCL_CROSS_NIC`."""
    if TOPOLOGIES[topology.kind].reaches_all or engine.nccl_patched:
        return
    ports = {cable.a.port == cable.b.port for cable in fabric.cables if isinstance(cable.b, Port)}
    is_triangle = ports == {False} and len(fabric.pairs) == _TRIANGLE
    for values in engine.environment.together((_MERGE, _CROSS)):
        crosses = values.get(_CROSS) == "1"
        if values.get(_MERGE) != "0" or ports == {crosses} or is_triangle:
            continue
        more = f" and '{_CROSS}: 1'" if crosses else ""
        yield to_remove(
            f"with '{_MERGE}: 0'{more} NCCL takes the wrong port of the cables here",
            values.path(_MERGE),
            "remove it: merged ports work with any cabling",
        )


@rule("SG433", Severity.WARNING, suppressed_by=_INVALID_SETTINGS)
def host_memory_by_cumem(engine: DeclaredEngine) -> Faults:
    """In a container, NCCL is not set to manage host memory through cuMem."""
    name = "NCCL_CUMEM_HOST_ENABLE"
    for variable in engine.environment.of(name):
        if variable.value == "1":
            yield Fault(
                f"'{name}: 1' asks for NUMA, which the container does not have",
                variable.path,
                "remove it, or write 0",
                proposals=replacements(variable.path, [0]) + removal(variable.path),
            )


@rule("SG434", Severity.WARNING, unless="SG208", suppressed_by=_INVALID_SETTINGS)
def files_that_steer_nccl(engine: DeclaredEngine, fabric: Fabric, topology: Topology) -> Faults:
    """On a ring of four or more, no file or plugin controls what NCCL connects."""
    if not connections(fabric, topology.rdma_halves).have_strangers:
        return
    for variable in (each for name in _STEERING for each in engine.environment.of(name)):
        if variable.value != "none":
            yield to_remove(
                f"'{variable.name}' may have NCCL connect nodes that no cable joins",
                variable.path,
                unsafe=True,
            )


_STEERING = ("NCCL_TUNER_PLUGIN", "NCCL_ALGO_PLUGIN", "NCCL_GRAPH_FILE", "NCCL_TOPO_FILE")
