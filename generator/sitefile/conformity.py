"""Checks whether data matches a schema, for the rules that our schemas use.

Cerberus reports what is wrong with a site. Most sites have nothing wrong, and it would take 38 of
the then 308 ms of CPU time of `validate` for three nodes (medians of fifteen runs), so it is
imported only for sites that this check does not find valid. Tests hold both to the same answers,
also on drawn data.
"""

from collections.abc import Callable, Iterable, Mapping, Sized
from contextlib import suppress
from typing import Any

from generator.sitefile.text_types import fault

Rules = Mapping[str, Any]

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "float": (int, float),
    "boolean": bool,
    "list": list,
    "dict": dict,
}


def conforms(data: Mapping[Any, Any], schema: Mapping[str, Rules]) -> bool:
    """Whether a mapping has the keys that a schema requires, and values that its rules allow."""
    if any(key not in schema or not _is_valid(value, schema[key]) for key, value in data.items()):
        return False
    needless: set[str] = set()
    for key in data:
        if any(other not in data for other in _listed(schema[key].get("dependencies", ()))):
            return False
        others = _listed(schema[key].get("excludes", ()))
        if any(other in data for other in others):
            return False
        if schema[key].get("required"):
            needless.update(others)
    return all(
        key in data or key in needless for key, rules in schema.items() if rules.get("required")
    )


def _is_valid(value: Any, rules: Rules) -> bool:
    """Whether a value satisfies its rules; null never does."""
    types = [_TYPES[name] for name in _listed(rules.get("type", ()))]
    if value is None or (types and not isinstance(value, tuple(types))):
        return False
    return all(name in _CHECKS and _CHECKS[name](rule, value) for name, rule in rules.items())


def _listed(names: str | Iterable[str]) -> Iterable[str]:
    return (names,) if isinstance(names, str) else names


def _is_allowed(allowed: Iterable[Any], value: Any) -> bool:
    many = isinstance(value, list | dict)
    return all(each in allowed for each in value) if many else value in allowed


def _is_between(least: Any, value: Any, most: Any) -> bool:
    # Bounds do not apply to what is not a number.
    with suppress(TypeError):
        return bool(least <= value <= most)
    return True


def _has_schema(schema: Mapping[str, Any], value: Any) -> bool:
    """The schema of a list has the rules of its entries."""
    if isinstance(value, list):
        return all(_is_valid(entry, schema) for entry in value)
    return not isinstance(value, dict) or conforms(value, schema)


def _fit(rules: Rules, values: Iterable[Any]) -> bool:
    return all(_is_valid(value, rules) for value in values)


_CHECKS: Mapping[str, Callable[[Any, Any], bool]] = {
    # Nothing is to be checked of a value itself.
    **dict.fromkeys(("type", "meta", "required", "excludes", "dependencies"), lambda *_: True),
    "allowed": _is_allowed,
    "min": lambda least, value: _is_between(least, value, value),
    "max": lambda most, value: _is_between(value, value, most),
    "minlength": lambda least, value: not isinstance(value, Sized) or len(value) >= least,
    "maxlength": lambda most, value: not isinstance(value, Sized) or len(value) <= most,
    "check_with": lambda name, value: not fault(name, value),
    "schema": _has_schema,
    "keysrules": lambda rules, value: not isinstance(value, dict) or _fit(rules, value),
    "valuesrules": lambda rules, value: not isinstance(value, dict) or _fit(rules, value.values()),
}
