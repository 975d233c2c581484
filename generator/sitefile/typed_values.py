"""Values with their scalars as the schema's types say: YAML leaves open what a plain one is."""

from collections.abc import Mapping
from typing import Any

from generator.sitefile.automatic import automatic
from generator.sitefile.key_rules import rules_of_key, types_of
from generator.sitefile.source import Plain


def as_typed(value: Any, rules: Mapping[str, Any]) -> Any:
    """A value with its scalars as the schema's types say."""
    if (found := automatic(value, rules)) is not None:
        return found
    if isinstance(value, Plain):
        return _scalar(value, types_of(rules))
    if isinstance(value, list):
        # Of a list without a schema the entries are what an argument is made of: words or flags.
        # That of a setting, and of a variable, is JSON.
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
        # Cerberus would take true for the number 1.
        return meaning if "boolean" in types else str(value)
    # Where numbers are taken beside texts, a number is one.
    is_text = "string" in types and not {"integer", "float"} & set(types)
    return str(value) if is_text else meaning
