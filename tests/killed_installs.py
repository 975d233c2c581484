"""Kills install.sh and its children at random moments, and checks that the node can be recovered.

    python tests/killed_installs.py KILLS [SEED]

A folder stands for the node, and the bundle is installed on it, rolled back or removed. After the
kill, the same action or a rollback has to leave each file, mode and link either as it was before or
as intended. Prints the state in which each kill left the node.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ["SPARKGEN_BUILT_BUNDLES"] = os.environ.get("SPARKGEN_BUILT_BUNDLES") or tempfile.mkdtemp(
    prefix="sparkgen-bundles-"
)

from test_install import (
    BACKUPS,
    LAB_MESH,
    Snapshot,
    changed_bundle,
    done,
    fresh,
    install,
    snapshot,
)

# For each action: the node that it starts from, its option, and the option used after the kill.
ACTIONS = {
    "first --apply": ("bare", "--apply", "--rollback"),
    "second --apply": ("older", "--apply", "--rollback"),
    "--rollback": ("newer", "--rollback", "--rollback"),
    "--uninstall": ("newer", "--uninstall", "--uninstall"),
}


class Nodes:
    """Nodes before any install, after installing an older bundle, and after installing this one."""

    def __init__(self, folder: Path) -> None:
        self.roots = {name: folder / name for name in ("bare", "older", "newer")}
        old = changed_bundle(LAB_MESH, folder / "bundle")
        fresh(self.roots["bare"], LAB_MESH.name)
        for name in ("older", "newer"):
            shutil.copytree(self.roots["bare"], self.roots[name], symlinks=True)
            done(install(old, self.roots[name], "--apply"))
        done(install(LAB_MESH, self.roots["newer"], "--apply"))
        self.spans = {action: self._span(folder / "root", action) for action in ACTIONS}

    def _span(self, root: Path, action: str) -> tuple[float, float]:
        """Seconds until an action starts to change a node, and until it ends."""
        name, option, _ = ACTIONS[action]
        before, share, seconds = self.snapshot(name), 0.0, 0.0
        # Watching slows it down: one run shows when changes start, another how long it takes.
        for looks in (True, False):
            shutil.copytree(self.roots[name], root, symlinks=True)
            began = time.monotonic()
            with started(root, option) as process:
                while looks and process.poll() is None:
                    # Files that come and go during the snapshot do not count as a change.
                    with contextlib.suppress(FileNotFoundError):
                        if not share and snapshot(root) != before:
                            share = time.monotonic() - began
            seconds = time.monotonic() - began
            share = share / seconds if looks else share
            shutil.rmtree(root)
        return share * seconds, seconds

    def snapshot(self, name: str) -> Snapshot:
        return snapshot(self.roots[name])


def started(root: Path, option: str) -> "subprocess.Popen[bytes]":
    """install.sh in its own session, so that it can be killed together with its children."""
    return subprocess.Popen(
        [str(LAB_MESH.path / "install.sh"), "--root", str(root), option],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def at_random(kills: int, chance: random.Random) -> Counter[str]:
    """Kill install.sh the given number of times, shortly before or while it changes something."""
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        nodes = Nodes(Path(folder))
        for _ in range(kills):
            found[_killed(nodes, Path(folder) / "root", chance)] += 1
    return found


def _killed(nodes: Nodes, root: Path, chance: random.Random) -> str:
    chosen = chance.choice(sorted(ACTIONS))
    name, action, remedy = ACTIONS[chosen]
    first, last = nodes.spans[chosen]
    ends = {"--rollback": "older" if name == "newer" else name, "--uninstall": "bare"}
    shutil.copytree(nodes.roots[name], root, symlinks=True)
    backups = {path.name for path in (root / BACKUPS).glob("*")}
    with started(root, action) as process:
        time.sleep(chance.uniform(0.9 * first, last))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    changed = snapshot(root) != nodes.snapshot(name)
    begun = backups != {path.name for path in (root / BACKUPS).glob("*")}
    # An action that had not begun has nothing to undo; one that had finished is not repeated.
    through = snapshot(root) == nodes.snapshot(ends[remedy]) and action != "--apply"
    if begun and not through:
        done(install(LAB_MESH, root, remedy))
    elif action != "--apply" and not through:
        done(install(LAB_MESH, root, action))
    assert snapshot(root) == nodes.snapshot(ends[remedy]), (name, action)
    assert not list(root.rglob("*.sparkgen"))
    shutil.rmtree(root)
    return (
        f"{action} {'ended' if process.returncode == 0 else 'changed' if changed else 'unchanged'}"
    )


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    seed = numbers[1] if numbers[1:] else time.time_ns()
    print(f"seed {seed}", file=sys.stderr)
    for word, count in sorted(at_random(numbers[0], random.Random(seed)).items()):
        print(count, word)
