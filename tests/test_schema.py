"""The schemas: valid Cerberus, documented key by key, with examples that pass; their findings."""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import cerberus
import pytest
import yaml
from cerberus.schema import UnvalidatedSchema
from error_cases import CASES
from tables import of_each
from test_source import document

from generator import precompiled, resources
from generator.diagnostics import path_text
from generator.pipeline import Reading, read_site
from generator.resources import ROOT, SCHEMAS, DamagedFileError
from generator.sitefile import sections, source, text_types, validation
from generator.sitefile.conformity import conforms
from generator.sitefile.text_types import TEXT_TYPES, fault
from generator.sitefile.typed_values import as_typed

Rules = Mapping[str, Any]


def keys(rules: Mapping[str, Rules], path: str = "") -> Iterator[tuple[str, Rules]]:
    """Every key of a site file with its rules, sections and lists too."""
    for name, rule in rules.items():
        if "same_as" in rule["meta"]:
            continue
        yield f"{path}{name}", rule
        inner = rule.get("schema", {})
        entry = f"{path}{name}"
        while "list" in rule["type"] and "schema" in rule:
            rule, inner, entry = inner, inner.get("schema", {}), f"{entry}[]"
            if "dict" not in rule["type"]:
                yield entry, rule
        yield from keys(inner, f"{path}{name}.")
        yield from keys(rule.get("valuesrules", {}).get("schema", {}), f"{path}{name}.*.")


KEYS = dict(keys(sections.site_schema()))
LEAVES = {path: rules for path, rules in KEYS.items() if "schema" not in rules}
each_key = of_each(KEYS)
each_leaf = of_each(LEAVES)


def types(rules: Rules) -> set[str]:
    return {rules["type"]} if isinstance(rules["type"], str) else set(rules["type"])


def test_schemas_are_valid_cerberus() -> None:
    """Cerberus raises on invalid rules; sparkgen saves the time for this check at startup."""
    inspected = type("Inspected", (validation._CHECKERS, cerberus.Validator), {})
    validator = inspected(without_meta(sections.site_schema()))
    assert set(validator.schema) == set(sections.site_schema())


def without_meta(rules: Any) -> Any:
    """The rules without their documentation, which Cerberus can't hash."""
    if isinstance(rules, list):
        return [without_meta(item) for item in rules]
    if isinstance(rules, dict):
        return {key: without_meta(value) for key, value in rules.items() if key != "meta"}
    return rules


def test_text_types_of_schemas_exist_and_are_all_used() -> None:
    named = {form for form in _forms(sections.site_schema()) if form not in ("argument", "setting")}
    assert named == set(TEXT_TYPES)


def _forms(rules: Any) -> Iterator[str]:
    if isinstance(rules, dict):
        for key, value in rules.items():
            yield from [value] if key == "check_with" else _forms(value)


@each_key
def test_key_is_described_in_a_sentence(path: str) -> None:
    description = KEYS[path]["meta"]["description"]
    assert description.endswith(".")
    assert description[0].isupper() or description.startswith(("netplan", "vLLM", "llama.cpp"))


@each_leaf
def test_leaf_has_an_example(path: str) -> None:
    assert "example" in LEAVES[path]["meta"]


@each_leaf
def test_number_has_a_unit_and_bounds(path: str) -> None:
    rules = LEAVES[path]
    if types(rules) & {"integer", "float"} and path != "version":
        assert rules["meta"].get("unit"), f"{path} has no unit"
        bounds = {"min", "max"} - set(rules)
        assert "allowed" in rules or not bounds, f"{path} lacks {sorted(bounds)}"


@each_leaf
def test_text_has_a_type_or_choices(path: str) -> None:
    """Every text that reaches a generated file has a type, so that none can become syntax."""
    rules = LEAVES[path]
    if "string" in types(rules):
        assert {"check_with", "allowed"} & set(rules)
    for part in ("keysrules", "valuesrules"):
        if part in rules:
            assert {"check_with", "schema"} & set(rules[part])


@each_key
def test_example_and_default_pass_their_own_rules(path: str) -> None:
    rules = KEYS[path]
    for kind in ("example", "default"):
        if kind in rules.get("meta", {}):
            assert not faults_of(rules["meta"][kind], rules), kind


def faults_of(value: Any, rules: Rules) -> Any:
    """Cerberus' errors for a value, written to YAML and read back like a site file."""
    written = yaml.safe_dump({"value": value}, default_flow_style=True, width=1_000)
    typed = validation.as_typed(document(written).data["value"], rules)
    alone = {key: rule for key, rule in rules.items() if key not in ("excludes", "required")}
    validator = validation._Validator(UnvalidatedSchema({"value": alone}))
    validator.validate({"value": typed}, normalize=False)
    return validator.errors


# Findings about a file


SITE = """\
version: 1
name: lab
nodes:
  - {name: spark1, management: {address: 10.0.0.11/24}}
topology: {kind: single}
model: {name: gpt-oss-120b}
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
"""


def reading(old: str = "", new: str = "") -> Reading:
    """The site above with one text replaced."""
    assert SITE.count(old) == 1 or not old
    return read_site("site.yaml", (SITE.replace(old, new) if old else SITE + new).encode())


def findings(old: str = "", new: str = "") -> list[tuple[str, str]]:
    return [(finding.rule, path_text(finding.path)) for finding in reading(old, new).findings]


def test_valid_site_has_no_findings() -> None:
    assert findings() == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("version: 1\n", "version: 2\n", ("SG104", "version")),
        ("version: 1\n", "version: '1'\n", ("SG103", "version")),
        ("version: 1\n", "version: 1.0\n", ("SG103", "version")),
        ("version: 1\n", "version: true\n", ("SG103", "version")),
        ("name: spark1, ", "name: spark1, host: true, ", ("SG103", "nodes[0].host")),
        ("", "  parallel: {tensor: true}\n", ("SG103", "engine.parallel.tensor")),
        ("", "  memory_utilization: true\n", ("SG103", "engine.memory_utilization")),
        ("name: lab\n", "name: Lab\n", ("SG106", "name")),
        ("name: lab\n", "name: ~\n", ("SG108", "name")),
        ("name: lab\n", "name: [lab]\n", ("SG103", "name")),
        ("name: lab\n", 'name: "lab\\t"\n', ("SG106", "name")),
        ("name: lab\n", "name: lab\nnodse: 3\n", ("SG101", "nodse")),
        ("kind: single", "kind: single, mtu: 99", ("SG105", "topology.mtu")),
        ("kind: single", "kind: single, mtu: 0x5dc0", ("SG105", "topology.mtu")),
        ("kind: single", "kind: single, mtu: 9_000", ("SG103", "topology.mtu")),
        ("kind: single", "kind: single, mtu: 09000", ("SG103", "topology.mtu")),
        ("kind: single", "kind: single, mtu: 9000.0", ("SG103", "topology.mtu")),
        ("kind: single", "king: single", ("SG101", "topology.king")),
        ("10.0.0.11/24", "10.0.0.11", ("SG106", "nodes[0].management.address")),
        ("10.0.0.11/24", "10.0.0.0/24", ("SG106", "nodes[0].management.address")),
        ("10.0.0.11/24", "010.0.0.11/24", ("SG106", "nodes[0].management.address")),
        ("name: spark1, ", "name: spark1, host: 255, ", ("SG105", "nodes[0].host")),
        ("name: spark1, ", "name: spark1, host: eleven, ", ("SG103", "nodes[0].host")),
        ("name: spark1, ", "name: spark1, user: 'a b', ", ("SG106", "nodes[0].user")),
        ("", "services: {guard: yes}\n", ("SG103", "services.guard")),
        ("", "services: {web_ui: yes}\n", ("SG103", "services.web_ui")),
        ("", "services: {web_ui: {port: 80}}\n", ("SG105", "services.web_ui.port")),
        ("", "  memory_utilization: 80\n", ("SG105", "engine.memory_utilization")),
        ("", "  memory_utilization: 1e999\n", ("SG103", "engine.memory_utilization")),
        ("", "  env: {A B: 1}\n", ("SG106", "engine.env.A B")),
        ("", "  env: {A: }\n", ("SG108", "engine.env.A")),
        ("", "  env: {A: é}\n", ("SG106", "engine.env.A")),
        ("", '  env: {A: "b\\nc"}\n', ("SG106", "engine.env.A")),
        ("", '  env: {A: "b\\tc"}\n', ("SG106", "engine.env.A")),
        ("", '  env: {A: {"b": 1}}\n', ("SG103", "engine.env.A")),
        ("", "  env: {NCCL_DEBUG_FILE: ''}\n", ("SG413", "engine.env.NCCL_DEBUG_FILE")),
        ("", "  env: {NCCL_DEBUG_FILE: /a b}\n", ("SG413", "engine.env.NCCL_DEBUG_FILE")),
        ("", "  args: {--seed: 1}\n", ("SG106", "engine.args.--seed")),
        ("", "  args: {seed: }\n", ("SG108", "engine.args.seed")),
        ("", "  args: {chat-template: é}\n", ("SG106", "engine.args.chat-template")),
        ("", '  args: {chat-template: "a\\nb"}\n', ("SG106", "engine.args.chat-template")),
        ("", "  args: {hf-overrides: {a: {b: [é]}}}\n", ("SG106", "engine.args.hf-overrides")),
        ("", "  args: {hf-overrides: {é: 1}}\n", ("SG106", "engine.args.hf-overrides")),
        ("", "  args: {lora-modules: [[a]]}\n", ("SG106", "engine.args.lora-modules")),
        ("", "  args: {lora-modules: [{a: b}]}\n", ("SG106", "engine.args.lora-modules")),
        ("", "  args: {lora-modules: [a, ~]}\n", ("SG106", "engine.args.lora-modules")),
    ],
)
def test_mistake_is_one_finding_at_its_place(old: str, new: str, expected: tuple[str, str]) -> None:
    assert findings(old, new) == [expected]


@pytest.mark.parametrize("key", ["name", "nodes"])
def test_missing_section_is_one_finding(key: str) -> None:
    sections = yaml.safe_load(SITE)
    del sections[key]
    (finding,) = read_site("site.yaml", yaml.safe_dump(sections).encode()).findings
    assert (finding.rule, finding.message) == ("SG102", f"the key '{key}' is missing")


@pytest.mark.parametrize(("key", "other"), [("model", "engine"), ("engine", "model")])
def test_model_and_engine_need_each_other(key: str, other: str) -> None:
    sections = yaml.safe_load(SITE)
    del sections[key]
    (finding,) = read_site("site.yaml", yaml.safe_dump(sections).encode()).findings
    assert (finding.rule, path_text(finding.path)) == ("SG102", other)
    assert finding.message == f"'{other}' needs the key '{key}', which is missing"
    assert finding.help.endswith(f", or remove '{other}' to keep the network alone")


def test_misspelt_key_is_not_also_a_missing_one() -> None:
    (finding,) = reading("kind: single", "kinds: single").findings
    assert (finding.rule, path_text(finding.path)) == ("SG101", "topology.kinds")
    assert finding.help == "did you mean 'kind'?"


def test_all_mistakes_are_reported_at_once() -> None:
    wrong = (
        SITE.replace("name: lab", "name: Lab").replace("single", "mesh").replace("vllm\n", "v\n")
    )
    found = read_site("site.yaml", wrong.encode()).findings
    assert sorted(path_text(finding.path) for finding in found) == [
        "engine.name",
        "name",
        "topology.kind",
    ]


# A section in place of a list, and what a catalog of an image was once known by.
LOST_HEAD = "version: 1\nname: lab\nnodes:\n  name: spark1\n  tensor: 2\n  type: x\n"
MARKED = (
    "version: 1\nname: lab\nnodes: [{name: a}]\nengine:\n  name: vllm\n  version: 0.33#.0\n"
    "  image: a/b:1\n  block-size: 16\n"
)


@pytest.mark.parametrize("raw", ["- a\n", "text\n", "17\n", "---\n", "~\n"])
def test_file_that_is_no_mapping_is_one_finding(raw: str) -> None:
    assert [finding.rule for finding in read_site("site.yaml", raw.encode()).findings] == ["SG103"]


@pytest.mark.parametrize(
    "raw",
    [
        "a: " + "x" * 100_000,
        "nodes: " + "[" * 30 + "]" * 30,
        "{? : }",
        "1: 2",
        "~: ~",
        "'': ''",
        LOST_HEAD,
        MARKED,
    ],
    ids=["long", "nested", "nothing", "number", "null", "empty", "head", "mark"],
)
def test_strange_file_only_has_findings(raw: str) -> None:
    found = read_site("site.yaml", raw.encode())
    assert found.findings
    assert found.site is None
    for finding in found.findings:
        for python in ("NoneType", "dict", "OrderedDict", "<class", "object at"):
            assert python not in f"{finding.message} {finding.help}"


# Conformity


def both(data: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether data is valid according to `conformity.py`, and according to Cerberus."""
    schema = sections.site_schema()
    typed = {key: as_typed(value, schema.get(key, {})) for key, value in data.items()}
    validator = validation.validator(schema)
    return conforms(typed, schema), validator.validate(typed, normalize=False)


def test_conformity_is_what_cerberus_finds_it() -> None:
    found = [source.read(case.name, case.site).data for case in CASES.values()]
    results = [both(data) for data in found if isinstance(data, dict)]
    assert all(ours == theirs for ours, theirs in results)
    assert {ours for ours, _ in results} == {True, False}


VALUES = (
    None,
    True,
    0,
    -1,
    10**9,
    1.5,
    "x",
    "",
    "spark1:p0",
    "10.0.0.1/24",
    [],
    {},
    ["x"],
    {"x": 1},
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every mapping and list in a value, with each key or index of it."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(entries):
        yield value, key
        if isinstance(inner, dict | list):
            yield from places(inner)


def test_conformity_of_data_with_a_mistake_is_what_cerberus_finds_it() -> None:
    rng = random.Random(20)
    sites = [path.read_bytes() for path in sorted((ROOT / "tests/golden").glob("*/site.yaml"))]
    keys = sorted({path.rpartition(".")[2] for path in KEYS})
    results = []
    for _ in range(300):
        data: Any = source.read("site.yaml", rng.choice(sites)).data
        owner, place = rng.choice(list(places(data)))
        if rng.random() < 0.4:
            del owner[place]
        elif isinstance(owner, dict) and rng.random() < 0.4:
            owner[rng.choice(keys)] = owner[place]
        else:
            owner[place] = rng.choice(VALUES)
        results.append((both(data), place))
    assert [place for (ours, theirs), place in results if ours != theirs] == []
    assert {ours for (ours, _), _ in results} == {True, False}


def test_an_unknown_type_of_text_is_named_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site.yaml").write_text("name:\n  type: string\n  check_with: nmae\n")
    monkeypatch.setattr(text_types, "SCHEMAS", tmp_path)
    with pytest.raises(LookupError, match=r"^schemas/site\.yaml:3: .* 'nmae'$"):
        fault("nmae", "lab")


def test_files_of_the_schemas_are_whole() -> None:
    """Named here by file and line, before anything that reads them fails in its own way."""
    found = []
    for path in sorted(SCHEMAS.rglob("*")):
        name = path.relative_to(SCHEMAS).with_suffix("").as_posix()
        try:
            if path.suffix == ".tsv" and path.parent == SCHEMAS:
                resources.rows(name)
            elif path.suffix == ".yaml":
                precompiled._parsed(name)
        except DamagedFileError as error:
            found.append(str(error))
    assert found == []


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("a.tsv", "# rows\nname\tvalue\none\t1\ntwo\n", r"a\.tsv:4: 1 cells in a table of 2"),
        ("a.tsv", "name\tvalue\none\t1\t\n", r"a\.tsv:2: 3 cells in a table of 2"),
        ("a.yaml", "name: lab\nkeys: [a, b\n", r"a\.yaml: .* line 3, column 1"),
    ],
)
def test_damaged_file_is_named_with_its_line(
    file: str, text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).write_text(text)
    for module in (resources, precompiled):
        monkeypatch.setattr(module, "SCHEMAS", tmp_path)
    read = resources.rows.__wrapped__ if file == "a.tsv" else precompiled._parsed.__wrapped__
    with pytest.raises(DamagedFileError, match=told):
        read("a")
