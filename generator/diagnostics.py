"""What can be said about a site file: findings with a rule, a place and a way out.

Checks name a path in the data (`("cabling", 1, "endpoints", 0)`); the line and column of that path
are looked up only when a report is printed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

KeyPath = tuple[str | int, ...]


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
class Finding:
    """One mistake, said once.

    `at_key` points at the key of `path` in place of its value. `span` is for text that is no YAML
    and so has no path.
    """

    rule: str
    severity: Severity
    message: str
    path: KeyPath = ()
    at_key: bool = False
    help: str = ""
    related: tuple[Related, ...] = ()
    span: Span | None = None


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
    found = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` for the nearest known word, or nothing."""
    found = nearest(word, known)
    return f"did you mean '{found}'?" if found else ""


def listed(words: Iterable[str], last: str = "or") -> str:
    """Words as a sentence lists them: `a, b or c`."""
    items = list(words)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"
