"""A site file under construction: its data, and where each part comes from."""

import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Any

from generator.adoption.found import Loss, Word
from generator.diagnostics import KeyPath, visible
from generator.sitefile.source import Plain

_FLOW = ("management", "parallel", "container")
_PLAIN = r"[A-Za-z0-9/_.][A-Za-z0-9/_.:@+=-]*"


class Draft:
    """Values by path, with their places, and remarks for the reader of the file."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.origins: dict[KeyPath, Word] = {}
        self.comments: dict[KeyPath, str] = {}
        self.guesses: list[str] = []
        self.losses: list[Loss] = []
        # Guesses, by path; what was found at a path that a guess is part of; and nodes by name.
        self.guessed: set[KeyPath] = set()
        self.doubtful: set[KeyPath] = set()
        self.guessed_nodes: set[str] = set()

    def put(self, path: KeyPath, value: Any, place: Word | None = None, guess: str = "") -> None:
        """Write a value; one that nobody stated is a guess."""
        node: Any = self.data
        for part, after in pairwise(path):
            empty: Any = [] if isinstance(after, int) else {}
            if isinstance(node, list) and isinstance(part, int):
                while len(node) <= part:
                    node.append(empty)
                node = node[part]
            else:
                node = node.setdefault(part, empty)
        last = path[-1]
        if isinstance(node, list):
            node.append(value)
        else:
            node[last] = value
        if place:
            self.origins[path] = place
        if guess:
            self.comments[path] = f"guessed: {guess}"
            self.guesses.append(guess)

    def drop(self, *path: str) -> None:
        """Remove a value, and what is empty without it."""
        *above, key = path
        node = self.get(*above) or {}
        if key in node:
            del node[key]
            self.origins.pop(path, None)
            self.comments.pop(path, None)
        if above and not node:
            self.drop(*above)

    def get(self, *path: str | int) -> Any:
        """The value at a path; None if there is none."""
        node: Any = self.data
        for part in path:
            try:
                node = node[part]
            except (KeyError, IndexError, TypeError):
                return None
        return node

    def origin(self, path: KeyPath) -> Word | None:
        """The place at which the value at a path was found: its own, its parent's, or a part's."""
        for length in range(len(path), 1, -1):
            if path[:length] in self.guessed:
                return None
            if path[:length] in self.origins:
                return self.origins[path[:length]]
        below = [own for own in self.origins if own[: len(path)] == path]
        return self.origins[min(below, key=lambda own: (len(own), str(own)))] if below else None

    def is_doubtful(self, path: KeyPath) -> bool:
        """Whether the value at a path is a guess, or no better than one."""
        above = {path[:length] for length in range(len(path) + 1)}
        return not above.isdisjoint(self.guessed | self.doubtful)

    def graft(self, path: KeyPath, other: "Draft", keys: Collection[str]) -> None:
        """Copy some keys of another draft to a path, with all their remarks."""
        for key in keys:
            if key in other.data:
                self.put((*path, key), other.data[key])
        self.remark(path, other, keys)

    def remark(self, path: KeyPath, other: "Draft", keys: Collection[str]) -> None:
        """Copy another draft's origins of some keys, as if for a path here."""
        self.origins |= {(*path, *own): w for own, w in other.origins.items() if own[0] in keys}
        self.comments |= {(*path, *own): t for own, t in other.comments.items() if own[0] in keys}
        self.guessed |= {(*path, *own) for own in other.guessed if own[0] in keys}
        self.doubtful |= {(*path, *own) for own in other.doubtful if own[0] in keys}
        self.guessed_nodes |= other.guessed_nodes
        self.guesses += [guess for guess in other.guesses if guess not in self.guesses]
        self.losses += other.losses

    def text(self) -> str:
        """The site file."""
        blocks = []
        for key, value in self.data.items():
            lines = list(self._entry(key, value, (key,), 0))
            blocks.append((isinstance(value, dict | list), lines))
        out: list[str] = ["# yaml-language-server: $schema=site.schema.json"]
        for is_section, lines in blocks:
            if is_section:
                out.append("")
            out += lines
        return "\n".join([*out, *self._lost()]) + "\n"

    def _lost(self) -> Iterator[str]:
        if self.losses:
            yield ""
            yield "# What this file does not hold:"
        for loss in self.losses:
            place = loss.place
            yield _comment(f"- {place.file}:{place.span.line + 1}: {loss.text}")

    def _entry(self, key: str, value: Any, path: KeyPath, depth: int) -> Iterator[str]:
        indent = "  " * depth
        if comment := self.comments.get(path):
            yield f"{indent}{_comment(comment)}"
        if isinstance(value, dict) and value and key not in _FLOW:
            yield f"{indent}{_scalar(key)}:"
            for name, own in value.items():
                yield from self._entry(name, own, (*path, name), depth + 1)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{indent}{_scalar(key)}:"
            for number, item in enumerate(value):
                yield from self._item(item, (*path, number), depth + 1)
        else:
            yield f"{indent}{_scalar(key)}: {_flow(value)}"

    def _item(self, item: dict[str, Any], path: KeyPath, depth: int) -> Iterator[str]:
        lines: list[str] = []
        if comment := self.comments.get(path):
            yield f"{'  ' * depth}{_comment(comment)}"
        for name, own in item.items():
            lines += self._entry(name, own, (*path, name), depth + 1)
        first = next(i for i, line in enumerate(lines) if not line.lstrip().startswith("#"))
        yield from (line[2:] for line in lines[:first])
        yield "  " * depth + "- " + lines[first].lstrip()
        yield from lines[first + 1 :]


def _comment(text: str) -> str:
    """A comment; what other people's files say stays within its one line."""
    return f"# {visible(text)}"


def _flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    """A scalar that is read as what it is: text remains text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if value is None:
        return '""'
    text = str(value)
    if isinstance(value, Plain) and re.fullmatch(_PLAIN, text):
        return text
    is_text = isinstance(Plain(text).meaning(), str)
    if is_text and re.fullmatch(_PLAIN, text) and not text.endswith(":"):
        return text
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    # Python's escapes of what is not printable are YAML's, too.
    return f'"{visible(escaped)}"'
