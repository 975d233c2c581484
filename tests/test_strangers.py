"""Starts that engines refused elsewhere are told from the site file, or known not to be."""

from pathlib import Path
from typing import Any

import yaml
from tables import of_each
from test_startup import _reading

from generator.diagnostics import Severity

FAULTS = Path(__file__).parent / "strangers/faults.yaml"
ROWS: list[dict[str, Any]] = yaml.load(FAULTS.read_bytes(), yaml.CSafeLoader)
# Rules about something else than what ended the start, such as the memory of a whole model.
OTHERS = {"SG520", "SG521", "SG522", "SG523", "SG527", "SG530", "SG531", "SG537", "SG538"}
_ABOUT = ("source", "says", "engine", "silent")


@of_each(ROWS)
def test_refused_start(row: dict[str, Any]) -> None:
    settings = {key: value for key, value in row.items() if key not in _ABOUT}
    findings = _reading(row.get("engine", "vllm"), settings).findings
    told = [f.rule for f in findings if f.severity is not Severity.NOTE and f.rule not in OTHERS]
    assert bool(told) != row.get("silent", False), row["source"]
