"""Renders templates: the environment that compiles and renders them."""

import contextlib
import json
import re
import sys
from collections.abc import Callable, MutableMapping
from functools import cache
from typing import Any, TypeVar

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
from generator.bundle.escaping import block_yaml, compose, html, markdown, sh, xml, xml_comment
from generator.resources import PACKAGE, TEMPLATES

_Kind = TypeVar("_Kind", bound=Environment)


def printed(template: str, **values: Any) -> str:
    """Render a template with these values."""
    return str(_environment().get_template(f"{template}.j2").render(values))


class IsolatedEnvironment(Environment):
    """An environment whose templates see only the values that they are given.

    An attribute is one of Python's: Jinja's own look-up falls back to an item.
    """

    getattr = staticmethod(getattr)  # type: ignore[assignment]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._known: dict[str | Template, Template | None] = {}

    def get_template(
        self,
        name: str | Template,
        parent: str | None = None,
        globals: MutableMapping[str, Any] | None = None,  # noqa: A002
    ) -> Template:
        """Load a template, and remember which parts don't exist, since runbooks try all of them."""
        if name not in self._known:
            try:
                self._known[name] = super().get_template(name, parent, globals)
            except TemplateNotFound:
                self._known[name] = None
        if (template := self._known[name]) is None:
            raise TemplateNotFound(str(name))
        return template

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """The globals of a template, without Jinja's own, which none uses."""
        return {} if d is None else d


class _WithFragments(FileSystemLoader):
    """Loads templates with the fragments that they include already in place.

    Jinja creates a context for every include. A fragment is outside the folders, and sets no names.
    """

    _INCLUDE = r'(?m)^\{% include "([a-z]+\.j2)" %\}\n'

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        source, path, is_fresh = super().get_source(environment, template)
        with_fragments = re.sub(
            self._INCLUDE, lambda found: self.get_source(environment, found[1])[0], source
        )
        return with_fragments, path, is_fresh


class _CompiledTemplates(FileSystemBytecodeCache):
    """A cache of compiled templates beside Python's compiled modules."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


@cache
def _environment() -> Environment:
    if (compiled := precompiled.templates()).is_dir():
        return environment(IsolatedEnvironment, ModuleLoader(compiled))
    # Kept only if Python may keep what it compiles.
    kept = _CompiledTemplates(str(PACKAGE / "__pycache__"), "template-%s.cache")
    cache_here = None if sys.dont_write_bytecode else kept
    return environment(IsolatedEnvironment, sources(), bytecode_cache=cache_here)


def sources() -> BaseLoader:
    """The templates as they are written."""
    return _WithFragments(TEMPLATES, encoding="utf-8")


def environment(kind: type[_Kind], loader: BaseLoader, **more: Any) -> _Kind:
    """The environment that templates are rendered with, of this class."""
    made = kind(
        loader=loader,
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
        "html": html,
        "markdown": markdown,
        "xml": xml,
        "xml_comment": xml_comment,
        "yaml": block_yaml,
    }
    return made
