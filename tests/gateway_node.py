"""The gateway's node, with nginx, fake engines and a client's key on its loopback interface."""

import base64
import json
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bundles import IN_GROUPS
from programs import require, require_root
from proxied import NGINX, entering, is_up, machine, require_nginx
from waiting import PATIENCE, until

from generator.services.proxy import Proxy

FOLDER = next(
    folder
    for folder in IN_GROUPS
    if folder.bundle.name == "golden-groups-gateway" and folder.name == "spark5"
)
SITE = FOLDER.site
ACTIVE = [part.group for part in SITE.parts if part.is_active]
ENGINE = (Path(__file__).parent / "fake_engine.py").read_text()
_PROXY = Proxy.of(SITE)
assert _PROXY
PROXY = _PROXY
ROUTES = {route.engine: route for route in PROXY.routes(SITE)}

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
    status, engine, text = 0, None, ""
    try:
        answer = connection.getresponse()
        status, engine = answer.status, answer.headers["x-served-by"]
        text = answer.read().decode()
    except http.client.IncompleteRead as cut:
        text = cut.partial.decode()
    except (OSError, http.client.HTTPException):
        pass
    begun = '"delta"' in text
    whole = "[DONE]" in text if begun else '"finish_reason": "stop"' in text
    with lock:
        done.append([status, engine, begun, whole, text if status != 200 else ""])
        if len(done) == first:
            print("first", flush=True)

with ThreadPoolExecutor(width) as executor:
    list(executor.map(ask, range(count)))
print(json.dumps(done))
"""


@dataclass
class Answer:
    """What a client got; `status` is 0 if the connection broke before an answer."""

    status: int
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_whole: bool = True

    @property
    def data(self) -> Any:
        return json.loads(self.text)

    @property
    def code(self) -> Any:
        return self.data["error"]["code"]

    @property
    def message(self) -> str:
        return str(self.data["error"]["message"])

    @property
    def engine(self) -> str:
        return self.headers.get("x-served-by", "")


@dataclass
class Node:
    """The node, with the namespaces of the process `holder`, and its engines by group."""

    holder: int
    stack: ExitStack
    folder: Path
    engines: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    nginx: subprocess.Popen[bytes] | None = None
    key: str = ""

    def run(self, *argv: str) -> str:
        """Run a program on the node; returns its output."""
        enter = entering(self.holder)
        done = subprocess.run([*enter, *argv], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, name: str, *argv: str) -> subprocess.Popen[bytes]:
        """Start a program on the node that runs until the tests end."""
        log = self.stack.enter_context((self.folder / name).open("a"))
        process = subprocess.Popen([*entering(self.holder), *argv], stdout=log, stderr=log)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def engine(self, group: str) -> None:
        """Start an engine, and wait until it answers."""
        route = ROUTES[group]
        address, _, port = route.address.partition(":")
        argv = ("python3", "-c", ENGINE, address, port, route.names[0])
        self.engines[group] = self.start(group, *argv)
        until(lambda: self.answers(f"{route.url}/health"))

    def kill(self, group: str) -> None:
        """Kill an engine."""
        self.engines[group].kill()
        self.engines[group].wait()

    def stopped(self, group: str) -> None:
        """Stop an engine without ending it: it accepts connections, and says nothing."""
        self.engines[group].send_signal(signal.SIGSTOP)

    def restore(self) -> None:
        """Start all engines that don't run, and wait until nginx knows of all."""
        for group in ACTIVE:
            if group not in self.engines or self.engines[group].poll() is not None:
                self.engine(group)
            self.engines[group].send_signal(signal.SIGCONT)
        until(lambda: all(self.sample("up", group) == 1 for group in ACTIVE), interval=0.1)

    def restart(self, *replicas: str) -> None:
        """Start engines again, after which nothing is held against them."""
        for name in replicas:
            self.kill(name)
        until(lambda: not any(self.sample("up", name) for name in replicas), interval=0.1)
        self.restore()

    def answers(self, url: str) -> bool:
        """Whether a URL answers."""
        argv = [*entering(self.holder), "curl", "--silent", "--fail", "--max-time", "5", url]
        return subprocess.run(argv, capture_output=True).returncode == 0

    def ask(self, path: str, body: Any = None, key: str | None = None, *options: str) -> Answer:
        """The answer to a client; a body that is not text is sent as JSON."""
        key = self.key if key is None else key
        words = [*(["--header", f"Authorization: Bearer {key}"] if key else []), *options]
        if body is not None:
            text = body if isinstance(body, bytes) else json.dumps(body).encode()
            words += ["--header", "Content-Type: application/json"] if not options else []
            words += ["--header", "Expect:", "--data-binary", "@-"]
        else:
            text = b""
        base = ("curl", "--silent", "--path-as-is", "--max-time", "300", "--include")
        argv = [*entering(self.holder), *base, *words, PROXY.url + path]
        done = subprocess.run(argv, input=text, capture_output=True, timeout=PATIENCE)
        head, _, rest = done.stdout.decode(errors="replace").partition("\r\n\r\n")
        if not head:
            return Answer(0, is_whole=False)
        first, *lines = head.splitlines()
        parts = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in parts}
        return Answer(int(first.split()[1]), rest, headers, done.returncode == 0)

    def chat(self, text: str, **more: Any) -> Answer:
        """The answer to a chat request."""
        messages = [{"role": "user", "content": text}]
        return self.ask("/v1/chat/completions", {"model": "assistant", "messages": messages} | more)

    def load(self, count: int, width: int, first: int = 0, key: str = "") -> list[str]:
        """The program that sends the given number of requests."""
        host, _, port = PROXY.url.removeprefix("http://").partition(":")
        numbers = map(str, (count, width, first))
        return [
            *entering(self.holder),
            "python3",
            "-c",
            _LOAD,
            host,
            port,
            key or self.key,
            *numbers,
        ]

    def loaded(self, count: int, width: int) -> list[list[Any]]:
        """The results of the given number of requests."""
        done = subprocess.run(self.load(count, width), capture_output=True, timeout=PATIENCE)
        found: list[list[Any]] = json.loads(done.stdout)
        return found

    def fail(self, group: str, answer: bytes) -> None:
        """Have an engine send these bytes to all requests; none for its own answers again."""
        argv = ("curl", "--silent", "--data-binary", "@-", f"{ROUTES[group].url}/fault")
        done = subprocess.run([*entering(self.holder), *argv], input=answer, capture_output=True)
        assert done.returncode == 0

    def adapters(self, group: str, count: int) -> None:
        """Have an engine list this many adapters beside its model."""
        url = f"{ROUTES[group].url}/adapters"
        self.run("curl", "--silent", "--fail", "--data-binary", str(count), url)

    def of_engine(self, group: str, path: str) -> Any:
        """What an engine itself returns at a path."""
        return json.loads(self.run("curl", "--silent", ROUTES[group].url + path))

    def received(self, group: str) -> bytes:
        """The body of the last request that an engine got."""
        return base64.b64decode(self.of_engine(group, "/last")["body"])

    def sample(self, name: str, engine: str) -> float | None:
        """What nginx counts for an engine, None if nothing."""
        start = f'sparkgen_proxy_{name}{{engine="{engine}"}} '
        lines = self.ask("/proxy/metrics", key="").text.splitlines()
        found = [line.removeprefix(start) for line in lines if line.startswith(start)]
        return float(found[0]) if found else None

    def add(self, *words: str) -> str:
        """A new client's key, accepted from now on."""
        key = self.run("/opt/sparkgen/proxy.sh", "add", *words).strip()
        self.reload()
        return key

    def reload(self) -> None:
        """Reload as the unit does, and wait until no earlier worker answers."""
        assert self.nginx
        self.run("/opt/sparkgen/proxy.sh", "--prepare")
        before = self.workers
        self.nginx.send_signal(signal.SIGHUP)
        until(lambda: not before & self.workers)

    @property
    def workers(self) -> frozenset[str]:
        assert self.nginx
        pid = self.nginx.pid
        return frozenset(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())

    @property
    def log(self) -> str:
        return (self.folder / "nginx").read_text()


@contextmanager
def started(folder: Path, edits: Sequence[tuple[str, str]] = ()) -> Iterator[Node]:
    """The node as it serves; `edits` replace text in the configuration or the list of engines."""
    require("curl", "ip", "nsenter", "unshare")
    require_nginx()
    require_root()
    tree = FOLDER.copy(folder)
    for old, new in edits:
        files = (
            tree / f"opt/sparkgen/{name}" for name in ("proxy/proxy.conf", "proxy/routes.json")
        )
        (file,) = (file for file in files if old in file.read_text())
        file.write_text(file.read_text().replace(old, new))
    hosts = {route.address.partition(":")[0] for route in ROUTES.values()} | {PROXY.listen}
    with ExitStack() as stack:
        holder = subprocess.Popen(machine(tree, *sorted(hosts - {"127.0.0.1"})))
        stack.callback(holder.wait)
        stack.callback(holder.kill)
        until(lambda: is_up(holder.pid))
        node = Node(holder.pid, stack, folder)
        for group in ACTIVE:
            node.engine(group)
        node.key = node.run("/opt/sparkgen/proxy.sh", "add", "alice").strip()
        node.run("/opt/sparkgen/proxy.sh", "--prepare")
        node.nginx = node.start("nginx", *NGINX)
        # If killed, it would leave its workers behind.
        stack.callback(node.nginx.wait)
        stack.callback(node.nginx.terminate)
        until(lambda: node.answers(f"{PROXY.url}/health"))
        node.restore()
        yield node
