"""`sparkgen audit`."""

import sys

import click

from generator.adoption import adopt
from generator.audit.findings import audit
from generator.commands.adopting import INPUTS, found
from generator.commands.options import DRIFT, FORM, QUIET, STRICT
from generator.commands.sites import TEXTUAL, color_of
from generator.diagnostics import Severity
from generator.reports import report


@click.command(epilog="Example: sparkgen audit spark1.tar.gz spark2.tar.gz")
@INPUTS
@STRICT
@QUIET
@FORM
def command(inputs: tuple[str, ...], strict: bool, quiet: bool, form: str) -> None:
    """Report what is wrong with what a cluster runs, in its own files.

    FILE is a capture, or a file that people run clusters with, as for import. The rules are those
    of site files; nothing is reported about what no file states.
    """
    from pathlib import Path

    from generator.reports import located

    cluster = found(inputs, form, serving=False)
    remarks = audit(adopt(cluster, "mine", "mine.yaml"))
    if form in TEXTUAL:
        shown = located.text(remarks, cluster.texts, color_of(sys.stderr))
        click.echo(shown, nl=False, err=True)
    if form == "text" and not remarks and not quiet:
        click.echo("nothing is wrong, as far as these files say")
    if form != "text":
        click.echo(report(form, remarks, Path.cwd()), nl=False)
    stops = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    if any(remark.severity in stops for remark in remarks):
        sys.exit(DRIFT)
