"""Schemas and templates that a wheel contains in compiled form, to make every start faster.

A checkout has none of it: what a developer edits is read as it is.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from generator.resources import PACKAGE, SCHEMAS

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

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


def write(folder: Path, environment: "Environment", loader: "BaseLoader") -> None:
    """Precompile everything into a folder."""
    paths = (path.relative_to(SCHEMAS).with_suffix("") for path in SCHEMAS.rglob("*.yaml"))
    names = sorted(name for path in paths if not (name := path.as_posix()).startswith(_APART))
    held = {name: _parsed(name) for name in names}
    (folder / _SCHEMAS).write_text(json.dumps(held), encoding="utf-8")
    templates(folder).mkdir()
    modules: dict[str, list[str]] = {}
    for name in environment.list_templates(["j2"]):
        modules.setdefault(module_of(name), []).append(name)
    for module, names in modules.items():
        text = _module([(name, _compiled(name, environment, loader)) for name in names])
        (templates(folder) / module).write_text(text, encoding="utf-8")


def module_of(template: str) -> str:
    """The file name of the module that contains a template and all others of its folder.

    With one module per template, Python would spend as long finding modules as reading them.
    """
    return f"{template.rpartition('/')[0].replace('/', '-') or 'top'}.py"


@cache
def of_folder(folder: Path, module: str) -> Mapping[str, Callable[["Environment"], dict[str, Any]]]:
    """The templates of a module, each a function that returns the namespace that Jinja expects."""
    path = folder / module
    spec = spec_from_file_location(f"generator.templates.{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        return {}
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    found: Mapping[str, Callable[[Environment], dict[str, Any]]] = loaded.TEMPLATES
    return found


def _compiled(name: str, environment: "Environment", loader: "BaseLoader") -> str:
    source, _, _ = loader.get_source(environment, name)
    return environment.compile(source, name, raw=True, defer_init=True)


def _module(compiled: Iterable[tuple[str, str]]) -> str:
    """One module for several templates; Jinja would compile each to a module of its own."""
    from textwrap import indent

    imports, functions, names = "", [], []
    for number, (name, code) in enumerate(compiled):
        imports, _, body = code.partition("\n")
        functions.append(f"def t{number}(environment):\n{indent(body, ' ')}\n return locals()\n")
        names.append(f"{name!r}: t{number},\n")
    return "\n".join((imports, *functions, "TEMPLATES = {", *names, "}\n"))


@cache
def _schemas() -> dict[str, Any]:
    held: dict[str, Any] = json.loads((FOLDER / _SCHEMAS).read_bytes())
    return held


@cache
def _parsed(name: str) -> Any:
    return yaml.load((SCHEMAS / f"{name}.yaml").read_bytes(), Loader=yaml.CSafeLoader)
