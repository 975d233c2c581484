"""Clock jumps under vLLM, on CPUs: `pytest -n0 -m cluster`, by hand.

Its ranks wait for each other and send heartbeats; none of that may depend on the time of day.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import clock, vllm_cpu
from cluster.ranks import Cluster, running
from cluster.results import record
from cluster.sites import FOLDER, vllm_text
from waiting import until

pytestmark = pytest.mark.cluster

ENGINE = f"vLLM {vllm_cpu.VERSION}"
SECONDS, HOUR, LIMIT, MINUTE = 900, 3600, 300, 60


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "clock"


@pytest.fixture
def pair(tmp_path: Path, file: Path) -> Iterator[Cluster]:
    def write_model(tree: Path) -> None:
        vllm_cpu.write(tree / FOLDER.lstrip("/"), "dense")

    env = {"LD_PRELOAD": str(clock.library()), "CLOCK_FILE": str(file)}
    with running(vllm_text(2), vllm_cpu.vllm_cpu(), write_model, tmp_path, env) as started:
        yield started


def test_clock_jumps(pair: Cluster, file: Path) -> None:
    until(lambda: pair.answers() or pair.head.status is not None, SECONDS)
    for seconds, way in ((HOUR, "forward"), (-HOUR, "back")):
        fault = f"the clocks of both nodes are set an hour {way}"
        start = time.monotonic()
        file.write_text(str(seconds))
        pair.complete()
        record(ENGINE, fault, "a completion over all ranks", time.monotonic() - start)
        # Longer than any heartbeat timeout.
        time.sleep(2 * MINUTE)
        assert pair.is_healthy()
        pair.complete()
        record(ENGINE, fault, "a completion, and health is good", time.monotonic() - start)
    assert [engine.status for engine in pair.engines.values()] == [None, None]
    start = time.monotonic()
    worker = pair.engines["spark2"]
    worker.kill("VLLM::Worker")
    until(lambda: worker.status is not None, MINUTE)
    fault = "rank 1 of 2: its worker process is killed, after these jumps"
    record(ENGINE, fault, "the rank ends, and its unit fails", time.monotonic() - start, MINUTE)
    until(lambda: not pair.is_healthy(), 2 * MINUTE)
    record(ENGINE, fault, "the head's health fails", time.monotonic() - start, MINUTE)
    until(lambda: pair.head.status is not None, LIMIT + 2 * MINUTE)
    seconds = time.monotonic() - start
    record(ENGINE, fault, "the head ends, and its unit fails", seconds, LIMIT + MINUTE)
