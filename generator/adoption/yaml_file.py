"""YAML files, with the places of their values."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from generator.adoption.found import Word
from generator.adoption.shell import expand, shell_words
from generator.adoption.text import Text
from generator.diagnostics import Span
from generator.sitefile.source import Document


class Yaml:
    """A YAML file, parsed with the places of its values."""

    def __init__(self, text: Text, document: Document) -> None:
        self.text = text
        self.root = document.root
        self._lines = text.text.split("\n")

    def get(self, node: Any, *path: str | int) -> yaml.Node | None:
        """The node at a path below a node, if any."""
        for part in path:
            if isinstance(node, yaml.MappingNode):
                node = dict(self.pairs(node)).get(str(part))
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
                node = node.value[part] if part < len(node.value) else None
            else:
                return None
        return node if isinstance(node, yaml.Node) else None

    def pairs(self, node: Any) -> Iterator[tuple[str, yaml.Node]]:
        """The keys and values of a mapping, including merged ones; none for other nodes."""
        waiting, seen, names = [node], set[int](), set[str]()
        while waiting:
            mapping = waiting.pop()
            if not isinstance(mapping, yaml.MappingNode) or id(mapping) in seen:
                continue
            seen.add(id(mapping))
            own = [(str(k.value), v) for k, v in mapping.value if isinstance(k, yaml.ScalarNode)]
            yield from ((key, v) for key, v in own if key not in names and key != "<<")
            names |= {key for key, _ in own}
            for value in (v for key, v in own if key == "<<"):
                waiting += reversed([*self.items(value)] or [value])

    def items(self, node: Any) -> Iterator[yaml.Node]:
        """The entries of a list; none for other nodes."""
        if isinstance(node, yaml.SequenceNode):
            yield from node.value

    def word(self, node: Any, known: Mapping[str, str] = {}) -> Word | None:
        """A scalar as a word, with its variables expanded."""
        if not isinstance(node, yaml.ScalarNode):
            return None
        start, end = node.start_mark, node.end_mark
        last = end.column if end.line == start.line else len(self._line(start.line))
        span = Span(start.line, start.column, start.line, max(last, start.column + 1))
        return Word(expand(str(node.value), known), self.text.file, span)

    def words(self, node: Any) -> Iterator[tuple[str, Word]]:
        """The keys and values of a mapping whose values are scalars."""
        for key, value in self.pairs(node):
            if word := self.word(value):
                yield key, word

    def place(self, node: yaml.Node) -> Word:
        """The beginning of a node."""
        start = node.start_mark
        end = max(len(self._line(start.line)), start.column + 1)
        return Word("", self.text.file, Span(start.line, start.column, start.line, end))

    def span(self, node: yaml.Node) -> Span:
        """The whole of a node."""
        start, end = node.start_mark, node.end_mark
        return Span(start.line, start.column, end.line, max(end.column, start.column + 1))

    def script(self, node: yaml.ScalarNode, known: Mapping[str, str]) -> Iterator[Word]:
        """The words of a scalar that is a line of shell."""
        start = self.text.offset(node.start_mark.line, node.start_mark.column)
        end = self.text.offset(node.end_mark.line, node.end_mark.column)
        if node.style in ("|", ">"):
            start = self.text.offset(node.start_mark.line + 1, 0)
        elif node.style:
            start, end = start + 1, end - 1
        for word in shell_words(self.text, start, end, known, node.style == "|"):
            if word.script and node.style != "|" and "\n" not in node.value.strip():
                # Ends of lines are spaces, also in quotes.
                word.script.text = word.script.text.replace("\n", " ")
            yield word

    def _line(self, number: int) -> str:
        return self._lines[number] if number < len(self._lines) else ""
