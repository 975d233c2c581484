"""What is kept of the schemas in a checkout has the content of the files that are there now."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from generator import precompiled
from generator.resources import SCHEMAS

TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=126) | st.just("\n"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=8,
)
Read = Callable[[], Any]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Reads the only schema of a checkout whose copies may be written."""
    (tmp_path / "__pycache__").mkdir()
    for name in ("SCHEMAS", "PACKAGE"):
        monkeypatch.setattr(precompiled, name, tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return lambda: precompiled._parsed.__wrapped__("site")


NAMES = sorted(path.relative_to(SCHEMAS).as_posix() for path in SCHEMAS.rglob("*.yaml"))


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith(precompiled._APART)])
def test_a_copy_as_json_is_equal(name: str) -> None:
    path = SCHEMAS / name
    content = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)

    assert json.loads(json.dumps(content)) == content


def test_each_edit_is_seen(read: Read, tmp_path: Path) -> None:
    copy = tmp_path / "__pycache__" / "schema-site.json"

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.lists(JSON, min_size=1, max_size=4))
    def edits(contents: list[Any]) -> None:
        for content in contents:
            (tmp_path / "site.yaml").write_text(json.dumps(content))
            assert read() == content  # made
            assert read() == content  # kept
            whole = copy.read_bytes()
            copy.write_bytes(whole[: len(whole) // 2])
            assert read() == content  # damaged

    edits()


def test_the_copy_is_what_is_read(read: Read, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("a: 1\n")
    (tmp_path / "__pycache__" / "schema-site.json").write_bytes(b'{"kept": 1}\na: 1\n')

    assert read() == {"kept": 1}


def test_a_folder_that_cannot_be_written_changes_nothing(read: Read, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("a: 1\n")
    (tmp_path / "__pycache__").rmdir()

    assert read() == {"a": 1}
    assert not (tmp_path / "__pycache__").exists()
