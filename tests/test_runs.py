"""Runs of the tests themselves: what they start, and what is left of one that is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cluster import llama_cpp
from programs import require, require_root
from waiting import until

TESTS = Path(__file__).parent

# Starts a namespace as a node's, says which process is the first one in it, and is killed.
RUN = """\
import sys, time
from cluster.spaces import first_process
process = first_process(["mount", "net"], "exec sleep 600")
children = f"/proc/{process.pid}/task/{process.pid}/children"
while not (found := open(children).read()): time.sleep(0.01)
print(found, flush=True)
time.sleep(600)
"""


def test_killed_run_leaves_no_process_behind() -> None:
    require("setpriv", "unshare")
    require_root()
    argv = [sys.executable, "-c", RUN]
    with subprocess.Popen(argv, cwd=TESTS, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        first = Path("/proc") / run.stdout.readline().strip()
        assert (first / "comm").exists()
        run.send_signal(signal.SIGKILL)
    until(lambda: not first.exists())


@pytest.mark.parametrize(("more", "has_workers"), [([], False), (["-n1"], True)])
def test_tests_chosen_by_name_run_without_workers(more: list[str], has_workers: bool) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    argv = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "tests/test_runs.py"]
    argv += ["-k", "no_such_test", *more]
    done = subprocess.run(argv, cwd=TESTS.parent, env=env, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout
    assert ("worker" in done.stdout) is has_workers


@pytest.mark.parametrize(
    ("processors", "available", "expected"), [(2, 16 << 20, 2), (64, 8 << 20, 8), (4, 1000, 1)]
)
def test_compilers_are_bounded_by_processors_and_memory(
    processors: int, available: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(processors))
    text = f"MemTotal: 1 kB\nMemAvailable:    {available} kB\n"
    monkeypatch.setattr(Path, "read_text", lambda _: text)
    assert llama_cpp.jobs() == expected
