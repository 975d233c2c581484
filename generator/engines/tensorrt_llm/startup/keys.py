"""The keys of TensorRT-LLM's options file, by version.

A line of `schemas/tensorrt-llm-options.tsv` has a key, the minor releases that have it, its type,
and its possible words if they are a closed list. The file is read on first use.
"""

import re
from collections.abc import Mapping
from functools import cache

from generator.catalogs.versions import release
from generator.records import record
from generator.resources import rows


@record
class Key:
    """A setting: its type as declared for pydantic, and its words, empty if any are allowed."""

    type: str
    choices: tuple[str, ...]


@cache
def _lines(version: str) -> Mapping[str, Key]:
    """The settings of a version, by their path, with the variants of a section in brackets."""
    wanted = "1.2" if release(version) < (1, 3) else "1.3"
    return {
        path: Key(kind, tuple(choices.split(",")) if choices else ())
        for path, versions, kind, choices in rows("tensorrt-llm-options")
        if wanted in versions.split()
    }


@cache
def keys(version: str) -> Mapping[str, Key]:
    """The settings of a version, by their path, for all variants of a section together."""
    return {re.sub(r"\[[^][]*\]", "", path): key for path, key in _lines(version).items()}


def speculative_keys(version: str, method: str) -> Mapping[str, Key]:
    """The settings of a speculation method, by name: those that all share, and its own."""
    found = {}
    for path, key in _lines(version).items():
        section, _, name = path.rpartition(".")
        kinds = section.removeprefix("speculative_config").strip("[]").split("/")
        if section.startswith("speculative_config") and (kinds == [""] or method in kinds):
            found[name] = key
    return found


def sections(version: str) -> frozenset[str]:
    """The settings that have known settings of their own."""
    return frozenset(path.rpartition(".")[0] for path in keys(version) if "." in path)
