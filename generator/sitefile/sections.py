"""The sections of a site file, and the schema of each as data."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from generator import precompiled
from generator.diagnostics import KeyPath

SECTIONS = (
    "defaults",
    "nodes",
    "cabling",
    "topology",
    "model",
    "engine",
    "jobs",
    "fit",
    "services",
    "access",
    "waivers",
)

# What each group has of its own.
SERVED = ("model", "engine")
# Replaces one model and one engine for all of a site's nodes.
GROUPS = "groups"
# What the nodes of a group can serve instead, one at a time.
ALTERNATIVES = "alternatives"


@cache
def site_schema() -> dict[str, Any]:
    """The rules of a whole site file, joined from those of its sections."""
    rules: dict[str, Any] = precompiled.schema("site")
    sections = {section: precompiled.schema(section) for section in SECTIONS}
    return rules | sections | {GROUPS: _entries(precompiled.schema(GROUPS), sections)}


def _entries(rules: Mapping[str, Any], sections: Mapping[str, Any]) -> dict[str, Any]:
    """The rules of a list whose entries may have a model and an engine."""
    entry = rules["schema"]
    members = {key: _member(own, sections) for key, own in entry["schema"].items()}
    return {**rules, "schema": {**entry, "schema": members}}


def _member(rules: Mapping[str, Any], sections: Mapping[str, Any]) -> Mapping[str, Any]:
    if same_as := rules.get("meta", {}).get("same_as"):
        # What depends on each other in a site is required in a group.
        own = {key: rule for key, rule in sections[same_as].items() if key != "dependencies"}
        return {**own, **rules}
    has_members = rules.get("type") == "list" and rules["schema"]["type"] == "dict"
    return _entries(rules, sections) if has_members else rules


def path_in_group(path: KeyPath) -> KeyPath:
    """A path inside a group's model or engine, as it would be without groups."""
    if path[:1] != (GROUPS,):
        return path
    inside = path[4:] if path[2:3] == (ALTERNATIVES,) else path[2:]
    return inside if inside[:1] in (("model",), ("engine",)) else path


@cache
def section_keys() -> dict[str, frozenset[str]]:
    """The keys of each section and of groups, or of its entries if it is a list."""
    return {name: frozenset(entry_keys(name)) for name in (*SECTIONS, GROUPS)}


def entry_keys(section: str) -> Mapping[str, Any]:
    """The rules of a section's keys, or of its entries' keys if it is a list."""
    rules = site_schema().get(section, {})
    inner: Mapping[str, Any] = rules.get("schema", {})
    return inner.get("schema", {}) if rules.get("type") == "list" else inner


@cache
def all_keys() -> frozenset[str]:
    """All keys of the site format, in any section."""
    return frozenset(_keys(site_schema()))


def _keys(rules: Mapping[str, Any]) -> Iterator[str]:
    for key, inner in rules.items():
        yield key
        while inner.get("type") == "list":
            inner = inner.get("schema", {})
        yield from _keys(inner.get("schema", {}) if inner.get("type") == "dict" else {})


def choices_at(path: Sequence[str | int]) -> tuple[Any, ...]:
    """The values that a key takes; empty if there is no fixed list."""
    rules: Mapping[str, Any] = {"schema": site_schema()}
    for part in path:
        rules = rules.get("schema", {}).get(part, {})
    return tuple(rules.get("allowed", ()))
