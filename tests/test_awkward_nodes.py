"""Nodes in unexpected states: install.sh refuses and changes nothing, or rolls everything back."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from programs import require, require_root
from test_install import BACKUPS, LAB_MESH, done, fresh, install, refused, small_bundle, snapshot

# Folders in one another, the last of which is the root.
NAMES = (
    ("two words", "it's", 'quo"ted', "$HOME", " blank at both ends "),
    ("$(touch made)", "`touch made`", "glob*[a-z]?", "back\\slash"),
    ("-e", "semi;colon&and|pipe", "per%cent %s", "--root"),
    ("#hash", "tab\tstop", "Größe", "~"),
    ("x" * 200, "a", "b", "..", "c"),
)


@pytest.mark.parametrize("names", NAMES)
def test_root_with_an_awkward_name(names: Sequence[str], tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.joinpath(*names[:-2]).mkdir(parents=True)
    root = fresh(base.joinpath(*names), "spark1")
    before, around = snapshot(root), sorted(base.rglob("*"))
    done(install(small_bundle(), root, "--apply"))
    assert snapshot(root) != before
    assert install(small_bundle(), root).returncode == 0
    done(install(small_bundle(), root, "--uninstall"))
    assert snapshot(root) == before
    assert [path for path in sorted(base.rglob("*")) if "var" not in path.parts] == around


@pytest.mark.parametrize("way", ["relative", "link", "slash"])
def test_root_given_as_relative_path_or_link(way: str, tmp_path: Path) -> None:
    root = fresh(tmp_path / "root", "spark1")
    before = snapshot(root)
    (tmp_path / "link").symlink_to("root")
    spelled = {"relative": "../root", "link": str(tmp_path / "link"), "slash": f"{root}//"}[way]
    (tmp_path / "elsewhere").mkdir()
    script = str(small_bundle() / "install.sh")
    for action in ("--apply", "--uninstall"):
        argv = [script, "--root", spelled, action]
        subprocess.run(argv, cwd=tmp_path / "elsewhere", check=True, capture_output=True)
        assert (snapshot(root) == before) == (action == "--uninstall")


def link(path: str, target: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).unlink(missing_ok=True)
        (root / path).symlink_to(target)

    return make


def text(path: str, data: bytes, mode: int = 0o644) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
        (root / path).chmod(mode)

    return make


def folder(path: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        (root / path).unlink(missing_ok=True)
        (root / path).mkdir(parents=True)

    return make


def fifo(path: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        (root / path).unlink(missing_ok=True)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(root / path)

    return make


HOSTS: dict[str, Callable[[Path], None]] = {
    "hosts-without-its-last-newline": text("etc/hosts", b"127.0.0.1 localhost"),
    "hosts-of-windows": text("etc/hosts", b"127.0.0.1 localhost\r\n10.0.0.9 other\r\n"),
    "hosts-that-are-empty": text("etc/hosts", b""),
    "no-hosts": lambda root: (root / "etc/hosts").unlink(),
    "hosts-in-latin-1": text("etc/hosts", b"10.0.0.9 gr\xfcn\n"),
    "hosts-that-nobody-may-write": text("etc/hosts", b"127.0.0.1 localhost\n", 0o444),
}
OTHERS: dict[str, Callable[[Path], None]] = {
    "link-within-the-root": link("opt", "srv"),
    "dangling-link-in-the-place-of-a-file": link("etc/nccl.conf", "nowhere"),
    "file-that-nobody-may-read": text("etc/nccl.conf", b"NCCL_DEBUG=INFO\n", 0),
    "file-that-is-a-program": text("opt/sparkgen/compose.yaml", b"#!/bin/sh\n", 0o4755),
    "netplan-that-is-binary": text("etc/netplan/40-cx7.yaml", b"\x00\xff\n", 0o600),
    "unit-that-is-masked": link("etc/systemd/system/sparkgen-engine.service", "/dev/null"),
}
REFUSED: dict[str, Callable[[Path], None]] = {
    "folder-for-a-file": folder("etc/nccl.conf"),
    "link-out-of-the-root": link("opt", "/opt"),
    "link-out-of-the-root-above": link("etc/sparkgen", "../../outside"),
    "backups-out-of-the-root": link("var/backups", "/var/backups"),
    "hosts-that-are-a-link": link("etc/hosts", "hosts.other"),
    "hosts-that-are-a-folder": folder("etc/hosts"),
    "hosts-that-are-a-pipe": fifo("etc/hosts"),
    "pipe-for-a-file": fifo("etc/nccl.conf"),
    "file-for-the-backups": text("var/backups", b""),
}


@pytest.mark.parametrize(("hosts", "other"), list(zip(HOSTS, OTHERS, strict=True)))
def test_awkward_states_are_restored(hosts: str, other: str, tmp_path: Path) -> None:
    root = fresh(tmp_path / "root", "spark1")
    (root / "srv").mkdir()
    HOSTS[hosts](root)
    OTHERS[other](root)
    before = snapshot(root)
    done(install(LAB_MESH, root, "--apply"))
    assert snapshot(root) != before
    done(install(LAB_MESH, root, "--rollback"))
    assert snapshot(root) == before


@pytest.mark.parametrize("state", REFUSED)
def test_awkward_state_is_refused(state: str, tmp_path: Path) -> None:
    root = fresh(tmp_path / "root", "spark1")
    REFUSED[state](root)
    outside = tmp_path / "outside"
    outside.mkdir()
    before = snapshot(root)
    message = refused(install(LAB_MESH, root, "--apply"))
    assert "nothing was changed" in message or "refused: " in message, message
    assert snapshot(root) == before
    assert not list(outside.iterdir())
    assert not list(root.glob(f"{BACKUPS}/0*"))


@pytest.fixture
def immutable(tmp_path: Path) -> Path:
    require_root()
    require("chattr", "lsattr")
    root = fresh(tmp_path / "root", "spark1")
    file = root / "etc/nccl.conf"
    if subprocess.run(["chattr", "+i", file], capture_output=True, check=False).returncode:
        pytest.skip("this file system knows no immutable files")
    return root


def test_immutable_file_is_refused(immutable: Path) -> None:
    file = immutable / "etc/nccl.conf"
    try:
        before = snapshot(immutable)
        message = refused(install(LAB_MESH, immutable, "--apply"))
        assert (
            "refused: /etc/nccl.conf or its folder is immutable: chattr -i /etc/nccl.conf"
            in message
        )
        assert snapshot(immutable) == before
        subprocess.run(["chattr", "-i", file], check=True)
        done(install(LAB_MESH, immutable, "--apply"))
        subprocess.run(["chattr", "+i", file], check=True)
        message = refused(install(LAB_MESH, immutable, "--rollback"))
        assert "/etc/nccl.conf could not be replaced" in message
        assert {
            path for path in snapshot(immutable) if snapshot(immutable)[path] != before.get(path)
        }
        assert snapshot(immutable).keys() == before.keys()
    finally:
        subprocess.run(["chattr", "-i", file], check=True)
    done(install(LAB_MESH, immutable, "--rollback"))
    assert snapshot(immutable) == before
