"""Rules about NCCL settings that are useless or harmful on a Spark."""

import re
from ipaddress import IPv4Network

from generator.diagnostics import Severity
from generator.fabric.addressing import Fabric
from generator.rules.environment import SUBNET_AWARE_NCCL
from generator.rules.nccl.grammar import HCAS, release_of, uses
from generator.rules.registry import Faults, rule, to_remove
from generator.settings.environment import Values
from generator.sitefile.declaration import DeclaredEngine

_GPU_DIRECT = r"NCCL_(NET_GDR_\w+|GDRCOPY_\w+|GDR_FLUSH_DISABLE|DMABUF_ENABLE|IB_DATA_DIRECT)"
# Since this release, NCCL finds the GID itself.
_FINDS_GIDS = (2, 21)


@rule("SG418", Severity.WARNING, suppressed_by="SG410 SG411 SG412 SG413")
def gpu_direct(engine: DeclaredEngine) -> Faults:
    """Nothing is set for GPUDirect RDMA, which GB10 does not support."""
    for variable in engine.environment:
        if variable.name.startswith("NCCL_") and re.fullmatch(_GPU_DIRECT, variable.name):
            yield to_remove(
                f"{variable.name} has no effect: there is no GPUDirect RDMA on GB10",
                variable.path,
                at_key=True,
            )


@rule("SG419", Severity.WARNING, suppressed_by="SG410 SG411 SG412 SG413")
def pinned_gid(engine: DeclaredEngine, fabric: Fabric) -> Faults:
    """The GID index is left to NCCL."""
    name, given = "NCCL_IB_GID_INDEX", "NCCL_IB_ADDR_RANGE"
    for values in engine.environment.together((name, given, HCAS)):
        value = values.get(name, "-1")
        if value == "-1" or (engine.nccl and release_of(engine) < _FINDS_GIDS):
            continue
        addresses = _address_range(values, fabric)
        if _holds(values.get(given), addresses):
            continue
        by_address = f"'{given}: {addresses}' does it by address"
        choice = f"; where one must be chosen, {by_address}" if addresses else ""
        yield to_remove(
            f"GID index {value} is unreliable: it differs between devices and changes",
            values.path(name),
            f"remove it{choice}",
            derived_help=choice,
        )


def _address_range(values: Values, fabric: Fabric) -> IPv4Network | None:
    """The smallest network that contains all RDMA subnets; None without a fabric."""
    subnets = {
        interface.address.network
        for interfaces in fabric.interfaces.values()
        for interface in interfaces
        if uses(values, interface.half)
    }
    if not subnets:
        return None
    found = min(subnets)
    while not all(subnet.subnet_of(found) for subnet in subnets):
        found = found.supernet()
    return found


def _holds(text: str, addresses: IPv4Network | None) -> bool:
    try:
        return addresses is not None and addresses.subnet_of(IPv4Network(text))
    except ValueError:
        return False


@rule("SG420", Severity.NOTE, suppressed_by="SG413 SG432")
def unmerged_ports(engine: DeclaredEngine) -> Faults:
    """Since NCCL 2.30.7, ports stay merged."""
    is_stock = engine.nccl and not engine.nccl_patched
    for merged in engine.environment.of("NCCL_IB_MERGE_NICS"):
        if is_stock and merged.value == "0" and release_of(engine) >= SUBNET_AWARE_NCCL:
            yield to_remove(
                f"NCCL {engine.nccl} finds a peer's port less well when ports are not merged",
                merged.path,
                "remove it: it was for builds before 2.30.7",
            )
