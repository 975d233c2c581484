"""The proposals of findings as text edits, for programs that apply them themselves."""

from collections.abc import Iterable, Iterator

from generator.diagnostics import Finding, Proposal, Rewrite, Span
from generator.fixing.keeping import correction
from generator.fixing.layout import UnsettledError
from generator.fixing.splicing import DocumentSplicer
from generator.sitefile.source import Document

TextEdits = tuple[Rewrite, ...]


def corrections(document: Document, findings: Iterable[Finding]) -> Iterator[TextEdits]:
    """The text edits that `fix` would make for each finding; none if it would make none."""
    splicer = DocumentSplicer(document)
    for finding in findings:
        found = correction(document, finding)
        yield text_edits(splicer, found) if found else ()


def text_edits(splicer: DocumentSplicer, proposal: Proposal) -> TextEdits:
    """A proposal as text edits; none if one of its edits can't be made."""
    try:
        splices = splicer.splices(proposal)
    except UnsettledError:
        return ()
    return tuple(Rewrite(Span(*one.start, *one.end, one.file), one.text) for one in splices)
