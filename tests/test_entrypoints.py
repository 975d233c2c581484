"""What runs in a container beside the engine: ray.sh, follow.sh and health.py."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from bundles import NODES, NodeFolder, on_node
from stand_ins import StandIns


def nodes_with(script: str) -> list[NodeFolder]:
    return [folder for folder in NODES if (folder.path / "opt/sparkgen" / script).exists()]


RAY_HEADS = [folder for folder in nodes_with("ray.sh") if folder.node.is_head]
RAY_WORKERS = [folder for folder in nodes_with("ray.sh") if not folder.node.is_head]
FOLLOWERS = nodes_with("follow.sh")

# The head's address is on the loopback of a network that the test has for itself.
NETWORK = 'ip link set lo up && ip address replace "$0/32" dev lo && exec "$@"'


BLINK = "#!/bin/sh\nexec /bin/sleep 0.2\n"


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    return StandIns(tmp_path)


def beside(address: object, *argv: str) -> list[str]:
    """Prefix a program so that it runs where it reaches this address."""
    return ["unshare", "--net", "sh", "-c", NETWORK, str(address), *argv]


def contained(folder: NodeFolder, tree: Path, *before: str) -> list[str]:
    """What the node's container runs, after another program, where it reaches its head."""
    program = folder.node.container.entrypoint, *folder.command
    return beside(folder.site.head.control.address, *before, *on_node(tree, *program))


# ray.sh

# Ray's Python package, for a cluster that a GPU joins each time that somebody asks.
RAY_PACKAGE = """\
import os
import pathlib

calls = pathlib.Path(os.environ["CALLS"])


def init(address, **options):
    (calls / "address").write_text(address)


def cluster_resources():
    asked = len(list(calls.glob("asked*")))
    (calls / f"asked{{asked}}").touch()
    return {{"CPU": 20.0}} | ({{"GPU": min(asked, {limit}) * 1.0}} if asked else {{}})
"""


def add_ray(stand_ins: StandIns, limit: int) -> None:
    stand_ins.add("ray")
    stand_ins.add("ray.py", RAY_PACKAGE.format(limit=limit))
    stand_ins.env["PYTHONPATH"] = str(stand_ins.programs)


@pytest.mark.parametrize("folder", RAY_HEADS, ids=str)
def test_ray_head(folder: NodeFolder, tmp_path: Path, stand_ins: StandIns) -> None:
    site, address, ports = folder.site, folder.node.control.address, folder.site.engine.ports
    add_ray(stand_ins, limit=len(site.nodes))
    stand_ins.add("sleep")
    stand_ins.add("vllm")
    arguments = stand_ins.replaced("vllm", *contained(folder, folder.copy(tmp_path)))
    assert ["vllm", *arguments] == folder.command[1:]
    assert stand_ins.environment("vllm")["RAY_ADDRESS"] == f"{address}:{ports['ray']}"

    assert (stand_ins.calls / "address").read_text() == f"{address}:{ports['ray']}"
    assert len(list(stand_ins.calls.glob("asked*"))) == len(site.nodes) + 1
    assert stand_ins.arguments("ray") == [
        "start",
        "--head",
        f"--node-ip-address={address}",
        f"--port={ports['ray']}",
        "--num-gpus=1",
        "--object-store-memory=1073741824",
        "--include-dashboard=true",
        f"--dashboard-host={site.engine.api.listen}",
        f"--dashboard-port={ports['dashboard']}",
        "--disable-usage-stats",
    ]


# Ray's head comes up while the worker pauses.
COME_UP = """\
#!/usr/bin/python3
import os, socket
server = socket.create_server(({address!r}, {port}))
server.settimeout(10)
if os.fork() == 0:
    server.accept()
"""


@pytest.mark.parametrize("folder", RAY_WORKERS, ids=str)
def test_ray_worker(folder: NodeFolder, tmp_path: Path, stand_ins: StandIns) -> None:
    head, port = str(folder.site.head.control.address), folder.site.engine.ports["ray"]
    stand_ins.add("ray")
    stand_ins.add("sleep", COME_UP.format(address=head, port=port))
    assert stand_ins.replaced("ray", *contained(folder, folder.copy(tmp_path))) == [
        "start",
        f"--address={head}:{port}",
        f"--node-ip-address={folder.node.control.address}",
        "--num-gpus=1",
        "--object-store-memory=1073741824",
        "--disable-usage-stats",
        "--block",
    ]


def hurried(folder: NodeFolder, target: Path) -> Path:
    """The tree with a ray.sh that waits for a second only."""
    tree = folder.copy(target)
    script = tree / "opt/sparkgen/ray.sh"
    patient = f"SECONDS + {folder.site.times.join}"
    assert patient in script.read_text()
    script.write_text(script.read_text().replace(patient, "SECONDS + 1"))
    return tree


def test_ray_head_gives_up(tmp_path: Path, stand_ins: StandIns) -> None:
    folder = RAY_HEADS[0]
    add_ray(stand_ins, limit=len(folder.site.nodes) - 1)
    stand_ins.add("sleep", BLINK)
    stand_ins.add("vllm")
    done = stand_ins.run(*contained(folder, hurried(folder, tmp_path)))
    assert done.returncode == 1
    assert done.stderr.startswith("not all nodes have joined within")
    assert not stand_ins.called("vllm")


def test_ray_worker_gives_up(tmp_path: Path, stand_ins: StandIns) -> None:
    folder = RAY_WORKERS[0]
    head = folder.site.head
    stand_ins.add("ray")
    stand_ins.add("sleep", BLINK)
    done = stand_ins.run(*contained(folder, hurried(folder, tmp_path)))
    assert done.returncode == 1
    assert done.stderr.startswith(f"{head.name} ({head.control.address}:")
    assert not stand_ins.called("ray")


# follow.sh

# An engine that serves until it is told to end.
ENGINE = """\
#!/bin/bash
trap 'touch "$CALLS/ended"; kill "$!"; exit 0' TERM
/bin/sleep 20 &
touch "$CALLS/serves"
wait "$!"
"""

# A head that answers once, and is gone.
HEAD = """\
#!/usr/bin/python3
import os, socket, sys
server = socket.create_server(({address!r}, {port}))
server.settimeout(10)
if os.fork():
    os.execvp(sys.argv[1], sys.argv[1:])
server.accept()
"""


@pytest.mark.parametrize("folder", FOLLOWERS, ids=str)
def test_follower_ends(folder: NodeFolder, tmp_path: Path, stand_ins: StandIns) -> None:
    stand_ins.add("vllm")
    stand_ins.add("sleep", BLINK)
    done = stand_ins.run(*contained(folder, folder.copy(tmp_path)))
    assert ["vllm", *stand_ins.arguments("vllm")] == folder.command[1:]
    assert (done.returncode, done.stderr) == (1, f"rank {folder.node.rank} has ended\n")


def test_head_is_gone(tmp_path: Path, stand_ins: StandIns) -> None:
    folder = FOLLOWERS[0]
    head, port = folder.site.head, folder.site.engine.ports["master"]
    address = str(head.control.address)
    stand_ins.add("vllm", ENGINE)
    stand_ins.add("sleep", BLINK)
    before = stand_ins.add("head", HEAD.format(address=address, port=port))
    done = stand_ins.run(*contained(folder, folder.copy(tmp_path), str(before)))
    assert done.returncode == 1
    assert done.stderr.startswith(f"{head.name} ({address}:{port}) is gone; this rank ends\n")
    assert (stand_ins.calls / "ended").exists()


def test_follower_is_told_to_end(tmp_path: Path, stand_ins: StandIns) -> None:
    folder = FOLLOWERS[0]
    stand_ins.add("vllm", ENGINE)
    stand_ins.add("sleep", BLINK)
    argv = contained(folder, folder.copy(tmp_path))
    with subprocess.Popen(argv, env=stand_ins.env) as follower:
        deadline = time.monotonic() + 10
        while not (stand_ins.calls / "serves").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        follower.send_signal(signal.SIGTERM)
        assert follower.wait(10) == 0
    assert (stand_ins.calls / "ended").exists()


# health.py

# An engine that answers a question, or not, and leaves the question behind.
API = """\
#!/usr/bin/python3
import http.server, json, os, pathlib, sys

class Engine(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200 if self.path == "/health" else 404, b"")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = [self.path, self.headers["Authorization"], body]
        pathlib.Path(os.environ["CALLS"], "asked").write_text(json.dumps(asked))
        self.reply(int(os.environ["STATUS"]), b'{{"choices": [{{"text": "2"}}]}}')

    def reply(self, status, body):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass

server = http.server.HTTPServer(({address!r}, {port}), Engine)
server.timeout = 5
if os.fork():
    os.execvp(sys.argv[1], sys.argv[1:])
server.handle_request()
server.handle_request()
"""

HEALTHY = [folder for folder in NODES if folder.node.container.health]


def ask(folder: NodeFolder, target: Path, stand_ins: StandIns) -> subprocess.CompletedProcess[str]:
    """Do as the container's health check does."""
    health, api = folder.node.container.health, folder.site.engine.api
    assert health
    kind, *test = health.test
    assert kind == "CMD"
    address = "127.0.0.1" if api.listen == "0.0.0.0" else api.listen
    server = stand_ins.add("server", API.format(address=address, port=api.port))
    stand_ins.env |= folder.node.env | folder.secrets
    return stand_ins.run(*beside(address, str(server), *on_node(folder.copy(target), *test)))


@pytest.mark.parametrize("folder", HEALTHY, ids=str)
def test_health(folder: NodeFolder, tmp_path: Path, stand_ins: StandIns) -> None:
    stand_ins.env["STATUS"] = "200"
    done = ask(folder, tmp_path, stand_ins)
    assert (done.returncode, done.stderr) == (0, "")
    key = folder.secrets.get("VLLM_API_KEY")
    path, authorization, question = json.loads((stand_ins.calls / "asked").read_text())
    assert path == "/v1/completions"
    assert authorization == (f"Bearer {key}" if key else None)
    assert question["model"] == folder.site.model.served_name


def test_health_of_an_engine_that_does_not_answer(tmp_path: Path, stand_ins: StandIns) -> None:
    stand_ins.env["STATUS"] = "500"
    assert ask(HEALTHY[0], tmp_path, stand_ins).returncode == 1
