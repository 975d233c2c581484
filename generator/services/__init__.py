"""The services beside the engine: one module has everything about one service."""

from collections.abc import Mapping, Sequence

from generator.diagnostics import KeyPath
from generator.records import replace
from generator.services.ansible import Ansible
from generator.services.firewall import Firewall
from generator.services.gateway import Gateway
from generator.services.guard import Guard
from generator.services.models import Models
from generator.services.monitoring import Monitoring
from generator.services.power import Power
from generator.services.proxy import Proxy
from generator.services.qos import Qos
from generator.services.ssh import Ssh
from generator.services.web_ui import WebUi
from generator.site.service import Service
from generator.sitefile.declaration import DeclaredNode, Settings

# What is left to do on a node after an installation is done in this order.
SERVICES: Mapping[str, type[Service]] = {
    service.NAME: service
    for service in (
        Power,
        Gateway,
        Proxy,
        WebUi,
        Guard,
        Qos,
        Monitoring,
        Firewall,
        Ssh,
        Models,
        Ansible,
    )
}


def host(services: Mapping[str, Settings], nodes: Sequence[DeclaredNode]) -> DeclaredNode:
    """The node of what is on one node alone: the head, unless the gateway is on another."""
    wanted = services.get(Gateway.NAME, {}).get("node")
    return next((node for node in nodes if node.name == wanted), nodes[0])


def requested(
    services: Mapping[str, Settings], nodes: Sequence[DeclaredNode], pins: Mapping[str, str] = {}
) -> dict[str, Service]:
    """The services that a site asks for, by name; `pins` are what a lock has for their images."""
    own = host(services, nodes)
    found = {name: SERVICES[name].requested(services[name], own) for name in sorted(services)}
    proxy = found.get(Proxy.NAME)
    if isinstance(proxy, Proxy) and Gateway.NAME in found:
        found[Proxy.NAME] = replace(proxy, is_for_all=True)
    return {name: service.pinned(pins) for name, service in found.items()}


def images(
    services: Mapping[str, Settings], nodes: Sequence[DeclaredNode]
) -> tuple[tuple[str, KeyPath], ...]:
    """The container images of a site's services, and the path that names each."""
    return tuple(
        (image, ("services", name, "image"))
        for name, service in requested(services, nodes).items()
        for image in service.named_images
        if "@" not in image
    )
