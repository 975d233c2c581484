"""Speculative decoding: the methods of each engine, by version, and their names."""

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.engines.traits import Method

# Other names for the same method: the engines' own, in any case, with dashes or underscores.
_ALIASES = {
    "nextn": "mtp",
    "standalone": "draft",
    "draft_model": "draft",
    "draft_target": "draft",
    "draft_simple": "draft",
    "draft_eagle3": "eagle3",
    "draft_mtp": "mtp",
    "draft_dflash": "dflash",
    "draft_dspark": "dspark",
}


def canonical(word: str) -> str:
    """A method's name in site files, whichever engine's spelling was used."""
    plain = word.lower().replace("-", "_")
    return _ALIASES.get(plain, plain)


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
