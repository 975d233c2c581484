"""SGLang on the nodes of a bundle, on CPUs: `pytest -n0 -m cluster`, by hand.

`launch.sh --bare` starts it, so nothing is restarted: that is the unit's job.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import sglang_cpu, vllm_cpu
from cluster.ranks import Cluster, running
from cluster.results import record
from cluster.serving import REQUESTS, await_answer, complete, embed, kill_rank
from cluster.sites import FOLDER, sglang_text

pytestmark = pytest.mark.cluster

ENGINE = f"SGLang {sglang_cpu.VERSION}"
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


def layout(kind: str, parallel: str) -> str:
    return f"2 nodes, {kind}, {parallel.strip('{}')}"


@pytest.mark.parametrize(("kind", "parallel"), LAYOUTS)
def test_layout(kind: str, parallel: str, cluster: Cluster) -> None:
    """Each rank has loaded its part of the model, and a completion uses both ranks."""
    seconds = await_answer(cluster)
    complete(cluster)
    for engine in cluster.engines.values():
        assert engine.status is None
        assert "Load weight end" in engine.output
    start = f"start of {layout(kind, parallel)}"
    record(ENGINE, start, "a completion over all ranks", seconds)


@pytest.mark.parametrize(("kind", "parallel"), [("embedding", "{tensor: 2}")])
def test_embedding(kind: str, parallel: str, cluster: Cluster) -> None:
    seconds = await_answer(cluster)
    embed(cluster)
    start = f"start of {layout(kind, parallel)}"
    record(ENGINE, start, "embeddings over all ranks", seconds)


@pytest.mark.parametrize(("kind", "parallel"), [("dense", "{tensor: 2}")])
def test_a_dead_rank_is_seen_and_no_request_hangs(
    kind: str, parallel: str, cluster: Cluster
) -> None:
    """Several clients stream; every stream ends, and so do the head and the rank."""
    seconds = await_answer(cluster)
    complete(cluster)
    start_of = f"start of {layout(kind, parallel)}"
    record(ENGINE, start_of, "a completion over all ranks", seconds)

    last, seen = kill_rank(cluster, "sglang::schedul", 7 * MINUTE)
    fault = f"rank 1 of 2: its scheduler is killed under {REQUESTS} streams"
    record(ENGINE, fault, "the last client knows how its request ended", last)
    for text, after in seen.items():
        record(ENGINE, fault, text, after)
