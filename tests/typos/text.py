"""A site file as text, with the positions of its keys and values, and a text with one mistake."""

import random
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from generator.sitefile.source import NodeLoader

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Mistake:
    """A text with one mistake; `line` counts from zero.

    A `silent` mistake may make another valid site, so it need not be reported. A `several` mistake
    can be read in more than one way or is undone by a removal: nothing may be changed without a
    person. `meant` is the intended site; unless given, it is the site itself. If any of several
    lines is right, `lines` has them.
    """

    kind: str
    text: str
    line: int
    silent: bool = False
    several: bool = False
    meant: str = ""
    lines: Sequence[int] = ()


@dataclass(frozen=True)
class Scalar:
    """A key or a value: where it is, and the path of the value that it is or names."""

    path: KeyPath
    text: str
    line: int
    column: int
    end: int
    is_key: bool
    plain: bool


class Site:
    """A site file, and where its keys and values are."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.scalars = tuple(_scalars(yaml.compose(text, Loader=NodeLoader), ()))

    def value(self, key: Scalar) -> Scalar:
        """The value of a key that has one."""
        return next(v for v in self.values if v.path == key.path)

    def edited(self, edits: Mapping[Scalar, str]) -> str:
        """The file with several keys or values replaced."""
        lines = list(self.lines)
        for place in sorted(edits, key=lambda s: (s.line, s.column), reverse=True):
            line = lines[place.line]
            lines[place.line] = line[: place.column] + edits[place] + line[place.end :]
        return "\n".join(lines)

    def instead(self, first: int, end: int, *lines: str) -> str:
        """The file with other lines in place of a range of lines."""
        return "\n".join([*self.lines[:first], *lines, *self.lines[end:]])

    @property
    def keys(self) -> list[Scalar]:
        """All keys."""
        return [s for s in self.scalars if s.is_key]

    @property
    def values(self) -> list[Scalar]:
        """All values on one line."""
        return [s for s in self.scalars if not s.is_key]

    def keys_below(self, *above: str) -> list[Scalar]:
        """Keys of the mappings at or below a path."""
        return [key for key in self.keys if key.path[: len(above)] == above]

    def values_below(self, *above: str) -> list[Scalar]:
        """Values at or below a path."""
        return [value for value in self.values if value.path[: len(above)] == above]

    def is_line(self, key: Scalar) -> bool:
        """Whether a key and its only value are a line of their own."""
        values = [v for v in self.values if v.path == key.path]
        before = self.lines[key.line][: key.column].strip()
        return bool(values) and values[0].line == key.line and not before

    def is_head(self, key: Scalar) -> bool:
        """Whether a key is alone on its line, with a block below it."""
        line = self.lines[key.line]
        return line.partition(" #")[0].strip().removeprefix("- ") == f"{key.text}:"

    def below(self, head: Scalar) -> list[Scalar]:
        """The keys of the block below a head."""
        return [k for k in self.keys if k.path[:-1] == head.path and k.line > head.line]

    def block(self, head: Scalar) -> tuple[int, int] | None:
        """The first line of a head and its block, and the line after them."""
        return self.lines_of(head.path)

    def lines_of(self, path: KeyPath) -> tuple[int, int] | None:
        """The first line of what is at a path and the line after it, if it has lines of its own."""
        inside = [s for s in self.scalars if s.path[: len(path)] == path]
        if not inside:
            return None
        first, last = min(s.line for s in inside), max(s.line for s in inside)
        others = {s.line for s in self.scalars if s.path[: len(path)] != path}
        # The rest of a flow collection.
        goes_on = self.lines[last + 1 : last + 2] and self.lines[last + 1].strip()[:1] in "]}"
        if others & set(range(first, last + 1)) or (goes_on and self.lines[last + 1].strip()):
            return None
        return first, last + 1

    def replaced(self, place: Scalar, text: str) -> str:
        """The file with a key or value replaced by another text."""
        line = self.lines[place.line]
        return self.with_line(place.line, line[: place.column] + text + line[place.end :])

    def with_line(self, number: int, *lines: str) -> str:
        """The file with a line replaced by other lines, or by none."""
        return "\n".join([*self.lines[:number], *lines, *self.lines[number + 1 :]])


def _scalars(node: Any, path: KeyPath) -> Iterator[Scalar]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield _scalar(key, (*path, key.value), is_key=True)
            yield from _scalars(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _scalars(item, (*path, index))
    elif node.start_mark.line == node.end_mark.line and node.value:
        yield _scalar(node, path, is_key=False)


def _scalar(node: Any, path: KeyPath, is_key: bool) -> Scalar:
    start, end = node.start_mark, node.end_mark
    return Scalar(path, node.value, start.line, start.column, end.column, is_key, not node.style)


def misspelt(rng: random.Random, word: str) -> str:
    """A word with a letter dropped, doubled or changed, or with two letters swapped."""
    letters = [i for i, letter in enumerate(word) if letter.isalpha()]
    at = rng.choice(letters)
    slip = rng.randrange(4)
    if slip == 0 and len(word) > 2:
        return word[:at] + word[at + 1 :]
    if slip == 1:
        return word[: at + 1] + word[at:]
    if slip == 2 and at + 1 < len(word) and word[at] != word[at + 1]:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    others = set(string.ascii_lowercase) - {word[at].lower()}
    letter = rng.choice(sorted(others))
    return word[:at] + (letter.upper() if word[at].isupper() else letter) + word[at + 1 :]


def with_variable(
    site: Site, kind: str, name: str, value: str, name_meant: str = "", value_meant: str = ""
) -> Mistake | None:
    """The site with one more variable of the engine, which is the mistake."""
    place = _place_of_variables(site)
    written = {k.text for k in site.keys_below("engine", "env")}
    if place is None or written & {name, name_meant}:
        return None
    line, *above, indent = place

    def text(name: str, value: str) -> str:
        new = [*above, f"{indent}{name}: {value}"]
        return "\n".join([*site.lines[:line], *new, *site.lines[line:]])

    known = bool(name_meant or value_meant)
    return Mistake(
        kind,
        text(name, value),
        line + len(above),
        several=not known,
        meant=text(name_meant or name, value_meant or value) if known else "",
    )


def _place_of_variables(site: Site) -> tuple[Any, ...] | None:
    """Where a new variable goes: its line number, the lines to put before it, and its indent."""
    head = next((k for k in site.keys if k.path == ("engine",)), None)
    if head is None:
        return None
    inside = [k for k in site.keys_below("engine") if len(k.path) == 2]
    env = [k for k in inside if k.text == "env"]
    below = [k for k in site.keys_below("engine", "env") if len(k.path) == 3]
    if env and below and below[0].line > env[0].line:
        return below[0].line, " " * below[0].column
    if env or not inside or inside[0].line == head.line:
        return None
    return head.line + 1, " " * inside[0].column + "env:", " " * (inside[0].column + 2)
