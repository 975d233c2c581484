"""How a command reads sites, tells what was found, and ends where it cannot go on."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn, TextIO

import click

from generator.commands.options import ENVIRONMENT, INVALID
from generator.diagnostics import Finding, Severity
from generator.formats import text
from generator.pipeline import Reading, read_site
from generator.reports.remarks import Remark, remarks
from generator.site import Site

# GitHub shows no more than ten annotations a step: the rest is to be read in the log.
TEXTUAL = ("text", "github")


def read(path: Path) -> Reading:
    """What a site file says; ends the command if it can't be read."""
    return read_site(str(path), content(path))


def content(path: Path) -> bytes:
    """The bytes of a site file; ends the command if it can't be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        fail(f"{path}: {error.strerror}")


def sound(paths: Iterable[Path], strict: bool = False, form: str = "text") -> list[Reading]:
    """The readings of sites without errors; ends the command if one has any.

    A file that is named twice is read once. `strict` takes warnings for errors too, before bundles
    are written.
    """
    once: dict[str, Path] = {}
    for path in paths:
        once.setdefault(os.path.realpath(path), path)
    readings = [read(path) for path in once.values()]
    faulty = [tell(reading, reading.findings, strict, form) for reading in readings]
    found = [(reading, reading.findings) for reading in readings]
    if any(faulty):
        if strict and form in TEXTUAL:
            click.echo("nothing was written", err=True)
        publish(form, found)
        sys.exit(INVALID)
    owners: dict[str, str] = {}
    for reading in readings:
        assert reading.site
        name, file = reading.site.name, reading.document.name
        if name in owners:
            namesake = _namesake(name, owners[name], file)
            if form in TEXTUAL:
                click.echo(f"{namesake.rule}: {namesake.message}", err=True)
            publish(form, [*found, (reading, (namesake,))])
            sys.exit(INVALID)
        owners[name] = file
    return readings


def one_sound(path: Path) -> Site:
    """The site of a file without errors; ends the command if it has any."""
    (reading,) = sound([path])
    assert reading.site
    return reading.site


def tell(reading: Reading, findings: Sequence[Finding], strict: bool, form: str = "text") -> bool:
    """Print findings on standard error, and say whether they stop the command."""
    if form in TEXTUAL:
        shown = text(reading.document, findings, color_of(sys.stderr), strict)
        click.echo(shown, nl=False, err=True)
    stops = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    return any(finding.severity in stops for finding in findings)


def publish(
    form: str,
    found: Iterable[tuple[Reading, Sequence[Finding]]],
    more: Iterable[Remark] = (),
) -> None:
    """Print all findings on standard output, unless they were printed as text alone."""
    if form == "text":
        return
    from generator.reports import report

    located = [
        remark for reading, findings in found for remark in remarks(reading.document, findings)
    ]
    click.echo(report(form, [*located, *more], Path.cwd()), nl=False)


def color_of(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose owner has nothing against colors."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def fail(message: str) -> NoReturn:
    """End the command in one line: a file or folder can't be had."""
    click.echo(f"sparkgen: {message}", err=True)
    sys.exit(ENVIRONMENT)


def _namesake(name: str, first: str, second: str) -> Finding:
    message = f"{first} and {second} are both called '{name}'"
    help_text = "give each site a name of its own"
    return Finding("SG806", Severity.ERROR, message, ("name",), help=help_text)
