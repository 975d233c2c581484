"""How a command reads sites, reports findings, and exits where it cannot go on."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TextIO

import click

from generator.commands.options import ENVIRONMENT, INVALID, STDIN, STDIN_NAME
from generator.diagnostics import Finding, Severity
from generator.pipeline import Reading, read_site
from generator.records import replace
from generator.reports.remarks import Remark, remarks
from generator.reports.text import in_order, text
from generator.rules.policy import Policy
from generator.site import Site
from generator.sitefile.disk import beside, contents
from generator.sitefile.source import MAX_BYTES

# GitHub shows no more than ten annotations per step: the rest is to be read in the log.
TEXTUAL = ("text", "github")


def no_policy(path: Path) -> Policy | None:
    """What commands go by that only look."""
    return None


def read(path: Path, policy: Policy | None = None) -> Reading:
    """What a site file says; ends the command if it can't be read."""
    name = STDIN_NAME if path == STDIN else str(path)
    return read_site(name, content(path), beside(path), policy)


def content(path: Path) -> bytes:
    """The bytes of a site file; ends the command if it can't be read."""
    if path == STDIN:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        return contents(path)
    except OSError as error:
        fail(f"{path}: {error.strerror}")


def read_valid(
    paths: Iterable[Path],
    strict: bool = False,
    form: str = "text",
    rest: Mapping[str, Any] = MappingProxyType({}),
    policy: Callable[[Path], Policy | None] = no_policy,
) -> list[Reading]:
    """The readings of sites without errors; ends the command if one has any.

    A file that is named twice is read once. `strict` takes warnings for errors too, before bundles
    are written. `rest` is what JSON has beside the findings if the command ends here, and `policy`
    finds that of a site's repository.
    """
    readings = [read(path, policy(path)) for path in distinct(paths)]
    faulty = [tell(reading, reading.findings, strict, form) for reading in readings]
    found = [(reading, reading.findings) for reading in readings]
    if any(faulty):
        if strict and form in TEXTUAL:
            click.echo("nothing was written", err=True)
        publish(form, found, rest=rest)
        sys.exit(INVALID)
    owners: dict[str, str] = {}
    for reading in readings:
        assert reading.site
        name, file = reading.site.name, reading.document.name
        if name in owners:
            namesake = _namesake(name, owners[name], file)
            if form in TEXTUAL:
                click.echo(f"{namesake.rule}: {namesake.message}", err=True)
            publish(form, [*found, (reading, (namesake,))], rest=rest)
            sys.exit(INVALID)
        owners[name] = file
    return readings


def distinct(paths: Iterable[Path]) -> list[Path]:
    """Each file once, by the name that it was given first."""
    once: dict[str, Path] = {}
    for path in paths:
        once.setdefault(os.path.realpath(path), path)
    return list(once.values())


def one_valid(path: Path) -> Site:
    """The site of a file without errors; ends the command if it has any."""
    (reading,) = read_valid([path])
    assert reading.site
    return reading.site


def refuse(reading: Reading) -> NoReturn:
    """End the command with all that is wrong with a site."""
    tell(reading, reading.findings, strict=False)
    sys.exit(INVALID)


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
    rest: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Print all findings on standard output, unless they were printed as text alone.

    `rest` is what JSON has beside them.
    """
    if form == "text":
        return
    from generator.reports import report

    located = [
        remark for reading, findings in found for remark in _remarks(reading, findings, form)
    ]
    click.echo(report(form, [*located, *more], Path.cwd(), rest), nl=False)


def _remarks(reading: Reading, findings: Sequence[Finding], form: str) -> list[Remark]:
    """The findings with their places and, where the form has room for them, changes of text."""
    found = remarks(reading.document, findings)
    if form != "sarif":
        return found
    from generator.fixing.text_edits import corrections

    ordered = in_order(reading.document, findings)
    changes = corrections(reading.document, ordered)
    return [
        replace(remark, correction=correction)
        for remark, correction in zip(found, changes, strict=True)
    ]


def color_of(stream: TextIO) -> bool:
    """Whether a stream is a terminal, or colors are forced, and nobody has ruled them out.

    Source: no-color.org and force-color.org, where any value counts that is not empty.
    """
    wanted = stream.isatty() or bool(os.environ.get("FORCE_COLOR"))
    return wanted and not os.environ.get("NO_COLOR")


def width_of(stream: TextIO) -> int | None:
    """The columns of a terminal; None for a file or a pipe, which take any width."""
    if not stream.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def fail(message: str) -> NoReturn:
    """End the command in one line: a file or folder can't be had."""
    click.echo(f"sparkgen: {message}", err=True)
    sys.exit(ENVIRONMENT)


def _namesake(name: str, first: str, second: str) -> Finding:
    message = f"{first} and {second} are both called '{name}'"
    help_text = "give each site a name of its own"
    return Finding("SG806", Severity.ERROR, message, ("name",), help=help_text)
