"""The flags that a model's publisher, or a working recipe, recommends for an engine."""

from collections.abc import Mapping
from typing import Any

from generator.catalogs.checkpoints import Architecture
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import catalog
from generator.catalogs.vocabularies import HARMONY_PARSER

# Flags for which the site file has keys.
_KEYS = (
    *("kv-cache-dtype", "quantization", "enable-expert-parallel", "tensor-parallel-size"),
    "max-model-len",
)
_FILES = (".jinja", ".py", ".json")
TOOL_CHOICE, TOOL_PARSER = "enable-auto-tool-choice", "tool-call-parser"


def advised_flags(architecture: Architecture, engine: str, version: str) -> Mapping[str, Any]:
    """The recommended flags of this version; templates and plugins are files, and omitted."""
    flags: Mapping[str, Any] = architecture.advised.get(engine, {}).get("flags", {})
    known = catalog(engine, version)
    return {
        name: value
        for name, value in flags.items()
        if name not in _KEYS and not str(value).endswith(_FILES) and known and known.find(name)
    }


def advised_parsers(architecture: Architecture, engine: str) -> Mapping[str, Any]:
    """The flags that name the model's parsers, if the engine uses those names."""
    flags: dict[str, Any] = {}
    if not ENGINE_TRAITS[engine].names_parsers:
        return flags
    if architecture.tool_call_parser:
        flags |= {TOOL_CHOICE: True, TOOL_PARSER: architecture.tool_call_parser}
    if architecture.reasoning_parser:
        flags["reasoning-parser"] = architecture.reasoning_parser
    return flags


def needed_flags(architecture: Architecture, engine: str, version: str) -> Mapping[str, Any]:
    """The recommended flags that change what the engine does by default."""
    flags = advised_flags(architecture, engine, version)
    own = (*ENGINE_TRAITS[engine].self_chosen, TOOL_CHOICE)
    return {name: value for name, value in flags.items() if name not in own}


def needed_parsers(architecture: Architecture, engine: str) -> Mapping[str, Any]:
    """The parsers that the engine does not select itself, as it does for gpt-oss."""
    flags = advised_parsers(architecture, engine)
    return {name: value for name, value in flags.items() if value != HARMONY_PARSER}
