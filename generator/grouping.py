"""Groups what has the same key."""

from collections.abc import Iterable
from typing import TypeVar

_Key = TypeVar("_Key")
_Held = TypeVar("_Held")


def grouped(pairs: Iterable[tuple[_Key, _Held]]) -> dict[_Key, list[_Held]]:
    """All that is paired with each key, in order."""
    found: dict[_Key, list[_Held]] = {}
    for key, held in pairs:
        found.setdefault(key, []).append(held)
    return found
