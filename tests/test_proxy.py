"""The proxy before the API: nginx itself, with the generated configuration and a fake engine."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from bundles import NODES, NodeFolder, composed_service
from programs import require, require_root
from proxied import NGINX, entering, is_up, machine, require_nginx, writable
from stand_ins import StandIns
from waiting import PATIENCE, until

from generator.services.proxy import Proxy

HEADS = [folder for folder in NODES if "proxy" in folder.site.services and folder.node.is_head]
FOLDER = next(folder for folder in HEADS if folder.bundle.name == "golden-direct-proxy")
SCRIPT = "/opt/sparkgen/proxy.sh"
HASH, OWN_HASH = (sha256(key).hexdigest() for key in (b"sk-of-alice", b"engines-own"))

# Echoes the request. A stream's second part waits until the first was seen, and a stream that is
# cut ends without its last.
_ENGINE = """\
import json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Engine(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        size = int(self.headers.get("Content-Length", 0))
        request = self.rfile.read(size).decode()
        if "stream" in request:
            return self.stream("cut" in request)
        keys = {name: self.headers[name] for name in ("Authorization", "X-Api-Key")}
        body = json.dumps({"path": self.path, "size": len(request), **keys}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_PUT = do_HEAD = do_GET

    def stream(self, is_cut):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.part(b"data: one\\n\\n")
        while not os.path.exists("/run/seen"):
            time.sleep(0.02)
        os.remove("/run/seen")
        if is_cut:
            self.close_connection = True
            return
        self.part(b"data: [DONE]\\n\\n")
        self.wfile.write(b"0\\r\\n\\r\\n")

    def part(self, text):
        self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(text), text))
        self.wfile.flush()

    def log_message(self, *args):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Engine).serve_forever()
"""

# The parts of a stream as they arrive; the engine is told when the first was seen.
_LISTENER = """\
import http.client, sys
host, port, key, body = sys.argv[1:]
connection = http.client.HTTPConnection(host, int(port), timeout=60)
connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {key}"})
answer = connection.getresponse()
while line := answer.readline():
    if line.strip():
        print(line.decode().strip(), flush=True)
        open("/run/seen", "w").close()
"""


@dataclass(frozen=True)
class Head:
    """A head in its own namespaces, with nginx and an engine that answers."""

    process: int
    nginx: subprocess.Popen[str]
    engine: subprocess.Popen[bytes]
    url: str

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a program there."""
        return subprocess.run(
            [*entering(self.process), *argv], capture_output=True, text=True, timeout=PATIENCE
        )

    def script(self, *argv: str) -> str:
        """The output of proxy.sh."""
        done = self.run(SCRIPT, *argv)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @property
    def workers(self) -> frozenset[str]:
        """The processes that answer."""
        pid = self.nginx.pid
        return frozenset(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())

    def reload(self) -> None:
        """Reload as the unit does, and wait until no earlier worker answers."""
        self.script("--prepare")
        before = self.workers
        self.nginx.send_signal(signal.SIGHUP)
        until(lambda: not before & self.workers)

    def ask(self, path: str, key: str = "", *options: str) -> tuple[int, Any]:
        """The status and the body."""
        header = ("--header", f"Authorization: Bearer {key}") if key else ()
        done = self.run(
            *(
                "curl",
                "--silent",
                "--path-as-is",
                "--max-time",
                "60",
                "--write-out",
                "\n%{http_code}",
            ),
            *(*header, *options, self.url + path),
        )
        body, _, status = done.stdout.rpartition("\n")
        return int(status), json.loads(body) if body else None


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Head]:
    require("curl", "ip", "nsenter", "unshare")
    require_nginx()
    require_root()
    tree, proxy = FOLDER.copy(tmp_path), Proxy.of(FOLDER.site)
    assert proxy
    (tree / "etc/sparkgen/secrets.env").write_text("VLLM_API_KEY=engines-own\n")
    command = machine(tree, proxy.listen)
    (tmp_path / "engine.py").write_text(_ENGINE)
    with subprocess.Popen(command) as holder:
        until(lambda: is_up(holder.pid))
        enter = entering(holder.pid)
        port = str(FOLDER.part.engine.api.port)
        program = (tmp_path / "engine.py").read_text()
        with subprocess.Popen([*enter, "python3", "-c", program, port]) as engine:
            nginx = None
            try:
                subprocess.run([*enter, SCRIPT, "--prepare"], check=True, capture_output=True)
                with (tmp_path / "log").open("w") as log:
                    # Nginx reopens its standard output, which it may only do if the file is its
                    # own.
                    nginx = subprocess.Popen([*enter, *NGINX], stdout=log, stderr=log, text=True)
                started = Head(holder.pid, nginx, engine, proxy.url)
                until(lambda: started.run("curl", "-sf", f"{proxy.url}/health").returncode == 0)
                yield started
            finally:
                for process in (nginx, engine, holder):
                    if process:
                        process.kill() if process is not nginx else process.terminate()
                        process.wait()


POST = ("--request", "POST", "--data", "{}")


def test_a_key_for_each_client(head: Head) -> None:
    assert head.ask("/v1/models")[0] == 401
    alice = head.script("add", "alice")
    bob = head.script("add", "bob")
    assert head.script("list").split() == ["alice", "bob"]
    assert head.run("stat", "--format=%a", "/etc/sparkgen/proxy.keys").stdout == "600\n"
    head.reload()
    assert head.ask("/v1/models", alice)[0] == 200
    assert head.ask("/v1/models", bob)[0] == 200
    # Anthropic's clients use another header; keys are case-sensitive, except for the scheme.
    assert head.ask("/v1/models", "", "--header", f"x-api-key: {alice}")[0] == 200
    assert head.ask("/v1/models", "", "--header", f"authorization: bearer {alice}")[0] == 200
    wrong = (
        alice.swapcase(),
        alice[:-1],
        alice + "x",
        "x" + alice,
        f"{alice}|",
        ".*",
        "engines-own",
    )
    for key in wrong:
        assert head.ask("/v1/models", key)[0] == 401, key
    assert head.ask("/v1/models", "wrong", "--header", f"x-api-key: {alice}")[0] == 401
    head.script("remove", "alice")
    head.reload()
    assert head.ask("/v1/models", alice)[0] == 401
    assert head.ask("/v1/models", bob)[0] == 200


@pytest.fixture
def key(head: Head) -> str:
    created = head.script("add", "alice")
    head.reload()
    return created


def test_paths(head: Head, key: str) -> None:
    """Keys of the list reach the engine with its own key; all other requests end here."""
    for path in ("/v1/chat/completions", "/v1/embeddings", "/v1/messages?beta=true", "/tokenize"):
        status, answer = head.ask(path, key, *POST)
        assert (status, answer["path"]) == (200, path)
        assert (answer["Authorization"], answer["X-Api-Key"]) == ("Bearer engines-own", None)
        assert head.ask(path, "", *POST)[0] == 401
    for path in ("/health", "/metrics"):
        assert head.ask(path)[0] == 200
        assert head.ask(path, "", *POST)[0] == 401
    closed = (
        *("/invocations", "/pause", "/v1/load_lora_adapter", "/v1", "/V1/chat/completions", "/"),
        *(
            "/v1/chat/completions/",
            "/v1/chat/completions/render",
            "/tokenizer",
            "/v1/models/../../pause",
        ),
        *(
            "/health/../pause",
            "/v1/chat/completions/%2e%2e/%2e%2e/load_lora_adapter",
            "/%2e/invocations",
        ),
    )
    for path in closed:
        assert head.ask(path, key, *POST)[0] == 404, path
        assert head.ask(path, "", *POST)[0] == 401, path
    for verb in ("DELETE", "PUT"):
        assert head.ask("/v1/chat/completions", key, "--request", verb)[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "//v1//models",
        "/pause/../v1/models",
        "/v1/%6dodels",
        "/x%2f../v1/models",
        "/pause/..;/v1/models",
    ],
)
def test_checked_path_is_the_one_passed_on(path: str, head: Head, key: str) -> None:
    status, answer = head.ask(path, key)
    assert status == 404 or (status, answer["path"]) == (200, "/v1/models")


def test_stream_is_not_held_back(head: Head, key: str) -> None:
    """The engine sends a second part only once the client has the first."""
    host, _, port = head.url.removeprefix("http://").partition(":")
    done = head.run("python3", "-c", _LISTENER, host, port, key, '{"stream": true}')
    assert done.stdout.splitlines() == ["data: one", "data: [DONE]"], done.stderr


def test_stream_that_breaks_off_does_not_look_complete(head: Head, key: str) -> None:
    head.run("touch", "/run/seen")
    header = f"Authorization: Bearer {key}"
    options = ("--no-buffer", "--header", header, "--data", '{"stream": "cut"}')
    done = head.run("curl", "--silent", *options, f"{head.url}/v1/chat/completions")
    # CURLE_PARTIAL_FILE, or CURLE_RECV_ERROR.
    assert (done.stdout, done.returncode in (18, 56)) == ("data: one\n\n", True)


def test_large_requests(head: Head, key: str, tmp_path: Path) -> None:
    """Pictures pass; what exceeds every limit is refused in a form that clients read."""
    for size, wanted in ((20 << 20, 200), (65 << 20, 413)):
        file = tmp_path / str(size)
        picture = '{"messages": [{"content": "%s"}]}'
        file.write_text(picture % ("A" * (size - len(picture) + 2)))
        options = ("--request", "POST", "--data-binary", f"@/proc/{os.getpid()}/root{file}")
        status, answer = head.ask("/v1/chat/completions", key, *options)
        assert status == wanted
        assert wanted != 200 or answer["size"] == size


def test_engine_is_down(head: Head, key: str) -> None:
    head.engine.kill()
    head.engine.wait()
    status, answer = head.ask("/v1/models", key)
    assert (status, answer["error"]["code"]) == (503, "unavailable")
    assert head.ask("/v1/models")[0] == 401


def test_log_names_clients_and_no_keys(head: Head, key: str, tmp_path: Path) -> None:
    head.ask("/v1/chat/completions", key, *POST)
    log = tmp_path / "log"
    until(lambda: 'alice "POST /v1/chat/completions" 200' in log.read_text())
    assert key not in log.read_text()
    assert "engines-own" not in log.read_text()


def test_keys_are_kept_as_hashes(head: Head) -> None:
    """A key is nowhere readable but where it is printed; earlier releases' keys stay valid."""
    old = "sk-of-an-earlier-release-0"
    head.run("sh", "-c", f"umask 077; echo 'bob={old}' >/etc/sparkgen/proxy.keys")
    alice = head.script("add", "alice", "models=a,b", "concurrent=4", "expires=2999-12-31")
    head.reload()
    assert head.script("list").splitlines() == [
        "bob",
        "alice models=a,b concurrent=4 expires=2999-12-31",
    ]
    for key in (alice, old):
        assert head.ask("/v1/models", key)[0] != 401
        found = head.run("grep", "-rl", key, "/etc/sparkgen", "/run/sparkgen-proxy")
        assert found.stdout == ""
    head.script("remove", "alice")
    head.reload()
    assert head.ask("/v1/models", alice)[0] == 401


def test_key_that_has_expired(head: Head) -> None:
    yesterday, today = (
        (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%d") for days in (1, 0)
    )
    keys = [head.script("add", f"until-{day}", f"expires={day}") for day in (yesterday, today)]
    head.reload()
    assert [head.ask("/v1/models", key)[0] for key in keys] == [401, 200]


# proxy.sh


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("alice\n", "line 1: write NAME sha256=HASH"),
        ("# ours\nal ice=sk-01234567890123456789\n", "line 2: write NAME sha256=HASH"),
        ("alice=short\n", "line 1: a key has 20"),
        ('alice=sk-0123456789012345";}\n', "line 1: a key has 20"),
        ("verify=sk-01234567890123456789\n", "line 1: 'verify' can't be a name"),
        (f"alice sha256={HASH} modles=a\n", "line 1: there is no 'modles=a'"),
        (f"alice sha256={HASH} concurrent=0\n", "line 1: write concurrent=NUMBER"),
        (f"alice sha256={HASH} expires=2027-02-30\n", "line 1: write expires=YYYY-MM-DD"),
        (f"alice sha256={OWN_HASH}\n", "a client has the key of the engine vllm"),
        ("a=sk-01234567890123456789\na=sk-98765432109876543210\n", "line 2: a has a key already"),
        ("a=sk-01234567890123456789\nb=sk-01234567890123456789\n", "line 2: another client has"),
    ],
)
def test_faulty_keys(text: str, complaint: str, head: Head) -> None:
    """With one wrong line, the keys stay as they were."""
    head.run("sh", "-c", f"umask 077; printf %s '{text}' >/etc/sparkgen/proxy.keys")
    before = head.run("cat", "/run/sparkgen-proxy/nginx/clients.json").stdout
    done = head.run(SCRIPT, "--prepare")
    assert done.returncode == 1
    assert complaint in done.stderr
    assert head.run("cat", "/run/sparkgen-proxy/nginx/clients.json").stdout == before


def test_keys_must_not_be_readable_by_others(head: Head) -> None:
    head.run("sh", "-c", "touch /etc/sparkgen/proxy.keys; chmod 0644 /etc/sparkgen/proxy.keys")
    assert "sudo chmod 0600" in head.run(SCRIPT, "--prepare").stderr


def test_names_are_no_patterns(head: Head) -> None:
    for name in ("a.b", "axb"):
        head.script("add", name)
    assert "has a key already" in head.run(SCRIPT, "add", "a.b").stderr
    assert "there is no client a" in head.run(SCRIPT, "remove", "a").stderr
    head.script("remove", "a.b")
    assert head.script("list") == "axb"
    assert head.run(SCRIPT, "add", "a b").returncode == 1


@pytest.mark.parametrize("value", ["", 'a"b', "a$b", "a b"])
def test_engine_key_that_nginx_cannot_pass_on(value: str, head: Head) -> None:
    head.run("sh", "-c", f"echo 'VLLM_API_KEY={value}' >/etc/sparkgen/secrets.env")
    assert "no value for VLLM_API_KEY" in head.run(SCRIPT, "--prepare").stderr


def test_script_reloads_a_running_proxy(tmp_path: Path) -> None:
    require_root()
    stand_ins = StandIns(tmp_path)
    stand_ins.add("systemctl", '#!/bin/sh\necho "$@" >>"$HOME/called"\n')
    tree = FOLDER.copy(tmp_path / "tree")
    done = subprocess.run(
        writable(tree, SCRIPT, "add", "alice"),
        env={**os.environ, **stand_ins.env},
        capture_output=True,
        text=True,
    )
    assert re.fullmatch(r"sk-[A-Za-z0-9_-]{40}\n", done.stdout), done.stderr
    called = (tmp_path / "called").read_text().splitlines()
    assert called == ["is-active --quiet sparkgen-proxy", "reload sparkgen-proxy"]


# What starts it


@pytest.mark.parametrize("folder", HEADS, ids=str)
def test_container(folder: NodeFolder, tmp_path: Path) -> None:
    """Nginx may only listen and connect, and reads two folders of the node."""
    proxy = Proxy.of(folder.site)
    assert proxy
    file = "/opt/sparkgen/proxy.yaml"
    service = composed_service(folder.copy(tmp_path), "sparkgen-proxy", "proxy", file)
    assert (service["image"], service["user"]) == (proxy.image, "101:101")
    assert (service["cap_drop"], service["read_only"]) == (["ALL"], True)
    assert "cap_add" not in service
    mounts = {mount["source"]: mount for mount in service["volumes"]}
    assert mounts.keys() == {"/opt/sparkgen/proxy", "/run/sparkgen-proxy/nginx"}
    for source, mount in mounts.items():
        assert (mount["target"], mount["read_only"]) == (source, True)
        assert not mount.get("bind", {}).get("create_host_path")


@pytest.mark.parametrize("folder", HEADS, ids=str)
def test_engine_listens_only_for_the_head(folder: NodeFolder) -> None:
    assert folder.part.engine.api.is_local
    assert "--host=127.0.0.1" in folder.command
