"""launch.sh --rehearse: a start with random weights, with stand-ins for Docker and the engine."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from bundles import COMPOSED, NODES, NodeFolder, composed, composed_service, on_node
from stand_ins import StandIns
from test_launch import FILE, HEAD, launch
from waiting import PATIENCE, until

DOCKER = """\
#!/bin/bash
printf '%s\\n' "$*" >>"$CALLS/log"
case $1 in
  info) echo 29.0 ;;
  image) echo "example.org/vllm@sha256:1" ;;
  inspect) printf '[{"Id": "1", "State": {"Running": %s}}]' "${RUNNING:-false}" ;;
  compose)
    [[ $* != *--file*rehearsal.yaml* ]] || cp -r "$(dirname "${SECRETS}")" "$CALLS/given"
    [[ -z ${UNMADE:-} ]] || { echo "$UNMADE" >&2; exit 1; } ;;
  start) touch "$CALLS/started" ;;
  container)
    if [[ -e $CALLS/removed ]]; then echo '[]'; exit 1; fi
    state=$(head -n 1 "$CALLS/states")
    if [[ $(wc -l <"$CALLS/states") != 1 ]]; then sed -i 1d "$CALLS/states"; fi
    echo "[{\\"State\\": $state}]" ;;
  logs) cat "$CALLS/engine.log" ;;
esac
"""
SMI = '#!/bin/bash\necho "$BUSY"\n'
STARTING = '{"Running": true, "Health": {"Status": "starting", "Log": []}}'
HEALTHY = '{"Running": true, "Health": {"Status": "healthy"}}'
RUNS = '{"Running": true}'
REHEARSAL = "sparkgen-rehearsal"


class Node:
    """A node's tree with the small files of its model, and its Docker."""

    def __init__(self, folder: NodeFolder, tmp_path: Path) -> None:
        self.folder, self.tree = folder, folder.copy(tmp_path)
        self.stand_ins = StandIns(tmp_path)
        for name, script in (("docker", DOCKER), ("nvidia-smi", SMI), ("sysctl", ""), ("sync", "")):
            self.stand_ins.add(name, script)
        self.stand_ins.add("systemctl", '#!/bin/bash\necho "${ACTIVE:-inactive}"\n')
        self.calls, self.env = self.stand_ins.calls, self.stand_ins.env
        self.env |= {"BUSY": "", "SPARKGEN_REHEARSAL_SECONDS": "2"}
        self.model = tmp_path / "model"
        self.model.mkdir()
        for name in ("config.json", "tokenizer.json"):
            (self.model / name).write_text("{}")
        for facts in (self.tree / "etc/sparkgen").rglob("*node.env"):
            lines = facts.read_text().splitlines(keepends=True)
            kept = "".join(line for line in lines if not line.startswith("MODEL="))
            facts.write_text(f"{kept}MODEL=model {self.model}\n")
        self.says(STARTING, HEALTHY)

    def says(self, *states: str, log: str = "INFO it starts\n") -> None:
        """What Docker says of the container, one after the other, and what the engine prints."""
        (self.calls / "states").write_text("".join(f"{state}\n" for state in states))
        (self.calls / "engine.log").write_text(log)

    def rehearse(self, *words: str, given: str | None = None) -> tuple[int, dict[str, Any]]:
        """The exit status, and what is said of the rehearsal."""
        argv = launch(self.tree, "--rehearse", *words)
        done = subprocess.run(
            argv, env=self.env, input=given, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.stderr == ""
        start, said, *end = map(json.loads, done.stdout.splitlines())
        assert (start["stage"], said["stage"]) == ("start", "rehearsal")
        assert (said["status"] == "accepted") == (end == [{"stage": "end", "status": "accepted"}])
        return done.returncode, said

    def log(self) -> list[str]:
        """How Docker was called."""
        file = self.calls / "log"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def head(tmp_path: Path) -> Node:
    return Node(HEAD, tmp_path)


@pytest.fixture
def worker(tmp_path: Path) -> Node:
    return Node(next(f for f in NODES if str(f) == "lab-mesh/spark2"), tmp_path)


def test_head_serves(head: Node) -> None:
    status, said = head.rehearse()
    assert (status, said["status"]) == (0, "accepted")
    removed = f"rm --force {REHEARSAL}"
    first, *_, last = [call for call in head.log() if not call.startswith(("info", "image"))]
    assert (first, last) == (removed, removed)
    assert f"start {REHEARSAL}" in head.log()


def service(node: Node) -> dict[str, Any]:
    """What Compose makes of the container."""
    given = node.calls / "given"
    (node.tree / "opt/rehearsal.yaml").write_text((given / "rehearsal.yaml").read_text())
    more = ("--project-name", REHEARSAL, "--file", "/opt/rehearsal.yaml")
    return composed_service(node.tree, REHEARSAL, "engine", FILE, *more)


ENGINES = ("lab-mesh/spark1", "golden-sglang-switch/spark1", "golden-trtllm-single/spark")
ENGINES += ("golden-direct-ray/spark1", "golden-single-kv-offload/spark", "lab-mesh/spark2")


@pytest.mark.parametrize("folder", [f for f in COMPOSED if str(f) in ENGINES], ids=str)
def test_it_is_the_same_container_with_random_weights(folder: NodeFolder, tmp_path: Path) -> None:
    node = Node(folder, tmp_path)
    node.says('{"Running": false, "ExitCode": 0}')
    node.rehearse()
    expected, found = composed(node.tree), service(node)
    differ = {name for name in expected | found if expected.get(name) != found.get(name)}
    assert differ <= {"container_name", "pull_policy", "entrypoint", "command", "volumes"}
    assert found["container_name"] == REHEARSAL
    assert found["entrypoint"] == ["timeout", "--kill-after=30", "602", *expected["entrypoint"]]
    dummy = [] if folder.part.engine.name == "tensorrt-llm" else ["--load-format=dummy"]
    *command, last = found["command"]
    port = last.removeprefix("--port=")
    assert command == [*expected["command"], *dummy, "--host=127.0.0.1"]
    given, changed = node.calls / "given", {}
    for ours, theirs in zip(found["volumes"], expected["volumes"], strict=True):
        assert ours["target"] == theirs["target"]
        if ours != theirs:
            changed[ours["target"]] = ours["type"]
    own = folder.member.container.options is not None
    disk = folder.part.model.kv_offload
    assert changed == {
        "/etc/sparkgen/container.env": "bind",
        **({"/opt/sparkgen/health.py": "bind"} if folder.member.container.health else {}),
        **({"/opt/sparkgen/options.yaml": "bind"} if own and not dummy else {}),
        **({disk.path: "tmpfs"} if disk else {}),
    }
    facts = (given / "container.env").read_text().splitlines()
    health = folder.member.container.health
    url = [f"HEALTH_URL=http://127.0.0.1:{port}"] if health else []
    assert [fact for fact in facts if fact.startswith("HEALTH_")] == url
    assert not health or '"max_tokens": 16}' in (given / "health.py").read_text()
    if not dummy:
        assert "\nload_format: dummy\n" in (given / "options.yaml").read_text()


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["--model-loader-extra-config={}", "--x"], ["--x"]),
        (["--speculative-draft-load-format=auto"], []),
    ],
)
def test_options_of_loaders_are_left_out(words: list[str], left: list[str], head: Node) -> None:
    """Engines refuse them with random weights, or read a draft's weights."""
    compose = head.tree / "opt/sparkgen/compose.yaml"
    own = "".join(f"      - {json.dumps(word)}\n" for word in words)
    text = compose.read_text()
    compose.write_text(text.replace("    healthcheck:\n", f"{own}    healthcheck:\n"))
    head.rehearse()
    assert service(head)["command"][-3 - len(left) : -3] == left
    assert "loader" not in str(service(head)["command"])
    compose.write_text(text.replace('"serve"', '"--speculative-config={draft_load_config: 1}"'))
    assert "load format of its own" in head.rehearse()[1]["why"]


NCCL = """\
(Worker pid=7) ERROR 11-29 09:47:30 [multiproc.py:9] torch.AcceleratorError: CUDA error: no kernel
(EngineCore pid=5) ERROR 11-29 09:47:31 [core.py:1] RuntimeError: Worker failed with error 'x'
Traceback (most recent call last):
RuntimeError: Engine core initialization failed. See root cause above.
"""
PYDANTIC = """\
pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig
  Value error, RoPE requires an even rotary dimension [type=value_error, input_value=Args()]
    For further information visit https://errors.pydantic.dev/2.14/v/value_error
"""
SGLANG = """\
[2026-11-29 09:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "scheduler.py", line 1, in f
AssertionError
[2026-11-29 09:00:00] SIGQUIT received. It usually means one child failed.
"""
SEGFAULT = """\
(EngineCore pid=5) ERROR 11-29 09:47:31 [core.py:1] Worker proc VllmWorker-0 died unexpectedly
RuntimeError: Engine core initialization failed. See root cause above.
"""
REFUSALS = [
    (
        SEGFAULT,
        "exit",
        "it ended with status 137; " + SEGFAULT.split("\n", 1)[0],
    ),
    (NCCL, "AcceleratorError", "CUDA error: no kernel"),
    (PYDANTIC, "ValidationError", "RoPE requires an even rotary dimension"),
    (SGLANG, "AssertionError", "AssertionError"),
    ("vllm serve: error: argument --x: no\n", "vllm serve: error", "argument --x: no"),
    ("INFO it loads\n", "exit", "it ended with status 137; INFO it loads"),
]


@pytest.mark.parametrize(("log", "error", "message"), REFUSALS)
def test_engine_that_fails(log: str, error: str, message: str, head: Node) -> None:
    head.says(STARTING, '{"Running": false, "ExitCode": 137}', log=log)
    status, said = head.rehearse()
    assert (status, said["status"]) == (1, "refused")
    assert (said["error"], said["message"]) == (error, message)


def test_engine_that_hangs(head: Node) -> None:
    """What its check said last tells more than its log."""
    head.says(STARTING.replace("[]", '[{"Output": "timed out"}]'))
    status, said = head.rehearse()
    assert (status, said["message"]) == (1, "it did not serve within 2 s; timed out")
    assert head.log()[-1] == f"rm --force {REHEARSAL}"


def test_error_of_an_engine_that_hangs_may_not_be_why(head: Node) -> None:
    head.says(STARTING, log="ImportError: no such module\nINFO it goes on\n")
    assert head.rehearse()[1]["message"] == "it did not serve within 2 s; no such module"


FOLLOWING = [
    "torch.distributed.DistNetworkError: Connection closed by peer [10.0.0.12]:2\n",
    "spark1 (10.0.0.11:29501) is gone; this rank ends\n",
]


@pytest.mark.parametrize("log", FOLLOWING)
def test_rank_that_only_says_that_another_died(log: str, worker: Node) -> None:
    worker.says(RUNS, '{"Running": false, "ExitCode": 1}', log=log)
    status, said = worker.rehearse()
    assert (status, said["status"]) == (3, "could not ask")
    assert said["why"] == f"it ended with another rank: {log.strip()}"


@pytest.mark.parametrize(
    ("given", "log", "status"),
    [
        ("a password\nserved\n", "", 0),
        ("a password\n", "", 3),
        ("served\n", NCCL, 1),
        ("", FOLLOWING[0], 3),
    ],
)
def test_worker_is_told_how_it_went(given: str, log: str, status: int, worker: Node) -> None:
    worker.says(RUNS, log=log)
    assert worker.rehearse("-", given=given)[0] == status


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({"ACTIVE": "active"}, "sparkgen-engine runs, or is about to: stop it first"),
        ({"ACTIVE": "activating"}, "sparkgen-engine runs, or is about to: stop it first"),
        ({"RUNNING": "true"}, "sparkgen-engine runs, or is about to: stop it first"),
        ({"BUSY": "71, python3"}, "the GPU is in use by 71, python3"),
        ({"UNMADE": "no such device"}, "there is no container for it: no such device"),
    ],
)
def test_node_that_is_not_ready(env: dict[str, str], why: str, head: Node) -> None:
    head.env |= env
    assert head.rehearse()[1]["why"] == why
    assert not (head.calls / "started").exists()


def test_missing_file(head: Node) -> None:
    (head.model / "config.json").unlink()
    status, said = head.rehearse()
    assert status == 3
    assert said["why"] == f"{head.model}/config.json is missing: models.sh --small fetches it"
    (head.model / "config.json").write_text("{}")
    head.says(
        '{"Running": false, "ExitCode": 1}',
        log="ValueError: Loading lora a failed: No adapter found",
    )
    status, said = head.rehearse()
    assert (status, "a file is missing" in said["why"]) == (3, True)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_interrupted(sent: signal.Signals, head: Node) -> None:
    head.says(STARTING)
    head.env["SPARKGEN_REHEARSAL_SECONDS"] = "600"
    argv = launch(head.tree, "--rehearse")
    with subprocess.Popen(argv, env=head.env, stdout=subprocess.PIPE, text=True) as process:
        until((head.calls / "started").exists)
        process.send_signal(sent)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    assert json.loads(out.splitlines()[-1])["why"] == "it was interrupted"
    # A question that was asked as the signal came may be recorded late; nothing changes after that.
    changes = [call for call in head.log() if not call.startswith("container inspect")]
    assert changes[-1] == f"rm --force {REHEARSAL}"


# The second one is refused while the first one runs, and the third cleans up after it.
_KILLED = """\
SPARKGEN_REHEARSAL_SECONDS=60 /bin/bash /opt/sparkgen/launch.sh --rehearse >/dev/null &
until [ -e "$CALLS/started" ]; do /bin/sleep 0.1; done
/bin/bash /opt/sparkgen/launch.sh --rehearse
kill -KILL $!
wait $!
echo '{"Running": true, "Health": {"Status": "healthy"}}' >"$CALLS/states"
rm "$CALLS/log"
/bin/bash /opt/sparkgen/launch.sh --rehearse
"""


def test_killed_one_leaves_what_the_next_one_removes(head: Node) -> None:
    head.says(STARTING)
    done = head.stand_ins.run(*on_node(head.tree, "/bin/sh", "-c", _KILLED))
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert said[1]["why"] == "another rehearsal runs"
    assert [line["status"] for line in said[3:]] == ["accepted", "accepted"]
    calls = [call for call in head.log() if not call.startswith(("image", "info"))]
    assert calls[0] == f"rm --force {REHEARSAL}"


def test_start_ends_a_rehearsal(head: Node) -> None:
    assert head.stand_ins.run(*launch(head.tree, "--create")).returncode == 0
    assert head.log()[0] == f"rm --force {REHEARSAL}"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("golden-llamacpp-single/spark", "llama.cpp has no random weights"),
        ("golden-direct-venv/spark1", "only an engine in a container has a rehearsal"),
    ],
)
def test_engine_that_has_no_rehearsal(name: str, why: str, tmp_path: Path) -> None:
    folder = next(f for f in NODES if str(f) == name)
    assert Node(folder, tmp_path).rehearse()[1]["why"] == why


def test_node_whose_memory_fills_up(head: Node) -> None:
    """It is ended before the node freezes; its log is gone with it."""
    full = head.tree / "meminfo"
    full.write_text("MemAvailable:    1048576 kB\n")
    argv = launch(head.tree, "--rehearse")
    bound = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/meminfo && exec "$@"']
    done = head.stand_ins.run(*bound, str(full), *argv)
    said = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, said["status"]) == (1, "refused")
    assert said["message"].startswith("only 1024 MiB of the node's memory were left")
