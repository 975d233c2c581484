"""The sites that mistakes are made in: the repository's own, in several styles that people use."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from generator.fixing.repair import repair
from typos.text import Site

TESTS = Path(__file__).parent.parent
# Sites with everything that the format has.
_TODAY = Path(__file__).parent / "today"


@dataclass(frozen=True)
class File:
    """A site file; `encode` turns its text, whose lines end with a newline, into bytes."""

    name: str
    site: Site
    encode: Callable[[str], bytes] = str.encode


def files() -> list[File]:
    """All of them, in a fixed order."""
    return list(_files())


def _files() -> Iterator[File]:
    folders = (TESTS.parent / "sites", TESTS.parent / "sites/more", TESTS / "right", _TODAY)
    paths = [path for folder in folders for path in folder.glob("*.yaml")]
    paths += (TESTS / "golden").glob("*/site.yaml")
    for number, path in enumerate(sorted(paths)):
        text = path.read_text()
        name = path.name if path.name != "site.yaml" else path.parent.name
        done = repair(name, text.encode())
        # A site that needs other files, or already has something to fix, says nothing about a
        # mistake.
        if "nasty" in name or done.fixed or done.before.site is None:
            continue
        yield File(name, Site(text))
        style = _STYLES[number % len(_STYLES)]
        yield style(name, text)


def _unindented(name: str, text: str) -> File:
    """Block style throughout, with the dashes of lists not indented."""
    return File(f"{name} in blocks", Site(_written(text, flow_from=99)))


def _in_flow(name: str, text: str) -> File:
    """Sections on several lines, with each entry on one line in flow style."""
    return File(f"{name} in braces", Site(_written(text, flow_from=2)))


def _with_comments(name: str, text: str) -> File:
    """A comment after every value, and before every section."""
    lines = []
    for line in text.split("\n"):
        if re.match(r"[a-z]+:$", line):
            lines.append(f"# {'-' * 20} {line[:-1]}")
        plain = re.match(r" *[\w-]+: [\w./:-]+$", line)
        lines.append(f"{line}  # as agreed" if plain else line)
    return File(f"{name} with comments", Site("\n".join(lines)))


def _for_windows(name: str, text: str) -> File:
    """A byte order mark and CRLF line ends."""
    return File(f"{name} for Windows", Site(text), _windows)


def _windows(text: str) -> bytes:
    return b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()


_STYLES = (_unindented, _in_flow, _with_comments, _for_windows)


def _written(text: str, flow_from: int) -> str:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    _restyle(root, 0, flow_from)
    return yaml.serialize(root, Dumper=yaml.SafeDumper, width=10_000, allow_unicode=True)


def _restyle(node: Any, level: int, flow_from: int) -> None:
    if isinstance(node, yaml.ScalarNode):
        return
    node.flow_style = level >= flow_from
    for child in node.value:
        for part in child if isinstance(child, tuple) else (child,):
            _restyle(part, level + 1, flow_from)
