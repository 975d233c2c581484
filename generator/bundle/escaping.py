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
    """Quote one word or several for a shell."""
    return _quoted(value) if isinstance(value, str) else " ".join(map(_quoted, value))


def _quoted(word: str) -> str:
    """Quotes commas too: shellcheck takes a bare one in an array for a mistake (SC2054)."""
    quoted = shlex.quote(word)
    return f"'{word}'" if "," in word and quoted == word else quoted


def compose(value: str) -> str:
    """Quote text for a Compose file: double quotes for YAML, and no `$` left to interpolate."""
    return json.dumps(value).replace("$", "$$")


def xml(value: str) -> str:
    """Escape text between the tags of XML or in double quotes."""
    return str(escape(value))


def html(value: str) -> str:
    """A line of Markdown as HTML: its code, its strong words and its links."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", xml(value))
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"\[([^][]+)\]\((https?://[^)\s]+|[\w./#-]+)\)", r'<a href="\2">\1</a>', text)
    return re.sub(r"\\(&\w+;|[\\`*_\[\]|#{}])", r"\1", text)


def xml_comment(value: str) -> str:
    """Escape text in an XML comment, which two hyphens in a row would end."""
    return value.replace("--", "-&#45;")


def block_yaml(value: Mapping[str, Any]) -> str:
    """Dump a mapping as YAML in block style, sorted: the order in a site file has no meaning."""
    return str(yaml.dump(value, Dumper=_Indented, sort_keys=True, width=math.inf))


class _Indented(yaml.SafeDumper):
    """Indents lists below their keys, as people write them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


def markdown(value: str) -> str:
    """Escape text in a Markdown paragraph or table cell, so that none of it is markup."""
    return re.sub(r"([\\`*_\[\]<>|#{}])", r"\\\1", value)
