"""What a node's firewall allows: the fabric, other nodes, and users on the management network."""

from collections.abc import Iterator

from generator.activation import NOTHING, Activation, Scope
from generator.records import record
from generator.site import Node, Part, Site
from generator.site.entry import Entry
from generator.site.service import Service

SSH_PORT = 22


def rules(site: Site, node: Node) -> tuple[str, ...]:
    """The rules of a node, each as `ufw show added` prints it, without the comment.

    Each half is entirely open to its subnet: NCCL and Gloo choose free ports. RoCE bypasses the
    kernel, and so the firewall.
    """
    return tuple(dict.fromkeys(_rules(site, node)))


def _rules(site: Site, node: Node) -> Iterator[str]:
    for interface in node.interfaces:
        yield f"allow in on {interface.name} from {interface.address.network}"
    for one, other_side in node.forwards:
        yield f"route allow in on {one} out on {other_side}"
    for other in site.nodes:
        if other is not node and other.control.plane == "management":
            yield f"allow from {other.control.address} proto tcp"
    yield _people(node, SSH_PORT)
    for part, member in site.parts_of(node.name):
        if member.is_head and part.engine.api.listen == "0.0.0.0":
            yield f"allow {part.engine.api.port}/tcp"
        for port in _engine_pages(part, member):
            yield _gateway(site, port) or _people(node, port)
    for service in site.services.values():
        yield from (_people(node, port) for port in service.opened(node))


def _engine_pages(part: Part, node: Node) -> Iterator[int]:
    """The engine's ports that listen on the node's management address."""
    api, management = part.engine.api, node.management
    if not node.is_head or not management:
        return
    if api.listen == str(management.address.ip):
        yield api.port


def _gateway(site: Site, port: int) -> str:
    """With a gateway, no other machine may reach an engine that is on another node."""
    from generator.services.gateway import Gateway

    gateway = Gateway.of(site)
    management = site.node(gateway.node).management if gateway else None
    return f"allow from {management.address.ip} to any port {port} proto tcp" if management else ""


def _people(node: Node, port: int) -> str:
    """From the management network; from anywhere if there is none."""
    if node.management:
        return f"allow from {node.management.address.network} to any port {port} proto tcp"
    return f"allow {port}/tcp"


_SET = "/opt/sparkgen/firewall.sh, then firewall.sh --confirm in a new session within 120 s"
_ACTIVATION = Activation(
    "run firewall.sh",
    Scope.SERVICE,
    step=_SET,
    first=_SET,
    before="/opt/sparkgen/firewall.sh --remove",
    unit="firewall",
)


@record
class Firewall(Service):
    """A script that makes ufw allow what is needed, and nothing else."""

    NAME = "firewall"
    ENTRIES = (
        Entry(
            "etc/sparkgen/firewall.rules",
            _ACTIVATION,
            values=lambda site, node: {"rules": rules(site, node)},
        ),
        Entry("opt/sparkgen/firewall.sh", NOTHING, 0o755, payload=True),
    )


SERVICE: type[Service] = Firewall
