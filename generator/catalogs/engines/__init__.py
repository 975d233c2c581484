"""What each engine is like: a module for each, found by the engine's name in a site file.

Whoever asks for the property of an engine asks here, and not for the engine's name.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from generator import precompiled
from generator.catalogs.engines.traits import EngineTraits
from generator.on_demand import OnDemand


@cache
def names() -> tuple[str, ...]:
    """The engines, as the schema of the site file has them."""
    return tuple(precompiled.schema("engine")["schema"]["name"]["allowed"])


def module_name(engine: str) -> str:
    """What the modules that are about an engine are called, in this room and in others."""
    return engine.translate({ord("-"): "_", ord("."): "_"})


def _traits(engine: str) -> EngineTraits:
    traits: EngineTraits = import_module(f"{__name__}.{module_name(engine)}").TRAITS
    return traits


ENGINE_TRAITS: Mapping[str, EngineTraits] = OnDemand(names, _traits)
