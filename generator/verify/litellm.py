"""Checks that LiteLLM reads every key of its configuration, since it ignores unknown ones."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from generator.diagnostics import did_you_mean
from generator.resources import SCHEMAS

_WHOLE = "-"
_MODELS = "model_list"


def complaints(text: str) -> Iterator[str]:
    """What is wrong with the keys of a configuration, one line each."""
    import yaml

    data = yaml.safe_load(text)
    if not isinstance(data, dict):
        yield "this is not a configuration: it has no keys"
        return
    yield from _unknown(_WHOLE, data, "")
    for section, own in data.items():
        if section == _MODELS:
            for index, route in enumerate(own or ()):
                place = f"{_MODELS}[{index}]"
                yield from _unknown(_MODELS, route, place)
                for part in ("litellm_params", "model_info"):
                    yield from _unknown(part, route.get(part, {}), f"{place}.{part}")
        elif section in keys():
            yield from _unknown(section, own or {}, section)


def _unknown(section: str, data: Mapping[str, Any], place: str) -> Iterator[str]:
    known = keys()[section]
    for key in data:
        if key not in known:
            name = f"{place}.{key}" if place else str(key)
            guess = did_you_mean(str(key), sorted(known))
            yield f"LiteLLM reads no key '{name}'{f': {guess}' if guess else ''}"


@cache
def keys() -> Mapping[str, frozenset[str]]:
    """The keys of each section."""
    found: dict[str, set[str]] = {}
    for line in (SCHEMAS / "litellm.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            section, _, key = line.partition("\t")
            found.setdefault(section, set()).add(key)
    return {section: frozenset(names) for section, names in found.items()}
