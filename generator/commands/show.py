"""`sparkgen show`."""

import json
from pathlib import Path

import click
import yaml

from generator.commands.options import SITE
from generator.commands.sites import one_sound
from generator.show import plain, table


@click.command(epilog="Example: sparkgen show sites/lab-mesh.yaml --node spark2")
@SITE
@click.option("--node", metavar="NAME", help="All of one node.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "yaml", "json"]),
    default="table",
    show_default=True,
)
def command(site: Path, node: str | None, form: str) -> None:
    """Print what is derived from a site: ranks, addresses, cables, environment, commands."""
    derived = one_sound(site)
    names = [member.name for member in derived.nodes]
    if node and node not in names:
        raise click.BadParameter(f"{node}; the nodes are {', '.join(names)}", param_hint="--node")
    if form == "table":
        click.echo(table(derived, node), nl=False)
    elif form == "json":
        click.echo(json.dumps(plain(derived, node), indent=2))
    else:
        click.echo(yaml.safe_dump(plain(derived, node), sort_keys=False), nl=False)
