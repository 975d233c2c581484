"""What editors are told of the place of a cursor, in whole sites and in unfinished texts."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from racks import site_text

from generator.diagnostics import KeyPath
from generator.editors.keys import documentation, suggestions
from generator.editors.places import Cursor, place
from generator.sitefile.json_schema import description
from generator.sitefile.key_rules import keys_at, rules_at

SITES = sorted(Path(__file__).parent.glob("golden/*/site.yaml"))
LAB = """\
nodes:
- name: spark1
  management: {address: 10.0.0.1/24}
-   name: spark2
    host: 7
cabling:
  - endpoints: [spark1:p0, spark2:p0]
topology: {kind: direct, mtu: 9000}
groups:
  - name: chat
    nodes: [spark1]
    model: {name: gpt-oss-120b}
    engine:
      name: vllm
      version: 0.33.0
      env:
        NCCL_DEBUG: INFO
      args:
        kv-cache-dtype: fp8
"""


def keys_of(root: yaml.Node, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str, yaml.Node]]:
    """Every plain key below a node: the path of its mapping, the key, and where it is."""
    if isinstance(root, yaml.MappingNode):
        for key, value in root.value:
            if not key.style:
                yield path, key.value, key
            yield from keys_of(value, (*path, key.value))
    elif isinstance(root, yaml.SequenceNode):
        for index, value in enumerate(root.value):
            yield from keys_of(value, (*path, index))


def words(text: str) -> list[tuple[KeyPath, str, yaml.Node]]:
    return list(keys_of(yaml.compose(text, Loader=yaml.CSafeLoader)))


def at(text: str, mark: str = "|") -> Cursor | None:
    """The place of a mark in a text."""
    before, _, after = text.partition(mark)
    lines = before.split("\n")
    return place(f"{before}{after}".split("\n"), len(lines) - 1, len(lines[-1]))


def texts(text: str) -> list[str]:
    here = at(text)
    assert here
    return [suggestion.text for suggestion in suggestions(here)]


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.parent.name)
def test_every_key_of_a_site_is_found_from_anywhere_in_it(site: Path) -> None:
    text = site.read_text()
    lines = text.split("\n")
    for path, key, node in words(text):
        mark = node.start_mark
        for column in (mark.column, mark.column + 1, mark.column + len(key)):
            found = place(lines, mark.line, column)
            assert found, (mark.line, column)
            assert (found.path, found.word, found.is_key) == (path, key, True)


@pytest.mark.parametrize("seed", range(20))
def test_keys_are_found_in_a_text_that_ends_anywhere(seed: int) -> None:
    """Only what stands above counts, whatever is still missing below."""
    drawn = random.Random(seed)
    path, key, node = drawn.choice(words(LAB))
    end = node.start_mark.index + drawn.randint(1, len(key))
    found = at(LAB[:end] + "|")
    assert found
    assert (found.path, found.is_key or found.path == path) == (path, True)


def test_an_unfinished_line_above_hides_nothing() -> None:
    broken = LAB.replace("  host: 7", "  hos").replace("kind: direct", "kin")
    found = at(broken.replace("      args:", "      arg|:"))
    assert found
    assert (found.path, found.word, found.is_key) == (("groups", 0, "engine"), "arg", True)


def test_keys_that_are_present_are_not_suggested() -> None:
    offered = texts(LAB.replace("topology: {kind: direct, ", "topology: {kind: direct, |, "))
    assert set(offered) == set(keys_at(("topology",))) - {"kind", "mtu"}
    offered = texts(LAB.replace("      version", "      |\n      version"))
    present = {"name", "version", "args", "env"}
    assert set(offered) == set(keys_at(("engine",))) - present


@pytest.mark.parametrize(
    ("written", "replacement", "offered"),
    [
        ("[spark1:p0", "[spark1:p|", {"spark1:p0", "spark1:p1", "spark2:p0", "spark2:p1"}),
        ("nodes: [spark1]", "nodes: [spark1, |]", {"spark1", "spark2"}),
        ("kind: direct", "kind: |", {"direct", "ring", "switch", "single", "pairs", "mixed"}),
        ("name: gpt-oss-120b", "name: |", {"gpt-oss-120b", "gpt-oss-20b"}),
        ("version: 0.33.0", "version: |", {"0.33.0", "0.28.0"}),
        ("kv-cache-dtype: fp8", "kv-cache-dtype: |", {"fp8", "auto"}),
        ("kv-cache-dtype: fp8", "kv-|", {"kv-cache-dtype", "kv-cache-memory-bytes"}),
        ("kv-cache-dtype: fp8", "enforce-eager: |", {"true", "false"}),
        ("NCCL_DEBUG: INFO", "NCCL|", {"NCCL_IB_HCA", "VLLM_LOGGING_LEVEL", "OMP_NUM_THREADS"}),
    ],
)
def test_values_come_from_the_site_and_from_the_catalogs(
    written: str, replacement: str, offered: set[str]
) -> None:
    assert offered <= set(texts(LAB.replace(written, replacement)))


def test_names_of_nodes_are_free() -> None:
    assert texts(LAB.replace("name: spark2", "name: |")) == []


@pytest.mark.parametrize("path", [("topology", "mtu"), ("engine", "parallel"), ("model",)])
def test_documentation_is_that_of_the_schema(path: KeyPath) -> None:
    *around, key = path
    assert documentation(Cursor(tuple(around), str(key), True, 0, 0, {}, True)) == description(
        rules_at(path)
    )


def test_documentation_of_a_flag_has_its_choices() -> None:
    found = at(LAB.replace("kv-cache-dtype", "kv-|cache-dtype"))
    assert found
    assert "`--kv-cache-dtype`" in documentation(found)
    assert "`fp8_e5m2`" in documentation(found)


def test_a_large_site_has_places_too() -> None:
    text = site_text(240)
    found = at(text.replace("engine:\n", "engine:\n  |\n"))
    assert found
    assert found.path == ("engine",)
    assert len(found.data["nodes"]) == 240
