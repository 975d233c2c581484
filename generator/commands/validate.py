"""`sparkgen validate`."""

import sys
from pathlib import Path

import click

from generator.commands.options import FORM, INVALID, SITES, STRICT
from generator.commands.sites import publish, read, tell
from generator.lint import lint


@click.command(epilog="Example: sparkgen validate --strict sites/*.yaml")
@SITES
@STRICT
@FORM
def command(sites: tuple[Path, ...], strict: bool, form: str) -> None:
    """Check sites and write nothing."""
    readings = [read(path) for path in sites]
    found = []
    faulty = False
    for reading in readings:
        findings = [*reading.findings, *(lint(reading.document) if reading.document.root else ())]
        found.append((reading, findings))
        faulty |= tell(reading, findings, strict, form)
        if form == "text" and reading.site and not findings:
            click.echo(f"{reading.document.name}: fine")
    publish(form, found)
    if faulty:
        sys.exit(INVALID)
