"""The chat page on the head, Open WebUI."""

from collections.abc import Iterator, Mapping
from typing import Self

from generator.activation import service_restart
from generator.origin import Origin
from generator.records import record
from generator.site import Node, Site
from generator.site.control_plane import LOOPBACK
from generator.site.entry import Entry
from generator.site.service import Page, RequestedPort, Service
from generator.sitefile.declaration import DeclaredNode, Settings
from generator.sitefile.defaults import default

_RESTART = service_restart("sparkgen-web-ui", "the web UI")


def _on_head(site: Site, node: Node) -> bool:
    return node.is_head


def _port(settings: Settings) -> int:
    return int(settings.get("port", default("services.web_ui.port")))


@record
class WebUi(Service):
    """The chat page: where it listens, and its image."""

    ORIGIN = Origin("services.web_ui engine.bind", "what the web UI is told, generator/services/")

    NAME = "web_ui"
    IS_ON_HEAD = True
    KNOWS_GROUPS = False
    ENTRIES = (
        Entry("etc/systemd/system/sparkgen-web-ui.service", _RESTART, wanted=_on_head),
        Entry("opt/sparkgen/web-ui.sh", _RESTART, 0o755, _on_head, payload=True),
        Entry("opt/sparkgen/web-ui.yaml", _RESTART, wanted=_on_head),
    )

    image: str
    listen: str
    port: int

    @property
    def url(self) -> str:
        """Where people open it."""
        return f"http://{self.listen}:{self.port}"

    @classmethod
    def requested(cls, settings: Settings, head: DeclaredNode) -> Self:
        """On the management network, or for the head alone where there is none."""
        listen = head.management.address.ip if head.management else LOOPBACK
        image = settings.get("image", default("services.web_ui.image"))
        return cls(image, str(listen), _port(settings))

    @classmethod
    def requested_ports(cls, settings: Settings) -> Mapping[str, RequestedPort]:
        """The page's own port."""
        path = ("services", cls.NAME, "port")
        return {cls.NAME: RequestedPort(_port(settings), path, "port" in settings)}

    def listeners(self, node: Node) -> Mapping[str, int]:
        """The page is on the head alone."""
        return {self.NAME: self.port} if node.is_head else {}

    def secrets(self, node: Node) -> Iterator[str]:
        """The administrator's account, which Open WebUI makes at its first start."""
        if node.is_head:
            yield from ("WEBUI_ADMIN_EMAIL", "WEBUI_ADMIN_PASSWORD")

    def images(self, node: Node) -> Iterator[str]:
        """Open WebUI, on the head."""
        if node.is_head:
            yield self.image

    def opened(self, node: Node) -> Iterator[int]:
        """People reach the page where the head has a management network."""
        if node.is_head and node.management:
            yield self.port

    def pages(self, site: Site) -> Iterator[Page]:
        """The chat page."""
        yield Page(site.head.name, "web UI", self.listen, self.port)
