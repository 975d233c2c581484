"""Rules about the gateway: its node, the engines that it reaches, and its release."""

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network

from generator.diagnostics import all_nearest, did_you_mean, removal, replacements
from generator.fabric.addressing import Fabric
from generator.records import record
from generator.rules.nodes import Nodes, named
from generator.rules.registry import Fault, rule
from generator.services import GATEWAY
from generator.sitefile.declaration import DeclaredEngine, DeclaredNode, Settings
from generator.sitefile.defaults import default

Services = Mapping[str, Settings]


@rule("SG260", unless="SG201")
def node_of_the_gateway(services: Services, nodes: Nodes) -> Iterator[Fault]:
    """The gateway is on a node of the site.

    Bad:
        services:
          gateway: {node: spark11}

    Good:
        services:
          gateway: {node: spark1}
    """
    wanted = services.get(GATEWAY, {}).get("node")
    names = [node.name for node in nodes]
    if wanted is not None and wanted not in names:
        path = ("services", GATEWAY, "node")
        yield Fault(
            f"there is no node '{wanted}'",
            path,
            did_you_mean(wanted, names) or f"the nodes are {named(names)}",
            proposals=replacements(path, all_nearest(wanted, names)),
        )


@record
class GatewayNode:
    """The node of the gateway, and the fabric subnets that it is on."""

    node: DeclaredNode
    networks: tuple[IPv4Network, ...]


@rule("SG261", unless="SG201 SG260 SG682")
def engine_out_of_reach(
    gateway: GatewayNode, nodes: Nodes, engine: DeclaredEngine, fabric: Fabric
) -> Iterator[Fault]:
    """The gateway reaches every engine.

    On its own node, it uses the loopback address. On another node, the API must listen on an
    address that the gateway's node can reach.

    Bad:
        services:
          gateway: {node: spark2}
        engine:
          bind: local

    Good:
        services:
          gateway: {node: spark2}
        engine:
          bind: management
    """
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


@rule("SG262")
def compromised_gateway(services: Services) -> Iterator[Fault]:
    """The release of LiteLLM has not been reported as compromised.

    1.82.7 and 1.82.8 were published by an attacker and stole the machine's credentials. 1.107.0 has
    been reported as compromised, too.

    Source: BerriAI/litellm issues 24512 and 24518; OSV MAL-2026-2144.

    Bad:
        services:
          gateway: {image: 'ghcr.io/berriai/litellm:v1.107.0'}

    Good:
        services:
          gateway: {image: 'ghcr.io/berriai/litellm:v1.106.2'}
    """
    image = services.get(GATEWAY, {}).get("image", "")
    if not image:
        return
    from generator.services.gateway import COMPROMISED

    found = re.search(_RELEASE, image)
    if found and found[1] in COMPROMISED:
        path, usual = ("services", GATEWAY, "image"), default("services.gateway.image")
        yield Fault(
            f"LiteLLM {found[1]} is reported as compromised",
            path,
            f"write '{usual}', or another release",
            proposals=replacements(path, [usual]),
        )


# The release in a tag such as v1.106.2, 1.83.14-stable or main-v1.65.0, with or without a digest.
_RELEASE = r":(?:main-)?v?(\d+\.\d+\.\d+)(?![\d])[^/]*$"


@rule("SG263")
def path_without_a_route(services: Services) -> Iterator[Fault]:
    """The gateway serves only paths of the OpenAI API.

    It routes requests by the model that they name. Other paths belong to a single engine; send
    requests for them to that engine directly.

    Bad:
        services:
          gateway: true
          proxy: {paths: [/tokenize]}

    Good:
        services:
          gateway: true
    """
    paths = services.get("proxy", {}).get("paths", ())
    if GATEWAY in services and paths:
        path = ("services", "proxy", "paths")
        yield Fault(
            f"the gateway has no route for {', '.join(paths)}",
            path,
            "remove 'paths': ask the engine itself, through a tunnel",
            at_key=True,
            proposals=removal(path),
        )
