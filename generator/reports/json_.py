"""Findings as JSON, for scripts. The format is stable: keys are added, never renamed or removed.

The reference of the commands says what each key holds. Everything outside ASCII is escaped, so that
encodings and terminals don't matter.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from generator.diagnostics import Edit, Rewrite, Severity, Span, path_text
from generator.records import values
from generator.reports.remarks import Remark

VERSION = 1


def report(found: Sequence[Remark], rest: Mapping[str, Any] = MappingProxyType({})) -> str:
    """One object with every finding of every site, and their number.

    `rest` precedes them.
    """
    document = {
        "version": VERSION,
        **rest,
        "findings": [_finding(remark) for remark in found],
        "summary": _summary(found),
    }
    return json.dumps(document, indent=2) + "\n"


def _finding(remark: Remark) -> dict[str, Any]:
    return {
        "rule": remark.rule,
        "severity": str(remark.severity),
        "message": remark.message,
        "help": remark.help,
        "file": remark.place.file,
        "path": remark.place.path,
        **_start(remark.place.span),
        **_end(remark.place.span),
        "related": [
            {"text": text, "path": place.path, **_start(place.span)}
            for text, place in remark.related
        ],
        "fixes": [[_edit(edit) for edit in proposal] for proposal in remark.proposals],
    }


def _edit(edit: Edit) -> dict[str, Any]:
    """An edit: its name, its path or range of text, and its parameters."""
    name = type(edit).__name__.lower()
    if isinstance(edit, Rewrite):
        return {"edit": name, **_start(edit.span), **_end(edit.span), "text": edit.text}
    return {"edit": name, **values(edit), "path": path_text(edit.path)}


def _start(span: Span | None) -> dict[str, int | None]:
    if span is None:
        return {"line": None, "column": None}
    return {"line": span.line + 1, "column": span.column + 1}


def _end(span: Span | None) -> dict[str, int | None]:
    if span is None:
        return {"endLine": None, "endColumn": None}
    return {"endLine": span.end_line + 1, "endColumn": span.end_column + 1}


def _summary(found: Iterable[Remark]) -> dict[str, int]:
    totals = Counter(remark.severity for remark in found)
    return {f"{severity}s": totals[severity] for severity in Severity}
