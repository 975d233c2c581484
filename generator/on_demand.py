"""Mappings whose values are created on first access.

A site has only one or a few of the engines, services and topologies; the modules of the others need
not be imported.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

_T = TypeVar("_T")


class OnDemand(Mapping[str, _T]):
    """Values by name, in the order of the names; iterating over the names creates no value."""

    def __init__(self, names: Callable[[], Sequence[str]], make: Callable[[str], _T]) -> None:
        self._list = names
        self._make = make
        self._made: dict[str, _T] = {}

    @cached_property
    def _names(self) -> Sequence[str]:
        return self._list()

    def __getitem__(self, name: str) -> _T:
        if name not in self._made:
            if name not in self._names:
                raise KeyError(name)
            self._made[name] = self._make(name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
