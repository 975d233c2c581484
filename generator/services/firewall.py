"""What a node lets in: the fabric, the other nodes, and from the management network people."""

from collections.abc import Iterator

from generator.site import Node, Site

SSH_PORT = 22


def rules(site: Site, node: Node) -> tuple[str, ...]:
    """The rules of a node, each as `ufw show added` prints it, without the comment.

    All of a half is open to its subnet: NCCL and Gloo take free ports. RoCE is not asked, it
    passes by the kernel.
    """
    return tuple(dict.fromkeys(_rules(site, node)))


def _rules(site: Site, node: Node) -> Iterator[str]:
    for interface in node.interfaces:
        yield f"allow in on {interface.name} from {interface.address.network}"
    for other in site.nodes:
        if other is not node and other.control.plane == "management":
            yield f"allow from {other.control.address} proto tcp"
    yield _people(node, SSH_PORT)
    if site.monitoring:
        yield _people(node, site.monitoring.node_port)
        yield _people(node, site.monitoring.gpu_port)
    if node.is_head and site.engine.api.listen == "0.0.0.0":
        yield f"allow {site.engine.api.port}/tcp"
    yield from (_people(node, port) for port in _pages(site, node))


def _pages(site: Site, node: Node) -> Iterator[int]:
    """The ports that listen on the node's management address."""
    api, management = site.engine.api, node.management
    if not node.is_head or not management:
        return
    if api.listen == str(management.address.ip):
        yield api.port
        yield from (port for name, port in site.engine.ports.items() if name == "dashboard")
    if site.web_ui:
        yield site.web_ui.port


def _people(node: Node, port: int) -> str:
    """From the management network; from everywhere where there is none."""
    if node.management:
        return f"allow from {node.management.address.network} to any port {port} proto tcp"
    return f"allow {port}/tcp"
