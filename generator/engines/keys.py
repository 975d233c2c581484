"""Keys of an engine's JSON and YAML settings, whose names and values strict classes check.

A line of `schemas/ENGINE-settings.tsv` has a key as `FLAG.KEY`, its type, the words of a closed
list, and, in a table of several releases, those that have it. It is read at the first such flag.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from generator.catalogs.versions import release
from generator.diagnostics import all_nearest, did_you_mean, listed, misspelt, scalar
from generator.engines.startup import Refusal, Start
from generator.records import replace
from generator.resources import rows

# The words that pydantic accepts for a boolean; a `truth` is one that can't be null.
_TRUTHS = frozenset(("true", "false", "1", "0", "yes", "no", "on", "off", "y", "n", "t", "f"))
_KINDS: Mapping[str, tuple[str, type]] = {
    "text": ("a text", str),
    "list": ("a list", list),
    "keys": ("a mapping", Mapping),
}
_NUMBER = re.compile(r"(int|float)(.*)")
_BOUNDS: Mapping[str, tuple[str, Callable[[float], bool]]] = {
    "": ("", lambda number: True),
    ">0": (" above 0", lambda number: number > 0),
    ">=0": (" of 0 or more", lambda number: number >= 0),
    " 0..1": (" from 0 to 1", lambda number: 0 <= number <= 1),
}


class Key(NamedTuple):
    """What a key accepts: a type, empty if not known, and the words of a closed list."""

    type: str
    words: tuple[str, ...]

    def wanted_instead(self, value: Any) -> str:
        """What it accepts, if the value is something else; otherwise empty."""
        if value is None and self.type != "truth":
            return ""
        if self.words:
            given = value if isinstance(value, list) else [value]
            spelt = str if self.type == "exact" else _folded
            right = {*map(spelt, given)} <= {*map(spelt, self.words)}
            return "" if right else listed(self.words)
        if self.type in ("bool", "truth"):
            return "" if str(value).lower() in _TRUTHS else "true or false"
        if self.type in _KINDS:
            wanted, accepted = _KINDS[self.type]
            return "" if isinstance(value, accepted) else wanted
        found = _NUMBER.fullmatch(self.type)
        if not found or found[2] not in _BOUNDS:
            return ""
        within, holds = _BOUNDS[found[2]]
        number, is_whole = _number(value), found[1] == "int"
        is_right = number is not None and holds(number) and not (is_whole and number % 1)
        return "" if is_right else f"a {'whole ' * is_whole}number{within}"


def _folded(value: Any) -> str:
    """Some words may be spelled in several ways, which the classes normalize."""
    return str(value).upper().replace("-", "_")


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


@cache
def _lines(engine: str, version: str) -> Mapping[str, Key]:
    """The keys of a release by their path, with the kinds of a section in brackets."""
    table = rows(f"{engine}-settings")
    read = sorted({each for row in table for each in _releases(row)}, key=release)
    own = ([each for each in read if release(each) <= release(version)] or read[:1])[-1:]
    return {
        row[0]: Key(row[1], tuple(row[2].split())) for row in table if {*own} <= {*_releases(row)}
    }


def _releases(row: list[str]) -> list[str]:
    return row[3].split() if len(row) > 3 else []


@cache
def keys(engine: str, version: str) -> Mapping[str, Key]:
    """The keys of a release by their path, for all kinds of a section together."""
    held = _lines(engine, version).items()
    return {re.sub(r"\[[^][]*\]", "", path): key for path, key in held}


def keys_of_kind(engine: str, version: str, section: str, kind: str) -> Mapping[str, Key]:
    """The keys of one kind of a section, by name: those that all kinds share, and its own."""
    found = {}
    for path, key in _lines(engine, version).items():
        parent, _, name = path.rpartition(".")
        if parent.partition("[")[0] == section:
            kinds = parent.removeprefix(section).strip("[]").split("/")
            found.update({name: key} if kinds == [""] or kind in kinds else {})
    return found


def _settings(start: Start) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """The path of everything that is set below a flag of the table, with its value."""
    flags = {path.partition(".")[0] for path in keys(start.engine.name, start.engine.version)}
    for setting in start.settings:
        if setting.name in flags:
            for path, value in _inner(setting.value):
                yield setting.name, path, value


def _inner(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        yield (*path, str(name)), inner
        yield from _inner(inner, (*path, str(name)))


def _unknown_names(start: Start) -> Iterator[Refusal]:
    known = keys(start.engine.name, start.engine.version)
    for flag, path, _ in _settings(start):
        section, name = ".".join((flag, *path[:-1])), path[-1]
        beside = [each.rpartition(".")[2] for each in known if each.rpartition(".")[0] == section]
        # A rule of its own looks at the first keys of vLLM's flags.
        if name in beside or not beside or section.endswith("-config"):
            continue
        absent = f"remove it: {start.engine.version} has no such key"
        where = section.rpartition(".")[2]
        message, near = f"'{where}' has no key '{name}'", did_you_mean(name, beside)
        sure = misspelt(name, all_nearest(name, beside))
        refusal = start.refuse(flag, message, near or absent, *path)
        yield replace(refusal, renamed=sure[0] if len(sure) == 1 else "")


def _wrong_values(start: Start) -> Iterator[Refusal]:
    known = keys(start.engine.name, start.engine.version)
    for flag, path, value in _settings(start):
        key = known.get(".".join((flag, *path)))
        if key and (wanted := key.wanted_instead(value)):
            shown = f"'{value}'" if isinstance(value, str) else scalar(value)
            instead = "and there is no value here" if value is None else f"not {shown}"
            near = did_you_mean(str(value), key.words)
            message = f"'{path[-1]}' takes {wanted}, {instead}"
            yield start.refuse(flag, message, near or f"write {wanted}", *path)


CHECKS = {"names": _unknown_names, "values": _wrong_values}
