"""Keys that had another name in an earlier release: they are read as what they are called now."""

import re
from collections.abc import Mapping
from functools import cache

from generator.diagnostics import Finding, KeyPath, Rename, Severity, Span, Stage, path_text
from generator.resources import rows
from generator.sitefile.sections import path_in_group


@cache
def renamed() -> Mapping[str, tuple[str, str]]:
    """By the path with an earlier name: the name now, and the release that reads only that."""
    return {path: (now, release) for path, now, release in rows("renamed-keys")}


@cache
def _names() -> frozenset[str]:
    return frozenset(path.rpartition(".")[2] for path in renamed())


def earlier_name(path: KeyPath, span: Span | None = None) -> Finding | None:
    """What to say about a key's earlier name, at its path now; nothing about another key."""
    if path[-1] not in _names():
        return None
    names = tuple(part for part in path_in_group(path) if isinstance(part, str))
    now, release = renamed().get(path_text(names), ("", ""))
    if not now:
        return None
    return Finding(
        "SG111",
        Severity.NOTE,
        f"'{path[-1]}' is called '{now}' now",
        (*path[:-1], now),
        span=span,
        help=f"write '{now}': release {release} will not know the earlier name",
        proposals=((Rename(path, now),),),
        stage=Stage.SHAPE,
    )


def path_now(text: str) -> str:
    """A path as findings print it, with its key's name now."""
    parts = re.findall(r"[^].[]+", text)
    found = earlier_name(tuple(int(part) if part.isdigit() else part for part in parts))
    return path_text(found.path) if found else text
