"""The services of a site by name: one module, which has that name, has everything about one."""

from collections.abc import Mapping, Sequence
from importlib import import_module

from generator.diagnostics import KeyPath
from generator.on_demand import OnDemand
from generator.records import replace
from generator.site.service import Service
from generator.sitefile.declaration import Access, DeclaredNode, Settings

GATEWAY, PROXY, QOS, WEB_UI = "gateway", "proxy", "qos", "web_ui"


# After an installation, what remains to be done on a node is done in this order.
_NAMES = "power gateway proxy web_ui guard qos monitoring firewall ssh models ansible"


def _service(name: str) -> type[Service]:
    service: type[Service] = import_module(f"{__package__}.{name}").SERVICE
    return service


SERVICES: Mapping[str, type[Service]] = OnDemand(lambda: tuple(_NAMES.split()), _service)


def host(services: Mapping[str, Settings], nodes: Sequence[DeclaredNode]) -> DeclaredNode:
    """The node of a service that runs on one node: the head, or wherever the gateway is."""
    wanted = services.get(GATEWAY, {}).get("node")
    return next((node for node in nodes if node.name == wanted), nodes[0])


def requested(
    services: Mapping[str, Settings],
    nodes: Sequence[DeclaredNode],
    pins: Mapping[str, str] = {},
    access: Access | None = None,
) -> dict[str, Service]:
    """The requested services by name; `pins` has the images that a lock has for theirs."""
    own = host(services, nodes)
    found = {name: SERVICES[name].requested(services[name], own) for name in sorted(services)}
    if PROXY in found and GATEWAY in found:
        found[PROXY] = replace(found[PROXY], is_for_all=True)
    if access:
        found |= {n: replace(s, access=access) for n, s in found.items() if n in (PROXY, WEB_UI)}
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
