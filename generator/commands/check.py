"""`sparkgen check`."""

import sys
from pathlib import Path

import click

from generator.commands.bundles import compared, rendered
from generator.commands.options import DRIFT, FORM, OUT, SITES
from generator.commands.sites import TEXTUAL, publish, sound
from generator.reports import drift
from generator.reports.remarks import Remark


@click.command(epilog="Example: sparkgen check sites/*.yaml")
@SITES
@OUT
@FORM
def command(sites: tuple[Path, ...], out: Path, form: str) -> None:
    """Say whether the bundles on disk are what the sites say."""
    readings = sound(sites, form=form)
    differences: list[Remark] = []
    drifted = False
    for site, tree in rendered(readings):
        folder = out / site.name
        comparison = compared(tree, folder)
        drifted |= comparison.drifted
        differences += drift.remarks(comparison, folder)
        if form in TEXTUAL:
            for line in drift.lines(comparison, folder):
                click.echo(line, err=form != "text")
        if form == "text" and not comparison.drifted:
            click.echo(f"{site.name}: {folder} is what the site says")
    publish(form, [(reading, reading.findings) for reading in readings], differences)
    if drifted:
        sys.exit(DRIFT)
