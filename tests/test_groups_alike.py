"""Groups with the same settings share results, which no finding may show."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from racks import site_text

from generator.pipeline import read_site
from generator.rules.facts import Facts
from generator.rules.registry import Rule
from generator.sitefile.disk import beside

ERRORS = sorted((Path(__file__).parent / "errors").glob("*.yaml"))


def served(path: Path) -> Iterator[dict[str, Any]]:
    """The model and engine of a site, if it has no groups."""
    try:
        data = yaml.safe_load(path.read_bytes())
    except (yaml.YAMLError, UnicodeDecodeError, ValueError):
        return
    if isinstance(data, dict) and isinstance(data.get("engine"), dict) and "model" in data:
        yield {key: data[key] for key in ("model", "engine")}


def in_groups(serving: dict[str, Any], own: dict[str, str]) -> bytes:
    """A site with three groups of these settings, and variables for one of their nodes."""
    site = yaml.safe_load(site_text(6))
    del site["model"], site["engine"]
    names = [node["name"] for node in site["nodes"]]
    site["groups"] = [
        {"name": f"group{i}", "nodes": names[2 * i : 2 * i + 2], **serving} for i in range(3)
    ]
    if own:
        site["nodes"][3]["env"] = own
    return yaml.dump(site, sort_keys=False).encode()


@pytest.mark.parametrize("own", [{}, {"NCCL_DEBUG": "loud"}], ids=["alike", "own-variable"])
@pytest.mark.parametrize("path", ERRORS[::60], ids=lambda path: path.stem)
def test_findings_are_the_same_without_sharing(
    path: Path, own: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for serving in served(path):
        text = in_groups(serving, own)
        shared = read_site(path.name, text, beside(path)).findings
        monkeypatch.setattr(Facts, "share", lambda self, other: None)

        assert read_site(path.name, text, beside(path)).findings == shared


def test_rules_on_settings_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    serving = yaml.safe_load(site_text(2))
    text = in_groups({key: serving[key] for key in ("model", "engine")}, {})
    checked: Counter[tuple[str, ...]] = Counter()
    found = Facts._found

    def counted(facts: Facts, rule: Rule) -> Any:
        checked[rule.id, *rule.needs] += 1
        return found(facts, rule)

    monkeypatch.setattr(Facts, "_found", counted)
    read_site("lab.yaml", text, beside(Path("lab.yaml")))
    times = {rule[0]: n for rule, n in checked.items() if {"model", "engine"}.issuperset(rule[1:])}

    assert len(times) > 20
    assert set(times.values()) == {1}
