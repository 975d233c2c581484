"""`sparkgen failures`."""

import json
import sys
from pathlib import Path

import click

from generator.bundle.render import render
from generator.commands.options import DATA_FORM, DRIFT, SITE_OR_STDIN
from generator.commands.policies import POLICY, policy_of
from generator.commands.sites import one_valid, width_of
from generator.failures import table
from generator.failures.analysis import KINDS, analysis


@click.command(epilog="Example: sparkgen failures sites/more/three-models.yaml")
@SITE_OR_STDIN
@click.option(
    "--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only faults of this kind."
)
@click.option(
    "--pairs", is_flag=True, help="Two faults that take a name which neither takes alone."
)
@POLICY
@DATA_FORM
def command(
    site: Path, kinds: tuple[str, ...], pairs: bool, policy_file: Path | None, form: str
) -> None:
    """Show what still serves when one thing fails, by the files of the bundle.

    Exits with 1 if the policy wants a name to survive what it would not.
    """
    found = one_valid(site)
    policy = policy_of(site, policy_file, form)
    files = {path: file.text for path, file in render(found, "").items()}
    known = analysis(found, files)
    single = tuple(known.failures())
    lacking = [*policy.lost(single).values()] if policy else []
    shown = [one for one in single if not kinds or one.fault.kind in kinds]
    width = width_of(sys.stdout)
    if form == "json":
        more = {"pairs": [table.data_of_pair(pair) for pair in known.pairs()]} if pairs else {}
        result = {"site": found.name, "failures": [table.data(one) for one in shown], **more}
        click.echo(json.dumps({**result, "policy": lacking}, indent=2))
    elif pairs:
        click.echo(table.text_of_pairs(known.pairs(), width), nl=False)
    else:
        click.echo(table.text(table.rows(shown), width), nl=False)
    if form == "text":
        for line in lacking:
            click.echo(f"sparkgen: {line}", err=True)
    if lacking:
        sys.exit(DRIFT)
