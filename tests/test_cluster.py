"""A node always stays reachable: install.sh on a booted node with its own systemd and netplan."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bundles import NODES
from cluster import nodes
from cluster.machines import Machine
from cluster.nodes import booted, save
from cluster.wires import Wires, wired
from programs import require, require_root
from waiting import until

FOLDER = next(folder for folder in NODES if str(folder) == "lab-mesh/spark1")
INTERFACES = [interface.name for interface in FOLDER.node.interfaces]
NETPLAN = "etc/netplan/40-cx7.yaml"
ADDRESS = str(FOLDER.node.interfaces[0].address)
MANAGEMENT, NODE, OPERATOR = "enP7s7", "10.0.0.11", "10.0.0.200"
# With this address on a port half, packets to the operator would be routed into the fabric.
CUTTING = "10.0.0.139/25"
# install.sh itself takes less, even on a busy machine: the undo ends one that doesn't.
SECONDS = 30
INSTALL = "/var/bundle/install.sh"
HOST = f"""\
network:
  version: 2
  ethernets:
    {MANAGEMENT}: {{renderer: networkd, addresses: [{NODE}/24]}}
"""


@pytest.fixture
def wires() -> Iterator[Wires]:
    require_root()
    require("ip", "ping", "sysctl", *nodes.PROGRAMS)
    with wired(INTERFACES, MANAGEMENT, f"{OPERATOR}/24") as network:
        yield network


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A node before its first install, with its folder from the bundle."""
    tree = nodes.prepared(tmp_path / "node")
    (tree / "etc/netplan").mkdir(parents=True)
    (tree / "etc/netplan/01-management.yaml").write_text(HOST)
    (tree / "etc/netplan/01-management.yaml").chmod(0o600)
    (tree / "etc/hostname").write_text(f"{FOLDER.name}\n")
    (tree / "etc/hosts").write_text("127.0.0.1 localhost\n")
    shutil.copytree(FOLDER.path, tree / "var/bundle")
    return tree


def faulty(tree: Path) -> Path:
    """Makes the bundle give the fabric an address in the management network."""
    bundle = tree / "var/bundle"
    text = (bundle / NETPLAN).read_text()
    assert ADDRESS in text
    (bundle / NETPLAN).write_text(text.replace(ADDRESS, CUTTING))
    subprocess.run(
        "sha256sum $(find etc opt -type f) *.sh *.py >SHA256SUMS",
        shell=True,
        cwd=bundle,
        check=True,
    )
    return tree


def install(machine: Machine, *options: str) -> str:
    """Run install.sh on the node to its end; returns its output."""
    variable = f"SPARKGEN_UNDO_SECONDS={SECONDS}"
    done = machine.run("env", variable, INSTALL, *options)
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


def files(machine: Machine) -> str:
    """The files in the folders that install.sh writes to, with their checksums."""
    script = "find /etc /opt/sparkgen -type f ! -path '*/units/*' -exec sha256sum {} + | sort -k 2"
    return machine.run("sh", "-c", script).stdout


def timers(machine: Machine) -> str:
    """Units of the unconfirmed change that are still active."""
    return machine.systemctl("list-units", "--plain", "--no-legend", "sparkgen-undo*")


def addresses(machine: Machine) -> str:
    return machine.run("ip", "-o", "-4", "address", "show").stdout


@pytest.mark.long
def test_unconfirmed_change_is_reverted(wires: Wires, tree: Path) -> None:
    with booted(faulty(tree), wires.within) as machine:
        until(lambda: wires.answers(NODE))
        before = files(machine)
        output = install(machine, "--apply")
        assert f"first, within {SECONDS} s and over a new connection: sudo {INSTALL}" in output
        assert f" {CUTTING} " in addresses(machine)
        assert not wires.answers(NODE)
        until(lambda: wires.answers(NODE))
        until(lambda: files(machine) == before)
        until(lambda: not timers(machine))
        assert f" {CUTTING} " not in addresses(machine)
        assert machine.run("ls", "/var/backups/sparkgen").stdout.endswith(".undone\n")
        # Nothing that it left prevents the next change.
        install(machine, "--apply")


@pytest.mark.long
def test_unconfirmed_change_is_reverted_after_a_power_cut(wires: Wires, tree: Path) -> None:
    """Power cycling is what people try first when a node does not respond."""
    faulty(tree)
    with booted(tree, wires.within) as machine:
        until(lambda: wires.answers(NODE))
        before = files(machine)
        install(machine, "--apply")
        save(machine, tree)
    with booted(tree, wires.within) as machine:
        assert files(machine) != before
        until(lambda: wires.answers(NODE))
        until(lambda: files(machine) == before)
        save(machine, tree)
    with booted(tree, wires.within) as machine:
        until(lambda: wires.answers(NODE))
        assert "sparkgen" not in machine.run("ls", "-R", "/etc/systemd/system").stdout


def test_confirmed_change_stays(wires: Wires, tree: Path) -> None:
    with booted(tree, wires.within) as machine:
        until(lambda: wires.answers(NODE))
        install(machine, "--apply")
        assert wires.answers(NODE)
        assert machine.state("sparkgen-undo.timer") == "active"
        assert install(machine, "--confirm") == "the change stays\n"
        installed = files(machine)
        assert NETPLAN in installed
        assert f" {ADDRESS} " in addresses(machine)
        assert machine.state("sparkgen-undo.timer") == "inactive"
        save(machine, tree)
    with booted(tree, wires.within) as machine:
        until(lambda: f" {ADDRESS} " in addresses(machine))
        assert files(machine) == installed
        assert not timers(machine)
