"""`sparkgen fix`."""

import sys
from pathlib import Path

import click

from generator.commands.options import DRIFT, INVALID, SITE
from generator.commands.sites import content, fail
from generator.diagnostics import Finding, has_errors, path_text, visible
from generator.fixing.overwriting import OverwriteError, overwrite
from generator.fixing.repair import Repair, repair
from generator.reports.text import count, difference
from generator.sitefile.disk import beside


@click.command(epilog="Example: sparkgen fix --write sites/lab-mesh.yaml")
@SITE
@click.option("--write", is_flag=True, help="Write the changes to the site file, and to its base.")
def command(site: Path, write: bool) -> None:
    """Show the changes that findings propose to a site file, or write them."""
    done = repair(str(site), content(site), beside(site))
    click.echo(difference(done.before.document, done.after.document), nl=False)
    if write and done.fixed and done.fewer:
        _write(site, done)
    applied = (f"applied: {_text(finding)}" for finding in done.fixed)
    for line in (*applied, *_left(done)):
        click.echo(visible(line), err=True)
    click.echo(visible(f"{site}: {_summary(done, write)}"), err=True)
    if not write and done.fixed and done.fewer:
        sys.exit(DRIFT)
    if has_errors((done.after if done.fewer else done.before).findings):
        sys.exit(INVALID)


def _write(site: Path, done: Repair) -> None:
    """Write the files that differ, the base first, since the site file depends on it."""
    before = done.before.raw
    for file, raw in reversed([*done.after.raw.items()]):
        if raw != before[file]:
            try:
                overwrite(Path(file) if file else site, raw)
            except OverwriteError as error:
                fail(str(error))


def _left(done: Repair) -> list[str]:
    """One line for each finding that remains; its help has the possible meanings."""
    requested = [
        f"{'choose one' if len(finding.proposals) > 1 else 'yours to decide'}: {_text(finding)}"
        for finding in done.requested
    ]
    stuck = [f"to be changed by hand: {_text(finding)}" for finding in done.stuck]
    other = [f for f in done.after.findings if not f.proposals]
    return [*requested, *stuck, *(f"nothing to propose: {_text(finding)}" for finding in other)]


def _text(finding: Finding) -> str:
    place = f" at {path_text(finding.path)}" if finding.path else ""
    help_text = f"; {finding.help}" if finding.help else ""
    return f"{finding.severity}[{finding.rule}]{place}: {finding.message}{help_text}"


def _summary(done: Repair, write: bool) -> str:
    before, after = done.before.findings, done.after.findings
    if not before:
        return "fine, nothing to fix"
    if not done.fixed:
        return f"{count(before)}, none of them can be fixed here"
    left = count(after) or "no finding"
    if not done.fewer:
        return f"nothing is written: {left} would take the place of {count(before)}"
    news = "written" if write else "not written; --write does it"
    return f"{count(before)} before, {left} after; {news}"
