"""Real engines on the nodes of a bundle: `pytest -n0 -m cluster`, by hand.

`launch.sh --bare` starts them, so nothing is restarted: that is the unit's part.
"""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from bundles import Bundle, links
from cluster import llama_cpp
from cluster.bare import Running, ask, completion, launch, launched
from cluster.results import record
from cluster.sites import MODEL, llama_text
from cluster.tiny_model import write
from programs import require, require_root
from waiting import until

from generator.verify.namespaces import PROGRAMS, Fabric, fabric

pytestmark = pytest.mark.cluster

ENGINE = f"llama.cpp {llama_cpp.VERSION.partition('.')[0]}"
ABORTED = 134
# Between two looks of follow.sh at the head, and how many of them go wrong before it believes it.
LOOKS, MISSED = 10, 3
REQUESTS, CLIENTS = 200, 8
# Beyond this a failure is one that nobody sees.
SECONDS = 150


@dataclass(frozen=True)
class Cluster:
    """Nodes with an engine each."""

    bundle: Bundle
    trees: dict[str, Path]
    network: Fabric
    engines: dict[str, Running]
    work: Path
    env: dict[str, str]

    @property
    def head(self) -> Running:
        return self.engines[self.bundle.site.head.name]

    @property
    def url(self) -> str:
        health = self.bundle.site.head.container.health
        assert health
        return health.url

    def within(self, node: str) -> list[str]:
        return self.network.command(node)

    def answers(self) -> bool:
        """Whether the API is up."""
        return ask(self.within(self.head.node), f"{self.url}/health")[0] == 200

    def complete(self, client: str = "spark2") -> str:
        """A chat completion for a client on another node."""
        return completion(self.within(client), self.url, self.bundle.site.model.served_name)

    def launch(self, node: str) -> None:
        """Start the engine of a node once more."""
        within = self.within(node)
        self.engines[node] = launch(node, self.trees[node], within, self.work, self.env)

    def is_healthy(self) -> bool:
        """What Docker would say of the head's container."""
        return self.head.run("bash", "/opt/sparkgen/health.sh").returncode == 0


@pytest.fixture(params=[2, 3])
def nodes(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def cluster(nodes: int, tmp_path: Path) -> Iterator[Cluster]:
    require_root()
    require(*PROGRAMS, "curl", "nsenter")
    programs = llama_cpp.llama_cpp()
    file = tmp_path / "tiny.yaml"
    file.write_text(llama_text(nodes))
    bundle = Bundle(f"tiny-{nodes}", file)
    trees = bundle.copy(tmp_path)
    write(trees["spark1"] / MODEL.lstrip("/"))
    addresses = {
        node.name: str(node.management.address) for node in bundle.site.nodes if node.management
    }
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "GGML_RPC_DEBUG": "1"}
    with fabric(trees, links(bundle.site.cables), tmp_path, addresses) as network:
        within = {node: network.command(node) for node in trees}
        with launched(trees, within, tmp_path, env) as engines:
            yield Cluster(bundle, trees, network, engines, tmp_path, env)


def since(start: float, holds: Callable[[], bool]) -> float:
    """Seconds from then until something holds."""
    until(holds, SECONDS)
    return time.monotonic() - start


def computed(engine: Running) -> int:
    """How many graphs a worker has computed."""
    return engine.said.count("compute]")


def test_every_rank_works_on_a_completion(cluster: Cluster) -> None:
    seconds = since(cluster.head.started, cluster.answers)
    workers = [cluster.engines[node.name] for node in cluster.bundle.site.workers]
    before = [computed(worker) for worker in workers]
    assert '"completion_tokens":8' in cluster.complete()
    assert all(computed(worker) >= 8 + n for worker, n in zip(workers, before, strict=True))
    assert cluster.is_healthy()
    record(ENGINE, f"start of {len(workers) + 1} nodes", "a completion over all ranks", seconds)


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
    for own in worker.interfaces:
        if cluster.head.node in {peer.node for peer in own.peers}:
            cluster.network.unplug(worker.name, own.name)
    start = time.monotonic()
    with ThreadPoolExecutor() as pool:
        ends = pool.submit(since, start, lambda: cluster.engines[worker.name].status == 1)
        ill = pool.submit(since, start, lambda: not cluster.is_healthy())
        record(ENGINE, fault, "the worker ends, and its unit fails", ends.result())
        record(ENGINE, fault, "the head's health fails", ill.result())
    assert ends.result() < 2 * LOOKS * MISSED
    assert "is gone; this rank ends" in cluster.engines[worker.name].said


@pytest.mark.parametrize("nodes", [3])
def test_no_request_hangs_while_a_worker_dies(cluster: Cluster) -> None:
    until(cluster.answers, SECONDS)
    start = time.monotonic()

    def request(number: int) -> tuple[int, float]:
        if number == REQUESTS // 2:
            cluster.engines["spark3"].kill("ggml-rpc-server")
        asked = time.monotonic()
        question = {"prompt": f"{number}", "max_tokens": 16, "stream": True}
        within = cluster.within(("spark1", "spark2", "spark3")[number % 3])
        status, text = ask(within, f"{cluster.url}/v1/completions", question)
        return status if "[DONE]" in text else 0, time.monotonic() - asked

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(request, range(REQUESTS)))
    served = sum(status == 200 for status, _ in answers)
    assert 0 < served < REQUESTS
    assert cluster.head.status == ABORTED
    slowest = max(seconds for _, seconds in answers)
    fault = f"a worker's engine is killed under {REQUESTS} streams"
    record(ENGINE, fault, "the last client knows how its request ended", time.monotonic() - start)
    assert slowest < 60
