"""What can be said about a site file: findings with a rule, a place and a way out.

Checks name a path in the data (`("cabling", 1, "endpoints", 0)`); the line and column of that path
are looked up only when a report is printed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from enum import StrEnum

KeyPath = tuple[str | int, ...]
Data = str | int | float | bool | list["Data"] | dict[str, "Data"]


class Severity(StrEnum):
    """How much a finding weighs: an error stops the build."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of text; lines and columns count from zero, columns in characters."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Related:
    """The second place of a conflict, and what it has to do with the first."""

    text: str
    path: KeyPath


@dataclass(frozen=True, slots=True)
class Replace:
    """Write another value at a path, or the first one of a key that is not there."""

    path: KeyPath
    value: Data


@dataclass(frozen=True, slots=True)
class Rename:
    """Write another key at a path, and leave its value."""

    path: KeyPath
    key: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Take a key with its value, or an entry of a list, out; `again` the second one of a key."""

    path: KeyPath
    again: bool = False


@dataclass(frozen=True, slots=True)
class Add:
    """Write a key that is not there, or an entry at the end of a list.

    A key comes behind the key `after`, or else last.
    """

    path: KeyPath
    value: Data
    after: str = ""


Edit = Replace | Rename | Remove | Add
Proposal = tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake, said once.

    `at_key` points at the key of `path` in place of its value. `span` is for text that is no YAML
    and so has no path. `proposals` are what `help` says as edits: one, or one for each reading
    where there are several, between which a person has to choose.
    """

    rule: str
    severity: Severity
    message: str
    path: KeyPath = ()
    at_key: bool = False
    help: str = ""
    related: tuple[Related, ...] = ()
    span: Span | None = None
    proposals: tuple[Proposal, ...] = ()


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether any finding stops the build."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def path_text(path: KeyPath) -> str:
    """`("cabling", 1, "endpoints")` as a person writes it: `cabling[1].endpoints`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a misspelt one is likely to be."""
    return next(iter(all_nearest(word, known)), None)


def all_nearest(word: str, known: Iterable[str]) -> list[str]:
    """The known words that a misspelt one is likely to be: several where they are as near."""
    found = get_close_matches(word, list(known), n=3, cutoff=0.6)
    ratios = [SequenceMatcher(None, near, word).ratio() for near in found]
    return sorted(near for near, ratio in zip(found, ratios, strict=True) if ratio == ratios[0])


def misspelt(word: str, near: Iterable[str]) -> list[str]:
    """The nearest words as proposals: a single one has to be so near that it can't but be meant.

    Words at the beginning that both have, as of `enable-this` and `enable-that`, do not count. With
    other figures it is another thing: fp4 is no misspelt fp8.
    """
    found = list(near)
    return found if len(found) > 1 or all(_is_misspelt(word, known) for known in found) else []


_ALIKE = 0.85


def _is_misspelt(word: str, known: str) -> bool:
    asked, meant = (re.split("[-_]", text.lower()) for text in (word, known))
    while len(asked) > 1 and len(meant) > 1 and asked[0] == meant[0]:
        asked, meant = asked[1:], meant[1:]
    one, other = "-".join(asked), "-".join(meant)
    if re.findall(r"[0-9]", one) != re.findall(r"[0-9]", other):
        return False
    short, long = sorted((one, other), key=len)
    if long.startswith(short) and "-" not in long[len(short) :]:
        return True
    most = 0 if len(short) < 3 else 1 if len(short) < 5 else 2
    return _slips(one, other) <= most or SequenceMatcher(None, one, other).ratio() >= _ALIKE


def _slips(word: str, known: str) -> int:
    """Letters lost, added, changed, or turned with the next one, that make a word of another.

    Source: optimal string alignment, the restricted Damerau-Levenshtein distance.
    """
    before: list[int] = []
    above = list(range(len(known) + 1))
    for i, letter in enumerate(word, 1):
        row = [i]
        for j, other in enumerate(known, 1):
            fewest = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == known[j - 2] and word[i - 2] == other:
                fewest = min(fewest, before[j - 2] + 1)
            row.append(fewest)
        before, above = above, row
    return above[-1]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` for the nearest known words, or nothing."""
    found = all_nearest(word, known)
    return f"did you mean {listed(map(repr, found))}?" if found else ""


def replacements(path: KeyPath, values: Iterable[Data]) -> tuple[Proposal, ...]:
    """The proposals to write one of these values."""
    return tuple((Replace(path, value),) for value in values)


def renamings(path: KeyPath, keys: Iterable[str]) -> tuple[Proposal, ...]:
    """The proposals to give a key one of these names."""
    return tuple((Rename(path, key),) for key in keys)


def removal(*paths: KeyPath) -> tuple[Proposal, ...]:
    """The proposal to take all of these out."""
    return (tuple(Remove(path) for path in paths),)


def listed(words: Iterable[str], last: str = "or") -> str:
    """Words as a sentence lists them: `a, b or c`."""
    items = list(words)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"
