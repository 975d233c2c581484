"""Findings as an engineer reads them: a case in `errors/` for every branch of every rule.

One mistake, one finding: each site has one mistake, and its file has everything that is printed
about it and what `fix` makes of it. `pytest --update-golden -k CASE` rewrites these; read the diff
before you commit it. A new case starts with just the site.
"""

import re
from collections.abc import Iterator
from difflib import unified_diff
from itertools import chain

import pytest
from error_cases import CASES, ERRORS, Case, beside, written
from tables import of_each

from generator import catalogs
from generator.catalogs import Image
from generator.diagnostics import (
    Add,
    Edit,
    Finding,
    KeyPath,
    Remove,
    Rename,
    Replace,
    Rewrite,
)
from generator.fixing.keeping import correction
from generator.fixing.repair import Repair, repair
from generator.pipeline import Reading, read_site
from generator.records import replace
from generator.reports.text import difference, text
from generator.resources import ROOT, rows
from generator.rules import RULES
from generator.rules.registry import Fault
from generator.sitefile.lint import lint

each_case = pytest.mark.parametrize("case", CASES.values(), ids=str)

# Proposals that can't be applied, or don't leave fewer findings, and why.
BY_HAND = {
    "SG103-json-of-a-variable": "no engine reads the variable, and its value is not removed",
    "SG106-host-name": "the cables name the node that was meant, and its name was just written",
    "SG604-alias": "the requested size is for two nodes, and stays",
}

# No image of the catalog states its NCCL version; this one does, so that the rule has a case.
IMAGE_WITH_NCCL = "example.org/vllm:0.33.0"


@pytest.fixture(autouse=True)
def _image_with_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    known = catalogs.image

    def image(reference: str) -> Image | None:
        if reference == IMAGE_WITH_NCCL:
            return Image("vllm", "0.33.0", "2.30.7", ray=None)
        return known(reference)

    monkeypatch.setattr(catalogs, "image", image)


def findings(reading: Reading) -> tuple[str, list[Finding]]:
    """What `validate` prints about a case's site, and the findings themselves."""
    style = lint(reading.document) if reading.document.root else ()
    found = [*reading.findings, *style]
    return text(reading.document, found), found


def fixed(done: Repair) -> str:
    """The diff that `fix` makes to a case's site."""
    return difference(done.before.document, done.after.document) if done.fewer else ""


@pytest.mark.golden
@each_case
def test_mistake_is_reported_once_and_fixed(case: Case, pytestconfig: pytest.Config) -> None:
    done = repair("site.yaml", case.site, beside)
    printed, found = findings(done.before)
    assert [finding.rule for finding in found] == [case.rule], printed
    file = ERRORS / f"{case}.yaml"
    now = written(case.site, printed, fixed(done))
    if pytestconfig.getoption("update_golden"):
        file.write_bytes(now)
    if report := "\n".join(differences(file.read_bytes(), now)):
        pytest.fail(f"{report}\n\nmeant? pytest --update-golden -k {case}", pytrace=False)
    check_all_proposals_are_settled(case, done)
    check_named_nodes_are_stated(done.before)


def check_all_proposals_are_settled(case: Case, done: Repair) -> None:
    """Every proposal is either applied or known to need a person, and its help mentions it."""
    if case.name in BY_HAND:
        assert done.stuck or done.requested
    else:
        assert not done.stuck
        assert done.fewer is any(correction(done.before.document, f) for f in done.before.findings)

    # A second run changes nothing that the first one wrote.
    assert done.fixed or done.raw == case.site
    if done.fixed and not done.stuck:
        again = repair("site.yaml", done.raw, beside)
        assert (again.raw, again.fixed) == (done.raw, ())

    for finding in done.before.findings:
        for edit in chain.from_iterable(finding.proposals):
            assert any(word in finding.help for word in mentions(edit)), (finding, edit)


def check_named_nodes_are_stated(reading: Reading) -> None:
    """A node in a finding's message is one of its nodes, or in an entry that a path leads to."""
    data = reading.document.data
    nodes = data.get("nodes") if isinstance(data, dict) else None
    mappings = [node for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []
    for finding in reading.findings:
        paths = (finding.path, *(related.path for related in finding.related))
        entries = [str(entry(data, path)) for path in paths if path]
        for name in (str(node["name"]) for node in mappings if "name" in node):
            named = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
            if named.search(finding.message) and name not in finding.nodes:
                assert any(map(named.search, entries)), (name, finding)


def entry(data: object, path: KeyPath) -> object:
    """The value at a path; the whole entry of a node, a cable or a group."""
    for part in path[:2] if path[0] in ("nodes", "cabling", "groups") else path:
        try:
            data = data[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def mentions(edit: Edit) -> list[str]:
    """Words of which the help must contain at least one to mention an edit."""
    match edit:
        case Rename():
            return [edit.key]
        case Replace():
            # If the text is a list, the help contains the name that was wrong.
            shown = str(edit.value).lower() if isinstance(edit.value, bool) else str(edit.value)
            return [*re.findall(r"[\w./-]+", shown), "remove the tag", "swap"]
        case Remove():
            return [
                "remove",
                "take",
                "leave it out",
                "keep one",
                "in place of",
                "under",
                "use the key",
                "parallel: ",
            ]
        case Rewrite():
            return ["write", "put", "indent", "remove it"]
        case Add():
            return [str(edit.path[-1]), "endpoints", "cable", "use the key", "under"]


def differences(expected: bytes, now: bytes) -> Iterator[str]:
    before, after = (text.decode(errors="replace").splitlines() for text in (expected, now))
    return unified_diff(before, after, "expected", "now", lineterm="")


@of_each(CASES.values())
def test_help_says_what_to_write(case: Case) -> None:
    words = ("NoneType", "'str'", "'int'", "'dict'", "Traceback", "None", "OrderedDict")
    assert not [word for word in words if word in case.printed]
    if case.rule != "SG106":
        assert " = help: run " not in case.printed


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES.values()} == {*RULES, *findings_in_the_source()}


BY_NAMES = b"""\
version: 1
name: home
nodes:
  spark1:
    management: {interface: enP7s7, address: 10.0.0.11/24}
  spark2:
    management: {interface: enP7s7, address: 10.0.0.12/24}
cabling:
  - endpoints: [spark1:p0, spark2:p0]
topology: direct
model: gpt-oss-120b
engine: vllm
"""


def test_sections_of_the_wrong_type_lack_no_key_of_a_list_above_them() -> None:
    """What is written above a mapping makes no list of it."""
    printed, found = findings(read_site("site.yaml", BY_NAMES))
    assert [(one.rule, one.path) for one in found] == [
        ("SG103", (section,)) for section in ("nodes", "topology", "model", "engine")
    ], printed


def findings_in_the_source() -> Iterator[str]:
    """The ids of findings about a site file; SG8xx are about a bundle, SG9xx about sparkgen."""
    for module in (ROOT / "generator").rglob("*.py"):
        yield from re.findall(r'"(SG[0-7]\d\d|SG880)"', module.read_text(encoding="utf-8"))
    yield from (rule for _, rule, _, _ in rows("other-words"))


def test_every_case_is_a_site_with_its_findings() -> None:
    assert {path.name for path in ERRORS.iterdir()} == {f"{name}.yaml" for name in CASES}
    for name, case in CASES.items():
        assert re.fullmatch(r"SG\d{3}(-[a-z0-9]+)+", name)
        shown = re.findall(r"^(?:error|warning|note)\[(SG\d{3})\]", case.printed, re.MULTILINE)
        assert shown == [case.rule], name


@pytest.mark.parametrize("rule", sorted(RULES))
def test_case_breaks_only_its_rule(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*sections: object) -> Iterator[Fault]:
        return iter(())

    monkeypatch.setitem(RULES, rule, replace(RULES[rule], check=silent))
    for name, case in CASES.items():
        if case.rule == rule:
            try:
                printed, _ = findings(read_site("site.yaml", case.site, beside))
            except Exception:
                # Later code may fail on input that the rule would have rejected.
                continue
            assert printed != case.printed, name
