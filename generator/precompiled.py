"""What a wheel holds beside its sources, so that no start parses schemas or compiles templates.

A checkout has none of it: what a developer edits is read as it is.
"""

import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from generator.resources import PACKAGE, SCHEMAS

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = PACKAGE / "precompiled"
_SCHEMAS = "schemas.json"
# Parsed in part, and with a parser of its own.
_MODELS = "models"


def schema(name: str) -> Any:
    """What `schemas/NAME.yaml` holds."""
    return _schemas()[name] if FOLDER.is_dir() else _parsed(name)


def templates(folder: Path = FOLDER) -> Path:
    """Where the templates are that this version of Jinja compiled: to Python, for any version."""
    import jinja2

    # From some version on, the package doesn't know its version, and to look it up takes longer.
    jinja = getattr(jinja2, "__version__", None) or version("jinja2")
    return folder / f"templates-jinja-{jinja}"


def write(folder: Path, environment: "Environment") -> None:
    """Precompile everything into a folder."""
    names = sorted(path.stem for path in SCHEMAS.glob("*.yaml") if path.stem != _MODELS)
    held = {name: _parsed(name) for name in names}
    (folder / _SCHEMAS).write_text(json.dumps(held, sort_keys=True), encoding="utf-8")
    environment.compile_templates(templates(folder), ["j2"], zip=None, ignore_errors=False)


@cache
def _schemas() -> dict[str, Any]:
    held: dict[str, Any] = json.loads((FOLDER / _SCHEMAS).read_bytes())
    return held


@cache
def _parsed(name: str) -> Any:
    return yaml.load((SCHEMAS / f"{name}.yaml").read_bytes(), Loader=yaml.CSafeLoader)
