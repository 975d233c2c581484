"""How people start the engines: which engine a command, an image or a recipe belongs to."""

import re

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.engines.traits import Recipe


def served(word: str, behind: str) -> tuple[str, int] | None:
    """The engine that a word of a command starts, and how many words that takes up."""
    for engine, traits in ENGINE_TRAITS.items():
        for program in traits.commands.programs:
            if program.word == word and program.second in ("", behind):
                return engine, 1 + bool(program.second)
    return None


def worked_for(program: str) -> str:
    """The engine that a worker program belongs to, which holds a part of another node's model."""
    found = (name for name, t in ENGINE_TRAITS.items() if program in t.commands.workers)
    return next(found, "")


def of_image(image: str) -> str:
    """The engine of a server's own image, by any of its tags."""
    found = (
        e for e, t in ENGINE_TRAITS.items() if any(part in image for part in t.commands.servers)
    )
    return next(found, "")


def under_ray() -> str:
    """The engine that is served if a container only runs `ray start`."""
    return next(name for name, t in ENGINE_TRAITS.items() if t.commands.is_under_ray)


def of_package(name: str) -> str:
    """The engine of a Python package, or else the package's own name."""
    found = (engine for engine, t in ENGINE_TRAITS.items() if t.commands.package == name)
    return next(found, name)


def recipes() -> tuple[Recipe, ...]:
    """The recipes of all engines."""
    return tuple(r for traits in ENGINE_TRAITS.values() if (r := traits.commands.recipe))


def recipe(runtime: str) -> Recipe | None:
    """How a runtime of sparkrun starts, by default vLLM; None if it isn't known."""
    if not runtime:
        return ENGINE_TRAITS[under_ray()].commands.recipe
    named = (r for r in recipes() if re.search(rf"(^|[^a-z]){r.runtime}", runtime))
    return next(named, None)


def starters() -> tuple[str, ...]:
    """What can stand first in a command that serves; modules and scripts stand behind Python."""
    commands = [traits.commands for traits in ENGINE_TRAITS.values()]
    words = [p.word for c in commands for p in c.programs if "." not in p.word]
    return (*dict.fromkeys(words), *(c.launcher for c in commands if c.launcher))


def variables() -> tuple[str, ...]:
    """The beginnings of the names of variables that engines read."""
    return tuple(name for traits in ENGINE_TRAITS.values() for name in traits.commands.variables)


def marks() -> tuple[str, ...]:
    """Parts of words of containers that may run an engine."""
    return tuple(mark for traits in ENGINE_TRAITS.values() for mark in traits.commands.marks)


def marked(image: str) -> str:
    """The engine that the name of an image mentions."""
    found = (e for e, t in ENGINE_TRAITS.items() if any(mark in image for mark in t.commands.marks))
    return next(found, "")


def scripts() -> tuple[str, ...]:
    """The commands that the engines' Python packages install."""
    return tuple(name for traits in ENGINE_TRAITS.values() for name in traits.commands.scripts)


def version_variables() -> frozenset[str]:
    """The variables in which images state an engine's version."""
    return frozenset(traits.commands.version_variable for traits in ENGINE_TRAITS.values()) - {""}
