"""One address for all models: the proxy sends each request to an engine that serves its model.

It has a route to each engine, and each engine the names that it serves. Engines that take turns on
the same nodes have one route each, of which one can be used.
"""

from math import ceil
from typing import Literal, Self

from generator.activation import service_restart
from generator.catalogs.engines.traits import Task
from generator.records import record
from generator.site import Part, Site, Words
from generator.site.service import Service
from generator.sitefile.declaration import DeclaredNode, Settings
from generator.sitefile.defaults import default

# The prompt is read before the first token, and others may be ahead of it. Published figures are
# 0.65 of the least that `fit` expects or more; models for which it expects none have this rate.
PART_OF_LEAST_SPEED = 0.25
SLOWEST_PROMPT_TOKENS_A_SECOND = 100
QUEUE_SECONDS = 300
# A response that is not streamed arrives as a whole, after its last token.
ANSWER_SECONDS = 3600

# An engine works on `max_sequences` requests at once, and queues this many times as many.
QUEUED = 8
FEWEST_REQUESTS = 64
# The sequences of an engine whose site does not say how many, and which is not known to have fewer.
USUAL_SEQUENCES = 256


@record
class Upstream:
    """An engine behind the proxy, and the names that it serves; `key` is the name of its secret.

    It is ready if it answers all paths in `asked`. `most` is how many requests it may have at once,
    `stream_seconds` how long a streamed answer may be silent and `answer_seconds` how long another
    one may take, with prompts read at `prompt_tokens_s` by that many `figures`, or by assumption.
    `turns` are the engines of which only one can be loaded, without this one.
    """

    engine: str
    url: str
    key: str | None
    names: Words
    turns: Words
    asked: Words
    most: int
    stream_seconds: int
    answer_seconds: int
    prompt_tokens_s: int
    figures: int

    @property
    def scheme(self) -> str:
        """The scheme of its URL."""
        return self.url.partition("://")[0]

    @property
    def address(self) -> str:
        """Its host and port."""
        return self.url.partition("://")[2]


def routes(site: Site, front: str) -> tuple[Upstream, ...]:
    """A route from the node `front` to each engine, in the order of the groups."""
    gateway = Gateway.of(site)
    return tuple(_route(part, front, gateway) for part in site.parts)


def _route(part: Part, front: str, gateway: "Gateway | None") -> Upstream:
    api, model, speed = part.engine.api, part.model, part.memory and part.memory.prefill
    rate = ceil(speed.least * PART_OF_LEAST_SPEED) if speed else SLOWEST_PROMPT_TOKENS_A_SECOND
    reading = model.context_length // rate if model.context_length else ANSWER_SECONDS
    seconds = min(QUEUE_SECONDS + reading, ANSWER_SECONDS)
    return Upstream(
        engine=part.group or part.engine.name,
        # On its own node it is on the loopback address.
        url=api.own_url if part.head.name == front else api.url,
        key=part.engine.key,
        names=(model.served_name, *model.aliases),
        turns=part.alternatives,
        asked=part.engine.traits.asked_when_ready,
        most=max(FEWEST_REQUESTS, QUEUED * (model.max_sequences or USUAL_SEQUENCES)),
        stream_seconds=(gateway and gateway.first_token) or seconds,
        answer_seconds=(gateway and gateway.silence) or ANSWER_SECONDS,
        prompt_tokens_s=rate,
        figures=speed.figures if speed else 0,
    )


@record
class Gateway(Service):
    """The gateway: its node, how it chooses among replicas, and how long it waits for an engine.

    `first_token` and `silence` are in seconds, 0 for the default of each engine.
    """

    NAME = "gateway"
    IS_ON_HEAD = True
    IS_BEFORE_ENGINES = True
    FORMER = (service_restart("sparkgen-gateway", "the gateway"),)

    node: str
    balance: Literal["least", "prefix"]
    first_token: int
    silence: int

    @classmethod
    def requested(cls, settings: Settings, host: DeclaredNode) -> Self:
        """On the node that the site names."""
        return cls(
            host.name,
            settings.get("balance", default("services.gateway.balance")),
            int(settings.get("first_token", 0)),
            int(settings.get("silence", 0)),
        )

    @staticmethod
    def served(site: Site) -> tuple[tuple[str, Task], ...]:
        """The model names that clients can request, without aliases, and for what."""
        found = ((part.model.served_name, part.engine.task) for part in site.parts)
        return tuple(dict.fromkeys(found))


SERVICE: type[Service] = Gateway
