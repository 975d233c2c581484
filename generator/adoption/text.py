"""Texts with the places of their parts, and files of NAME=VALUE lines."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from generator.adoption.found import FoundVariable, Word
from generator.diagnostics import Span

NAME = r"([A-Za-z_][A-Za-z0-9_]*)"
_ENTRY = re.compile(rf"([ \t]*(?:export[ \t]+)?){NAME}([ \t]*)=(.*)")


class Text:
    """A file's text, and the places of its parts."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._lines: dict[str, list[int]] = {}
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def word(self, text: str, start: int, end: int, breaks: bool = False) -> Word:
        """A word between two offsets."""
        return Word(text, self.file, self.span(start, end), breaks)

    def span(self, start: int, end: int) -> Span:
        """The lines and columns of two offsets."""
        (line, column), (last, after) = self._point(start), self._point(max(start, end))
        return Span(line, column, last, after)

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and a column."""
        return self._starts[min(line, len(self._starts) - 1)] + column

    def line(self, number: int) -> Word:
        """A whole line, stripped of spaces."""
        text = self.text.split("\n")[number]
        indent = len(text) - len(text.lstrip())
        return Word(text.strip(), self.file, Span(number, indent, number, len(text.rstrip())))

    def next_line(self, saying: str, number: int) -> int | None:
        """The next line from this one on that says no more than this."""
        if not self._lines:
            for own, line in enumerate(self.text.split("\n")):
                self._lines.setdefault(line.strip(), []).append(own)
        known = self._lines.get(saying, [])
        at = bisect_left(known, number)
        return known[at] if at < len(known) else None

    def _point(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset) - 1
        return line, offset - self._starts[line]


def is_open(text: str) -> bool:
    """Whether a shell, or the user of a template, has to complete a text."""
    return bool(re.search(r"\$|\{\{.+\}\}|^\{\w+\}$|^<[^<>]+>$|^__[A-Z_]+__$", text))


def variables(text: Text) -> Iterator[FoundVariable]:
    """The entries of a file of NAME=VALUE lines."""
    offset = 0
    for line in text.text.split("\n"):
        if found := _ENTRY.match(line):
            raw = found[4].rstrip("\r")
            value = raw.strip()
            if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
                value = value[1:-1]
            begin = offset + found.start(4)
            blank = bool(found[1] or found[3] or raw != raw.strip() or value != raw)
            end = begin + max(len(raw), 1)
            yield FoundVariable(found[2], text.word(value, begin if raw else offset, end), blank)
        offset += len(line) + 1
