"""One address for all models: LiteLLM behind the proxy, on its node's loopback.

It has a route for each served name, which leads to every engine that serves it. There is no
database: the master key, which also opens its administration, is made on the node and stays there.
Clients have keys of the proxy.
"""

from ipaddress import IPv4Address
from typing import Self

from generator.activation import NOTHING, service_restart
from generator.catalogs.engines.traits import Task
from generator.origin import Origin
from generator.records import record
from generator.site import Node, Part, Site, Words
from generator.site.control_plane import LOOPBACK
from generator.site.entry import Entry
from generator.site.service import HostedService, Service, on_its_node
from generator.sitefile.declaration import DeclaredNode, Settings

# How long a failed replica is left alone. An engine without replicas is not: clients would only
# wait.
COOLDOWN_SECONDS = 10
HEALTH_SECONDS = 60

# A response that is not streamed arrives as a whole, after its last token.
ANSWER_SECONDS = 3600
# The prompt is read before the first token, by every model at this rate or faster, and other
# prompts may be ahead of it.
SLOWEST_PROMPT_TOKENS_A_SECOND = 100
QUEUE_SECONDS = 300

# Releases that others published with a credential stealer, or that are reported as such.
COMPROMISED = ("1.82.7", "1.82.8", "1.107.0")

_RESTART = service_restart("sparkgen-gateway", "the gateway")
_HERE = on_its_node("gateway")


@record
class Route:
    """An engine that serves a name; `key` names its secret in secrets.env.

    `first_seconds` is how long the first token may take, and `retries` how often a failed request
    is repeated: once for each further replica of the engine. If it `takes_turns`, nothing may be
    loaded under that name.
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
        """How long it is left alone after a failure."""
        return COOLDOWN_SECONDS if self.retries else 0


def routes(site: Site) -> tuple[Route, ...]:
    """A route to each engine, in the order of the groups."""
    # Of groups that take turns, one serves at a time.
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


def _url(site: Site, part: Part) -> str:
    """The engine's URL for the gateway's node: on loopback if the engine is on that node."""
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
    """The secrets of the engines that it sends requests to."""
    return tuple(dict.fromkeys(route.key for route in routes(site) if route.key))


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
class Gateway(HostedService):
    """The gateway: its node, its image, and its port on the loopback."""

    ORIGIN = Origin("services.gateway", "the gateway's own, generator/services/")

    NAME = "gateway"
    IS_BEFORE_ENGINES = True
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
        """The loopback: only its own node reaches it."""
        return LOOPBACK

    @property
    def own_url(self) -> str:
        """The base URL for the proxy."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def key_file(self) -> str:
        """The file in which its node keeps the master key, readable only by root."""
        return "/var/lib/sparkgen-gateway/key"

    @classmethod
    def requested(cls, settings: Settings, host: DeclaredNode) -> Self:
        """On the node that the site names."""
        image = cls.requested_image(settings)
        return cls(host.name, image, cls.requested_port(settings))

    @staticmethod
    def names(site: Site) -> Words:
        """The model names that clients can request."""
        return tuple(dict.fromkeys(route.name for route in routes(site)))

    def secrets(self, site: Site, node: Node) -> Words:
        """The API keys of the engines."""
        return keys(site) if node.name == self.node else ()


SERVICE: type[Service] = Gateway
