"""The engines: each module has its engine's ports, environment and command lines.

A module is found by the engine's name in a site file.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from generator.catalogs.engines import module_name, names
from generator.engines.offload import Connectors
from generator.engines.startup import Condition
from generator.fit.assessment import Fit
from generator.on_demand import OnDemand
from generator.origin import Origin
from generator.site import Engine, Model, Rank, Words
from generator.site.panel import Panel
from generator.sitefile.declaration import Argument, KvOffload, Parallel


class EngineModule(Protocol):
    """What a module of this package has.

    The first launcher is the default. `API_KEY` names the
    variable that the engine reads its API's key from, `CACHES` has its own cache folders by
    variable, and `OWNED_FLAGS` the key of the site file that each flag is set by. `HEALTH` is the
    program and the generated script that ask the head whether it serves, and `HEALTH_GENERATES` the
    engine's own endpoint for that, if it has one that proves a token. With `TLS_FLAGS` the API
    speaks TLS. `OFFLOAD` has what can keep the KV cache on disk. `VARIABLE_ORIGINS` says
    where those variables come from that hold what a site file says. `PANELS` is what a dashboard
    shows of the engine.
    """

    LAUNCHERS: tuple[str, ...]
    API_PORT: int
    API_KEY: str | None
    CACHES: Mapping[str, str]
    HEALTH: Words
    HEALTH_GENERATES: str | None
    TLS_FLAGS: tuple[str, ...]
    OWNED_FLAGS: Mapping[str, str]
    VARIABLE_ORIGINS: Mapping[str, Origin]
    PANELS: tuple[Panel, ...]
    OFFLOAD: Connectors

    def conditions(self) -> tuple[Condition, ...]:
        """What the engine refuses or dies of at its start."""

    def default_ports(self, launcher: str, parallel: Parallel) -> Mapping[str, int]:
        """Ports that the engine opens on the head beside its API, by name."""

    def environment(self, rank: Rank, engine: Engine) -> Mapping[str, str]:
        """The engine's own variables on a rank."""

    def entrypoint(self, rank: Rank, engine: Engine) -> Words:
        """The program that the container starts, and the arguments that are not flags."""

    def scripts(self, rank: Rank, engine: Engine) -> Words:
        """Files of the node, most of them generated, that the entrypoint needs in the container."""

    def reads(self, rank: Rank, model: Model, hub: str) -> Words:
        """Files and folders of the node that a rank reads; `hub` is its Hugging Face cache."""

    def flags(
        self, rank: Rank, engine: Engine, model: Model, args: Mapping[str, Argument]
    ) -> tuple[Words, ...]:
        """The program's flags, each with its values."""

    def open_paths(
        self, version: str, env: Mapping[str, str], args: Mapping[str, Argument]
    ) -> Words:
        """Paths of the API that do what a key should protect and ask for none, as far as known."""

    def offload_variables(self, offload: KvOffload) -> Mapping[str, str]:
        """Variables of a KV cache on disk."""

    def options(
        self, engine: Engine, model: Model, args: Mapping[str, Argument], memory: Fit | None
    ) -> Mapping[str, Any]:
        """Settings that the engine reads from a file; `memory` is what is known of each node's."""


def _module(engine: str) -> EngineModule:
    module: Any = import_module(f"{__name__}.{module_name(engine)}")
    return cast(EngineModule, module)


ENGINES: Mapping[str, EngineModule] = OnDemand(names, _module)
