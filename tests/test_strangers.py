"""Starts that engines refused elsewhere are told from the site file; those that run are not."""

from pathlib import Path
from typing import Any

import yaml
from tables import of_each
from test_startup import _STARTUP, _reading

from generator.diagnostics import Finding, Severity

FOLDER = Path(__file__).parent / "strangers"
ROWS: list[dict[str, Any]] = yaml.load((FOLDER / "faults.yaml").read_bytes(), yaml.CSafeLoader)
RECIPES: list[dict[str, Any]] = yaml.load((FOLDER / "recipes.yaml").read_bytes(), yaml.CSafeLoader)
# Rules about something else than what ended the start, such as the memory of a whole model.
OTHERS = {"SG520", "SG521", "SG522", "SG523", "SG527", "SG530", "SG531", "SG537", "SG538"}
OTHERS |= {"SG556", "SG657", "SG669", "SG689"}
# What stopped some starts and not others.
REPORTED = "SG658"
# What a release lacks on a GB10 for any start, or any of such a model, whatever ended this one
# elsewhere: a word of the finding, and one of a start that ended so.
_OF_ALL_STARTS = {
    "ptxas": "sm_121a",
    "tokens by default": "multimodal",
    "starts DeepGEMM": "Unknown",
    "chooses DeepGEMM": "DeepGEMM",
    "with Ray only": "--nnodes",
    "with which it ": "unknown argument",
}
_ABOUT = ("source", "says", "engine", "silent", "told", "beside")


def _findings(row: dict[str, Any]) -> list[Finding]:
    settings = {key: value for key, value in row.items() if key not in _ABOUT}
    found = _reading(row.get("engine", "vllm"), settings).findings
    return [f for f in found if f.severity is not Severity.NOTE or f.rule == REPORTED]


@of_each(ROWS)
def test_refused_start(row: dict[str, Any]) -> None:
    others = {*OTHERS, *row.get("beside", ())}
    told = [
        finding.rule
        for finding in _findings(row)
        if finding.rule not in others
        and all(
            said in row["says"] for word, said in _OF_ALL_STARTS.items() if word in finding.message
        )
    ]
    assert bool(told) != row.get("silent", False), row["source"]


@of_each(RECIPES)
def test_recipe_starts(row: dict[str, Any]) -> None:
    """Also if its version were a release, of which the conditions are certain."""
    errors = [finding for finding in _findings(row) if finding.severity is Severity.ERROR]
    assert {finding.rule for finding in errors} <= {*row.get("told", ())}, (row["source"], errors)
    of_starts = {*_STARTUP, "SG509", "SG532"} - {REPORTED}
    for version in {row["version"], row["version"].partition("+")[0]}:
        findings = _findings(row | {"version": version})
        refused = {finding.rule for finding in findings if finding.rule in of_starts}
        assert refused <= {*row.get("told", ())}, (row["source"], version)
