"""Settings that an engine refuses at its start are reported, and similar valid ones are not.

`startup/` has a table for each engine: settings, their findings, and the nearest valid ones.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from tables import of_each

from generator import precompiled, rules
from generator.catalogs.flag_files import catalog, versions
from generator.catalogs.versions import Release
from generator.diagnostics import Finding
from generator.engines import ENGINES, conditions, rows
from generator.engines.llama_cpp import startup as llama_cpp
from generator.engines.sglang import startup as sglang
from generator.engines.startup import Condition, verdicts
from generator.engines.tensorrt_llm.startup import sizes
from generator.engines.vllm.startup import facts as vllm
from generator.pipeline import Reading, read_site

TABLES = Path(__file__).parent / "startup"
# The rule of each engine that reports what it would certainly refuse.
RULES = {
    r.engine: number for number, r in rules.RULES.items() if r.engine and "verdicts" in r.needs
}
_STARTUP = {*RULES.values(), "SG658", "SG674", "SG675"}
_VERSIONS = {"vllm": "0.33.0", "sglang": "0.5.23", "tensorrt-llm": "1.3.0rc29"}
_LLAMA_CPP = "0.5.0-dev"
# What the rows of an engine ask that is neither a setting nor a size.
FACTS = {
    "vllm": vllm.FACTS,
    "sglang": sglang.FACTS,
    "llama.cpp": llama_cpp.FACTS,
    "tensorrt-llm": sizes.FACTS,
}

Settings = Mapping[str, Any]


class Row(NamedTuple):
    """A row of an engine's table."""

    engine: str
    says: str
    rule: str
    bad: Settings
    good: Settings

    def __str__(self) -> str:
        return f"{self.engine}: {self.says}"


def _rows() -> Iterator[Row]:
    for engine, rule in RULES.items():
        table = TABLES / f"{engine}.yaml"
        rows = yaml.load(table.read_bytes(), yaml.CSafeLoader) if table.exists() else ()
        for row in rows:
            yield Row(engine, row["says"], row.get("rule", rule), row["bad"], row["good"])


ROWS = list(_rows())
each_row = of_each(ROWS)


def _site(engine: str, settings: Settings) -> dict[str, Any]:
    """A site of as many nodes as there are ranks."""
    sizes = settings.get("parallel", {})
    count = sizes.get("tensor", 1) * sizes.get("pipeline", 1) * sizes.get("data", 1)
    nodes = [
        {"name": f"spark{n}", "management": {"interface": "enP7s7", "address": f"10.0.0.{n}/24"}}
        for n in range(11, 11 + count)
    ]
    if count == 1:
        fabric: dict[str, Any] = {"topology": {"kind": "single"}}
    else:
        cables = [{"endpoints": [f"{node['name']}:p0", f"switch:{node['name']}"]} for node in nodes]
        fabric = {"topology": {"kind": "switch"}, "cabling": cables}
    model = {"name": "gpt-oss-120b"} | settings.get("model", {})
    if "source" in model:
        del model["name"]
    if engine == "llama.cpp":
        model = {"file": "/srv/models/model.gguf"} | model
    rest = {key: value for key, value in settings.items() if key not in ("model", "site")}
    version = _VERSIONS.get(engine, _LLAMA_CPP)
    return {
        "version": 1,
        "name": "lab",
        "nodes": nodes,
        **fabric,
        "model": model,
        "engine": {
            "name": engine,
            "version": version,
            "image": "example.org/engine:1",
            "nccl": "2.30.7",
            **rest,
        },
        **settings.get("site", {}),
    }


@cache
def _read(text: str) -> Reading:
    return read_site("lab.yaml", text.encode())


def _reading(engine: str, settings: Settings) -> Reading:
    site = _site(engine, settings)
    return _read(yaml.dump(site, Dumper=yaml.CSafeDumper, sort_keys=False))


def _of_the_start(engine: str, settings: Settings) -> list[Finding]:
    return [found for found in _reading(engine, settings).findings if found.rule in _STARTUP]


@each_row
def test_refused_setting_is_found(row: Row) -> None:
    found = _of_the_start(row.engine, row.bad)
    everything = [(f.rule, f.message) for f in _reading(row.engine, row.bad).findings]
    assert [finding.rule for finding in found] == [row.rule], everything
    assert row.says in found[0].message
    assert found[0].help


BAD_NUMBERS = [
    ("vllm", {"max-num-batched-tokens": 0, "block-size": 0, "decode-context-parallel-size": 0}),
    ("llama.cpp", {"device": []}),
    ("sglang", {"page-size": 0, "chunked-prefill-size": 0, "ep-size": 0}),
]


@pytest.mark.parametrize(("engine", "args"), BAD_NUMBERS)
def test_zero_sizes_do_not_crash(engine: str, args: Settings) -> None:
    assert _reading(engine, {"args": args}).declaration


@each_row
def test_nearest_accepted_setting_has_no_finding(row: Row) -> None:
    reading = _reading(row.engine, row.good)
    wrong = [
        (finding.rule, finding.message)
        for finding in reading.findings
        if finding.rule in _STARTUP or finding.rule in ("SG632", "SG634", "SG637", "SG641")
    ]
    assert wrong == []


@pytest.mark.parametrize("engine", ENGINES)
def test_every_condition_has_a_row(engine: str) -> None:
    """A condition that no row meets would be untested."""
    found, met = conditions(engine), set()
    for row in (row for row in ROWS if row.engine == engine):
        declared = _reading(engine, row.bad).declaration
        assert declared
        assert declared.engine
        assert declared.model
        for condition in found:
            if _title(condition) not in met and verdicts(
                (condition,), declared.engine, declared.model
            ):
                met.add(_title(condition))
    untested = {_title(c) for c in found} - met
    assert sorted(untested) == []


def _title(condition: Condition) -> tuple[str, Release, Release]:
    return condition.check.__name__, condition.since, condition.until or ()


_WORDS = {
    *("for", "when", "unless", "at", "says", "help", "nearest", "since", "until", "source"),
    *("effect", "supports"),
}
_PLACES = ("env", "shape", "model", "speculative", "engine", "parallel")


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_ask_for_flags_that_the_engine_has(engine: str) -> None:
    """A flag that no release has would make a row that nothing meets."""
    held = precompiled.schema(f"startup/{engine}")
    known = {
        flag.name for at in versions(engine) if (c := catalog(engine, at)) for flag in c.flags()
    }
    facts = {*rows.COMMON, *FACTS.get(engine, {})}
    assert not {name for name in facts if name.partition(".")[0] in known}
    for row in held["rows"]:
        assert row.keys() <= _WORDS, row
        for each in rows.plain(row):
            asked = [*each["when"], *each.get("unless", {}), *filter(None, [each.get("at")])]
            for name in asked:
                for part in held["names"].get(name, name).split("|"):
                    head = part.partition(".")[0]
                    assert part in facts or head in {*known, *_PLACES, *held["names"]}, (row, part)


# Methods and keys of vLLM's speculation, with the first release that has them, and the last.
SPECULATION = [
    ("0.22.0", "", {"method": "custom_class", "source": "own.Proposer"}),
    ("0.19.0", "0.32.0", {"method": "medusa", "source": "a/b"}),
    ("0.19.0", "0.19.1", {"method": "ngram", "config": {"synthetic_acceptance_rate": 0.5}}),
    ("0.21.0", "", {"method": "ngram", "config": {"draft_sample_method": "greedy"}}),
    (
        "0.25.0",
        "",
        {"method": "draft", "source": "a/b", "config": {"use_heterogeneous_vocab": True}},
    ),
    ("0.33.0", "", {"method": "eagle3", "source": "a/b", "config": {"fly_window_size": 2}}),
]
BEFORE = {"0.22.0": "0.21.0", "0.21.0": "0.20.2", "0.25.0": "0.24.0", "0.33.0": "0.32.0"}
AFTER = {"0.32.0": "0.33.0", "0.19.1": "0.20.0"}


def test_plugin_may_bring_a_method() -> None:
    def warned(**settings: Any) -> set[str]:
        model = {"name": "qwen3-30b-a3b-fp8", "quantization": "mine"}
        return {found.rule for found in _reading("vllm", {"model": model, **settings}).findings}

    assert {"SG648", "SG670"} & warned()
    assert not {"SG648", "SG670"} & warned(env={"VLLM_PLUGINS": "mine"})


@pytest.mark.parametrize(("first", "last", "drafts"), SPECULATION)
def test_speculation_methods_have_their_releases(first: str, last: str, drafts: Settings) -> None:
    def refused(version: str) -> list[str]:
        model = {"speculative": {"tokens": 3, **drafts}}
        found = _reading("vllm", {"version": version, "model": model}).findings
        return [finding.rule for finding in found if finding.rule in ("SG553", "SG555")]

    assert refused(first) == refused(last or "0.33.0") == []
    if first in BEFORE:
        assert len(refused(BEFORE[first])) == 1
    if last:
        assert len(refused(AFTER[last])) == 1


def test_throughput_doubles_the_sequences_of_vllm() -> None:
    """In vLLM 0.33.0, vllm/engine/arg_utils.py, line 3184."""
    mode = {"performance-mode": "throughput"}
    states = {"model": {"name": "qwen3.6-35b-a3b-fp8", "context_length": 8192}}
    for args, told in (({}, []), (mode, ["SG509"])):
        settings = states | {"args": {"num-gpu-blocks-override": 300, **args}}
        rules = [finding.rule for finding in _reading("vllm", settings).findings]
        assert [rule for rule in rules if rule != "SG677"] == told
    short = {"name": "qwen3-8b", "context_length": 1024, "max_sequences": "auto"}
    plain, doubled = (_reading("vllm", {"model": short, "args": a}) for a in ({}, mode))
    found = [read.declaration.model.max_sequences for read in (plain, doubled)]
    assert found[0] == 256
    assert found[0] < found[1] <= 512
