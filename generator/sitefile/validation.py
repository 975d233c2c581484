"""Checks values against the rules of the schema, in Cerberus's terms.

That a site is valid is told without it: `conformity.py`.
"""

from collections.abc import Callable, Sized
from functools import cache
from typing import Any

import cerberus
from cerberus.schema import UnvalidatedSchema

from generator.diagnostics import KeyPath
from generator.sitefile.key_rules import rules_at
from generator.sitefile.sections import site_schema
from generator.sitefile.text_types import TEXT_TYPES, fault
from generator.sitefile.typed_values import as_typed


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


def _checker(name: str) -> Callable[[Any, str, Any], None]:
    """What Cerberus calls for `check_with: NAME`."""

    def check_with(validator: Any, field: str, value: Any) -> None:
        if said := fault(name, value):
            validator._error(field, said)

    return check_with


_CHECKERS: Any = type(
    "_Checkers", (), {f"_check_with_{name}": _checker(name) for name in TEXT_TYPES}
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
