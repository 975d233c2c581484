"""`sparkgen diagram`."""

from collections.abc import Callable
from pathlib import Path

import click

from generator.bundle.diagram import plain
from generator.bundle.diagram.mermaid import graph
from generator.bundle.render import cabling
from generator.commands.options import SITE_OR_STDIN, format_option
from generator.commands.sites import one_valid
from generator.site import Site

_FORMS: dict[str, Callable[[Site], str]] = {
    "svg": cabling,
    "mermaid": graph,
    "ascii": plain.drawing,
}


@click.command(epilog="Example: sparkgen diagram sites/lab-mesh.yaml --format ascii")
@SITE_OR_STDIN
@format_option(_FORMS)
def command(site: Path, form: str) -> None:
    """Draw how a site is cabled, each node seen from the back."""
    click.echo(_FORMS[form](one_valid(site)), nl=False)
