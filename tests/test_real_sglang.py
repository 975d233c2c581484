"""SGLang on the nodes of a bundle, on processors: `pytest -n0 -m cluster`, by hand.

`launch.sh --bare` starts it, so nothing is restarted: that is the unit's part.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cluster import sglang_cpu, vllm_cpu
from cluster.bare import ask
from cluster.load import HANGS, SERVED, Load
from cluster.ranks import Cluster, running
from cluster.results import record
from cluster.sites import FOLDER, sglang_text
from waiting import until

pytestmark = pytest.mark.cluster

ENGINE = f"SGLang {sglang_cpu.VERSION}"
# On a machine whose processors others have, too.
SECONDS = 900
REQUESTS, CLIENTS = 200, 8
MINUTE = 60
# The tiny model with latent attention is none for it: its own wants scaled rotary embeddings.
LAYOUTS = [("dense", "{pipeline: 2}"), ("experts", "{tensor: 2}")]


@pytest.fixture
def cluster(kind: str, parallel: str, tmp_path: Path) -> Iterator[Cluster]:
    def write_model(tree: Path) -> None:
        vllm_cpu.write(tree / FOLDER.lstrip("/"), kind)

    programs, env = sglang_cpu.sglang_cpu(), sglang_cpu.environment()
    text = sglang_text(2, kind, parallel)
    with running(text, programs, write_model, tmp_path, env) as started:
        yield started


def await_answer(cluster: Cluster) -> float:
    """Seconds from the start until the API is up."""
    until(lambda: cluster.answers() or cluster.head.status is not None, SECONDS)
    assert cluster.head.status is None, cluster.head.said[-3000:]
    return time.monotonic() - cluster.head.started


def layout(kind: str, parallel: str) -> str:
    return f"2 nodes, {kind}, {parallel.strip('{}')}"


@pytest.mark.parametrize(("kind", "parallel"), LAYOUTS)
def test_layout(kind: str, parallel: str, cluster: Cluster) -> None:
    """Each rank has loaded its part of the model, and a completion goes over both of them."""
    seconds = await_answer(cluster)
    assert json.loads(cluster.complete())["usage"]["completion_tokens"] == 8
    assert cluster.is_healthy()
    for engine in cluster.engines.values():
        assert engine.status is None
        assert "Load weight end" in engine.said
    start = f"start of {layout(kind, parallel)}"
    record(ENGINE, start, "a completion over all ranks", seconds)


@pytest.mark.parametrize(("kind", "parallel"), [("embedding", "{tensor: 2}")])
def test_embedding(kind: str, parallel: str, cluster: Cluster) -> None:
    seconds = await_answer(cluster)
    asked = {"model": "tiny", "input": ["one", "two"]}
    status, text = ask(cluster.within("spark2"), f"{cluster.url}/v1/embeddings", asked)
    assert status == 200
    assert [len(one["embedding"]) for one in json.loads(text)["data"]] == [256, 256]
    assert cluster.is_healthy()
    start = f"start of {layout(kind, parallel)}"
    record(ENGINE, start, "embeddings over all ranks", seconds)


@pytest.mark.parametrize(("kind", "parallel"), [("dense", "{tensor: 2}")])
def test_a_dead_rank_is_seen_and_no_request_hangs(
    kind: str, parallel: str, cluster: Cluster
) -> None:
    """Under streams of several clients; each has an end, and the head and the rank have one."""
    seconds = await_answer(cluster)
    assert json.loads(cluster.complete())["usage"]["completion_tokens"] == 8
    assert cluster.is_healthy()
    start_of = f"start of {layout(kind, parallel)}"
    record(ENGINE, start_of, "a completion over all ranks", seconds)

    worker = cluster.engines["spark2"]
    start = 0.0

    def kill() -> None:
        nonlocal start
        start = time.monotonic()
        worker.kill("sglang::schedul")

    def since(holds: Callable[[], bool]) -> float:
        until(lambda: start > 0 and holds(), SECONDS)
        return time.monotonic() - start

    body = {"model": "tiny", "max_tokens": 8}
    load = Load(f"{cluster.url}/v1/chat/completions", body, REQUESTS, CLIENTS, 7 * MINUTE)
    with ThreadPoolExecutor() as pool:
        seen = {
            "the rank ends, and its unit fails": pool.submit(
                since, lambda: worker.status is not None
            ),
            "the head's health fails": pool.submit(since, lambda: not cluster.is_healthy()),
            "the head ends, and its unit fails": pool.submit(
                since, lambda: cluster.head.status is not None
            ),
        }
        answers = load.send([cluster.within(name) for name in cluster.trees], kill)
        last = time.monotonic() - start
    ends = Counter(answer.end for answer in answers)
    assert 0 < ends[SERVED] < REQUESTS == ends.total(), ends
    assert ends[HANGS] == 0, ends
    fault = f"rank 1 of 2: its scheduler is killed under {REQUESTS} streams"
    record(ENGINE, fault, "the last client knows how its request ended", last)
    for text, result in seen.items():
        record(ENGINE, fault, text, result.result())
