"""The traits of each engine: a module for each, found by the engine's name in a site file.

Code that depends on a property of an engine checks it here, not the engine's name.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from generator import precompiled
from generator.catalogs.engines.traits import EngineTraits
from generator.on_demand import OnDemand


@cache
def names() -> tuple[str, ...]:
    """The engines in the schema of the site file."""
    return tuple(precompiled.schema("engine")["schema"]["name"]["allowed"])


def module_name(engine: str) -> str:
    """The name of the modules about an engine, in this room and in others."""
    return engine.translate({ord("-"): "_", ord("."): "_"})


def _traits(engine: str) -> EngineTraits:
    traits: EngineTraits = import_module(f"{__name__}.{module_name(engine)}").TRAITS
    return traits


ENGINE_TRAITS: Mapping[str, EngineTraits] = OnDemand(names, _traits)
