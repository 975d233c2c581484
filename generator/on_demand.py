"""Mappings whose values are made when they are first asked for.

Of the engines, services and topologies a site has one or a few; the modules of the others need not
be imported.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

_T = TypeVar("_T")


class OnDemand(Mapping[str, _T]):
    """Values by name, in the order of their makers; to go through the names makes none."""

    def __init__(self, makers: Mapping[str, Callable[[], _T]]) -> None:
        self._makers = makers
        self._made: dict[str, _T] = {}

    def __getitem__(self, name: str) -> _T:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)
