"""nginx in front of the API or of all engines: a list of open paths, and a key for each client.

An engine has a single key for all clients, and protects only some of its paths with it. Behind the
proxy, the engine listens only on its own node, or for the proxy's.
"""

from collections.abc import Iterator
from typing import Self

from generator.activation import NOTHING, service_restart
from generator.records import record, replace
from generator.resources import rows
from generator.services import WEB_UI
from generator.services.gateway import Gateway, Upstream, routes
from generator.site import Node, Site, Words
from generator.site.control_plane import LOOPBACK
from generator.site.entry import Entry, OperatorEntry
from generator.site.panel import Panel, panels_of
from generator.site.service import OpenService, Service, on_its_node
from generator.sitefile.declaration import Access, DeclaredNode, Settings

_RESTART = service_restart("sparkgen-proxy", "the proxy")
_RELOAD = replace(_RESTART, text="reload the proxy", step="systemctl reload sparkgen-proxy")
_HERE = on_its_node("proxy")


@record
class OpenPath:
    """A path that needs no key, and the engine and the URL behind it."""

    path: str
    engine: str
    url: str


def _values(site: Site, node: Node) -> dict[str, object]:
    gateway, ways = Gateway.of(site), routes(site, node.name)
    names = dict.fromkeys(name for way in ways for name in way.names)
    return {
        "proxy": Proxy.of(site),
        "gateway": gateway,
        "web_ui": site.services.get(WEB_UI),
        "direct": tuple(_direct(site, ways)),
        "routes": ways,
        "serving": {name: [way.engine for way in ways if name in way.names] for name in names},
        "what": site.name if gateway else site.parts[0].engine.title,
    }


def _direct(site: Site, ways: tuple[Upstream, ...]) -> Iterator[OpenPath]:
    """Health and metrics of each engine behind the proxy."""
    for way in ways:
        of = f"/{way.engine}" if site.groups else ""
        for path in ("/health", "/metrics"):
            yield OpenPath(f"{path}{of}", way.engine, f"{way.scheme}://{way.engine}{path}")


def _has_authority(site: Site) -> bool:
    proxy = Proxy.of(site)
    return bool(proxy and proxy.access.has_authority)


def _script(name: str) -> Entry:
    path = f"opt/sparkgen/proxy/{name}.js"
    return Entry(path, _RELOAD, wanted=_HERE, payload=True)


@record
class Proxy(OpenService):
    """The proxy: where it listens, its image, and the paths that clients may post to.

    `is_for_all`: all engines are behind it, not a single one.
    """

    NAME = "proxy"
    IS_BEFORE_ENGINES = True
    KEPT = "the clients' keys, /etc/sparkgen/proxy.keys,"
    ENTRIES = (
        Entry("etc/systemd/system/sparkgen-proxy.service", _RESTART, wanted=_HERE),
        Entry("opt/sparkgen/proxy/proxy.conf", _RELOAD, wanted=_HERE, values=_values),
        *map(_script, ("bodies", "clients", "counts", "engines", "proxy")),
        Entry("opt/sparkgen/proxy/routes.json", _RELOAD, wanted=_HERE, values=_values),
        Entry("opt/sparkgen/proxy.sh", NOTHING, 0o755, _HERE, payload=True),
        Entry("opt/sparkgen/proxy.yaml", _RESTART, wanted=_HERE, values=_values),
    )
    OPERATOR_ENTRIES = (
        OperatorEntry("operator/certificates.sh", 0o755, payload=True, wanted=_has_authority),
    )

    # The user and group of nginx in the image, without rights on the node; the path of what the
    # proxy counts itself, beside those of the engines.
    user = 101
    own_metrics = "/proxy/metrics"

    node: str
    image: str
    listen: str
    port: int
    asked: Words
    is_for_all: bool = False
    access: Access = Access()

    @property
    def address(self) -> str:
        """Its own URL if it is in front of several engines."""
        return self.url if self.is_for_all else ""

    @property
    def own_url(self) -> str:
        """The base URL for its node, where the name of the address may not be known."""
        return f"{self.access.scheme}://{self.listen}:{self.port}"

    @property
    def certified(self) -> Words:
        """The names and addresses that a certificate of the site's authority is for."""
        own = (self.access.name, self.listen, self.node, f"{self.node}.local")
        return (*filter(None, own), "localhost", str(LOOPBACK))

    def routes(self, site: Site) -> tuple[Upstream, ...]:
        """The engines behind it."""
        return routes(site, self.node)

    @staticmethod
    def answered(site: Site) -> Iterator[tuple[str, str, Words]]:
        """Each path with what it is for, and the engines of the site that answer it."""
        titles = {part.engine.name: part.engine.title for part in site.parts}
        for path, meaning, *engines in rows("requests"):
            known = " ".join(engines).split()
            yield path, meaning, tuple(title for name, title in titles.items() if name in known)

    def keys(self, site: Site) -> tuple[tuple[str, str], ...]:
        """The engines that have a key, each with the name of its secret."""
        return tuple((way.engine, way.key) for way in self.routes(site) if way.key)

    @classmethod
    def requested(cls, settings: Settings, host: DeclaredNode) -> Self:
        """On the management network; a rule ensures that there is one."""
        image, listen = cls.requested_image(settings), cls.requested_listen(host)
        asked = dict.fromkeys([*(row[0] for row in rows("requests")), *settings.get("paths", ())])
        return cls(host.name, image, listen, cls.requested_port(settings), tuple(asked))

    def secrets(self, site: Site, node: Node) -> Iterator[str]:
        """The keys of the engines."""
        if node.name == self.node:
            yield from dict.fromkeys(name for _, name in self.keys(site))

    def opened(self, node: Node) -> Iterator[int]:
        """Clients are on the management network."""
        if node.name == self.node:
            yield self.port

    def panels(self, site: Site) -> Iterator[Panel]:
        """What clients ask for, what engines have, and how long an answer takes to begin."""
        yield from panels_of("proxy")


SERVICE: type[Service] = Proxy
