"""Complete nodes, with real engines in real containers: `pytest -n0 -m cluster`, by hand.

Each has systemd, a netplan configuration that `install.sh` applies, Docker and Compose; the bundle
is unchanged.
"""

import time
from collections.abc import Iterator

import pytest
from cluster import cable_failures, clock_failures, docker, failures, llama_cpp
from cluster.changes import CHANGES, change
from cluster.observing import Failure, observe
from cluster.pairs import HEAD, WORKER, Pair, health, serving
from cluster.results import record
from conftest import Command

pytestmark = pytest.mark.cluster

ENGINE = f"llama.cpp {llama_cpp.VERSION.partition('.')[0]}, in Docker"
SECONDS = 600
FAILURES = (*failures.ALL, *cable_failures.ALL, *clock_failures.ALL)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    docker.fetch()
    folder = llama_cpp.llama_cpp()
    programs = {name: folder / name for name in llama_cpp.PROGRAMS}
    with serving(programs, tmp_path_factory.mktemp("pair"), SECONDS, clocks=True) as started:
        yield started


def test_answers(pair: Pair) -> None:
    assert '"completion_tokens":8' in pair.complete()
    pair.wait(lambda: health(pair.head) == "healthy")


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
def test_failure(failure: Failure, pair: Pair) -> None:
    rows = observe(pair, failure)
    for row in rows:
        record(ENGINE, row.fault, row.seen.text, row.seconds, row.seen.promised)
    assert [row for row in rows if row.seconds > (row.seen.promised or SECONDS)] == []


def test_changes(pair: Pair, tmp_path_factory: pytest.TempPathFactory, sparkgen: Command) -> None:
    """Carried out as `diff` says, each interrupts service no longer than it says."""
    folder = tmp_path_factory.mktemp("repository") / "lab"
    for name in CHANGES:
        seconds, told = change(pair, name, folder, sparkgen)
        record(
            ENGINE, f"as diff says: {name}", "the longest time between two answers", seconds, told
        )


def test_log_is_bounded(pair: Pair) -> None:
    """Of an engine's endless output, Docker keeps the newest part, in five files at most."""
    much = "for i in 1 2 3 4 5 6 7; do head -c 50000000 /dev/zero | tr '\\0' x | fold -w 1000; done"
    shown = pair.worker.run("docker", "top", "sparkgen-engine", "-eo", "pid,comm").stdout
    (process,) = (line.split()[0] for line in shown.splitlines() if "ggml-rpc" in line)
    pair.worker.run("sh", "-c", f"({much}) >/proc/{process}/fd/1")
    sizes = pair.worker.run("sh", "-c", "du -b /mnt/docker/containers/*/local-logs/*").stdout
    kept = [int(line.split()[0]) for line in sizes.splitlines()]
    assert 1 < len(kept) <= 5
    assert sum(kept) < 5 * 50 << 20
    assert pair.serves()


def test_stop(pair: Pair) -> None:
    for name in (HEAD, WORKER):
        machine = pair.rack.machines[name]
        start = time.monotonic()
        machine.systemctl("stop", "sparkgen-engine")
        assert (machine.state(), machine.result()) == ("inactive", "success")
        seconds = time.monotonic() - start
        record(ENGINE, f"systemctl stop on {name}", "the container is gone", seconds)
        assert machine.run("docker", "ps", "--all", "--quiet").stdout == ""
