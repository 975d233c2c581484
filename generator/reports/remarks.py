"""Remarks for programs: findings with the places that their paths refer to."""

from collections.abc import Iterable

from generator.diagnostics import Finding, Proposal, Rewrite, Severity, Span, path_text
from generator.records import record
from generator.reports.text import in_order, place
from generator.sitefile.source import Document


@record
class Place:
    """A file as the user named it and, unless all of it is meant, a path and a range of text."""

    file: str
    path: str = ""
    span: Span | None = None

    @property
    def line(self) -> int | None:
        """The line, counted from one; None if the whole file is meant."""
        return self.span.line + 1 if self.span else None


@record
class Remark:
    """One finding about one file; `related` are other places, and how they relate to the first.

    `correction` are the text edits that `fix` would make, if they were requested, in the file
    `site` unless their places name another.
    """

    rule: str
    severity: Severity
    message: str
    help: str
    place: Place
    related: tuple[tuple[str, Place], ...] = ()
    proposals: tuple[Proposal, ...] = ()
    correction: tuple[Rewrite, ...] = ()
    site: str = ""


def remarks(document: Document, findings: Iterable[Finding]) -> list[Remark]:
    """The findings of a site file in the order of the text format, each with its places."""
    return [_remark(document, finding) for finding in in_order(document, findings)]


def _remark(document: Document, finding: Finding) -> Remark:
    related = (
        (other.text, _place(document, path_text(other.path), document.locate(other.path)))
        for other in finding.related
    )
    return Remark(
        finding.rule,
        finding.severity,
        finding.message,
        finding.help,
        _place(document, path_text(finding.path), place(document, finding)),
        tuple(related),
        finding.proposals,
        site=document.name,
    )


def _place(document: Document, path: str, span: Span | None) -> Place:
    return Place(span.file if span and span.file else document.name, path, span)
