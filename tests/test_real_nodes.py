"""Nodes as they are, with real engines in real containers: `pytest -n0 -m cluster`, by hand.

Each has a systemd, a netplan that `install.sh` applies, Docker and Compose, and nothing of a bundle
is changed.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from bundles import Bundle
from cluster import docker, llama_cpp, nodes, stack
from cluster.bare import ask, completion
from cluster.results import record
from cluster.sites import MODEL, llama_text
from cluster.tiny_model import write
from machines import Machine
from programs import require, require_root
from waiting import until

from generator.verify.namespaces import PROGRAMS, Fabric

pytestmark = pytest.mark.cluster

ENGINE = f"llama.cpp {llama_cpp.VERSION.partition('.')[0]}, in Docker"
HEAD, WORKER = "spark1", "spark2"
SECONDS = 240


@dataclass(frozen=True)
class Pair:
    """Two nodes that serve."""

    bundle: Bundle
    network: Fabric
    machines: dict[str, Machine]

    @property
    def url(self) -> str:
        health = self.bundle.site.head.container.health
        assert health
        return health.url

    def answers(self) -> bool:
        return ask(self.network.command(WORKER), f"{self.url}/health")[0] == 200

    def complete(self) -> str:
        return completion(self.network.command(WORKER), self.url, "tiny")

    def serves(self) -> bool:
        """Whether a completion comes."""
        try:
            return bool(self.complete())
        except RuntimeError:
            return False


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    require_root()
    require(*PROGRAMS, *nodes.PROGRAMS, "curl", "iptables")
    if not stack.is_possible():
        pytest.skip("control groups are of one version alone")
    folder = tmp_path_factory.mktemp("pair")
    file = folder / "tiny.yaml"
    file.write_text(llama_text(2))
    bundle = Bundle("tiny-2", file)
    programs = llama_cpp.llama_cpp()
    archive = docker.image(folder, [programs / name for name in llama_cpp.PROGRAMS])
    trees = {node.name: stack.prepared(bundle, node, folder) for node in bundle.site.nodes}
    write(trees[HEAD] / MODEL.lstrip("/"))
    with stack.cabled(bundle, folder) as network, stack.all_powered(trees, network) as machines:
        for machine in machines.values():
            stack.install(machine)
            stack.load(machine, bundle.site.engine.image, archive)
        for name in (WORKER, HEAD):
            machines[name].systemctl("start", "sparkgen-engine")
        yield Pair(bundle, network, machines)


def since(start: float, holds: Callable[[], bool]) -> float:
    """Seconds from then until something holds."""
    until(holds, SECONDS)
    return time.monotonic() - start


def health(machine: Machine) -> str:
    """What Docker says of the engine's container."""
    form = "{{.State.Health.Status}}"
    return machine.run("docker", "inspect", "--format", form, "sparkgen-engine").stdout.strip()


def test_install_start_and_answer(pair: Pair) -> None:
    since(time.monotonic(), pair.answers)
    assert '"completion_tokens":8' in pair.complete()
    until(lambda: health(pair.machines[HEAD]) == "healthy", SECONDS)
    form = "{{range .Mounts}}{{.Source}} {{.RW}}{{println}}{{end}}"
    mounts = pair.machines[HEAD].run("docker", "inspect", "--format", form, "sparkgen-engine")
    assert "/srv/models/tiny false\n" in mounts.stdout


def test_worker_is_killed_and_heals(pair: Pair) -> None:
    """The unit starts the worker again, and the head, which the loss has ended."""
    since(time.monotonic(), pair.serves)
    start = time.monotonic()
    pair.machines[WORKER].run("docker", "kill", "sparkgen-engine")
    assert not pair.serves()
    healed = since(start, pair.serves)
    record(ENGINE, "the worker's container is killed", "it serves again, by itself", healed)


def test_stop(pair: Pair) -> None:
    for name in (HEAD, WORKER):
        start = time.monotonic()
        pair.machines[name].systemctl("stop", "sparkgen-engine")
        assert pair.machines[name].state() == "inactive"
        assert pair.machines[name].result() == "success"
        record(
            ENGINE, f"systemctl stop on {name}", "the container is gone", time.monotonic() - start
        )
        assert pair.machines[name].run("docker", "ps", "--all", "--quiet").stdout == ""
