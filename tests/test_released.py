"""Example sites of earlier releases stay valid, and keep their meaning.

`released/VERSION` holds the sites of a release's last commit, and the settings that each of its
bundles gave its nodes: the fabric, NCCL, the environment, the image and the command, by file and by
the nodes that share it. It is never regenerated: any difference is a change for everybody who has
such a site. What a later minor release changed on purpose is in `changed.json`, and why in the
changes of that release.
"""

import json
import lzma
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command
from jsonschema import Draft202012Validator
from test_json_schema import seen
from valid_sites import valid_file

from generator import __version__
from generator.bundle.render import render
from generator.catalogs.engines import names
from generator.catalogs.versions import version
from generator.fixing.repair import repair
from generator.pipeline import read_site
from generator.sitefile.disk import beside
from generator.sitefile.json_schema import json_schema
from generator.sitefile.renamed import renamed
from generator.sitefile.source import read

RELEASED = sorted((Path(__file__).parent / "released").glob("*/*.yaml"))
CHANGED = "changed.json"
# The format of each release, the oldest first.
FORMATS = {
    path.parent.name: Draft202012Validator(json.loads(lzma.decompress(path.read_bytes())))
    for path in sorted((Path(__file__).parent / "released").glob("*/site.schema.json.xz"))
}
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


# What `init` writes for these.
STARTED = (
    *(("--kind", kind) for kind in ("single", "direct", "pairs", "ring", "switch")),
    ("--kind", "pairs", "--groups", "2,2,1"),
    ("--kind", "switch", "--groups", "2,2"),
)


@pytest.mark.parametrize("options", STARTED, ids="".join)
@pytest.mark.parametrize("engine", names())
def test_a_new_site_requires_the_oldest_release_that_accepts_it(
    options: tuple[str, ...], engine: str, sparkgen: Command, tmp_path: Path
) -> None:
    written = sparkgen("init", "--yes", *options, "--engine", engine, cwd=tmp_path).out
    site = seen(read("site.yaml", written.encode()).data)
    own = __version__.partition(".dev")[0]
    oldest = next((name for name, each in FORMATS.items() if each.is_valid(site)), own)
    # A site that every release accepts says nothing.
    required = site.get("requires", ">=0.1").removeprefix(">=")
    assert version(required) == version(oldest)


# What went without a warning: that gateway was another program.
GONE = {".services.gateway.image", ".services.gateway.port"}
EMPTY: frozenset[str] = frozenset()


def keys_of(found: Any, schema: Any, path: str = "", within: frozenset[str] = EMPTY) -> set[str]:
    """The paths of all keys that a part of a format has; lists and choices add nothing to them."""
    if isinstance(found, list):
        return {key for each in found for key in keys_of(each, schema, path, within)}
    if not isinstance(found, dict):
        return set()
    keys = {path} if path else set()
    pointer = found.get("$ref")
    # A part that contains itself is looked at once.
    if pointer and pointer not in within:
        part = reduce(getitem, pointer.split("/")[1:], schema)
        keys |= keys_of(part, schema, path, within | {pointer})
    for key, value in found.get("properties", {}).items():
        keys |= keys_of(value, schema, f"{path}.{key}", within)
    for word in ("items", "additionalProperties", "anyOf", "oneOf", "allOf", "then", "else"):
        keys |= keys_of(found.get(word), schema, path, within)
    return keys


@pytest.mark.parametrize("name", FORMATS)
def test_keys_are_only_added(name: str) -> None:
    then, now = FORMATS[name].schema, json_schema()
    released = keys_of(then, then)
    assert len(released) > 100
    assert released - keys_of(now, now) <= GONE


EARLIER = [(path, *renamed()[path]) for path in renamed()]
WITH_KEYS = [
    path
    for pattern in ("golden/*/site.yaml", "deployments/*.yaml")
    for path in sorted(Path(__file__).parent.glob(pattern))
    if re.search("|".join(rf"\b{now}:" for _, now, _ in EARLIER), path.read_text())
]


@pytest.mark.parametrize("path", WITH_KEYS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_earlier_name_means_the_same_until_it_is_fixed(path: Path) -> None:
    text = path.read_text()
    files = beside(path)
    now = read_site("site.yaml", text.encode(), files)
    for path_then, name, _ in EARLIER:
        text = re.sub(rf"\b{name}(?=:)", path_then.rpartition(".")[2], text)
    then = read_site("site.yaml", text.encode(), files)
    added = [f.rule for f in then.findings if f not in now.findings]
    assert set(added) == {"SG111"}
    assert not list(Draft202012Validator(json_schema()).iter_errors(yaml.safe_load(text)))
    assert now.site
    assert then.site
    assert render(now.site, "0" * 64) == render(then.site, "0" * 64)
    assert repair("site.yaml", text.encode(), files).after.raw[""] == now.raw[""]


def test_earlier_names_are_gone_in_the_release_that_was_told() -> None:
    for path, now, release in EARLIER:
        assert version(__version__) < version(release)
        place, _, before = path.rpartition(".")
        keys = keys_of(json_schema(), json_schema())
        assert {f".{place}.{before}", f".{place}.{now}"} <= keys


def differences(before: Meaning, after: Meaning) -> set[tuple[str, str, str]]:
    """Files, `-` or `+`, and the lines that a node lost or got."""
    old, new = set(lines_of_nodes(before)), set(lines_of_nodes(after))
    lost = {(file, "-", line) for file, _, line in old - new}
    return lost | {(file, "+", line) for file, _, line in new - old}


def lines_of_nodes(found: Meaning) -> Iterator[tuple[str, str, str]]:
    for file, by_nodes in found.items():
        for nodes, lines in by_nodes.items():
            yield from ((file, nodes, line) for line in lines)
