"""The services beside the engine that a site asks for, with every default filled in."""

from collections.abc import Mapping

from generator.control import LOOPBACK
from generator.declaration import DeclaredNode, Settings
from generator.site import Guard, Monitoring, WebUi

WEB_UI_PORT = 3000
WEB_UI_IMAGE = "ghcr.io/open-webui/open-webui:v0.12.4"

# The ports are those that the exporters have everywhere.
EXPORTERS = Monitoring(
    node_image="quay.io/prometheus/node-exporter:v1.9.1",
    node_port=9100,
    gpu_image="nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless",
    gpu_port=9400,
)

# Enough for Docker, systemd and a login to act in; an engine below it has nothing to gain.
GUARD_FLOOR_GIB = 2


def web_ui(services: Mapping[str, Settings], head: DeclaredNode) -> WebUi | None:
    """The chat page, on the management network, or for the head alone where there is none."""
    if "web_ui" not in services:
        return None
    settings = services["web_ui"]
    listen = head.management.address.ip if head.management else LOOPBACK
    return WebUi(
        settings.get("image", WEB_UI_IMAGE), str(listen), settings.get("port", WEB_UI_PORT)
    )


def guard(services: Mapping[str, Settings]) -> Guard | None:
    """The watch over each node's memory."""
    return Guard(GUARD_FLOOR_GIB) if "guard" in services else None


def monitoring(services: Mapping[str, Settings]) -> Monitoring | None:
    """The exporters of each node."""
    return EXPORTERS if "monitoring" in services else None
