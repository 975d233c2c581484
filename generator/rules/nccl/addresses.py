"""Rules about how NCCL finds addresses: by range, family and prefix length."""

from ipaddress import ip_network

from generator.fabric.addressing import FABRIC_PREFIX, Fabric
from generator.fabric.topologies import TOPOLOGIES
from generator.rules.nccl.grammar import HCAS, uses
from generator.rules.nodes import Nodes
from generator.rules.registry import Faults, rule, to_remove
from generator.site.control_plane import chosen_plane
from generator.sitefile.declaration import DeclaredEngine, Topology

_OUT = "remove it: NCCL takes IPv4 and finds each port's address by itself"


@rule("SG422", unless="SG303 SG304 SG305", suppressed_by="SG410 SG411 SG412 SG413")
def addresses_out_of_range(engine: DeclaredEngine, fabric: Fabric, topology: Topology) -> Faults:
    """`NCCL_IB_ADDR_RANGE` covers all addresses of the fabric."""
    name = "NCCL_IB_ADDR_RANGE"
    for values in engine.environment.together((name, HCAS)):
        if not (value := values.get(name)):
            continue
        wanted = ip_network(value, strict=False)
        outside = [
            (node, f"{interface.address.ip} of {node}'s {interface.name}")
            for node in values.nodes
            for interface in fabric.interfaces.get(node, ())
            if interface.half.half in topology.rdma_halves
            and uses(values, interface.half)
            and interface.address.ip not in wanted
        ]
        if outside:
            more = f" and {len(outside) - 1} more" if len(outside) > 1 else ""
            node, address = outside[0]
            yield to_remove(
                f"'{name}: {value}' leaves out {address}{more}",
                values.path(name),
                "remove it, or write a range that has all subnets of the fabric in it",
                nodes=(node,),
            )


@rule("SG423", unless="SG303 SG305 SG308", suppressed_by="SG410 SG411 SG412 SG413")
def prefix_of_another_length(engine: DeclaredEngine, fabric: Fabric, topology: Topology) -> Faults:
    """On a ring, `NCCL_IB_SUBNET_PREFIX_LEN` is the prefix length of the ring's subnets."""
    name = "NCCL_IB_SUBNET_PREFIX_LEN"
    if TOPOLOGIES[topology.kind].reaches_all:
        return
    lengths = {subnet.prefixlen for cable in fabric.cables for subnet in cable.subnets}
    length = lengths.pop() if lengths else FABRIC_PREFIX
    for variable in engine.environment.of(name):
        if variable.value != str(length):
            yield to_remove(
                f"'{name}: {variable.value}', and the {topology.kind}'s subnets are /{length}",
                variable.path,
                f"remove it: sparkgen sees to it that it is {length}",
            )


@rule("SG424", suppressed_by="SG410 SG411 SG412 SG413")
def routing_off_on_a_ring(engine: DeclaredEngine, topology: Topology) -> Faults:
    """On a ring, NCCL picks the port by the peer's subnet."""
    name = "NCCL_IB_SUBNET_AWARE_ROUTING"
    if TOPOLOGIES[topology.kind].reaches_all or engine.nccl_patched:
        return
    for variable in engine.environment.of(name):
        if variable.value == "0":
            yield to_remove(
                f"with '{name}: 0' NCCL can't tell a {topology.kind}'s ports apart",
                variable.path,
                "remove it: sparkgen sets it to 1",
            )


@rule("SG425", unless="SG201 SG208", suppressed_by="SG410 SG411 SG412 SG413")
def unsupported_address_family(
    engine: DeclaredEngine, nodes: Nodes, fabric: Fabric, topology: Topology
) -> Faults:
    """The fabric uses IPv4."""
    if not fabric.cables:
        return
    names = ["NCCL_IB_ADDR_FAMILY"]
    if chosen_plane(nodes, topology) == "fabric":
        names.append("NCCL_SOCKET_FAMILY")
    for variable in (each for name in names for each in engine.environment.of(name)):
        if variable.value == "AF_INET6":
            message = f"'{variable.name}: AF_INET6', and the fabric has no IPv6 addresses"
            yield to_remove(message, variable.path, _OUT)
