"""vLLM on the nodes of a bundle, on CPUs: `pytest -n0 -m cluster`, by hand.

`launch.sh --bare` starts it, so nothing is restarted: that is the unit's job.
"""

import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cluster import vllm_cpu, vllm_ray
from cluster.bare import Running
from cluster.ranks import Cluster, running
from cluster.results import record
from cluster.serving import REQUESTS, SECONDS, await_answer, complete, embed, kill_rank
from cluster.sites import FOLDER, vllm_text
from waiting import until

pytestmark = pytest.mark.cluster

ENGINE = f"vLLM {vllm_cpu.VERSION}"
# vLLM's own limit for a rank's answer, after which the head ends; then a client has its answer.
LIMIT, MINUTE = 300, 60


@dataclass(frozen=True)
class Layout:
    """Nodes, a model, and how it is spread."""

    nodes: int
    kind: str = "dense"
    parallel: str = ""
    drafts: bool = False
    launcher: str = ""

    def __str__(self) -> str:
        spread = self.parallel.strip("{}") or f"pipeline: {self.nodes}"
        kind = f"{self.kind}{' with drafts' * self.drafts}"
        return f"{self.nodes} nodes, {kind}, {spread}{', Ray' * (self.launcher == 'ray')}"


@pytest.fixture
def ray_folder() -> Iterator[Path]:
    """Where each node's own Ray keeps its sockets, whose paths may not be long."""
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path, ray_folder: Path) -> Iterator[Cluster]:
    layout: Layout = request.param
    programs, env = vllm_cpu.vllm_cpu, {}
    if layout.launcher == "ray":
        programs, env = vllm_ray.vllm_ray, {"RAY_TMPDIR": str(ray_folder), "STARTS": "2"}

    def write_model(tree: Path) -> None:
        folder = tree / FOLDER.lstrip("/")
        vllm_cpu.write(folder, layout.kind)
        if layout.drafts:
            vllm_cpu.write(folder / "draft", "draft")

    text = vllm_text(layout.nodes, layout.kind, layout.parallel, layout.drafts, layout.launcher)
    with running(text, programs(), write_model, tmp_path, env) as started:
        yield started


LAYOUTS = [
    Layout(3),
    Layout(4),
    Layout(2, parallel="{data: 2}"),
    Layout(2, "experts", "{tensor: 2}"),
    Layout(2, "latent"),
    Layout(2, "dense", "{tensor: 2}", drafts=True),
]


@pytest.mark.parametrize(
    ("cluster", "layout"), [(name, name) for name in LAYOUTS], ids=str, indirect=["cluster"]
)
def test_layout(layout: Layout, cluster: Cluster) -> None:
    """Each rank has loaded its part of the model, and a completion uses all ranks."""
    seconds = await_answer(cluster)
    complete(cluster)
    for engine in cluster.engines.values():
        assert engine.status is None
        assert "Loading weights took" in engine.output
    record(ENGINE, f"start of {layout}", "a completion over all ranks", seconds)


EMBEDDING = Layout(2, "embedding")


@pytest.mark.parametrize("cluster", [EMBEDDING], ids=str, indirect=True)
def test_embedding(cluster: Cluster) -> None:
    seconds = await_answer(cluster)
    embed(cluster)
    record(ENGINE, f"start of {EMBEDDING}", "embeddings over all ranks", seconds)


RAY = Layout(2, launcher="ray")


@pytest.mark.parametrize("cluster", [RAY], ids=str, indirect=True)
def test_ray_starts_again(cluster: Cluster) -> None:
    """Nothing that a head's Ray leaves behind keeps the next one from starting."""
    seconds = await_answer(cluster)
    complete(cluster)
    record(ENGINE, f"start of {RAY}", "a completion over all ranks", seconds)

    def ended(engine: Running) -> float:
        until(lambda: "start 1 has ended: " in engine.output, SECONDS)
        return time.monotonic() - start

    start = time.monotonic()
    cluster.head.kill("VLLM::Engine")
    fault = "under Ray: the head's engine is killed"
    seen = {
        "the head ends": ended(cluster.head),
        "the worker's Ray ends": ended(cluster.engines["spark2"]),
    }
    until(cluster.answers, SECONDS)
    assert json.loads(cluster.complete())["usage"]["completion_tokens"] == 8
    assert "does not match" not in cluster.head.output
    seen["both are started again: a completion"] = time.monotonic() - start
    for text, after in seen.items():
        record(ENGINE, fault, text, after)


@pytest.mark.parametrize("cluster", [Layout(2)], ids=str, indirect=True)
def test_a_dead_rank_is_seen_and_no_request_hangs(cluster: Cluster) -> None:
    """Several clients stream; every stream ends, and so do the head and the rank."""
    seconds = await_answer(cluster)
    complete(cluster)
    record(ENGINE, f"start of {Layout(2)}", "a completion over all ranks", seconds)

    last, seen = kill_rank(cluster, "VLLM::Worker", LIMIT + 2 * MINUTE)
    assert last < LIMIT + MINUTE
    fault = f"rank 1 of 2: its worker process is killed under {REQUESTS} streams"
    record(ENGINE, fault, "the last client knows how its request ended", last, LIMIT + MINUTE)
    for text, promised in zip(seen, (MINUTE, MINUTE, LIMIT + MINUTE), strict=True):
        record(ENGINE, fault, text, seen[text], promised)
