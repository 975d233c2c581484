"""`models`: the catalog, what fits each model, and what a site's nodes can hold."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from racks import site_text

from generator import catalogs
from generator.fit.assessment import assess
from generator.pipeline import read_site
from generator.resources import ROOT

LAB = ROOT / "sites/lab-mesh.yaml"
PAIR = ROOT / "sites/pair-chatbot.yaml"


def listed(sparkgen: Command, *words: object) -> list[dict[str, Any]]:
    outcome = sparkgen("models", *words, "--format", "json", cwd=ROOT)
    assert outcome.code == 0
    document = json.loads(outcome.out)
    assert document["version"] == 1
    return list(document["models"])


def test_whole_catalog(sparkgen: Command) -> None:
    found = {item["name"]: item for item in listed(sparkgen)}
    assert sorted(found) == list(catalogs.checkpoint_names())
    sizes = [item["weightGb"] for item in found.values() if item["nodes"] == 1]
    assert max(sizes) < 128
    assert {item["nodes"] for item in found.values()} == {1, 2, 3, 4, 8, None}
    assert all(item["known"] or item["nodes"] is None for item in found.values())


@pytest.mark.parametrize("word", ["QWEN3-235b", "nvidia/", "mxfp4"])
def test_word(word: str, sparkgen: Command) -> None:
    found = listed(sparkgen, word)
    assert 0 < len(found) < 60
    assert all(word.lower() in f"{item['source']} {item['format']}".lower() for item in found)


def test_table(sparkgen: Command) -> None:
    outcome = sparkgen("models", "gpt-oss", cwd=ROOT)
    head, large, small = outcome.out.splitlines()
    assert head.split() == ["MODEL", "FORMAT", "GB", "CONTEXT", "NODES", "ENGINES", "PARSERS"]
    assert large.split()[:5] == ["gpt-oss-120b", "mxfp4", "65.2", "131072", "1"]
    assert "vllm, sglang" in small
    assert "tool: openai, reasoning: openai_gptoss" in small


def test_word_of_no_model(sparkgen: Command) -> None:
    outcome = sparkgen("models", "gpt-os-120b", cwd=ROOT)
    assert (outcome.code, outcome.out) == (0, "")
    assert "did you mean 'gpt-oss-120b'?" in outcome.err
    assert listed(sparkgen, "nonesuch") == []
    # A name that is right has no better one, whether the site holds the model or not.
    outcome = sparkgen("models", "llama-3.1-405b-instruct", "--fits", str(PAIR), cwd=ROOT)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.endswith("has 'llama-3.1-405b-instruct' in its name or format\n")


@pytest.mark.parametrize("file", [LAB, PAIR], ids=lambda file: file.stem)
def test_site_fits_its_own_nodes(file: Path, tmp_path: Path, sparkgen: Command) -> None:
    found = listed(sparkgen, "--fits", file)
    site = read_site(file.name, file.read_bytes()).declaration
    assert site
    assert {item["tensor"] * item["pipeline"] for item in found} == {len(site.nodes)}
    names = {item["name"] for item in found}
    assert not {item["name"] for item in listed(sparkgen) if not item["known"]} & names
    fit = assess(site.nodes, site.model, site.engine)
    assert fit
    holds = fit.has_margin and (fit.most_sequences or 0) >= fit.sequences
    assert (site.model.name in names) == holds
    assert all(item["headroomGib"] > 0 for item in found)


def test_more_fits_on_more_nodes(tmp_path: Path, sparkgen: Command) -> None:
    names = []
    for count in (2, 4):
        (tmp_path / "lab.yaml").write_text(site_text(nodes=count))
        found = listed(sparkgen, "--fits", tmp_path / "lab.yaml")
        names.append({item["name"] for item in found})
    assert names[0] < names[1]


def test_site_that_is_not_valid(tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "lab.yaml").write_text("version: 1\n")
    assert sparkgen("models", "--fits", "lab.yaml", cwd=tmp_path).code == 3
    assert sparkgen("models", "--fits", "none.yaml", cwd=tmp_path).code == 4


def test_comparison_has_the_checkpoints_of_the_same_model(sparkgen: Command) -> None:
    outcome = sparkgen("fit", "--compare", PAIR, cwd=ROOT)
    _, _, table = outcome.out.partition("OTHER CHECKPOINT")
    assert {line.split()[0] for line in table.splitlines()[1:]} == {
        "llama-3.1-70b-instruct",
        "meta-llama-3.1-70b-instruct-awq-int4",
    }
    data = json.loads(sparkgen("fit", "--compare", "--format", "json", PAIR, cwd=ROOT).out)
    assert [item["name"] for item in data["checkpoints"]] == [
        line.split()[0] for line in table.splitlines()[1:]
    ]
    assert data["checkpoints"][0]["fit"]["state"] == "fits"


def test_the_sites_own_split_and_sequences_decide(sparkgen: Command) -> None:
    found = listed(sparkgen, "qwen3", "--fits", ROOT / "sites/more/pair-qwen3-235b.yaml")
    assert found
    assert {each["tensor"] for each in found} == {2}
    assert all(each["mostSequences"] >= 4 for each in found)


@pytest.mark.parametrize(
    ("key", "figure"),
    [
        ("context", "longestContext"),
        ("sequences", "mostSequences"),
        ("headroom", "headroomGib"),
    ],
)
def test_models_are_sorted_by_what_is_asked(key: str, figure: str, sparkgen: Command) -> None:
    site = ROOT / "sites/more/pair-qwen3-235b.yaml"
    figures = [each[figure] for each in listed(sparkgen, "qwen", "--fits", site, "--sort", key)]
    assert len(figures) > 3
    assert figures == sorted(figures, reverse=True)


def test_order_needs_a_site(sparkgen: Command) -> None:
    outcome = sparkgen("models", "qwen", "--sort", "speed", cwd=ROOT)
    assert outcome.code == 2
    assert "--sort needs --fits SITE" in outcome.err


def test_all_groups_are_listed(sparkgen: Command) -> None:
    outcome = sparkgen("models", "gemma", "--fits", ROOT / "sites/more/three-models.yaml", cwd=ROOT)
    rows = [line.split()[0] for line in outcome.out.splitlines()]
    assert rows[0] == "GROUP"
    assert len(set(rows[1:])) > 1
