"""Gives scalars the types that the schema expects, since YAML leaves plain ones open."""

from collections.abc import Mapping
from typing import Any

from generator.sitefile.automatic import automatic
from generator.sitefile.key_rules import rules_of_key, types_of
from generator.sitefile.source import Plain


def as_typed(value: Any, rules: Mapping[str, Any]) -> Any:
    """A value whose scalars have the types that the schema expects."""
    if (found := automatic(value, rules)) is not None:
        return found
    if isinstance(value, Plain):
        return _scalar(value, types_of(rules))
    if isinstance(value, list):
        # The entries of a list without a schema are parts of an argument: words or flags. In a
        # setting or a variable they are JSON.
        is_json = not rules or rules.get("check_with") in ("setting", "environment_value")
        entries = rules.get("schema") or ({} if is_json else {"type": ["string", "boolean"]})
        return [as_typed(item, entries) for item in value]
    if isinstance(value, dict):
        return {key: as_typed(item, rules_of_key(rules, key)) for key, item in value.items()}
    return value


def _scalar(value: Plain, types: tuple[str, ...]) -> Any:
    if value.is_null:
        return None
    meaning = value.meaning()
    if not types:
        return meaning
    if isinstance(meaning, bool):
        # Cerberus would accept true as the number 1.
        return meaning if "boolean" in types else str(value)
    # Where both numbers and text are allowed, a number is a number.
    is_text = "string" in types and not {"integer", "float"} & set(types)
    return str(value) if is_text else meaning
