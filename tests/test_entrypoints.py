"""What runs in a container beside the engine: ray.sh, follow.sh, llama.sh, serve.py, health."""

import json
import signal
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from bundles import NODES, NodeFolder, on_node, representatives
from programs import require
from stand_ins import StandIns
from waiting import PATIENCE, until


def nodes_with(script: str) -> list[NodeFolder]:
    path = f"opt/sparkgen/{script}"
    return [folder for folder in NODES if path in dict(folder.planned)]


RAY_HEADS = [folder for folder in nodes_with("ray.sh") if folder.node.is_head]
RAY_WORKERS = [folder for folder in nodes_with("ray.sh") if not folder.node.is_head]
FOLLOWERS = nodes_with("follow.sh")

# The addresses are on the loopback interface of a network namespace of the test's own.
NETWORK = """\
ip link set lo up
for address in $0; do ip address replace "$address/32" dev lo; done
exec "$@"
"""


BLINK = "#!/bin/sh\nexec /bin/sleep 0.2\n"

# A preparation script with nothing to prepare.
BECOME = '#!/bin/bash\nexec "$@"\n'


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    return StandIns(tmp_path)


def beside(addresses: object, *argv: str) -> list[str]:
    """Prefix for a program so that it runs where it can reach these addresses."""
    return ["unshare", "--net", "sh", "-e", "-c", NETWORK, str(addresses), *argv]


def contained(folder: NodeFolder, tree: Path, *before: str) -> list[str]:
    """The command of the node's container, after another program, where it can reach its head."""
    program = folder.member.container.entrypoint, *folder.command
    for before_it, word in pairwise(program):
        # The site's own script changes only the image; how the script must end is a rule.
        if before_it == "bash" and word.startswith("/opt/sparkgen/files/"):
            (tree / word.removeprefix("/")).write_text(BECOME)
    return beside(head_address(folder), *before, *on_node(tree, *program))


def head_address(folder: NodeFolder) -> str:
    """The address at which a node expects its head: on the control plane or on their cable."""
    link = folder.member.link if "rpc" in folder.part.engine.ports else None
    return str(link.head if link else folder.site.head.control.address)


def engine_words(folder: NodeFolder) -> list[str]:
    """The engine's own program and its arguments, without the generated scripts before them."""
    words = folder.command
    while words[0].startswith("/opt/sparkgen/") or words[0] == "bash":
        words = words[1:]
    return words


# ray.sh

# Ray's Python package, for a cluster that gains a GPU with each query.
RAY_PACKAGE = """\
import os
import pathlib

calls = pathlib.Path(os.environ["CALLS"])


def init(address, **options):
    (calls / "address").write_text(address)


def cluster_resources():
    polls = len(list(calls.glob("poll*")))
    (calls / f"poll{{polls}}").touch()
    return {{"CPU": 20.0}} | ({{"GPU": min(polls, {limit}) * 1.0}} if polls else {{}})
"""


# Its processes live as long as this client, which records its process id.
RAY = """\
#!/bin/bash
printf '%s\\0' "$@" >"$CALLS/ray.arguments"
trap 'touch "$CALLS/ray.ended"; exit 0' TERM
touch "$CALLS/ray.pid"
for _ in {{1..600}}; do
  [[ ! -e $CALLS/{ends} ]] || exit 1
  /bin/sleep 0.05
done
"""


def add_ray(stand_ins: StandIns, limit: int, ends: str = "never") -> None:
    stand_ins.add("ray", RAY.format(ends=ends))
    stand_ins.add("ray.py", RAY_PACKAGE.format(limit=limit))
    stand_ins.env["PYTHONPATH"] = str(stand_ins.programs)


@pytest.mark.parametrize("folder", RAY_HEADS, ids=str)
def test_ray_head(folder: NodeFolder, tmp_path: Path, stand_ins: StandIns) -> None:
    site, address, ports = folder.site, folder.node.control.address, folder.part.engine.ports
    add_ray(stand_ins, limit=len(site.nodes))
    stand_ins.add("sleep")
    stand_ins.add("vllm", stand_ins.add("vllm").read_text() + "exit 7\n")
    done = stand_ins.run(*contained(folder, folder.copy(tmp_path)))
    assert (done.returncode, done.stderr) == (7, "")
    assert ["vllm", *stand_ins.arguments("vllm")] == engine_words(folder)
    # Anything left over would keep the next one from starting.
    assert (stand_ins.calls / "ray.ended").exists()
    assert stand_ins.environment("vllm")["RAY_ADDRESS"] == f"{address}:{ports['ray']}"

    assert (stand_ins.calls / "address").read_text() == f"{address}:{ports['ray']}"
    assert len(list(stand_ins.calls.glob("poll*"))) == len(site.nodes) + 1
    assert stand_ins.arguments("ray") == [
        "start",
        "--head",
        f"--node-ip-address={address}",
        f"--port={ports['ray']}",
        "--num-gpus=1",
        "--object-store-memory=1073741824",
        "--dashboard-host=127.0.0.1",
        f"--dashboard-port={ports['dashboard']}",
        "--disable-usage-stats",
        "--block",
    ]


# An engine that serves until it is told to end.
SERVING = """\
#!/bin/bash
trap 'touch "$CALLS/ended"; exit 0' TERM
touch "$CALLS/serves"
while :; do /bin/sleep 0.05; done
"""


def test_ray_head_is_stopped(tmp_path: Path, stand_ins: StandIns) -> None:
    folder = RAY_HEADS[0]
    add_ray(stand_ins, limit=len(folder.site.nodes))
    stand_ins.add("sleep")
    stand_ins.add("vllm", SERVING)
    argv = contained(folder, folder.copy(tmp_path))
    with subprocess.Popen(argv, env=stand_ins.env, stdout=subprocess.DEVNULL) as process:
        until((stand_ins.calls / "serves").exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert (stand_ins.calls / "ended").exists()
    assert (stand_ins.calls / "ray.ended").exists()


def test_engine_ends_with_ray(tmp_path: Path, stand_ins: StandIns) -> None:
    folder = RAY_HEADS[0]
    add_ray(stand_ins, limit=len(folder.site.nodes), ends="serves")
    stand_ins.add("sleep")
    stand_ins.add("vllm", SERVING)
    done = stand_ins.run(*contained(folder, folder.copy(tmp_path)))
    assert (done.returncode, done.stderr) == (1, "Ray's head has ended\n")
    assert (stand_ins.calls / "ended").exists()


# Ray's head starts while the worker pauses.
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
    head, port = str(folder.site.head.control.address), folder.part.engine.ports["ray"]
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
    """The tree with facts that make scripts wait for only a second."""
    tree = folder.copy(target)
    facts = tree / "etc/sparkgen/container.env"
    patient = f"JOIN_SECONDS={folder.site.times.join}\n"
    assert patient in facts.read_text()
    facts.write_text(facts.read_text().replace(patient, "JOIN_SECONDS=1\n"))
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

# A head that answers once and is then gone.
HEAD = """\
#!/usr/bin/python3
import os, socket, sys
server = socket.create_server(({address!r}, {port}))
server.settimeout(10)
if os.fork():
    os.execvp(sys.argv[1], sys.argv[1:])
server.accept()
"""


# An engine that ignores SIGTERM and leaves it to rank 0, as SGLang's followers do.
STUBBORN = """\
#!/bin/bash
trap '' TERM
touch "$CALLS/serves"
for _ in {1..400}; do /bin/sleep 0.05; done
touch "$CALLS/outlived"
"""


def one_of_each(folders: list[NodeFolder]) -> list[NodeFolder]:
    """The first folder for each engine."""
    follow = (folder for folder in reversed(folders) if not folder.part.engine.replicas)
    return list({folder.part.engine.name: folder for folder in follow}.values())


# A machine that refuses a connection, and then loses power.
POWER = """\
#!/bin/sh
(/bin/sleep 1; ip address del {address}/32 dev lo) &
exec "$@"
"""


# A head that listens for replicas until all have loaded, and then restarts.
AGAIN = """\
#!/usr/bin/python3
import os, socket, sys, time

def listen():
    with socket.create_server(({address!r}, {port})) as server:
        server.settimeout(10)
        server.accept()

if os.fork():
    os.execvp(sys.argv[1], sys.argv[1:])
listen()
time.sleep(1)
listen()
"""


@pytest.mark.parametrize("folder", [f for f in FOLLOWERS if f.part.engine.replicas], ids=str)
def test_replica_ends_when_the_head_is_a_new_one(
    folder: NodeFolder, tmp_path: Path, stand_ins: StandIns
) -> None:
    address, port = head_address(folder), folder.part.engine.replicas
    stand_ins.add(engine_words(folder)[0], ENGINE)
    stand_ins.add("sleep", BLINK)
    before = stand_ins.add("head", AGAIN.format(address=address, port=port))
    done = stand_ins.run(*contained(folder, folder.copy(tmp_path), str(before)))
    assert done.returncode == 1
    assert f"{folder.site.head.name} ({address}:{port}) is gone" in done.stderr
    assert (stand_ins.calls / "ended").exists()


def command_parts(folder: NodeFolder) -> set[object]:
    """The engine, what starts it, and its options: each has values of one kind."""
    words = folder.command
    before = tuple(words[: len(words) - len(engine_words(folder))])
    options = {word.partition("=")[0] for word in words if word.startswith("-")}
    return {folder.part.engine.name, (folder.member.container.entrypoint, before), *options}


@pytest.mark.drawn
@pytest.mark.parametrize("folder", representatives(FOLLOWERS, command_parts), ids=str)
def test_follower_ends_with_its_engine(
    folder: NodeFolder, tmp_path: Path, stand_ins: StandIns
) -> None:
    program, *arguments = engine_words(folder)
    stand_ins.add(program)
    stand_ins.add("sleep", BLINK)
    done = stand_ins.run(*contained(folder, folder.copy(tmp_path)))
    assert stand_ins.arguments(program) == arguments
    assert (done.returncode, done.stderr) == (1, f"rank {folder.node.rank} has ended\n")


@pytest.mark.parametrize("folder", one_of_each(FOLLOWERS), ids=str)
def test_follower_ends_when_the_head_is_gone(
    folder: NodeFolder, tmp_path: Path, stand_ins: StandIns
) -> None:
    address, port = head_address(folder), folder.part.engine.rendezvous
    stand_ins.add(engine_words(folder)[0], ENGINE)
    stand_ins.add("sleep", BLINK)
    head = HEAD.format(address=address, port=port) if port else POWER.format(address=address)
    before = stand_ins.add("head", head)
    done = stand_ins.run(*contained(folder, folder.copy(tmp_path), str(before)))
    assert done.returncode == 1
    where = f"{address}:{port}" if port else address
    assert done.stderr.startswith(f"{folder.site.head.name} ({where}) is gone; this rank ends\n")
    assert (stand_ins.calls / "ended").exists()


@pytest.mark.parametrize(("engine", "ends"), [(ENGINE, True), (STUBBORN, False)])
def test_follower_stops_on_a_signal(
    engine: str, ends: bool, tmp_path: Path, stand_ins: StandIns
) -> None:
    folder = FOLLOWERS[0]
    stand_ins.add(engine_words(folder)[0], engine)
    stand_ins.add("sleep", BLINK)
    argv = contained(folder, folder.copy(tmp_path))
    with subprocess.Popen(argv, env=stand_ins.env) as follower:
        until((stand_ins.calls / "serves").exists)
        follower.send_signal(signal.SIGTERM)
        assert follower.wait(PATIENCE) == 0
    assert (stand_ins.calls / "ended").exists() == ends
    assert not (stand_ins.calls / "outlived").exists()


# llama.sh

LLAMA_HEADS = [folder for folder in nodes_with("llama.sh") if folder.node.is_head]
SEVERAL_LLAMAS = [folder for folder in LLAMA_HEADS if folder.site.workers]

# Workers that start while the head pauses, each for a single probe.
WORKERS = """\
#!/usr/bin/python3
import os, socket
servers = [socket.create_server((address, {port})) for address in {addresses!r}.split()]
if os.fork() == 0:
    for server in servers:
        server.settimeout(10)
        server.accept()
"""


def llama_head(folder: NodeFolder, tree: Path) -> list[str]:
    """The command of the head's container, where it can reach its workers."""
    program = folder.member.container.entrypoint, *folder.command
    return beside(worker_addresses(folder), *on_node(tree, *program))


def worker_addresses(folder: NodeFolder) -> str:
    return " ".join(str(worker.link.worker) for worker in folder.site.workers if worker.link)


@pytest.mark.parametrize("folder", LLAMA_HEADS, ids=str)
def test_llama_head(folder: NodeFolder, tmp_path: Path, stand_ins: StandIns) -> None:
    stand_ins.env |= folder.secrets
    port = folder.part.engine.ports.get("rpc", 0)
    addresses = worker_addresses(folder)
    stand_ins.add("sleep", WORKERS.format(port=port, addresses=addresses))
    stand_ins.add("llama-server")
    arguments = stand_ins.replaced("llama-server", *llama_head(folder, folder.copy(tmp_path)))
    assert ["llama-server", *arguments] == engine_words(folder)
    wanted = [f"{address}:{port}" for address in addresses.split()]
    rpc = arguments[arguments.index("--rpc") + 1] if wanted else ""
    assert rpc.split(",") == (wanted or [""])


def test_llama_head_gives_up(tmp_path: Path, stand_ins: StandIns) -> None:
    folder = SEVERAL_LLAMAS[0]
    tree = hurried(folder, tmp_path)
    stand_ins.env |= folder.secrets
    stand_ins.add("sleep", BLINK)
    stand_ins.add("llama-server")
    done = stand_ins.run(*llama_head(folder, tree))
    assert done.returncode == 1
    worker = folder.site.workers[0]
    assert worker.link
    assert done.stderr.startswith(f"{worker.name} ({worker.link.worker}:")
    assert not stand_ins.called("llama-server")


def test_llama_head_needs_its_key(tmp_path: Path, stand_ins: StandIns) -> None:
    folder = next(folder for folder in LLAMA_HEADS if folder.part.engine.key)
    stand_ins.env["LLAMA_API_KEY"] = ""
    stand_ins.add("llama-server")
    # As if secrets.sh had handed nothing over.
    words = folder.command[1:]
    assert words[:2] == ["bash", "/opt/sparkgen/llama.sh"]
    argv = beside(worker_addresses(folder), *on_node(folder.copy(tmp_path), *words))
    done = stand_ins.run(*argv)
    assert done.returncode == 1
    assert done.stderr == "LLAMA_API_KEY is empty: the API would require no key\n"
    assert not stand_ins.called("llama-server")


# serve.py

# SGLang's command, which records and logs its arguments, as its child processes do.
SGLANG_PACKAGE = """\
import json, logging, multiprocessing, os, pathlib, sys


def child():
    logging.warning(f"child: {os.environ['SGLANG_API_KEY']}")


def main():
    pathlib.Path(os.environ["CALLS"], "words").write_text(json.dumps(sys.argv[1:]))
    pathlib.Path(os.environ["CALLS"], "process").write_bytes(
        pathlib.Path("/proc/self/cmdline").read_bytes()
    )
    logging.warning(f"server_args={{'api_key': {sys.argv[-1].partition('=')[2]!r}}}")
    process = multiprocessing.get_context("spawn").Process(target=child)
    process.start()
    process.join()
"""

KEEPERS = nodes_with("serve.py")


def add_sglang(stand_ins: StandIns) -> None:
    (stand_ins.programs / "sglang/cli").mkdir(parents=True)
    stand_ins.add("sglang/cli/main.py", SGLANG_PACKAGE)
    stand_ins.env["PYTHONPATH"] = str(stand_ins.programs)


@pytest.mark.parametrize("folder", KEEPERS, ids=str)
def test_key_is_in_no_process_list_and_no_log(
    folder: NodeFolder, tmp_path: Path, stand_ins: StandIns
) -> None:
    add_sglang(stand_ins)
    stand_ins.env |= folder.secrets
    key = folder.secrets["SGLANG_API_KEY"]
    done = stand_ins.run(*contained(folder, folder.copy(tmp_path)))
    assert done.returncode == 0, done.stderr
    words = json.loads((stand_ins.calls / "words").read_text())
    first = folder.command.index("/opt/sparkgen/serve.py") + 1
    assert words == [*folder.command[first:], f"--api-key={key}"]
    assert key not in (stand_ins.calls / "process").read_text()
    assert "server_args={'api_key': '***'}" in done.stderr
    assert "child: ***" in done.stderr
    assert key not in done.stdout + done.stderr


@pytest.mark.parametrize("key", [None, ""])
def test_sglang_needs_its_key(key: str | None, tmp_path: Path, stand_ins: StandIns) -> None:
    add_sglang(stand_ins)
    stand_ins.env |= {} if key is None else {"SGLANG_API_KEY": key}
    # As if secrets.sh had handed nothing over.
    words = KEEPERS[0].command[1:]
    assert words[0] == "python3"
    done = stand_ins.run(
        *beside(head_address(KEEPERS[0]), *on_node(KEEPERS[0].copy(tmp_path), *words))
    )
    assert done.returncode == 1
    assert done.stderr == "SGLANG_API_KEY is empty: the API would require no key\n"
    assert not (stand_ins.calls / "words").exists()


# health.py, health.sh

# An engine that answers a request, or does not, and records it.
API = """\
#!/usr/bin/python3
import http.server, json, os, pathlib, ssl, sys, time

class Engine(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/health_generate":
            self.record(None)
        if self.path == "/metrics":
            count = pathlib.Path(os.environ["CALLS"], "count")
            tokens = int(count.read_text()) if count.exists() else 100
            reads = pathlib.Path(os.environ["CALLS"], "reads")
            before = len(reads.read_text()) if reads.exists() else 0
            reads.write_text("." * (before + 1))
            idle = before < int(os.environ.get("IDLE", 0))
            count.write_text(str(tokens + (0 if idle else int(os.environ.get("STEP", 0)))))
            metric = os.environ.get("METRIC", "vllm:generation_tokens_total")
            lines = [f"# TYPE {{metric}} counter"]
            lines += [f'{{metric}}{{{{engine="0"}}}} {{tokens}}.0', "other 7"]
            lines += [f"llamacpp:n_decode_total {{tokens}}"]
            self.reply(200, "\\n".join(lines).encode())
        else:
            self.reply(200 if self.path == "/health" else int(os.environ["STATUS"]), b"")

    def do_POST(self):
        time.sleep(int(os.environ.get("LATE", 0)))
        self.record(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.reply(int(os.environ["STATUS"]), b'{{"choices": [{{"text": "2"}}]}}')

    def record(self, body):
        request = [self.path, self.headers["Authorization"], body]
        pathlib.Path(os.environ["CALLS"], "request").write_text(json.dumps(request))

    def reply(self, status, body):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass

server = http.server.ThreadingHTTPServer(({address!r}, {port}), Engine)
server.daemon_threads = True
if certificate := os.environ.get("CERTIFICATE"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.timeout = 0.1
if os.fork():
    os.execvp(sys.argv[1], sys.argv[1:])
caller = os.getppid()
while os.getppid() == caller:
    server.handle_request()
"""

HEALTHY = [folder for folder in NODES if folder.member.container.health]


def check_health(
    folder: NodeFolder, target: Path, stand_ins: StandIns
) -> subprocess.CompletedProcess[str]:
    """Run the container's health check."""
    return check_health_in(folder, folder.copy(target), stand_ins)


def check_health_in(
    folder: NodeFolder, tree: Path, stand_ins: StandIns
) -> subprocess.CompletedProcess[str]:
    """Run it on the node with this tree."""
    health, api = folder.member.container.health, folder.part.engine.api
    assert health
    require("curl")
    kind, *test = health.test
    assert kind == "CMD"
    address = "127.0.0.1" if api.listen == "0.0.0.0" else api.listen
    server = stand_ins.add("server", API.format(address=address, port=api.port))
    stand_ins.env |= folder.member.env | folder.secrets
    # Libraries that only the container has.
    stand_ins.env.pop("LD_PRELOAD", None)
    return stand_ins.run(*beside(address, str(server), *on_node(tree, *test)))


def health_parts(folder: NodeFolder) -> set[object]:
    """What the check depends on, each together with the engine."""
    health, engine = folder.member.container.health, folder.part.engine
    assert health
    kinds = {
        (*health.test, health.generates),
        ("listens", engine.api.listen == "0.0.0.0"),
        ("key", engine.key),
        ("served", "/" in folder.part.model.served_name),
        *folder.member.env,
    }
    return {(engine.name, kind) for kind in kinds}


@pytest.mark.drawn
@pytest.mark.parametrize("folder", representatives(HEALTHY, health_parts), ids=str)
def test_health(folder: NodeFolder, tmp_path: Path, stand_ins: StandIns) -> None:
    stand_ins.env["STATUS"] = "200"
    done = check_health(folder, tmp_path, stand_ins)
    assert (done.returncode, done.stderr) == (0, "")
    path, authorization, question = json.loads((stand_ins.calls / "request").read_text())
    if folder.part.engine.name == "sglang":
        assert [path, authorization, question] == ["/health_generate", None, None]
        return
    key = folder.secrets.get(folder.part.engine.key or "")
    assert path == "/v1/completions"
    assert authorization == (f"Bearer {key}" if key else None)
    assert question["model"] == folder.part.model.served_name


@pytest.mark.parametrize("folder", one_of_each(HEALTHY), ids=str)
def test_health_of_an_engine_that_does_not_answer(
    folder: NodeFolder, tmp_path: Path, stand_ins: StandIns
) -> None:
    stand_ins.env["STATUS"] = "500"
    assert check_health(folder, tmp_path, stand_ins).returncode == 1


@pytest.mark.parametrize("status", ["400", "404", "501"])
@pytest.mark.parametrize("folder", one_of_each(HEALTHY), ids=str)
def test_health_of_a_model_without_completions(
    folder: NodeFolder, status: str, tmp_path: Path, stand_ins: StandIns
) -> None:
    """Models for embedding and ranking."""
    if folder.member.container.health and folder.member.container.health.generates:
        pytest.skip("its own endpoint asks for an embedding")
    stand_ins.env["STATUS"] = status
    assert check_health(folder, tmp_path, stand_ins).returncode == 0


def test_health_of_a_busy_llama_cpp(tmp_path: Path, stand_ins: StandIns) -> None:
    """A request would have to queue behind others, so none is sent."""
    folder = next(each for each in HEALTHY if each.part.engine.name == "llama.cpp")
    stand_ins.env |= {"STATUS": "500", "STEP": "5"}
    assert check_health(folder, tmp_path, stand_ins).returncode == 0
    assert not (stand_ins.calls / "request").exists()


@pytest.mark.parametrize(("step", "status"), [("5", 0), ("0", 1)], ids=["busy", "hangs"])
def test_health_of_a_llama_cpp_that_does_not_answer_in_time(
    step: str, status: int, tmp_path: Path, stand_ins: StandIns
) -> None:
    """If it is reading one long prompt, it has decoded something by the end of the request."""
    folder = next(each for each in HEALTHY if each.part.engine.name == "llama.cpp")
    stand_ins.env |= {"STATUS": "500", "IDLE": "1", "STEP": step}
    done = check_health(folder, tmp_path, stand_ins)
    assert done.returncode == status
    assert ("the engine hangs: no token for any client" in done.stderr) == bool(status)
    assert (stand_ins.calls / "request").exists()


@pytest.mark.parametrize("folder", one_of_each(HEALTHY), ids=str)
def test_health_over_tls(folder: NodeFolder, tmp_path: Path, stand_ins: StandIns) -> None:
    require("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-subj",
                "/CN=lab.example",
            ),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    both = tmp_path / "both.pem"
    both.write_text(key.read_text() + certificate.read_text())
    stand_ins.env |= {"STATUS": "200", "CERTIFICATE": str(both)}
    tree = folder.copy(tmp_path / "node")
    facts = tree / "etc/sparkgen/container.env"
    facts.write_text(facts.read_text().replace("HEALTH_URL=http:", "HEALTH_URL=https:"))
    done = check_health_in(folder, tree, stand_ins)
    assert (done.returncode, done.stderr) == (0, "")


OF_VLLM = [folder for folder in HEALTHY if folder.part.engine.name == "vllm"]


@pytest.mark.parametrize("metric", ["vllm:generation_tokens_total", "vllm:kv_cache_usage_perc"])
@pytest.mark.parametrize("makes_tokens", [True, False])
def test_health_of_a_slow_engine(
    makes_tokens: bool, metric: str, tmp_path: Path, stand_ins: StandIns
) -> None:
    """It is either busy or hanging."""
    folder = OF_VLLM[0]
    stand_ins.env |= {"STATUS": "200", "LATE": "3", "STEP": "5" if makes_tokens else "0"}
    stand_ins.env["METRIC"] = metric
    stand_ins.add("nvidia-smi", "#!/bin/sh\necho '96 %, 12.34 W'\n")
    tree = folder.copy(tmp_path)
    facts = tree / "etc/sparkgen/container.env"
    patience = f"ANSWER_SECONDS={folder.member.container.health.answer_seconds}\n"
    assert patience in facts.read_text()
    facts.write_text(facts.read_text().replace(patience, "ANSWER_SECONDS=1\n"))
    done = check_health_in(folder, tree, stand_ins)
    if makes_tokens:
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 1
        assert done.stderr == (
            "the engine hangs: no token for any client within 1 s; "
            "GPU load and power: 96 %, 12.34 W (timed out)\n"
        )
