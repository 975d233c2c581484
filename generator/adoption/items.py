"""What files say, item by item, whoever reads it, and what becomes of each item.

An item that a reader took has the end that its value had; for all others, `schemas/adoption.tsv`
knows what a key means to sparkgen, by the kind of file.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import dropwhile, zip_longest
from typing import Any

import yaml

from generator.adoption.docker import EXPORTS, variable
from generator.adoption.draft import Draft
from generator.adoption.flow import CONDITION, behind, commands
from generator.adoption.found import REMOVED, Ended, Found, Item, ItemEnd, Word
from generator.adoption.scripts import is_read
from generator.adoption.shell import unwrapped
from generator.adoption.text import Text
from generator.adoption.variables import unread
from generator.adoption.yaml_file import Yaml
from generator.resources import rows

_ENTRY = re.compile(r"(?m)^[ \t]*([A-Za-z][\w-]*)[ \t]*=[ \t]*((?:.*\\\n)*.*)$")
_SECTION = re.compile(r"(?m)^\[([A-Za-z0-9-]+)\][ \t]*$")
_UNKNOWN = "it is not read"
# Kinds of items whose words may end one by one.
_COMMANDS = ("script", "variable", "docker")
_REST = "the rest of a command of which the site file has a part"
_STARTS = re.compile(
    r"[^(\s]+\)|(.*/)?(eval|exec|sudo|env|nohup|bash|docker|podman|nerdctl|container|run|run_cluster\.sh|export|declare)"
)


def of_yaml(
    file: Yaml, kind: str, without: str = "", owner: str = "", root: Any = None
) -> Iterator[Item]:
    """Each scalar below a node, by its path from there, for its `owner`; none of one key."""
    for path, word in _scalars(file, root or file.root, (), set()):
        if not (without and path[0] == without):
            yield Item(".".join(path), word.text, (word,), kind, owner)


def _scalars(
    file: Yaml, node: Any, path: tuple[str, ...], seen: set[int]
) -> Iterator[tuple[tuple[str, ...], Word]]:
    if id(node) in seen:
        return
    seen.add(id(node))
    for key, value in file.pairs(node):
        yield from _scalars(file, value, (*path, key), seen)
    for number, value in enumerate(file.items(node)):
        yield from _scalars(file, value, (*path, str(number)), seen)
    is_said = isinstance(node, yaml.ScalarNode) and node.value not in ("", "null")
    if is_said and (word := file.word(node)):
        yield path, Word(word.text, word.file, file.span(node))


def of_entries(text: Text, kind: str, owner: str = "") -> Iterator[Item]:
    """Each KEY=VALUE of a file with sections, which may go on in further lines."""
    sections = [(found.start(), found[1]) for found in _SECTION.finditer(text.text)]
    for found in _ENTRY.finditer(text.text):
        section = next((name for at, name in reversed(sections) if at < found.start()), "")
        word = text.word(found[2].strip(), *found.span(2))
        if found[2].strip():
            yield Item(f"{section}.{found[1]}", word.text, (word,), kind, owner)


def of_commands(words: Sequence[Word], here: Mapping[int, str] = {}) -> Iterator[Item]:
    """Each command of a script; `here` has the lines of files in it, and what writes them."""
    words = list(unwrapped(words, {}, True))
    functions = {word.text.removesuffix("()") for word in words if word.text.endswith("()")}
    for command in commands(words):
        opening = here.get(command[0].span.line)
        said = behind(command[3 if command[0].text == "case" else 0 :]) or command
        # Variables before a command are only that command's.
        said = [*dropwhile(lambda word: any(variable(word)), said)] or said
        text = " ".join(own.text for own in said)
        is_given = said[0].text in EXPORTS or opening is not None
        named = ((v, word) for word in command if is_given for v in variable(word))
        settings = [(v, word) for v, word in named if is_read(v.name)]
        yield from (Item(v.name, v.value.text, (word,), "variable") for v, word in settings)
        given = [word for _, word in settings]
        left = [word for word in command if word not in given and word.text not in EXPORTS]
        if given and not left:
            continue
        if opening is None:
            kind = "call" if said[0].text in functions else "script"
            if _WRITES.fullmatch(" ".join(own.text for own in said if own.script is None)):
                kind = "writing"
            yield Item(said[0].text, text, tuple(command), kind)
        elif opening:
            yield Item(opening, text, tuple(command), "heredoc")


# A sign in quotes, beside other words, is no redirection.
_WRITES = re.compile(r"(echo|printf|cat)\b.* [0-9&]?>>? ?(?!/dev/|&).+")


def of_lines(text: Text) -> Iterator[Item]:
    """Each line of a program's output."""
    for number, line in enumerate(text.text.split("\n")):
        if line.strip():
            word = text.line(number)
            yield Item(word.text, word.text, (word,), "printed")


def closed(found: Found, draft: Draft) -> tuple[Ended, ...]:
    """Every item with its end, in the order of the files."""
    losses = [
        Ended(Item("", "", (loss.place,)), ItemEnd.LOST, why=loss.text) for loss in draft.losses
    ]
    closing = _Closing(draft)
    rest = [ended for item in _all(found) for ended in closing.ends(item)]
    ended = [_there(draft, one) for one in (*draft.ended, *losses, *rest)]
    return tuple(sorted(ended, key=lambda one: _key(one.item.place)))


class _Closing:
    """The ends of items that files have beside those that a draft has ended."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._ended = _Places(word for one in draft.ended for word in one.item.words)
        self._lost = _Places(loss.place for loss in draft.losses)
        self._origins = _Places(draft.origins.values())
        self._paths = {_key(word): path for path, word in draft.origins.items()}
        self._seen: set[tuple[str, int, int]] = set()

    def ends(self, item: Item) -> Iterator[Ended]:
        """The ends of an item, or of those of its words that have none yet."""
        if _key(item.place) in self._seen:
            return
        self._seen.add(_key(item.place))
        left = self._left(item)
        whole = len(left) == len(item.words)
        for one in [item] if whole else options(item, left) if item.kind in _COMMANDS else ():
            ended = self._end(one, whole)
            self._ended.add(*one.words)
            yield ended

    def _left(self, item: Item) -> list[Word]:
        """The words without an end; a flag ends with its value, and `docker run` with its rest."""
        is_ended = self._is_ended if item.kind in _COMMANDS else self._ended.first
        ended = [bool(is_ended(word)) or self._lost.covers(word) for word in item.words]
        pairs = zip_longest(item.words, ended, item.words[1:], ended[1:])
        left = [
            word
            for word, is_ended, after, is_next in pairs
            if not is_ended and not (is_next and _is_of(word, after))
        ]
        if len(left) == len(item.words):
            return left
        return list(dropwhile(lambda word: _STARTS.fullmatch(word.text), left))

    def _is_ended(self, word: Word) -> bool:
        """Whether a word has an end; one of several lines, if not only a part of it has."""
        is_long = word.span.line != word.span.end_line
        return self._ended.covers(word) if is_long else self._ended.first(word) is not None

    def _end(self, item: Item, whole: bool) -> Ended:
        if own := next(filter(None, map(self._origins.first, item.words)), None):
            return Ended(item, ItemEnd.SITE, self._paths[_key(own)])
        if item.owner and item.owner not in self._draft.serving:
            return Ended(item, ItemEnd.OTHER, why=f"of {item.owner}, which is no part of the site")
        said = item.words[: 1 if whole else None] if item.kind in ("script", "call") else ()
        if doubt := next((word.doubt for word in said if word.doubt), ""):
            return Ended(item, ItemEnd.LOST if doubt == CONDITION else ItemEnd.OTHER, why=doubt)
        return of_table(item) if whole else Ended(item, ItemEnd.LOST, why=_REST)


def _is_of(flag: Word, value: Word) -> bool:
    """Whether a word is a flag that ends with the next one."""
    return flag.text.startswith("-") and (not flag.doubt or flag.doubt == value.doubt)


def options(item: Item, words: Iterable[Word]) -> Iterator[Item]:
    """Some words of a command as items: what comes first, and each option with its values."""
    option: list[Word] = []
    for word in (*words, None):
        if option and (word is None or word.text.startswith("-")):
            text = " ".join(own.text for own in option)
            yield Item(option[0].text, text, tuple(option), item.kind, item.owner)
            option = []
        if word:
            option.append(word)


def _there(draft: Draft, one: Ended) -> Ended:
    """An end in the site, if its value is still there: what is the default is left out at last."""
    is_gone = one.end is ItemEnd.SITE and draft.get(*one.path) is None
    return Ended(one.item, ItemEnd.DEFAULT, why="the default") if is_gone else one


def _all(found: Found) -> Iterator[Item]:
    """The items of all files, those of containers first."""
    for node in found.nodes:
        for container in node.containers:
            yield from container.items
    yield from found.items


def _key(word: Word) -> tuple[str, int, int]:
    return word.file, word.span.line, word.span.column


class _Places:
    """Places of words, by line."""

    def __init__(self, words: Iterable[Word]) -> None:
        self._lines: dict[tuple[str, int], list[Word]] = defaultdict(list)
        self.add(*words)

    def add(self, *words: Word) -> None:
        """Add more of them."""
        for word in words:
            for number in range(word.span.line, word.span.end_line + 1):
                self._lines[word.file, number].append(word)

    def first(self, word: Word) -> Word | None:
        """The first word that shares some text with another, best one at the same place."""
        return min(self._sharing(word), key=lambda own: _key(own) != _key(word), default=None)

    def covers(self, word: Word) -> bool:
        """Whether a word that begins no later shares some text with another."""
        at = (word.span.line, word.span.column)
        return any((w.span.line, w.span.column) <= at for w in self._sharing(word))

    def _sharing(self, word: Word) -> Iterator[Word]:
        span = word.span
        begin, end = (span.line, span.column), (span.end_line, span.end_column)
        for number in range(span.line, span.end_line + 1):
            for other in self._lines.get((word.file, number), ()):
                its = other.span
                if begin < (its.end_line, its.end_column) and (its.line, its.column) < end:
                    yield other


def of_table(item: Item) -> Ended:
    """The end of an item that no reader took."""
    if item.value == REMOVED:
        return Ended(item, ItemEnd.LOST, why="the capture left out its value")
    if item.kind == "variable":
        return Ended(item, ItemEnd.LOST, why=CONDITION) if item.place.around else unread(item)
    for kind, what, value, end, why in _table():
        if kind.fullmatch(item.kind) and what.fullmatch(item.what) and value.fullmatch(item.value):
            return Ended(item, end, why=why)
    return Ended(item, ItemEnd.LOST, why=_UNKNOWN)


_Row = tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], ItemEnd, str]


@cache
def _table() -> tuple[_Row, ...]:
    """What keys mean to sparkgen: patterns of a kind of file, a key and a value, and the end."""
    ends = {"default": ItemEnd.DEFAULT, "other": ItemEnd.OTHER, "lost": ItemEnd.LOST}
    return tuple(
        (re.compile(kind), re.compile(what, re.S), re.compile(value, re.S), ends[end], why)
        for kind, what, value, end, why in rows("adoption")
    )
