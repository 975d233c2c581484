"""Every rule is documented in its own module, and its examples do what they claim.

An example is merged into a valid site of its topology: its sections replace those of the site, but
keys of `engine` and `topology` that the example does not set are kept.
"""

import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from conftest import Command
from error_cases import CASES, beside
from tables import of_each
from test_errors import _image_with_nccl  # noqa: F401 (SG606 has no example without it)

from generator.pipeline import read_site
from generator.reports.explain import (
    GROUPS,
    Explanation,
    explain,
    explanation,
    explanations,
    listing,
    retired,
)
from generator.resources import ROOT, SCHEMAS
from generator.rules.registry import REPEATED, RULES, documented
from generator.sitefile.lint import lint

EXPLAINED = explanations()
# These are about things that can't be shown as part of a site file.
WITHOUT_EXAMPLES = {
    "SG002": "a tab looks like spaces",
    "SG006": "bytes that are no text",
    "SG007": "kilobytes",
    "SG012": "spaces that look alike",
    "SG273": "a site without an engine",
    **dict.fromkeys((rule for rule in EXPLAINED if rule >= "SG8"), "not about a site file"),
}
WITH_EXAMPLES = [rule for rule in EXPLAINED if rule not in WITHOUT_EXAMPLES]

COUNTS = {"single": 1, "direct": 2, "ring": 3, "switch": 4}
ENGINE = """\
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
"""
NCCL = {"ring": "  nccl: 2.30.7\n"}
LAID_OVER = ("engine", "topology")


def cables_of(kind: str, count: int) -> list[str]:
    """The ends of each cable of the given number of nodes."""
    numbers = range(1, count + 1)
    if kind == "ring":
        return [f"spark{node}:p0, spark{node % count + 1}:p1" for node in numbers]
    if kind == "switch":
        return [f"spark{node}:p0, switch:{node}" for node in numbers]
    return ["spark1:p0, spark2:p0"] if kind == "direct" else []


def base(kind: str, count: int, stages: int) -> dict[str, str]:
    """The sections of a valid site with this many nodes, which the example may override."""
    nodes = (
        f"  - name: spark{node}\n    management: {{address: 10.0.0.1{node}/24}}\n"
        for node in range(1, count + 1)
    )
    cables = "".join(f"  - endpoints: [{ends}]\n" for ends in cables_of(kind, count))
    return {
        "version": "version: 1\n",
        "name": "name: lab\n",
        "nodes": "nodes:\n" + "".join(nodes),
        **({"cabling": "cabling:\n" + cables} if cables else {}),
        "topology": f"topology:\n  kind: {kind}\n",
        "model": "model:\n  name: gpt-oss-120b\n  context_length: 8192\n",
        "engine": f"{ENGINE}{NCCL.get(kind, '')}  parallel: {{pipeline: {stages}}}\n",
    }


def sections(example: str) -> dict[str, str]:
    """The lines of a YAML text, by the top-level key that they belong to."""
    parts = re.split(r"^(?=[a-z]+:)", example, flags=re.MULTILINE)
    return {part.partition(":")[0]: part for part in parts if part}


def whole_site(example: str) -> str:
    """An example, completed with everything that a site needs.

    A ring gets as many nodes as its parallel sizes multiply to.
    """
    parts = sections(example)
    if "groups" in parts:
        return site_of_groups(parts)
    match = re.search(r"^  kind: (single|ring|switch)$", parts.get("topology", ""), re.MULTILINE)
    kind = match[1] if match else "direct"
    sizes = re.findall(r"(?:tensor|pipeline): (\d+)", parts.get("engine", ""))
    count = math.prod(map(int, sizes)) if sizes and kind == "ring" else COUNTS[kind]
    listed = len(re.findall(r"^  - name:", parts.get("nodes", ""), re.MULTILINE))
    site = base(kind, count, listed or count)
    if "launcher: ray" in parts.get("engine", ""):
        # Images of vLLM come without Ray.
        site["engine"] = site["engine"].replace("vllm/vllm-openai:v0.33.0", "example.org/ray:1")
    if "name: tensorrt-llm" in parts.get("engine", ""):
        # A longer prompt would have to be prefilled in chunks.
        model = parts if "model" in parts else site
        if "context_length" not in model["model"]:
            model["model"] = model["model"].rstrip() + "\n  context_length: 8192\n"
    for name in LAID_OVER:
        lines = site[name].splitlines(keepends=True)[1:]
        present = re.findall(r"^  (\w+):", parts.get(name, ""), re.MULTILINE)
        # Each replaces the other.
        present += ["image"] if "venv" in present else []
        if name in parts:
            parts[name] += "".join(
                line for line in lines if line.split(":")[0].strip() not in present
            )
    return "".join((site | parts).values())


ENGINES = {
    "vllm": {"version": "0.33.0", "image": "vllm/vllm-openai:v0.33.0"},
    "sglang": {"version": "0.5.23", "image": "lmsysorg/sglang:v0.5.23-cu130"},
    "tensorrt-llm": {"version": "1.2.1", "image": "nvcr.io/nvidia/tensorrt-llm/release:1.2.1"},
}


def site_of_groups(parts: dict[str, str]) -> str:
    """The same for an example with groups: each gets a model and an engine."""
    groups = yaml.safe_load(parts["groups"])["groups"]
    members = [name for group in groups for name in group["nodes"]]
    largest = max(len(group["nodes"]) for group in groups)
    count = max(largest, *(int(name[5:]) for name in members if len(name) == len("spark1")))
    turns = [
        (each, group["nodes"])
        for group in groups
        for each in (group, *group.get("alternatives", ()))
    ]
    for group, nodes in turns:
        if "same_as" in group:
            continue
        size = len(nodes)
        name = group.get("engine", {}).get("name", "vllm")
        shared = any(members.count(node) > 1 for node in nodes)
        group["engine"] = {
            "name": name,
            **{
                key: text
                for key, text in ENGINES[name].items()
                if key != "image" or "venv" not in group.get("engine", {})
            },
            **({"parallel": {"pipeline": size}} if size > 1 else {}),
            **({"memory_utilization": 0.4} if shared else {}),
            **group.get("engine", {}),
        }
        group.setdefault("model", {"name": "gpt-oss-20b", "context_length": 8192})
    site = base("direct" if largest > 1 else "single", count, count) | parts
    entries = "".join(f"  - {json.dumps(group)}\n" for group in groups)
    rest = (text for name, text in site.items() if name not in ("model", "engine", "groups"))
    return "".join(rest) + f"groups:\n{entries}"


def found(example: str) -> list[tuple[str, str]]:
    """The findings about an example: rules and messages."""
    reading = read_site("site.yaml", whole_site(example).encode(), beside)
    style = lint(reading.document) if reading.document.root else ()
    return [(finding.rule, finding.message) for finding in [*reading.findings, *style]]


@of_each(EXPLAINED)
def test_rule_is_documented(rule: str) -> None:
    known = EXPLAINED[rule]
    assert re.fullmatch(r"SG\d{3}", rule)
    assert rule[2] in GROUPS
    assert known.title
    assert known.text or known.bad
    assert not re.search(r"^(Source|Bad|Good):|\n|\t", known.title)


def test_what_is_written_is_of_a_rule_in_its_group() -> None:
    files = sorted((SCHEMAS / "rules").glob("*.yaml"))
    named = {path.stem[:3]: list(yaml.safe_load(path.read_bytes())) for path in files}
    for group, rules in named.items():
        assert rules == sorted(rules)
        assert [rule for rule in rules if rule[:3] != group or rule not in EXPLAINED] == []


@pytest.mark.parametrize("rule", WITH_EXAMPLES)
def test_examples_break_only_their_rule(rule: str) -> None:
    known = EXPLAINED[rule]
    assert known.bad
    assert known.good
    findings = found(known.bad)
    assert [number for number, _ in findings] == [rule], findings
    assert found(known.good) == []


@pytest.mark.parametrize("kind", COUNTS)
def test_site_around_an_example_is_valid(kind: str) -> None:
    assert found(f"topology:\n  kind: {kind}\n") == []


def test_every_group_has_free_ids() -> None:
    taken = EXPLAINED.keys() | retired().keys()
    for digit in GROUPS:
        free = {f"SG{digit}{n:02}" for n in range(100)} - taken
        assert len(free) >= 5, f"SG{digit}xx is nearly full: give the subject another group"


def test_listed_rules_have_no_examples() -> None:
    assert set(WITHOUT_EXAMPLES) <= set(EXPLAINED)
    assert not [rule for rule in WITHOUT_EXAMPLES if EXPLAINED[rule].bad or EXPLAINED[rule].good]


def test_ids_are_unique() -> None:
    assert sorted(REPEATED) == [], "two rules have this id: take one that is free"
    both = sorted(RULES.keys() & documented().keys())
    assert both == [], "in rules-without-check.tsv and a function: take an id that is free"
    again = sorted(retired().keys() & EXPLAINED.keys())
    assert again == [], "the id of a retired rule is never used again"
    titles = Counter(known.title for known in EXPLAINED.values())
    assert [title for title, count in titles.items() if count > 1] == [], (
        "two rules have this title"
    )


def test_rules_that_make_others_pointless_exist() -> None:
    gone = {n: sorted((r.unless | r.suppressed_by) - RULES.keys()) for n, r in RULES.items()}
    assert {number: others for number, others in gone.items() if others} == {}


def test_every_module_with_rules_is_imported() -> None:
    package = ROOT / "generator"
    for path in (package / "rules").rglob("*.py"):
        if re.search(r"^@(shape_)?rule\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            assert module in sys.modules, f"{path.name} is not named in rules/__init__.py"


def test_every_rule_that_the_code_names_is_documented() -> None:
    named = {
        rule
        for module in (ROOT / "generator").rglob("*.py")
        for rule in re.findall(r"\bSG\d{3}\b", module.read_text(encoding="utf-8"))
    }
    assert named - set(EXPLAINED) == set()


def test_documented_severity_is_that_of_the_findings() -> None:
    shown = [re.match(r"(\w+)\[(SG\d{3})\]", case.printed) for case in CASES.values()]
    seen = {(found[2], found[1]) for found in shown if found}
    assert {(rule, EXPLAINED[rule].severity) for rule, _ in seen} == seen


def test_rules_page_is_fresh(sparkgen: Command, tmp_path: Path) -> None:
    printed = sparkgen("explain", "--docs", cwd=tmp_path)
    assert (printed.code, printed.err) == (0, "")
    page = (SCHEMAS / "rules.md").read_bytes()
    assert page == printed.out.encode(), "sparkgen explain --docs > schemas/rules.md"


def test_parts_of_an_explanation() -> None:
    error = RULES["SG204"].severity
    written = {"why": "Text that\ngoes on.\n", "source": "somebody\n", "bad": "a: 1\n"}
    assert explanation("SG299", error, "Title.", written) == Explanation(
        "SG299", error, "Title", "Text that\ngoes on.", "somebody", "a: 1\n", ""
    )


def test_explanation_of_a_rule() -> None:
    assert (
        explain("SG212")
        == """\
SG212 (warning): A second cable between two nodes adds no speed

One cable carries all that a node's PCIe links do.

Source: NVIDIA, "Connect multiple Sparks": "using two cables will not increase
performance".

Bad:

    cabling:
      - endpoints: [spark1:p0, spark2:p0]
      - endpoints: [spark1:p1, spark2:p1]

Good:

    cabling:
      - endpoints: [spark1:p0, spark2:p0]
"""
    )


def test_example_in_the_text_keeps_its_lines() -> None:
    assert "\n    rules:\n      SG609: {level: error, reason: " in explain("SG820")


def test_list_has_one_line_per_rule() -> None:
    lines = listing().splitlines()
    rules = [line.split()[0] for line in lines if line.startswith("  SG")]
    assert rules == list(EXPLAINED)
    assert "SG2xx: nodes, cabling and topology" in lines
    assert "  SG204  error    A QSFP port takes one cable" in lines


def test_command_explains_a_rule_in_any_case(sparkgen: Command, tmp_path: Path) -> None:
    printed = sparkgen("explain", "sg204", cwd=tmp_path)
    assert (printed.code, printed.out, printed.err) == (0, explain("SG204"), "")


def test_command_lists_rules(sparkgen: Command, tmp_path: Path) -> None:
    printed = sparkgen("explain", "--list", cwd=tmp_path)
    assert (printed.code, printed.out, printed.err) == (0, listing(), "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["SG3233"], "no rule is called 'SG3233'; did you mean 'SG323'?"),
        (["SG650"], "SG650 is retired: SG671 says the same"),
        (["cables"], "no rule is called 'cables'; see 'sparkgen explain --list'"),
        ([], "name a rule, or use --list"),
        (["SG204", "--list"], "name a rule, or use --list"),
    ],
)
def test_wrong_usage(words: list[str], message: str, sparkgen: Command, tmp_path: Path) -> None:
    answer = sparkgen("explain", *words, cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err


def test_rules_as_data(tmp_path: Path, sparkgen: Command) -> None:
    known = json.loads(sparkgen("explain", "sg204", "--format", "json", cwd=tmp_path).out)
    (rule,) = known["rules"]
    assert (known["version"], rule["rule"], rule["severity"]) == (1, "SG204", "error")
    assert rule["title"] == EXPLAINED["SG204"].title
    assert known["advisories"] == []
    every = json.loads(sparkgen("explain", "--list", "--format", "json", cwd=tmp_path).out)
    assert [rule["rule"] for rule in every["rules"]] == [*EXPLAINED]
    number = every["advisories"][0]["advisory"]
    single = json.loads(sparkgen("explain", number, "--format", "json", cwd=tmp_path).out)
    assert [single["rules"], single["advisories"]] == [[], every["advisories"][:1]]
    assert sparkgen("explain", "--docs", "--format", "json", cwd=tmp_path).code == 2
