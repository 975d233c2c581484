"""Arguments and options that several commands have, and the exit statuses."""

from pathlib import Path

import click

from generator.commands import completion

DRIFT, INVALID, ENVIRONMENT = 1, 3, 4

SITES = click.argument(
    "sites",
    nargs=-1,
    required=True,
    metavar="SITE...",
    type=Path,
    shell_complete=completion.sites,
)
SITE = click.argument("site", metavar="SITE", type=Path, shell_complete=completion.sites)
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
