"""Nodes, models and engines as a site file declares them, with defaults for what a test omits."""

from typing import Any

from generator.settings.environment import Environment, Written
from generator.settings.flags import EngineSettings
from generator.sitefile.declaration import (
    DeclaredEngine,
    DeclaredModel,
    DeclaredNode,
    Parallel,
    Speculative,
)


def some_nodes(count: int, visible_gib: float = 119.7) -> tuple[DeclaredNode, ...]:
    """Nodes that report the given amount of memory."""
    return tuple(
        DeclaredNode(index, f"spark{index + 1}", None, 11 + index, 128, visible_gib, "nvidia")
        for index in range(count)
    )


def a_model(**settings: Any) -> DeclaredModel:
    """A model section; speculative decoding is given as a mapping."""
    if drafts := settings.get("speculative"):
        settings["speculative"] = Speculative(**{"source": None} | drafts)
    settings = {"automatic": (), "correction_gib": None} | settings
    return DeclaredModel(
        **{key: settings.pop(key, None) for key in DeclaredModel.__match_args__}, **settings
    )


def an_engine(**settings: Any) -> DeclaredEngine:
    """An engine section with `args` and `env`; vLLM 0.33.0 at 0.8 by default."""
    values: dict[str, Any] = {
        "name": "vllm",
        "version": "0.33.0",
        "image": "vllm/vllm-openai:v0.33.0",
        "venv": None,
        "nccl": None,
        "nccl_patched": False,
        "launcher": None,
        "port": None,
        "ports": {},
        "bind": None,
        "parallel": Parallel(),
        "memory_utilization": 0.8,
        "args": {},
        "env": {},
        "secrets": (),
    }
    if "+" in settings.get("version", ""):
        values["image"] = "example.org/own:1"
    values |= settings
    env = Environment(Written(values.pop("env")))
    own = EngineSettings(values["name"], values["version"], values.pop("args"))
    return DeclaredEngine(**values, settings=own, environment=env)
