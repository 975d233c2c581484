"""Shared fixtures: bundles rendered in memory, the `sparkgen` command, and `--update-golden`."""

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import faster_programs
import pytest
from bundles import BUILT
from click.testing import CliRunner
from cluster import probe
from order import mixed
from programs import require_root
from valid_sites import valid_file
from waiting import PATIENCE

from generator.bundle.render import render
from generator.bundle.tree import Tree
from generator.cli import main
from generator.resources import ROOT

# The search path of a real node. If a version manager's wrappers come first, each call of
# `python3` in a script takes nine times as long.
NODE_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

Bundle = Callable[[Path], Tree]
Command = Callable[..., "Outcome"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the files in tests/golden and tests/errors with what comes out now",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run tests that are chosen by name or file without workers, which take longer to start."""
    chosen = config.option.keyword or all(Path(path).suffix for path in config.args)
    if chosen and not any(
        word.startswith(("-n", "--num")) for word in config.invocation_params.args
    ):
        config.option.numprocesses = 0


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("update_golden") and os.environ.get("CI"):
        raise pytest.UsageError("--update-golden takes someone who reads the diff; CI does not")
    # A shell's background job ignores it, and every process started from here would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Without it, each worker and each process of a test compiles every module and template again.
    sys.dont_write_bytecode = False
    if not is_worker(config):
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PATH"] = f"{NODE_PATH}:{os.environ['PATH']}"
        # Pip would compile each module of a package; Python compiles those that are used.
        os.environ |= {"PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        os.environ[BUILT] = tempfile.mkdtemp(prefix="sparkgen-bundles.")
        faster_programs.place(programs := Path(os.environ[BUILT]) / "programs")
        os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect with the garbage collector off, and have it leave alone what was collected."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not is_worker(config):
        shutil.rmtree(os.environ.pop(BUILT))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # A module that turned this on would have those collected after it compiled again in each run.
    assert not sys.dont_write_bytecode
    deselected = probe.select(items, Path(os.environ[BUILT]))
    if config.getoption("update_golden"):
        # The others would compare with files that are about to change.
        deselected += [item for item in items if not item.get_closest_marker("golden")]
    items[:] = [item for item in items if item not in deselected]
    config.hook.pytest_deselected(items=deselected)
    if is_worker(config):
        items[:] = mixed(items, int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why tests were skipped, and the tables of tests that pass whatever their figures."""
    if reason := probe.reason(Path(os.environ[BUILT])):
        terminalreporter.section("no container runs on a simulated node here: tests are left out")
        terminalreporter.write_line(reason)
    for report in terminalreporter.getreports("passed"):
        for table in (value for name, value in report.user_properties if name == "table"):
            terminalreporter.section(report.nodeid)
            terminalreporter.write_line(str(table))


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is a pytest-xdist worker."""
    return hasattr(config, "workerinput")


@pytest.fixture(scope="session")
def bundle() -> Bundle:
    """Renders the whole tree of a site file in memory; those of the project's sites are cached."""
    cached_tree = cache(_tree)
    return lambda path: cached_tree(path) if path.is_relative_to(ROOT) else _tree(path)


def _tree(path: Path) -> Tree:
    found = valid_file(path)
    return render(found.site, found.reading.sha256)


@dataclass(frozen=True)
class Outcome:
    """The result of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def sparkgen(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs the command in this process, which is fast; unexpected exceptions propagate."""

    def run(*arguments: object, cwd: Path, stdin: str = "") -> Outcome:
        monkeypatch.chdir(cwd)
        words = [str(word) for word in arguments]
        result = CliRunner().invoke(main, words, stdin, prog_name="sparkgen")
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory, for the files of a root: one layer of an overlay may not hold another."""
    require_root()
    with tempfile.TemporaryDirectory(prefix="sparkgen.", dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture
def process() -> Command:
    """Runs the command as a user does, in a separate process with its own environment."""

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
            timeout=PATIENCE,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run
