"""Runs real NCCL with the environment that sparkgen writes, and with each setting it refuses.

    PYTHONPATH=.:tests python -m gpu.nccl [--write]

Needs root, one NVIDIA GPU, `ip`, and a PyTorch with NCCL. Each rank is a process in its own network
namespace, and its `NCCL_HOSTID` makes it a node of its own, so that all of them share the one GPU.
Sockets replace RoCE: this tests whom NCCL connects to, and that the results are right. Prints a
table, and with `--write` stores it in README.md; exits with 1 if a row is not as expected.
"""

import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import torch
from racks import ring_text, site_text

import generator
from gpu.cables import FABRIC, cabled
from gpu.collectives import COLLECTIVES, work

README = Path(__file__).parent / "README.md"
SECONDS = 90
PORT = 23456
ACROSS = (*COLLECTIVES, "all-to-all", "send to the next but one")
# For sockets instead of RoCE: an unroutable connection is tried twice, not for a minute.
_SOCKETS = {
    "NCCL_NET": "Socket",
    "NCCL_SOCKET_IFNAME": f"={FABRIC}",
    "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_SOCKET_RETRY_CNT": "1",
    "NCCL_DEBUG": "WARN",
}


@dataclass(frozen=True)
class Case:
    """A site, the changes to its environment, and whether it should work."""

    title: str
    text: str
    works: bool
    operations: tuple[str, ...] = COLLECTIVES
    changes: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def is_refused(self) -> bool:
        """Whether sparkgen reports an error for the site with these changes."""
        env = {name: value for name, value in self.changes.items() if value is not None}
        if not env:
            return False
        text = self.text.replace("engine:\n", f"engine:\n  env: {json.dumps(env)}\n", 1)
        return not generator.parse(text).is_valid


def pair_text() -> str:
    """Two nodes and a cable."""
    text = re.sub(r"cabling:\n(.*\n)+?topology:.*\n", "{cables}", site_text(2))
    cables = "cabling:\n  - endpoints: [spark1:p0, spark2:p0]\ntopology: {kind: direct}\n"
    return text.replace("{cables}", cables)


RING = ring_text(4)
CASES = (
    Case("pair", pair_text(), True, (*COLLECTIVES, "all-to-all")),
    Case("switch, four nodes", site_text(4), True, ACROSS),
    Case("ring of three", ring_text(3), True, ACROSS),
    *(Case(f"ring of {number}", ring_text(number), True) for number in range(4, 9)),
    Case("ring of 4", RING, False, ("all-to-all",)),
    Case("ring of 4", RING, False, ("send to the next but one",)),
    *(
        Case("ring of 4", RING, works, COLLECTIVES, changes)
        for works, changes in (
            (False, {"NCCL_ALGO": None}),
            (False, {"NCCL_ALGO": "Tree"}),
            (False, {"NCCL_ALGO": "Ring,Tree"}),
            # Refused nevertheless: it leaves PAT, which is not a ring, and which NCCL may pick.
            (True, {"NCCL_ALGO": "^Tree"}),
            (True, {"NCCL_ALGO": "ring"}),
            (False, {"NCCL_ALGO": "allreduce:tree"}),
            (False, {"NCCL_CUMEM_ENABLE": "0"}),
            (False, {"NCCL_RUNTIME_CONNECT": "0"}),
            (True, {"NCCL_PROTO": "Simple"}),
            (True, {"NCCL_MAX_NCHANNELS": "2"}),
        )
    ),
)


@dataclass(frozen=True)
class Outcome:
    """How a case ended: the first failing rank's message, empty if all is well."""

    failure: str
    seconds: float


def run(case: Case) -> Outcome:
    """Run a case to its end; kill any ranks that are left."""
    site = generator.parse(case.text).site
    assert site, generator.parse(case.text).report()
    start = time.monotonic()
    with cabled(site) as names, tempfile.TemporaryDirectory() as folder:
        ranks: dict[int, str] = {}
        for node in site.nodes:
            settings = {**node.nccl, **case.changes, **_SOCKETS, "NCCL_HOSTID": node.name}
            settings["NCCL_COMM_ID"] = f"{site.head.control.address}:{PORT}"
            env = {name: value for name, value in settings.items() if value is not None}
            count = len(site.nodes)
            sys.stdout.flush()
            pid = os.fork()
            if not pid:
                _become(node.rank, count, names[node.name], env, Path(folder), case.operations)
            ranks[pid] = node.name
        failure = _await(ranks, Path(folder))
    return Outcome(failure, time.monotonic() - start)


def _become(
    rank: int,
    ranks: int,
    name: str,
    env: Mapping[str, str],
    folder: Path,
    operations: tuple[str, ...],
) -> None:
    """What each forked process runs: a rank on its node."""
    status = 1
    with (folder / f"{rank}.log").open("w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            with Path(f"/run/netns/{name}").open() as network:
                os.setns(network.fileno(), os.CLONE_NEWNET)
            for variable in [key for key in os.environ if key.startswith("NCCL_")]:
                del os.environ[variable]
            os.environ |= env
            work(rank, ranks, str(folder / "meeting"), operations)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)


def _await(ranks: dict[int, str], folder: Path) -> str:
    """Wait for all ranks, or for the first that fails; return its NCCL message."""
    deadline = time.monotonic() + SECONDS
    left = dict(ranks)
    failure = ""
    while left and not failure:
        for pid in list(left):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del left[pid]
                if status:
                    failure = "failed"
        if time.monotonic() > deadline:
            failure = f"hangs for {SECONDS} s"
        time.sleep(0.05)
    if failure and left:
        time.sleep(1)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return failure and (_reason(folder) or failure)


def _reason(folder: Path) -> str:
    """The first warning of NCCL itself, from any rank."""
    logs = [file.read_text() for file in sorted(folder.glob("*.log"))]
    warnings = [line for log in logs for line in log.splitlines() if "NCCL WARN" in line]
    if warnings:
        return re.sub(r"<\d+>", "", warnings[0].partition("NCCL WARN")[2]).strip()
    return next((log.strip().splitlines()[-1] for log in logs if log.strip()), "")


def table(outcomes: Sequence[tuple[Case, Outcome]]) -> str:
    """The outcomes as Markdown."""
    lines = ["| site | changed | operations | sparkgen | NCCL | s |", "|---|---|---|---|---|---|"]
    for case, outcome in outcomes:
        changed = " ".join(
            f"`{name}={value}`" if value is not None else f"no `{name}`"
            for name, value in case.changes.items()
        )
        operations = (
            "all but across" if case.operations == COLLECTIVES else ", ".join(case.operations)
        )
        operations = "all" if case.operations == ACROSS else operations
        cells = (
            case.title,
            changed,
            operations,
            "refuses it" if case.is_refused else "",
            f"fails: {outcome.failure}" if outcome.failure else "works",
            f"{outcome.seconds:.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def versions() -> str:
    """The versions that ran, and the date."""
    major, minor, patch, *_ = torch.cuda.nccl.version()
    return (
        f"{date.today()}: NCCL {major}.{minor}.{patch}, PyTorch {torch.__version__}, "
        f"{torch.cuda.get_device_name(0)}."
    )


def main() -> int:
    """Run every case."""
    outcomes = []
    wrong = 0
    for case in CASES:
        outcome = run(case)
        is_right = bool(outcome.failure) != case.works
        wrong += not is_right
        outcomes.append((case, outcome))
        print("ok " if is_right else "NOT", table(outcomes).splitlines()[-1], flush=True)
    text = f"{versions()}\n\n{table(outcomes)}\n"
    if "--write" in sys.argv:
        head, mark, _ = README.read_text().partition(
            "<!-- what follows is written by the run -->\n"
        )
        README.write_text(f"{head}{mark}\n{text}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
