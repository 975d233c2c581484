"""Checks whether a Docker engine starts on a node here; not every machine allows it."""

import fcntl
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from cluster import docker, nodes, stack

# Seconds for a node to boot; a slower machine is too slow for these tests.
_BOOT = 120
_FILE = "no-docker"


def select(items: list[pytest.Item], work: Path) -> list[pytest.Item]:
    """Skip the tests that can't run here; a file in that folder records why."""
    wanting = [item for item in items if item.get_closest_marker("docker")]
    if not wanting or any(docker.find(name) is None for name in docker.PROGRAMS):
        return []
    file = work / _FILE
    # Workers collect at the same time: one tries, so that all collect the same tests.
    with (work / "no-docker.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            file.write_text(_refusal())
    return wanting if reason(work) else []


def reason(work: Path) -> str:
    """The recorded reason why they can't run, if this was tried."""
    file = work / _FILE
    return file.read_text() if file.exists() else ""


def _refusal() -> str:
    """Why no container runs on a node; empty if one does."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _try(Path(folder))
    except (pytest.skip.Exception, pytest.fail.Exception):
        # A program is missing: the tests say which, and are skipped or fail for that.
        return ""
    except (AssertionError, OSError, subprocess.SubprocessError) as error:
        return f"no node with a Docker engine boots: {error!r}"


def _try(folder: Path) -> str:
    tree = nodes.prepared(folder / "probe")
    stack.equip(tree)
    archive = docker.image(folder, {})
    with stack.equipped(tree, "unshare", "--net", "--uts", patience=_BOOT) as node:
        steps: Sequence[tuple[str, ...]] = (
            ("systemctl", "start", "docker"),
            ("docker", "import", str(archive), "probe"),
            ("docker", "run", "--rm", "--network=none", "probe", "sh", "-c", ":"),
        )
        for step in steps:
            done = node.run(*step)
            if done.returncode:
                journal = node.run("journalctl", "--no-pager", "--lines=5", "--output=cat").stdout
                return f"{' '.join(step)}: {done.stderr.strip()}\n{journal.strip()}"
    return ""
