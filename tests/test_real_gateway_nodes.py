"""The gateway as it is, in its containers on whole nodes: `pytest -n0 -m cluster`, by hand.

nginx is this machine's, LiteLLM that of litellm.txt; the engines are llama.cpp in Docker.
"""

import json
import time
from collections.abc import Iterator

import pytest
from cluster import docker, llama_cpp
from cluster.contained_gateway import GATEWAY, REPLICA, Site, serving
from cluster.results import record
from cluster.upgrade import measured
from proxied import LITELLM

pytestmark = pytest.mark.cluster

ENGINE = f"llama.cpp {llama_cpp.VERSION.partition('.')[0]}, behind the gateway in Docker"
SECONDS = 300
RESTART, MINUTE = 30, 60
CONTAINERS = ("sparkgen-gateway", "sparkgen-proxy")
# What verify.sh misses on a machine that is no Spark.
HARDWARE = {"os", "driver", "time", "nvidia-runtime", "cdi", "memlock", "hca", "disk"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if not LITELLM.exists():
        pytest.skip("no LiteLLM: python tests/litellm_environment.py makes it")
    docker.fetch()
    with serving(tmp_path_factory.mktemp("site"), LITELLM, SECONDS) as started:
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


def test_containers_are_as_written(site: Site) -> None:
    shown = site.machines[GATEWAY].run("docker", "inspect", *CONTAINERS).stdout
    assert site.key not in shown
    assert "sk-" not in shown
    for container in json.loads(shown):
        host = container["HostConfig"]
        assert (host["ReadonlyRootfs"], host["CapDrop"]) == (True, ["ALL"])
        assert not any(mount["RW"] for mount in container["Mounts"])


@pytest.mark.parametrize("name", ["spark1", REPLICA, GATEWAY])
def test_verify(name: str, site: Site) -> None:
    """Nothing is wrong but that the machine is no Spark."""
    said = site.machines[name].run("/var/bundle/verify.sh").stdout
    words = [line.split() for line in said.splitlines()]
    assert {line[1] for line in words if line and line[0] == "FAIL"} <= HARDWARE
    passed = {line[1] for line in words if line and line[0] == "OK"}
    assert passed >= {"image", "model", "unit", "api", "management"}
    assert ("gateway" in passed) == (name == GATEWAY)


def test_replica_is_killed(site: Site) -> None:
    """Its name is answered by the other one, and it comes back by itself."""
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


@pytest.mark.parametrize("container", CONTAINERS)
def test_gateway_is_killed(container: str, site: Site) -> None:
    start = time.monotonic()
    site.machines[GATEWAY].run("docker", "kill", container)
    assert not site.answers("tiny")
    site.wait(lambda: site.answers("tiny") and site.answers("other"))
    seconds = time.monotonic() - start
    record(ENGINE, f"{container} is killed", "both names answer again", seconds, MINUTE + RESTART)
    assert seconds < MINUTE + RESTART
