"""A slip in a text that is not valid YAML, and the text without it."""

import re
from collections.abc import Callable, Iterable

from generator.diagnostics import Rewrite, Span
from generator.records import record


@record
class Slip:
    """What may be wrong at a place, what to do, and the edits that do it.

    If the message is empty, libyaml's own is used. An `unsafe` one is a guess.
    """

    span: Span
    message: str
    help: str
    edits: tuple[Rewrite, ...]
    unsafe: bool = False


def edited(lines: list[str], edits: Iterable[Rewrite]) -> str:
    """The text with the edits made in it."""
    text = list(lines)
    for edit in sorted(edits, key=lambda edit: edit.span, reverse=True):
        span = edit.span
        before, after = text[span.line][: span.column], text[span.end_line][span.end_column :]
        text[span.line : span.end_line + 1] = [f"{before}{edit.text}{after}"]
    return "\n".join(text)


def stretch(line: int, start: int, end: int) -> Span:
    """A range within one line."""
    return Span(line, start, line, end)


def is_content(line: str) -> bool:
    """Whether a line has anything besides spaces and a comment."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def code(line: str) -> str:
    """A line without its comment and trailing spaces."""
    return re.sub(r"(^|\s)#.*", "", line).rstrip()


def content_above(lines: list[str], number: int) -> int | None:
    """The number of the nearest line above that has content."""
    return next((n for n in range(number - 1, -1, -1) if is_content(lines[n])), None)


def near(lines: list[str], at: int) -> list[int]:
    """The line at which reading ended, and the one above that has content."""
    above = content_above(lines, at)
    return [at] if above is None else [at, above]


def content(lines: list[str], at: int) -> list[int]:
    """The nearest lines above that have content, and the line itself."""
    return [n for n in range(at, -1, -1) if n == at or is_content(lines[n])][:_FAR]


_FAR, _CLOSE = 12, 5


def close(lines: list[str], at: int) -> list[int]:
    """The nearest few of these."""
    return content(lines, at)[:_CLOSE]


def neighbours(
    lines: list[str], number: int, holds: Callable[[str], bool] = is_content
) -> list[int]:
    """The numbers of the nearest lines above and below that have content, or what else holds."""
    ways = (range(number - 1, -1, -1), range(number + 1, len(lines)))
    found = (next((n for n in numbers if holds(lines[n])), None) for numbers in ways)
    return [n for n in found if n is not None]


def width(line: str) -> int:
    """The number of spaces by which a line is indented."""
    return len(line) - len(line.lstrip(" "))
