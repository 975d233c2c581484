"""Editor support: generated files are up to date, and editors report what sparkgen reports."""

import random
import re
from pathlib import Path
from typing import Any

import cerberus
import pytest
from cerberus.schema import UnvalidatedSchema
from conftest import Command
from error_cases import CASES
from jsonschema import Draft202012Validator
from tables import of_each
from test_schema import KEYS, SITE, Rules, each_key
from typos.sites import files
from typos.study import KINDS

from generator.diagnostics import Severity, has_errors
from generator.pipeline import read_site
from generator.resources import ROOT, SCHEMAS
from generator.sitefile import json_schema, schema, validation
from generator.sitefile.source import Document, Plain, read
from generator.sitefile.text_types import TEXT_TYPES

TESTS = Path(__file__).parent
SITES = sorted([*(ROOT / "sites").rglob("*.yaml"), *TESTS.glob("golden/*/site.yaml")])
# Mistakes that the schema reports; an editor cannot report later ones.
OF_THE_SCHEMA = [case for case in CASES if re.match(r"SG10[1-9]-", case)]
OF_THE_RULES = [
    # A secret under an unknown key is reported only once, and not as an unknown key.
    case
    for case in CASES
    if re.match(r"SG(19|[2-7])", case) and not case.endswith("unknown-key")
]
INEXPRESSIBLE = {
    "SG102-certificate-without-a-key": "editors learn what keys exclude, not that one is needed",
    "SG106-address-of-a-network": "a pattern can't tell a network's address from a node's",
    "SG106-broadcast-address": "a pattern can't tell a broadcast address from a node's",
    "SG106-multicast-address": "a pattern can't tell a multicast address from a node's",
    "SG106-command-with-an-open-quote": "a pattern can't tell whether each quote is closed",
    "SG106-cores-that-go-down": "a pattern can't compare numbers",
    "SG106-subnet-with-host-bits": "a pattern can't tell host bits from a network's address",
}

EDITOR = Draft202012Validator(json_schema.json_schema())


def seen(value: Any) -> Any:
    """Data as an editor sees it, with scalars read as in YAML 1.2."""
    if isinstance(value, dict):
        return {key: seen(item) for key, item in value.items()}
    if isinstance(value, list):
        return [seen(item) for item in value]
    return value.meaning() if isinstance(value, Plain) else value


def objections(document: Document) -> list[str]:
    return [error.message for error in EDITOR.iter_errors(seen(document.data))]


@pytest.mark.parametrize(
    ("name", "options"), [("site.schema.json", []), ("reference.md", ["--docs"])]
)
def test_generated_file_is_fresh(
    name: str, options: list[str], sparkgen: Command, tmp_path: Path
) -> None:
    printed = sparkgen("schema", *options, cwd=tmp_path)
    command = " ".join(["sparkgen schema", *options])
    assert (printed.code, printed.err) == (0, "")
    assert (SCHEMAS / name).read_bytes() == printed.out.encode(), f"{command} > schemas/{name}"


def test_json_schema_is_valid_2020_12() -> None:
    assert json_schema.json_schema()["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(json_schema.json_schema())


@pytest.mark.parametrize("path", SITES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_valid_site_passes(path: Path) -> None:
    assert objections(read(path.name, path.read_bytes())) == []


@of_each(OF_THE_RULES)
def test_editor_has_no_objection_to_what_sparkgen_takes(case: str) -> None:
    """The schema covers part of the rules: which of two keys, how many nodes, which ports."""
    found = objections(read("site.yaml", CASES[case].site))
    assert not found or has_errors(read_site("site.yaml", CASES[case].site).findings)


@pytest.mark.parametrize(
    "case",
    ["SG203-unknown-port", "SG208-ring-of-nine", "SG502-no-model", "SG653-file-of-another-engine"],
)
def test_schema_covers_some_of_the_rules(case: str) -> None:
    assert objections(read("site.yaml", CASES[case].site))


def test_editor_proposes_models_images_and_parsers_and_takes_others() -> None:
    definitions = json_schema.json_schema()["$defs"]
    assert "gpt-oss-120b" in definitions["models"]["enum"]
    assert "nvcr.io/nvidia/vllm:26.10-py3" in definitions["images"]["enum"]
    assert {"openai", "qwen3_coder"} <= set(definitions["tool-parsers"]["enum"])
    assert "openai_gptoss" in definitions["reasoning-parsers"]["enum"]
    other = SITE.replace("name: gpt-oss-120b", "name: of-tomorrow")
    assert other != SITE
    other += "  args: {tool-call-parser: of-ones-own}\n"
    assert objections(read("site.yaml", other.encode())) == []


def test_editor_finds_nearly_all_mistakes_that_a_schema_can() -> None:
    """Of 500 seeded mistakes, those that violate the format, except for cables and places."""
    rng = random.Random(3)
    known, seen, reported = files(), 0, 0
    for _ in range(500):
        file = rng.choice(known)
        mistake = rng.choice(KINDS)(rng, file.site)
        document = read(file.name, mistake.text.encode()) if mistake else None
        if mistake is None or document is None or not isinstance(document.data, dict):
            continue
        rules = [f.rule for f in schema.check(document)[1] if f.severity is Severity.ERROR]
        if rules and rules[0].startswith("SG10"):
            seen += 1
            reported += bool(objections(document))
    assert seen > 100
    assert reported / seen > 0.9


@of_each(OF_THE_SCHEMA)
def test_editor_objects_to_what_the_schema_refuses(case: str) -> None:
    found = objections(read("site.yaml", CASES[case].site))
    assert bool(found) != (case in INEXPRESSIBLE)


def test_listed_exceptions_are_error_cases() -> None:
    assert set(INEXPRESSIBLE) <= set(OF_THE_SCHEMA)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "sites").rglob("*.yaml")), ids=lambda path: path.stem
)
def test_modeline_of_an_example_site_leads_to_the_json_schema(path: Path) -> None:
    first, _, _ = path.read_text(encoding="utf-8").partition("\n")
    named = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    assert named
    assert (path.parent / named[1]).resolve() == SCHEMAS / "site.schema.json"


# Key by key


WORDS = """
0 1 -1 11 64 128 0.5 .5 1. 1.5 2.30 0.20 1e3 1e-1 0x1f 9000 070 9_000 1e999 99999999999999999999
true True FALSE yes no null Null ~ a A a-b a_b a.b a/b -a a- _a .a /a /a/b /a/../b /a/. /a// a:b
a:b:c vllm ring both mtp eagle3 networkd 0.19.0 0.19.0rc1 2.30.7-1 v1 10.0.0.1 10.0.0.11/24
10.0.0.0/24 10.0.0.0/16 10.0.0.1/31 10.0.0/24 256.0.0.1 10.0.0.1/33 010.0.0.1/24 127.0.0.1
10.0.0.11/255.255.255.0 224.0.0.1/24 spark1:p0 a/b:c a/b:c@sha256:0 SG310 SG31 sg310
$HOME a=b,c 'a' "a" a`b a#b é 日本
"""
BLANKS = ["", " ", "a b", "a\nb", "a\tb", "a\u2028b", "\xad", "\x1b[0m"]
TEXTS = [*WORDS.split(), *BLANKS, "x" * 33, "x" * 500]


def alone(rules: Rules) -> cerberus.Validator:
    """A validator of a single value, `{"value": ...}`, regardless of other keys."""
    kept = {key: rule for key, rule in rules.items() if key not in ("excludes", "required")}
    return validation._Validator(UnvalidatedSchema({"value": kept}))


@each_key
def test_editor_says_of_a_text_what_sparkgen_says(path: str) -> None:
    """Exactly, except where a number looks like text or a check goes beyond a pattern."""
    rules, definitions = KEYS[path], json_schema.json_schema()["$defs"]
    of_sparkgen = alone(rules)
    of_an_editor = Draft202012Validator({**json_schema._value(rules), "$defs": definitions})
    form = TEXT_TYPES.get(rules.get("check_with", ""))
    for value in [*TEXTS, *map(Plain, TEXTS)]:
        typed, meant = validation.as_typed(value, rules), seen(value)
        taken = of_sparkgen.validate({"value": typed}, normalize=False)
        if isinstance(meant, str) and not (form and form.test):
            assert of_an_editor.is_valid(meant) == taken, repr(value)
        elif taken:
            assert of_an_editor.is_valid(meant), repr(value)


@pytest.mark.parametrize(
    "section",
    [
        "args: {a: }",
        "args: {a: ''}",
        "args: {a: b, c.d: true, e_f: 1.50}",
        "args: {a: [b, 1, true, '']}",
        "args: {a: []}",
        "args: {a: [b, ~]}",
        "args: {a: [[b]]}",
        "args: {a: [{b: c}]}",
        "args: {a: [é]}",
        "args: {a: {b: ~, c: [1, [d], {e: [true]}]}}",
        "args: {a: {b: [é]}}",
        "args: {a: {b: {é: 1}}}",
        "args: {--a: b}",
        "args: {'': b}",
        "args: [a]",
        "env: {A: 1, B: True, C: 0.10, D: d}",
        "env: {A: }",
        "env: {A: ''}",
        "env: {A: [b]}",
        "env: {1A: b}",
        "nccl: 2.30",
        "nccl: {version: 2.30, patched: true}",
        "nccl: {patched: true}",
        "nccl: {version: 2.30.7, build: 3}",
        "nccl: [2.30.7]",
        "secrets: [HF_TOKEN, TRUE]",
        "secrets: [HF-TOKEN]",
        "secrets: []",
    ],
)
def test_editor_says_of_a_section_what_sparkgen_says(section: str) -> None:
    document = read("site.yaml", f"{SITE}  {section}\n".encode())
    _, findings, _ = schema.check(document)
    assert bool(objections(document)) == bool(findings)


# The reference page


@each_key
def test_reference_has_the_key(path: str) -> None:
    *section, key = path.rstrip("[]").split(".", 1)
    heading = f"\n## {section[0] if section else 'All keys and sections'}\n"
    page = json_schema.reference().partition(heading)[2].partition("\n## ")[0]
    rows = [line for line in page.splitlines() if f"`{key}`" in line.partition(" | ")[0]]
    assert len(rows) == 1
    if not path.endswith("[]"):
        assert f" | {KEYS[path]['meta']['description']} | " in rows[0]


def test_rows_of_the_reference_have_six_cells() -> None:
    rows = [line for line in json_schema.reference().splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {7}
