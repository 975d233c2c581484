"""Find the one slip that makes a text invalid YAML, and the edit that fixes it.

libyaml reports where it gave up, which is often below the slip. Everything that may be wrong near
there is tried, and each resulting text is rated by the schema: the one with the fewest remaining
faults was meant. If two such texts mean different things, a person has to choose.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from generator.diagnostics import Finding
from generator.records import record, replace
from generator.sitefile import source
from generator.sitefile.mistakes.faults import SchemaFaults
from generator.sitefile.mistakes.slips import Slip, content_above, edited, width
from generator.sitefile.source import Document

# Each candidate is parsed and checked against the schema, which takes longer for larger files.
_MOST_LINES = 8000


@record
class _Mended:
    """A slip, and the result of its edit: how many faults remain, and the data."""

    slip: Slip
    faults: int
    data: Any


def corrected(document: Document) -> tuple[Finding, ...]:
    """The findings of a text that is not YAML, at the slip itself if one edit fixes it."""
    finding = document.findings[-1] if document.findings else None
    if finding is None or finding.rule not in _MENDED or finding.span is None:
        return document.findings
    # Which side of a conflict or which of two anchors is right is not a question of punctuation.
    if finding.unsafe:
        return document.findings
    if finding.span.file:
        # The base's own slip has been looked for already.
        return document.findings
    mended = list(_mended(document, finding.span.line))
    if not mended:
        return document.findings
    fewest = min(one.faults for one in mended)
    best = [one for one in mended if one.faults == fewest]
    others = [one for one in best[1:] if one.data != best[0].data and not one.slip.unsafe]
    return (
        *document.findings[:-1],
        _finding(finding, [best[0].slip, *(o.slip for o in others[:1])], document.text),
    )


_MENDED = ("SG001", "SG002")
# More faults than any readable text has.
_UNREADABLE = 1_000_000


def _finding(finding: Finding, slips: list[Slip], text: str) -> Finding:
    """The finding at the first slip, with all possible meanings."""
    first = slips[0]
    # The rest of a file that ends within a line may be missing.
    is_cut_off = not text.endswith("\n")
    return replace(
        finding,
        message=first.message or finding.message,
        span=first.span,
        help=", or ".join(dict.fromkeys(slip.help for slip in slips)),
        proposals=tuple(slip.edits for slip in slips),
        unsafe=is_cut_off or first.unsafe,
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
    """What may be wrong, the most likely first; `at` is the line at which libyaml gave up."""
    from generator.sitefile.mistakes.table import SLIPS

    for kind in SLIPS:
        for number in kind.reach(lines, at):
            yield from kind.find(lines, number)


def _checked(name: str, text: str, slip: Slip, at: int) -> _Mended | None:
    """How many faults remain once the slip is fixed; None if that was not the slip."""
    document = source.read(name, text.encode())
    if document.data is None:
        return _next_slip(document, slip, at)
    # Text can be valid YAML with the next keys swallowed by a value, which was not meant.
    if not isinstance(document.data, dict):
        return None
    if source.continued_lines(document.root) & {edit.span.line for edit in slip.edits}:
        return None
    faults = SchemaFaults(document)
    return _Mended(slip, len(faults.all) + len(document.findings), faults.typed)


def _next_slip(document: Document, slip: Slip, at: int) -> _Mended | None:
    """A text that now can be read further has another slip; the further, the better."""
    finding = document.findings[-1]
    added = sum(edit.text.count("\n") for edit in slip.edits)
    line = finding.span.line - added if finding.span else 0
    if finding.rule not in _MENDED or line <= at or _is_of_a_block(document, slip, line):
        return None
    return _Mended(slip, _UNREADABLE - line, None)


def _is_of_a_block(document: Document, slip: Slip, line: int) -> bool:
    """Whether the line below was beside the one that was moved: both are in the wrong place."""
    lines = document.text.split("\n")
    column = slip.edits[0].span.end_column
    return content_above(lines, line) == slip.span.line and 0 < column == width(lines[line])
