"""Applies the proposals of findings to the text of a site file, in rounds, until none are left.

A change counts only if reading the file again shows that it had the intended effect.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from generator.diagnostics import Add, Finding, KeyPath, Proposal, Replace, Rewrite, Stage, weight
from generator.fixing.keeping import correction, kept
from generator.fixing.layout import UnsettledError
from generator.fixing.splicing import DocumentSplicer, Splice
from generator.pipeline import Reading, read_site
from generator.records import record
from generator.sitefile import source
from generator.sitefile.beside import ReadBeside, Source, SourceFile, nothing_beside
from generator.sitefile.extending import base_name

MAX_ROUNDS = 20
MAX_READINGS = 100

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@record
class Repair:
    """A site file before and after; `fixed` are the findings settled on the way.

    `requested` are findings that a person has to decide, since there is a choice, or since what was
    written would be lost; `stuck` those whose proposals could not be applied, did not help, or
    would undo an earlier change: both remain.
    """

    before: Reading
    after: Reading
    fixed: tuple[Finding, ...]
    requested: tuple[Finding, ...]
    stuck: tuple[Finding, ...]

    @property
    def raw(self) -> bytes:
        """The repaired site file."""
        return self.after.raw[""]

    @property
    def fewer(self) -> bool:
        """Whether fewer or less severe findings remain: an error may become a note."""
        return weight(self.after.findings) < weight(self.before.findings)


@record
class _State:
    reading: Reading
    fixed: tuple[Finding, ...] = ()


def repair(name: str, raw: bytes, beside: ReadBeside = nothing_beside) -> Repair:
    """Apply all applicable proposals; the result is the last text that improves on the first."""
    first = state = best = _State(read_site(name, raw, beside))
    search = _Search(name, beside, first.reading)
    for _ in range(MAX_ROUNDS):
        following = search.step(state)
        if following is None:
            break
        state = following
        if weight(state.reading.findings) < weight(first.reading.findings):
            best = state
    # If no text is better, the last one may show what was hidden before.
    result = state if best is first and _hiding(state.fixed) else best
    found, document = result.reading.findings, result.reading.document
    return Repair(
        first.reading,
        result.reading,
        result.fixed,
        requested=tuple(f for f in found if f.proposals and not correction(document, f)),
        stuck=tuple(f for f in found if correction(document, f)),
    )


class _Search:
    """Moves from one text to a better one, and never back."""

    def __init__(self, name: str, beside: ReadBeside, first: Reading) -> None:
        self._name = name
        self._first = first
        self._beside = beside
        self._readings = 0
        self._seen: set[tuple[bytes, ...]] = set()

    def step(self, state: _State) -> _State | None:
        """The text with everything fixed at once that can be, or else a single finding; or None."""
        self._seen.add(tuple(state.reading.raw.values()))
        candidates = [
            f
            for f in state.reading.findings
            if (own := correction(state.reading.document, f)) and not _takes_back(own, state.fixed)
        ]
        splicer = DocumentSplicer(state.reading.document) if candidates else None
        spliced = list(_spliced(splicer, candidates)) if splicer else []
        together = list(_apart(spliced))
        attempts = [together] if len(together) > 1 else []
        attempts += [[one] for one in spliced]
        tried = (self._tried(state, one) for one in attempts if self._readings < MAX_READINGS)
        return next(filter(None, tried), None)

    def _tried(
        self, state: _State, attempt: Sequence[tuple[Finding, list[Splice]]]
    ) -> _State | None:
        splices = [splice for _, own in attempt for splice in own]
        raw = {
            file: spliced(old, [splice for splice in splices if splice.file == file])
            for file, old in state.reading.raw.items()
        }
        texts = tuple(raw.values())
        if texts in self._seen:
            return None
        # The longer a file and the more there is to tell about it, the longer a reading takes.
        self._readings += 1 + len(raw[""]) // 10_000 + len(state.reading.findings) // 25
        self._seen.add(texts)
        reading = read_site(self._name, raw[""], _changed(self._beside, self._name, raw))
        fixed = [finding for finding, _ in attempt]
        if not _helped(state.reading, reading, fixed):
            return None
        # Changes in turn may lose what neither of them does.
        if not _all_kept(state.reading, reading) or not _all_kept(self._first, reading):
            return None
        return _State(reading, (*state.fixed, *fixed))


def _changed(beside: ReadBeside, name: str, raw: Mapping[str, bytes]) -> ReadBeside:
    """A reader of the files beside a site file, with the base as it is now."""

    def read(path: str) -> Source:
        base = raw.get(base_name(name, path))
        return beside(path) if base is None else Source((SourceFile("", base, False),))

    return read if len(raw) > 1 else beside


def _takes_back(proposal: Proposal, fixed: Iterable[Finding]) -> bool:
    """Whether it changes a value written on the way, undoing what another finding requires."""
    written = [
        edit.path
        for finding in fixed
        for edit in finding.proposals[0]
        if isinstance(edit, Replace | Add)
    ]
    return any(
        _within(edit.path, path)
        for edit in proposal
        if not isinstance(edit, Rewrite)
        for path in written
    )


def _within(one: KeyPath, other: KeyPath) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _spliced(
    splicer: DocumentSplicer, findings: Iterable[Finding]
) -> Iterator[tuple[Finding, list[Splice]]]:
    for finding in findings:
        try:
            yield finding, splicer.splices(finding.proposals[0])
        except UnsettledError:
            continue


def _apart(
    spliced: Iterable[tuple[Finding, list[Splice]]],
) -> Iterator[tuple[Finding, list[Splice]]]:
    """Those findings whose splices don't interfere with earlier ones."""
    taken: list[Splice] = []
    for finding, splices in spliced:
        if not any(new.touches(old) for new in splices for old in taken):
            taken += splices
            yield finding, splices


def _helped(before: Reading, after: Reading, fixed: Sequence[Finding]) -> bool:
    """Whether the findings are gone and, unless they hid others, nothing worse replaced them."""
    if after.document.data is None:
        return before.document.data is None and _end_of_reading(after) > _end_of_reading(before)
    was, now = _counted(before), _counted(after)
    wanted = Counter((finding.rule, finding.message) for finding in fixed)
    gone = all(now[key] <= was[key] - count for key, count in wanted.items())
    return gone and (_hiding(fixed) or weight(after.findings) <= weight(before.findings))


def _all_kept(before: Reading, after: Reading) -> bool:
    return all(map(kept, before.document.files, after.document.files))


def _end_of_reading(reading: Reading) -> int:
    """The line at which a text stops being YAML."""
    unread = [part for part in reading.document.files if part.data is None]
    found = [source.read(part.name, part.text.encode()).findings[-1:] for part in unread]
    return sum(finding.span.line for last in found for finding in last if finding.span)


def _hiding(fixed: Iterable[Finding]) -> bool:
    """Whether the findings prevented the rules from checking the same sections."""
    return all(finding.stage is Stage.READING for finding in fixed)


def _counted(reading: Reading) -> Counter[tuple[str, str]]:
    return Counter((finding.rule, finding.message) for finding in reading.findings)


def spliced(raw: bytes, splices: Iterable[Splice]) -> bytes:
    """The bytes of a file after applying splices, whose places are in its text.

    Line endings and a byte order mark are kept; new lines end like the first one.
    """
    mark = _BYTE_ORDER_MARK if raw.startswith(_BYTE_ORDER_MARK) else b""
    text = raw.removeprefix(mark).decode()
    ends = list(re.finditer(r"\r\n?|\n", text))
    # The end of the text follows the last line, whether or not that has a line ending.
    starts = [0, *(end.end() for end in ends), len(text)]
    newline = ends[0][0] if ends else "\n"
    for splice in sorted(splices, reverse=True):
        start, end = (starts[line] + column for line, column in (splice.start, splice.end))
        text = text[:start] + splice.text.replace("\n", newline) + text[end:]
    return mark + text.encode()
