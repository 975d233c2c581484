"""The place of everything in the text of a site file: keys, values, entries, aliases and all.

`Document.locate` points at things. To change them, one has to know where they end, and to tell an
alias from what it repeats, neither of which composed nodes show.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from generator.diagnostics import KeyPath
from generator.records import record
from generator.sitefile.source import NodeLoader

# Line and column, both from zero, columns in characters.
Point = tuple[int, int]


class UnsettledError(Exception):
    """A place that can't be changed without changing, or guessing, something else."""


@dataclass(slots=True)
class LayoutPlace:
    """A value and its range of text; a block ends with its last value.

    `style` is the quote of a scalar, or `|`. `shared` is a value that aliases repeat.
    """

    start: Point
    end: Point
    style: str = ""
    flow: bool = False
    alias: bool = False
    shared: bool = False
    is_list: bool = False
    entries: "list[LayoutEntry]" = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written where a value should be."""
        return self.start == self.end and not self.entries


@dataclass(slots=True)
class LayoutEntry:
    """An entry of a list, or a key and its value."""

    key: LayoutPlace | None
    name: str
    value: LayoutPlace

    @property
    def start(self) -> Point:
        """The start of the key, or of a list entry's value."""
        return self.key.start if self.key else self.value.start


@record
class PathStep:
    """One step of a path: the list or mapping, and the entry in it."""

    parent: LayoutPlace
    index: int

    @property
    def entry(self) -> LayoutEntry:
        """The entry that the step leads to."""
        return self.parent.entries[self.index]


def places(text: str) -> LayoutPlace:
    """The root of a text that is valid YAML."""
    kinds = yaml.NodeEvent | yaml.CollectionEndEvent
    events = [event for event in yaml.parse(text, Loader=NodeLoader) if isinstance(event, kinds)]
    repeated = {str(event.anchor) for event in events if isinstance(event, yaml.AliasEvent)}
    return _Reader(iter(events), repeated, text.split("\n")).place()


def steps(root: LayoutPlace, path: KeyPath, again: bool = False) -> list[PathStep]:
    """The steps to the value at a path, or with `again` to the second key with that name.

    Raises UnsettledError if there is none, or if the change would also affect what an alias
    repeats.
    """
    found: list[PathStep] = []
    place = root
    for number, part in enumerate(path):
        if place.alias or place.shared:
            raise UnsettledError("an alias repeats it")
        known = [i for i, entry in enumerate(place.entries) if _is(place, i, entry, part)]
        last = again and number == len(path) - 1
        if len(known) <= last:
            raise UnsettledError("it is not there")
        found.append(PathStep(place, known[last]))
        place = found[-1].entry.value
    return found


def _is(place: LayoutPlace, index: int, entry: LayoutEntry, part: str | int) -> bool:
    return index == part if place.is_list else entry.key is not None and entry.name == part


class _Reader:
    """Turns parser events into places."""

    def __init__(self, events: Iterator[Any], repeated: set[str], lines: list[str]) -> None:
        self._events = events
        self._repeated = repeated
        self._lines = lines

    def place(self) -> LayoutPlace:
        return self._place(next(self._events))

    def _place(self, event: Any) -> LayoutPlace:
        start, end = _point(event.start_mark), _point(event.end_mark)
        if isinstance(event, yaml.AliasEvent):
            return LayoutPlace(start, end, alias=True)
        shared = event.anchor in self._repeated
        if isinstance(event, yaml.ScalarEvent):
            if event.style in ("|", ">"):
                end = self._text_end(end)
            return LayoutPlace(start, end, style=event.style or "", shared=shared)
        flow, is_list = bool(event.flow_style), isinstance(event, yaml.SequenceStartEvent)
        place = LayoutPlace(start, end, flow=flow, shared=shared, is_list=is_list)
        for inner in self._events:
            if isinstance(inner, yaml.CollectionEndEvent):
                if flow:
                    place.end = _point(inner.end_mark)
                break
            if is_list:
                entry = LayoutEntry(None, "", self._place(inner))
            else:
                name = inner.value if isinstance(inner, yaml.ScalarEvent) else ""
                entry = LayoutEntry(self._place(inner), name, self.place())
            place.entries.append(entry)
            place.end = max(place.end, entry.value.end)
        return place

    def _text_end(self, end: Point) -> Point:
        """The end of the last line of a block text, not of the blank lines below it."""
        line = end[0] if end[1] else end[0] - 1
        while not self._lines[line].strip():
            line -= 1
        return line, len(self._lines[line])


def _point(mark: Any) -> Point:
    return mark.line, mark.column
