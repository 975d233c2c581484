"""The interface of an engine's modules, and how they are found by its name in a site file."""

from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from generator.catalogs.engines import module_name, names
from generator.engines.draft_settings import DraftSettings
from generator.engines.offload import Connectors
from generator.engines.startup import Condition
from generator.fit.assessment import Fit
from generator.on_demand import OnDemand
from generator.settings.environment import Environment
from generator.settings.flags import EngineSettings
from generator.site import Engine, Model, Rank, Words
from generator.sitefile.declaration import KvOffload, Parallel

if TYPE_CHECKING:
    from generator.engines.stated_offload import StatedOffload
    from generator.fit.measured import Logged


class EngineModule(Protocol):
    """The interface of the module `engine` in an engine's package.

    `OFFLOAD` has the connectors that can keep the KV cache on disk.
    """

    OFFLOAD: Connectors

    def default_ports(self, launcher: str, parallel: Parallel) -> Mapping[str, int]:
        """Ports that the engine opens on the head besides its API, by name."""

    def environment(self, rank: Rank, engine: Engine) -> Mapping[str, str]:
        """The engine's own variables on a rank."""

    def entrypoint(self, rank: Rank, engine: Engine) -> Words:
        """The program that the container starts, and its arguments that are not flags."""

    def scripts(self, rank: Rank, engine: Engine) -> Words:
        """Files of the node, mostly generated, that the entrypoint needs in the container."""

    def reads(self, rank: Rank, model: Model, hub: str) -> Words:
        """Files and folders on the node that a rank reads; `hub` is its Hugging Face cache."""

    def flags(
        self, rank: Rank, engine: Engine, model: Model, settings: EngineSettings
    ) -> tuple[Words, ...]:
        """The program's flags, each with its values."""

    def open_paths(self, version: str, environment: Environment, settings: EngineSettings) -> Words:
        """Known paths of the API that a key should protect but that don't require one."""

    def offload_variables(self, offload: KvOffload) -> Mapping[str, str]:
        """Variables of a KV cache on disk."""

    def options(
        self, engine: Engine, model: Model, settings: EngineSettings, memory: Fit | None
    ) -> Mapping[str, Any]:
        """Settings that the engine reads from a file; `memory` is what is known about each node."""

    def option_names(self, version: str) -> Collection[str]:
        """The names that the file has for settings; empty if the engine reads no such file."""

    def draft_settings(self, version: str, method: str) -> DraftSettings | None:
        """What the file accepts for speculative decoding; None if it is not set there."""


def _module(engine: str) -> EngineModule:
    module: Any = import_module(f"{__package__}.{module_name(engine)}.engine")
    return cast(EngineModule, module)


def conditions(engine: str) -> tuple[Condition, ...]:
    """What an engine rejects or fails on at startup; imported only when needed."""
    startup: Any = import_module(f"{__package__}.{module_name(engine)}.startup")
    return cast(tuple[Condition, ...], startup.CONDITIONS)


def logged_memory(log: str) -> Iterator["Logged"]:
    """What a log's lines of each engine say about its memory; imported only to read a log."""
    for engine in names():
        module: Any = import_module(f"{__package__}.{module_name(engine)}.memory_log")
        yield module.logged(log)


def written_offload(
    engine: str, settings: EngineSettings, env: Mapping[str, str]
) -> "StatedOffload | None":
    """A KV cache on disk that people configured themselves, by its flags and variables."""
    if not ENGINES[engine].OFFLOAD:
        return None
    module: Any = import_module(f"{__package__}.{module_name(engine)}.offload")
    return cast("StatedOffload | None", module.stated(settings, env))


ENGINES: Mapping[str, EngineModule] = OnDemand(names, _module)
