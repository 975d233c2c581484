"""Two groups and another model behind the gateway: `pytest -n0 -m cluster`, by hand.

LiteLLM is that of litellm.txt, the engines are llama.cpp, each over the cable of its pair.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from cluster import llama_cpp
from cluster.gateway import Gateway, serving
from cluster.load import CUT, SERVED, Load
from cluster.results import record
from proxied import LITELLM
from waiting import until

pytestmark = pytest.mark.cluster

ENGINE = f"llama.cpp {llama_cpp.VERSION.partition('.')[0]}, behind the gateway"
SECONDS = 300
REQUESTS, CLIENTS = 200, 8


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    if not LITELLM.exists():
        pytest.skip(f"no LiteLLM: {LITELLM}")
    with serving(tmp_path_factory.mktemp("gateway")) as started:
        yield started


def await_both(gateway: Gateway) -> None:
    until(lambda: gateway.complete("tiny")[0] == gateway.complete("other")[0] == 200, SECONDS)


def computed(gateway: Gateway) -> dict[str, int]:
    """How many graphs the worker of each pair has computed."""
    engines = gateway.engines
    workers = {"chat": engines["chat", "spark2"], "chat-b": engines["chat-b", "spark4"]}
    return {group: worker.said.count("compute]") for group, worker in workers.items()}


def test_both_names_answer(gateway: Gateway) -> None:
    """Each from its own engines, whoever asks, and with a key alone."""
    start = time.monotonic()
    await_both(gateway)
    record(ENGINE, "start of two pairs and a node", "both names answer", time.monotonic() - start)
    for name in ("tiny", "other"):
        for client in ("spark1", "spark4"):
            status, text = gateway.complete(name, client)
            assert (status, json.loads(text)["usage"]["completion_tokens"]) == (200, 8)
    assert min(computed(gateway).values()) > 0


def test_replica_is_killed_under_load(gateway: Gateway) -> None:
    """What had not begun is answered by the other pair, and so is all that comes later."""
    await_both(gateway)
    before = computed(gateway)
    start = 0.0

    def kill() -> None:
        nonlocal start
        start = time.monotonic()
        gateway.engines["chat-b", "spark3"].kill("llama-server")

    answers = load(gateway, REQUESTS).send(places(gateway), kill)
    seconds = time.monotonic() - start
    ends = Counter(answer.end for answer in answers)
    # Those whose answer had begun there are told that it is cut.
    assert ends[SERVED] + ends[CUT] == REQUESTS, ends
    assert ends[CUT] <= CLIENTS
    assert all(computed(gateway)[group] > before[group] for group in before)
    fault = f"a head of two is killed under {REQUESTS} streams"
    record(ENGINE, fault, "all that had not begun are served by the other", seconds)

    gateway.launch("chat-b", "spark3")
    start, before = time.monotonic(), computed(gateway)

    def has_both() -> bool:
        found = load(gateway, 2 * CLIENTS).send(places(gateway), lambda: None)
        assert {answer.end for answer in found} == {SERVED}
        return computed(gateway)["chat-b"] > before["chat-b"] + CLIENTS

    until(has_both, SECONDS)
    record(ENGINE, "that head is started", "it is asked again", time.monotonic() - start)


def load(gateway: Gateway, count: int) -> Load:
    url = f"{gateway.url}/v1/chat/completions"
    return Load(url, {"model": "tiny", "max_tokens": 16}, count, CLIENTS, SECONDS, gateway.key)


def places(gateway: Gateway) -> list[list[str]]:
    """Clients are on a node of each pair."""
    return [gateway.within(name) for name in ("spark2", "spark4")]
