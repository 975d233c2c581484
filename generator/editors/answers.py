"""Findings in the terms of the Language Server Protocol.

Columns of findings count characters. Editors negotiate what they count when they connect, and
`Codec` converts between the two.

Source: microsoft.github.io/language-server-protocol, version 3.17.
"""

from collections.abc import Iterable, Iterator, Sequence

from lsprotocol import types
from pygls.workspace import PositionCodec

from generator.diagnostics import (
    Add,
    Finding,
    Proposal,
    Remove,
    Rename,
    Replace,
    Severity,
    Span,
    path_text,
)
from generator.editors.keys import Suggestion, documentation, suggestions
from generator.editors.places import Cursor
from generator.editors.places import place as place_at
from generator.fixing.keeping import correction
from generator.fixing.splicing import DocumentSplicer
from generator.fixing.text_edits import text_edits
from generator.pipeline import Reading
from generator.reports.explain import explanations, page_of
from generator.reports.text import place
from generator.resources import SCHEMAS

# The installed page of all rules.
_RULES_PAGE = (SCHEMAS / "rules.md").as_uri()

_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}
_ITEMS = {True: types.CompletionItemKind.Property, False: types.CompletionItemKind.Value}


class Answers:
    """The answers about one text."""

    def __init__(self, uri: str, reading: Reading, codec: PositionCodec) -> None:
        self._uri = uri
        self._reading = reading
        self._codec = codec
        self._lines = reading.document.text.split("\n")

    def diagnostics(self) -> list[types.Diagnostic]:
        """All findings, each at its place."""
        return [self._diagnostic(finding) for finding in self._reading.findings]

    def hover(self, position: types.Position) -> types.Hover | None:
        """The documentation of the rules with findings at a place, and of the key there."""
        at = self._codec.position_from_client_units(self._lines, position)
        rules = {
            finding.rule: None
            for finding in self._reading.findings
            if _holds(self._place(finding), at.line, at.character)
        }
        pages = [text for rule in rules for text in _page(rule)]
        if (here := place_at(self._lines, at.line, at.character)) and (text := documentation(here)):
            pages.append(text)
        content = types.MarkupContent(types.MarkupKind.Markdown, "\n\n".join(pages))
        return types.Hover(content) if pages else None

    def completion(self, position: types.Position) -> list[types.CompletionItem]:
        """The keys and values that may be written at a place."""
        at = self._codec.position_from_client_units(self._lines, position)
        here = place_at(self._lines, at.line, at.character)
        if not here:
            return []
        word = self._range(Span(at.line, here.start, at.line, here.end))
        return [_item(suggestion, here, word) for suggestion in suggestions(here)]

    def actions(self, lines: range) -> list[types.CodeAction]:
        """The edits proposed by findings on these lines."""
        document = self._reading.document
        splicer = DocumentSplicer(document)
        return [
            action
            for finding in self._reading.findings
            if self._place(finding).line in lines
            for action in self._actions(finding, splicer)
        ]

    def _diagnostic(self, finding: Finding) -> types.Diagnostic:
        related = [
            types.DiagnosticRelatedInformation(
                types.Location(self._uri, self._range(span)), other.text
            )
            for other in finding.related
            if (span := self._reading.document.locate(other.path)) and not span.file
        ]
        return types.Diagnostic(
            range=self._range(self._place(finding)),
            message="\n".join(filter(None, (self._message(finding), finding.help))),
            severity=_SEVERITIES[finding.severity],
            code=finding.rule,
            code_description=types.CodeDescription(f"{_RULES_PAGE}#{finding.rule.lower()}"),
            source="sparkgen",
            related_information=related,
        )

    def _place(self, finding: Finding) -> Span:
        """The place where it is shown; for findings in the base, the key that names the base."""
        document = self._reading.document
        span = place(document, finding)
        return (document.locate(("extends",)) or span) if span.file else span

    def _message(self, finding: Finding) -> str:
        span = place(self._reading.document, finding)
        return f"{span.file}:{span.line + 1}: {finding.message}" if span.file else finding.message

    def _actions(self, finding: Finding, splicer: DocumentSplicer) -> Iterator[types.CodeAction]:
        for proposal in finding.proposals:
            edits = text_edits(splicer, proposal)
            if edits and not any(edit.span.file for edit in edits):
                changed = [types.TextEdit(self._range(edit.span), edit.text) for edit in edits]
                yield types.CodeAction(
                    title=_title(finding, proposal),
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=[self._diagnostic(finding)],
                    is_preferred=correction(self._reading.document, finding) is not None,
                    edit=types.WorkspaceEdit({self._uri: changed}),
                )

    def _range(self, span: Span) -> types.Range:
        own = types.Range(
            types.Position(span.line, span.column), types.Position(span.end_line, span.end_column)
        )
        return self._codec.range_to_client_units(self._lines, own)


def _item(suggestion: Suggestion, place: Cursor, word: types.Range) -> types.CompletionItem:
    text = suggestion.text
    if suggestion.is_key and not place.has_value:
        text += ": "
    shown = types.MarkupContent(types.MarkupKind.Markdown, suggestion.documentation)
    return types.CompletionItem(
        label=suggestion.text,
        kind=_ITEMS[suggestion.is_key],
        documentation=shown if suggestion.documentation else None,
        text_edit=types.TextEdit(word, text),
    )


def _holds(span: Span, line: int, column: int) -> bool:
    start, end = (span.line, span.column), (span.end_line, span.end_column)
    return start <= (line, column) <= end


def _page(rule: str) -> Iterator[str]:
    known = explanations().get(rule)
    if known:
        yield f"### {rule}: {known.title}\n\n{page_of(known)}"


def _title(finding: Finding, proposal: Proposal) -> str:
    """The title of an edit: the help text, unless that covers several edits."""
    if len(finding.proposals) == 1 and finding.help:
        return finding.help
    return ", ".join(_words(proposal)) or finding.help or finding.message


def _words(proposal: Proposal) -> Iterable[str]:
    for edit in proposal:
        match edit:
            case Replace(path, value):
                yield f"write '{value}' at {path_text(path)}"
            case Rename(_, key):
                yield f"write '{key}'"
            case Remove(path):
                yield f"remove {path_text(path)}"
            case Add(path):
                yield f"add {path_text(path)}"


def is_site(lines: Sequence[str], sections: Iterable[str]) -> bool:
    """Whether a text is meant to be a site: two of its lines at the margin begin a section."""
    heads = {line.split(":")[0] for line in lines if ":" in line}
    return len(heads & set(sections)) > 1
