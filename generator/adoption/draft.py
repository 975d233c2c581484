"""A site file under construction: its data, and where each part comes from."""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from generator.adoption.found import Ended, Item, ItemEnd, Loss, Word
from generator.diagnostics import Finding, KeyPath, visible
from generator.records import replace
from generator.sitefile.source import Plain
from generator.sitefile.unfinished import TODO

_FLOW = ("management", "parallel", "container")
# Keys that their sections can't be without.
_NEEDED = ("name", "version", "image", "address", "path", "gib", "kind", "from")
# A colon at the end would make a key of it.
_PLAIN = r"[A-Za-z0-9/_.][A-Za-z0-9/_.:@+=-]*(?<!:)"


class Draft:
    """Values by path, with their places, and remarks for the reader of the file."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.origins: dict[KeyPath, Word] = {}
        self.comments: dict[KeyPath, str] = {}
        self.guesses: list[str] = []
        self.losses: list[Loss] = []
        # Values of a form that no site file can have, with where each was found.
        self.malformed: list[tuple[Finding, Word]] = []
        self.ended: list[Ended] = []
        # What nobody stated and nothing follows from, by path; the data has what audits assume.
        self.todo: dict[KeyPath, str] = {}
        self._shown: dict[KeyPath, str] = {}
        # Sections that nothing speaks of, which only audits need; and containers of the engines.
        self.unsaid: set[str] = set()
        self.serving: set[str] = set()
        # What was done with the item at hand.
        self._done: list[tuple[ItemEnd, KeyPath, str]] = []
        self._at_hand = False
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
        if isinstance(node, list):
            node.append(value)
        else:
            node[path[-1]] = value
        self._done.append((ItemEnd.SITE, path, ""))
        if self.todo.pop(path, None):
            self.comments.pop(path, None)
        if place:
            self.origins[path] = place
            if place.remark:
                self.comments[path] = place.remark
        if guess:
            self.comments[path] = f"guessed: {guess}"
            self.guesses.append(guess)

    def need(self, path: KeyPath, why: str, assumed: Any) -> None:
        """Write TODO for a value that a site needs and nobody stated; audits assume one."""
        if self.get(*path) is not None and path not in self.todo:
            return
        self.put(path, assumed)
        self.todo[path] = why
        self.comments[path] = f"TODO: {why}"

    def lose(self, text: str, place: Word) -> None:
        """Record what the site does not hold: of the item at hand, or at a place."""
        if self._at_hand:
            self._done.append((ItemEnd.LOST, (), text))
        else:
            self.losses.append(Loss(text, place))

    def same(self, why: str) -> None:
        """Record that the item at hand has the same effect by default."""
        self._done.append((ItemEnd.DEFAULT, (), why))

    def settle(self, *path: str) -> None:
        """Record that the item at hand is part of a value of the site."""
        self._done.append((ItemEnd.SITE, path, ""))

    @contextmanager
    def ending(self, item: Item) -> Iterator[None]:
        """Give an item the end that it has within this context, or none."""
        self._done, self._at_hand = [], True
        yield
        self._at_hand = False
        self._done = [one for one in self._done if one[1] not in self.todo]
        ends = [end for end, _, _ in self._done]
        best = next(
            (end for end in (ItemEnd.SITE, ItemEnd.LOST, ItemEnd.DEFAULT) if end in ends), None
        )
        path, why = next(((p, w) for end, p, w in self._done if end is best), ((), ""))
        if best is ItemEnd.SITE:
            earlier = (n for n, one in enumerate(self.ended) if one.path == path)
            for number in earlier:
                again = "a later one has another value"
                if self.ended[number].item.value != item.value:
                    self.ended[number] = Ended(self.ended[number].item, ItemEnd.LOST, why=again)
        self.ended.append(Ended(item, best, path, why))

    def drop(self, *path: str | int, into: KeyPath = (), why: str = "the default") -> None:
        """Remove a value, and what is empty without it; `into` is the path that replaces it."""
        for number, one in enumerate(self.ended):
            if one.path == path:
                end = ItemEnd.SITE if into else ItemEnd.DEFAULT
                self.ended[number] = Ended(one.item, end, into, "" if into else why)
        *above, key = path
        node = self.get(*above) or {}
        if key in node:
            del node[key]
            self.origins.pop(path, None)
            self.comments.pop(path, None)
        if above and not node:
            self.drop(*above)

    def refuse(self, path: KeyPath, why: str) -> None:
        """Remove a value that no site file can have there, or leave it to be written."""
        for number, one in enumerate(self.ended):
            if one.path[: len(path)] == path or (one.path and path[: len(one.path)] == one.path):
                self.ended[number] = Ended(one.item, ItemEnd.LOST, why=why)
        if isinstance(path[-1], int) and path[0] != "cabling":
            value = self.get(*path[:-1]).pop(path[-1])
            if place := self.origins.get(path, self.origins.get(path[:-1])):
                self.losses.append(Loss(f"{value}: {why}", place))
        elif isinstance(path[-1], int) or path[-1] in _NEEDED:
            self.todo[path] = why
        else:
            self.drop(*path)

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
        self.todo |= {(*path, *own): t for own, t in other.todo.items() if own[0] in keys}
        self.guesses += [guess for guess in other.guesses if guess not in self.guesses]
        self.losses += other.losses
        self.ended += [replace(e, path=(*path, *e.path)) if e.path else e for e in other.ended]
        other.losses, other.ended = [], []

    def text(self, ended: Collection[Ended] = (), assumed: bool = False) -> str:
        """The site file, with what it does not hold; with `assumed`, without TODO."""
        self._shown = {} if assumed else self.todo
        blocks = []
        for key, value in self.data.items():
            if key in self.unsaid and not assumed:
                continue
            lines = list(self._entry(key, value, (key,), 0))
            blocks.append((isinstance(value, dict | list), lines))
        out: list[str] = ["# yaml-language-server: $schema=site.schema.json"]
        for is_section, lines in blocks:
            if is_section:
                out.append("")
            out += lines
        lines = [_comment(f"- {line}") for line in not_held(ended)]
        out += ["", "# What this file does not hold:", *lines] if lines else []
        return "\n".join(out) + "\n"

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
            yield f"{indent}{_scalar(key)}: {self._flow(value, path)}"

    def _flow(self, value: Any, path: KeyPath) -> str:
        """A value on one line."""
        if path in self._shown:
            return TODO
        if isinstance(value, dict):
            pairs = (f"{_scalar(k)}: {self._flow(v, (*path, k))}" for k, v in value.items())
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, list):
            parts = (self._flow(item, (*path, number)) for number, item in enumerate(value))
            return "[" + ", ".join(parts) + "]"
        return _scalar(value)

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


def not_held(ended: Collection[Ended]) -> Iterator[str]:
    """What a site file does not hold, line by line: each item, or the reason of many."""
    for one in dict.fromkeys(one for one in ended if one.end in (None, ItemEnd.LOST)):
        yield f"{one.line} ({one.item.place.file}:{one.item.place.span.line + 1})"
    others: dict[tuple[str, str], list[int]] = {}
    for one in ended:
        if one.end is ItemEnd.OTHER:
            place = one.item.place
            others.setdefault((place.file, one.why), []).append(place.span.line + 1)
    for (file, why), lines in others.items():
        number = f"{len(lines)} settings" if len(lines) > 1 else "1 setting"
        yield f"{number}: {why} ({file}:{min(lines)})"


def _comment(text: str) -> str:
    """A comment; what other people's files say stays within its one line."""
    return f"# {visible(text)}"


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
    if is_text and re.fullmatch(_PLAIN, text):
        return text
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    # Python's escapes of what is not printable are YAML's, too.
    return f'"{visible(escaped)}"'
