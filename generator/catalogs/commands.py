"""How people start the engines: which engine a command, an image or a recipe is of."""

import re

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.engines.traits import Recipe


def served(word: str, behind: str) -> tuple[str, int] | None:
    """The engine that a word of a command starts, and how many words that takes."""
    for engine, traits in ENGINE_TRAITS.items():
        for program in traits.commands.programs:
            if program.word == word and program.second in ("", behind):
                return engine, 1 + bool(program.second)
    return None


def worked_for(program: str) -> str:
    """The engine whose part of a model a program holds for another node's server."""
    found = (name for name, t in ENGINE_TRAITS.items() if program in t.commands.workers)
    return next(found, "")


def of_image(image: str) -> str:
    """The engine of a server's own image, of which every release is a tag."""
    for engine, traits in ENGINE_TRAITS.items():
        if any(part in image for part in traits.commands.servers):
            return engine
    return ""


def under_ray() -> str:
    """The engine that is served where `ray start` is all that a container says."""
    return next(name for name, t in ENGINE_TRAITS.items() if t.commands.is_under_ray)


def of_package(name: str) -> str:
    """What a Python package is an engine of, else its own name."""
    found = (engine for engine, t in ENGINE_TRAITS.items() if t.commands.package == name)
    return next(found, name)


def recipes() -> tuple[Recipe, ...]:
    """What recipes can name."""
    return tuple(r for traits in ENGINE_TRAITS.values() if (r := traits.commands.recipe))


def recipe(runtime: str) -> Recipe | None:
    """How a runtime of sparkrun starts, vLLM unless one is named; None of one that nobody knows."""
    if not runtime:
        return ENGINE_TRAITS[under_ray()].commands.recipe
    named = (r for r in recipes() if re.search(rf"(^|[^a-z]){r.runtime}", runtime))
    return next(named, None)
