"""nginx in front of the API or the gateway: a list of open paths, and a key for each client.

An engine has a single key for all clients, and protects only some of its paths with it. Behind the
proxy, the engine listens only on its own node.
"""

from collections.abc import Iterator
from typing import Self

from generator.activation import NOTHING, service_restart
from generator.origin import Origin
from generator.records import record
from generator.services.gateway import Gateway, routes
from generator.site import Node, Site, Words
from generator.site.control_plane import LOOPBACK
from generator.site.entry import Entry
from generator.site.service import HostedService, Service, on_its_node
from generator.sitefile.declaration import DeclaredNode, Settings

# The paths of the OpenAI API that send requests to a model, and those of other APIs that engines
# serve as well. Nothing that loads adapters, puts the server to sleep or describes it is included.
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
# Open without a key, as on the engine itself: for a load balancer, and for Prometheus.
HEALTH, METRICS = "/health", "/metrics"
PUBLIC = (HEALTH, METRICS)

# The user nginx in the image, who has no rights on the node.
USER = 101

_RESTART = service_restart("sparkgen-proxy", "the proxy")
_HERE = on_its_node("proxy")


@record
class Direct:
    """A path that needs no key, and the server behind it; `key` names a file with its key."""

    ORIGIN = Origin(
        "services.gateway groups|model", "the server behind each path, generator/services/proxy.py"
    )

    path: str
    url: str
    key: str | None = None


def _values(site: Site, node: Node) -> dict[str, object]:
    gateway, part = Gateway.of(site), site.parts[0]
    own_url = gateway.own_url if gateway else part.engine.api.own_url
    return {
        "proxy": Proxy.of(site),
        "read": READ,
        "public": () if gateway else PUBLIC,
        "direct": tuple(_direct(site, gateway)) if gateway else (),
        "what": site.name if gateway else part.engine.title,
        "upstream": own_url.replace("http://", ""),
    }


def _direct(site: Site, gateway: Gateway) -> Iterator[Direct]:
    """The health of the gateway, and health and metrics of each engine."""
    yield Direct(HEALTH, f"{gateway.own_url}/health/liveliness")
    locked = dict(Proxy.locked_metrics(site))
    for part, route in zip(site.parts, routes(site), strict=True):
        of = f"/{part.group}" if part.group else ""
        if of:
            yield Direct(f"{HEALTH}{of}", f"{route.url}{HEALTH}")
        name = f"metrics-{route.engine}" if route.engine in locked else None
        yield Direct(f"{METRICS}{of}", f"{route.url}{METRICS}", name)


@record
class Proxy(HostedService):
    """The proxy: where it listens, its image, and the paths that clients may post to.

    `is_for_all`: the gateway is behind it, not an engine.
    """

    ORIGIN = Origin("services.proxy", "what clients may request, generator/services/")

    NAME = "proxy"
    IS_BEFORE_ENGINES = True
    KEPT = "the clients' keys, /etc/sparkgen/proxy.keys,"
    ENTRIES = (
        Entry("etc/systemd/system/sparkgen-proxy.service", _RESTART, wanted=_HERE),
        Entry("opt/sparkgen/proxy.conf", _RESTART, wanted=_HERE, values=_values),
        Entry("opt/sparkgen/proxy.sh", NOTHING, 0o755, _HERE, payload=True),
        Entry("opt/sparkgen/proxy.yaml", _RESTART, wanted=_HERE, values=_values),
    )

    node: str
    image: str
    listen: str
    port: int
    asked: Words
    is_for_all: bool = False

    @property
    def address(self) -> str:
        """Its own URL if it is in front of the gateway."""
        return self.url if self.is_for_all else ""

    @property
    def user(self) -> int:
        """The user and group of nginx in its container."""
        return USER

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://{self.listen}:{self.port}"

    @staticmethod
    def locked_metrics(site: Site) -> tuple[tuple[str, str], ...]:
        """The engines behind the gateway whose metrics need a key, with the name of each key."""
        return tuple(
            (route.engine, part.engine.key)
            for part, route in zip(site.parts, routes(site), strict=True)
            if part.engine.traits.locks_metrics and part.engine.key
        )

    @classmethod
    def requested(cls, settings: Settings, host: DeclaredNode) -> Self:
        """On the management network; a rule ensures that there is one."""
        listen = host.management.address.ip if host.management else LOOPBACK
        image = cls.requested_image(settings)
        asked = dict.fromkeys([*ASKED, *settings.get("paths", ())])
        return cls(host.name, image, str(listen), cls.requested_port(settings), tuple(asked))

    def opened(self, node: Node) -> Iterator[int]:
        """Clients are on the management network."""
        if node.name == self.node:
            yield self.port


SERVICE: type[Service] = Proxy
