"""Values that would be right except for one slip: a comment sign, a quote, a look-alike.

Each possible slip is undone, and counts if the schema accepts the result.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from generator.diagnostics import (
    Finding,
    KeyPath,
    Proposal,
    Related,
    Replace,
    Rewrite,
    Severity,
    Span,
    Stage,
    all_nearest,
)
from generator.records import record, replace
from generator.sitefile.key_rules import rules_at
from generator.sitefile.mistakes.slips import is_content, width
from generator.sitefile.source import Document, Plain, value_at
from generator.sitefile.typed_values import as_typed

# Whether the schema accepts a text at a path.
Fits = Callable[[KeyPath, Any], bool]

_VALUE_RULES = ("SG103", "SG104", "SG105", "SG106", "SG107")
# Letters that look like digits and are typed in place of them.
_FIGURES = str.maketrans({"O": "0", "o": "0", "l": "1", "I": "1"})
_SWAPPED_AMONG = 6


@record
class _Slip:
    """What the text was meant to be, what to do, and the part of it that is replaced.

    A guess is left to a person.
    """

    meant: str
    help: str
    start: int
    end: int
    text: str
    is_guess: bool = False


def near_misses(
    document: Document, findings: Iterable[Finding], data: Mapping[str, Any], fits: Fits
) -> list[Finding]:
    """The findings, naming the one slip that keeps a value from being valid."""
    found = list(findings)
    found = _cut_by_comma(document, found, data, fits)
    found = _entries_run_together(document, found, data, fits)
    found = _swapped(found, data, fits)
    found = [_entry_without_dash(document, finding, data, fits) for finding in found]
    found = [_behind_a_sign(document, finding, fits) for finding in found]
    return [_with_slip(document, finding, data, fits) for finding in found]


def _behind_a_sign(document: Document, finding: Finding, fits: Fits) -> Finding:
    """An empty key beside a comment: the comment is its value, or must be kept with the key."""
    span = document.locate(finding.path, at_key=True) if finding.rule == "SG108" else None
    line = _line(document, span) if span else ""
    hidden = re.match(r": *(#+ *)(\S.*)", line[span.end_column :]) if span else None
    if span is None or hidden is None:
        return finding
    value = hidden[2].split(" #")[0].strip()
    if not fits(finding.path, Plain(value)):
        return replace(finding, proposals=())
    start = span.end_column + hidden.start(1)
    sign = replace(span, column=start, end_column=span.end_column + hidden.end(1))
    return replace(
        finding,
        message=f"the value of '{finding.path[-1]}' is a comment",
        help=f"write '{finding.path[-1]}: {value}', or remove the line",
        proposals=((Rewrite(sign, ""),),),
        # The value may have been commented out on purpose.
        unsafe=True,
    )


def _entry_without_dash(
    document: Document, finding: Finding, data: Mapping[str, Any], fits: Fits
) -> Finding:
    """A mapping in place of a list: its only entry has lost its dash."""
    value = value_at(data, finding.path)
    is_mapping = finding.rule == "SG103" and isinstance(value, dict) and bool(value)
    if not is_mapping or not fits(finding.path, [value]):
        return finding
    key = next(iter(value))
    span = document.locate((*finding.path, key), at_key=True)
    if span is None or span.column < _DASH or not _is_first(document, span):
        return finding
    place = replace(span, column=span.column - _DASH, end_line=span.line, end_column=span.column)
    return replace(
        finding,
        message=f"the entry of '{finding.path[-1]}' has no '-'",
        span=span,
        help=f"write '- {key}: ...'",
        proposals=((Rewrite(place, "- "),),),
    )


_DASH = len("- ")


def _is_first(document: Document, span: Span) -> bool:
    return not _line(document, span)[: span.column].strip()


def _line(document: Document, span: Span) -> str:
    """The line in which a place begins."""
    return document.file(span).text.split("\n")[span.line]


def _is_of_value(finding: Finding) -> bool:
    return finding.rule in _VALUE_RULES and not finding.at_key and bool(finding.path)


def _with_slip(
    document: Document, finding: Finding, data: Mapping[str, Any], fits: Fits
) -> Finding:
    value = value_at(data, finding.path)
    if not _is_of_value(finding) or finding.proposals or not isinstance(value, str):
        return finding
    span = _own_span(document, finding.path, value)
    if span is None:
        return finding
    for slip in _slips(value):
        if fits(finding.path, Plain(slip.meant)):
            first, last = span.column + slip.start, span.column + slip.end
            place = replace(span, column=first, end_column=last)
            edits: Proposal = (Rewrite(place, slip.text),)
            return replace(finding, help=slip.help, proposals=() if slip.is_guess else (edits,))
    return finding


def _own_span(document: Document, path: KeyPath, value: str) -> Span | None:
    """The place of a text that is unquoted, on one line, and not shared by an alias."""
    span = document.locate(path)
    if span is None or span.line != span.end_line:
        return None
    written = _line(document, span)[span.column : span.end_column]
    return span if written == value else None


def _slips(value: str) -> Iterator[_Slip]:
    if found := re.search(r"(?<!\s)\s*+(#|//)(?=\s).*$", value):
        meant = value[: found.start()]
        yield _Slip(
            meant,
            f"write '{meant}  # ...': a comment begins with a space and '#'",
            found.start(),
            found.end(1),
            "  #",
        )
    for mark in "'\"":
        if value.count(mark) == 1 and value.endswith(mark):
            at = len(value) - 1
            yield _Slip(value[:-1], f"write it without the {mark} at its end", at, len(value), "")
    figures = value.translate(_FIGURES)
    if figures != value and re.fullmatch(r"[0-9.,/:]+", figures):
        letter = next(a for a, b in zip(value, figures, strict=True) if a != b)
        text = f"write {figures}: the '{letter}' is a letter"
        # In 10.0.0.1l the l may stand for a 1 or for any other mistyped digit.
        yield _Slip(figures, text, 0, len(value), figures, is_guess="/" in figures)
    if re.fullmatch(r"[0-9][\w.,/+-]*", value) and "," in value:
        dotted = value.replace(",", ".")
        yield _Slip(dotted, f"write {dotted}, with a '.'", 0, len(value), dotted)
    near = all_nearest(value.lower(), ("true", "false"))
    if len(near) == 1 and sorted(near[0]) == sorted(value.lower()):
        yield _Slip(near[0], f"write {near[0]}", 0, len(value), near[0])


def _cut_by_comma(
    document: Document, findings: list[Finding], data: Mapping[str, Any], fits: Fits
) -> list[Finding]:
    """In braces a comma ends a value: `0,33.0` is 0, and a key 33.0 without a value."""
    by_path: dict[KeyPath, Finding] = {}
    for unknown in findings:
        path = unknown.path
        if unknown.rule != "SG101" or value_at(data, path) not in ("", None):
            continue
        section = value_at(data, path[:-1])
        keys = list(section) if isinstance(section, dict) else []
        before = keys[keys.index(path[-1]) - 1] if path[-1] in keys[1:] else ""
        first = (*path[:-1], before)
        start, end = document.locate(first), document.locate(path, at_key=True)
        if not start or not end or (start.file, start.line) != (end.file, end.line):
            continue
        signs = (".", "") if re.fullmatch("[0-9]{3}", str(path[-1])) else (".",)
        ways = [(f"{value_at(data, first)}{sign}{path[-1]}", sign) for sign in signs]
        meant, sign = next((way for way in ways if fits(first, Plain(way[0]))), ("", ""))
        if not meant:
            continue
        between = _line(document, start)[start.end_column : end.column]
        if between.strip() == ",":
            comma = replace(start, column=start.end_column, end_column=end.column)
            by_path[path] = by_path[first] = Finding(
                "SG106",
                unknown.severity,
                f"'{before}: {value_at(data, first)}' is cut at the ',' after it",
                first,
                help=f"write '{before}: {meant}'",
                proposals=((Rewrite(comma, sign),),),
                stage=unknown.stage,
            )
    rest = [finding for finding in findings if finding.path not in by_path]
    return [*dict.fromkeys(by_path.values()), *rest] if by_path else findings


def _entries_run_together(
    document: Document, findings: list[Finding], data: Mapping[str, Any], fits: Fits
) -> list[Finding]:
    """A list in which one entry is really two: the comma or the second one's dash is missing."""
    made: dict[KeyPath, Finding] = {}
    for finding in findings:
        path = finding.path[:-1] if finding.rule == "SG106" else finding.path
        entries = value_at(data, path)
        if finding.rule not in ("SG106", "SG107") or path in made or not isinstance(entries, list):
            continue
        at = next((i for i, v in enumerate(entries) if isinstance(v, str) and " " in v), None)
        if at is None:
            continue
        words = [word.strip("'\"") for word in entries[at].split()]
        if len(words) == 2 and fits(path, [*entries[:at], *words, *entries[at + 1 :]]):
            place = (*path, at)
            parted = _comma(document, place, entries[at]) or _dash(document, place, words[1])
            if parted:
                made[path] = replace(parted, rule=finding.rule, severity=finding.severity)
    rest = [f for f in findings if not any(f.path[: len(path)] == path for path in made)]
    return [*made.values(), *rest] if made else findings


def _comma(document: Document, path: KeyPath, value: str) -> Finding | None:
    """Two words on one line with a space between them, where a comma was meant too."""
    span = _own_span(document, path, value)
    if span is None:
        return None
    one, other = (word.strip("'\"") for word in value.split())
    column = span.column + value.index(" ")
    between = replace(span, column=column, end_column=column)
    return _parted(
        path,
        f"a ',' is missing between '{one}' and '{other}'",
        f"write '{one}, {other}'",
        Rewrite(between, ","),
    )


def _dash(document: Document, path: KeyPath, word: str) -> Finding | None:
    """Two words on two lines, the second of which should have been an entry of its own."""
    span = document.locate(path)
    lines = document.file(span).text.split("\n") if span else []
    if span is None or lines[span.line][: span.column].strip() != "-":
        return None
    below = range(span.line + 1, len(lines))
    number = next((n for n in below if is_content(lines[n])), span.line)
    own = width(lines[number])
    if number == span.line or not lines[number][own:].startswith(word):
        return None
    behind = replace(span, line=number, column=own, end_line=number, end_column=own + len(word))
    before = replace(behind, column=0, end_column=own)
    dash = Rewrite(before, f"{lines[span.line][: width(lines[span.line])]}- ")
    message = f"an entry of '{path[-2]}' without its '-'"
    return replace(_parted(path, message, f"write '- {word}'", dash), span=behind)


def _parted(path: KeyPath, message: str, help_text: str, edit: Rewrite) -> Finding:
    return Finding(
        "", Severity.ERROR, message, path, help=help_text, proposals=((edit,),), stage=Stage.READING
    )


def _swapped(findings: list[Finding], data: Mapping[str, Any], fits: Fits) -> list[Finding]:
    """Two values of one section or entry, each of which would be valid in place of the other."""
    wrong: dict[KeyPath, list[Finding]] = {}
    for finding in findings:
        if _is_of_value(finding) and isinstance(value_at(data, finding.path), str):
            wrong.setdefault(_entry(finding.path), []).append(finding)
    for of_one_entry in wrong.values():
        # If more is wrong than a slip or two, no swapped pair is the cause, and trying all pairs
        # takes quadratic time.
        if len(of_one_entry) > _SWAPPED_AMONG:
            continue
        for one, other in combinations(sorted(of_one_entry, key=lambda f: len(f.path)), 2):
            first, second = (value_at(data, f.path) for f in (one, other))
            if one.path != other.path and fits(one.path, second) and fits(other.path, first):
                key, its = one.path[-1], other.path[-1]
                made = replace(
                    one,
                    message=f"'{key}' and '{its}' have each other's value",
                    help=f"write '{key}: {second}' and '{its}: {first}'",
                    related=(Related("the other one", other.path),),
                    proposals=((_written(one.path, second), _written(other.path, first)),),
                )
                return [made, *(f for f in findings if f not in (one, other))]
    return findings


def _written(path: KeyPath, value: Any) -> Replace:
    return Replace(path, as_typed(value, rules_at(path)))


def _entry(path: KeyPath) -> KeyPath:
    """The entry of a list around a value, or its section."""
    ends = (end for end in range(len(path) - 1, 0, -1) if isinstance(path[end - 1], int))
    return path[: next(ends, 1)]
