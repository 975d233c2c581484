"""vLLM on the nodes of a bundle, on processors: `pytest -n0 -m cluster`, by hand.

`launch.sh --bare` starts it, so nothing is restarted: that is the unit's part.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cluster import vllm_cpu
from cluster.ranks import Cluster, running
from cluster.results import record
from cluster.sites import FOLDER, vllm_text
from waiting import until

pytestmark = pytest.mark.cluster

ENGINE = f"vLLM {vllm_cpu.VERSION}"
SECONDS = 600


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    def write_model(tree: Path) -> None:
        folder = tree / FOLDER.lstrip("/")
        folder.mkdir(parents=True)
        vllm_cpu.write(folder)

    with running(
        vllm_text(request.param), vllm_cpu.vllm_cpu(), write_model, tmp_path, {}
    ) as started:
        yield started


@pytest.mark.parametrize("cluster", [2], indirect=True)
def test_answers_and_sees_a_dead_rank(cluster: Cluster) -> None:
    until(lambda: cluster.answers() or cluster.head.status is not None, SECONDS)
    started = time.monotonic() - cluster.head.started
    assert '"completion_tokens":8' in cluster.complete()
    assert cluster.is_healthy()
    ranks = len(cluster.bundle.site.nodes)
    record(ENGINE, f"start of {ranks} nodes", "a completion over all ranks", started)

    worker = cluster.engines["spark2"]
    fault = f"rank 1 of {ranks}: its worker process is killed"
    start = time.monotonic()
    worker.kill("VLLM::Worker")
    with ThreadPoolExecutor() as pool:
        ends = pool.submit(until, lambda: worker.status is not None, SECONDS)
        ill = pool.submit(until, lambda: not cluster.is_healthy(), SECONDS)
        ends.result()
        record(ENGINE, fault, "the rank ends, and its unit fails", time.monotonic() - start)
        ill.result()
        record(ENGINE, fault, "the head's health fails", time.monotonic() - start)
    until(lambda: cluster.head.status is not None, SECONDS)
    record(ENGINE, fault, "the head ends, and its unit fails", time.monotonic() - start)
