"""What the tests share: bundles made in memory, the command, and `--update-golden`."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from generator.cli import main
from generator.formats import text
from generator.pipeline import read_site
from generator.render import render
from generator.resources import ROOT
from generator.tree import Tree

Bundle = Callable[[Path], Tree]
Command = Callable[..., "Outcome"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite tests/golden/*/expected with what comes out now",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("update_golden") and os.environ.get("CI"):
        raise pytest.UsageError("--update-golden is for people who read the diff, not for CI")


@pytest.fixture(scope="session")
def bundle() -> Bundle:
    """Makes the whole tree of a site file in memory."""

    def make(path: Path) -> Tree:
        reading = read_site(path.name, path.read_bytes())
        assert reading.site, text(reading.document, reading.findings)
        return render(reading.site, reading.sha256)

    return make


@dataclass(frozen=True)
class Outcome:
    """What a command answered."""

    code: int
    out: str
    err: str


@pytest.fixture
def sparkgen(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs the command in this process, which is fast; its own faults are raised."""

    def run(*arguments: object, cwd: Path) -> Outcome:
        monkeypatch.chdir(cwd)
        result = CliRunner().invoke(main, [str(word) for word in arguments], prog_name="sparkgen")
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def process() -> Command:
    """Runs the command as a user does, in a process with an environment of its own."""

    def run(
        *arguments: object,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        umask: int = 0o022,
    ) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "generator", *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
            umask=umask,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run
