"""`sparkgen check`."""

import sys
from pathlib import Path

import click

from generator.commands.bundles import compared, disk, rendered
from generator.commands.options import DRIFT, FORM, OUT, QUIET, SITES_OR_BUNDLES
from generator.commands.sites import TEXTUAL, publish, read_valid
from generator.reports import drift
from generator.reports.remarks import Remark
from generator.review.ends import FolderSide, abandoned, reason


@click.command(epilog="Example: sparkgen check sites/*.yaml")
@SITES_OR_BUNDLES
@OUT
@click.option(
    "--live",
    is_flag=True,
    help="Compare nodes with the site instead, by their captures, NODE.tar.gz.",
)
@QUIET
@FORM
def command(sites: tuple[Path, ...], out: Path, live: bool, quiet: bool, form: str) -> None:
    """Check that the bundles on disk match their sites: sites/*.yaml if none is named.

    With --live, report how nodes differ from their site: check SITE --live NODE.tar.gz... Each is
    as the site says, differs, is not applied, or is applied and not restarted. What was not
    captured is named, and the exit status is 1 then, too.
    """
    if live:
        from generator.commands.live import check_nodes

        check_nodes(sites, quiet, form)
        return
    readings = read_valid(sites, form=form)
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
        if form == "text" and not quiet and not comparison.drifted:
            click.echo(f"{site.name}: {folder} is what the site says")
    files = {valid.site.name: valid.file for valid in readings}
    with disk():
        lost = abandoned(FolderSide(out), files)
    for name, bundle in lost.items():
        drifted, why = True, reason(bundle, files)
        differences.append(drift.abandoned_remark(out / name, why))
        if form in TEXTUAL:
            click.echo(drift.abandoned(out / name, why), err=form != "text")
    publish(form, [(valid.reading, valid.reading.findings) for valid in readings], differences)
    if drifted:
        sys.exit(DRIFT)
