"""Keys in the wrong place: in another section, in no section, or without a dash."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import yaml

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import catalogs
from generator.diagnostics import (
    Add,
    Finding,
    KeyPath,
    Proposal,
    Remove,
    Rewrite,
    Span,
    all_nearest,
    misspelt,
    reading_error,
)
from generator.records import record
from generator.sitefile.key_rules import keys_at, place_name, rules_at, section_of
from generator.sitefile.mistakes import aliases
from generator.sitefile.mistakes.slips import is_content, width
from generator.sitefile.sections import GROUPS, SECTIONS, entry_keys, section_keys, site_schema
from generator.sitefile.source import Document, Plain, value_at
from generator.sitefile.typed_values import as_typed
from generator.sitefile.validation import is_valid, takes

Fits = Callable[[KeyPath, Any], bool]


@record
class Misplaced:
    """A key in the wrong place, and the errors that follow from it."""

    finding: Finding
    explained: frozenset[KeyPath]

    def explains(self, path: KeyPath) -> bool:
        """Whether the misplaced key is the only thing wrong there."""
        return any(path[: len(own)] == own for own in self.explained)


def misplaced(document: Document, unknown: Iterable[KeyPath], fits: Fits) -> Iterator[Misplaced]:
    """Keys written twice because one belongs elsewhere, and keys that lost their section."""
    twice = [finding for finding in document.findings if finding.rule == "SG003"]
    yield from _entries_without_dash(document, twice)
    for finding in twice:
        yield from _moved(document, finding, fits)
    yield from _beside_another(document, fits)
    yield from _dash_without_blank(document)
    unknown = list(unknown)
    yield from _outdented(document, [path for path in unknown if len(path) == 1])
    yield from _nested_sections(document, [path for path in unknown if len(path) > 1])
    yield from _flags_elsewhere(document)


def _finding(
    message: str, help_text: str, path: KeyPath, edits: Proposal, rule: str, span: Span | None
) -> Finding:
    return reading_error(
        rule, message, path, at_key=True, help=help_text, span=span, proposals=(edits,)
    )


def _moved(document: Document, twice: Finding, fits: Fits) -> Iterator[Misplaced]:
    """A key that one section has twice, while another section that requires it has none."""
    if len(twice.path) != 2:
        return
    section, key = str(twice.path[0]), str(twice.path[1])
    written = _values(document.root, section, key)
    if len(written) != 2:
        return
    for other in SECTIONS:
        own = document.data.get(other)
        own = {} if other in document.data and own in ("", None) else own
        known = section_keys()[other]
        if other == section or not isinstance(own, dict) or key in own or key not in known:
            continue
        here, there = (section, key), (other, key)
        ways = [
            (stays, moves)
            for stays, moves in (written, written[::-1])
            if fits(here, stays) and fits(there, moves)
        ]
        if len(ways) != 1 or (other == "model" and "source" in own):
            continue
        value = ways[0][1]
        is_second = ways[0] == tuple(written)
        yield Misplaced(
            _finding(
                f"'{key}: {value}' is under '{section}', and '{other}' has no '{key}'",
                f"write it under '{other}'",
                here,
                (Remove(here, again=is_second), Add(there, str(value))),
                "SG101",
                twice.span if is_second else None,
            ),
            frozenset({here, there} | ({(other,)} if not own else set())),
        )


def _beside_another(document: Document, fits: Fits) -> Iterator[Misplaced]:
    """A key beside one that excludes it, while another section requires it."""
    for section in SECTIONS:
        own = document.data.get(section)
        rules = entry_keys(section)
        if not isinstance(own, dict):
            continue
        excluding = [other for other in own if rules.get(other, {}).get("excludes")]
        for key in own:
            rivals = [other for other in excluding if rules[other]["excludes"] == key]
            for other in SECTIONS if rivals else ():
                lacking = document.data.get(other)
                needed = entry_keys(other).get(key, {}).get("required")
                if not needed or not isinstance(lacking, dict) or key in lacking:
                    continue
                here, there = (section, key), (other, key)
                if fits(there, own[key]):
                    yield Misplaced(
                        _finding(
                            f"'{key}: {own[key]}' is under '{section}', "
                            f"and '{other}' has no '{key}'",
                            f"write it under '{other}'",
                            here,
                            (Remove(here), Add(there, str(own[key]))),
                            "SG101",
                            None,
                        ),
                        frozenset({here, there, *((section, rival) for rival in rivals)}),
                    )


def _values(root: Any, section: str, key: str) -> list[Any]:
    """The values of a key that a section has twice."""
    found = [value for name, value in root.value if name.value == section]
    pairs = found[0].value if found and isinstance(found[0], yaml.MappingNode) else ()
    nodes = [value for name, value in pairs if name.value == key]
    return [Plain(n.value) for n in nodes if isinstance(n, yaml.ScalarNode)][:2]


def _entries_without_dash(document: Document, twice: list[Finding]) -> Iterator[Misplaced]:
    """A list entry that has all keys of the next entry too: the dash between them is missing."""
    lines = document.text.split("\n")
    entries = dict.fromkeys(f.path[:2] for f in twice if len(f.path) == 3)
    for entry in entries:
        own = [f for f in twice if f.path[:2] == entry]
        first = min((f.span for f in own if f.span), default=None)
        data = document.data.get(entry[0])
        if first is None or not isinstance(data, list) or not isinstance(entry[1], int):
            continue
        begins, key = next(iter(data[entry[1]])), lines[first.line][first.column : first.end_column]
        before = lines[first.line][: first.column]
        if key != begins or before.strip() or len(before) < 2 or _is_line_twice(lines, first):
            continue
        place = Span(first.line, first.column - 2, first.line, first.column)
        yield Misplaced(
            _finding(
                f"an entry of '{entry[0]}' without its '-'",
                f"write '- {key}: ...'",
                (*entry, key),
                (Rewrite(place, "- "),),
                "SG003",
                first,
            ),
            frozenset({entry}),
        )


def _dash_without_blank(document: Document) -> Iterator[Misplaced]:
    """The only entry of a list, or one at the margin, whose dash became part of its first key."""
    for section in SECTIONS:
        own = document.data.get(section)
        first = str(next(iter(own), "")) if isinstance(own, dict) else ""
        paths: list[KeyPath] = [(section, first)] if first.startswith("-") else []
        if isinstance(own, list):
            paths += [(key,) for key in document.data if str(key).startswith("-")]
        for path in paths:
            key = str(path[-1])[1:]
            span = document.locate(path, at_key=True)
            if site_schema()[section]["type"] == "list" and key in entry_keys(section) and span:
                behind = Span(span.line, span.column + 1, span.line, span.column + 1)
                yield Misplaced(
                    _finding(
                        "a '-' without a space after it",
                        f"write '- {key}: ...'",
                        (section,),
                        (Rewrite(behind, " "),),
                        "SG101",
                        span,
                    ),
                    frozenset({(section,), path}),
                )


def _is_line_twice(lines: list[str], span: Span) -> bool:
    """Whether the same line appears above, so that it was copied by mistake."""
    text = lines[span.line].strip()
    # The first line of a block is the same in every entry.
    return not text.endswith(":") and any(
        line.strip().removeprefix("- ") == text for line in lines[: span.line]
    )


def _outdented(document: Document, unknown: Iterable[KeyPath]) -> Iterator[Misplaced]:
    """Keys of an empty section, at the margin below it."""
    lines = document.text.split("\n")
    keys = list(document.data)
    for section in SECTIONS:
        if section not in document.data or document.data[section] not in ("", None):
            continue
        head = document.locate((section,), at_key=True)
        own = [path for path in unknown if _plain(path) in section_keys()[section]]
        places = [document.locate(path, at_key=True) for path in own]
        if head is None or not own or keys.index(own[0][0]) != keys.index(section) + 1:
            continue
        first = next(place for place in places if place)
        numbers = [
            n for place in places if place for n in range(place.line, _end(lines, place.line))
        ]
        yield Misplaced(
            _finding(
                *_words(section, str(own[0][0])),
                (section,),
                tuple(_indented(lines, n) for n in numbers),
                "SG101",
                first,
            ),
            frozenset({(section,), *own}),
        )


def _nested_sections(document: Document, unknown: Iterable[KeyPath]) -> Iterator[Misplaced]:
    """Sections that are indented under another one, or written into an entry of a list."""
    for path in unknown:
        section = str(path[-1])
        if section not in site_schema() or section in document.data:
            continue
        if not takes((section,), value_at(document.data, path)):
            continue
        edits = _dedented(document, path)
        yield Misplaced(
            reading_error(
                "SG101",
                f"'{section}' is under {place_name(path[:-1])}, not beside it",
                path,
                at_key=True,
                help=f"write '{section}:' at the margin, and its lines below it",
                proposals=(edits,) if edits else (),
            ),
            frozenset({(section,), path}),
        )


def _dedented(document: Document, path: KeyPath) -> Proposal:
    """A block moved to the margin, if nothing below it would change its place with it."""
    span = document.locate(path, at_key=True)
    if span is None or document.file(span).text != document.text:
        return ()
    lines = document.text.split("\n")
    column = span.column
    behind = range(span.line + 1, len(lines))
    end = next(
        (n for n in behind if is_content(lines[n]) and width(lines[n]) <= column), len(lines)
    )
    below = next((line for line in lines[end:] if is_content(line)), "")
    if lines[span.line][:column].strip() or (below and width(below)):
        return ()
    inside = [n for n in range(span.line, end) if lines[n][:column].isspace()]
    return tuple(Rewrite(Span(n, 0, n, column), "") for n in inside)


def _flags_elsewhere(document: Document) -> Iterator[Misplaced]:
    """Flags of the engine beside 'args', under 'env', or under the model."""
    groups = document.data.get(GROUPS)
    numbers = range(len(groups)) if isinstance(groups, list) else ()
    for around in ((), *((GROUPS, number) for number in numbers)):
        engine = value_at(document.data, (*around, "engine"))
        name, version = value_at(engine, ("name",)), value_at(engine, ("version",))
        if not isinstance(name, str) or name not in ENGINE_TRAITS or not isinstance(version, str):
            continue
        args = value_at(engine, ("args",))
        for place in (("engine",), ("engine", "env"), ("model",)):
            own = value_at(document.data, (*around, *place))
            for key in own if isinstance(own, dict) else ():
                flag = _flag(str(key), (*around, *place), name, version)
                if flag and (not isinstance(args, dict) or flag not in args):
                    there = (*around, "engine", "args", flag)
                    yield _flag_elsewhere((*around, *place, key), there, own[key])


def _flag(key: str, place: KeyPath, engine: str, version: str) -> str:
    """The flag that a key is, unless it is another name of a key."""
    name, here = key.lstrip("-"), keys_at(place)
    plain = name.replace("-", "_")
    if not name.islower() or plain in here or aliases.meant(name, here):
        return ""
    if misspelt(plain, all_nearest(plain, here)):
        return ""
    if aliases.elsewhere(name) or aliases.other_word(name) or section_of(name, place):
        return ""
    known = catalogs(engine, version)
    return name if known and known[0].find(name) else ""


def _flag_elsewhere(path: KeyPath, there: KeyPath, value: Any) -> Misplaced:
    rules = rules_at(there)
    proposals: tuple[Proposal, ...] = ()
    if is_valid(there, value):
        proposals = ((Remove(path), Add(there, as_typed(value, rules))),)
    flag = there[-1]
    return Misplaced(
        reading_error(
            "SG101",
            f"'{path[-1]}' is a flag of the engine, under {place_name(path[:-1])}",
            path,
            at_key=True,
            help=f"write '{flag}' under 'args' of 'engine'",
            proposals=proposals,
        ),
        frozenset({path}),
    )


def _words(section: str, key: str) -> tuple[str, str]:
    """The message, and what to write."""
    if key.startswith("-"):
        return "a '-' without a space after it", "write '- ' before every entry"
    return f"'{key}' is beside '{section}', not under it", "indent the line by 2 spaces"


def _plain(path: KeyPath) -> str:
    """The key, without a dash that has no space after it."""
    return str(path[0]).removeprefix("-")


def _indented(lines: list[str], number: int) -> Rewrite:
    """A line indented under its section: by two spaces, or after its dash by one."""
    is_entry = re.match(r"-\S", lines[number]) is not None
    return Rewrite(Span(number, int(is_entry), number, int(is_entry)), " " if is_entry else "  ")


def _end(lines: list[str], first: int) -> int:
    """The line after a key at the margin and its content."""
    below = range(first + 1, len(lines))
    return next((n for n in below if lines[n][:1].strip()), first + 1)
