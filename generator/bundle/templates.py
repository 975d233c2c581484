"""Prints templates: the environment that they are compiled and printed with."""

import contextlib
import json
import sys
from collections.abc import MutableMapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import (
    BaseLoader,
    Environment,
    FileSystemBytecodeCache,
    FileSystemLoader,
    StrictUndefined,
    Template,
    TemplateNotFound,
)
from jinja2.bccache import Bucket

from generator import precompiled
from generator.bundle.escaping import block_yaml, compose, markdown, sh, xml, xml_comment
from generator.resources import PACKAGE, TEMPLATES


def printed(template: str, **values: Any) -> str:
    """What a template makes of these values."""
    return str(_template(template).render(values))


class _CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates, kept where Python keeps compiled modules, and only if Python may too."""

    def load_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            if not sys.dont_write_bytecode:
                super().dump_bytecode(bucket)


class _PrecompiledTemplates(BaseLoader):
    """Templates that a wheel has compiled: a module for those of each folder."""

    has_source_access = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(
        self,
        environment: Environment,
        name: str,
        globals: MutableMapping[str, Any] | None = None,  # noqa: A002 (Jinja calls it so)
    ) -> Template:
        compiled = precompiled.of_folder(self._folder, precompiled.module_of(name))
        if name not in compiled:
            raise TemplateNotFound(name)
        made = {**compiled[name](environment), "__file__": name}
        return environment.template_class.from_module_dict(environment, made, globals or {})


@cache
def _template(name: str) -> Any:
    return _environment().get_template(f"{name}.j2")


@cache
def _environment() -> Environment:
    if (compiled := precompiled.templates()).is_dir():
        return environment(loader=_PrecompiledTemplates(compiled))
    folder = str(PACKAGE / "__pycache__")
    return environment(bytecode_cache=_CompiledTemplates(folder, "template-%s.cache"))


def environment(
    kind: type[Environment] = Environment, loader: BaseLoader | None = None, **more: Any
) -> Environment:
    """What templates are printed with."""
    made = kind(
        loader=loader or FileSystemLoader(TEMPLATES, encoding="utf-8"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        **more,
    )
    made.filters |= {
        "json": json.dumps,
        "sh": sh,
        "compose": compose,
        "markdown": markdown,
        "xml": xml,
        "xml_comment": xml_comment,
        "yaml": block_yaml,
    }
    return made
