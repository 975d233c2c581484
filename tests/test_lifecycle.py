"""The units' life cycle under a real systemd; only Docker is a stand-in."""

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bundles import NODES, NodeFolder, links
from cluster.machines import booted, prepared
from programs import require, require_root
from recabling import set_mtu
from tables import of_each
from waiting import until

from generator.services.guard import Guard
from generator.verify.namespaces import PROGRAMS, fabric

SINGLE = next(folder for folder in NODES if folder.bundle.name == "single")
LAB_MESH = [folder for folder in NODES if folder.bundle.name == "lab-mesh"]
SECRETIVE = next(folder for folder in NODES if folder.bundle.name == "golden-llamacpp-single")
BESIDE_OTHERS = next(
    folder for folder in NODES if folder.bundle.name == "golden-single-beside-others"
)
GUARDED = next(folder for folder in NODES if "guard" in folder.site.services)
LINKS = "etc/systemd/system/multi-user.target.wants"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    require("nsenter", "systemctl", "unshare")
    require_root()
    return prepared(SINGLE.copy(tmp_path))


ENGINE = "sparkgen-engine"
# A rehearsal that runs is removed before the engine starts.
START = ["docker.service", "docker down", "docker rm", "docker up", "docker start"]
END = ["docker down"]


def test_start_and_clean_stop(tree: Path) -> None:
    with booted(tree) as machine:
        machine.systemctl("start", ENGINE)
        assert machine.state() == "active"
        until(lambda: machine.calls == START)
        machine.systemctl("stop", ENGINE)
        assert (machine.state(), machine.result()) == ("inactive", "success")
        assert machine.calls == [*START, "docker stop", *END]
        assert machine.run("ls", "/run/stand-in").stdout == "calls\n"
        assert "docker" not in machine.run("ps", "-e", "-o", "args=").stdout


@pytest.mark.parametrize("status", [0, 1, 137])
def test_dying_rank_is_seen_and_started_again(status: int, tree: Path) -> None:
    """Whatever its exit status, a rank that ends by itself has failed."""
    with booted(tree) as machine:
        machine.set_file("status", str(status))
        machine.systemctl("start", ENGINE)
        until(lambda: machine.calls == START)
        machine.remove_file("container")
        until(lambda: machine.calls.count("docker start") == 2)
        stop = ["docker stop"] if status == 0 else []
        assert machine.calls == [*START, *stop, "docker down", *START[1:]]
        count = machine.systemctl("show", "--property=NRestarts", "--value", ENGINE)
        assert int(count) == 1


def test_restarts_are_bounded(tree: Path) -> None:
    with booted(tree) as machine:
        machine.set_file("fault", "1")
        machine.systemctl("start", ENGINE)
        machine.wait("failed")
        assert machine.calls.count("docker up") == SINGLE.site.times.burst
        machine.remove_file("fault")
        machine.systemctl("start", ENGINE)
        assert machine.calls.count("docker up") == SINGLE.site.times.burst
        machine.systemctl("reset-failed", ENGINE)
        machine.systemctl("start", ENGINE)
        assert machine.state() == "active"


def test_nothing_starts_without_the_secrets(tmp_path: Path) -> None:
    require("nsenter", "systemctl", "unshare")
    require_root()
    tree = prepared(SECRETIVE.copy(tmp_path))
    secrets = tree / "etc/sparkgen/secrets.env"
    full = secrets.read_text()
    secrets.write_text("")
    with booted(tree) as machine:
        machine.systemctl("start", "--no-block", ENGINE)
        machine.wait("failed")
        assert "docker up" not in machine.calls
    secrets.write_text(full)
    with booted(tree) as machine:
        machine.systemctl("start", ENGINE)
        assert machine.state() == "active"
        until(lambda: machine.calls == START)


def test_killed_container_leaves_nothing(tree: Path) -> None:
    """The client is killed: what it started is removed nevertheless."""
    with booted(tree) as machine:
        machine.systemctl("start", ENGINE)
        until(lambda: machine.calls == START)
        machine.systemctl("kill", "--signal=KILL", ENGINE)
        until(lambda: machine.calls.count("docker start") == 2)
        assert machine.calls[len(START) :] == ["docker down", *START[1:]]


def test_reboot(tree: Path) -> None:
    """Enabled as install.sh leaves it, it starts at boot, after Docker."""
    wants = tree / "opt/units/multi-user.target.wants"
    wants.mkdir()
    (wants / f"{ENGINE}.service").symlink_to(f"../{ENGINE}.service")
    for _ in range(2):
        with booted(tree) as machine:
            machine.wait("active")
            until(lambda machine=machine: machine.calls == START)


def test_installed_unit_is_enabled(tmp_path: Path) -> None:
    require("systemctl")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hostname").write_text(GUARDED.name)
    script = str(GUARDED.path / "install.sh")
    subprocess.run([script, "--apply", "--root", str(tmp_path)], check=True, capture_output=True)
    for unit in (ENGINE, "sparkgen-guard"):
        done = subprocess.run(
            ["systemctl", f"--root={tmp_path}", "is-enabled", unit], capture_output=True, text=True
        )
        assert done.stdout == "enabled\n"


def test_late_cable(tmp_path: Path) -> None:
    """A start waits for the fabric itself: no failed dependency can cancel it for good."""
    require(*PROGRAMS, "nsenter", "systemctl")
    require_root()
    trees = {folder.name: prepared(folder.copy(tmp_path)) for folder in LAB_MESH}
    site = LAB_MESH[0].site
    with fabric(trees, links(site.cables), tmp_path) as nodes:
        set_mtu(nodes, "spark1", "enp1s0f0np0", 1500)
        with booted(trees["spark1"], nodes.command("spark1")) as machine:
            machine.systemctl("start", "--no-block", ENGINE)
            machine.wait("activating")
            with pytest.raises(AssertionError):
                machine.wait("active", patience=3)
            assert machine.calls == START[:1]
            # However long it waits, that does not count as a failed start.
            limit = machine.systemctl("show", "--property=TimeoutStartUSec", "--value", ENGINE)
            assert limit == "infinity"
            set_mtu(nodes, "spark1", "enp1s0f0np0", 9000)
            machine.wait("active")
            until(lambda: machine.calls == START)


@of_each(NODES)
def test_dead_rank_shows_within_a_minute(folder: NodeFolder) -> None:
    if health := folder.member.container.health:
        assert health.retries * (health.interval_seconds + health.timeout_seconds) <= 60
        assert health.answer_seconds < health.timeout_seconds


# The guard


@contextmanager
def docker(path: Path) -> Iterator[list[str]]:
    """A stand-in for Docker's socket; records the requests."""
    requests: list[str] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    requests.append(connection.recv(4096).decode())
                    connection.sendall(b"HTTP/1.0 204 No Content\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()
        yield requests
        server.shutdown(socket.SHUT_RDWR)


def meminfo(file: Path, kib: int) -> None:
    """In the kernel's format; written in place, because it is bind-mounted."""
    file.write_text(
        f"MemTotal: 125829120 kB\nMemFree: 9 kB\nMemAvailable: {kib:>15} kB\nBuffers: 1 kB\n"
    )


def guard(tmp_path: Path, file: Path, floor: int) -> "subprocess.Popen[str]":
    """The guard alone, with that file as its /proc/meminfo."""
    script = GUARDED.path / "opt/sparkgen/guard.py"
    (tmp_path / "bin").mkdir()
    systemctl = tmp_path / "bin/systemctl"
    systemctl.write_text('#!/bin/sh\necho "$*" >>"$CALLS"\n')
    systemctl.chmod(0o755)
    lay = 'mount --bind "$0" /proc/meminfo && mount --bind "$1" /run && exec python3 "$2" "$3"'
    return subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", lay, file, tmp_path / "run", script, str(floor)],
        env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls")},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("answers", [True, False])
def test_guard(answers: bool, tmp_path: Path) -> None:
    require("mount", "unshare")
    require_root()
    record = Guard.of(GUARDED.site)
    assert record
    floor = record.floor_kib
    file, calls = tmp_path / "meminfo", tmp_path / "calls"
    meminfo(file, floor)
    (tmp_path / "run").mkdir()
    with docker(tmp_path / "run/docker.sock") as requests, guard(tmp_path, file, floor) as process:
        try:
            assert process.stdout
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1)
            assert (requests, calls.exists()) == ([], False)
            if not answers:
                (tmp_path / "run/docker.sock").unlink()
            meminfo(file, floor - 1)
            until(lambda: calls.exists() and calls.read_text() != "")
            assert process.stdout.readline().endswith("killing an engine\n")
            line = process.stdout.readline()
            if answers:
                assert line == "<3>Docker's answer about sparkgen-engine: HTTP/1.0 204 No Content\n"
                assert [text.splitlines()[0] for text in requests] == [
                    "POST /containers/sparkgen-engine/kill HTTP/1.0"
                ]
            else:
                assert line.startswith("<3>Docker does not answer: ")
            assert calls.read_text() == "stop --no-block sparkgen-engine.service\n"
        finally:
            process.kill()


def test_guard_stops_the_unit(tmp_path: Path) -> None:
    """Despite its hardening it can still talk to systemd, although it has a private /proc."""
    require("nsenter", "systemctl", "unshare")
    require_root()
    tree = prepared(GUARDED.copy(tmp_path))
    (tree / "opt/sparkgen/wait-fabric.sh").write_text("#!/bin/sh\n")
    script = tree / "opt/sparkgen/guard.py"
    script.write_text(script.read_text().replace("/proc/meminfo", "/run/stand-in/meminfo"))
    with booted(tree) as machine:
        machine.set_file("meminfo", "MemAvailable: 67108864 kB")
        machine.systemctl("start", ENGINE, "sparkgen-guard")
        until(lambda: machine.calls == START)
        machine.set_file("meminfo", "MemAvailable: 1048576 kB")
        machine.wait("inactive")
        assert machine.calls == [*START, "docker stop", *END]
        assert machine.state("sparkgen-guard") == "active"


def test_other_programs_start_in_their_order(tmp_path: Path) -> None:
    """Before the engine or after it, with their OOM score."""
    require("nsenter", "systemctl", "unshare")
    require_root()
    tree = prepared(BESIDE_OTHERS.copy(tmp_path))
    (others,) = (node.other for node in BESIDE_OTHERS.site.nodes)
    for each in others:
        text = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sleep 0.1\n"
        (tree / f"opt/units/{each.name}.service").write_text(text)
    # As at boot, all are asked for at once.
    wanted = " ".join(f"{name}.service" for name in (*(o.name for o in others[::-1]), ENGINE))
    (tree / "opt/units/all.target").write_text(f"[Unit]\nWants={wanted}\nAfter={wanted}\n")
    with booted(tree) as machine:
        machine.systemctl("start", "all.target")
        shown = {
            unit: dict(
                line.split("=", 1)
                for line in machine.run(
                    "systemctl", "show", "-p", "InactiveExitTimestampMonotonic,OOMScoreAdjust", unit
                ).stdout.splitlines()
            )
            for unit in (ENGINE, *(each.name for each in others))
        }
    started = sorted(shown, key=lambda unit: int(shown[unit]["InactiveExitTimestampMonotonic"]))
    before = [each.name for each in others if each.starts == "before"]
    assert started == [*before, ENGINE, *(each.name for each in others if each.starts == "after")]
    for each in others:
        assert shown[each.name]["OOMScoreAdjust"] == str(each.oom_score or 0)
