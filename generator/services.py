"""The services beside the engine that a site asks for, with every default filled in."""

from collections.abc import Mapping

from generator.control import LOOPBACK
from generator.declaration import DeclaredNode, Settings
from generator.site import Guard, WebUi

WEB_UI_PORT = 3000
WEB_UI_IMAGE = "ghcr.io/open-webui/open-webui:v0.12.4"

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
