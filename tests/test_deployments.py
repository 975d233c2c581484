"""Public deployments, written as sites: nothing is said of them that is not so.

Each file of `deployments/` names its source. What is listed in `expected.yaml` is right, or known
to be wrong and says so; what is not listed there is a false finding.
"""

from pathlib import Path

import pytest
import yaml

from generator.diagnostics import Severity
from generator.pipeline import read_site

FOLDER = Path(__file__).parent / "deployments"
EXPECTED = yaml.safe_load((FOLDER / "expected.yaml").read_text("utf-8"))
SITES = sorted(set(FOLDER.glob("*.yaml")) - {FOLDER / "expected.yaml"})


@pytest.mark.parametrize("file", SITES, ids=lambda file: file.stem)
def test_no_false_finding(file: Path) -> None:
    read = read_site("site.yaml", file.read_bytes())
    told = [found for found in read.findings if found.severity is not Severity.NOTE]
    listed = EXPECTED[file.stem]
    false = [f"{found.rule} {found.message}" for found in told if found.rule not in listed]
    assert false == []
    assert {found.rule for found in told} == set(listed)


@pytest.mark.parametrize("file", SITES, ids=lambda file: file.stem)
def test_source_is_named(file: Path) -> None:
    first = file.read_text("utf-8").partition("\n")[0]
    assert first.startswith("# Source: https://")


def test_every_deployment_is_expected() -> None:
    assert {file.stem for file in SITES} == set(EXPECTED)
