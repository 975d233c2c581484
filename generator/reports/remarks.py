"""What programs are told: a finding together with the places that its paths stand for."""

from collections.abc import Iterable
from dataclasses import dataclass

from generator.diagnostics import Finding, Proposal, Severity, Span, path_text
from generator.formats import in_order, place
from generator.source import Document


@dataclass(frozen=True, slots=True)
class Place:
    """A file as the user named it and, unless all of it is meant, a path and a stretch of text."""

    file: str
    path: str = ""
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """One finding about one file; `related` are other places, and what they have to do with it."""

    rule: str
    severity: Severity
    message: str
    help: str
    place: Place
    related: tuple[tuple[str, Place], ...] = ()
    proposals: tuple[Proposal, ...] = ()


def remarks(document: Document, findings: Iterable[Finding]) -> list[Remark]:
    """The findings of a site file in the order of the text form, each with its places."""
    return [_remark(document, finding) for finding in in_order(document, findings)]


def _remark(document: Document, finding: Finding) -> Remark:
    file = document.name
    related = (
        (other.text, Place(file, path_text(other.path), document.locate(other.path)))
        for other in finding.related
    )
    return Remark(
        finding.rule,
        finding.severity,
        finding.message,
        finding.help,
        Place(file, path_text(finding.path), place(document, finding)),
        tuple(related),
        finding.proposals,
    )
