"""The services beside the engine: one module has everything about one service."""

from collections.abc import Mapping, Sequence

from generator.diagnostics import KeyPath
from generator.on_demand import OnDemand
from generator.records import replace
from generator.site.service import Service
from generator.sitefile.declaration import DeclaredNode, Settings

GATEWAY, PROXY, QOS = "gateway", "proxy", "qos"


def _power() -> type[Service]:
    from generator.services.power import Power

    return Power


def _gateway() -> type[Service]:
    from generator.services.gateway import Gateway

    return Gateway


def _proxy() -> type[Service]:
    from generator.services.proxy import Proxy

    return Proxy


def _web_ui() -> type[Service]:
    from generator.services.web_ui import WebUi

    return WebUi


def _guard() -> type[Service]:
    from generator.services.guard import Guard

    return Guard


def _qos() -> type[Service]:
    from generator.services.qos import Qos

    return Qos


def _monitoring() -> type[Service]:
    from generator.services.monitoring import Monitoring

    return Monitoring


def _firewall() -> type[Service]:
    from generator.services.firewall import Firewall

    return Firewall


def _ssh() -> type[Service]:
    from generator.services.ssh import Ssh

    return Ssh


def _models() -> type[Service]:
    from generator.services.models import Models

    return Models


def _ansible() -> type[Service]:
    from generator.services.ansible import Ansible

    return Ansible


# What is left to do on a node after an installation is done in this order.
SERVICES: Mapping[str, type[Service]] = OnDemand(
    {
        "power": _power,
        GATEWAY: _gateway,
        PROXY: _proxy,
        "web_ui": _web_ui,
        "guard": _guard,
        QOS: _qos,
        "monitoring": _monitoring,
        "firewall": _firewall,
        "ssh": _ssh,
        "models": _models,
        "ansible": _ansible,
    }
)


def host(services: Mapping[str, Settings], nodes: Sequence[DeclaredNode]) -> DeclaredNode:
    """The node of what is on one node alone: the head, unless the gateway is on another."""
    wanted = services.get(GATEWAY, {}).get("node")
    return next((node for node in nodes if node.name == wanted), nodes[0])


def requested(
    services: Mapping[str, Settings], nodes: Sequence[DeclaredNode], pins: Mapping[str, str] = {}
) -> dict[str, Service]:
    """The services that a site asks for, by name; `pins` are what a lock has for their images."""
    own = host(services, nodes)
    found = {name: SERVICES[name].requested(services[name], own) for name in sorted(services)}
    if PROXY in found and GATEWAY in found:
        found[PROXY] = replace(found[PROXY], is_for_all=True)
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
