"""Prints templates: the environment that they are compiled and printed with."""

import contextlib
import json
import os
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
    ModuleLoader,
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


class _PrecompiledTemplates(ModuleLoader):
    """Templates that a wheel has compiled; Python looks for none of the parts that don't exist."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._files = frozenset(os.listdir(folder))  # noqa: PTH208 (names alone)

    def load(
        self,
        environment: Environment,
        name: str,
        globals: MutableMapping[str, Any] | None = None,  # noqa: A002 (Jinja calls it so)
    ) -> Template:
        if self.get_module_filename(name) not in self._files:
            raise TemplateNotFound(name)
        return super().load(environment, name, globals)


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
