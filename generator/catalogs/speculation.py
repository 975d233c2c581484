"""Speculative decoding: the methods of each engine, by version, and their names."""

from collections.abc import Mapping
from functools import cache

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.engines.traits import Method
from generator.resources import rows


@cache
def meanings(kind: str) -> Mapping[str, str]:
    """What the engines' own words mean in a site file, by their kind: methods, or keys."""
    return {word: meaning for of, word, meaning in rows("draft-words") if of == kind}


def canonical(word: str) -> str:
    """A method's name in site files, whichever engine's spelling was used."""
    plain = word.lower().replace("-", "_")
    return meanings("methods").get(plain, plain)


def method_of(engine: str, word: str) -> Method | None:
    """An engine's method by name; some engines name the prediction layers of each kind of model."""
    traits = ENGINE_TRAITS[engine]
    if traits.mtp_ending and word.endswith(traits.mtp_ending):
        return Method(word, "optional")
    return traits.draft_methods.get(word)


def methods(engine: str, version: str) -> list[str]:
    """The methods that a version of an engine has."""
    known = ENGINE_TRAITS[engine].draft_methods
    return [word for word, method in known.items() if method.is_in(version)]


def has_no_weights(method: str) -> bool:
    """Whether drafts come from the text or the model itself, without another model."""
    all_methods = [traits.draft_methods for traits in ENGINE_TRAITS.values()]
    known = [of_engine[method] for of_engine in all_methods if method in of_engine]
    return bool(known) and all(each.source == "none" for each in known)
