"""The sections of a site file, and the schema of each as data."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from generator import precompiled

SECTIONS = (
    "defaults",
    "nodes",
    "cabling",
    "topology",
    "model",
    "engine",
    "fit",
    "services",
    "waivers",
)


@cache
def site_schema() -> dict[str, Any]:
    """The rules of a whole site file, section files joined."""
    rules: dict[str, Any] = precompiled.schema("site")
    return rules | {section: precompiled.schema(section) for section in SECTIONS}


@cache
def section_keys() -> dict[str, frozenset[str]]:
    """The keys of each section, or of the entries of one that is a list."""
    return {name: frozenset(entry_keys(name)) for name in SECTIONS}


def entry_keys(section: str) -> Mapping[str, Any]:
    """The rules of a section's keys, or of those of its entries where it is a list."""
    rules = site_schema().get(section, {})
    inner: Mapping[str, Any] = rules.get("schema", {})
    return inner.get("schema", {}) if rules.get("type") == "list" else inner


@cache
def all_keys() -> frozenset[str]:
    """The keys of the site format, wherever they stand."""
    return frozenset(_keys(site_schema()))


def _keys(rules: Mapping[str, Any]) -> Iterator[str]:
    for key, inner in rules.items():
        yield key
        while inner.get("type") == "list":
            inner = inner.get("schema", {})
        yield from _keys(inner.get("schema", {}) if inner.get("type") == "dict" else {})


def choices_at(path: Sequence[str | int]) -> tuple[Any, ...]:
    """The values that a key takes; none where there are too many to name."""
    rules: Mapping[str, Any] = {"schema": site_schema()}
    for part in path:
        rules = rules.get("schema", {}).get(part, {})
    return tuple(rules.get("allowed", ()))
