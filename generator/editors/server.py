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


class _OpenTexts:
    """The last answers about each open text: a hover doesn't wait until a site is read again."""

    def __init__(self, server: LanguageServer, read: Reader) -> None:
        self._server, self._read = server, read
        self._held: dict[str, tuple[str, Answers | None]] = {}

    def answers(self, uri: str) -> Answers | None:
        """The answers about the text as it is now; None if it isn't a site."""
        text = self._server.workspace.get_text_document(uri).source
        if uri not in self._held or self._held[uri][0] != text:
            self._held[uri] = text, self._answers(uri, text)
        return self._held[uri][1]

    def forget(self, uri: str) -> None:
        """Read a text anew next time: what it extends may have changed while it has not."""
        self._held.pop(uri, None)

    def _answers(self, uri: str, text: str) -> Answers | None:
        if not is_site(text.splitlines(), SECTIONS):
            return None
        codec = self._server.workspace.position_codec
        return Answers(uri, self._read(to_fs_path(uri) or uri, text), codec)


def server(read: Reader) -> LanguageServer:
    """Create a server, without starting it."""
    made = LanguageServer("sparkgen", __version__)
    texts = _OpenTexts(made, read)
    answers = texts.answers

    def publish(uri: str) -> None:
        texts.forget(uri)
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
        texts.forget(params.text_document.uri)
        empty = types.PublishDiagnosticsParams(params.text_document.uri, [])
        made.text_document_publish_diagnostics(empty)

    @made.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        known = answers(params.text_document.uri)
        return known.hover(params.position) if known else None

    @made.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[" ", ":"])
    )
    def completion(params: types.CompletionParams) -> list[types.CompletionItem]:
        known = answers(params.text_document.uri)
        return known.completion(params.position) if known else []

    @made.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
    )
    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        known = answers(params.text_document.uri)
        lines = range(params.range.start.line, params.range.end.line + 1)
        return known.actions(lines) if known else []

    return made
