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


def earlier_name(path: KeyPath, span: Span | None = None) -> Finding | None:
    """What to say about a key's earlier name, at its path now; nothing about another key."""
    if not path or not any(known.endswith(f".{path[-1]}") for known in renamed()):
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


def earlier_path(text: str) -> Finding | None:
    """The same about the key of a path as findings print it."""
    parts = re.findall(r"[^].[]+", text)
    return earlier_name(tuple(int(part) if part.isdigit() else part for part in parts))
