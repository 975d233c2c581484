"""A KV cache on disk that outlives its engine, on a CPU: `pytest -n0 -m cluster`, by hand."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import vllm_cpu
from cluster.bare import ask
from cluster.ranks import Cluster, running
from cluster.results import record
from cluster.serving import await_answer
from cluster.sites import FOLDER, vllm_text
from cluster.vllm_lmcache import LMCACHE, vllm_lmcache
from waiting import until

pytestmark = pytest.mark.cluster

NODE = "spark1"
# The tokenizer makes a token of each byte; LMCache keeps chunks of 256.
PROMPT, CHUNK = "All work and no play. " * 18, 256

_PORT = "network: {version: 2, renderer: networkd, ethernets: {enp1s0f0np0: {}}}\n"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    def write_model(tree: Path) -> None:
        vllm_cpu.write(tree / FOLDER.lstrip("/"))
        # The bundle of a node alone has no network: a port without an address is none, either.
        (tree / "etc/netplan").mkdir()
        (tree / "etc/netplan/50-node.yaml").write_text(_PORT)

    kept = tmp_path / "kv"
    kept.mkdir()
    offload = f"{{path: {kept}, gib: 1, connector: lmcache, buffer_gib: 1}}"
    text = vllm_text(1, offload=offload)
    with running(text, vllm_lmcache(), write_model, tmp_path, {}) as started:
        yield started


def complete(cluster: Cluster) -> tuple[str, int]:
    """The answer, and how many tokens of prompts came from outside the engine so far."""
    within = cluster.within(NODE)
    body = {"model": "tiny", "prompt": PROMPT, "max_tokens": 8, "temperature": 0}
    status, text = ask(within, f"{cluster.url}/v1/completions", body)
    assert status == 200, text
    metrics = ask(within, f"{cluster.url}/metrics")[1]
    (found,) = re.findall(r"^vllm:external_prefix_cache_hits_total\{.*\} (\S+)$", metrics, re.M)
    return json.loads(text)["choices"][0]["text"], int(float(found))


def test_stored_blocks_are_found_after_a_restart(cluster: Cluster, tmp_path: Path) -> None:
    """The same prompt is answered alike, and a chunk of it comes from the disk."""
    engine = f"vLLM {vllm_cpu.VERSION}, with LMCache {LMCACHE}"
    what = "a prompt of 396 tokens, whose KV cache is on disk"
    record(engine, what, "the first start", await_answer(cluster))
    answer, found = complete(cluster)
    assert found == 0
    until(lambda: any(tmp_path.glob("kv/*.data")), 60)
    cluster.head.end()
    cluster.launch(NODE)
    record(engine, what, "the next start, after the engine was killed", await_answer(cluster))
    start = time.monotonic()
    again, found = complete(cluster)
    assert (again, found) == (answer, CHUNK)
    seen = f"the same answer, with {CHUNK} tokens from the disk"
    record(engine, what, seen, time.monotonic() - start)
