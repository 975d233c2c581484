"""Rules about the gateway: its node, and the engines that it reaches."""

from collections.abc import Mapping
from ipaddress import IPv4Network

from generator.fabric.addressing import Fabric
from generator.records import record
from generator.rules.nodes import Nodes, unknown
from generator.rules.registry import Fault, Faults, rule
from generator.services import GATEWAY
from generator.sitefile.declaration import DeclaredEngine, DeclaredNode, Settings

Services = Mapping[str, Settings]


@rule("SG260", unless="SG201 SG241")
def node_of_the_gateway(services: Services, nodes: Nodes) -> Faults:
    """The gateway is on a node of the site."""
    wanted = services.get(GATEWAY, {}).get("node")
    names = [node.name for node in nodes]
    if wanted is not None and wanted not in names:
        yield unknown("node", wanted, ("services", GATEWAY, "node"), names)


@record
class GatewayNode:
    """The node of the gateway, and the fabric subnets that it is on."""

    node: DeclaredNode
    networks: tuple[IPv4Network, ...]


@rule("SG261", unless="SG201 SG260 SG682")
def engine_out_of_reach(
    gateway: GatewayNode, nodes: Nodes, engine: DeclaredEngine, fabric: Fabric
) -> Faults:
    """The gateway reaches every engine."""
    head = nodes[0]
    if head.name == gateway.node.name:
        return
    ends = (gateway.node.name, head.name)
    where = f"the gateway on {ends[0]} does not reach the API on {ends[1]}"
    if engine.bind == "local":
        yield Fault(
            f"{where}, which is local there",
            ("engine", "bind"),
            "remove 'bind', or move the gateway there",
            nodes=ends,
        )
    elif engine.bind == "fabric":
        first = fabric.interfaces.get(head.name, ())[:1]
        if not any(interface.address.network in gateway.networks for interface in first):
            yield Fault(
                f"{where}: no cable joins the two",
                ("engine", "bind"),
                "remove 'bind': management is what they share",
                nodes=ends,
            )
    elif not head.management:
        yield Fault(
            f"{where}, which has no management network",
            ("services", GATEWAY),
            f"write 'management: {{address: ...}}' in {head.name}, or 'bind: fabric' in its engine "
            "if a cable joins the two",
            at_key=True,
            nodes=ends,
        )
