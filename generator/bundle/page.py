"""The values of index.html: the whole site on one page, from what the rest of the bundle says."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from generator.bundle.diagram.layout import layout
from generator.bundle.diagram.shapes import DARK, LIGHT
from generator.bundle.tree import File
from generator.failures.table import FailureRow
from generator.fit.table import alike, legend, parts_of
from generator.grouping import grouped
from generator.site import Part, Site

# With more, a picture and a link for each fault are too much for a page.
_MOST_NODES = 32

_SETUP = re.compile(r"^## Set up\n(.*?)^## ", re.DOTALL | re.MULTILINE)
_STEP = re.compile(r"^### (?P<title>.*)|^- \[ \] (?P<item>.*(?:\n  (?!- )\S.*)*)", re.MULTILINE)


def page(
    site: Site, runbook: str, failures: Sequence[FailureRow], files: Iterable[File]
) -> dict[str, Any]:
    """The values besides the site; `runbook` is the text of README.md."""
    is_drawn = site.has_fabric and len(site.nodes) <= _MOST_NODES
    return {
        "drawing": layout(site) if is_drawn else None,
        # The switches are drawn as one frame before those of the nodes.
        "framed": [*site.switches[:1], *(node.name for node in site.nodes)],
        "light": LIGHT,
        "dark": DARK,
        "linked": is_drawn and bool(failures),
        "failures": failures,
        "steps": _steps(runbook),
        "ports": _ports(site),
        "files": _files(site, files),
        "memory": [_memory(part) for part in site.parts if part.memory and part.memory.nodes],
    }


def _steps(runbook: str) -> Mapping[str, list[str]]:
    """The headings of the runbook's setup, each with its items to tick off."""
    found: dict[str, list[str]] = {}
    section = _SETUP.search(runbook)
    for step in _STEP.finditer(section[1] if section else ""):
        if step["title"]:
            items = found.setdefault(step["title"], [])
        else:
            items.append(" ".join(step["item"].split()))
    return {title: items for title, items in found.items() if items}


def _ports(site: Site) -> Mapping[tuple[str, int], list[str]]:
    """The nodes on which each program listens on a port."""
    found: dict[tuple[str, int], list[str]] = {}
    for node in site.nodes:
        own = (part.listeners(member) for part, member in site.parts_of(node.name))
        listening = {port for ports in (*own, site.listeners(node)) for port in ports.items()}
        for port in sorted(listening):
            found.setdefault(port, []).append(node.name)
    return found


def _files(site: Site, files: Iterable[File]) -> Mapping[str, list[str]]:
    """The nodes that have each file, by its path there."""
    places = (file.path.partition("/") for file in files)
    return dict(sorted(grouped((path, node) for node, _, path in places).items()))


def _memory(part: Part) -> tuple[Any, ...]:
    """The group, the legend, and what nodes hold in its order, in GiB; nodes alike together."""
    assert part.memory
    nodes = part.memory.nodes
    held = [(", ".join(names), node.visible_gib, parts_of(node)) for node, names in alike(nodes)]
    return part.group, legend(nodes), held
