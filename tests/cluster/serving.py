"""What a cluster of any engine must do: answer, and notice a rank that dies under load."""

import json
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from waiting import until

from cluster.bare import ask
from cluster.load import HANGS, SERVED, Load
from cluster.ranks import Cluster

# Generous, because the machine's CPUs may be shared.
SECONDS = 900
REQUESTS, CLIENTS = 200, 8


def await_answer(cluster: Cluster) -> float:
    """Seconds from the start until the API is up."""
    until(lambda: cluster.answers() or cluster.head.status is not None, SECONDS)
    assert cluster.head.status is None, cluster.head.output[-3000:]
    return time.monotonic() - cluster.head.started


def complete(cluster: Cluster) -> None:
    """A completion has as many tokens as requested, and the head is healthy."""
    assert json.loads(cluster.complete())["usage"]["completion_tokens"] == 8
    assert cluster.is_healthy()


def embed(cluster: Cluster) -> None:
    """Two texts get one embedding each, and the head is healthy."""
    body = {"model": "tiny", "input": ["one", "two"]}
    status, text = ask(cluster.within("spark2"), f"{cluster.url}/v1/embeddings", body)
    assert status == 200
    assert [len(item["embedding"]) for item in json.loads(text)["data"]] == [256, 256]
    assert cluster.is_healthy()


def kill_rank(cluster: Cluster, process: str, limit: float) -> tuple[float, dict[str, float]]:
    """Seconds until the last client's request has ended, and until the others notice.

    A process of the worker is killed while several clients stream. Every stream ends, and none is
    silent for longer than the limit.
    """
    worker = cluster.engines["spark2"]
    start = 0.0

    def kill() -> None:
        nonlocal start
        start = time.monotonic()
        worker.kill(process)

    def since(holds: Callable[[], bool]) -> float:
        until(lambda: start > 0 and holds(), SECONDS)
        return time.monotonic() - start

    body = {"model": "tiny", "max_tokens": 8}
    load = Load(f"{cluster.url}/v1/chat/completions", body, REQUESTS, CLIENTS, limit)
    signs: dict[str, Callable[[], bool]] = {
        "the rank ends, and its unit fails": lambda: worker.status is not None,
        "the head's health fails": lambda: not cluster.is_healthy(),
        "the head ends, and its unit fails": lambda: cluster.head.status is not None,
    }
    with ThreadPoolExecutor() as pool:
        seen = {text: pool.submit(since, holds) for text, holds in signs.items()}
        answers = load.send([cluster.within(name) for name in cluster.trees], kill)
        last = time.monotonic() - start
    ends = Counter(answer.end for answer in answers)
    assert 0 < ends[SERVED] < REQUESTS == ends.total(), ends
    assert ends[HANGS] == 0, ends
    return last, {text: result.result() for text, result in seen.items()}
