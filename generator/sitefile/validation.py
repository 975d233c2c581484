"""Holds values against the rules of the schema, as Cerberus takes these."""

from collections.abc import Callable, Mapping, Sized
from functools import cache, partial
from typing import Any

import cerberus
from cerberus.schema import UnvalidatedSchema

from generator.diagnostics import (
    KeyPath,
)
from generator.sitefile.automatic import automatic
from generator.sitefile.key_rules import rules_at, rules_of_key, types_of
from generator.sitefile.sections import site_schema
from generator.sitefile.source import Plain
from generator.sitefile.text_types import FORMS, argument_fault, form_fault, setting_fault


def is_valid(path: KeyPath, value: Any) -> bool:
    """Whether a value that is read from a file is right at a path."""
    rules = rules_at(path)
    if not rules:
        return False
    validator = _Validator(UnvalidatedSchema({"value": rules}))
    typed = as_typed(value, rules)
    return bool(validator.validate({"value": typed}, normalize=False))


@cache
def site_validator() -> Any:
    """What checks a whole site file against its schema."""
    # Cerberus would check the schema against its own schema first, which takes longer than all the
    # rest of reading a site; the tests do that once.
    return _Validator(UnvalidatedSchema(site_schema()))


_FAULTS = {"argument": argument_fault, "setting": setting_fault}


def _checker(form: str) -> Callable[[Any, str, Any], None]:
    """What Cerberus calls for `check_with: FORM`."""
    fault = _FAULTS.get(form) or partial(form_fault, form)

    def check_with(validator: Any, field: str, value: Any) -> None:
        if said := fault(value):
            validator._error(field, said)

    return check_with


_CHECKERS: Any = type(
    "_Checkers", (), {f"_check_with_{form}": _checker(form) for form in (*FORMS, *_FAULTS)}
)


_Inspected: Any = type(cerberus.Validator)


class _Uninspected(_Inspected):  # type: ignore[misc]
    """Cerberus reads a schema for schemas out of docstrings; at a start none is checked."""

    def __init__(self, *definition: Any) -> None:
        type.__init__(self, *definition)


class _Validator(_CHECKERS, cerberus.Validator, metaclass=_Uninspected):  # type: ignore[misc]
    """Made for files of any size, and any number of errors in them.

    Lengths come first: of a list that is too long the entries are not looked at.
    """

    priority_validations = (*cerberus.Validator.priority_validations, "minlength", "maxlength")

    def _error(self, *args: Any) -> None:
        if len(args) == 1:
            # Cerberus sorts all errors anew for each that is added, and files them in two trees.
            self._errors.extend(args[0])
        else:
            super()._error(*args)

    def _validate_maxlength(self, most: int, field: str, value: Sized) -> None:
        """{'type': 'integer'}"""  # noqa: D400, D415 (Cerberus reads the rule's schema here)
        if len(value) > most:
            self._error(field, cerberus.errors.MAX_LENGTH, len(value))
            self._drop_remaining_rules("schema", "check_with")


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
