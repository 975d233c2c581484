"""The schema at a place of a site file, and the name of that place in messages."""

from collections.abc import Mapping
from typing import Any

from generator.diagnostics import KeyPath, scalar
from generator.sitefile.sections import site_schema

KINDS = {
    "string": "text",
    "integer": "a whole number",
    "float": "a number",
    "boolean": "true or false",
    "list": "a list",
    "dict": "a mapping of keys to values",
}


def types_of(rules: Mapping[str, Any]) -> tuple[str, ...]:
    """The types that a key takes."""
    types = rules.get("type", ())
    return (types,) if isinstance(types, str) else tuple(types)


def rules_of_key(rules: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The rules of a key in a mapping."""
    known: Mapping[str, Any] = keys_of(rules).get(key) or rules.get("valuesrules", {})
    return known


def keys_of(rules: Mapping[str, Any]) -> Mapping[str, Any]:
    """The rules of each key in a mapping; none in a list, whose schema is that of its entries."""
    inner: Mapping[str, Any] = rules.get("schema", {})
    return inner if isinstance(inner.get("type", {}), dict) else {}


def section_of(key: str, place: KeyPath) -> str:
    """The section that a key belongs to, if there is exactly one."""
    homes = [
        section
        for section, rules in site_schema().items()
        if rules.get("type") == "dict" and key in rules.get("schema", {}) and (section,) != place
    ]
    return homes[0] if len(homes) == 1 else ""


def group_around(place: KeyPath, section: str) -> KeyPath:
    """The group around a place, if groups have such a section."""
    ends = (end for end in range(len(place), 0, -1) if isinstance(place[end - 1], int))
    return next((place[:end] for end in ends if section in keys_at(place[:end])), ())


def list_around(key: str, place: KeyPath) -> str:
    """How to correct a key that belongs to the list entry around the place, or nothing."""
    for end in range(len(place) - 2, 1, -1):
        if isinstance(place[end - 1], int) and key in keys_at(place[:end]):
            return f"remove it, or write it into the entry of '{place[end - 2]}' around it"
    return ""


def smallest_value(rules: Mapping[str, Any]) -> Any:
    """The example of a key, or one made of its required keys."""
    if "example" in rules.get("meta", {}):
        return rules["meta"]["example"]
    inner = rules["schema"]
    if rules["type"] == "list":
        return [smallest_value(inner)]
    wanted: list[str] = []
    for key in inner:
        excluded = inner[key].get("excludes", ())
        others = [excluded] if isinstance(excluded, str) else excluded
        if inner[key].get("required") and not set(others).intersection(wanted):
            wanted.append(key)
    return {key: smallest_value(inner[key]) for key in wanted or [next(iter(inner))]}


def flow_text(value: Any) -> str:
    """A value written on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {flow_text(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    # YAML reads such text as the start of a block, unless it is quoted.
    return f'"{value}"' if str(value).startswith(">") else str(value)


def is_of_type(types: tuple[str, ...], value: Any) -> bool:
    """Whether a value has one of these types."""
    kinds = {"string": (str,), "integer": (int,), "float": (float, int), "boolean": (bool,)}
    return any(type(value) in kinds.get(kind, ()) for kind in types)


LONGEST = 60


def quoted(path: KeyPath, value: Any) -> str:
    """The value as it was written, with the key that it belongs to."""
    shown = scalar(value)
    if isinstance(value, list | dict) or len(shown) > LONGEST or not shown.isprintable():
        return place_name(path) if path else "'site'"
    return f"'{key_name(path)}: {shown}'" if isinstance(path[-1], str) else f"'{shown}'"


def key_name(path: KeyPath) -> str:
    """The last name in a path."""
    return next((part for part in reversed(path) if isinstance(part, str)), "site")


def place_name(path: KeyPath) -> str:
    """The name of a place in a message."""
    if isinstance(path[-1], int):
        return f"entry {path[-1] + 1} of '{key_name(path)}'"
    return f"'{path[-1]}'"


def rules_at(path: KeyPath) -> Mapping[str, Any]:
    """The rules of the schema at a place."""
    rules: Mapping[str, Any] = {"schema": site_schema()}
    for part in path:
        rules = rules.get("schema", {}) if isinstance(part, int) else rules_of_key(rules, part)
    return rules


def keys_at(path: KeyPath) -> list[str]:
    """The keys that the schema defines at a place."""
    return list(keys_of(rules_at(path)))


def example_of(path: KeyPath) -> str:
    """An example of what to write at a place, if there is one."""
    rules = rules_at(path)
    if "schema" not in rules and "example" not in rules.get("meta", {}):
        return ""
    key = f"{path[-1]}: " if isinstance(path[-1], str) else ""
    word = rules.get("meta", {}).get("word")
    return f"for example '{key}{flow_text(smallest_value(rules))}'" + f", or '{word}'" * bool(word)
