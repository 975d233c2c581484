"""Parses the text of a site file into data that knows the place of every key and value.

Scalars remain text as written until a schema gives them a type, so that `no`, `22:22`, `0755`,
`26.10` and a MAC address never turn into something else on the way.
"""

import re
from collections.abc import Iterator
from functools import cache, cached_property
from itertools import islice
from math import isfinite
from typing import Any

import yaml

from generator.diagnostics import (
    Finding,
    KeyPath,
    Proposal,
    Related,
    Remove,
    Replace,
    Rewrite,
    Span,
    reading_error,
)
from generator.records import record, replace
from generator.resources import rows
from generator.sitefile.renamed import earlier_name

MAX_BYTES = 512 << 10
MAX_DEPTH = 40
MAX_VALUES = 500_000
# With its aliases, a file has no more values than this for each of its bytes, and as many more.
MAX_VALUES_PER_BYTE, MORE_VALUES = 4, 20_000

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
# A number with a leading zero is octal in YAML 1.1 and decimal in 1.2: it remains text, and a
# schema that expects a number reports it. Eighteen digits fit every integer that makes sense in a
# site file.
_INTEGER = r"[-+]?(0|[1-9][0-9]{0,17})"
_RADIX = r"0o[0-7]{1,18}|0x[0-9a-fA-F]{1,15}"
_FLOAT = r"[-+]?([0-9]{1,18}\.[0-9]*|\.[0-9]+|[0-9]{1,18}(?=[eE]))([eE][-+]?[0-9]{1,3})?"
# What YAML rejects, what only some readers treat as the end of a line, and what turns the direction
# of the text around it, so that an editor shows another text than is read (CVE-2021-42574).
_FORBIDDEN = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


@record
class _Problem:
    """What one of libyaml's messages means, and what to do.

    `is_opened` if it began before the place where libyaml gave up. `unsafe` if only a person knows
    what was meant.
    """

    message: str
    help: str
    is_opened: bool = False
    unsafe: bool = False


_QUOTES = "put quotes around a text with special characters"


@cache
def _problems() -> dict[str, _Problem]:
    """What to say in place of libyaml's own words."""
    return {
        words: _Problem(message, text, is_opened="opened" in marks, unsafe="unsafe" in marks)
        for words, message, text, marks in rows("yaml-errors")
    }


class Plain(str):
    """A scalar without quotes: the text as written, to be read by YAML 1.2's core schema."""

    __slots__ = ()

    @property
    def is_null(self) -> bool:
        """Whether nothing, `~` or `null` was written."""
        return self in _NULL

    def meaning(self) -> str | int | float | bool | None:
        """The value in YAML 1.2: null, a boolean, a number, or the text."""
        if self.is_null:
            return None
        if self in _TRUE or self in _FALSE:
            return self in _TRUE
        if re.fullmatch(_INTEGER, self):
            return int(self)
        if re.fullmatch(_RADIX, self):
            return int(self, 0)
        if re.fullmatch(_FLOAT, self) and isfinite(number := float(self)):
            return number
        return str(self)


_Pair = tuple[yaml.Node | None, yaml.Node]
_Pairs = dict[str, _Pair]


@record
class Document:
    """A site file that was read: its name as given, its text, its data and the findings.

    `data` has dicts, lists, `str` for quoted and `Plain` for other scalars; it is None if the text
    is not YAML. If the site extends a base, `root` and `data` are the merged ones, and `parts` are
    the two documents as they were read.
    """

    name: str
    text: str
    root: yaml.Node | None
    data: Any
    findings: tuple[Finding, ...]
    parts: tuple["Document", ...] = ()

    @property
    def files(self) -> tuple["Document", ...]:
        """The documents of the files that it consists of, the site file first."""
        return self.parts or (self,)

    def file(self, span: Span) -> "Document":
        """The document of the file that a place belongs to."""
        return next((part for part in self.parts if part.name == span.file), self.files[0])

    @cached_property
    def _keys(self) -> dict[int, _Pairs]:
        return {}

    @cached_property
    def _files(self) -> dict[int, str]:
        """The file of each node that is not in the site file itself."""
        return {id(node): base.name for base in self.parts[1:] for node in nodes_of(base.root)}

    def locate(self, path: KeyPath, at_key: bool = False) -> Span | None:
        """The place of the value (or key) at `path`, or of its nearest parent's key."""
        node, key = self.root, None
        for part in path:
            child = self._child(node, part)
            if child is None:
                at_key = True
                break
            key, node = child
        if at_key and key is not None:
            node = key
        if node is None:
            return None
        span = _span(node)
        return replace(span, file=self._files[id(node)]) if id(node) in self._files else span

    def _child(self, node: yaml.Node | None, part: str | int) -> _Pair | None:
        """The key and value nodes of one step of a path."""
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            return None, node.value[part]
        if isinstance(node, yaml.MappingNode) and isinstance(part, str):
            if id(node) not in self._keys:
                # If a key is written twice, the first one counts.
                self._keys[id(node)] = {
                    pair[0].value: pair
                    for pair in reversed(node.value)
                    if isinstance(pair[0], yaml.ScalarNode)
                }
            return self._keys[id(node)].get(part)
        return None


def nodes_of(root: yaml.Node | None) -> Iterator[yaml.Node]:
    """All nodes of a document, each once."""
    seen: set[int] = set()
    waiting = [root] if root else []
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            waiting += [part for pair in node.value for part in pair]


def continued_lines(root: yaml.Node | None) -> set[int]:
    """The lines that go on with a text without quotes that begins above them."""
    texts = (n for n in nodes_of(root) if isinstance(n, yaml.ScalarNode) and not n.style)
    return {line for n in texts for line in range(n.start_mark.line + 1, n.end_mark.line + 1)}


class NodeLoader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """Composes nodes without resolving types, to tell explicit tags from implicit ones."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own class attribute)


def read(name: str, raw: bytes) -> Document:
    """Read the bytes of a site file; its findings have everything that is wrong with them."""
    text, root, builder = "", None, _Builder(len(raw))
    try:
        text = _lines(raw)
        _reject_diff(text)
        builder.findings += islice(_odd_blanks(text), _MOST_FINDINGS)
        plain = re.sub(_ODD_BLANK, " ", text) if builder.findings else text
        _measure(plain)
        root = yaml.compose(plain, Loader=NodeLoader)
        if root is None:
            raise _UnreadableError(
                "SG001", "the site file is empty", help="start with 'version: 1'"
            )
        data = builder.value(root, ())
    except _UnreadableError as error:
        return Document(name, text or error.text, root, None, (*builder.findings, error.finding))
    except yaml.YAMLError as error:
        return Document(name, text, None, None, (*builder.findings, _syntax(error, text)))
    return Document(name, text, root, data, tuple(builder.findings))


class _UnreadableError(Exception):
    """A fault that prevents all further checks, and the text as far as it was read."""

    def __init__(self, rule: str, message: str, text: str = "", **more: Any) -> None:
        super().__init__(message)
        self.finding = reading_error(rule, message, **more)
        self.text = text


def _lines(raw: bytes) -> str:
    """UTF-8 text with Unix line endings; raises for anything else."""
    if len(raw) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES >> 10} KiB"
        raise _UnreadableError("SG007", message, help=_TOO_MUCH)
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _UnreadableError("SG006", "the file is UTF-16", help=_UTF_8)
    raw = re.sub(rb"\r\n?", b"\n", raw.removeprefix(b"\xef\xbb\xbf"))
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        before, text = raw[: error.start].decode(), raw.decode(errors="replace")
        span = _character(before)
        raise _UnreadableError(
            "SG006", "the file is not UTF-8 text", text, span=span, help=_UTF_8
        ) from error
    if not _is_plain(text) and (found := re.search(_FORBIDDEN, text)):
        message = f"the character U+{ord(found[0]):04X} is not allowed in a site file"
        span = _character(text[: found.start()])
        raise _UnreadableError("SG006", message, text, span=span, help="remove it")
    return text


def _is_plain(text: str) -> bool:
    """Whether a text has only printable ASCII characters and whitespace, as most do."""
    return text.isascii() and text.translate(_BLANKS).isprintable()


_BLANKS = dict.fromkeys(map(ord, "\t\n"), " ")
_UTF_8 = "save it as UTF-8"
_TOO_MUCH = "check that this is a site file: one of 244 nodes takes 60 KiB"


# Spaces that YAML treats as letters, pasted from a web page or a word processor.
_ODD_BLANK = "[\u00a0\u1680\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff]"
# The syntax of a line: its indentation, dashes, a key with its colon, and keys in braces.
_SYNTAX = (
    r"^[ {0}]*(?:-[ {0}]+)*(?:[\w.-]+:(?=[ {0}]))?[ {0}]*"
    r"|[{{,\[][ {0}]*(?:[\w.-]+:(?=[ {0}]))?[ {0}]*".format(_ODD_BLANK[1:-1])
)


def _odd_blanks(text: str) -> Iterator[Finding]:
    """Odd spaces in a line's syntax, which are not spaces to YAML; in values they are allowed."""
    if text.isascii():
        return
    blank, any_syntax = re.compile(f"{_ODD_BLANK}+"), re.compile(_SYNTAX)
    for number, line in enumerate(text.split("\n")):
        syntax = any_syntax.finditer(line) if blank.search(line) else ()
        for odd in (odd for part in syntax for odd in blank.finditer(line, *part.span())):
            span = Span(number, odd.start(), number, odd.end())
            plain = "".join("" if one in _NO_WIDTH else " " for one in odd[0])
            yield reading_error(
                "SG012",
                f"a character that only looks like a space, U+{ord(odd[0][0]):04X}",
                span=span,
                help="write a plain space" if plain else "remove it",
                proposals=((Rewrite(span, plain),),),
            )


_NO_WIDTH = "\u200b\u2060\ufeff"


def _character(before: str) -> Span:
    """The place of the character that follows a text."""
    line, column = before.count("\n"), len(before) - before.rfind("\n") - 1
    return Span(line, column, line, column + 1)


def _measure(text: str) -> None:
    """Reject what is too deep or too long before anything recursive processes it.

    libyaml's composer recurses in C and crashes the interpreter at about ten thousand levels.
    """
    depth = 0
    for values, event in enumerate(yaml.parse(text, Loader=NodeLoader), start=1):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _UnreadableError(
                "SG007", _TOO_DEEP, span=_point(event.start_mark), help=_TOO_MUCH
            )
        if values > MAX_VALUES:
            raise _UnreadableError(
                "SG007", "the file is too long", span=_point(event.start_mark), help=_TOO_MUCH
            )


def _reject_diff(text: str) -> None:
    """Reject the lines of a diff, of which YAML can read some."""
    if found := re.search(r"^-.*\n(?=\+)", text, re.MULTILINE):
        span = replace(_character(text[: found.start()]), end_column=len(found[0]) - 1)
        message = "this line and the one below are a diff's: '-' is before it, '+' after it"
        help_text = "keep the line with '+', without that sign, and remove the one with '-'"
        raise _UnreadableError("SG001", message, text, span=span, help=help_text, unsafe=True)


# More of them say nothing new.
_MOST_FINDINGS = 500
_TOO_DEEP = f"the file is nested deeper than {MAX_DEPTH} levels"


def conflict(text: str) -> re.Match[str] | None:
    """The first conflict marker that git left in a text."""
    return re.search(r"^(<{7} .*|={7}\s*$|>{7} .*)", text, re.MULTILINE)


def _syntax(error: yaml.YAMLError, text: str) -> Finding:
    problem = str(getattr(error, "problem", None) or "this is not YAML")
    opened, mark = getattr(error, "context_mark", None), getattr(error, "problem_mark", None)
    point = _point(mark)
    if found := conflict(text):
        line = text.count("\n", 0, found.start())
        return reading_error(
            "SG001",
            f"'{found[0][:40].rstrip()}' is left of a conflict that git found",
            span=Span(line, 0, line, 7),
            help="keep one side, or what is right of both, and remove the marks",
            unsafe=True,
        )
    if _tab_at(text, point):
        return reading_error(
            "SG002", "a tab in the indentation of YAML", span=point, help="indent with spaces"
        )
    # libyaml's own limit, which it finds while it looks ahead for the end of a key.
    if "nesting depth" in problem:
        return reading_error("SG007", _TOO_DEEP, span=point, help=_TOO_MUCH)
    if "another document" in problem:
        return reading_error(
            "SG005",
            "a second document starts here; a site file holds one",
            span=point,
            help="remove the line, or make a file of each document",
        )
    known = _problems().get(problem) or _Problem(problem, _QUOTES)
    place = opened if known.is_opened else mark
    point = _within(_point(place or mark or opened), text)
    return reading_error("SG001", known.message, span=point, help=known.help, unsafe=known.unsafe)


def _point(mark: Any) -> Span | None:
    return Span(mark.line, mark.column, mark.line, mark.column + 1) if mark else None


def _within(span: Span | None, text: str) -> Span | None:
    """The place itself, or the last character of the text if it is past the end."""
    lines = text.split("\n")
    if span is None or span.line < len(lines):
        return span
    last = max(0, len(lines[-1]) - 1)
    return Span(len(lines) - 1, last, len(lines) - 1, last + 1)


def _tab_at(text: str, span: Span | None) -> bool:
    lines = text.split("\n")
    if span is None or span.line >= len(lines):
        return False
    line = lines[span.line]
    return "\t" in line[: len(line) - len(line.lstrip())] or line[span.column :].startswith("\t")


class _Builder:
    """Turns nodes into plain data, and collects what YAML allows but a site file doesn't."""

    def __init__(self, size: int) -> None:
        self.findings: list[Finding] = []
        self._values = 0
        self._most = min(MAX_VALUES, MORE_VALUES + MAX_VALUES_PER_BYTE * size)
        self._open: set[int] = set()

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self._values += 1
        if self._values > self._most:
            raise _UnreadableError(
                "SG007", "aliases make the file too long", path=path[:3], help=_TOO_MUCH
            )
        if len(path) > MAX_DEPTH:
            raise _UnreadableError("SG007", _TOO_DEEP, span=_span(node), help=_TOO_MUCH)
        if id(node) in self._open:
            raise _UnreadableError(
                "SG008",
                "an alias refers to the block that it is in",
                span=_span(node),
                help="write the value out",
            )
        if node.tag not in _TAGS:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            # What a custom tag makes of a text is not known.
            known = node.tag.startswith("tag:yaml.org,2002:") and isinstance(node, yaml.ScalarNode)
            self.findings.append(
                reading_error(
                    "SG010",
                    f"a site file has no tags, and this one is {tag}",
                    path,
                    help="remove the tag",
                    proposals=((Replace(path, _written(node.value)),),) if known else (),
                )
            )
        if isinstance(node, yaml.ScalarNode):
            return str(node.value) if node.style else Plain(node.value)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
            return dict(self._pairs(node, path)) if isinstance(node, yaml.MappingNode) else None
        finally:
            self._open.discard(id(node))

    def _pairs(self, node: yaml.MappingNode, path: KeyPath) -> Iterator[tuple[str, Any]]:
        first: dict[str, yaml.Node] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._key_fault(
                    "SG009",
                    "a list or a mapping stands where a key should be",
                    path,
                    key_node,
                    "write one word before the ':'",
                )
                continue
            if named := earlier_name((*path, str(key_node.value)), _span(key_node)):
                self.findings.append(named)
                key_node.value = named.path[-1]
            key = str(key_node.value)
            place = (*path, key)
            if key == "<<" and not key_node.style:
                self._key_fault(
                    "SG004",
                    "merge keys ('<<') are not supported",
                    place,
                    key_node,
                    "write the keys out, or use 'defaults' for values of all nodes",
                )
            elif key in first and len(self.findings) > _MOST_FINDINGS:
                continue
            elif key in first:
                earlier = [f for f in self.findings if f.rule == "SG111" and f.path == place]
                self.findings = [f for f in self.findings if f not in earlier]
                self._key_fault(
                    "SG003",
                    f"{earlier[0].message}, and both are written"
                    if earlier
                    else f"the key '{key}' is written twice",
                    place,
                    key_node,
                    f"both mean the same: keep one, as '{key}'"
                    if earlier
                    else "keep one of the two",
                    related=(Related("first written", place),),
                    proposals=_removal_of_either(place, first[key], value_node),
                )
            else:
                first[key] = value_node
                yield key, self.value(value_node, place)

    def _key_fault(
        self, rule: str, message: str, path: KeyPath, key: yaml.Node, help_text: str, **more: Any
    ) -> None:
        self.findings.append(
            reading_error(rule, message, path, span=_span(key), help=help_text, **more)
        )


def _removal_of_either(place: KeyPath, first: yaml.Node, second: yaml.Node) -> tuple[Proposal, ...]:
    """What to remove if a key is written twice: either one, unless one of them is empty."""
    if isinstance(first, yaml.ScalarNode) and not first.style and first.value in _NULL:
        return ((Remove(place),),)
    same = yaml.serialize(first) == yaml.serialize(second)
    again = (Remove(place, again=True),)
    return (again,) if same else ((Remove(place),), again)


def _written(text: str) -> str | int | float | bool:
    """The meaning of a scalar without quotes."""
    meaning = Plain(text).meaning()
    return "" if meaning is None else meaning


_TAGS = frozenset({"!"} | {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")})


def _span(node: yaml.Node, levels: int = 4) -> Span:
    """The place of a node; for a block only its first entry, since it ends many lines below."""
    start, end = node.start_mark, node.end_mark
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value and levels:
        first = node.value[0]
        for child in reversed(first) if isinstance(first, tuple) else [first]:
            span = _span(child, levels - 1)
            if span.line == span.end_line == start.line:
                return Span(start.line, start.column, span.end_line, span.end_column)
    return Span(start.line, start.column, end.line, end.column)


def value_at(data: Any, path: KeyPath) -> Any:
    """The value at a path, None if there is none."""
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data
