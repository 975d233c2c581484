"""Words and their places in texts: of a shell, of NAME=VALUE files, and of YAML."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from generator.adoption.found import Variable, Word
from generator.diagnostics import Span
from generator.sitefile.source import Document

_BREAKS = ("&&", "||", ";;", ";", "|", "&")
_NAME = r"([A-Za-z_][A-Za-z0-9_]*)"
_EXPANSION = re.compile(rf"\$(?:\{{{_NAME}(?::?[-?]([^}}]*))?\}}|{_NAME})")
_ENTRY = re.compile(rf"([ \t]*(?:export[ \t]+)?){_NAME}([ \t]*)=(.*)")


class Text:
    """A file's text, and the places of what is in it."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def word(self, text: str, start: int, end: int, breaks: bool = False) -> Word:
        """A word that stands between two offsets."""
        return Word(text, self.file, self.span(start, end), breaks)

    def span(self, start: int, end: int) -> Span:
        """The lines and columns of two offsets."""
        (line, column), (last, after) = self._point(start), self._point(max(start, end))
        return Span(line, column, last, after)

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and a column."""
        return self._starts[min(line, len(self._starts) - 1)] + column

    def line(self, number: int) -> Word:
        """A whole line, without the blanks at its ends."""
        text = self.text.split("\n")[number]
        indent = len(text) - len(text.lstrip())
        return Word(text.strip(), self.file, Span(number, indent, number, len(text.rstrip())))

    def _point(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset) - 1
        return line, offset - self._starts[line]


def shell_words(
    text: Text, start: int, end: int, variables: Mapping[str, str], by_line: bool = True
) -> Iterator[Word]:
    """The words of a shell's text, as far as they are certain without running it.

    A variable that nobody sets stays as it is written. Unless `by_line`, a new line is a blank.
    """
    known = dict(variables)
    at, source = start, text.text
    while at < end:
        character = source[at]
        if character in " \t\r" or (character == "\n" and not by_line):
            at += 1
        elif character == "\\" and source[at + 1 : at + 2] == "\n":
            at += 2
        elif character == "\n":
            yield text.word(character, at, at + 1, True)
            at += 1
        elif character == "#":
            at = end if (line_end := source.find("\n", at, end)) < 0 else line_end
        elif mark := next((m for m in _BREAKS if source.startswith(m, at)), ""):
            yield text.word(mark, at, at + len(mark), True)
            at += len(mark)
        else:
            after, said = _one_word(source, at, end, known)
            if assigned := re.fullmatch(rf"{_NAME}=(.*)", said, re.DOTALL):
                known[assigned[1]] = assigned[2]
            yield text.word(said, at, after)
            at = after


def _one_word(source: str, at: int, end: int, known: Mapping[str, str]) -> tuple[int, str]:
    """Where a word ends, and what it says."""
    said, quote = "", ""
    while at < end:
        character = source[at]
        if character == quote:
            quote = ""
        elif character in "'\"" and not quote:
            quote = character
        elif character == "$" and quote != "'":
            at, value = _expanded(source, at, known)
            said += value
            continue
        elif character == "\\" and quote != "'":
            after = source[at + 1 : at + 2]
            if not quote and after == "\n":
                break
            if not quote or after in ('"', "\\", "$", "`", "\n"):
                at += 1
                character = "" if after == "\n" else after
            said += character
        elif character in " \t\r\n;|&" and not quote:
            break
        else:
            said += character
        at += 1
    return at, said


def _expanded(source: str, at: int, known: Mapping[str, str]) -> tuple[int, str]:
    if found := _EXPANSION.match(source, at):
        return found.end(), expand(found[0], known)
    if source.startswith("$(", at):
        close = source.find(")", at)
        after = close + 1 if close > 0 else len(source)
        return after, source[at:after]
    return at + 1, "$"


def expand(text: str, known: Mapping[str, str]) -> str:
    """A text with the values of variables that are known, or else their own defaults."""

    def value(match: re.Match[str]) -> str:
        name, usual = match[1] or match[3], match[2]
        return known.get(name) or (usual if usual is not None else match[0])

    return _EXPANSION.sub(value, text)


def variables(text: Text) -> Iterator[Variable]:
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
            yield Variable(found[2], text.word(value, begin if raw else offset, end), blank)
        offset += len(line) + 1


class Yaml:
    """A YAML file that is read with the places of its values."""

    def __init__(self, text: Text, document: Document) -> None:
        self.text = text
        self.root = document.root

    def get(self, node: Any, *path: str | int) -> yaml.Node | None:
        """What stands at a path below a node, if anything does."""
        for part in path:
            if isinstance(node, yaml.MappingNode):
                pairs = {k.value: v for k, v in node.value if isinstance(k, yaml.ScalarNode)}
                node = pairs.get(part)
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
                node = node.value[part] if part < len(node.value) else None
            else:
                return None
        return node if isinstance(node, yaml.Node) else None

    def pairs(self, node: Any) -> Iterator[tuple[str, yaml.Node]]:
        """The keys and values of a mapping; nothing of anything else."""
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    yield str(key.value), value

    def items(self, node: Any) -> Iterator[yaml.Node]:
        """The entries of a list; nothing of anything else."""
        if isinstance(node, yaml.SequenceNode):
            yield from node.value

    def word(self, node: Any, known: Mapping[str, str] = {}) -> Word | None:
        """A scalar as a word, its variables expanded."""
        if not isinstance(node, yaml.ScalarNode):
            return None
        start, end = node.start_mark, node.end_mark
        last = end.column if end.line == start.line else len(self._line(start.line))
        span = Span(start.line, start.column, start.line, max(last, start.column + 1))
        return Word(expand(str(node.value), known), self.text.file, span)

    def place(self, node: yaml.Node) -> Word:
        """Where a node begins."""
        start = node.start_mark
        end = max(len(self._line(start.line)), start.column + 1)
        return Word("", self.text.file, Span(start.line, start.column, start.line, end))

    def script(self, node: yaml.ScalarNode, known: Mapping[str, str]) -> Iterator[Word]:
        """The words of a scalar that is a line of a shell."""
        start = self.text.offset(node.start_mark.line, node.start_mark.column)
        end = self.text.offset(node.end_mark.line, node.end_mark.column)
        if node.style in ("|", ">"):
            start = self.text.offset(node.start_mark.line + 1, 0)
        elif node.style:
            start, end = start + 1, end - 1
        yield from shell_words(self.text, start, end, known, node.style == "|")

    def _line(self, number: int) -> str:
        lines = self.text.text.split("\n")
        return lines[number] if number < len(lines) else ""
