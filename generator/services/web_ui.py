"""The chat page on the head, Open WebUI."""

from collections.abc import Iterator
from typing import Self

from generator.activation import service_restart
from generator.records import record
from generator.services import GATEWAY
from generator.site import Node, Site
from generator.site.entry import Entry
from generator.site.service import OpenService, Page, Service, on_its_node
from generator.sitefile.declaration import Access, DeclaredNode, Settings

_RESTART = service_restart("sparkgen-web-ui", "the web UI")
_HERE = on_its_node("web_ui")


@record
class WebUi(OpenService):
    """The chat page: where it listens, and its image."""

    NAME = "web_ui"
    KEPT = "the chat page's data, the Docker volume sparkgen-web-ui,"
    ENTRIES = (
        Entry("etc/systemd/system/sparkgen-web-ui.service", _RESTART, wanted=_HERE),
        Entry("opt/sparkgen/web-ui.sh", _RESTART, 0o755, _HERE, payload=True),
        Entry("opt/sparkgen/web-ui.yaml", _RESTART, wanted=_HERE),
    )

    # The secrets that it has: its key as a client of the gateway, and the administrator's account,
    # which it creates at its first start.
    own_key = "WEB_UI_API_KEY"
    account = ("WEBUI_ADMIN_EMAIL", "WEBUI_ADMIN_PASSWORD")

    node: str
    image: str
    listen: str
    port: int
    access: Access = Access()

    @classmethod
    def requested(cls, settings: Settings, host: DeclaredNode) -> Self:
        """On the management network, or for the head alone if there is none."""
        image, listen = cls.requested_image(settings), cls.requested_listen(host)
        return cls(host.name, image, listen, cls.requested_port(settings))

    def secrets(self, site: Site, node: Node) -> Iterator[str]:
        """Its account, and its key for the gateway if there is one."""
        if node.name == self.node:
            yield from self.account
            if GATEWAY in site.services:
                yield self.own_key

    def opened(self, node: Node) -> Iterator[int]:
        """People reach the page if the head has a management network."""
        if node.name == self.node and node.management:
            yield self.port

    def pages(self, site: Site) -> Iterator[Page]:
        """The chat page."""
        yield Page(self.node, "web UI", self.listen, self.port, self.access.scheme)


SERVICE: type[Service] = WebUi
