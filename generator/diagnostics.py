"""Findings about a site file: each has a rule, a place and a way to fix it.

Checks name a path in the data (`("cabling", 1, "endpoints", 0)`); the line and column of that path
are looked up only when a report is printed.
"""

import re
from collections.abc import Iterable
from enum import IntEnum, StrEnum

from generator.records import record

KeyPath = tuple[str | int, ...]
Data = str | int | float | bool | list["Data"] | dict[str, "Data"]


class Severity(StrEnum):
    """How much a finding weighs: an error stops the build."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Stage(IntEnum):
    """When a mistake shows: one of an early stage can hide those of the later ones.

    A section that can't be read or is not of the schema is not checked by the rules. A site whose
    cabling has no shape has no addresses.
    """

    READING = 1
    SHAPE = 2
    RULES = 3


@record
class Span:
    """A stretch of text; lines and columns count from zero, columns in characters.

    `file` is empty for the site file itself, and else the name of the base that it extends.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    file: str = ""

    def __lt__(self, other: "Span") -> bool:
        return _ends(self) < _ends(other)


def _ends(span: Span) -> tuple[str, int, int, int, int]:
    return span.file, span.line, span.column, span.end_line, span.end_column


@record
class Related:
    """The second place of a conflict, and what it has to do with the first."""

    text: str
    path: KeyPath


@record
class Replace:
    """Write another value at a path, or the first one of a key that is not there."""

    path: KeyPath
    value: Data


@record
class Rename:
    """Write another key at a path, and leave its value."""

    path: KeyPath
    key: str


@record
class Remove:
    """Take a key with its value, or an entry of a list, out; `again` the second one of a key."""

    path: KeyPath
    again: bool = False


@record
class Add:
    """Write a key that is not there, or an entry at the end of a list.

    A key comes behind the key `after`, or else last.
    """

    path: KeyPath
    value: Data
    after: str = ""


@record
class Rewrite:
    """Write other text in place of a stretch of the file, whether or not that is YAML."""

    span: Span
    text: str


Edit = Replace | Rename | Remove | Add | Rewrite
Proposal = tuple[Edit, ...]


@record
class Finding:
    """One mistake, said once.

    `at_key` points at the key of `path` in place of its value. `span` is for text that is no YAML
    and so has no path. `proposals` are what `help` says as edits: one, or one for each reading
    where there are several, between which a person has to choose. An `unsafe` one is for a person
    too: it would give up something that was asked for.
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
    stage: Stage = Stage.RULES
    unsafe: bool = False

    @property
    def correction(self) -> Proposal | None:
        """The edits that can't but be meant, if there are any."""
        return self.proposals[0] if len(self.proposals) == 1 and not self.unsafe else None


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether any finding stops the build."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def weight(findings: Iterable[Finding]) -> tuple[int, ...]:
    """How many findings there are by severity, the heaviest first."""
    totals = dict.fromkeys(Severity, 0)
    for finding in findings:
        totals[finding.severity] += 1
    return tuple(totals.values())


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
    """The known words that a misspelt one is likely to be: several where they are as near.

    A slip or two tell more than how much is alike, and figures more than letters.
    """
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), n=3, cutoff=0.6)
    fewest = [near for near in found if slips(word, near) <= _FEW]
    ranks = {near: _rank(word, near) if fewest else (-_likeness(near, word),) for near in found}
    return sorted(near for near in found if ranks[near] == min(ranks.values()))


_FEW = 2


def _rank(word: str, known: str) -> tuple[float, ...]:
    return slips(word, known), _figures(word) != _figures(known), -_likeness(known, word)


def _likeness(one: str, other: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one, other).ratio()


def misspelt(word: str, near: Iterable[str]) -> list[str]:
    """The nearest words as proposals: a single one has to be so near that it can't but be meant.

    Words at the beginning that both have, as of `enable-this` and `enable-that`, do not count. With
    other figures it is another thing: fp4 is no misspelt fp8.
    """
    found = list(near)
    return found if len(found) > 1 or all(_is_misspelt(word, known) for known in found) else []


_ALIKE = 0.85


def _is_misspelt(word: str, known: str) -> bool:
    wrong, meant = (re.split("[-_]", text.lower()) for text in (word, known))
    while len(wrong) > 1 and len(meant) > 1 and wrong[0] == meant[0]:
        wrong, meant = wrong[1:], meant[1:]
    one, other = "-".join(wrong), "-".join(meant)
    if _figures(one) != _figures(other):
        return False
    short, long = sorted((one, other), key=len)
    if long.startswith(short) and "-" not in long[len(short) :]:
        return True
    if len(short) < 3:
        # Of so short a word no more than a letter is lost, unless what stands before it tells it.
        return len(short) == 2 and slips(one, other) == 1 and (len(long) > 2 or one != word.lower())
    most = 1 if len(short) < 5 else 2
    return slips(one, other) <= most or _likeness(one, other) >= _ALIKE


def _figures(word: str) -> list[str]:
    return re.findall(r"[0-9]", word)


def slips(word: str, known: str) -> int:
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
