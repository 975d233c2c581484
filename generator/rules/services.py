"""Rules about services other than the engine."""

from collections.abc import Iterator, Mapping, Sequence

from generator.diagnostics import Severity
from generator.fabric.topologies import TOPOLOGIES
from generator.rules.registry import Fault, rule
from generator.services import host
from generator.sitefile.declaration import (
    DeclaredEngine,
    DeclaredModel,
    DeclaredNode,
    Settings,
    Topology,
)


@rule("SG680")
def flow_control_without_a_switch(
    services: Mapping[str, Settings], topology: Topology
) -> Iterator[Fault]:
    """Priority flow control requires a switch.

    It pauses a sender when a port of the switch is congested. A cable between two nodes has no such
    port.

    Bad:
        services:
          qos: true

    Good:
        services:
          qos: false
    """
    if "qos" in services and not TOPOLOGIES[topology.kind].switched:
        yield Fault(
            f"'qos' is for nodes on a switch, and the topology is '{topology.kind}'",
            ("services", "qos"),
            "remove 'qos'",
            at_key=True,
        )


@rule("SG681", Severity.WARNING)
def models_that_one_node_reads(
    services: Mapping[str, Settings], model: DeclaredModel
) -> Iterator[Fault]:
    """A GGUF file is not copied: only the head reads it.

    llama.cpp's head sends each worker its layers.

    Source: llama.cpp, tools/rpc/README.md.

    Bad:
        engine:
          name: llama.cpp
          version: 0.5.0-dev
          image: registry.lan/llama.cpp:0c1e570
        model:
          name: gpt-oss-120b
          file: /srv/models/gpt-oss-120b.gguf
        services:
          models: true

    Good:
        services:
          models: true
    """
    if "models" in services and model.file:
        yield Fault(
            "the service 'models' has nothing to copy: only the head reads a GGUF file",
            ("services", "models"),
            "remove 'models'",
            at_key=True,
        )


@rule("SG682")
def proxy_without_a_network(
    services: Mapping[str, Settings], nodes: Sequence[DeclaredNode]
) -> Iterator[Fault]:
    """The proxy listens on its node's management address: that of the head, or of the gateway.

    Clients reach it there. On a node without a management address, nobody could.

    Bad:
        nodes:
          - name: spark1
        topology:
          kind: single
        services:
          proxy: true

    Good:
        nodes:
          - name: spark1
            management: {address: 10.0.0.11/24}
        topology:
          kind: single
        services:
          proxy: true
    """
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
def bypassed_proxy(is_behind_proxy: bool, engine: DeclaredEngine) -> Iterator[Fault]:
    """Behind a proxy on its own node, the API listens only on the loopback.

    On any other address, clients could bypass the proxy.

    Bad:
        engine:
          bind: management
        services:
          proxy: true

    Good:
        engine:
          bind: local
        services:
          proxy: true
    """
    if is_behind_proxy and engine.bind not in (None, "local"):
        yield Fault(
            f"'bind: {engine.bind}' would let clients bypass the proxy",
            ("engine", "bind"),
            "remove 'bind', or write 'bind: local'",
        )
