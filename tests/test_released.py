"""Example sites of earlier releases stay valid, and keep their meaning.

`released/VERSION` holds the sites of a release's last commit, and the settings that each of its
bundles gave its nodes: the fabric, NCCL, the environment, the image and the command, by file and by
the nodes that share it. It is never regenerated: any difference is a change for everybody who has
such a site. What a later minor release changed on purpose is in `changed.json`, and why in the
changes of that release.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from valid_sites import valid_file

from generator.bundle.render import render

RELEASED = sorted((Path(__file__).parent / "released").glob("*/*.yaml"))
CHANGED = "changed.json"
LINES = ("etc/nccl.conf", "etc/sparkgen/engine.env", "etc/sparkgen/engine.raw.env")
JOB = "opt/sparkgen/serve.sbatch"
NETPLAN = "etc/netplan/40-cx7.yaml"
COMPOSE = "opt/sparkgen/compose.yaml"
# Scripts that run their arguments as a command.
WRAPPERS = ("bash", "/opt/sparkgen/secrets.sh")

# Lines of a file by the nodes that have them so.
Meaning = dict[str, dict[str, list[str]]]


def meaning(tree: Mapping[str, str]) -> Meaning:
    """The settings that a bundle gives its nodes."""
    found: dict[str, dict[str, list[str]]] = {}
    for path, content in sorted(tree.items()):
        node, _, file = path.partition("/")
        if lines := list(meant(file, content)):
            found.setdefault(file, {})[node] = lines
    return {path: alike(by_node) for path, by_node in found.items()}


def meant(path: str, content: str) -> Iterator[str]:
    """A file without its comments and its layout."""
    if path in LINES:
        yield from sorted(line for line in content.splitlines() if line and line[0] != "#")
    elif path == JOB:
        lines = (line.strip() for line in content.splitlines())
        yield from (
            line for line in lines if line.startswith("#SBATCH") or line[:1] not in ("#", "")
        )
    elif path == NETPLAN:
        for name, interface in yaml.safe_load(content)["network"]["ethernets"].items():
            yield json.dumps({name: interface}, sort_keys=True)
    elif path == COMPOSE:
        for name, service in yaml.safe_load(content)["services"].items():
            words = [*service.get("entrypoint", ()), *service.get("command", ())]
            started = [word for word in words if word not in WRAPPERS]
            yield " ".join([name, service["image"], *started])


def alike(by_node: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The nodes that have the same lines together."""
    nodes: dict[tuple[str, ...], list[str]] = {}
    for node, lines in by_node.items():
        nodes.setdefault(tuple(lines), []).append(node)
    return {" ".join(names): list(lines) for lines, names in nodes.items()}


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_released_site_means_the_same(path: Path) -> None:
    tree = {p: file.text for p, file in render(valid_file(path).site, "0" * 64).items()}
    released, now = json.loads(path.with_suffix(".json").read_text()), meaning(tree)
    listed = path.with_name(CHANGED)
    changed = {tuple(row) for row in json.loads(listed.read_text())} if listed.exists() else set()
    assert differences(released, now) <= changed


def test_every_listed_change_is_one() -> None:
    for listed in {path.with_name(CHANGED) for path in RELEASED}:
        if listed.exists():
            found: set[tuple[str, str, str]] = set()
            for path in listed.parent.glob("*.yaml"):
                tree = {p: file.text for p, file in render(valid_file(path).site, "0" * 64).items()}
                found |= differences(
                    json.loads(path.with_suffix(".json").read_text()), meaning(tree)
                )
            assert found == {tuple(row) for row in json.loads(listed.read_text())}


def differences(before: Meaning, after: Meaning) -> set[tuple[str, str, str]]:
    """Files, `-` or `+`, and the lines that a node lost or got."""
    old, new = set(lines_of_nodes(before)), set(lines_of_nodes(after))
    lost = {(file, "-", line) for file, _, line in old - new}
    return lost | {(file, "+", line) for file, _, line in new - old}


def lines_of_nodes(found: Meaning) -> Iterator[tuple[str, str, str]]:
    for file, by_nodes in found.items():
        for nodes, lines in by_nodes.items():
            yield from ((file, nodes, line) for line in lines)
