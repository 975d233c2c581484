"""Findings about a site file: each has a rule, a place and a way to fix it.

Checks name a path in the data (`("cabling", 1, "endpoints", 0)`); the line and column of that path
are looked up only when a report is printed.
"""

import re
from collections.abc import Iterable
from enum import IntEnum, StrEnum
from typing import Any

from generator.records import record

KeyPath = tuple[str | int, ...]
Data = str | int | float | bool | list["Data"] | dict[str, "Data"]


class Severity(StrEnum):
    """How severe a finding is; an error stops the build."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Stage(IntEnum):
    """When a mistake is found; one of an early stage can hide those of later stages.

    The rules skip a section that can't be read or that doesn't match the schema. A site without
    valid cabling has no addresses to check.
    """

    READING = 1
    SHAPE = 2
    RULES = 3


@record
class Span:
    """A range of text; lines and columns count from zero, columns in characters.

    `file` is empty for the site file itself, otherwise the name of the base that it extends.
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
    """The second place of a conflict, and how it relates to the first."""

    text: str
    path: KeyPath


@record
class Replace:
    """Replace the value at a path, or the first value of a key that is missing there."""

    path: KeyPath
    value: Data


@record
class Rename:
    """Rename the key at a path and keep its value."""

    path: KeyPath
    key: str


@record
class Remove:
    """Remove a key with its value, or a list entry; `again` removes a key's second occurrence."""

    path: KeyPath
    again: bool = False


@record
class Add:
    """Add a missing key, or an entry at the end of a list.

    A key goes after the key `after`, or last if that is empty.
    """

    path: KeyPath
    value: Data
    after: str = ""


@record
class Rewrite:
    """Replace a range of the file's text, whether or not that is YAML."""

    span: Span
    text: str


Edit = Replace | Rename | Remove | Add | Rewrite
Proposal = tuple[Edit, ...]


@record
class Finding:
    """One mistake, reported once.

    `at_key` points at the key of `path` instead of its value. `span` is for text that is not YAML
    and so has no path. `proposals` are the edits that `help` describes: one, or one for each
    possible meaning, among which a person has to choose. `unsafe` edits need a person too: they
    would give up something that the site asks for. `nodes` are those that it is about and that none
    of its paths leads to. `derived_help` is the part of `help` that uses addresses of the fabric,
    which hold only where sparkgen gives them.
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
    nodes: tuple[str, ...] = ()
    derived_help: str = ""

    @property
    def correction(self) -> Proposal | None:
        """The edits, if there is only one thing that can have been meant."""
        return self.proposals[0] if len(self.proposals) == 1 and not self.unsafe else None


def reading_error(rule: str, message: str, path: KeyPath = (), **more: Any) -> Finding:
    """An error of a stage before the rules."""
    return Finding(rule, Severity.ERROR, message, path, stage=Stage.READING, **more)


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether any finding stops the build."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def weight(findings: Iterable[Finding]) -> tuple[int, ...]:
    """The number of findings by severity, the most severe first."""
    totals = dict.fromkeys(Severity, 0)
    for finding in findings:
        totals[finding.severity] += 1
    return tuple(totals.values())


def path_text(path: KeyPath) -> str:
    """`("cabling", 1, "endpoints")` as a person would write it: `cabling[1].endpoints`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a misspelled one most likely stands for."""
    return next(iter(all_nearest(word, known)), None)


def all_nearest(word: str, known: Iterable[str]) -> list[str]:
    """The known words that a misspelled one most likely stands for; several if equally close.

    The edit distance, if it is small, counts for more than overall similarity, and digits for more
    than letters.
    """
    from difflib import get_close_matches

    known = list(known)
    close = get_close_matches(word, known, n=3, cutoff=0.6)
    found = [near for near in close if _has_much_in_common(word, near)]
    fewest = [near for near in found if slips(word, near) <= _FEW]
    begun = [one for one in known if one.startswith((f"{word}-", f"{word}_"))]
    if begun and not fewest and len(word) > _FEW:
        return sorted(begun)
    ranks = {near: _rank(word, near) if fewest else (-_likeness(near, word),) for near in found}
    return sorted(near for near in found if ranks[near] == min(ranks.values()))


_FEW = 2


def _has_much_in_common(word: str, known: str) -> bool:
    """Whether more than single letters agree: all but a few, a beginning, or a word of several."""
    one, other = word.lower(), known.lower()
    if slips(one, other) <= max(_FEW, len(one) // 4) or _likeness(one, other) >= _MUCH:
        return True
    short, long = sorted((one, other), key=len)
    is_begun = len(short) > _FEW and long.startswith(short)
    return is_begun or bool({*re.split("[-_]", one)} & {*re.split("[-_]", other)})


_MUCH = 0.65


def _rank(word: str, known: str) -> tuple[float, ...]:
    return slips(word, known), _figures(word) != _figures(known), -_likeness(known, word)


def _likeness(one: str, other: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one, other).ratio()


def misspelt(word: str, near: Iterable[str]) -> list[str]:
    """The nearest words as proposals; a single one only if it is close enough to be beyond doubt.

    A shared prefix, as in `enable-this` and `enable-that`, does not count. Different digits make a
    different word: fp4 is not a misspelled fp8. An owner before a slash is never added or dropped.
    """
    found = list(near)
    return found if len(found) > 1 or all(_is_misspelt(word, known) for known in found) else []


_ALIKE = 0.85


def _is_misspelt(word: str, known: str) -> bool:
    wrong, meant = (re.split("[-_]", text.lower()) for text in (word, known))
    while len(wrong) > 1 and len(meant) > 1 and wrong[0] == meant[0]:
        wrong, meant = wrong[1:], meant[1:]
    one, other = "-".join(wrong), "-".join(meant)
    if (_figures(one), one.count("/")) != (_figures(other), other.count("/")):
        return False
    # A further word may be a unit or a negation.
    if len(wrong) > len(meant) and "".join(wrong) != "".join(meant):
        return False
    short, long = sorted((one, other), key=len)
    if long.startswith(short) and re.fullmatch("[a-z]*", long[len(short) :]):
        return True
    if len(short) < 3:
        # A word this short may have lost only one letter, unless its other letters identify it.
        return len(short) == 2 and slips(one, other) == 1 and (len(long) > 2 or one != word.lower())
    most = 1 if len(short) < 5 else 2
    return slips(one, other) <= most or _likeness(one, other) >= _ALIKE


def _figures(word: str) -> list[str]:
    return re.findall(r"[0-9]", word)


def slips(word: str, known: str) -> int:
    """How many letters are missing, added, changed or swapped with the next one."""
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
    """Proposals to write one of these values."""
    return tuple((Replace(path, value),) for value in values)


def renamings(path: KeyPath, keys: Iterable[str]) -> tuple[Proposal, ...]:
    """Proposals to rename a key to one of these names."""
    return tuple((Rename(path, key),) for key in keys)


def removal(*paths: KeyPath) -> tuple[Proposal, ...]:
    """The proposal to remove all of these."""
    return (tuple(Remove(path) for path in paths),)


def scalar(value: object) -> str:
    """A value as YAML has it: `true`, and not `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def listed(words: Iterable[str], last: str = "or") -> str:
    """Words as a sentence lists them: `a, b or c`."""
    items = list(words)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def visible(text: str) -> str:
    """Text with escapes for what can't be seen, and for what could control the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
