"""Keys that had another name in an earlier release: they are read as what they are called now."""

from collections.abc import Mapping
from functools import cache

from generator.diagnostics import Finding, KeyPath, Rename, Severity, Span, Stage, path_text
from generator.resources import SCHEMAS
from generator.sitefile.sections import path_in_group


@cache
def renamed() -> Mapping[str, tuple[str, str]]:
    """By the path with an earlier name: the name now, and the release that reads only that."""
    lines = (SCHEMAS / "renamed-keys.tsv").read_text("utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {path: (now, release) for path, now, release in rows}


def name_now(path: KeyPath) -> str:
    """What the key at a path is called now, if that is something else."""
    return _row(path)[0]


def _row(path: KeyPath) -> tuple[str, str]:
    if path[-1] not in _earlier_names():
        return "", ""
    names = (part for part in path_in_group(path) if isinstance(part, str))
    return renamed().get(path_text(tuple(names)), ("", ""))


@cache
def _earlier_names() -> frozenset[str]:
    return frozenset(path.rpartition(".")[2] for path in renamed())


def earlier_name(path: KeyPath, span: Span) -> Finding:
    """What to say about a key's earlier name."""
    now, release = _row(path)
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
