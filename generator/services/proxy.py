"""nginx before the API, on the head: a list of paths that are open, and a key for each client.

The key of an engine is one for all, and protects some of its paths alone. Behind the proxy the
engine listens for its own node.
"""

from collections.abc import Iterator, Mapping
from typing import Self

from generator.activation import NOTHING, service_restart
from generator.origin import Origin
from generator.records import record
from generator.site import Node, Site, Words
from generator.site.control_plane import LOOPBACK
from generator.site.entry import Entry
from generator.site.service import RequestedPort, Service
from generator.sitefile.declaration import DeclaredNode, Settings
from generator.sitefile.defaults import default

# The paths of the OpenAI API that ask a model, and those of other APIs that engines serve beside
# it. Whatever loads adapters, sleeps or tells of the server is none of them.
ASKED = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/rerank",
    "/v1/score",
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
)
READ = ("/v1/models",)
# Without a key, as an engine itself answers them: for a load balancer, and for Prometheus.
PUBLIC = ("/health", "/metrics")

# The user nginx of the image, who is nobody special on the node.
USER = 101

_RESTART = service_restart("sparkgen-proxy", "the proxy")


def _on_head(site: Site, node: Node) -> bool:
    return node.is_head


def _port(settings: Settings) -> int:
    return int(settings.get("port", default("services.proxy.port")))


def _values(site: Site, node: Node) -> dict[str, object]:
    proxy = Proxy.of(site)
    assert proxy
    return {"proxy": proxy, "read": READ, "public": PUBLIC}


@record
class Proxy(Service):
    """The proxy: where it listens, its image, and the paths that clients may post to."""

    ORIGIN = Origin("services.proxy", "what clients may ask for, generator/services/")

    NAME = "proxy"
    IS_ON_HEAD = True
    KNOWS_GROUPS = False
    ENTRIES = (
        Entry("etc/systemd/system/sparkgen-proxy.service", _RESTART, wanted=_on_head),
        Entry("opt/sparkgen/proxy.conf", _RESTART, wanted=_on_head, values=_values),
        Entry("opt/sparkgen/proxy.sh", NOTHING, 0o755, _on_head, payload=True),
        Entry("opt/sparkgen/proxy.yaml", _RESTART, wanted=_on_head, values=_values),
    )

    image: str
    listen: str
    port: int
    asked: Words

    @property
    def user(self) -> int:
        """The user and the group that nginx is in its container."""
        return USER

    @property
    def url(self) -> str:
        """The base address for clients."""
        return f"http://{self.listen}:{self.port}"

    @classmethod
    def requested(cls, settings: Settings, head: DeclaredNode) -> Self:
        """On the management network; a rule sees to it that there is one."""
        listen = head.management.address.ip if head.management else LOOPBACK
        image = settings.get("image", default("services.proxy.image"))
        asked = dict.fromkeys([*ASKED, *settings.get("paths", ())])
        return cls(image, str(listen), _port(settings), tuple(asked))

    @classmethod
    def requested_ports(cls, settings: Settings) -> Mapping[str, RequestedPort]:
        """Its own port."""
        path = ("services", cls.NAME, "port")
        return {cls.NAME: RequestedPort(_port(settings), path, "port" in settings)}

    def listeners(self, node: Node) -> Mapping[str, int]:
        """It is on the head alone."""
        return {self.NAME: self.port} if node.is_head else {}

    def images(self, node: Node) -> Iterator[str]:
        """nginx, on the head."""
        if node.is_head:
            yield self.image

    def opened(self, node: Node) -> Iterator[int]:
        """Clients are on the management network."""
        if node.is_head:
            yield self.port
