"""What an engine does unless its module says otherwise: no file of settings, KV cache in memory."""

from collections.abc import Collection, Mapping
from typing import Any

from generator.engines.draft_settings import DraftSettings
from generator.engines.offload import Connectors
from generator.fit.assessment import Fit
from generator.settings.environment import Environment
from generator.settings.flags import EngineSettings
from generator.site import Engine, Model, Rank, Words
from generator.sitefile.declaration import KvOffload

OFFLOAD: Connectors = {}


def reads(rank: Rank, model: Model, hub: str) -> Words:
    """Every rank reads its own share."""
    return (hub, *model.folders)


def open_paths(version: str, environment: Environment, settings: EngineSettings) -> Words:
    """None are known."""
    return ()


def offload_variables(offload: KvOffload) -> Mapping[str, str]:
    """None."""
    return {}


def options(
    engine: Engine, model: Model, settings: EngineSettings, memory: Fit | None
) -> Mapping[str, Any]:
    """None."""
    return {}


def option_names(version: str) -> Collection[str]:
    """None."""
    return ()


def draft_settings(version: str, method: str) -> DraftSettings | None:
    """None."""
    return None
