"""Runs one test for a whole table of rows, because pytest's cost per test exceeds that of a row."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

_T = TypeVar("_T")


def of_each(
    values: Iterable[_T] | Callable[[], Iterable[_T]], name: Callable[[_T], object] = str
) -> Callable[[Callable[[_T], None]], Callable[[], None]]:
    """Turn a check of one value into a test of all values that reports each failure and why.

    Values that take long to make come from a function, which only the test calls.
    """
    make = values if callable(values) else list(values).copy

    def decorate(check: Callable[[_T], None]) -> Callable[[], None]:
        def test() -> None:
            rows = list(make())
            assert rows
            failures = [failure for value in rows if (failure := _failure(check, value))]
            if failures:
                report = "\n\n".join(f"{name(value)}: {failure}" for value, failure in failures)
                pytest.fail(f"{len(failures)} of {len(rows)}\n{report}", pytrace=False)

        test.__name__, test.__doc__, test.__module__ = (
            check.__name__,
            check.__doc__,
            check.__module__,
        )
        return test

    return decorate


def _failure(check: Callable[[_T], None], value: _T) -> tuple[_T, str] | None:
    """The value, and why its check failed."""
    try:
        check(value)
    except Exception as error:
        return value, f"{type(error).__name__}: {error}"
    return None
