"""The flags that a model's publisher, or a recipe that runs, advises for an engine."""

from collections.abc import Mapping
from typing import Any

from generator.catalogs import Architecture
from generator.catalogs.flag_files import catalog

# What a site file has keys of its own for.
_KEYS = ("kv-cache-dtype", "quantization", "enable-expert-parallel", "tensor-parallel-size")
_FILES = (".jinja", ".py", ".json")


def advised_flags(architecture: Architecture, engine: str, version: str) -> Mapping[str, Any]:
    """Those that the engine has in this version; templates and plugins are files, and left out."""
    flags: Mapping[str, Any] = architecture.advised.get(engine, {}).get("flags", {})
    known = catalog(engine, version)
    return {
        name: value
        for name, value in flags.items()
        if name not in _KEYS and not str(value).endswith(_FILES) and known and known.find(name)
    }
