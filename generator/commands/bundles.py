"""How commands render bundles and compare them with folders."""

import contextlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import click

from generator.bundle.journal import interrupted
from generator.bundle.output import Comparison, OutputError, compare
from generator.bundle.render import render
from generator.bundle.tree import Tree
from generator.commands.options import DRIFT
from generator.commands.sites import fail
from generator.pipeline import ValidReading
from generator.reports import drift
from generator.site import Node, Site

MANY_NODES = 100


def rendered(readings: Iterable[ValidReading]) -> list[tuple[Site, Tree]]:
    """The bundles of the valid sites."""
    bundles = []
    for valid in readings:
        with _progress(valid.site) as nodes:
            tree = render(valid.site, valid.reading.sha256, nodes, valid.reading.texts)
        bundles.append((valid.site, tree))
    return bundles


def compared(tree: Tree, folder: Path) -> Comparison:
    """How a folder differs from its bundle; exits if it can't be read."""
    with disk():
        return compare(tree, folder)


def refuse_interrupted(folders: Iterable[Path]) -> None:
    """Exit if a build was interrupted in one of the folders."""
    found = [folder for folder in folders if interrupted(folder) is not None]
    for folder in found:
        click.echo(drift.interrupted(folder), err=True)
    if found:
        sys.exit(DRIFT)


@contextlib.contextmanager
def disk() -> Iterator[None]:
    """Exit with one line if a folder can't be read or written."""
    try:
        yield
    except OutputError as error:
        fail(str(error))


def _progress(site: Site) -> AbstractContextManager[Iterable[Node]]:
    """The site's nodes, with a progress bar if there are many and this is a terminal."""
    if len(site.nodes) <= MANY_NODES or not sys.stderr.isatty():
        return contextlib.nullcontext(site.nodes)
    return click.progressbar(site.nodes, label=site.name, file=sys.stderr)
