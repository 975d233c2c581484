"""A language server: it keeps the texts that an editor has open, and answers about each of them."""

from collections.abc import Callable

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from generator import __version__
from generator.editors.answers import Answers, is_site
from generator.pipeline import Reading
from generator.sitefile.sections import SECTIONS

# Reads a site from a path and the editor's text of it, saved or not.
Reader = Callable[[str, str], Reading]


def server(read: Reader) -> LanguageServer:
    """Create a server, without starting it."""
    made = LanguageServer("sparkgen", __version__)

    def answers(uri: str) -> Answers | None:
        text = made.workspace.get_text_document(uri).source
        if not is_site(text.splitlines(), SECTIONS):
            return None
        codec = made.workspace.position_codec
        return Answers(uri, read(to_fs_path(uri) or uri, text), codec)

    def publish(uri: str) -> None:
        known = answers(uri)
        found = known.diagnostics() if known else []
        made.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found))

    @made.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        publish(params.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        publish(params.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        empty = types.PublishDiagnosticsParams(params.text_document.uri, [])
        made.text_document_publish_diagnostics(empty)

    @made.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        known = answers(params.text_document.uri)
        return known.hover(params.position) if known else None

    @made.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
    )
    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        known = answers(params.text_document.uri)
        lines = range(params.range.start.line, params.range.end.line + 1)
        return known.actions(lines) if known else []

    return made
