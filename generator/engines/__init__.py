"""The engines: each module says what its engine is told on each node, and in which words."""

from collections.abc import Mapping
from typing import Any, Protocol

from generator.declaration import Argument, Parallel
from generator.engines import llama_cpp, sglang, tensorrt_llm, vllm
from generator.fit.assessment import Fit
from generator.site import Engine, Model, Rank, Words


class EngineModule(Protocol):
    """What a module of this package has.

    The first launcher is the default. `API_KEY` names the variable that the engine reads its API's
    key from, `USES_NCCL` says whether its ranks talk through NCCL, `SPLITS_TENSORS` whether nodes
    can share a layer, `CACHES` has its own cache folders by variable, and `OWNED_FLAGS` the key of
    the site file that each flag is set by. `HEALTH` is the program and the generated script that
    ask the head whether it serves, and `HEALTH_GENERATES` the engine's own endpoint for that, if it
    has one that proves a token.
    """

    TITLE: str
    LAUNCHERS: tuple[str, ...]
    API_PORT: int
    API_KEY: str | None
    USES_NCCL: bool
    SPLITS_TENSORS: bool
    CACHES: Mapping[str, str]
    HEALTH: Words
    HEALTH_GENERATES: str | None
    OWNED_FLAGS: Mapping[str, str]

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

    def options(
        self, engine: Engine, model: Model, args: Mapping[str, Argument], memory: Fit | None
    ) -> Mapping[str, Any]:
        """Settings that the engine reads from a file; `memory` is what is known of each node's."""


ENGINES: Mapping[str, EngineModule] = {
    "vllm": vllm,
    "sglang": sglang,
    "tensorrt-llm": tensorrt_llm,
    "llama.cpp": llama_cpp,
}
