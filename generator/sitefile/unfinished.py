"""Values that are still to be written: `TODO` stands where nobody has said yet what they are."""

from collections.abc import Iterator
from typing import Any

from generator.diagnostics import Finding, KeyPath, reading_error
from generator.sitefile.source import Document

TODO = "TODO"


def unfinished(document: Document) -> list[Finding]:
    """A finding for each value that is still to be written."""
    may_have = any(TODO in part.text for part in document.files)
    return list(_findings(document.data, ())) if may_have else []


def _findings(value: Any, path: KeyPath) -> Iterator[Finding]:
    if isinstance(value, str) and value == TODO:
        name = ".".join(part for part in path if isinstance(part, str))
        advice = "write it; the comment above says why it is unknown"
        yield reading_error("SG880", f"the value of {name} is still missing", path, help=advice)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _findings(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _findings(item, (*path, number))


def others(findings: list[Finding], todo: list[Finding]) -> list[Finding]:
    """The findings about everything but what is still to be written."""
    paths = {finding.path for finding in todo}
    return [finding for finding in findings if finding.path not in paths]
