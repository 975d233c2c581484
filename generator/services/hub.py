"""Where the models of a site come from and go to: its downloads, their folders, the other nodes."""

from generator.site import Node, Site, Words


def downloads(site: Site) -> tuple[Words, ...]:
    """The commands that fetch what is in the Hugging Face cache."""
    model = site.model
    revision = ("--revision", model.revision) if model.revision else ()
    return tuple(
        ("hf", "download", source, *(revision if source == model.source else ()))
        for source in model.downloads
    )


def folders(site: Site) -> Words:
    """What is copied: folders of the cache by the names that it gives them, and absolute ones."""
    cached = (f"models--{source.replace('/', '--')}" for source in site.model.downloads)
    return (*cached, *site.model.folders)


def copies(site: Site, node: Node) -> tuple[tuple[str, str], ...]:
    """The login and the hub of each other node, at the first address of the fabric that it has."""
    near = {peer.node: peer.address for i in reversed(node.interfaces) for peer in i.peers}
    return tuple(
        (f"{other.user}@{near.get(other.name, other.address)}", other.env["HF_HUB_CACHE"])
        for other in site.nodes
        if other is not node
    )
