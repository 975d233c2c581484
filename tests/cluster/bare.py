"""Starts a bundle's engines with `launch.sh --bare`, each on its own node, without containers.

A node is identified by the command prefix that runs a program inside its network.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from waiting import PATIENCE

from cluster.spaces import entering, first_process

# Client timeout in seconds.
REQUEST = 120

# /etc, /opt and /srv (where the models are) of the tree are mounted over the machine's.
_BOOT = """\
set -e
for folder in etc opt srv; do
  mkdir -p "$0/$folder"
  mount -t overlay overlay -o "lowerdir=$0/$folder:/$folder" "/$folder"
done
mount -t proc proc /proc
# Ranks find out by it whether they are on one node.
mount -t tmpfs tmpfs /dev/shm
hostname "$1"
mkdir -p /var/cache/sparkgen
# A node's Ray finds others by a folder of one name.
[[ ! ${RAY_TMPDIR:-} ]] || mount -t tmpfs tmpfs "$RAY_TMPDIR"
# The first process of a namespace is no engine: signals that a program sends itself don't end it.
# What a start has left running is there at the next one.
for start in $(seq "${STARTS:-1}"); do
  status=0
  bash /opt/sparkgen/launch.sh ${2:+--group "$2"} "${LAUNCH:---bare}" || status=$?
  echo "start $start has ended: $status"
done
exit "$status"
"""


@dataclass(frozen=True)
class Running:
    """An engine started on a node, and its output."""

    node: str
    process: "subprocess.Popen[bytes]"
    log: Path
    started: float

    @property
    def output(self) -> str:
        """The output so far."""
        return self.log.read_text(errors="replace")

    @property
    def status(self) -> int | None:
        """The exit status, or None while it runs."""
        return self.process.poll()

    def kill(self, name: str) -> None:
        """Kill the processes of a program on the node, as a crash would."""
        for pid in [pid for pid in _descendants(self.process.pid) if _is(pid, name)]:
            os.kill(pid, signal.SIGKILL)

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a program next to the engine and wait for it, whatever its exit status."""
        first = next(_descendants(self.process.pid))
        enter = entering(first, "mount", "net", "uts", "pid")
        return subprocess.run((*enter, *argv), capture_output=True, text=True, timeout=PATIENCE)

    def end(self) -> None:
        """Kill everything: when the first process of a namespace dies, the others die too."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@contextmanager
def launched(
    trees: Mapping[str, Path],
    within: Mapping[str, Sequence[str]],
    work: Path,
    env: Mapping[str, str],
) -> Iterator[dict[str, Running]]:
    """Start the engines of all nodes at once; stop whatever is left of them on exit."""
    engines = {}
    try:
        for node, tree in trees.items():
            engines[node] = launch(node, tree, within[node], work, env)
        yield engines
    finally:
        for engine in engines.values():
            engine.end()


def launch(
    node: str,
    tree: Path,
    within: Sequence[str],
    work: Path,
    env: Mapping[str, str],
    group: str = "",
) -> Running:
    """Start a node's engine, or the engine of one group on it."""
    log = work / f"{node}.log"
    with log.open("ab") as file:
        process = first_process(
            ("mount", "uts"),
            _BOOT,
            str(tree),
            node,
            group,
            within=within,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    return Running(node, process, log, time.monotonic())


def ask(
    within: Sequence[str],
    url: str,
    body: Mapping[str, object] | None = None,
    key: str = "",
    limit: int = REQUEST,
) -> tuple[int, str]:
    """Send a request from the prefix's network; return the status (0 if no answer) and the body."""
    argv = [
        *within,
        "curl",
        "--silent",
        "--max-time",
        str(limit),
        "--write-out",
        r"\n%{http_code}",
    ]
    if body is not None:
        argv += ["--header", "Content-Type: application/json", "--data", json.dumps(body)]
    if key:
        argv += ["--header", f"Authorization: Bearer {key}"]
    done = subprocess.run([*argv, url], capture_output=True, text=True)
    text, _, status = done.stdout.rpartition("\n")
    return int(status or 0), text


def completion(within: Sequence[str], url: str, model: str, key: str = "") -> str:
    """Request a chat completion of eight tokens."""
    question = [{"role": "user", "content": "Hello"}]
    body = {"model": model, "messages": question, "max_tokens": 8, "temperature": 0}
    status, text = ask(within, f"{url}/v1/chat/completions", body, key)
    if status != 200:
        raise RuntimeError(f"{status}: {text}")
    answer = json.loads(text)
    if answer["usage"]["completion_tokens"] < 1:
        raise RuntimeError(text)
    return text


def _descendants(pid: int) -> Iterator[int]:
    with suppress(FileNotFoundError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from _descendants(int(child))


def _is(pid: int, name: str) -> bool:
    """Whether a process runs this program, or has set its name as its title."""
    process = Path(f"/proc/{pid}")
    try:
        title = (process / "comm").read_text()
        return (process / "exe").readlink().name == name or title.startswith(name)
    except FileNotFoundError:
        return False
