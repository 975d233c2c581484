"""Nodes that are not as most are: what install.sh does there, listed in unusual-nodes.md."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from programs import program, require
from test_install import (
    BACKUPS,
    LAB_MESH,
    SINGLE,
    Saboteur,
    changed_bundle,
    done,
    fresh,
    install,
    live,
    small_bundle,
    snapshot,
)
from test_install import machine as machine
from test_install import root as root
from test_verify import Machine
from test_verify import mesh as mesh

PLUG = "ip link add {0} type veth peer name other && ip link set {0} up && ip link set other up"
ELSEWHERE = f"ip address flush dev enP7s7 && {PLUG} && ip address add 10.0.0.11/24 dev {{0}}"
# What the machine is like before the install, which then goes through.
INSTALLED = {
    "Wi-Fi": ELSEWHERE.format("wlP9s9"),
    "USB": ELSEWHERE.format("enx001122334455"),
    "two default routes": (
        f"{PLUG.format('wlP9s9')} && ip address add 192.168.7.5/24 dev wlP9s9 "
        "&& ip link set enP7s7 up && ip route add default via 10.0.0.1 metric 100 "
        "&& ip route add default via 192.168.7.1 metric 600"
    ),
    "login over IPv6": (
        "ip address add fd00::11/64 dev enP7s7 nodad "
        "&& export SSH_CONNECTION='fd00::5 5555 fd00::11 22'"
    ),
}
# The same, and why it is refused.
REFUSED = {
    "second default route on a port": (
        "ip link set enP7s7 up && ip route add default via 10.0.0.1 && ip link set enp1s0f0np0 up "
        "&& ip address add 10.9.9.9/24 dev enp1s0f0np0 "
        "&& ip route add default via 10.9.9.1 metric 600",
        "enp1s0f0np0 carries the default route, and would lose it",
    ),
    "default route over IPv6 on a port": (
        "ip link set enp1s0f0np0 up && ip address add fd09::9/64 dev enp1s0f0np0 nodad "
        "&& ip -6 route add default via fd09::1 dev enp1s0f0np0",
        "enp1s0f0np0 carries the default route, and would lose it",
    ),
    "management on a bridge over a port": (
        "ip link add br0 type bridge && ip link set enp1s0f0np0 master br0 up && "
        "ip address flush dev enP7s7 && ip address add 10.0.0.11/24 dev br0",
        "enp1s0f0np0 carries br0, which has this node's own address 10.0.0.11, and would lose it",
    ),
    "login over a macvlan of a port": (
        "ip link set enp1s0f0np0 up && ip link add m0 link enp1s0f0np0 type macvlan && "
        "ip address add 10.9.9.9/24 dev m0 && export SSH_CONNECTION='10.9.9.8 5 10.9.9.9 22'",
        "enp1s0f0np0 carries m0, which has the address 10.9.9.9, over which somebody is logged in",
    ),
    "login over IPv6 on a port": (
        "ip address add fd09::9/64 dev enp1s0f0np0 nodad "
        "&& export SSH_CONNECTION='fd09::8 5555 fd09::9 22'",
        "enp1s0f0np0 has the address fd09::9, over which somebody is logged in",
    ),
}


@pytest.mark.parametrize("case", INSTALLED)
def test_node_is_installed_and_restored(case: str, machine: Path) -> None:
    before = snapshot(machine)
    found = live(machine, f"{INSTALLED[case]} && $I --apply && $I --confirm && $I --uninstall")
    assert (found.status, found.err) == (0, "")
    assert snapshot(machine) == before


@pytest.mark.parametrize("case", REFUSED)
def test_node_is_refused(case: str, machine: Path) -> None:
    line, reason = REFUSED[case]
    before = snapshot(machine)
    found = live(machine, f"{line} && $I --apply")
    assert f"refused: {reason}" in found.err
    assert (found.status, snapshot(machine)) == (2, before)


def test_management_over_ipv6_alone(machine: Path, tmp_path: Path) -> None:
    """A site names no address then: the machine is told by its name."""
    folder = tmp_path / "named"
    shutil.copytree(small_bundle(), folder)
    facts = folder / "etc/sparkgen/node.env"
    lines = facts.read_text().splitlines(keepends=True)
    facts.write_text("".join(line for line in lines if not line.startswith("MANAGEMENT=")))
    files = "find etc opt -type f -exec sha256sum {} + >SHA256SUMS"
    subprocess.run(files, shell=True, cwd=folder, check=True)
    before = snapshot(machine)
    alone = "ip address flush dev enP7s7 && ip address add fd00::11/64 dev enP7s7 nodad"
    lines = [f"I={folder}/install.sh && {alone} && $I --apply && $I --confirm && $I --uninstall"]
    found = live(machine, *lines)
    assert (found.status, found.err) == (0, "")
    assert snapshot(machine) == before


def test_clock_of_1970(root: Path, tmp_path: Path) -> None:
    """Changes are in the order of their numbers, whatever the clock says."""
    require("faketime")
    older = changed_bundle(LAB_MESH, tmp_path)
    before = snapshot(root)
    done(install(older, root, "--apply"))
    between = snapshot(root)
    script = str(LAB_MESH.path / "install.sh")
    for action, then in (("--apply", None), ("--rollback", between), ("--apply", None)):
        argv = ["faketime", "1970-01-01 00:02:00", script, "--root", str(root), action]
        subprocess.run(argv, check=True, capture_output=True)
        assert then is None or snapshot(root) == then
    done(install(LAB_MESH, root, "--uninstall"))
    assert snapshot(root) == before


def test_dash_is_no_bash(root: Path) -> None:
    before = snapshot(root)
    argv = [program("dash"), str(small_bundle() / "install.sh"), "--root", str(root), "--apply"]
    assert subprocess.run(argv, capture_output=True).returncode == 2
    assert snapshot(root) == before


def test_programs_of_busybox(root: Path, tmp_path: Path) -> None:
    """They lack options that install.sh needs: nothing is changed."""
    before = snapshot(root)
    programs = tmp_path / "busybox"
    programs.mkdir()
    subprocess.run([program("busybox"), "--install", "-s", str(programs)], check=True)
    env = {"PATH": f"{programs}:{os.environ['PATH']}"}
    found = install(small_bundle(), root, "--apply", env=env)
    assert (found.returncode, snapshot(root)) == (2, before)
    assert found.stderr == f"install.sh: {programs}/stat is not GNU's: put /usr/bin first in PATH\n"


def test_downgrade_killed_at_every_step(tmp_path: Path) -> None:
    """A rollback brings the newer one back, and the downgrade can be repeated."""
    old = changed_bundle(SINGLE, tmp_path)
    start = fresh(tmp_path / "start", SINGLE.name)
    done(install(SINGLE, start, "--apply"))
    before = snapshot(start)
    states = Saboteur(tmp_path).states(old, start, "--apply")
    for node in states:
        # Before its folder is there, nothing has begun.
        if list((node / BACKUPS).glob("new")) + list((node / BACKUPS).glob("0002-*")):
            done(install(old, node, "--rollback"))
        assert snapshot(node) == before, node.name
    assert len(states) > 5
    done(install(old, states[-1], "--apply"))
    assert snapshot(states[-1]) == snapshot(start)


def test_podman_is_no_docker(mesh: Machine) -> None:
    """Its `docker info` knows no version of a server, and no runtime of NVIDIA's."""
    mesh.answers["docker"] = {"'info --format {{json .SecurityOptions}}'": "{}\\n"}
    found = mesh.lines()
    assert found["docker"].startswith(
        "FAIL docker info does not answer root. To do: sudo systemctl"
    )
    assert found["image"].startswith("SKIP ")


def test_rootless_docker(mesh: Machine) -> None:
    rootless = '["name=seccomp,profile=builtin","name=rootless"]\\n'
    mesh.answers["docker"]["'info --format {{json .SecurityOptions}}'"] = rootless
    assert mesh.lines()["docker"].startswith("FAIL the Docker that answers root is rootless")
