"""The command line: flags, read, call, write; slow imports stand in the commands that need them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from generator import __version__

if TYPE_CHECKING:
    from generator.diagnostics import Finding
    from generator.output import Comparison
    from generator.pipeline import Reading
    from generator.site import Node, Site
    from generator.tree import Tree

DRIFT, INVALID, ENVIRONMENT = 1, 3, 4
MANY_NODES = 100

SITES = click.argument("sites", nargs=-1, required=True, metavar="SITE...", type=Path)
SITE = click.argument("site", metavar="SITE", type=Path)
STRICT = click.option("--strict", is_flag=True, help="Treat warnings as errors.")
OUT = click.option(
    "--out",
    type=Path,
    default=Path("out"),
    show_default=True,
    metavar="DIR",
    help="Where the bundles are: DIR/NAME of each site.",
)


class _Commands(click.Group):
    """Commands whose own faults end in one line, like everybody else's."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except (click.ClickException, click.exceptions.Exit, click.Abort, OSError):
            raise
        except Exception as error:
            _fail(f"SG901: a fault of sparkgen's own, please report it: {_where(error)}")


def _where(error: BaseException) -> str:
    """The exception and the place in the package that raised it."""
    import traceback

    last = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text} ({Path(last.filename).name}:{last.lineno})"


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sparkgen", message="%(prog)s %(version)s")
def main() -> None:
    r"""Write the configuration of a DGX Spark cluster from one site file.

    \b
    sparkgen validate sites/lab-mesh.yaml
    sparkgen build sites/lab-mesh.yaml
    """


@main.command()
@SITES
@OUT
@STRICT
@click.option("--force", is_flag=True, help="Overwrite files that were edited by hand.")
def build(sites: tuple[Path, ...], out: Path, strict: bool, force: bool) -> None:
    r"""Check sites and write their bundles; nothing if one of them is not sound.

    \b
    Example: sparkgen build sites/lab-mesh.yaml
    """
    from generator.output import write

    plans = [(site, tree, _compare(tree, out / site.name)) for site, tree in _trees(sites, strict)]
    edited = [
        f"{out / site.name / path}" for site, _, comparison in plans for path in comparison.edited
    ]
    for path in edited:
        click.echo(f"{'overwritten' if force else 'SG803'}: {path} was edited by hand", err=True)
    if edited and not force:
        click.echo("nothing was written; --force overwrites them", err=True)
        sys.exit(DRIFT)
    for site, tree, comparison in plans:
        with _environment():
            write(tree, out / site.name, comparison)
        for path in comparison.foreign:
            click.echo(
                f"SG805: {out / site.name / path} is not of the bundle; left alone", err=True
            )
        click.echo(_summary(site, tree, out / site.name, comparison))


@main.command()
@SITES
@STRICT
def validate(sites: tuple[Path, ...], strict: bool) -> None:
    r"""Check sites and write nothing.

    \b
    Example: sparkgen validate --strict sites/*.yaml
    """
    from generator.lint import lint

    readings = [_read(path) for path in sites]
    faulty = False
    for reading in readings:
        findings = [*reading.findings, *(lint(reading.document) if reading.document.root else ())]
        faulty |= _report(reading, findings, strict)
        if reading.site and not findings:
            click.echo(f"{reading.document.name}: fine")
    if faulty:
        sys.exit(INVALID)


@main.command()
@SITES
@OUT
def check(sites: tuple[Path, ...], out: Path) -> None:
    r"""Say whether the bundles on disk are what the sites say.

    \b
    Example: sparkgen check sites/*.yaml
    """
    drifted = False
    for site, tree in _trees(sites, strict=False):
        folder = out / site.name
        comparison = _compare(tree, folder)
        drifted |= comparison.drifted
        for line in _drift(comparison, folder):
            click.echo(line)
        if not comparison.drifted:
            click.echo(f"{site.name}: {folder} is what the site says")
    if drifted:
        sys.exit(DRIFT)


@main.command()
@SITE
@click.option("--node", metavar="NAME", help="All of one node.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "yaml", "json"]),
    default="table",
    show_default=True,
)
def show(site: Path, node: str | None, form: str) -> None:
    r"""Print what is derived from a site: ranks, addresses, cables, environment, commands.

    \b
    Example: sparkgen show sites/lab-mesh.yaml --node spark2
    """
    from generator.show import plain, table

    (derived,) = (reading.site for reading in _sound([site], strict=False) if reading.site)
    names = [member.name for member in derived.nodes]
    if node and node not in names:
        raise click.BadParameter(f"{node}; the nodes are {', '.join(names)}", param_hint="--node")
    if form == "table":
        click.echo(table(derived, node), nl=False)
    elif form == "json":
        import json

        click.echo(json.dumps(plain(derived, node), indent=2))
    else:
        import yaml

        click.echo(yaml.safe_dump(plain(derived, node), sort_keys=False), nl=False)


def _read(path: Path) -> Reading:
    from generator.pipeline import read_site

    try:
        raw = path.read_bytes()
    except OSError as error:
        _fail(f"{path}: {error.strerror}")
    return read_site(str(path), raw)


def _sound(paths: Iterable[Path], strict: bool) -> list[Reading]:
    """The readings of sites without errors; ends the command if one has any."""
    readings = [_read(path) for path in paths]
    faulty = [_report(reading, reading.findings, strict) for reading in readings]
    if any(faulty):
        sys.exit(INVALID)
    owners: dict[str, str] = {}
    for reading in readings:
        assert reading.site
        name, file = reading.site.name, reading.document.name
        if name in owners:
            click.echo(f"SG806: {owners[name]} and {file} are both called '{name}'", err=True)
            sys.exit(INVALID)
        owners[name] = file
    return readings


def _trees(paths: Iterable[Path], strict: bool) -> list[tuple[Site, Tree]]:
    from generator.render import render

    trees = []
    for reading in _sound(paths, strict):
        site = reading.site
        assert site
        with _progress(site) as nodes:
            trees.append((site, render(site, reading.sha256, nodes)))
    return trees


def _progress(site: Site) -> AbstractContextManager[Iterable[Node]]:
    """The site's nodes, with a bar on a terminal where there are many."""
    hidden = len(site.nodes) <= MANY_NODES or not sys.stderr.isatty()
    return click.progressbar(site.nodes, label=site.name, file=sys.stderr, hidden=hidden)


def _report(reading: Reading, findings: Iterable[Finding], strict: bool) -> bool:
    """Print findings on standard error, and say whether they stop the command."""
    from generator.diagnostics import Severity
    from generator.formats import text

    found = list(findings)
    click.echo(text(reading.document, found, color=_color()), nl=False, err=True)
    stops = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    return any(finding.severity in stops for finding in found)


def _color() -> bool:
    import os

    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


def _compare(tree: Tree, folder: Path) -> Comparison:
    from generator.output import compare

    with _environment():
        return compare(tree, folder)


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """A folder that can't be read or written ends the command in one line."""
    from generator.output import OutputError

    try:
        yield
    except OutputError as error:
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    click.echo(f"sparkgen: {message}", err=True)
    sys.exit(ENVIRONMENT)


def _drift(comparison: Comparison, folder: Path) -> Iterable[str]:
    for rule, word, paths in (
        ("SG801", "missing", comparison.missing),
        ("SG802", "stale", comparison.stale),
        ("SG803", "edited by hand", comparison.edited),
        ("SG804", "left over", comparison.left_over),
        ("SG805", "not of the bundle (note)", comparison.foreign),
    ):
        yield from (f"{rule}: {folder / path}: {word}" for path in paths)
    if comparison.manifest_only:
        yield f"note: {folder}: made by another version of sparkgen, or the site file was reworded"


def _summary(site: Site, tree: Tree, folder: Path, comparison: Comparison) -> str:
    nodes = f"{len(site.nodes)} node{'s' if len(site.nodes) > 1 else ''}"
    if not comparison.exists:
        news = "new"
    else:
        counts = {
            "written": len(comparison.changed) + len(comparison.edited),
            "removed": len(comparison.left_over),
        }
        news = ", ".join(f"{n} {word}" for word, n in counts.items() if n) or "no change"
    return f"{site.name}: {len(tree)} files for {nodes} in {folder} ({news})"
