"""The language server, queried over standard input by pygls' own client, as an editor does."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from lsprotocol import types
from pygls.lsp.client import LanguageClient
from waiting import PATIENCE

from generator.reports.explain import explanations
from generator.resources import ROOT

SITE = (ROOT / "sites/single.yaml").read_text()
Talk = Callable[[LanguageClient, str, list[types.PublishDiagnosticsParams]], Awaitable[Any]]


def talk(path: Path, text: str, ask: Talk, encoding: str = "utf-16") -> Any:
    """Open a text in a server process of its own, and send requests."""

    async def session() -> Any:
        client = LanguageClient("tests", "1")
        published: list[types.PublishDiagnosticsParams] = []

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def keep(params: types.PublishDiagnosticsParams) -> None:
            published.append(params)

        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        await client.start_io(sys.executable, "-m", "generator", "lsp", env=env)
        general = types.GeneralClientCapabilities(
            position_encodings=[types.PositionEncodingKind(encoding)]
        )
        await client.initialize_async(
            types.InitializeParams(capabilities=types.ClientCapabilities(general=general))
        )
        client.initialized(types.InitializedParams())
        item = types.TextDocumentItem(path.as_uri(), types.LanguageKind.Yaml, 1, text)
        client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        await until(lambda: bool(published))
        answer = await ask(client, path.as_uri(), published)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()
        return answer

    return asyncio.run(asyncio.wait_for(session(), PATIENCE))


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lab.yaml"


@pytest.mark.parametrize(
    ("policy", "severity"),
    [
        ("rules: {SG609: {level: error, reason: reviewed}}", types.DiagnosticSeverity.Error),
        ("rules: [", types.DiagnosticSeverity.Warning),
    ],
)
def test_policy_of_the_repository_is_applied(
    policy: str, severity: types.DiagnosticSeverity, tmp_path: Path
) -> None:
    async def ask(_: LanguageClient, uri: str, published: list[Any]) -> Any:
        return published[-1]

    (tmp_path / "sites").mkdir()
    (tmp_path / "policy.yaml").write_text(f"version: 1\n{policy}\n")
    site = SITE.replace("vllm-openai:v0.33.0", "vllm-openai:latest")
    found = talk(tmp_path / "sites/lab.yaml", site, ask)
    assert [(diagnostic.code, diagnostic.severity) for diagnostic in found.diagnostics] == [
        ("SG609", severity)
    ]


def test_findings_are_diagnostics_where_they_are(path: Path) -> None:
    async def ask(_: LanguageClient, uri: str, published: list[Any]) -> Any:
        return published[-1]

    found = talk(path, SITE.replace("kind: single", "kind: singel"), ask)
    (diagnostic,) = found.diagnostics
    line = SITE.split("\n").index("  kind: single")
    assert found.uri == path.as_uri()
    assert (diagnostic.code, diagnostic.source, diagnostic.severity) == (
        "SG104",
        "sparkgen",
        types.DiagnosticSeverity.Error,
    )
    assert diagnostic.range == types.Range(types.Position(line, 8), types.Position(line, 14))
    assert "did you mean 'single'?" in diagnostic.message
    assert diagnostic.code_description.href.endswith("/rules.md#sg104")


@pytest.mark.parametrize(("encoding", "units"), [("utf-16", 2), ("utf-32", 1)])
def test_columns_are_counted_as_the_editor_counts(encoding: str, units: int, path: Path) -> None:
    """A character outside the BMP counts as two in most editors, and as one in findings."""

    async def ask(_: LanguageClient, uri: str, published: list[Any]) -> Any:
        places = [diagnostic.range.start.character for diagnostic in published[-1].diagnostics]
        return max(places)

    line = 'topology: {kind: single, "😀": 1, kid: 2}'
    text = SITE.replace("topology:\n  kind: single", line)
    assert talk(path, text, ask, encoding) == line.index("kid") + units - 1


def test_changes_are_checked_and_closed_files_are_not(path: Path) -> None:
    async def ask(client: LanguageClient, uri: str, published: list[Any]) -> Any:
        assert not published[-1].diagnostics
        whole = types.TextDocumentContentChangeWholeDocument(SITE.replace("image:", "imagge:"))
        version = types.VersionedTextDocumentIdentifier(2, uri)
        client.text_document_did_change(types.DidChangeTextDocumentParams(version, [whole]))
        await until(lambda: len(published) > 1)
        changed = [diagnostic.code for diagnostic in published[-1].diagnostics]
        identifier = types.TextDocumentIdentifier(uri)
        client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))
        await until(lambda: len(published) > 2)
        return changed, list(published[-1].diagnostics)

    assert talk(path, SITE, ask) == (["SG101"], [])


def test_hover_shows_the_explanation(path: Path) -> None:
    async def ask(client: LanguageClient, uri: str, published: list[Any]) -> Any:
        document = types.TextDocumentIdentifier(uri)
        at = published[-1].diagnostics[0].range.start
        there = await client.text_document_hover_async(types.HoverParams(document, at))
        elsewhere = types.HoverParams(document, types.Position(0, 0))
        return there.contents.value, await client.text_document_hover_async(elsewhere)

    shown, nothing = talk(path, SITE.replace("image:", "imagge:"), ask)
    assert explanations()["SG101"].title in shown
    assert explanations()["SG101"].good.strip() in shown
    assert nothing is None


def test_keys_are_explained_and_completed(path: Path) -> None:
    async def ask(client: LanguageClient, uri: str, published: list[Any]) -> Any:
        document = types.TextDocumentIdentifier(uri)
        key = types.Position(text.split("\n").index("  kind: single"), 3)
        hover = await client.text_document_hover_async(types.HoverParams(document, key))
        value = types.Position(key.line, len("  kind: s"))
        offered = await client.text_document_completion_async(
            types.CompletionParams(document, value)
        )
        return hover.contents.value, offered

    text = SITE
    hover, offered = talk(path, text, ask)
    assert "- Type: `single`" in hover
    (ring,) = (item for item in offered if item.label == "ring")
    assert ring.text_edit.new_text == "ring"
    assert (ring.text_edit.range.start.character, ring.text_edit.range.end.character) == (8, 14)


def test_actions_fix_the_text(path: Path) -> None:
    async def ask(client: LanguageClient, uri: str, published: list[Any]) -> Any:
        document = types.TextDocumentIdentifier(uri)
        (diagnostic,) = published[-1].diagnostics
        context = types.CodeActionContext(diagnostics=[diagnostic])
        params = types.CodeActionParams(document, diagnostic.range, context)
        return await client.text_document_code_action_async(params)

    (action,) = talk(path, SITE.replace("image:", "imagge:"), ask)
    assert action.is_preferred
    assert action.title == "did you mean 'image'?"
    ((edit,),) = action.edit.changes.values()
    assert edit.new_text == "image"
    assert edit.range.end.character - edit.range.start.character == len("imagge")


def test_each_reading_is_an_action_and_none_is_preferred(path: Path) -> None:
    async def ask(client: LanguageClient, uri: str, published: list[Any]) -> Any:
        document = types.TextDocumentIdentifier(uri)
        (diagnostic,) = published[-1].diagnostics
        params = types.CodeActionParams(
            document, diagnostic.range, types.CodeActionContext([diagnostic])
        )
        return await client.text_document_code_action_async(params)

    text = (ROOT / "sites/lab-mesh.yaml").read_text().replace("name: spark2", "name: spark20")
    found = talk(path, text, ask)
    assert len(found) == 2
    assert not any(action.is_preferred for action in found)
    assert len({action.title for action in found}) == 2


def test_other_yaml_files_are_left_alone(path: Path) -> None:
    async def ask(_: LanguageClient, uri: str, published: list[Any]) -> Any:
        return list(published[-1].diagnostics)

    assert talk(path, "services:\n  web:\n    image: nginx\nnetworks: {}\n", ask) == []


def test_missing_pygls_is_reported_in_one_line(process: Command, tmp_path: Path) -> None:
    (tmp_path / "pygls").mkdir()
    (tmp_path / "pygls/__init__.py").write_text("raise ImportError")
    lacking = os.pathsep.join([str(tmp_path), str(ROOT)])
    answered = process("lsp", cwd=tmp_path, env={"PYTHONPATH": lacking})
    assert answered.code == 4
    assert answered.out == ""
    assert answered.err == (
        "sparkgen: the language server needs pygls: pip install '.[lsp]' in a checkout\n"
    )
