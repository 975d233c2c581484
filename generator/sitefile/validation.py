"""Checks values against the schema's rules, with Cerberus.

Valid sites are recognized without it, by `conformity.py`.
"""

from collections.abc import Callable, Mapping, Sized
from typing import Any

import cerberus
from cerberus.schema import UnvalidatedSchema

from generator.diagnostics import KeyPath
from generator.sitefile.key_rules import rules_at
from generator.sitefile.text_types import CHECKS, fault
from generator.sitefile.typed_values import as_typed


def is_valid(path: KeyPath, value: Any) -> bool:
    """Whether a value from a file is valid at a path."""
    rules = rules_at(path)
    if not rules:
        return False
    typed = as_typed(value, rules)
    return bool(validator({"value": rules}).validate({"value": typed}, normalize=False))


def takes(path: KeyPath, value: Any) -> bool:
    """Whether a value was meant for a path: a mapping that has mostly its keys may have a fault."""
    known = rules_at(path).get("schema", {})
    if isinstance(value, dict) and value and known:
        return 2 * sum(key in known for key in value) > len(value)
    return is_valid(path, value)


def validator(rules: Mapping[str, Any]) -> Any:
    """A validator by a schema."""
    # Cerberus would check the schema against its own schema first, which takes longer than the rest
    # of reading a site; the tests do that instead.
    return _Validator(UnvalidatedSchema(rules))


def _checker(name: str) -> Callable[[Any, str, Any], None]:
    """The method that Cerberus calls for `check_with: NAME`."""

    def check_with(validator: Any, field: str, value: Any) -> None:
        if message := fault(name, value):
            validator._error(field, message)

    return check_with


_CHECKERS: Any = type("_Checkers", (), {f"_check_with_{name}": _checker(name) for name in CHECKS})


_Inspected: Any = type(cerberus.Validator)


class _Uninspected(_Inspected):  # type: ignore[misc]
    """Keeps Cerberus from parsing docstrings for a schema of schemas that nothing here uses."""

    def __init__(self, *definition: Any) -> None:
        type.__init__(self, *definition)


class _Validator(_CHECKERS, cerberus.Validator, metaclass=_Uninspected):  # type: ignore[misc]
    """A validator that copes with files of any size and any number of errors.

    Length is checked first: the entries of a list that is too long are not examined.
    """

    priority_validations = (*cerberus.Validator.priority_validations, "minlength", "maxlength")

    def _error(self, *args: Any) -> None:
        if len(args) == 1:
            # Cerberus would sort all errors anew for each one added, and file them in two trees.
            self._errors.extend(args[0])
        else:
            super()._error(*args)

    def _validate_maxlength(self, most: int, field: str, value: Sized) -> None:
        """{'type': 'integer'}"""  # noqa: D400, D415 (Cerberus reads the rule's schema here)
        if len(value) > most:
            self._error(field, cerberus.errors.MAX_LENGTH, len(value))
            self._drop_remaining_rules("schema", "check_with")
