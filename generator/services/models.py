"""Models that the head downloads once and copies to the other nodes."""

from generator.activation import NOTHING
from generator.records import record
from generator.site import Node, Part, Site
from generator.site.entry import Entry
from generator.site.service import Service


def copies(part: Part, node: Node) -> tuple[tuple[str, str], ...]:
    """The login and hub of each other node, at its first fabric address that the node can reach."""
    near = {peer.node: peer.address for i in reversed(node.interfaces) for peer in i.peers}
    return tuple(
        (f"{other.user}@{near.get(other.name, other.address)}", other.env["HF_HUB_CACHE"])
        for other in part.nodes
        if other.name != node.name
    )


def _is_head(site: Site, node: Node) -> bool:
    """Whether a node is the head of an engine that serves a model of the hub."""
    return any(own.is_head and not part.model.file for part, own in site.parts_of(node.name))


@record
class Models(Service):
    """One download, and a copy to each other node over the fabric."""

    NAME = "models"
    IS_OF_GROUPS = True
    ENTRIES = (
        Entry("opt/sparkgen/models.sh", NOTHING, 0o755, _is_head, payload=True),
        Entry("opt/sparkgen/reasons.sh", NOTHING, 0o644, _is_head, payload=True),
    )

    @staticmethod
    def copies(site: Site, node: Node) -> tuple[tuple[str, str], ...]:
        """Where the node's models are copied to; empty for any node but the head."""
        return copies(site.serving, node) if site.serving and _is_head(site, node) else ()


SERVICE: type[Service] = Models
