"""Schemas and templates that a wheel contains in compiled form, to make every start faster.

A checkout has none of it: what a developer edits is read as it is, and what was made of it is kept
beside Python's compiled modules.
"""

import contextlib
import json
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from generator.resources import PACKAGE, SCHEMAS, DamagedFileError

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = PACKAGE / "precompiled"
_SCHEMAS = "schemas.json"
# What no build reads: it has a parser of its own, or is for tests and people alone.
_APART = ("models", "evidence/", "rules/")


def schema(name: str) -> Any:
    """The content of `schemas/NAME.yaml`."""
    return _schemas()[name] if FOLDER.is_dir() else _parsed(name)


def templates(folder: Path = FOLDER) -> Path:
    """The folder of the templates that this version of Jinja compiled, to Python of any version."""
    import jinja2

    # Newer versions have no `__version__`, and looking it up in the metadata takes longer.
    jinja = getattr(jinja2, "__version__", None) or _version("jinja2")
    return folder / f"templates-jinja-{jinja}"


def _version(package: str) -> str:
    from importlib.metadata import version

    return version(package)


def write(folder: Path, environment: "Environment") -> None:
    """Precompile everything into a folder."""
    paths = (path.relative_to(SCHEMAS).with_suffix("") for path in SCHEMAS.rglob("*.yaml"))
    names = sorted(name for path in paths if not (name := path.as_posix()).startswith(_APART))
    held = {name: _parsed(name) for name in names}
    (folder / _SCHEMAS).write_text(json.dumps(held), encoding="utf-8")
    environment.compile_templates(templates(folder), ["j2"], zip=None, ignore_errors=False)


@cache
def _schemas() -> dict[str, Any]:
    held: dict[str, Any] = json.loads((FOLDER / _SCHEMAS).read_bytes())
    return held


@cache
def _parsed(name: str) -> Any:
    """The content of a file, from a copy as JSON if that was made of the same bytes."""
    source = (SCHEMAS / f"{name}.yaml").read_bytes()
    if sys.dont_write_bytecode:
        return _loaded(name, source)
    copy = PACKAGE / "__pycache__" / f"schema-{name.replace('/', '-')}.json"
    with contextlib.suppress(OSError, ValueError):
        made, _, made_of = copy.read_bytes().partition(b"\n")
        if made_of == source:
            return json.loads(made)
    content = _loaded(name, source)
    with contextlib.suppress(OSError):
        copy.write_bytes(json.dumps(content).encode() + b"\n" + source)
    return content


def _loaded(name: str, source: bytes) -> Any:
    try:
        return yaml.load(source, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        why = " ".join(str(error).split())
        raise DamagedFileError(f"{SCHEMAS / name}.yaml: {why}") from None
