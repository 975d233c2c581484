"""One address for all models: LiteLLM behind the proxy, on its node's loopback.

It has a route for each name that is served, which leads to every engine that serves it. There is no
database: the master key opens its administration too, is made on the node and stays there. Clients
have keys of the proxy.
"""

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from typing import Self

from generator.activation import NOTHING, service_restart
from generator.catalogs.engines.traits import Task
from generator.origin import Origin
from generator.records import record
from generator.site import Node, Site, Words
from generator.site.control_plane import LOOPBACK
from generator.site.entry import Entry
from generator.site.service import RequestedPort, Service, on_its_node
from generator.sitefile.declaration import DeclaredNode, Settings
from generator.sitefile.defaults import default

# A replica that fails is left alone for so long. What has none is not: clients would only wait.
COOLDOWN_SECONDS = 10
HEALTH_SECONDS = 60

# An answer that is not streamed comes as a whole, after the last of its tokens.
ANSWER_SECONDS = 3600
# Before the first token a prompt is read, which no model is slower at than this, and others' are.
SLOWEST_PROMPT_TOKENS_A_SECOND = 100
QUEUE_SECONDS = 300

# Releases that were published by somebody else, with a thief of credentials, or are said to be.
# Source: BerriAI/litellm issues 24512 and 24518, and OSV MAL-2026-2144, for the first two.
COMPROMISED = ("1.82.7", "1.82.8", "1.107.0")

_RESTART = service_restart(
    "sparkgen-gateway",
    "the gateway",
    "the gateway answers 503 until it has started again, for half a minute",
)
_HERE = on_its_node("gateway")


@record
class Route:
    """An engine that answers to a name; `key` names its secret in secrets.env.

    `first_seconds` is how long the first token may take, and `retries` how often a request is asked
    again that failed: once for each replica of the engine. One that `takes_turns` may have nothing
    loaded of that name.
    """

    ORIGIN = Origin("groups|model engine", "a route for each engine, generator/services/gateway.py")

    name: str
    engine: str
    url: str
    key: str | None
    mode: Task
    first_seconds: int
    retries: int
    takes_turns: bool

    @property
    def cooldown_seconds(self) -> int:
        """How long it is left alone after it has failed."""
        return COOLDOWN_SECONDS if self.retries else 0


def routes(site: Site) -> tuple[Route, ...]:
    """The way to each engine, in the order of the groups."""
    # Of those that take turns one serves at a time.
    names = [name for slot in site.slots for name in {part.model.served_name for part in slot}]
    return tuple(
        Route(
            part.model.served_name,
            part.group or part.engine.name,
            _url(site, part),
            part.engine.key,
            part.engine.task,
            first_seconds(part.model.context_length),
            replicas - 1,
            bool(part.alternatives),
        )
        for part in site.parts
        for replicas in [names.count(part.model.served_name)]
    )


def _url(site: Site, part: Site) -> str:
    """Where the gateway's node finds an engine: on loopback, if that is where it listens."""
    gateway = Gateway.of(site)
    is_here = gateway is not None and part.head.name == gateway.node
    return part.engine.api.own_url if is_here else part.engine.api.url


def first_seconds(context_length: int | None) -> int:
    """How long the first token of the longest prompt may take."""
    if context_length is None:
        return ANSWER_SECONDS
    reading = context_length // SLOWEST_PROMPT_TOKENS_A_SECOND
    return min(QUEUE_SECONDS + reading, ANSWER_SECONDS)


def keys(site: Site) -> Words:
    """The secrets of the engines that it asks."""
    return tuple(dict.fromkeys(route.key for route in routes(site) if route.key))


def _port(settings: Settings) -> int:
    return int(settings.get("port", default("services.gateway.port")))


def _values(site: Site, node: Node) -> dict[str, object]:
    gateway, ways = Gateway.of(site), routes(site)
    return {
        "gateway": gateway,
        "routes": ways,
        "replicated": tuple(dict.fromkeys(way.name for way in ways if way.retries)),
        "aliases": {
            alias: part.model.served_name for part in site.parts for alias in part.model.aliases
        },
        "turns": " ".join(
            ",".join(part.group for part in slot) for slot in site.slots if len(slot) > 1
        ),
        "answer_seconds": ANSWER_SECONDS,
        "health_seconds": HEALTH_SECONDS,
    }


@record
class Gateway(Service):
    """The gateway: its node, its image, and the port of the loopback that it listens on."""

    ORIGIN = Origin("services.gateway", "the gateway's own, generator/services/")

    NAME = "gateway"
    IS_ON_HEAD = True
    IMAGES = ("image",)
    ENTRIES = (
        Entry("etc/systemd/system/sparkgen-gateway.service", _RESTART, wanted=_HERE),
        Entry("opt/sparkgen/gateway.sh", NOTHING, 0o755, _HERE, payload=True),
        Entry("opt/sparkgen/gateway.yaml", _RESTART, wanted=_HERE, values=_values),
        Entry("opt/sparkgen/gateway_hooks.py", _RESTART, wanted=_HERE, payload=True),
        Entry("opt/sparkgen/litellm.yaml", _RESTART, wanted=_HERE, values=_values),
    )

    node: str
    image: str
    port: int

    @property
    def listen(self) -> IPv4Address:
        """Its node alone reaches it."""
        return LOOPBACK

    @property
    def own_url(self) -> str:
        """The base address for the proxy."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def key_file(self) -> str:
        """Where its node keeps the master key, for root alone."""
        return "/var/lib/sparkgen-gateway/key"

    @classmethod
    def requested(cls, settings: Settings, host: DeclaredNode) -> Self:
        """On the node that the site names."""
        image = settings.get("image", default("services.gateway.image"))
        return cls(host.name, image, _port(settings))

    @classmethod
    def requested_ports(cls, settings: Settings) -> Mapping[str, RequestedPort]:
        """Its own port."""
        path = ("services", cls.NAME, "port")
        return {cls.NAME: RequestedPort(_port(settings), path, "port" in settings)}

    def listeners(self, node: Node) -> Mapping[str, int]:
        """On its node alone."""
        return {self.NAME: self.port} if node.name == self.node else {}

    def images(self, node: Node) -> Iterator[str]:
        """LiteLLM, on its node."""
        if node.name == self.node:
            yield self.image

    @staticmethod
    def names(site: Site) -> Words:
        """The names that clients can ask for."""
        return tuple(dict.fromkeys(route.name for route in routes(site)))

    def secrets(self, site: Site, node: Node) -> Words:
        """The keys that engines ask for."""
        return keys(site) if node.name == self.node else ()


SERVICE: type[Service] = Gateway
