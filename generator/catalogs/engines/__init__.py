"""The traits of each engine: `schemas/traits/ENGINE.yaml`, by its name in a site file.

Code that depends on a property of an engine checks it here, not the engine's name.
"""

from collections.abc import Mapping
from functools import cache

from generator import precompiled
from generator.catalogs.engines.traits import EngineTraits, read
from generator.on_demand import OnDemand


@cache
def names() -> tuple[str, ...]:
    """The engines in the schema of the site file."""
    return tuple(precompiled.schema("engine")["schema"]["name"]["allowed"])


def module_name(engine: str) -> str:
    """The name of the modules about an engine, in this package and in others."""
    return engine.translate({ord("-"): "_", ord("."): "_"})


def _traits(engine: str) -> EngineTraits:
    traits: EngineTraits = read(EngineTraits, precompiled.schema(f"traits/{engine}"))
    return traits


ENGINE_TRAITS: Mapping[str, EngineTraits] = OnDemand(names, _traits)
