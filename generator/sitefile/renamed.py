"""Keys that had another name in an earlier release: they are read as what they are called now."""

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


def earlier_name(path: KeyPath, span: Span) -> Finding | None:
    """What to say about a key's earlier name, at its path now; nothing about another key."""
    if path[-1] not in _names():
        return None
    names = tuple(part for part in path_in_group(path) if isinstance(part, str))
    if (text := path_text(names)) not in renamed():
        return None
    now, release = renamed()[text]
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
