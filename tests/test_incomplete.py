"""Sites with parts left out: valid as they are, or after writing what their findings say."""

import random
import re
from typing import Any

import pytest
import yaml

from generator.bundle.render import render
from generator.diagnostics import Finding, Severity
from generator.pipeline import read_site

ENGINE = {"name": "vllm", "version": "0.33.0", "image": "vllm/vllm-openai:v0.33.0"}
SERVED = {"model": {"name": "gpt-oss-120b", "context_length": 32768}, "engine": ENGINE}
JOB = {"name": "train", "launcher": "torchrun", "command": "train.py", "venv": "/opt/venv"}
MOST_FINDINGS = 4


def drawn(seed: int) -> dict[str, Any]:
    """A site of one to three nodes that serves, computes, or does neither, without some keys."""
    chance = random.Random(seed)
    names = [f"spark{n}" for n in range(1, chance.randint(1, 3) + 1)]
    site: dict[str, Any] = {"version": 1, "name": "lab", "nodes": []}
    for number, name in enumerate(names):
        site["nodes"].append({"name": name, "management": {"address": f"10.0.0.{10 + number}/24"}})
    if len(names) > 1:
        ends = [[f"{name}:p0", f"switch:{number}"] for number, name in enumerate(names)]
        site["cabling"] = [{"endpoints": each} for each in ends]
    kind = chance.choice(("network", "served", "groups", "no groups", "jobs"))
    if kind == "served":
        split = {"parallel": {"pipeline": len(names)}}
        site |= {"model": SERVED["model"], "engine": _some(ENGINE, chance) | split}
        site = {key: value for key, value in site.items() if key[0] not in chance.choice("me-")}
    if kind == "groups":
        served = names[: chance.randint(1, len(names))]
        groups = ({"name": f"g{name[5:]}", "nodes": [name], **SERVED} for name in served)
        site["groups"] = [_some(group, chance) for group in groups]
    if kind == "no groups":
        site["groups"] = []
    if kind == "jobs":
        site["jobs"] = [_some(JOB, chance)]
    # Without cables, it is for people to say which there are.
    return _some(site, chance) | {key: site[key] for key in ("cabling",) if key in site}


def _some(whole: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """A mapping that may lack one of its keys."""
    without = chance.choice([*whole, *[""] * len(whole)])
    return {key: value for key, value in whole.items() if key != without}


def follow(site: dict[str, Any], finding: Finding) -> None:
    """Write what a finding says first."""
    place: Any = site
    # Of two sections that need each other, the missing one goes beside the other.
    for part in finding.path[:-1] if "needs the key" in finding.message else finding.path:
        place = place[part]
    written = re.findall(r"'(\w+: (?:[{[].*?[]}]|[^']*))'", finding.help)
    assert finding.rule == "SG102", finding
    for each in written if "keys" in finding.message else written[:1]:
        place.update(yaml.safe_load(each))


@pytest.mark.parametrize("seed", range(25))
def test_what_is_missing_is_told_until_the_site_is_valid(seed: int) -> None:
    site = drawn(seed)
    for _ in range(MOST_FINDINGS + 1):
        reading = read_site("site.yaml", yaml.safe_dump(site, sort_keys=False).encode())
        errors = [f for f in reading.findings if f.severity is Severity.ERROR]
        if not errors:
            break
        follow(site, errors[0])
    assert reading.site
    assert render(reading.site, "0" * 64)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_model_without_an_engine_gets_one_on_all_nodes(count: int) -> None:
    names = [f"spark{n}" for n in range(1, count + 1)]
    ends = [[f"{name}:p0", f"switch:{number}"] for number, name in enumerate(names)]
    site: dict[str, Any] = {"version": 1, "name": "lab", "model": SERVED["model"]}
    site["nodes"] = [{"name": name} for name in names]
    site |= {"cabling": [{"endpoints": each} for each in ends]} if count > 1 else {}
    read = read_site("site.yaml", yaml.safe_dump(site, sort_keys=False).encode())
    follow(site, next(f for f in read.findings if f.severity is Severity.ERROR))
    assert read_site("site.yaml", yaml.safe_dump(site, sort_keys=False).encode()).site
