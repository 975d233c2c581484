"""Find the one slip that keeps a text from being YAML, and the edit that mends it.

libyaml says where it gave up, which is often below the slip. Everything that may be wrong there is
tried, and rated by what the schema says of the text that comes out: what leaves least to say was
meant. Where two such texts mean different things, a person has to choose.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from generator.diagnostics import Finding
from generator.records import record, replace
from generator.sitefile import indentation, punctuation, schema, source
from generator.sitefile.slips import Slip, edited
from generator.sitefile.source import Document

# Each is read and held against the schema, which takes the longer the larger the file is.
_MOST_LINES = 8000


@record
class _Mended:
    """A slip, and what its edit leaves: how much there is to say, and the data."""

    slip: Slip
    faults: int
    data: Any


def corrected(document: Document) -> tuple[Finding, ...]:
    """The findings of a text that is no YAML, at the slip itself where one edit mends it."""
    finding = document.findings[-1] if document.findings else None
    if finding is None or finding.rule not in _MENDED or finding.span is None:
        return document.findings
    # Which side of a conflict, or which of two anchors is right is no question of punctuation.
    if source.conflict(document.text) or finding.message == source.TWO_ANCHORS:
        return document.findings
    if finding.span.file:
        # It was looked for in the base already.
        return document.findings
    mended = list(_mended(document, finding.span.line))
    if not mended:
        return document.findings
    fewest = min(one.faults for one in mended)
    best = [one for one in mended if one.faults == fewest]
    others = [one for one in best[1:] if one.data != best[0].data]
    return (*document.findings[:-1], _told(finding, [best[0].slip, *(o.slip for o in others[:1])]))


_MENDED = ("SG001", "SG002")


def _told(finding: Finding, slips: list[Slip]) -> Finding:
    """The finding at the first slip, with the readings that there are."""
    first = slips[0]
    return replace(
        finding,
        message=first.message or finding.message,
        span=first.span,
        help=", or ".join(dict.fromkeys(slip.help for slip in slips)),
        proposals=tuple(slip.edits for slip in slips),
    )


def _mended(document: Document, at: int) -> Iterator[_Mended]:
    lines = document.text.split("\n")
    at = min(at, len(lines) - 1)
    seen: set[str] = set()
    for slip in islice(_slips(lines, at), max(8, _MOST_LINES // len(lines))):
        text = edited(lines, slip.edits)
        if text in seen:
            continue
        seen.add(text)
        if (one := _checked(document.name, text, slip, at)) is not None:
            yield one


def _slips(lines: list[str], at: int) -> Iterator[Slip]:
    """What may be wrong, the likeliest first; `at` is where libyaml gave up."""
    return chain(punctuation.slips(lines, at), indentation.slips(lines, at))


def _checked(name: str, text: str, slip: Slip, at: int) -> _Mended | None:
    """How much is left to say once the slip is mended; None where that was not it."""
    document = source.read(name, text.encode())
    if document.data is None:
        return _next_slip(document, slip, at)
    # A key that takes up the next ones is readable, and not what was meant.
    if not isinstance(document.data, dict):
        return None
    data, findings = schema.check(document)
    return _Mended(slip, len(findings), data)


# More than any readable text has.
_UNREADABLE = 1_000_000


def _next_slip(document: Document, slip: Slip, at: int) -> _Mended | None:
    """A text that can be read further than before has another slip: the further, the better."""
    finding = document.findings[-1]
    added = sum(edit.text.count("\n") for edit in slip.edits)
    line = finding.span.line - added if finding.span else 0
    if finding.rule not in _MENDED or line <= at:
        return None
    return _Mended(slip, _UNREADABLE - line, None)
