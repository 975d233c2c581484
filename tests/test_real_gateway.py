"""Two groups and another model behind the gateway: `pytest -n0 -m cluster`, by hand.

The engines are llama.cpp, each pair over its own cable.
"""

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import llama_cpp
from cluster.gateway import Gateway, serving
from cluster.load import CUT, REFUSED, SERVED, Load
from cluster.results import record
from cluster.upgrade import measured, steps
from conftest import Command
from waiting import until

pytestmark = pytest.mark.cluster

ENGINE = f"llama.cpp {llama_cpp.VERSION.partition('.')[0]}, behind the gateway"
SECONDS = 300
REQUESTS, CLIENTS = 200, 8
MINUTE = 60


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(tmp_path_factory.mktemp("gateway")) as started:
        yield started


def await_both(gateway: Gateway) -> None:
    until(lambda: gateway.complete("tiny")[0] == gateway.complete("other")[0] == 200, SECONDS)


def computed(gateway: Gateway) -> dict[str, int]:
    """The number of graphs that the worker of each pair has computed."""
    engines = gateway.engines
    workers = {"chat": engines["chat", "spark2"], "chat-b": engines["chat-b", "spark4"]}
    return {group: worker.output.count("compute]") for group, worker in workers.items()}


def test_both_names_answer(gateway: Gateway) -> None:
    """Each model answers from its own engines, whichever node asks, and only with a key."""
    start = time.monotonic()
    await_both(gateway)
    record(ENGINE, "start of two pairs and a node", "both names answer", time.monotonic() - start)
    for name in ("tiny", "other"):
        for client in ("spark1", "spark4"):
            status, text = gateway.complete(name, client)
            assert (status, json.loads(text)["usage"]["completion_tokens"]) == (200, 8)
    assert min(computed(gateway).values()) > 0


def test_replica_is_killed_under_load(gateway: Gateway) -> None:
    """Requests that it did not have yet, and all later ones, are served by the other pair."""
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
    # Those that it had are told that it ended, or that their answer is cut.
    lost = ends[CUT] + ends[REFUSED]
    assert ends[SERVED] + lost == REQUESTS, ends
    assert lost <= CLIENTS
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


def test_change_of_two_replicas(gateway: Gateway, tmp_path: Path, sparkgen: Command) -> None:
    """Carried out as `diff` says, one pair after the other: their name answers throughout."""
    await_both(gateway)
    file = tmp_path / "tiny.yaml"
    file.write_text(gateway.bundle.file.read_text())
    assert sparkgen("build", file, cwd=tmp_path).code == 0
    file.write_text(file.read_text().replace("max_sequences: 2", "max_sequences: 1"))
    (review,) = json.loads(sparkgen("diff", file, "--format", "json", cwd=tmp_path).out)["sites"]
    assert sparkgen("build", file, cwd=tmp_path).code == 0
    groups = {node.name: part.group for part in gateway.bundle.site.parts for node in part.nodes}

    def act(text: str, node: str) -> None:
        if text.startswith("install.sh --apply"):
            shutil.copytree(tmp_path / "out/tiny" / node, gateway.trees[node], dirs_exist_ok=True)
        elif text.startswith("stop the engine of "):
            gateway.stop(groups[node], node)
        elif text.startswith("start the engine of "):
            gateway.launch(groups[node], node)
        elif text.startswith("/opt/sparkgen/proxy.sh "):
            gateway.script(*text.split())
        elif text.startswith("wait until these serve"):
            until(lambda: gateway.answers(groups[node]), SECONDS)
        else:
            assert text.startswith("copy the folder"), text

    with measured(lambda: gateway.complete("tiny")[0] == 200, SECONDS) as downtime:
        for text, node in steps(review):
            act(text, node)
    change = "a setting of both pairs is changed as diff says"
    record(ENGINE, change, "the longest time between two answers", downtime.seconds, MINUTE)
    assert downtime.seconds < MINUTE
    words = (gateway.trees["spark3"] / "opt/sparkgen/groups/chat-b/compose.yaml").read_text()
    assert '"--parallel"\n      - "1"\n' in words, words
    await_both(gateway)


def load(gateway: Gateway, count: int) -> Load:
    url = f"{gateway.url}/v1/chat/completions"
    return Load(url, {"model": "tiny", "max_tokens": 16}, count, CLIENTS, SECONDS, gateway.key)


def places(gateway: Gateway) -> list[list[str]]:
    """Clients are on a node of each pair."""
    return [gateway.within(name) for name in ("spark2", "spark4")]
