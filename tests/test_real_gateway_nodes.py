"""The gateway in its container on complete nodes: `pytest -n0 -m cluster`, by hand.

nginx is the one beside the tests, the engines are llama.cpp in Docker.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import docker, llama_cpp
from cluster.contained_gateway import GATEWAY, REPLICA, Site, serving
from cluster.machines import Machine
from cluster.results import record
from cluster.sites import FOLDER
from cluster.stack import load
from cluster.upgrade import carry_out, measured
from conftest import Command

pytestmark = pytest.mark.cluster

ENGINE = f"llama.cpp {llama_cpp.VERSION.partition('.')[0]}, behind the gateway in Docker"
SECONDS = 300
RESTART, MINUTE = 30, 60
CONTAINER = "sparkgen-proxy"
# What verify.py reports on a machine that is not a Spark.
HARDWARE = {"os", "driver", "time", "nvidia-runtime", "cdi", "memlock", "hca", "disk"}


# Two of them change both replicas of a model, one after the other; the last one moves nodes.
CHANGES = {
    "the engine's image of all": (("llama.cpp-rpc:tests", "llama.cpp-rpc:next"),),
    "the model behind the name of two": ((f"{FOLDER}/tiny.gguf", f"{FOLDER}/next.gguf", 1),),
    "a replica and the other model change nodes": (
        ("nodes: [spark2]", "nodes: [spark0]"),
        ("nodes: [spark3]", "nodes: [spark2]"),
        ("nodes: [spark0]", "nodes: [spark3]"),
    ),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    docker.fetch()
    with serving(tmp_path_factory.mktemp("site"), SECONDS) as started:
        start = time.monotonic()
        started.wait(lambda: started.answers("tiny") and started.answers("other"))
        seconds = time.monotonic() - start
        record(ENGINE, "start of three nodes and the gateway", "both names answer", seconds)
        yield started


def test_both_names_answer(site: Site) -> None:
    """Whoever asks, and with a key alone."""
    for name in ("tiny", "other"):
        for client in site.machines:
            status, text = site.complete(name, client)
            assert (status, json.loads(text)["usage"]["completion_tokens"]) == (200, 8)
    assert site.complete("tiny", key="sk-of-nobody-at-all-0000")[0] == 401


def test_container_is_as_written(site: Site) -> None:
    shown = site.machines[GATEWAY].run("docker", "inspect", CONTAINER).stdout
    assert site.key not in shown
    assert "sk-" not in shown
    for container in json.loads(shown):
        host = container["HostConfig"]
        assert (host["ReadonlyRootfs"], host["CapDrop"]) == (True, ["ALL"])
        assert not any(mount["RW"] for mount in container["Mounts"])


@pytest.mark.parametrize("name", ["spark1", REPLICA, GATEWAY])
def test_verify(name: str, site: Site) -> None:
    """The only fault is that the machine is not a Spark."""
    output = site.machines[name].run("/var/bundle/verify.py").stdout
    words = [line.split() for line in output.splitlines()]
    assert {line[1] for line in words if line and line[0] == "FAIL"} <= HARDWARE
    passed = {line[1] for line in words if line and line[0] == "OK"}
    assert passed >= {"image", "model", "unit", "api", "management"}
    assert ("gateway" in passed) == (name == GATEWAY)


def test_replica_is_killed(site: Site) -> None:
    """The other replica answers for the shared name, and this one recovers by itself."""
    machine, unit = site.machines[REPLICA], "sparkgen-engine-chat-b"
    fault = "the container of one of two replicas is killed"

    def serves() -> bool:
        return (
            machine.run("curl", "-s", "-f", "-m", "2", "http://10.0.0.12:8080/health").stdout != ""
        )

    site.wait(serves)
    start = time.monotonic()
    with measured(lambda: site.answers("tiny"), SECONDS) as downtime:
        machine.run("docker", "kill", unit)
        assert not serves()
        site.wait(serves)
        seconds = time.monotonic() - start
    record(ENGINE, fault, "the longest time between two answers", downtime.seconds)
    record(ENGINE, fault, "it serves again, by itself", seconds, MINUTE + RESTART)
    assert seconds < MINUTE + RESTART
    assert downtime.seconds < RESTART


def test_gateway_is_killed(site: Site) -> None:
    start = time.monotonic()
    site.machines[GATEWAY].run("docker", "kill", CONTAINER)
    assert not site.answers("tiny")
    site.wait(lambda: site.answers("tiny") and site.answers("other"))
    seconds = time.monotonic() - start
    record(ENGINE, f"{CONTAINER} is killed", "both names answer again", seconds, MINUTE + RESTART)
    assert seconds < MINUTE + RESTART


@pytest.mark.parametrize("change", CHANGES)
def test_change(change: str, site: Site, tmp_path: Path, sparkgen: Command) -> None:
    """Carried out as `diff` says, a request waits no longer than an engine may take to stop.

    One that the engine has just then may be answered by the other only when that has ended.
    """
    file = tmp_path / "tiny.yaml"
    file.write_text(site.file.read_text())
    assert sparkgen("build", file, cwd=tmp_path).code == 0
    for edit in CHANGES[change]:
        assert edit[0] in file.read_text()
        file.write_text(file.read_text().replace(*edit))
    (review,) = json.loads(sparkgen("diff", file, "--format", "json", cwd=tmp_path).out)["sites"]
    assert sparkgen("build", file, cwd=tmp_path).code == 0

    def load_image(machine: Machine, text: str, _: Path) -> None:
        load(machine, text.rpartition(": ")[2], site.engine)

    def copy_model(machine: Machine, text: str, _: Path) -> None:
        machine.run("cp", f"{FOLDER}/tiny.gguf", text.rpartition(": ")[2])

    def await_engine(machine: Machine, text: str, _: Path) -> None:
        # Beside the gateway it listens on the loopback alone.
        health = "for a in $(hostname) localhost; do curl -sf http://$a:8080/health && exit; done"
        site.wait(lambda: machine.run("sh", "-c", health).returncode == 0)

    others = {
        "build and load the image first": load_image,
        "copy the model first": copy_model,
        "wait until these serve": await_engine,
    }
    with measured(lambda: site.answers("tiny"), SECONDS) as downtime:
        carry_out(site.machines, review, tmp_path / "out/tiny", others)
        site.wait(lambda: site.answers("other"))
    site.file.write_text(file.read_text())
    fault, seen = f"as diff says: {change}", "the longest time between two answers of two replicas"
    record(ENGINE, fault, seen, downtime.seconds, MINUTE + RESTART)
    assert downtime.seconds < MINUTE + RESTART
