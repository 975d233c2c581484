"""Of engines that take all settings on the command line, and read no file of them."""

from collections.abc import Collection, Mapping
from typing import Any

from generator.engines.draft_settings import DraftSettings
from generator.fit.assessment import Fit
from generator.settings.flags import EngineSettings
from generator.site import Engine, Model


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
