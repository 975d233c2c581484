"""A pair of complete nodes serves, fails and recovers: systemd, netplan, Compose, a Docker engine.

The engine is a stand-in that fails like llama.cpp does; `pytest -m cluster` runs the real one.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import docker, stand_in
from cluster.cable_failures import half_is_pulled
from cluster.failures import docker_is_restarted, memory_runs_out, rank_dies
from cluster.observing import observe, started
from cluster.pairs import ENGINE, KEY, Pair, health, inspected, journal, serving
from cluster.upgrade import carry_out, measured
from conftest import Command
from programs import program

from generator.catalogs.engines import ENGINE_TRAITS

_KEY_VARIABLE = ENGINE_TRAITS["llama.cpp"].api_key

SECONDS = 300
IMAGE = """\
image:
    name: tiny-own:1
    from: llama.cpp-rpc:tests
    files: [{source: files/note, target: /opt/note}]
    run: ["sed s/given/built/ /opt/note >/opt/built"]"""
# Those that take no longer than the unit takes to start an engine anew.
FAILURES = (rank_dies, docker_is_restarted, half_is_pulled, memory_runs_out)
# Of which the engine starts anew, or nothing that serves is touched; and an image that is built.
CHANGES = (
    ("max_sequences: 2", "max_sequences: 1"),
    ("{guard: true}", "{guard: false}"),
    ("image: llama.cpp-rpc:tests", IMAGE),
)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    for name in docker.PROGRAMS:
        program(name)
    file = Path(stand_in.__file__)
    programs = {"llama-server": file, "ggml-rpc-server": file}
    with serving(programs, tmp_path, SECONDS, soon="1s") as started:
        yield started


@pytest.mark.long
@pytest.mark.docker
def test_pair_serves_fails_and_recovers(pair: Pair, tmp_path: Path, sparkgen: Command) -> None:
    assert json.loads(pair.complete())["usage"]["completion_tokens"] == 8
    check_container(pair)
    for failure in FAILURES:
        assert observe(pair, failure)
    pair.wait(lambda: health(pair.head) == "healthy")
    # Compose's client would write escape codes.
    assert "spark2 answers\n" in journal(pair.head)
    assert "\x1b" not in journal(pair.head)
    (tmp_path / "files").mkdir()
    (tmp_path / "files/note").write_text("given\n")
    for change in CHANGES:
        check_change(pair, change, tmp_path, sparkgen)
    check_image(pair)
    pair.stop()
    for machine in (pair.head, pair.worker):
        assert (machine.state(), machine.result()) == ("inactive", "success")
        assert machine.run("docker", "ps", "--all", "--quiet").stdout == ""


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


def check_change(pair: Pair, change: tuple[str, str], folder: Path, sparkgen: Command) -> None:
    """Carried out as `diff` says, a change interrupts service no longer than it says."""
    file = folder / "tiny.yaml"
    assert sparkgen("build", file, cwd=folder).code == 0
    assert change[0] in file.read_text()
    file.write_text(file.read_text().replace(*change))
    (review,) = json.loads(sparkgen("diff", file, "--format", "json", cwd=folder).out)["sites"]
    assert sparkgen("build", file, cwd=folder).code == 0
    before = [started(machine) for machine in (pair.head, pair.worker)]
    with measured(pair.serves, pair.patience) as downtime:
        carry_out(pair.rack.machines, review, folder / "out/tiny")
    if promised := review["downtimeSeconds"]:
        assert downtime.seconds < promised
    else:
        assert before == [started(machine) for machine in (pair.head, pair.worker)]
