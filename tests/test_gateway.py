"""The gateway: nginx and LiteLLM with the generated configuration, in front of fake engines.

None of it reaches a network: it runs where there is only a loopback interface. Tests that do not
need LiteLLM itself put another program in its place, which echoes the requests that it receives.
"""

import json
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from bundles import IN_GROUPS, composed_service
from conftest import Command
from programs import require, require_root
from proxied import LITELLM, entering, give_litellm, is_up, machine, require_litellm
from waiting import PATIENCE, until

from generator.services.gateway import Gateway, routes
from generator.services.proxy import Proxy
from generator.verify.litellm import complaints

FOLDER = next(
    folder
    for folder in IN_GROUPS
    if folder.bundle.name == "golden-groups-gateway" and folder.name == Gateway.of(folder.site).node  # type: ignore[union-attr]
)
SITE = FOLDER.site
ACTIVE = [part.group for part in SITE.parts if part.is_active]
PROGRAM = (Path(__file__).parent / "fake_engine.py").read_text()

# Sends a number of requests, some of them in parallel, and prints for each its status, who answered
# and whether the answer is complete; reports before that when the first part of them is done.
_LOAD = """\
import http.client, json, sys, threading
from concurrent.futures import ThreadPoolExecutor
host, port, key = sys.argv[1:4]
count, width, first = map(int, sys.argv[4:])
done, lock = [], threading.Lock()

def ask(number):
    body = {"model": "assistant", "messages": [{"role": "user", "content": "slow"}]}
    body["stream"] = number % 2 == 0
    connection = http.client.HTTPConnection(host, int(port), timeout=600)
    key_of_client = {"Authorization": f"Bearer {key}"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), key_of_client)
    answer = connection.getresponse()
    text = answer.read().decode()
    begun = '"delta"' in text
    whole = "[DONE]" in text if begun else '"finish_reason":"stop"' in text
    with lock:
        route = answer.headers["x-litellm-model-id"]
        done.append([answer.status, route, begun, whole, text if answer.status != 200 else ""])
        if len(done) == first:
            print("first", flush=True)

with ThreadPoolExecutor(width) as executor:
    list(executor.map(ask, range(count)))
print(json.dumps(done))
"""


@dataclass
class Node:
    """The gateway's node, with all engines on the loopback interface of its namespaces."""

    holder: int
    url: str
    stack: ExitStack
    folder: Path
    engines: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    litellm: subprocess.Popen[bytes] | None = None
    key: str = ""

    def run(self, *argv: str) -> str:
        """Run a program on the node; returns its output."""
        enter = entering(self.holder)
        done = subprocess.run([*enter, *argv], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, name: str, argv: list[str], **more: Any) -> subprocess.Popen[bytes]:
        """Start a program on the node that runs until the tests end."""
        log = self.stack.enter_context((self.folder / name).open("a"))
        enter = entering(self.holder)
        process = subprocess.Popen([*enter, *argv], stdout=log, stderr=log, **more)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def engine(self, route: str) -> None:
        """Start an engine, and wait until it answers."""
        target = next(each for each in routes(SITE) if each.engine == route)
        address, _, port = target.url.removeprefix("http://").partition(":")
        argv = ["python3", "-c", PROGRAM, address, port, target.name]
        self.engines[route] = self.start(route, argv)
        until(lambda: self.tried(f"{target.url}/health"))

    def engines_all(self) -> None:
        """Start all engines that do not run."""
        for route in ACTIVE:
            if self.engines[route].poll() is not None:
                self.engine(route)

    def kill(self, route: str) -> None:
        """Kill an engine."""
        self.engines[route].kill()
        self.engines[route].wait()

    def tried(self, url: str) -> bool:
        """Whether a URL answers."""
        argv = [*entering(self.holder), "curl", "--silent", "--fail", "--max-time", "5", url]
        return subprocess.run(argv, capture_output=True).returncode == 0

    def ask(
        self, path: str, body: Mapping[str, Any] | None = None, key: str | None = None
    ) -> tuple[int, str, dict[str, str]]:
        """Status, text and headers of the answer to a client; status 0 if there is none."""
        key = self.key if key is None else key
        options = ["--header", f"Authorization: Bearer {key}"] if key else []
        if body is not None:
            options += ["--header", "Content-Type: application/json", "--data", json.dumps(body)]
        base = ("curl", "--silent", "--path-as-is", "--max-time", "300", "--include")
        # If a stream is cut, curl fails with its own error.
        argv = [*entering(self.holder), *base, *options, self.url + path]
        output = subprocess.run(argv, capture_output=True, timeout=PATIENCE).stdout.decode()
        head, _, text = output.partition("\r\n\r\n")
        if not head:
            return 0, "", {}
        first, *lines = head.splitlines()
        parts = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in parts}
        return int(first.split()[1]), text, headers

    def chat(self, text: str, **more: Any) -> tuple[int, str, dict[str, str]]:
        """The answer to a chat request."""
        messages = [{"role": "user", "content": text}]
        return self.ask("/v1/chat/completions", {"model": "assistant", "messages": messages} | more)

    def of_engine(self, route: str, path: str) -> Any:
        """What an engine itself returns at a path."""
        target = next(each for each in routes(SITE) if each.engine == route)
        return json.loads(self.run("curl", "--silent", target.url + path))


def started(folder: Path, stack: ExitStack, program: Path | None) -> Node:
    """The node with nginx, its engines and a client's key; the caller starts the gateway."""
    require("curl", "ip", "nginx", "nsenter", "unshare")
    require_root()
    tree, proxy = FOLDER.copy(folder), Proxy.of(SITE)
    assert proxy
    heads = {route.url.removeprefix("http://").partition(":")[0] for route in routes(SITE)}
    addresses = sorted({proxy.listen, *heads} - {"127.0.0.1"})
    env = {**os.environ, "PROGRAM": str(program or "")}
    holder = subprocess.Popen(machine(tree, *addresses), env=env)
    stack.callback(holder.wait)
    stack.callback(holder.kill)
    until(lambda: is_up(holder.pid))
    node = Node(holder.pid, proxy.url, stack, folder)
    for route in ACTIVE:
        node.engine(route)
    node.run("/opt/sparkgen/gateway.sh")
    node.key = node.run("/opt/sparkgen/proxy.sh", "add", "alice").strip()
    node.run("/opt/sparkgen/proxy.sh", "--prepare")
    nginx = node.start("nginx", ["nginx", "-c", "/opt/sparkgen/proxy.conf", "-g", "daemon off;"])
    # If killed, it would leave its workers behind.
    stack.callback(nginx.wait)
    stack.callback(nginx.terminate)
    return node


# nginx in front of the gateway


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with an engine in place of LiteLLM."""
    gateway = Gateway.of(SITE)
    assert gateway
    with ExitStack() as stack:
        node = started(tmp_path_factory.mktemp("front"), stack, None)
        node.start("gateway", ["python3", "-c", PROGRAM, "127.0.0.1", str(gateway.port), "gateway"])
        until(lambda: node.ask("/v1/models")[0] == 200)
        yield node


def test_clients_key_is_replaced_with_the_gateways(front: Node) -> None:
    assert front.chat("hello")[0] == 200
    last = json.loads(front.run("curl", "--silent", "http://127.0.0.1:4000/last"))
    key = front.run("cat", "/var/lib/sparkgen-gateway/key").strip()
    assert last["key"] == f"Bearer {key}"
    assert key.startswith("sk-")
    assert front.run("stat", "--format=%a", "/var/lib/sparkgen-gateway/key").strip() == "600"
    known = front.run("cat", "/run/sparkgen-gateway/env").splitlines()
    assert known == [f"LITELLM_MASTER_KEY={key}", "VLLM_API_KEY=secret-vllm_api_key"]


@pytest.mark.parametrize("key", ["", "sk-wrong", "secret-vllm_api_key"])
def test_wrong_key(front: Node, key: str) -> None:
    status, text, _ = front.ask("/v1/models", key=key)
    assert (status, json.loads(text)["error"]["code"]) == (401, "invalid_api_key")


def test_master_key_is_not_accepted_from_clients(front: Node) -> None:
    key = front.run("cat", "/var/lib/sparkgen-gateway/key").strip()
    assert front.ask("/v1/models", key=key)[0] == 401


@pytest.mark.parametrize(
    "path",
    [
        "/key/generate",
        "/model/new",
        "/ui/",
        "/v1/../config/update",
        "/health/readiness",
        "/metrics",
    ],
)
def test_administration_is_closed(front: Node, path: str) -> None:
    assert front.ask(path, {})[0] == 404
    assert front.ask(path)[0] == 404


@pytest.mark.parametrize("route", ACTIVE)
def test_health_and_metrics_need_no_key(front: Node, route: str) -> None:
    name = next(each.name for each in routes(SITE) if each.engine == route)
    status, text, _ = front.ask(f"/metrics/{route}", key="")
    assert (status, json.loads(text)) == (200, {"metrics": name, "key": None})
    assert front.ask(f"/health/{route}", key="")[0] == 200
    assert front.ask(f"/health/{route}", {}, key="")[0] == 404


def test_chat_page_is_a_client(front: Node) -> None:
    """It has its own key, and says so if that is missing."""
    script = ("/opt/sparkgen/web-ui.sh", "--prepare")
    front.run("mkdir", "-p", "/run/sparkgen-web-ui")
    done = subprocess.run([*entering(front.holder), *script], capture_output=True, text=True)
    assert "sudo /opt/sparkgen/proxy.sh add web-ui" in done.stderr
    key = front.run("/opt/sparkgen/proxy.sh", "add", "web-ui").strip()
    front.run(*script)
    assert f"OPENAI_API_KEY={key}" in front.run("cat", "/run/sparkgen-web-ui/env").splitlines()


def test_container(tmp_path: Path) -> None:
    """It mounts three paths of the node read-only, and writes nothing."""
    file = "/opt/sparkgen/gateway.yaml"
    service = composed_service(FOLDER.copy(tmp_path), "sparkgen-gateway", "gateway", file)
    gateway = Gateway.of(SITE)
    assert gateway
    assert (service["image"], service["cap_drop"]) == (gateway.image, ["ALL"])
    assert (service["read_only"], "cap_add" in service) == (True, False)
    assert {mount["source"] for mount in service["volumes"]} == {
        "/opt/sparkgen/gateway_hooks.py",
        "/opt/sparkgen/litellm.yaml",
        "/run/sparkgen-gateway",
    }
    assert all(mount["read_only"] for mount in service["volumes"])
    assert not any("KEY" in name for name in service["environment"])


def test_misspelt_configuration_keys_are_detected() -> None:
    """LiteLLM's own check accepts all of them."""
    text = (FOLDER.path / "opt/sparkgen/litellm.yaml").read_text()
    assert list(complaints(text)) == []
    keys = set(re.findall(r"^ *(?:- )?([a-z_]{4,}):", text, re.MULTILINE))
    assert len(keys) >= 20
    for key in keys:
        wrong = key[:-2] + key[-1] + key[-2]
        found = list(complaints(re.sub(rf"\b{key}:", f"{wrong}:", text)))
        assert any(wrong in line for line in found), key


def test_diff_says_what_clients_meet(sparkgen: Command, tmp_path: Path) -> None:
    """A restart of the gateway is reported, unless it is new or unchanged."""
    text, site, out = FOLDER.bundle.file.read_text(), tmp_path / "site.yaml", tmp_path / "out"
    site.write_text(text.replace("  gateway: {node: spark5}\n  web_ui: true\n", ""))
    for now, met in (
        (text, False),
        (text.replace("{node: spark5}", "{node: spark5, port: 4001}"), True),
    ):
        sparkgen("build", site, "--out", out, cwd=tmp_path)
        site.write_text(now)
        output = sparkgen("diff", "--stat", site, "--out", out, cwd=tmp_path).out
        assert ("systemctl restart sparkgen-proxy: spark5 (nobody answers to " in output) == met


# LiteLLM itself


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with LiteLLM, run as in its container."""
    require_litellm()
    folder = tmp_path_factory.mktemp("whole")
    file = "/opt/sparkgen/gateway.yaml"
    service = composed_service(FOLDER.copy(folder / "read"), "sparkgen-gateway", "gateway", file)
    with ExitStack() as stack:
        node = started(folder, stack, LITELLM)
        env = {**service["environment"], "PATH": give_litellm(node.holder)}
        # If it crashes, its log says where.
        env["PYTHONFAULTHANDLER"] = "1"
        command = [*service["entrypoint"], *service["command"]]
        node.litellm = node.start("gateway", command, env=env)

        def answers() -> bool:
            check_litellm(node)
            return node.tried(f"{node.url}/health")

        until(answers, interval=0.5)
        yield node


def check_litellm(node: Node) -> None:
    """Check that it still runs; otherwise show how it ended."""
    assert node.litellm
    status = node.litellm.poll()
    assert status is None, f"{status}: {(node.folder / 'gateway').read_text()[-5000:]}"


@pytest.fixture
def running(whole: Node) -> Iterator[Node]:
    """The node with all engines running; LiteLLM must outlive the test."""
    whole.engines_all()
    yield whole
    check_litellm(whole)


@pytest.fixture
def gateway(running: Node) -> Node:
    """The node with neither replica in cooldown because of an earlier test."""
    seen: set[str] = set()

    def both() -> bool:
        found = json.loads(load(running, 8, 8))
        seen.update(str(each[1]) for each in found)
        return {"chat", "chat-b"} <= seen

    until(both, interval=0.5)
    return running


def load(node: Node, count: int, width: int) -> str:
    """The results of the given number of requests."""
    host, _, port = node.url.removeprefix("http://").partition(":")
    return node.run("python3", "-c", _LOAD, host, port, node.key, str(count), str(width), "0")


def test_routes(gateway: Node) -> None:
    """Each name reaches its engine, with the engine's key and the client's request."""
    parameters = {"top_k": 7, "chat_template_kwargs": {"enable_thinking": False}}
    status, text, headers = gateway.chat("hello", **parameters)
    route = headers["x-litellm-model-id"]
    assert (status, route in ("chat", "chat-b")) == (200, True)
    last = gateway.of_engine(route, "/last")
    assert last["key"] == "Bearer secret-vllm_api_key"
    assert parameters.items() <= last["body"].items()
    status, text, headers = gateway.ask(
        "/v1/embeddings", {"model": "qwen3-embedding-8b", "input": "hello"}
    )
    assert (status, headers["x-litellm-model-id"]) == (200, "embed")
    assert json.loads(text)["data"][0]["embedding"] == [0.5]
    assert gateway.of_engine("embed", "/last")["key"] is None
    (alias,) = SITE.parts[0].model.aliases
    question = {"model": alias, "messages": [{"role": "user", "content": "hello"}]}
    assert gateway.ask("/v1/chat/completions", question)[0] == 200
    listed = json.loads(gateway.ask("/v1/models")[1])["data"]
    assert {model["id"] for model in listed} == {alias, *(route.name for route in routes(SITE))}
    assert gateway.ask("/v1/chat/completions", {"model": "nobody", "messages": []})[0] == 400


def test_balance(gateway: Node) -> None:
    found = json.loads(load(gateway, 100, 16))
    assert {status for status, *_ in found} == {200}
    assert all(whole for *_, whole, _ in found)
    assert min(Counter(route for _, route, *_ in found).values()) >= 25


def test_stream_is_passed_on(gateway: Node) -> None:
    status, text, headers = gateway.chat("hello", stream=True)
    assert (status, headers["content-type"].split(";")[0]) == (200, "text/event-stream")
    events = [line for line in text.splitlines() if line]
    assert events[-1] == "data: [DONE]"
    assert '"finish_reason":"stop"' in events[-2]
    assert len(events) >= 4


def test_stream_that_is_cut_does_not_look_complete(gateway: Node) -> None:
    """Engines send chunks, the last of which is then missing, so the stream ends with an error."""
    status, text, _ = gateway.chat("cut", stream=True)
    assert status == 200
    last = json.loads(text.splitlines()[-2].removeprefix("data: "))
    assert "error" in last
    assert "[DONE]" not in text
    assert '"finish_reason":"stop"' not in text


def test_stream_without_an_end_of_its_own_looks_complete(gateway: Node) -> None:
    """If the end of the connection also ends the answer, nobody can tell that it was cut."""
    status, text, _ = gateway.chat("close", stream=True)
    assert status == 200
    assert '"finish_reason":"stop"' in text
    assert "[DONE]" in text


def test_engine_that_is_killed_under_load(gateway: Node) -> None:
    """Of 200 requests, only those whose answer had begun are lost."""
    host, _, port = gateway.url.removeprefix("http://").partition(":")
    argv = ("python3", "-c", _LOAD, host, port, gateway.key, "200", "16", "60")
    enter = entering(gateway.holder)
    with subprocess.Popen([*enter, *argv], stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout
        assert client.stdout.readline() == "first\n"
        gateway.kill("chat-b")
        found = json.loads(client.stdout.read())
    assert len(found) == 200
    assert [each for each in found if each[0] != 200] == []
    lost = [each for each in found if not each[3]]
    assert all(begun for _, _, begun, *_ in lost)
    assert len(lost) <= 16
    assert Counter(route for _, route, *_ in found)["chat"] > 100


def test_replicas_restart_one_after_the_other(running: Node) -> None:
    """A replica still in LiteLLM's cooldown answers once it is back, if no other does."""
    gateway = running
    until(lambda: gateway.chat("hello")[0] == 200, interval=0.2)
    gateway.kill("chat")
    assert {status for status, *_ in json.loads(load(gateway, 8, 4))} == {200}
    gateway.engine("chat")
    # What an engine lists is known for two seconds, and so is that it did not answer.
    time.sleep(2)
    gateway.kill("chat-b")
    found = json.loads(load(gateway, 8, 2))
    assert {(status, route) for status, route, *_ in found} == {(200, "chat")}


def test_failure_is_retried_on_a_replica(gateway: Node) -> None:
    def requests(*names: str) -> int:
        return sum(int(gateway.of_engine(name, "/requests")) for name in names)

    before = requests("embed")
    body = {"model": "qwen3-embedding-8b", "input": "failing"}
    assert gateway.ask("/v1/embeddings", body)[0] == 500
    assert requests("embed") == before + 1
    before = [requests("chat"), requests("chat-b")]
    assert gateway.chat("failing")[0] >= 500
    more = [
        now - then for now, then in zip([requests("chat"), requests("chat-b")], before, strict=True)
    ]
    assert min(more) >= 1
    assert sum(more) <= 4


def test_no_engine_answers(gateway: Node) -> None:
    """Clients get 503 and an explanation until an engine is back."""
    gateway.kill("embed")
    body = {"model": "qwen3-embedding-8b", "input": "hello"}
    for _ in range(3):
        status, text, headers = gateway.ask("/v1/embeddings", body)
        error = json.loads(text)["error"]
        assert (status, headers["retry-after"]) == (503, "30"), text
        assert "No engine of 'qwen3-embedding-8b' answers" in error["message"]
    gateway.engine("embed")
    assert gateway.ask("/v1/embeddings", body)[0] == 200
    for name in ("chat", "chat-b"):
        gateway.kill(name)
    for _ in range(3):
        status, text, _ = gateway.chat("hello")
        assert status == 503, text


def test_request_for_a_model_that_is_not_loaded(running: Node) -> None:
    """The error names the alternative that is loaded, until the requested model is loaded."""
    gateway = running
    body = {"model": "gpt-oss-20b", "messages": [{"role": "user", "content": "hello"}]}
    # What an engine has loaded is known for two seconds, and so is that it did not answer.
    until(lambda: gateway.ask("/v1/chat/completions", body)[0] == 503, interval=0.2)
    before = gateway.of_engine("embed", "/requests")
    status, text, headers = gateway.ask("/v1/chat/completions", body)
    error = json.loads(text)["error"]
    assert (status, headers["retry-after"]) == (503, "30")
    assert "'gpt-oss-20b' is not loaded: its nodes serve 'qwen3-embedding-8b'" in error["message"]
    assert gateway.of_engine("embed", "/requests") == before
    gateway.kill("embed")
    gateway.engine("coder")
    try:
        until(lambda: gateway.ask("/v1/chat/completions", body)[0] == 200, interval=0.2)
        question = {"model": "qwen3-embedding-8b", "input": "hello"}
        status, text, _ = gateway.ask("/v1/embeddings", question)
        assert status == 503
        assert "its nodes serve 'gpt-oss-20b' now" in json.loads(text)["error"]["message"]
    finally:
        gateway.kill("coder")


def test_gateway_needs_no_network(whole: Node) -> None:
    log = (whole.folder / "gateway").read_text()
    for word in ("raw.githubusercontent", "Name or service not known", "Temporary failure"):
        assert word not in log
