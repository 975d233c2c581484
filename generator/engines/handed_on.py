"""Keys of the model that a flag of the engine gets as they are, as `schemas/model.yaml` says."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from generator.catalogs.engines import ENGINE_TRAITS
from generator.engines.arguments import arguments
from generator.settings.flags import EngineSettings
from generator.site import Engine, Model, Words
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel
from generator.sitefile.sections import site_schema


@cache
def _keys() -> Mapping[str, Mapping[str, str]]:
    """The flag that gets each key, by engine."""
    keys = site_schema()["model"]["schema"].items()
    return {key: meta["flags"] for key, rules in keys if "flags" in (meta := rules.get("meta", {}))}


def flags(engine: str) -> Mapping[str, str]:
    """The keys of the site file, by the flag that gets each."""
    return {own[engine]: f"model.{key}" for key, own in _keys().items() if engine in own}


def owned(engine: str) -> Mapping[str, str]:
    """All flags that the site file has a key for, or that only the generator can determine."""
    return {**flags(engine), **ENGINE_TRAITS[engine].owned_flags}


def values(engine: DeclaredEngine, model: DeclaredModel) -> Mapping[str, Any]:
    """The value of each key; a record has those that more than a flag depends on.

    What an engine can determine itself is left to it: it has measured its memory.
    """
    found = {key: getattr(model, key, model.others.get(key)) for key in _keys()}
    itself = ENGINE_TRAITS[engine.name].settles(engine.version)
    return found | {key: itself[key] for key in model.automatic if key in itself}


def words(engine: Engine, model: Model) -> Iterator[Words]:
    """The flags with their values, as the engine's parser accepts them."""
    for key, own in _keys().items():
        flag, value = own.get(engine.name), model.handed_on.get(key)
        if flag and value is not None:
            yield from arguments(EngineSettings(engine.name, engine.version, {flag: value}))
