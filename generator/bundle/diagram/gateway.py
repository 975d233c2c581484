"""The gateway in diagrams: where it is, and where it sends requests."""

from collections.abc import Mapping, Sequence

from generator.grouping import grouped
from generator.services.gateway import Gateway
from generator.site import Node, Site, Words


def serving(site: Site) -> Mapping[str, Sequence[Site]]:
    """The groups that serve each of the gateway's model names, in the order of the site file."""
    parts = site.parts if Gateway.of(site) else ()
    return grouped((part.model.served_name, part) for part in parts)


def is_here(site: Site, node: Node) -> bool:
    """Whether the gateway is on this node."""
    gateway = Gateway.of(site)
    return gateway is not None and gateway.node == node.name


def lines(site: Site) -> Words:
    """A line for its address, and one for each model name."""
    gateway = Gateway.of(site)
    if gateway is None:
        return ()
    names = (
        f"{name}: {', '.join(part.group or part.head.name for part in parts)}"
        for name, parts in serving(site).items()
    )
    return (f"All models at {site.address}, the gateway on {gateway.node}", *names)
