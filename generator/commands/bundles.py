"""How a command makes bundles and compares them with folders."""

import contextlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import click

from generator.commands.sites import fail
from generator.output import Comparison, OutputError, compare
from generator.pipeline import Reading
from generator.render import render
from generator.site import Node, Site
from generator.tree import Tree

MANY_NODES = 100


def rendered(readings: Iterable[Reading]) -> list[tuple[Site, Tree]]:
    """The bundles of sound readings."""
    bundles = []
    for reading in readings:
        site = reading.site
        assert site
        with _progress(site) as nodes:
            bundles.append((site, render(site, reading.sha256, nodes)))
    return bundles


def compared(tree: Tree, folder: Path) -> Comparison:
    """How a folder differs from its bundle; ends the command if it can't be read."""
    with disk():
        return compare(tree, folder)


@contextlib.contextmanager
def disk() -> Iterator[None]:
    """A folder that can't be read or written ends the command in one line."""
    try:
        yield
    except OutputError as error:
        fail(str(error))


def _progress(site: Site) -> AbstractContextManager[Iterable[Node]]:
    """The site's nodes, with a bar on a terminal where there are many."""
    hidden = len(site.nodes) <= MANY_NODES or not sys.stderr.isatty()
    return click.progressbar(site.nodes, label=site.name, file=sys.stderr, hidden=hidden)
