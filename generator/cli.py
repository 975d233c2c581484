"""The command line: flags, read, call, write; slow imports stand in the commands that need them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from generator import __version__

if TYPE_CHECKING:
    from generator.diagnostics import Finding
    from generator.output import Comparison
    from generator.pipeline import Reading
    from generator.reports import Remark
    from generator.site import Node, Site
    from generator.tree import Tree

DRIFT, INVALID, ENVIRONMENT = 1, 3, 4
# GitHub shows no more than ten annotations a step: the rest is to be read in the log.
TEXTUAL = ("text", "github")
MANY_NODES = 100

SITES = click.argument("sites", nargs=-1, required=True, metavar="SITE...", type=Path)
SITE = click.argument("site", metavar="SITE", type=Path)
FORM = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif", "github"]),
    default="text",
    show_default=True,
    help="Text goes to standard error, findings in another form to standard output.",
)
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


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: sparkgen build sites/lab-mesh.yaml",
)
@click.version_option(__version__, prog_name="sparkgen", message="%(prog)s %(version)s")
def main() -> None:
    """Write the configuration of a DGX Spark cluster from one site file."""


@main.command(epilog="Example: sparkgen build sites/lab-mesh.yaml")
@SITES
@OUT
@STRICT
@click.option("--force", is_flag=True, help="Overwrite files that were edited by hand.")
def build(sites: tuple[Path, ...], out: Path, strict: bool, force: bool) -> None:
    """Check sites and write their bundles; nothing if one of them is not sound."""
    from generator.output import write

    trees = _trees(_sound(sites, strict))
    plans = [(site, tree, _compare(tree, out / site.name)) for site, tree in trees]
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


@main.command(epilog="Example: sparkgen validate --strict sites/*.yaml")
@SITES
@STRICT
@FORM
def validate(sites: tuple[Path, ...], strict: bool, form: str) -> None:
    """Check sites and write nothing."""
    from generator.lint import lint

    readings = [_read(path) for path in sites]
    found = []
    faulty = False
    for reading in readings:
        findings = [*reading.findings, *(lint(reading.document) if reading.document.root else ())]
        found.append((reading, findings))
        faulty |= _report(reading, findings, strict, form)
        if form == "text" and reading.site and not findings:
            click.echo(f"{reading.document.name}: fine")
    _publish(form, found)
    if faulty:
        sys.exit(INVALID)


@main.command(epilog="Example: sparkgen check sites/*.yaml")
@SITES
@OUT
@FORM
def check(sites: tuple[Path, ...], out: Path, form: str) -> None:
    """Say whether the bundles on disk are what the sites say."""
    from generator.reports import drift

    readings = _sound(sites, strict=False, form=form)
    differences: list[Remark] = []
    drifted = False
    for site, tree in _trees(readings):
        folder = out / site.name
        comparison = _compare(tree, folder)
        drifted |= comparison.drifted
        differences += drift.remarks(comparison, folder)
        if form in TEXTUAL:
            for line in drift.lines(comparison, folder):
                click.echo(line, err=form != "text")
        if form == "text" and not comparison.drifted:
            click.echo(f"{site.name}: {folder} is what the site says")
    _publish(form, [(reading, reading.findings) for reading in readings], differences)
    if drifted:
        sys.exit(DRIFT)


@main.command(epilog="Example: sparkgen show sites/lab-mesh.yaml --node spark2")
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
    """Print what is derived from a site: ranks, addresses, cables, environment, commands."""
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


@main.command(epilog="Example: sparkgen schema > site.schema.json")
@click.option("--docs", is_flag=True, help="Print the reference page in place of the JSON Schema.")
def schema(docs: bool) -> None:
    """Print the format of a site file as JSON Schema, for editors."""
    import json

    from generator.editor import json_schema, reference

    click.echo(reference() if docs else json.dumps(json_schema(), indent=2) + "\n", nl=False)


@main.command(epilog="Example: sparkgen explain SG204")
@click.argument("rule", required=False)
@click.option("--list", "every", is_flag=True, help="List all rules.")
@click.option("--docs", is_flag=True, help="Print the page of all rules.")
def explain(rule: str | None, every: bool, docs: bool) -> None:
    """Print what a rule says, why, and an example of each kind."""
    from generator import explain as rules
    from generator.diagnostics import did_you_mean

    if [bool(rule), every, docs].count(True) != 1:
        raise click.UsageError("name a rule, or use --list")
    number = (rule or "").upper()
    if every or docs:
        click.echo(rules.listing() if every else rules.markdown(), nl=False)
    elif number in rules.explanations():
        click.echo(rules.explain(number), nl=False)
    else:
        near = did_you_mean(number, rules.explanations()) or "see 'sparkgen explain --list'"
        raise click.BadParameter(f"no rule is called '{rule}'; {near}", param_hint="RULE")


def _read(path: Path) -> Reading:
    from generator.pipeline import read_site

    try:
        raw = path.read_bytes()
    except OSError as error:
        _fail(f"{path}: {error.strerror}")
    return read_site(str(path), raw)


def _sound(paths: Iterable[Path], strict: bool, form: str = "text") -> list[Reading]:
    """The readings of sites without errors; ends the command if one has any."""
    readings = [_read(path) for path in paths]
    faulty = [_report(reading, reading.findings, strict, form) for reading in readings]
    found = [(reading, reading.findings) for reading in readings]
    if any(faulty):
        _publish(form, found)
        sys.exit(INVALID)
    owners: dict[str, str] = {}
    for reading in readings:
        assert reading.site
        name, file = reading.site.name, reading.document.name
        if name in owners:
            namesake = _namesake(name, owners[name], file)
            if form in TEXTUAL:
                click.echo(f"{namesake.rule}: {namesake.message}", err=True)
            _publish(form, [*found, (reading, (namesake,))])
            sys.exit(INVALID)
        owners[name] = file
    return readings


def _namesake(name: str, first: str, second: str) -> Finding:
    from generator.diagnostics import Finding, Severity

    message = f"{first} and {second} are both called '{name}'"
    help_text = "give each site a name of its own"
    return Finding("SG806", Severity.ERROR, message, ("name",), help=help_text)


def _trees(readings: Iterable[Reading]) -> list[tuple[Site, Tree]]:
    from generator.render import render

    trees = []
    for reading in readings:
        site = reading.site
        assert site
        with _progress(site) as nodes:
            trees.append((site, render(site, reading.sha256, nodes)))
    return trees


def _progress(site: Site) -> AbstractContextManager[Iterable[Node]]:
    """The site's nodes, with a bar on a terminal where there are many."""
    hidden = len(site.nodes) <= MANY_NODES or not sys.stderr.isatty()
    return click.progressbar(site.nodes, label=site.name, file=sys.stderr, hidden=hidden)


def _report(
    reading: Reading, findings: Sequence[Finding], strict: bool, form: str = "text"
) -> bool:
    """Print findings on standard error, and say whether they stop the command."""
    from generator.diagnostics import Severity
    from generator.formats import text

    if form in TEXTUAL:
        click.echo(text(reading.document, findings, color=_color()), nl=False, err=True)
    stops = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    return any(finding.severity in stops for finding in findings)


def _publish(
    form: str,
    found: Iterable[tuple[Reading, Sequence[Finding]]],
    more: Iterable[Remark] = (),
) -> None:
    """Print all findings on standard output, unless they were printed as text alone."""
    if form == "text":
        return
    from generator.reports import remarks, report

    located = [
        remark for reading, findings in found for remark in remarks(reading.document, findings)
    ]
    click.echo(report(form, [*located, *more], Path.cwd()), nl=False)


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
