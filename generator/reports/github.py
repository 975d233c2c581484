"""Findings as workflow commands of GitHub Actions, which turns them into annotations.

A command is one line; everything that would end it or one of its properties is escaped, as the
toolkit does in packages/core/src/command.ts.
"""

from collections.abc import Iterable

from generator.diagnostics import Severity, Span, visible
from generator.reports.remarks import Remark

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_TEXT = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_TEXT = str.maketrans(_TEXT)
_IN_PROPERTY = str.maketrans({**_TEXT, ":": "%3A", ",": "%2C"})


def report(found: Iterable[Remark]) -> str:
    """One line for each finding."""
    return "".join(f"{_command(remark)}\n" for remark in found)


def _command(remark: Remark) -> str:
    properties = {
        "file": visible(remark.place.file),
        **_place(remark.place.span),
        "title": remark.rule,
    }
    pairs = ",".join(f"{key}={value.translate(_IN_PROPERTY)}" for key, value in properties.items())
    text = "\n".join(visible(line) for line in (remark.message, remark.help) if line)
    return f"::{_LEVELS[remark.severity]} {pairs}::{text.translate(_IN_TEXT)}"


def _place(span: Span | None) -> dict[str, str]:
    """Lines and columns from one; the runner rejects columns for a place of several lines."""
    if span is None:
        return {}
    lines = {"line": span.line + 1, "endLine": span.end_line + 1}
    columns = {"col": span.column + 1, "endColumn": span.end_column + 1}
    place = lines if span.line != span.end_line else {**lines, **columns}
    return {key: str(number) for key, number in place.items()}
