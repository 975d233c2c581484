"""Advisories: known faults, with date and source, separate from the rules.

They are read on first use.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from generator import precompiled
from generator.catalogs.versions import version
from generator.records import record


@record
class Advisory:
    """One entry of the catalog; conditions that the entry does not state are None or empty.

    `effect` follows the name of the faulty component, and `remedy` says what to do.
    """

    id: str
    date: date
    effect: str
    remedy: str
    source: str
    os: tuple[str, ...] = ()
    engine: str | None = None
    version: str | None = None
    nccl: str | None = None
    images: tuple[str, ...] = ()
    nodes: int = 1
    unless: Mapping[str, Any] = {}
    kernel: str | None = None
    driver: str | None = None
    without: str | None = None

    @property
    def subject(self) -> str:
        """The subject of a finding: `os`, `nccl`, `image`, `engine`; `node` is only for verify."""
        subjects = {"nccl": self.nccl, "image": self.images, "engine": self.engine, "os": self.os}
        return next((name for name, named in subjects.items() if named), "node")


def advisories(*subjects: str) -> Iterator[Advisory]:
    """The entries about these subjects, or all entries."""
    return (entry for entry in _all() if not subjects or entry.subject in subjects)


def within(ranges: str | None, text: str) -> bool:
    """Whether a version is within all ranges, such as `>=0.27.1, <0.32`; None is any version.

    A custom build counts as the version that it was made from.
    """
    known = version(text).public
    for sign, bound in re.findall(_RANGE, ranges or ""):
        limit = version(bound)
        if not {">=": known >= limit, "<": known < limit, "==": known == limit}[sign]:
            return False
    return True


def named(patterns: tuple[str, ...], text: str) -> bool:
    """Whether a text is one of these names, in which `*` stands for anything."""
    return any(fnmatchcase(text, pattern) for pattern in patterns)


_RANGE = r"(>=|<|==)\s*([^\s,]+)"


@cache
def _all() -> tuple[Advisory, ...]:
    return tuple(map(_advisory, precompiled.schema("advisories")))


def _advisory(entry: dict[str, Any]) -> Advisory:
    lists: dict[str, Any] = {name: tuple(entry.get(name, ())) for name in ("os", "images")}
    return Advisory(**entry | lists | {"date": date.fromisoformat(entry["date"])})
