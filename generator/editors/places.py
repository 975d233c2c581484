"""Where a cursor is in a site file, as a path of keys, in a text that need not be complete.

The word at the cursor is replaced by a mark, and YAML's own events tell where the mark is. What
stands before a syntax error is known as well, so a line that is being written has a place.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from generator.diagnostics import KeyPath
from generator.records import record
from generator.sitefile.source import NodeLoader

# No key or value is called so.
_MARK = "sparkgen-cursor"
_BLANKS = " \t\n,[]{}\"'#"


@record
class Cursor:
    """The place of a cursor; columns count characters."""

    # The mapping that the key is in, or the path of the value.
    path: KeyPath
    word: str
    is_key: bool
    # Where the word begins and ends on its line.
    start: int
    end: int
    # Everything of the site that could be read.
    data: Any
    # Whether a value follows the word already.
    has_value: bool


def place(lines: list[str], line: int, column: int) -> Cursor | None:
    """The place of a cursor; None in a comment, or where no key or value can be."""
    text = lines[line] if line < len(lines) else ""
    start, end = _word(text, column)
    word, after = text[start:end], text[end:]
    rest = lines[line + 1 :]
    # Without a colon, the mark would continue the value on the line above. If another line is
    # unfinished too, the lines that the cursor's line is indented under tell enough.
    for above in (lines[:line], list(_parents(lines[:line], text))):
        for mark in (_MARK, f"{_MARK}:"):
            reader = _Reader()
            data = reader.read("\n".join([*above, f"{text[:start]}{mark}{after}", *rest]))
            if reader.found:
                path, is_key = reader.found
                return Cursor(path, word, is_key, start, end, data, after.startswith(":"))
    return None


def _parents(lines: list[str], text: str) -> Iterator[str]:
    """The lines that a line is indented under, from the margin inwards."""
    kept: list[str] = []
    last = text
    for line in reversed(lines):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        holds_list = last.lstrip().startswith("-") and not line.lstrip().startswith("-")
        if _indent(line) < _indent(last) + holds_list:
            kept.append(line)
            last = line
    return reversed(kept)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _word(text: str, column: int) -> tuple[int, int]:
    """The word around a column; the colon of a key ends it, one within an address does not."""
    start = end = min(column, len(text))
    while start and text[start - 1] not in _BLANKS and text[start - 2 : start] != ": ":
        start -= 1
    while end < len(text) and text[end] not in _BLANKS and not _is_colon(text, end):
        end += 1
    return start, end


def _is_colon(text: str, at: int) -> bool:
    return text[at] == ":" and text[at + 1 : at + 2] in ("", " ")


class _Container:
    """A mapping or a list that is being read."""

    def __init__(self, path: KeyPath, held: dict[str, Any] | list[Any]) -> None:
        self.path, self.held = path, held
        # The key whose value comes next.
        self._key: str | None = None

    @property
    def wants_key(self) -> bool:
        """Whether a key comes next."""
        return isinstance(self.held, dict) and self._key is None

    def path_of_next(self) -> KeyPath:
        """The path of the value that comes next, or of the mapping if a key does."""
        if isinstance(self.held, list):
            return (*self.path, len(self.held))
        return self.path if self._key is None else (*self.path, self._key)

    def add(self, value: Any) -> None:
        """Take a key, or a value."""
        if isinstance(self.held, list):
            self.held.append(value)
        elif self._key is None:
            self._key = str(value)
        else:
            self.held[self._key] = value
            self._key = None


class _Reader:
    """Builds plain data of events, as far as they come, and notes where the mark is."""

    def __init__(self) -> None:
        # The path, and whether a key stands there.
        self.found: tuple[KeyPath, bool] | None = None
        self._open: list[_Container] = []
        self._root: Any = None

    def read(self, text: str) -> Any:
        """The data of a text, up to its first syntax error."""
        try:
            for event in yaml.parse(text, Loader=NodeLoader):
                self._take(event)
        except yaml.YAMLError:
            pass
        return self._root

    def _take(self, event: yaml.Event) -> None:
        match event:
            case yaml.MappingStartEvent():
                self._enter({})
            case yaml.SequenceStartEvent():
                self._enter([])
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._open.pop()
            case yaml.ScalarEvent():
                self._scalar(event.value)
            case yaml.AliasEvent():
                self._add("")

    def _enter(self, held: dict[str, Any] | list[Any]) -> None:
        path = self._open[-1].path_of_next() if self._open else ()
        self._add(held)
        self._open.append(_Container(path, held))

    def _scalar(self, text: str) -> None:
        if text == _MARK:
            around = self._open[-1] if self._open else _Container((), {})
            self.found = around.path_of_next(), around.wants_key
        self._add(text)

    def _add(self, value: Any) -> None:
        if self._open:
            self._open[-1].add(value)
        else:
            self._root = value
