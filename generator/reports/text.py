"""Findings as text, with the lines of the document that they are about."""

import unicodedata
from collections.abc import Iterable, Iterator

from generator.diagnostics import Finding, KeyPath, Severity, Span, path_text, visible, weight
from generator.sitefile import redaction
from generator.sitefile.source import Document

_COLORS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}
# Limits for a terminal: on a file that is wrong throughout, and on endless lines or values.
_MOST_FINDINGS = 1000
_MOST_CHARACTERS = 400
_BEFORE, _SHOWN = 60, 160


def in_order(document: Document, findings: Iterable[Finding]) -> list[Finding]:
    """The findings in reading order: by line, column and rule."""
    return sorted(findings, key=lambda f: (place(document, f), f.rule, f.message))


def text(
    document: Document, findings: Iterable[Finding], color: bool = False, strict: bool = False
) -> str:
    """Every finding with its snippet and caret, then a line that counts them.

    If `strict` makes warnings stop the command and there are no errors, the line says so.
    """
    ordered = in_order(document, findings)
    if not ordered:
        return ""
    texts = _Texts(document)
    shown = ordered[:_MOST_FINDINGS]
    blocks = ["\n".join(_finding(document, texts, f, color)) for f in shown]
    if len(shown) < len(ordered):
        blocks.append(f"... and {len(ordered) - len(shown)} more")
    severities = {finding.severity for finding in ordered}
    stopped = strict and Severity.WARNING in severities and Severity.ERROR not in severities
    why = "; with --strict a warning is an error" if stopped else ""
    return "\n\n".join([*blocks, f"{count(ordered)} in {plain(document.name)}{why}"]) + "\n"


def count(findings: Iterable[Finding]) -> str:
    """`2 errors, 1 warning`."""
    return ", ".join(
        f"{total} {severity}{'s' if total > 1 else ''}"
        for severity, total in zip(Severity, weight(findings), strict=True)
        if total
    )


def difference(before: Document, after: Document) -> str:
    """A unified diff of two texts of a site file, with its secrets hidden."""
    from difflib import unified_diff

    changed = {part.name: part for part in after.files}
    shown: list[str] = []
    for part in before.files:
        sides = (part, changed.get(part.name, part))
        old, new = (redaction.shown(side).splitlines(keepends=True) for side in sides)
        name = plain(part.name)
        shown += map(_ended, unified_diff(old, new, name, name))
    return "".join(shown)


def _ended(line: str) -> str:
    """A line of a diff in the form that `patch` reads."""
    text = "\t".join(map(visible, line.removesuffix("\n").split("\t")))
    return f"{text}\n" if line.endswith("\n") else f"{text}\n\\ No newline at end of file\n"


def place(document: Document, finding: Finding) -> Span:
    """The place of a finding: its own span, or the key or value at its path."""
    span = finding.span or document.locate(finding.path, finding.at_key)
    return span or Span(0, 0, 0, 0)


class _Texts:
    """The lines of a site file and of its base, with their secrets hidden."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._lines: dict[str, list[str]] = {}

    def of(self, span: Span) -> list[str]:
        if span.file not in self._lines:
            self._lines[span.file] = redaction.shown(self._document.file(span)).split("\n")
        return self._lines[span.file]


def _finding(document: Document, texts: _Texts, finding: Finding, color: bool) -> Iterator[str]:
    span = place(document, finding)
    yield heading(finding.severity, finding.rule, finding.message, color)
    lines = texts.of(span)
    yield f" --> {plain(span.file or document.name)}:{_point(span)}{_path(finding.path)}"
    gutter = " " * len(str(span.line + 1))
    # What is missing from the site as a whole has no line to show.
    if (finding.path or finding.span) and span.line < len(lines) and lines[span.line].strip():
        yield from snippet(lines[span.line], span)
    notes: dict[str, list[str]] = {}
    for related in finding.related:
        other = document.locate(related.path) or Span(0, 0, 0, 0)
        file = "" if other.file == span.file else f"{plain(document.file(other).name)}:"
        where = f"{file}{_point(other)}{_path(related.path)}"
        notes.setdefault(plain(related.text), []).append(where)
    for text, places in notes.items():
        more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
        yield f"{gutter} = note: {text} at {', '.join(places[:_MOST_PLACES])}{more}"
    yield f"{gutter} = help: {advice(finding.rule, finding.help)}"


_MOST_PLACES = 4


def heading(severity: Severity, rule: str, message: str, color: bool) -> str:
    """The first line of a finding."""
    title = f"{severity}[{rule}]"
    if color:
        title = f"\x1b[1;{_COLORS[severity]}m{title}\x1b[0m"
    return f"{title}: {plain(message)}"


def advice(rule: str, help_text: str) -> str:
    """What to write, and where to read more."""
    more = f"run 'sparkgen explain {rule}'"
    if not help_text:
        return more
    return f"{plain(help_text)}{' ' if help_text.endswith('?') else '; '}{more}"


def _point(span: Span) -> str:
    return f"{span.line + 1}:{span.column + 1}"


def _path(path: KeyPath) -> str:
    return f" ({plain(path_text(path))})" if path else ""


def plain(text: str) -> str:
    """Any text, made safe and short enough for a terminal."""
    return visible(text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "...")


def snippet(line: str, span: Span) -> Iterator[str]:
    """The line that a finding is about with its number, and carets below."""
    number = str(span.line + 1)
    source, carets = _marked(line, span)
    yield f"{' ' * len(number)} |"
    yield f"{number} | {source}"
    yield f"{' ' * len(number)} | {carets}"


def _marked(line: str, span: Span) -> tuple[str, str]:
    """The source line, or the part around the span, and carets exactly under the span."""
    line = line.rstrip()
    end = span.end_column if span.end_line == span.line else len(line)
    first = max(0, span.column - _BEFORE) if len(line) > _SHOWN else 0
    last = first + _SHOWN
    head, tail = "..." if first else "", "..." if len(line) > last else ""
    before = visible(head + line[first : span.column])
    marked = visible(line[span.column : min(end, last)])
    rest = visible(line[max(end, span.column) : last] + tail)
    return before + marked + rest, " " * _width(before) + "^" * max(1, _width(marked))


def _width(text: str) -> int:
    """The number of columns that a visible text takes in a terminal."""
    return sum(
        2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
        if not unicodedata.combining(character)
    )
