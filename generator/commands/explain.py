"""`sparkgen explain`."""

import json

import click

from generator.catalogs.advisories import advisories
from generator.commands import completion
from generator.commands.options import DATA_FORM
from generator.diagnostics import did_you_mean
from generator.reports import explain as rules


@click.command(epilog="Example: sparkgen explain SG204")
@click.argument("rule", required=False, shell_complete=completion.rules)
@click.option("--list", "every", is_flag=True, help="List all rules.")
@click.option("--docs", is_flag=True, help="Print the page of all rules.")
@DATA_FORM
def command(rule: str | None, every: bool, docs: bool, form: str) -> None:
    """Print what a rule or an advisory says, why, and an example of each kind."""
    if [bool(rule), every, docs].count(True) != 1:
        raise click.UsageError("name a rule, or use --list")
    number = (rule or "").upper()
    if docs and form == "json":
        raise click.UsageError("--docs prints a page; --list --format json has all rules")
    known = {*rules.explanations(), *(entry.id for entry in advisories())}
    if number in (retired := rules.retired()):
        raise click.BadParameter(f"{number} is retired: {retired[number]}", param_hint="RULE")
    if rule and number not in known:
        near = did_you_mean(number, rules.explanations()) or "see 'sparkgen explain --list'"
        raise click.BadParameter(f"no rule is called '{rule}'; {near}", param_hint="RULE")
    if form == "json":
        click.echo(json.dumps(rules.data(number), indent=2))
    elif every or docs:
        click.echo(rules.listing() if every else rules.markdown(), nl=False)
    elif number in rules.explanations():
        click.echo(rules.explain(number), nl=False)
    else:
        click.echo(rules.explain_advisory(number), nl=False)
