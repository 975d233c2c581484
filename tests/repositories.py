"""A repository with a site and its bundle, and the output of `sparkgen diff` in it."""

import json
import subprocess
from pathlib import Path
from typing import Any

from conftest import Command
from racks import site_text


def lab(folder: Path, sparkgen: Command) -> Path:
    """A site file and its bundle, both committed."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "sites").mkdir()
    path = folder / "sites/lab.yaml"
    path.write_text(site_text())
    assert sparkgen("build", "sites/lab.yaml", cwd=folder).code == 0
    commit(folder)
    return path


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=Someone", "-c", "user.email=someone@example.org")
    subprocess.run(("git", "-C", str(folder), *identity, *words), check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=A change of the cluster")


def data(sparkgen: Command, cwd: Path, *words: str) -> dict[str, Any]:
    """The review of the only site, as JSON for scripts."""
    outcome = sparkgen("diff", "sites/lab.yaml", "--format", "json", *words, cwd=cwd)
    assert (outcome.code, outcome.err) == (0, "")
    document = json.loads(outcome.out)
    assert document["version"] == 1
    (found,) = document["sites"]
    return dict(found)


def todo(found: dict[str, Any]) -> dict[str, str]:
    return {node["node"]: node["todo"] for node in found["nodes"]}


def order(found: dict[str, Any]) -> list[str]:
    steps = ((step["step"], " ".join(step["nodes"])) for step in found["order"])
    return [f"{text}: {nodes}" if nodes else text for text, nodes in steps]
