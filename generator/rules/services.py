"""Rules about services other than the engine."""

from collections.abc import Mapping, Sequence

from generator.diagnostics import Severity
from generator.fabric.topologies import TOPOLOGIES
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule
from generator.services import GATEWAY, PROXY, WEB_UI, host
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, Settings, Topology


@rule("SG680")
def flow_control_without_a_switch(services: Mapping[str, Settings], topology: Topology) -> Faults:
    """Priority flow control requires a switch."""
    if "qos" in services and not TOPOLOGIES[topology.kind].switched:
        yield Fault(
            f"'qos' is for nodes on a switch, and the topology is '{topology.kind}'",
            ("services", "qos"),
            "remove 'qos'",
            at_key=True,
        )


@rule("SG273")
def service_without_an_engine(
    services: Mapping[str, Settings], serving: Mapping[str, Sequence[str]]
) -> Faults:
    """What is in front of engines has one behind it."""
    for name in (PROXY, GATEWAY, WEB_UI):
        if name in services and not serving:
            yield Fault(
                f"'{name}' has no engine to ask",
                ("services", name),
                f"write 'model' and 'engine' to serve, or remove '{name}'",
                at_key=True,
            )


@rule("SG681", Severity.WARNING)
def models_that_one_node_reads(services: Mapping[str, Settings], model: DeclaredModel) -> Faults:
    """A GGUF file is not copied: only the head reads it."""
    if "models" in services and model.file:
        yield Fault(
            "the service 'models' has nothing to copy: only the head reads a GGUF file",
            ("services", "models"),
            "remove 'models'",
            at_key=True,
        )


@rule("SG682")
def proxy_without_a_network(services: Mapping[str, Settings], nodes: Nodes) -> Faults:
    """The proxy listens on its node's management address: that of the head, or of the gateway."""
    node = host(services, nodes)
    if "proxy" in services and not node.management:
        # The gateway includes the proxy.
        name = "gateway" if "gateway" in services else "proxy"
        which = "the first node" if node is nodes[0] else node.name
        yield Fault(
            f"the {name} has no address to listen on: {node.name} has no management network",
            ("services", name),
            f"write 'management: {{address: ...}}' in {which}, or remove '{name}'",
            at_key=True,
            nodes=(node.name,),
        )


@rule("SG683")
def bypassed_proxy(is_behind_proxy: bool, engine: DeclaredEngine) -> Faults:
    """Behind a proxy on its own node, the API listens only on the loopback."""
    if is_behind_proxy and engine.bind not in (None, "local"):
        yield Fault(
            f"'bind: {engine.bind}' would let clients bypass the proxy",
            ("engine", "bind"),
            "remove 'bind', or write 'bind: local'",
        )
