"""The documents of the repository, and a workplace in which their commands are run."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from repositories import commit, git
from waiting import PATIENCE

from generator.resources import ROOT

# Each document lies beside what it describes.
PATHS = (
    "README.md",
    "sites/README.md",
    "sites/flags.md",
    "sites/reviews.md",
    "templates/README.md",
    "schemas/README.md",
    "schemas/accuracy.md",
    "generator/README.md",
    "generator/recipes.md",
    "generator/commands/README.md",
    "tests/README.md",
)
# Those that programs write.
GENERATED = (
    "generator/commands/README.md",
    "schemas/reference.md",
    "schemas/rules.md",
    "tests/changes.md",
    "tests/cluster/measured.md",
)
INPUTS = Path(__file__).parent / "documents"
_NO_DOCUMENTS = ("tests/.programs/", "tests/golden/", "tests/released/")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n", re.MULTILINE)
# Commit hashes differ on every run.
_COMMIT = re.compile(r"\b[0-9a-f]{12}\b")


def every_document() -> list[str]:
    """All that people read in the repository: no bundles, inputs of tests or fetched programs."""
    folders = (".github", "generator", "schemas", "sites", "templates", "tests")
    own = [path for folder in folders for path in (ROOT / folder).rglob("*.md")]
    found = (path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", *own))
    return [path for path in found if not path.startswith(_NO_DOCUMENTS)]


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks in a language; an empty language selects blocks without one."""
    return [block for found, block in _BLOCK.findall(text) if found == language]


def block(path: str, language: str, word: str) -> str:
    """The only block of a document in this language that contains the word."""
    (found,) = [text for text in blocks(text_of(path), language) if word in text]
    return found


def console(text: str) -> Iterator[tuple[str, str]]:
    """Each command in the console blocks, with its documented output."""
    for found in blocks(text, "console"):
        parts = _COMMAND.split(found)[1:]
        yield from zip(parts[::2], parts[1::2], strict=True)


def same(first: str, second: str) -> bool:
    """Whether two outputs are equal except for commit hashes."""
    return _COMMIT.sub("COMMIT", first) == _COMMIT.sub("COMMIT", second)


class Workplace:
    """A repository with the examples, and the command on the search path."""

    def __init__(self, folder: Path) -> None:
        self.cwd = folder / "cluster"
        programs = folder / "bin"
        programs.mkdir(parents=True)
        script = f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m generator "$@"\n'
        (programs / "sparkgen").write_text(script)
        (programs / "sparkgen").chmod(0o755)
        self.env = {
            **os.environ,
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }
        for role in ("AUTHOR", "COMMITTER"):
            self.env |= {f"GIT_{role}_NAME": "Someone"}
            self.env |= {f"GIT_{role}_EMAIL": "someone@example.org"}

    def with_examples(self) -> "Workplace":
        """A repository with the examples and their bundles committed."""
        for name in ("sites", "out", "schemas"):
            shutil.copytree(ROOT / name, self.cwd / name)
        git(self.cwd, "init", "--quiet", "--initial-branch=main")
        commit(self.cwd)
        return self

    def empty(self) -> "Workplace":
        """A folder with nothing but the output of two nodes."""
        shutil.copytree(INPUTS, self.cwd)
        git(self.cwd, "init", "--quiet", "--initial-branch=main")
        return self

    def run(self, command: str) -> str:
        """Run a command; returns its output on both streams."""
        done = subprocess.run(
            ("bash", "-c", command),
            cwd=self.cwd,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        return done.stdout
