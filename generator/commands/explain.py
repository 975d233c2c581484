"""`sparkgen explain`."""

import click

from generator import explain as rules
from generator.commands import completion
from generator.diagnostics import did_you_mean


@click.command(epilog="Example: sparkgen explain SG204")
@click.argument("rule", required=False, shell_complete=completion.rules)
@click.option("--list", "every", is_flag=True, help="List all rules.")
@click.option("--docs", is_flag=True, help="Print the page of all rules.")
def command(rule: str | None, every: bool, docs: bool) -> None:
    """Print what a rule says, why, and an example of each kind."""
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
