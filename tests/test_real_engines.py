"""Real engines on the nodes of a bundle: `pytest -n0 -m cluster`, by hand.

`launch.sh --bare` starts them, so nothing is restarted: that is the unit's job.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cluster import llama_cpp
from cluster.bare import Running
from cluster.load import HANGS, SERVED, Load
from cluster.ranks import Cluster, running
from cluster.results import record
from cluster.serving import embed
from cluster.sites import DRAFT, MODEL, llama_text
from cluster.tiny_model import write
from recabling import unplug
from waiting import until

pytestmark = pytest.mark.cluster

ENGINE = f"llama.cpp {llama_cpp.VERSION.partition('.')[0]}"
ABORTED = 134
# Between two looks of follow.sh at the head, and how many of them go wrong before it believes it.
LOOKS, MISSED = 10, 3
REQUESTS, CLIENTS = 200, 9
# Beyond this a failure is one that nobody sees.
SECONDS = 150


@pytest.fixture(params=[2, 3])
def nodes(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def kind() -> str:
    return "dense"


@pytest.fixture
def drafts() -> bool:
    return False


@pytest.fixture
def cluster(nodes: int, kind: str, drafts: bool, tmp_path: Path) -> Iterator[Cluster]:
    text, programs = llama_text(nodes, kind, drafts), llama_cpp.llama_cpp()

    def write_model(tree: Path) -> None:
        write(tree / MODEL.lstrip("/"), kind)
        if drafts:
            write(tree / DRAFT.lstrip("/"), "draft")

    with running(text, programs, write_model, tmp_path, {"GGML_RPC_DEBUG": "1"}) as started:
        yield started


def since(start: float, holds: Callable[[], bool]) -> float:
    """Seconds from then until something is true."""
    until(holds, SECONDS)
    return time.monotonic() - start


def computed(engine: Running) -> int:
    """The number of graphs that a worker has computed."""
    return engine.output.count("compute]")


def test_every_rank_works_on_a_completion(cluster: Cluster) -> None:
    seconds = since(cluster.head.started, cluster.answers)
    workers = [cluster.engines[node.name] for node in cluster.bundle.site.workers]
    before = [computed(worker) for worker in workers]
    assert '"completion_tokens":8' in cluster.complete()
    assert all(computed(worker) >= 8 + n for worker, n in zip(workers, before, strict=True))
    assert cluster.is_healthy()
    record(ENGINE, f"start of {len(workers) + 1} nodes", "a completion over all ranks", seconds)


@pytest.mark.parametrize("nodes", [2])
@pytest.mark.parametrize(
    ("kind", "drafts"), [("experts", False), ("latent", False), ("dense", True)]
)
def test_model_of_a_kind(kind: str, drafts: bool, cluster: Cluster) -> None:
    """A draft runs on the head only; each layer of the model is where the site says."""
    seconds = since(cluster.head.started, cluster.answers)
    worker = cluster.engines["spark2"]
    before = computed(worker)
    answer = json.loads(cluster.complete())
    assert answer["usage"]["completion_tokens"] == 8
    assert ("draft_n" in answer["timings"]) == drafts
    assert computed(worker) > before
    assert cluster.is_healthy()
    layout = f"2 nodes, {kind}{' with drafts' * drafts}"
    record(ENGINE, f"start of {layout}", "a completion over all ranks", seconds)


@pytest.mark.parametrize("nodes", [2])
@pytest.mark.parametrize("kind", ["embedding"])
def test_embedding(cluster: Cluster) -> None:
    seconds = since(cluster.head.started, cluster.answers)
    worker = cluster.engines["spark2"]
    before = computed(worker)
    embed(cluster)
    assert computed(worker) > before
    record(ENGINE, "start of 2 nodes, embedding", "embeddings over all ranks", seconds)


@pytest.mark.parametrize("nodes", [3])
def test_worker_dies(cluster: Cluster) -> None:
    until(cluster.answers, SECONDS)
    start = time.monotonic()
    fault = "a worker's engine is killed"
    cluster.engines["spark3"].kill("ggml-rpc-server")
    ended = since(start, lambda: cluster.engines["spark3"].status == 1)
    record(ENGINE, fault, "the worker ends, and its unit fails", ended)
    assert cluster.head.status is None
    with pytest.raises(RuntimeError):
        cluster.complete()
    seconds = since(start, lambda: cluster.head.status == ABORTED)
    record(ENGINE, fault, "the head aborts at the next token", seconds - ended)
    assert cluster.engines["spark2"].status is None
    cluster.launch("spark3")
    cluster.launch("spark1")
    until(cluster.answers, SECONDS)
    assert cluster.complete()


@pytest.mark.parametrize("nodes", [3])
def test_head_dies(cluster: Cluster) -> None:
    """The workers serve the next head."""
    until(cluster.answers, SECONDS)
    cluster.head.kill("llama-server")
    until(lambda: cluster.head.status is not None, SECONDS)
    start = time.monotonic()
    cluster.launch("spark1")
    seconds = since(start, cluster.answers)
    assert cluster.complete()
    record(
        ENGINE,
        "the head's engine is killed and started",
        "it serves with the same workers",
        seconds,
    )


@pytest.mark.parametrize("nodes", [3])
def test_cable_is_pulled(cluster: Cluster) -> None:
    """The worker ends by itself; the head's health says that no token comes."""
    until(cluster.answers, SECONDS)
    fault = "the cable between head and worker is pulled"
    worker = cluster.bundle.site.workers[-1]
    for interface in worker.interfaces:
        if cluster.head.node in {peer.node for peer in interface.peers}:
            unplug(cluster.network, worker.name, interface.name)
    start = time.monotonic()
    with ThreadPoolExecutor() as pool:
        ends = pool.submit(since, start, lambda: cluster.engines[worker.name].status == 1)
        ill = pool.submit(since, start, lambda: not cluster.is_healthy())
        record(ENGINE, fault, "the worker ends, and its unit fails", ends.result())
        record(ENGINE, fault, "the head's health fails", ill.result())
    assert ends.result() < 2 * LOOKS * MISSED
    assert "is gone; this rank ends" in cluster.engines[worker.name].output


@pytest.mark.parametrize("nodes", [3])
def test_no_request_hangs_while_a_worker_dies(cluster: Cluster) -> None:
    until(cluster.answers, SECONDS)
    start = time.monotonic()
    body = {"max_tokens": 16}
    load = Load(f"{cluster.url}/v1/chat/completions", body, REQUESTS, CLIENTS, SECONDS)
    places = [cluster.within(name) for name in cluster.trees]
    answers = load.send(places, lambda: cluster.engines["spark3"].kill("ggml-rpc-server"))
    ends = Counter(answer.end for answer in answers)
    assert 0 < ends[SERVED] < REQUESTS == ends.total()
    assert ends[HANGS] == 0
    assert cluster.head.status == ABORTED
    slowest = max(answer.seconds for answer in answers)
    fault = f"a worker's engine is killed under {REQUESTS} streams"
    record(ENGINE, fault, "the last client knows how its request ended", time.monotonic() - start)
    assert slowest < 60
