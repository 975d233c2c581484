"""Turns edits of data into edits of text that leave everything else as it is.

ruamel.yaml formats what is written, in the style that is already there: the quotes of the text that
it replaces, the line of a mapping in braces, the indentation of a block.
"""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, SingleQuotedScalarString

from generator.diagnostics import Add, Data, Edit, KeyPath, Remove, Rename, Replace, Rewrite
from generator.fixing.layout import LayoutPlace, PathStep, Point, UnsettledError, places, steps
from generator.records import record, replace
from generator.sitefile.source import Document

_QUOTES = {"'": SingleQuotedScalarString, '"': DoubleQuotedScalarString}
_DASH = re.compile(r"\s*-\s+")


@record
class Splice:
    """New text in place of a range of the old; lines end with a newline.

    `file` is that of the range, as in a `Span`.
    """

    start: Point
    end: Point
    text: str
    file: str = ""

    def __lt__(self, other: "Splice") -> bool:
        return (self.start, self.end, self.text) < (other.start, other.end, other.text)

    def overlaps(self, other: "Splice") -> bool:
        """Whether both change the same text, or the same place between two characters."""
        same = self.start == self.end == other.start == other.end
        return self.file == other.file and (
            same or (self.start < other.end and other.start < self.end)
        )

    def touches(self, other: "Splice") -> bool:
        """Whether they overlap or are adjacent, where one may change what the other means."""
        return self.file == other.file and self.start <= other.end and other.start <= self.end


class DocumentSplicer:
    """Creates the splices for edits of a document, each in the file that it belongs to."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._splicers = {part.name: Splicer(part.text) for part in document.files}

    def splices(self, edits: Iterable[Edit]) -> list[Splice]:
        """The splices for edits that belong together; UnsettledError where one can't be made."""
        by_file: dict[str, list[Edit]] = {}
        for edit in edits:
            by_file.setdefault(self._file(edit), []).append(edit)
        return [
            replace(splice, file=file)
            for file, own in by_file.items()
            for splice in self._splicers[file or self._document.name].splices(own)
        ]

    def _file(self, edit: Edit) -> str:
        """The file with the key of an edit, or with its nearest parent."""
        if isinstance(edit, Rewrite):
            return edit.span.file
        span = self._document.locate(edit.path, at_key=True)
        return span.file if span else ""


class Splicer:
    """Creates the splices for edits of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = text.split("\n")

    @cached_property
    def _root(self) -> LayoutPlace:
        try:
            return places(self._text)
        except yaml.YAMLError as error:
            raise UnsettledError("the file is no YAML") from error

    def splices(self, edits: Iterable[Edit]) -> list[Splice]:
        """The splices for edits that belong together; UnsettledError where one can't be made."""
        made: list[Splice] = []
        edits = tuple(edits)
        comments = [self._comment(edit) for edit in edits if isinstance(edit, Remove)]
        moves = len(comments) == sum(isinstance(edit, Add) for edit in edits)
        for edit in edits:
            new = self._splice(edit)
            if moves and isinstance(edit, Add) and new.text.count("\n") == 1:
                new = replace(new, text=_commented(new.text, comments.pop(0)))
            if any(new.overlaps(other) for other in made):
                raise UnsettledError("two changes meet")
            made.append(new)
        return made

    def _splice(self, edit: Edit) -> Splice:
        match edit:
            case Replace():
                return self._replace(edit)
            case Rename():
                return self._rename(edit)
            case Remove():
                return self._remove(steps(self._root, edit.path, edit.again))
            case Add():
                return self._add(edit)
            case Rewrite(span, text):
                return Splice((span.line, span.column), (span.end_line, span.end_column), text)

    def _replace(self, edit: Replace) -> Splice:
        if not edit.path:
            raise UnsettledError("it is the whole file")
        try:
            step = steps(self._root, edit.path)[-1]
        except UnsettledError:
            return self._add(Add(edit.path, edit.value))
        place = step.entry.value
        if place.shared or (place.entries and not place.flow):
            raise UnsettledError("an alias repeats it" if place.shared else "it is a block")
        key = step.entry.key
        if isinstance(edit.value, dict) and key and key.end[0] < place.start[0]:
            # The mapping is on lines of its own, below its key.
            lines = _dumped(_blocks(edit.value), self._dash_offset()).splitlines()
            return Splice(place.start, place.end, f"\n{' ' * place.start[1]}".join(lines))
        words = _worded(edit.value, step.parent.flow, place.style)
        words += "" if step.parent.flow else self._comment_behind(place, words)
        blank = place.is_empty and not self._lines[place.start[0]][: place.start[1]].endswith(" ")
        return Splice(place.start, place.end, f" {words}" if blank else words)

    def _comment_behind(self, place: LayoutPlace, words: str) -> str:
        """What a value took in as part of itself but was a comment: it remains one."""
        (line, start), (last, end) = place.start, place.end
        old = self._lines[line][start:end] if line == last else ""
        comment = re.fullmatch(r"\s*(?:#|//)\s+(.*)", old.removeprefix(words))
        return f"  # {comment[1]}" if comment and old.startswith(words) else ""

    def _comment(self, edit: Remove) -> str:
        """The comment behind a value, which moves with it."""
        line, column = steps(self._root, edit.path, edit.again)[-1].entry.value.end
        found = re.fullmatch(r"\s+#.*", self._lines[line][column:])
        return found[0] if found else ""

    def _rename(self, edit: Rename) -> Splice:
        step = steps(self._root, edit.path)[-1]
        key = step.entry.key
        assert key
        if any(entry.name == edit.key for entry in step.parent.entries):
            raise UnsettledError(f"there is a key '{edit.key}' already")
        return Splice(key.start, key.end, _worded(edit.key, step.parent.flow, key.style))

    def _remove(self, path: Sequence[PathStep]) -> Splice:
        step = path[-1]
        if step.entry.value.shared or (step.entry.key and step.entry.key.shared):
            raise UnsettledError("an alias repeats it")
        if len(step.parent.entries) == 1:
            # All that would be left is a key without a value.
            if len(path) == 1:
                raise UnsettledError("nothing would be left")
            return self._remove(path[:-1])
        if step.parent.flow:
            return self._cut(step)
        start, end_line = step.entry.start, step.entry.value.end[0]
        before = self._lines[start[0]][: start[1]]
        if step.parent.is_list:
            # A block list begins at its first dash.
            begin = step.parent.start[1]
            before = before[:begin] + re.sub(r"-\s+", "", before[begin:])
        inside = self._lines[start[0] + 1 : end_line + 1]
        if any(line.lstrip().startswith("#") for line in inside):
            raise UnsettledError("a comment stands in it")
        if not before.strip():
            return Splice((start[0], 0), (end_line + 1, 0), "")
        if step.index == 0 and not step.parent.is_list and _DASH.fullmatch(before):
            following = step.parent.entries[1].start
            if following[0] == end_line + 1:
                return Splice(start, following, "")
        raise UnsettledError("other text stands on its line")

    def _cut(self, step: PathStep) -> Splice:
        """Remove an entry in brackets or braces, with one of the commas beside it."""
        entries, index = step.parent.entries, step.index
        if index + 1 < len(entries):
            start, end = step.entry.start, entries[index + 1].start
        else:
            start, end = entries[index - 1].value.end, step.entry.value.end
        if start[0] != end[0]:
            raise UnsettledError("it goes over several lines")
        return Splice(start, end, "")

    def _add(self, edit: Add) -> Splice:
        *above, last = edit.path
        path, value = self._present(tuple(above), edit.value, last)
        place = steps(self._root, path)[-1].entry.value if path else self._root
        name = edit.path[len(path)]
        if place.shared or place.alias:
            raise UnsettledError("an alias repeats it")
        if place.is_empty and isinstance(name, str):
            # A section whose only key was moved elsewhere.
            return self._replace(Replace(path, {name: value}))
        if place.is_empty or not (place.entries or place.flow):
            raise UnsettledError("it is neither a list nor a mapping")
        if any(entry.name == name for entry in place.entries):
            raise UnsettledError("it is there already")
        new: Data = [value] if place.is_list else {str(name): value}
        if not place.entries:
            return Splice(place.start, place.end, _worded(new, flow=True))
        known = (entry for entry in place.entries if edit.after and entry.name == edit.after)
        after = next(known, place.entries[-1])
        if place.flow:
            return Splice(after.value.end, after.value.end, f", {_worded(new, flow=True)[1:-1]}")
        line = after.value.end[0] + 1
        column = place.start[1] if place.is_list else place.entries[0].start[1]
        lines = _dumped(_blocks(new), 0 if place.is_list else self._dash_offset()).splitlines()
        block = "".join(f"{' ' * column}{text}\n" for text in lines)
        if line == len(self._lines):
            # The last line has no line ending.
            end = (line - 1, len(self._lines[-1]))
            return Splice(end, end, f"\n{block}".removesuffix("\n"))
        return Splice((line, 0), (line, 0), block)

    def _present(self, path: KeyPath, value: Data, last: str | int) -> tuple[KeyPath, Data]:
        """The longest existing part of a path, and the value with the rest of the path around."""
        try:
            steps(self._root, path)
        except UnsettledError:
            if not path or not isinstance(last, str):
                raise
            return self._present(path[:-1], {last: value}, path[-1])
        return path, value

    def _dash_offset(self) -> int:
        """How far the dashes of lists are indented from their keys, as in the file's own lists."""
        for entry in self._root.entries:
            if entry.value.is_list and not entry.value.flow and not entry.value.alias:
                return entry.value.start[1]
        return 2


def _commented(line: str, comment: str) -> str:
    """A line with a comment behind it; its line ending is at either end."""
    text = line.removesuffix("\n")
    return f"{text}{comment}{line[len(text) :]}"


def _worded(value: Data, flow: bool, style: str = "") -> str:
    """A value on one line, quoted like the one it replaces."""
    quoted = _QUOTES[style](value) if style in _QUOTES and isinstance(value, str) else value
    around = CommentedMap({"k": _flow(quoted)})
    if flow:
        around.fa.set_flow_style()
        return _dumped(around, 0).strip().removeprefix("{k: ").removesuffix("}")
    return _dumped(around, 0).strip().removeprefix("k: ")


def _blocks(value: Data) -> Any:
    """A list or mapping for several lines, with the content of its entries on one line each."""
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return CommentedSeq(map(_block, value))
    if isinstance(value, dict):
        return CommentedMap(
            (key, _blocks(item) if _is_list_of_mappings(item) else _flow(item))
            for key, item in value.items()
        )
    return [_flow(item) for item in value] if isinstance(value, list) else value


def _is_list_of_mappings(value: Data) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _block(value: Data) -> Any:
    return CommentedMap(_flows(value)) if isinstance(value, dict) else _flow(value)


def _flows(value: Mapping[str, Data]) -> dict[str, Any]:
    return {key: _flow(item) for key, item in value.items()}


def _flow(value: Data) -> Any:
    made: Any
    if isinstance(value, list):
        made = CommentedSeq(map(_flow, value))
    elif isinstance(value, dict):
        made = CommentedMap(_flows(value))
    else:
        return value
    made.fa.set_flow_style()
    return made


def _dumped(value: Any, offset: int) -> str:
    emitter = YAML()
    emitter.width = 1_000_000
    emitter.indent(mapping=2, sequence=offset + 2, offset=offset)
    stream = io.StringIO()
    emitter.dump(value, stream)
    return stream.getvalue()
