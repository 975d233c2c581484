"""The gateway: nginx with njs and the generated configuration, in front of fake engines.

None of it reaches a network: it runs where there is only a loopback interface.
"""

import json
import os
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from conftest import Command
from draws import sample
from gateway_node import ACTIVE, FOLDER, ROUTES, SITE, Node, started
from releases import bundles
from waiting import until

import generator
from generator.services.gateway import routes


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with started(tmp_path_factory.mktemp("gateway")) as node:
        yield node


@pytest.fixture
def gateway(whole: Node) -> Node:
    """The node with all engines running."""
    whole.restore()
    return whole


def running(gateway: Node) -> float:
    """The number of requests that both replicas have."""
    return sum(gateway.sample("running", name) or 0 for name in ("chat", "chat-b"))


# Keys and paths


@pytest.mark.parametrize("key", ["", "sk-wrong", "secret-vllm_api_key"])
def test_wrong_key(gateway: Node, key: str) -> None:
    answer = gateway.ask("/v1/models", key=key)
    assert (answer.status, answer.code) == (401, "invalid_api_key")


@pytest.mark.parametrize("route", ACTIVE)
def test_health_and_metrics_need_no_key(gateway: Node, route: str) -> None:
    """Metrics of an engine that has a key are read with it."""
    answer = gateway.ask(f"/metrics/{route}", key="")
    own = "Bearer secret-vllm_api_key" if ROUTES[route].key else None
    assert (answer.status, answer.data) == (200, {"metrics": ROUTES[route].names[0], "key": own})
    assert gateway.ask(f"/health/{route}", key="").status == 200
    assert gateway.ask(f"/health/{route}", {}, key="").status == 401


def test_chat_page_is_a_client(gateway: Node) -> None:
    """It has its own key, among the node's secrets."""
    script = ("/opt/sparkgen/web-ui.sh", "--prepare")
    gateway.run("mkdir", "-p", "/run/sparkgen-web-ui")
    gateway.run(*script)
    words = gateway.run("cat", "/run/sparkgen-web-ui/env").splitlines()
    assert "OPENAI_API_KEY=secret-web_ui_api_key" in words


def test_limits_of_a_client(gateway: Node) -> None:
    """A client gets its models and its number of requests, and others are refused."""
    bob = gateway.add("bob", "models=assistant", "concurrent=2")
    listed = gateway.ask("/v1/models", key=bob).data["data"]
    assert [model["id"] for model in listed] == ["assistant"]
    body = {"model": "qwen3-embedding-8b", "input": "hello"}
    answer = gateway.ask("/v1/embeddings", body, bob)
    assert (answer.status, answer.code) == (403, "model_not_allowed")
    gateway.stopped("chat")
    gateway.stopped("chat-b")
    with subprocess.Popen(gateway.load(2, 2, key=bob), stdout=subprocess.DEVNULL):
        until(lambda: running(gateway) == 2)
        answer = gateway.ask("/v1/chat/completions", {"model": "assistant"}, bob)
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")
        gateway.restore()
    assert gateway.ask("/v1/chat/completions", {"model": "assistant"}, bob).status == 200


# Routes


def test_request_reaches_its_engine_unchanged(gateway: Node) -> None:
    """With the engine's key and none of the client's, byte for byte."""
    body = b'{"top_k": 7, "z":1.50 , "model" :"assistant","messages":[{"content":"\xc3\xa9"}]}'
    names = ("X-Api-Key: mine", "X-Trace: 1", "Content-Type: application/json")
    more = [word for name in names for word in ("--header", name)]
    answer = gateway.ask("/v1/chat/completions?a=b%20c", body, None, *more)
    assert (answer.status, answer.engine in ("chat", "chat-b")) == (200, True)
    assert gateway.received(answer.engine) == body
    last = gateway.of_engine(answer.engine, "/last")
    assert last["path"] == "/v1/chat/completions?a=b%20c"
    assert last["headers"]["authorization"] == "Bearer secret-vllm_api_key"
    assert (last["headers"]["x-trace"], "x-api-key" in last["headers"]) == ("1", False)
    answer = gateway.ask("/v1/embeddings", {"model": "qwen3-embedding-8b", "input": "hello"})
    assert (answer.status, answer.engine) == (200, "embed")
    assert "authorization" not in gateway.of_engine("embed", "/last")["headers"]
    (alias,) = SITE.parts[0].model.aliases
    assert gateway.ask("/v1/chat/completions", {"model": alias}).status == 200


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/rerank"),
        *("/rerank", "/v1/score", "/score", "/tokenize", "/detokenize", "/v1/audio/speech"),
    ],
)
def test_paths_of_all_engines(gateway: Node, path: str) -> None:
    answer = gateway.ask(path, {"model": "assistant", "x": 1})
    assert answer.status == 200
    assert gateway.of_engine(answer.engine, "/last")["path"] == path


def test_form_with_a_file(gateway: Node, tmp_path: Path) -> None:
    """The model is a field of the form, before or after a file that contains another one."""
    file = tmp_path / "sound.wav"
    file.write_bytes(b'RIFF\r\nname="model"\r\n\r\nother\r\n' + bytes(range(256)) * 100)
    within = f"/proc/{os.getpid()}/root{file}"
    for fields in (("model=assistant", f"file=@{within}"), (f"file=@{within}", "model=assistant")):
        options = [word for field in fields for word in ("--form", field)]
        answer = gateway.ask("/v1/audio/transcriptions", None, None, *options)
        assert answer.status == 200, answer.text
        assert file.read_bytes() in gateway.received(answer.engine)
    twice = ("--form", "model=assistant", "--form", "model=other")
    assert gateway.ask("/v1/audio/transcriptions", None, None, *twice).status == 400


def test_response_is_asked_where_it_was_made(gateway: Node) -> None:
    for _ in range(4):
        made = gateway.ask("/v1/responses", {"model": "assistant", "input": "hello"})
        own = made.data["id"]
        seen = [gateway.ask(f"/v1/responses/{own}").engine for _ in range(3)]
        seen.append(gateway.ask(f"/v1/responses/{own}/cancel", {}).engine)
        again = {"model": "assistant", "input": "more", "previous_response_id": own}
        seen.append(gateway.ask("/v1/responses", again).engine)
        assert set(seen) == {made.engine}
    answer = gateway.ask("/v1/responses/resp_unknown")
    assert (answer.status, answer.code) == (404, "not_found")


def test_models(gateway: Node) -> None:
    """All names of the bundle, with what the engines say of them and whether they are loaded."""
    listed = {model["id"]: model for model in gateway.ask("/v1/models").data["data"]}
    assert {name: model["loaded"] for name, model in listed.items()} == {
        "assistant": True,
        "helper": True,
        "qwen3-embedding-8b": True,
        "gpt-oss-20b": False,
    }
    assert listed["assistant"]["max_model_len"] == 4096
    assert gateway.ask("/v1/models/assistant").data == listed["assistant"]
    assert gateway.ask("/v1/models/nobody").status == 404


def test_engine_that_lists_many_adapters(gateway: Node) -> None:
    """It is ready even if the gateway's memory has no room for its list, or for the other's."""
    body = {"model": "adapter-7", "messages": []}
    gateway.adapters("chat", 5000)
    until(lambda: gateway.ask("/v1/chat/completions", body).engine == "chat", interval=0.1)
    gateway.adapters("chat", 80_000)
    until(lambda: gateway.ask("/v1/chat/completions", body).status == 404, interval=0.1)
    assert gateway.sample("up", "chat") == 1
    gateway.adapters("chat", 0)


@pytest.mark.parametrize("name", ["nobody", "constructor", "__proto__", "toString", "", "a\nb"])
def test_unknown_model(gateway: Node, name: str) -> None:
    answer = gateway.ask("/v1/chat/completions", {"model": name, "messages": []})
    assert (answer.status, answer.code) == (404, "model_not_found")
    assert "assistant, helper, qwen3-embedding-8b, gpt-oss-20b" in answer.message


def test_balance(gateway: Node) -> None:
    found = gateway.loaded(100, 16)
    assert {status for status, *_ in found} == {200}
    assert all(whole for *_, whole, _ in found)
    assert min(Counter(engine for _, engine, *_ in found).values()) >= 25


# Failures


def test_engine_that_is_killed_under_load(gateway: Node) -> None:
    """Of 200 requests, only those are lost that the engine had."""
    with subprocess.Popen(gateway.load(200, 16, 60), stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout
        assert client.stdout.readline() == "first\n"
        gateway.kill("chat-b")
        found = json.loads(client.stdout.read())
    assert len(found) == 200
    failed = [each for each in found if each[0] != 200]
    assert {json.loads(each[4])["error"]["code"] for each in failed} <= {"engine_failed"}
    lost = [each for each in found if not each[3]]
    assert len(lost) <= 16
    assert all(begun for status, _, begun, *_ in lost if status == 200)
    assert Counter(engine for _, engine, *_ in found)["chat"] > 100


def test_replica_is_used_as_soon_as_it_is_back(gateway: Node) -> None:
    gateway.kill("chat")
    assert {status for status, *_ in gateway.loaded(8, 4)} == {200}
    gateway.kill("chat-b")
    gateway.engine("chat")
    until(lambda: gateway.chat("hello").status == 200, interval=0.1)
    assert {(status, engine) for status, engine, *_ in gateway.loaded(8, 2)} == {(200, "chat")}


def test_replica_that_hangs_gets_no_requests(gateway: Node) -> None:
    """Within 10 s it is left out; what it has waits, and it is used again once it goes on."""
    gateway.stopped("chat")
    start = time.monotonic()
    until(lambda: gateway.sample("up", "chat") == 0, interval=0.1)
    noticed = time.monotonic() - start
    assert {engine for _, engine, *_ in gateway.loaded(20, 4)} == {"chat-b"}
    gateway.restore()
    assert {engine for _, engine, *_ in gateway.loaded(40, 8)} == {"chat", "chat-b"}
    # Far above the limit, for a busy machine, and far below what a request may take.
    assert noticed < 60


@pytest.mark.parametrize("fault", ["reset", "half"])
def test_request_that_has_begun_is_sent_once(gateway: Node, fault: str) -> None:
    """The client learns that it is not sent again, and official clients don't do so either.

    The engine gets no others, unless it is started again.
    """
    gateway.restart("chat", "chat-b")
    before = sum(int(gateway.of_engine(name, "/requests")) for name in ("chat", "chat-b"))
    answer = gateway.chat(fault)
    assert (answer.status, answer.code) == (502, "engine_failed")
    assert answer.headers["x-should-retry"] == "false"
    after = sum(int(gateway.of_engine(name, "/requests")) for name in ("chat", "chat-b"))
    assert after == before + 1
    assert len({engine for _, engine, *_ in gateway.loaded(20, 4)}) == 1


def faults(draw: random.Random) -> Iterator[bytes]:
    """Some answers that fail, each in another way."""
    head = b"HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
    body = b'{"choices": [{"message": {"content": "a"}}]}' * draw.randrange(1, 40)
    whole = head % (200, b"application/json", len(body)) + body
    page = b"<html>of another program</html>"
    chunks = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    found = [
        draw.randbytes(draw.randrange(1, 200)),
        whole[: draw.randrange(1, whole.index(b"\r\n\r\n"))],
        whole[: draw.randrange(whole.index(b"\r\n\r\n") + 4, len(whole))],
        head % (draw.randrange(500, 600), b"application/json", len(body)) + body,
        head % (200, b"application/json", 0),
        head % (200, b"text/html; charset=utf-8", len(page)) + page,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        chunks + b"7\r\ndata: a"[: draw.randrange(1, 9)],
        # An encrypted port says so.
        b"\x15\x03\x01\x00\x02\x02\x46",
    ]
    return iter(draw.sample(found, min(sample(3), len(found))))


@pytest.mark.drawn
def test_replica_whose_answers_fail_gets_few_requests(gateway: Node) -> None:
    """Once three have failed, the other replica gets the requests, however it fails."""
    draw = random.Random(time.time_ns())
    for fault in faults(draw):
        failing, other = draw.sample(["chat", "chat-b"], 2)
        gateway.restart("chat", "chat-b")
        # The one that failed before must be trusted again, since it gets the requests now.
        until(lambda: len({engine for _, engine, *_ in gateway.loaded(16, 8)}) == 2)
        gateway.fail(failing, fault)
        found = gateway.loaded(60, 4)
        # Those that run when the third one fails may fail as well.
        assert sum(status != 200 or not whole for status, _, _, whole, _ in found) <= 3 + 3, fault
        assert {engine for _, engine, *_ in gateway.loaded(20, 4)} == {other}, fault
        gateway.restart(failing)


def test_replica_that_begins_no_answer_gets_no_requests(gateway: Node) -> None:
    """It answers whether it is ready, but nothing else for ten seconds."""
    gateway.restart("chat", "chat-b")
    gateway.fail("chat", b"never")
    argv = gateway.load(20, 20)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as client:
        time.sleep(11)
        assert {engine for _, engine, *_ in gateway.loaded(40, 30)} == {"chat-b"}
        gateway.fail("chat", b"")
        assert client.stdout
        found = json.loads(client.stdout.read())
    assert {(status, whole) for status, _, _, whole, _ in found} == {(200, True)}
    assert {engine for _, engine, *_ in gateway.loaded(40, 8)} == {"chat", "chat-b"}


def test_what_is_not_http_does_not_look_like_an_answer(gateway: Node) -> None:
    """To nginx it is HTTP/0.9, which has no head, and clients break off."""
    answer = gateway.chat("garbage")
    assert (answer.status, answer.is_whole) == (0, False)


@pytest.mark.parametrize(("word", "status"), [("failing", 500), ("busy", 429)])
def test_errors_of_engines_are_passed_on(gateway: Node, word: str, status: int) -> None:
    answer = gateway.chat(word)
    assert (answer.status, answer.message) == (status, "of the engine")


def test_stream_is_passed_on(gateway: Node) -> None:
    answer = gateway.chat("hello", stream=True)
    assert answer.headers["content-type"] == "text/event-stream"
    events = [line for line in answer.text.splitlines() if line]
    assert events[-1] == "data: [DONE]"
    assert (answer.is_whole, len(events)) == (True, 5)


def test_stream_that_is_cut_does_not_look_complete(gateway: Node) -> None:
    answer = gateway.chat("cut", stream=True)
    assert (answer.status, answer.is_whole) == (200, False)
    assert "[DONE]" not in answer.text


def test_engine_does_not_send_clients_elsewhere(gateway: Node) -> None:
    """A header of its answer can't have nginx answer with a page of its own in its place."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
    for name in ("chat", "chat-b"):
        gateway.fail(name, head + b"X-Accel-Redirect: /proxy/metrics\r\n\r\n{}")
    answer = gateway.chat("hello")
    assert (answer.status, answer.text) == (200, "{}")
    for name in ("chat", "chat-b"):
        gateway.fail(name, b"")


def test_client_that_leaves_ends_its_request(gateway: Node) -> None:
    gateway.stopped("chat")
    gateway.stopped("chat-b")
    body = {"model": "assistant", "messages": []}
    assert gateway.ask("/v1/chat/completions", body, None, "--max-time", "1").status == 0
    until(lambda: 'end="left"' in gateway.log)
    until(lambda: running(gateway) == 0)


def test_no_engine_answers(gateway: Node) -> None:
    """Clients get 503 and an explanation until an engine is back."""
    gateway.kill("embed")
    body = {"model": "qwen3-embedding-8b", "input": "hello"}
    for _ in range(3):
        answer = gateway.ask("/v1/embeddings", body)
        assert (answer.status, answer.headers["retry-after"]) == (503, "30")
        assert "No engine of 'qwen3-embedding-8b' answers" in answer.message
    gateway.engine("embed")
    until(lambda: gateway.ask("/v1/embeddings", body).status == 200, interval=0.1)


def test_request_for_a_model_that_is_not_loaded(gateway: Node) -> None:
    """The error names the alternative that is loaded, until the requested model is loaded."""
    body = {"model": "gpt-oss-20b", "messages": [{"role": "user", "content": "hello"}]}
    before = gateway.of_engine("embed", "/requests")
    answer = gateway.ask("/v1/chat/completions", body)
    assert (answer.status, answer.headers["retry-after"]) == (503, "30")
    assert "'gpt-oss-20b' is not loaded: its nodes serve 'qwen3-embedding-8b'" in answer.message
    assert gateway.of_engine("embed", "/requests") == before
    gateway.kill("embed")
    gateway.engine("coder")
    try:
        until(lambda: gateway.ask("/v1/chat/completions", body).status == 200, interval=0.1)
        question = {"model": "qwen3-embedding-8b", "input": "hello"}
        until(lambda: "'gpt-oss-20b' now" in gateway.ask("/v1/embeddings", question).text)
    finally:
        gateway.kill("coder")


def test_worker_that_dies_forgets_its_requests(gateway: Node) -> None:
    """Its streams break, but they don't count for ever."""
    gateway.stopped("chat")
    gateway.stopped("chat-b")
    argv = gateway.load(8, 8)
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
        until(lambda: running(gateway) == 8)
        for worker in gateway.workers:
            os.kill(int(worker), 9)
        client.kill()
        client.wait()
    gateway.restore()
    until(lambda: running(gateway) == 0)


def test_drain(gateway: Node) -> None:
    """No request reaches an engine that is drained, and the script waits for those that it has."""
    with subprocess.Popen(gateway.load(60, 4), stdout=subprocess.PIPE, text=True) as client:
        gateway.run("/opt/sparkgen/proxy.sh", "drain", "chat")
        before = gateway.of_engine("chat", "/requests")
        assert client.stdout
        found = json.loads(client.stdout.read())
    assert {(status, whole) for status, _, _, whole, _ in found} == {(200, True)}
    assert {engine for _, engine, *_ in gateway.loaded(20, 4)} == {"chat-b"}
    assert gateway.of_engine("chat", "/requests") == before
    gateway.run("/opt/sparkgen/proxy.sh", "drain", "chat-b")
    assert "is about to be stopped" in gateway.chat("hello").message
    for name in ("chat", "chat-b"):
        gateway.run("/opt/sparkgen/proxy.sh", "undrain", name)
    until(lambda: gateway.chat("hello").status == 200)


def test_reload_cuts_no_stream(gateway: Node) -> None:
    with subprocess.Popen(gateway.load(60, 8), stdout=subprocess.PIPE, text=True) as client:
        for number in range(3):
            gateway.add(f"client-{number}")
        assert client.stdout
        found = json.loads(client.stdout.read())
    assert {(status, whole) for status, _, _, whole, _ in found} == {(200, True)}


def test_reload_takes_up_new_files_and_cuts_no_stream(tmp_path: Path) -> None:
    """Other paths and routes count at once; an engine that is drained stays so unless it goes."""
    folder = "/opt/sparkgen/proxy"
    with started(tmp_path) as node:
        node.run("sh", "-c", "cp -r $0 /run/own && mount --bind /run/own $0", folder)
        node.run("/opt/sparkgen/proxy.sh", "drain", "chat-b")
        node.run("sh", "-c", "echo 'gone 9' >>/run/sparkgen-proxy/nginx/drained")
        with subprocess.Popen(node.load(40, 8, 8), stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout
            assert client.stdout.readline() == "first\n"
            # Another file in the same place, as install.sh makes it.
            node.run("sed", "-i", r"/POST .v1.embeddings\$/d", f"{folder}/proxy.conf")
            node.run("sed", "-i", "s/helper/other/", f"{folder}/routes.json")
            node.reload()
            found = json.loads(client.stdout.read())
        assert {(status, whole) for status, _, _, whole, _ in found} == {(200, True)}
        assert node.ask("/v1/embeddings", {"model": "qwen3-embedding-8b"}).status == 404
        assert node.chat("hello", model="helper").status == 404
        assert node.chat("hello", model="other").engine == "chat"
        drained = node.run("cat", "/run/sparkgen-proxy/nginx/drained")
        assert [line.split()[0] for line in drained.splitlines()] == ["chat-b"]


# What is seen


def test_log_and_metrics(gateway: Node) -> None:
    """One line for each request, and neither has a key or what was said."""
    said = "nobody-may-read-this"
    engine = gateway.chat(said, stream=True).engine
    gateway.chat("cut", stream=True)
    until(lambda: f'model="assistant" engine="{engine}" first="0.' in gateway.log)
    until(lambda: "upstream prematurely closed connection" in gateway.log)
    metrics = gateway.ask("/proxy/metrics", key="").text
    for label in ('client="alice"', 'model="assistant"', f'engine="{engine}"', 'status="200"'):
        assert label in metrics
    assert gateway.sample("first_token_seconds_count", engine)
    for text in (gateway.log, metrics):
        assert said not in text
        assert gateway.key not in text
        assert "secret-vllm" not in text


# What changes for those who have it


def test_limits_follow_from_context_and_published_prompts() -> None:
    """Of engines of which nothing is published, from what every model reads in a second."""
    for part in SITE.parts:
        route, speed = ROUTES[part.group], part.memory and part.memory.prefill
        assert speed
        reading = (part.model.context_length or 0) / speed.least
        assert 299 + 4 * reading <= route.stream_seconds + 1 <= 301 + 4 * reading
        assert route.figures == speed.figures
    text = FOLDER.bundle.file.read_text().replace(", args: {runner: pooling}", "")
    text = text.replace("name: vllm, version: 0.33.0", "name: sglang, version: 0.5.23")
    site = generator.parse(text.replace("vllm/vllm-openai:v0.33.0", "sglang:v0.5.23")).site
    assert site
    (route, *_) = routes(site, "spark5")
    assert (route.figures, route.stream_seconds) == (0, 300 + 131072 // 100)


def test_diff_says_what_clients_meet(sparkgen: Command, tmp_path: Path) -> None:
    """Another balance takes a reload, during which everything is answered."""
    text, site, out = FOLDER.bundle.file.read_text(), tmp_path / "site.yaml", tmp_path / "out"
    site.write_text(re.sub(r"  (gateway|web_ui): .*\n", "", text))
    other = text.replace("{node: spark5}", "{node: spark5, balance: prefix}")
    for now, change in ((text, "start"), (other, "reload")):
        sparkgen("build", site, "--out", out, cwd=tmp_path)
        site.write_text(now)
        output = sparkgen("diff", "--stat", site, "--out", out, cwd=tmp_path).out
        assert f"systemctl {change} sparkgen-proxy: spark5" in output
    assert "nobody answers" not in output


def test_diff_of_a_bundle_with_litellm(sparkgen: Command, tmp_path: Path) -> None:
    """No engine restarts, and what clients meet is said."""
    site, out = FOLDER.bundle.file, tmp_path / "out"
    sparkgen("build", site, "--out", out, cwd=tmp_path)
    bundle = out / "groups-gateway"
    written = json.loads((bundle / "MANIFEST.json").read_text())
    for name in ("etc/systemd/system/sparkgen-gateway.service", "opt/sparkgen/litellm.yaml"):
        (bundle / "spark5" / name).write_text("")
        change = "systemctl daemon-reload, then restart the gateway"
        entry = {"mode": "0644", "sha256": sha256(b"").hexdigest(), "change": change}
        written["files"][f"spark5/{name}"] = entry
    (bundle / "MANIFEST.json").write_text(json.dumps(written))
    output = sparkgen("diff", "--stat", site, "--out", out, cwd=tmp_path).out
    assert "nginx answers in place of LiteLLM: other texts of errors" in output, output
    assert "stop the engine" not in output


def test_diff_of_the_last_release(sparkgen: Command, tmp_path: Path) -> None:
    """Its bundle, as it is on disk, against the same site today."""
    files, text = bundles("0.2.0")["three-models"]
    for name, (content, _) in files.items():
        file = tmp_path / "out/three-models" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    site = tmp_path / "three-models.yaml"
    site.write_text(text)
    output = sparkgen("diff", "--stat", site, cwd=tmp_path).out
    assert "nginx answers in place of LiteLLM: other texts of errors" in output, output


def test_conversation_stays_with_one_replica(tmp_path: Path) -> None:
    """By its first user's message, as long as that replica is there."""
    with started(tmp_path, [('"balance": "least"', '"balance": "prefix"')]) as node:
        system = {"role": "system", "content": "You help."}
        seen = []
        for number in range(12):
            talk = [system, {"role": "user", "content": f"question {number}"}]
            more = [*talk, {"role": "assistant", "content": "so"}, {"role": "user", "content": "?"}]
            bodies = ({"model": "assistant", "messages": each} for each in (talk, more, talk))
            engines = {node.ask("/v1/chat/completions", body).engine for body in bodies}
            assert len(engines) == 1
            seen.extend(engines)
        assert {*seen} == {"chat", "chat-b"}
        node.kill(seen[0])
        talk = [system, {"role": "user", "content": "question 0"}]
        answer = node.ask("/v1/chat/completions", {"model": "assistant", "messages": talk})
        assert (answer.status, answer.engine) == (200, ({"chat", "chat-b"} - {seen[0]}).pop())


def test_request_that_is_not_answered_in_time(tmp_path: Path) -> None:
    """It is not sent to the other replica, and the client is told so."""
    limits = [("proxy_read_timeout 3600s", "proxy_read_timeout 1s")]
    with started(tmp_path, limits) as node:
        for name in ("chat", "chat-b"):
            node.fail(name, b"never")
        answer = node.chat("hello")
        assert (answer.status, answer.code) == (504, "timeout")
        assert answer.headers["x-should-retry"] == "false"
        assert {node.sample("running", name) or 0 for name in ("chat", "chat-b")} == {0}
