"""Escapes text for the languages of a bundle's files: shell, Compose, XML, YAML, Markdown."""

import json
import math
import re
import shlex
from collections.abc import Mapping
from typing import Any

import yaml
from markupsafe import escape


def sh(value: str | tuple[str, ...]) -> str:
    """One word, or several, as a shell reads them back."""
    return _quoted(value) if isinstance(value, str) else " ".join(map(_quoted, value))


def _quoted(word: str) -> str:
    """Commas too: shellcheck takes a bare one in an array for a mistake (SC2054)."""
    quoted = shlex.quote(word)
    return f"'{word}'" if "," in word and quoted == word else quoted


def compose(value: str) -> str:
    """A text in a Compose file: double quotes for YAML, and no `$` left to interpolate."""
    return json.dumps(value).replace("$", "$$")


def xml(value: str) -> str:
    """A text between the tags of XML, or in double quotes."""
    return str(escape(value))


def xml_comment(value: str) -> str:
    """A text in a comment of XML, which two hyphens in a row would end."""
    return value.replace("--", "-&#45;")


def block_yaml(value: Mapping[str, Any]) -> str:
    """A mapping as YAML in block style, sorted: the order in a site file means nothing."""
    return str(yaml.dump(value, Dumper=_Indented, sort_keys=True, width=math.inf))


class _Indented(yaml.SafeDumper):
    """Lists are indented below their keys, as people write them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


def markdown(value: str) -> str:
    """A text in a paragraph or table cell of Markdown, none of it markup."""
    return re.sub(r"([\\`*_\[\]<>|#{}])", r"\\\1", value)
