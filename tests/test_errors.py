"""Findings as an engineer reads them: `errors/RULE-slug/` for every rule and branch of it.

One mistake, one finding: each site has one mistake, and expected.txt all that is printed of it.
`pytest --update-golden -k CASE` rewrites it; the diff is read before it is committed.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

import pytest

from generator import catalogs
from generator.catalogs import Image
from generator.diagnostics import Finding
from generator.formats import text
from generator.lint import lint
from generator.pipeline import read_site
from generator.resources import ROOT
from generator.rules import RULES
from generator.rules.registry import Fault

ERRORS = Path(__file__).parent / "errors"
CASES = sorted(path.name for path in ERRORS.iterdir())

# No image of the catalog says which NCCL it holds; this one does, so that the rule has a case.
IMAGE_WITH_NCCL = "example.org/vllm:0.33.0"


@pytest.fixture(autouse=True)
def _image_with_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    known = catalogs.image

    def image(reference: str) -> Image | None:
        if reference == IMAGE_WITH_NCCL:
            return Image("vllm", "0.33.0", "2.30.7", ray=None)
        return known(reference)

    monkeypatch.setattr(catalogs, "image", image)


def findings(case: str) -> tuple[str, list[Finding]]:
    """What `validate` prints of a case's site, and the findings behind it."""
    reading = read_site("site.yaml", (ERRORS / case / "site.yaml").read_bytes())
    style = lint(reading.document) if reading.document.root else ()
    found = [*reading.findings, *style]
    return text(reading.document, found), found


def expected(case: str) -> str:
    return (ERRORS / case / "expected.txt").read_bytes().decode()


@pytest.mark.parametrize("case", CASES)
def test_mistake_is_said_once_and_in_these_words(case: str, pytestconfig: pytest.Config) -> None:
    printed, found = findings(case)
    assert [finding.rule for finding in found] == [case.partition("-")[0]], printed
    if pytestconfig.getoption("update_golden"):
        (ERRORS / case / "expected.txt").write_bytes(printed.encode())
    if printed != expected(case):
        difference = unified_diff(
            expected(case).splitlines(), printed.splitlines(), "expected.txt", "now", lineterm=""
        )
        lines = [*difference, "", f"meant? pytest --update-golden -k {case}"]
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.mark.parametrize("case", CASES)
def test_help_says_what_to_write(case: str) -> None:
    printed = expected(case)
    words = ("NoneType", "'str'", "'int'", "'dict'", "Traceback", "None", "OrderedDict")
    assert not [word for word in words if word in printed]
    if not case.startswith("SG106"):
        assert " = help: run " not in printed


def test_every_rule_has_a_case() -> None:
    assert {case.partition("-")[0] for case in CASES} == {*RULES, *findings_in_the_source()}


def findings_in_the_source() -> Iterator[str]:
    """The ids of findings about a site file; SG8xx is about a bundle, SG9xx about sparkgen."""
    for module in (ROOT / "generator").rglob("*.py"):
        yield from re.findall(r'"(SG[0-7]\d\d)"', module.read_text(encoding="utf-8"))


def test_every_case_is_a_site_and_what_is_said_of_it() -> None:
    for case in CASES:
        assert re.fullmatch(r"SG\d{3}(-[a-z0-9]+)+", case)
        files = sorted(path.name for path in (ERRORS / case).iterdir())
        # What `fix` makes of it, where it makes anything.
        assert [file for file in files if file != "fixed.diff"] == ["expected.txt", "site.yaml"]
        shown = re.findall(r"^(?:error|warning|note)\[(SG\d{3})\]", expected(case), re.MULTILINE)
        assert shown == [case.partition("-")[0]], case


@pytest.mark.parametrize("rule", sorted(RULES))
def test_case_is_of_its_rule_alone(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*sections: object) -> Iterator[Fault]:
        return iter(())

    monkeypatch.setitem(RULES, rule, replace(RULES[rule], check=silent))
    for case in CASES:
        if case.startswith(rule):
            try:
                printed, _ = findings(case)
            except Exception:
                # What comes after a rule may fall over what the rule would have kept out.
                continue
            assert printed != expected(case), case
