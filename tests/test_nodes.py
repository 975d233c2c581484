"""A pair of whole nodes serves, fails and heals: systemd, netplan, Compose and a Docker engine.

The engine is a stand-in, which fails as llama.cpp does; the real one is `pytest -m cluster`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import docker, stand_in
from cluster.failures import QUICK, observe, started
from cluster.pairs import Pair, health, inspected, journal, serving
from cluster.upgrade import carry_out, measured
from conftest import Command
from programs import program

SECONDS = 300
# Of which the engine starts anew, and of which nothing that serves is touched.
CHANGES = (
    ("max_sequences: 2", "max_sequences: 1"),
    ("{guard: true}", "{guard: false}"),
)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    for name in docker.PROGRAMS:
        program(name)
    file = Path(stand_in.__file__)
    programs = {"llama-server": file, "ggml-rpc-server": file}
    with serving(programs, tmp_path, SECONDS, soon="1s") as started:
        yield started


@pytest.mark.docker
def test_pair(pair: Pair, tmp_path: Path, sparkgen: Command) -> None:
    assert json.loads(pair.complete())["usage"]["completion_tokens"] == 8
    hold_container(pair)
    for failure in QUICK:
        assert observe(pair, failure)
    pair.wait(lambda: health(pair.head) == "healthy")
    # Compose's client would write escape codes.
    assert "spark2 is there\n" in journal(pair.head)
    assert "\x1b" not in journal(pair.head)
    for change in CHANGES:
        hold_change(pair, change, tmp_path, sparkgen)
    pair.stop()
    for machine in (pair.head, pair.worker):
        assert (machine.state(), machine.result()) == ("inactive", "success")
        assert machine.run("docker", "ps", "--all", "--quiet").stdout == ""


def hold_container(pair: Pair) -> None:
    """What Docker itself has made of the Compose file."""
    container = inspected(pair.head)
    mounts = {mount["Destination"]: mount["RW"] for mount in container["Mounts"]}
    assert [path for path, is_writable in mounts.items() if is_writable] == ["/var/cache/sparkgen"]
    assert "/srv/models/tiny" in mounts
    host = container["HostConfig"]
    assert host["LogConfig"] == {
        "Type": "local",
        "Config": {"max-file": "5", "max-size": "50m"},
    }
    assert (host["NetworkMode"], host["IpcMode"], host["Init"]) == ("host", "private", True)
    assert host["RestartPolicy"]["Name"] == "no"


def hold_change(pair: Pair, change: tuple[str, str], folder: Path, sparkgen: Command) -> None:
    """Carried out as `diff` says, a change costs no more than that says."""
    file = folder / "tiny.yaml"
    assert sparkgen("build", file, cwd=folder).code == 0
    assert change[0] in file.read_text()
    file.write_text(file.read_text().replace(*change))
    (review,) = json.loads(sparkgen("diff", file, "--format", "json", cwd=folder).out)["sites"]
    assert sparkgen("build", file, cwd=folder).code == 0
    before = [started(machine) for machine in (pair.head, pair.worker)]
    with measured(pair) as downtime:
        carry_out(pair, review, folder / "out/tiny")
    if promised := review["downtimeSeconds"]:
        assert downtime.seconds < promised
    else:
        assert before == [started(machine) for machine in (pair.head, pair.worker)]
