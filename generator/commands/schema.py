"""`sparkgen schema`."""

import json

import click

from generator.sitefile.json_schema import json_schema, reference


@click.command(epilog="Example: sparkgen schema > site.schema.json")
@click.option("--docs", is_flag=True, help="Print the reference page in place of the JSON Schema.")
def command(docs: bool) -> None:
    """Print the format of a site file as JSON Schema, for editors."""
    click.echo(reference() if docs else json.dumps(json_schema(), indent=2) + "\n", nl=False)
