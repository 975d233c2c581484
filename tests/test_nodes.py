"""A pair of complete nodes serves, fails and recovers: systemd, netplan, Compose, a Docker engine.

The engine is a stand-in that fails like llama.cpp does; `pytest -m cluster` runs the real one.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import docker, stand_in
from cluster.cable_failures import half_is_pulled
from cluster.changes import CHANGES, change
from cluster.failures import docker_is_restarted, memory_runs_out, rank_dies
from cluster.observing import observe
from cluster.pairs import ENGINE, KEY, Pair, health, inspected, journal, serving
from cluster.sites import MODEL
from conftest import Command
from draws import MANY
from programs import program
from waiting import until

from generator.catalogs.engines import ENGINE_TRAITS
from generator.site import GIVEN_SECRETS

_KEY_VARIABLE = ENGINE_TRAITS["llama.cpp"].api_key

SECONDS = 300
# As `sparkgen failures` tells.
GUARD_WITHIN = 95
# Those that take no longer than the unit takes to start an engine anew.
FAILURES = (rank_dies, docker_is_restarted, half_is_pulled, memory_runs_out)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    for name in docker.PROGRAMS:
        program(name)
    file = Path(stand_in.__file__)
    programs = {"llama-server": file, "ggml-rpc-server": file}
    folder = tmp_path_factory.mktemp("pair")
    with serving(programs, folder, SECONDS, soon="1s") as started:
        yield started


@pytest.mark.long
@pytest.mark.docker
def test_pair_serves_fails_and_recovers(pair: Pair) -> None:
    assert json.loads(pair.complete())["usage"]["completion_tokens"] == 8
    check_container(pair)
    for failure in FAILURES:
        assert observe(pair, failure)
    pair.wait(lambda: health(pair.head) == "healthy")
    # Compose's client would write escape codes.
    assert "spark2 answers\n" in journal(pair.head)
    assert "\x1b" not in journal(pair.head)
    check_told_failures(pair)
    check_questions(pair)


@pytest.mark.drawn
@pytest.mark.long
@pytest.mark.docker
def test_changes(pair: Pair, tmp_path: Path, sparkgen: Command) -> None:
    """Each is carried out as `diff` says, and takes no longer than that."""
    assert len(CHANGES) == 10
    # These are for a long run: they take the steps of another.
    alike = ("the pool of subnets", "the context") if MANY == 1 else ()
    for name in (name for name in CHANGES if name not in alike):
        change(pair, name, tmp_path / "repository", sparkgen)
        if name == "an image is built":
            check_image(pair)


@pytest.mark.docker
def test_launch_and_stop(pair: Pair) -> None:
    pair.stop()
    check_launch(pair)
    for machine in (pair.head, pair.worker):
        assert (machine.state(), machine.result()) == ("inactive", "success")
        assert machine.run("docker", "ps", "--all", "--quiet").stdout == ""


LAUNCH = "/opt/sparkgen/launch.sh"


def check_questions(pair: Pair) -> None:
    """An engine is asked beside the one that serves, which can't be started a second time."""
    asked = pair.head.run(LAUNCH, "--check-engine")
    start, *answers = map(json.loads, asked.stdout.splitlines())
    assert (asked.returncode, start["node"]) == (0, "spark1"), asked.stderr
    assert [(said["stage"], said["status"]) for said in answers] == [
        ("arguments", "accepted"),
        ("end", "accepted"),
    ]
    again = pair.head.run(LAUNCH)
    assert again.stderr == f"launch.sh: {ENGINE} is running; stop it first\n"
    assert pair.serves()


def check_launch(pair: Pair) -> None:
    """By hand, the same containers serve; they end with launch.sh."""
    machines = (pair.worker, pair.head)
    for machine in machines:
        machine.run("sh", "-c", f"{LAUNCH} >/run/launched 2>&1 & echo $! >/run/launch.pid")
    pair.wait(pair.serves)
    check_container(pair)
    mounts = {mount["Destination"]: mount["Source"] for mount in inspected(pair.head)["Mounts"]}
    for machine in machines:
        machine.run("sh", "-c", "kill -TERM $(cat /run/launch.pid)")
    runs = ("sh", "-c", "kill -0 $(cat /run/launch.pid)")
    pair.wait(lambda: all(machine.run(*runs).returncode for machine in machines))
    assert pair.head.run("test", "-e", mounts[GIVEN_SECRETS]).returncode == 1


def check_container(pair: Pair) -> None:
    """What Docker itself has made of the Compose file."""
    container = inspected(pair.head)
    mounts = {mount["Destination"]: mount["RW"] for mount in container["Mounts"]}
    assert [path for path, is_writable in mounts.items() if is_writable] == ["/var/cache/sparkgen"]
    assert "/srv/models/tiny" in mounts
    write = ("docker", "exec", ENGINE, "sh", "-c", "echo >/srv/models/tiny/new")
    assert "Read-only file system" in pair.head.run(*write).stderr
    # Docker's inspect output does not show the key; the engine still gets it.
    assert KEY not in json.dumps(container)
    shown = pair.head.run("docker", "top", ENGINE, "-eo", "pid,comm").stdout
    (process,) = (line.split()[0] for line in shown.splitlines() if line.endswith(" llama-server"))
    assert f"{_KEY_VARIABLE}={KEY}\0" in pair.head.run("cat", f"/proc/{process}/environ").stdout
    host = container["HostConfig"]
    assert host["LogConfig"] == {
        "Type": "local",
        "Config": {"max-file": "5", "max-size": "50m"},
    }
    assert (host["NetworkMode"], host["IpcMode"], host["Init"]) == ("host", "private", True)
    assert host["RestartPolicy"]["Name"] == "no"


def check_told_failures(pair: Pair) -> None:
    """Without its models an engine serves on, and verify.py tells; the guard starts by itself."""
    pair.head.run("mv", MODEL, f"{MODEL}.away")
    assert pair.serves()
    told = pair.head.run("/var/bundle/verify.py").stdout
    pair.head.run("mv", f"{MODEL}.away", MODEL)
    assert re.search(r"^(?!OK)\S+ +model ", told, re.MULTILINE), told
    pid = ("systemctl", "show", "--property=MainPID", "sparkgen-guard")
    before = pair.head.run(*pid).stdout
    pair.head.systemctl("kill", "--signal=KILL", "sparkgen-guard")
    until(lambda: pair.head.run(*pid).stdout not in (before, "MainPID=0\n"), GUARD_WITHIN)
    assert pair.serves()


def check_image(pair: Pair) -> None:
    """Built on the head by its Docker engine and loaded on the other node: the same layers."""
    build = pair.head.run("/var/image/build.sh")
    assert build.stdout == "tiny-own:1 is present already\nspark2 has it already\n"
    template = '--format={{index .Config.Labels "sparkgen.build"}} {{json .RootFS.Layers}}'
    images = set()
    for machine in (pair.head, pair.worker):
        assert inspected(machine)["Config"]["Image"] == "tiny-own:1"
        assert machine.run("docker", "exec", ENGINE, "cat", "/opt/built").stdout == "built\n"
        images.add(machine.run("docker", "image", "inspect", template, "tiny-own:1").stdout)
        output = machine.run("/var/bundle/verify.py").stdout
        assert (
            "\nOK    image             tiny-own:1, built from the files of the bundle\n" in output
        )
        assert "\nOK    running           image, arguments, environment, mounts" in output, output
    (image,) = images
    facts = pair.worker.run("cat", "/etc/sparkgen/node.env").stdout
    assert f"IMAGE_BUILD={image.split()[0]}\n" in facts
