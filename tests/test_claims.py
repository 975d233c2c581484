"""What the documents claim stands in them, and what shows it exists."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml
from documents import text_of
from waiting import PATIENCE

from generator.resources import ROOT

TESTS = Path(__file__).parent
CLAIMS = yaml.load((TESTS / "claims.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
# An address that names a version, and the day of that version, or that on which it was read.
_SOURCE = re.compile(
    r"https://github\.com/[\w.-]+/[\w.-]+/(?:blob|tree)/[0-9a-f]{40}/\S+ (?:read )?20\d\d-\d\d-\d\d"
)
# Raises where a program is started, a connection made, or a name looked up.
_OFFLINE = """
import sys
def refuse(event, args):
    if event.startswith(("socket.connect", "socket.bind", "socket.getaddrinfo",
                         "subprocess.", "os.exec", "os.posix_spawn", "os.fork", "os.system")):
        raise RuntimeError(event)
sys.addaudithook(refuse)
from generator.__main__ import main
main()
"""


def words(text: str) -> str:
    return " ".join(text.split())


@cache
def functions(path: Path) -> frozenset[str]:
    """The functions of a module of tests."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("page", CLAIMS)
def test_claims_are_shown(page: str) -> None:
    text = words(text_of(page))
    for claim in CLAIMS[page]:
        assert words(claim["claim"]) in text, claim
        for proof in claim["shown"]:
            file, _, function = proof.partition("::")
            if proof.startswith("https:"):
                assert _SOURCE.fullmatch(proof), proof
            elif file.startswith("test_"):
                assert not function or function in functions(TESTS / file), proof
                assert (TESTS / file).is_file(), proof
            else:
                assert (ROOT / file).is_file(), proof


def test_pages_of_the_front_page_have_claims() -> None:
    linked = {*re.findall(r"\]\((\S+?\.md)\)", text_of("README.md"))}
    assert linked | {"README.md"} <= {*CLAIMS}


def test_build_starts_no_program_and_opens_no_connection(tmp_path: Path) -> None:
    site = ROOT / "sites/more/three-models.yaml"
    subprocess.run(
        [sys.executable, "-c", _OFFLINE, "build", "--out", str(tmp_path / "out"), str(site)],
        cwd=ROOT,
        check=True,
        timeout=PATIENCE,
    )
    assert (tmp_path / "out/three-models/MANIFEST.json").is_file()
