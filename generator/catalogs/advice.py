"""The flags that a model's publisher, or a recipe that runs, advises for an engine."""

from collections.abc import Mapping
from typing import Any

from generator.catalogs import Architecture
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import catalog
from generator.catalogs.vocabularies import HARMONY_PARSER

# What a site file has keys of its own for.
_KEYS = (
    *("kv-cache-dtype", "quantization", "enable-expert-parallel", "tensor-parallel-size"),
    "max-model-len",
)
_FILES = (".jinja", ".py", ".json")
TOOL_CHOICE, TOOL_PARSER = "enable-auto-tool-choice", "tool-call-parser"


def advised_flags(architecture: Architecture, engine: str, version: str) -> Mapping[str, Any]:
    """Those that the engine has in this version; templates and plugins are files, and left out."""
    flags: Mapping[str, Any] = architecture.advised.get(engine, {}).get("flags", {})
    known = catalog(engine, version)
    return {
        name: value
        for name, value in flags.items()
        if name not in _KEYS and not str(value).endswith(_FILES) and known and known.find(name)
    }


def advised_parsers(architecture: Architecture, engine: str) -> Mapping[str, Any]:
    """The flags that name the model's parsers, where the engine calls them so."""
    flags: dict[str, Any] = {}
    if not ENGINE_TRAITS[engine].names_parsers:
        return flags
    if architecture.tool_call_parser:
        flags |= {TOOL_CHOICE: True, TOOL_PARSER: architecture.tool_call_parser}
    if architecture.reasoning_parser:
        flags["reasoning-parser"] = architecture.reasoning_parser
    return flags


def needed_flags(architecture: Architecture, engine: str, version: str) -> Mapping[str, Any]:
    """The advised flags that change what the engine does by itself."""
    flags = advised_flags(architecture, engine, version)
    own = (*ENGINE_TRAITS[engine].self_chosen, TOOL_CHOICE)
    return {name: value for name, value in flags.items() if name not in own}


def needed_parsers(architecture: Architecture, engine: str) -> Mapping[str, Any]:
    """The parsers that the engine does not choose by itself, as it does for gpt-oss."""
    flags = advised_parsers(architecture, engine)
    return {name: value for name, value in flags.items() if value != HARMONY_PARSER}
