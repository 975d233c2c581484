"""A pair that serves: a bundle on two nodes with everything a real one has, and its clients."""

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bundles import Bundle
from programs import require, require_root
from waiting import PATIENCE, until

from cluster import docker, logins, nodes, stack
from cluster.bare import ask, completion
from cluster.clock import add_clock
from cluster.logins import add_logins
from cluster.machines import KEEP_CACHES, Machine
from cluster.sites import MODEL, llama_text
from cluster.tiny_model import write
from generator.catalogs.engines import ENGINE_TRAITS
from generator.verify.namespaces import PROGRAMS, VirtualFabric

_KEY_VARIABLE = ENGINE_TRAITS["llama.cpp"].api_key

HEAD, WORKER = "spark1", "spark2"
ENGINE = "sparkgen-engine"
# The key that clients send to the engine; nothing else gets it.
KEY = "a-secret"
_CACHES = f"[Service]\n{KEEP_CACHES}"
# Overrides the unit's own settings, so that failures are over sooner.
_SOON = "RestartSec={}\n"
# A test sets the free memory, for its node only.
_MEMORY = "[Service]\nBindReadOnlyPaths=/opt/meminfo:/proc/meminfo\n"


@dataclass(frozen=True)
class Pair:
    """Two nodes, the head and its worker."""

    bundle: Bundle
    rack: stack.Rack
    patience: float

    @property
    def network(self) -> VirtualFabric:
        return self.rack.network

    @property
    def head(self) -> Machine:
        return self.rack.machines[HEAD]

    @property
    def worker(self) -> Machine:
        return self.rack.machines[WORKER]

    @property
    def url(self) -> str:
        health = self.bundle.site.head.container.health
        assert health
        return health.url

    def wait(self, holds: Callable[[], bool]) -> None:
        until(holds, self.patience)

    def start(self) -> None:
        """As the runbook says: workers before the head, and with the start counters reset."""
        for machine in (self.worker, self.head):
            machine.systemctl("reset-failed", "sparkgen-*")
            machine.systemctl("start", "--no-block", ENGINE, "sparkgen-guard")

    def stop(self) -> None:
        """The nodes, the head first."""
        for machine in (self.head, self.worker):
            machine.systemctl("stop", ENGINE)

    def complete(self, client: str = WORKER) -> str:
        """Request a chat completion from a node."""
        return completion(self.network.command(client), self.url, "tiny", KEY)

    def serves(self, client: str = WORKER) -> bool:
        """Whether a completion succeeds."""
        try:
            return bool(self.complete(client))
        except RuntimeError:
            return False

    def answers(self, client: str = WORKER) -> bool:
        """Whether the API is up, without asking for tokens."""
        return ask(self.network.command(client), f"{self.url}/health")[0] == 200


def health(machine: Machine) -> str:
    """One field of what Docker reports about the engine's container."""
    return str(inspected(machine)["State"]["Health"]["Status"])


def inspected(machine: Machine) -> dict[str, Any]:
    """Everything that Docker reports about it."""
    (container,) = json.loads(machine.run("docker", "inspect", ENGINE).stdout)
    return dict(container)


def journal(machine: Machine, unit: str = ENGINE) -> str:
    """What the unit and systemd have logged since the node booted."""
    return machine.run("journalctl", "--no-pager", "--output=cat", f"--unit={unit}").stdout


def kill(machine: Machine, program: str) -> None:
    """Kill a program in the container, as a crash would."""
    shown = machine.run("docker", "top", ENGINE, "-eo", "pid,comm").stdout
    (pid,) = (line.split()[0] for line in shown.splitlines() if line.endswith(f" {program}"))
    machine.run("kill", "-KILL", pid)


@contextmanager
def serving(
    programs: Mapping[str, Path],
    folder: Path,
    patience: float = PATIENCE,
    soon: str = "",
    clocks: bool = False,
) -> Iterator[Pair]:
    """Install a bundle on a pair and start it; `soon` is the time between two starts.

    With `clocks`, each node's clock can be set.
    """
    require_root()
    require(*PROGRAMS, *nodes.PROGRAMS, *logins.PROGRAMS, "curl", "iptables", "journalctl", "ps")
    file = folder / "tiny.yaml"
    text = llama_text(2).replace("engine:\n", f"engine:\n  secrets: [{_KEY_VARIABLE}]\n")
    file.write_text(f"{text}services: {{guard: true}}\ndefaults: {{user: root}}\n")
    bundle = Bundle(folder.name, file)
    is_stand_in = any(program.suffix == ".py" for program in programs.values())
    archive = docker.image(folder, programs, python=is_stand_in, clock=clocks)
    trees = {node.name: stack.prepared(bundle, node, folder) for node in bundle.site.nodes}
    write(trees[HEAD] / MODEL.lstrip("/"))
    for tree in trees.values():
        if not is_stand_in:
            stack.limit_disk(tree)
        if clocks:
            add_clock(tree)
        _drop_in(tree, ENGINE, _CACHES + (_SOON.format(soon) if soon else ""))
        _drop_in(tree, "sparkgen-guard", _MEMORY)
        (tree / "opt/meminfo").write_text(memory(64))
        (tree / "etc/sparkgen").mkdir()
        (tree / "etc/sparkgen/secrets.env").write_text(f"{_KEY_VARIABLE}={KEY}\n")
        (tree / "etc/sparkgen/secrets.env").chmod(0o600)
    add_logins(trees.values(), folder)
    with stack.cabled(bundle, folder) as network, stack.Rack(trees, network) as rack:
        pair = Pair(bundle, rack, patience)
        with ThreadPoolExecutor() as pool:
            list(pool.map(partial(_set_up, bundle, archive), rack.machines.values()))
        pair.start()
        pair.wait(pair.serves)
        yield pair


def _set_up(bundle: Bundle, archive: Path, machine: Machine) -> None:
    stack.load(machine, bundle.part.engine.image, archive)
    stack.install(machine)


def memory(gib: int) -> str:
    """The kernel's memory figures, as far as the guard reads them."""
    return f"MemAvailable: {gib << 20} kB\n"


def _drop_in(tree: Path, unit: str, text: str) -> None:
    folder = tree / f"opt/units/{unit}.service.d"
    folder.mkdir(exist_ok=True)
    (folder / "test.conf").write_text(text)
