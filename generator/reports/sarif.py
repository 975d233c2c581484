"""Findings as SARIF 2.1.0, for code scanning: one run with the results of all sites.

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. The one deviation from its
text: braces in a message are not doubled (3.11.5), since viewers show them doubled, and a help text
such as `write 'parallel: {pipeline: 2}'` would be wrong as shown.
"""

import json
import os
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from generator import __version__
from generator.diagnostics import Span
from generator.reports.explain import explain, explanations, page_of
from generator.reports.remarks import Place, Remark

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

# A URN for the help of each rule: the project has no address of its own, and the help text is
# included.
RULES = "urn:sparkgen:rules"


def report(found: Sequence[Remark], here: PurePath) -> str:
    """One log with one run; files below `here` are named relative to it."""
    rules = sorted({remark.rule for remark in found})
    run = {
        "tool": {
            "driver": {
                "name": "sparkgen",
                "version": __version__,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(remark, rules.index(remark.rule), here) for remark in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(number: str) -> dict[str, Any]:
    """A rule with its documentation, if it has any, and where the page of all rules has it."""
    known = explanations().get(number)
    if known is None:
        return {"id": number}
    return {
        "id": number,
        "shortDescription": {"text": known.title},
        "fullDescription": {"text": known.text or known.title},
        "helpUri": f"{RULES}:{number.lower()}",
        "help": {"text": explain(number), "markdown": page_of(known)},
        "defaultConfiguration": {"level": str(known.severity)},
    }


def _result(remark: Remark, index: int, here: PurePath) -> dict[str, Any]:
    result = {
        "ruleId": remark.rule,
        "ruleIndex": index,
        "level": str(remark.severity),
        "message": {"text": "\n".join(filter(None, (remark.message, remark.help)))},
        "locations": [_location(remark.place, here)],
    }
    if remark.related:
        result["relatedLocations"] = [
            {**_location(place, here), "message": {"text": text}} for text, place in remark.related
        ]
    if remark.correction:
        result["fixes"] = [_fix(remark, here)]
    return result


def _fix(remark: Remark, here: PurePath) -> dict[str, Any]:
    """The text edits that `sparkgen fix` would make."""
    by_file: dict[str, list[dict[str, Any]]] = {}
    for edit in sorted(remark.correction, key=lambda edit: edit.span):
        replaced = {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}}
        by_file.setdefault(edit.span.file or remark.site, []).append(replaced)
    return {
        "description": {"text": remark.help or remark.message},
        "artifactChanges": [
            {"artifactLocation": {"uri": _uri(file, here)}, "replacements": replacements}
            for file, replacements in by_file.items()
        ],
    }


def _location(place: Place, here: PurePath) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.file, here)}}
    if place.span:
        location["region"] = _region(place.span)
    return {"physicalLocation": location}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line + 1,
        "startColumn": span.column + 1,
        "endLine": span.end_line + 1,
        "endColumn": span.end_column + 1,
    }


def _uri(file: str, here: PurePath) -> str:
    """A path below the current directory as a relative reference, any other as a file URI."""
    path = PurePath(os.path.normpath(here / file))
    if path.is_relative_to(here):
        return quote(os.fsencode(path.relative_to(here).as_posix()))
    return path.as_uri()
