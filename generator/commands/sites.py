"""How commands read sites, report findings, and exit if they cannot continue."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TextIO

import click

from generator.commands.options import ENVIRONMENT, INVALID, STDIN, STDIN_NAME
from generator.diagnostics import Finding, Severity
from generator.pipeline import Reading, ValidReading, read_site
from generator.records import replace
from generator.reports.remarks import Remark, remarks
from generator.reports.text import in_order, text
from generator.rules.policy import Policy
from generator.site import Site
from generator.sitefile.disk import beside, contents
from generator.sitefile.source import MAX_BYTES

# GitHub shows at most ten annotations per step; the log has the rest as text.
TEXTUAL = ("text", "github")


def read(path: Path, policy: Policy | None = None) -> Reading:
    """Read a site file; exits if it can't be read."""
    name = STDIN_NAME if path == STDIN else str(path)
    return read_site(name, content(path), beside(path), policy)


def content(path: Path) -> bytes:
    """The bytes of a site file; exits if it can't be read."""
    if path == STDIN:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with accessing(path):
        return contents(path)


def read_valid(
    paths: Iterable[Path],
    strict: bool = False,
    form: str = "text",
    rest: Mapping[str, Any] = MappingProxyType({}),
    policy: Callable[[Path], Policy | None] = lambda path: None,
) -> list[ValidReading]:
    """Read sites that have no errors; exits if one has any.

    A file that is named twice is read once. `strict` treats warnings as errors, so that no bundle
    is written. `rest` is what the JSON output has besides the findings if the command exits here,
    and `policy` finds the policy of a site's repository.
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
    valid = [one for reading in readings if (one := reading.valid)]
    for one in valid:
        name, file = one.site.name, one.reading.document.name
        if name in owners:
            namesake = _namesake(name, owners[name], file)
            if form in TEXTUAL:
                click.echo(f"{namesake.rule}: {namesake.message}", err=True)
            publish(form, [*found, (one.reading, (namesake,))], rest=rest)
            sys.exit(INVALID)
        owners[name] = file
    return valid


def distinct(paths: Iterable[Path]) -> list[Path]:
    """Each file once, under the name that was given first."""
    once: dict[str, Path] = {}
    for path in paths:
        once.setdefault(os.path.realpath(path), path)
    return list(once.values())


def one_valid(path: Path) -> Site:
    """The site of a file without errors; exits if it has any."""
    (valid,) = read_valid([path])
    return valid.site


def refuse(reading: Reading) -> NoReturn:
    """Exit after reporting all findings about a site."""
    tell(reading, reading.findings, strict=False)
    sys.exit(INVALID)


def tell(reading: Reading, findings: Sequence[Finding], strict: bool, form: str = "text") -> bool:
    """Print findings on standard error, and return whether they stop the command."""
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
    """Print all findings on standard output, unless text alone was printed.

    `rest` is what the JSON output has besides the findings.
    """
    if form == "text":
        return
    from generator.reports import report

    located = [
        remark for reading, findings in found for remark in _remarks(reading, findings, form)
    ]
    click.echo(report(form, [*located, *more], Path.cwd(), rest), nl=False)


def _remarks(reading: Reading, findings: Sequence[Finding], form: str) -> list[Remark]:
    """The findings with their places and, if the format has room for them, text edits."""
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
    """Whether to color a stream: it is a terminal or colors are forced, and nothing disables them.

    Source: no-color.org and force-color.org, where any non-empty value counts.
    """
    wanted = stream.isatty() or bool(os.environ.get("FORCE_COLOR"))
    return wanted and not os.environ.get("NO_COLOR")


def width_of(stream: TextIO) -> int | None:
    """The width of a terminal in columns; None for a file or a pipe, which have no limit."""
    if not stream.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


@contextlib.contextmanager
def accessing(path: Path) -> Iterator[None]:
    """Exit with one line if a file can't be read or written, or a folder above it be made."""
    try:
        yield
    except OSError as error:
        fail(f"{error.filename or path}: {error.strerror}")


def fail(message: str, status: int = ENVIRONMENT) -> NoReturn:
    """Exit with one line: a file or folder can't be used."""
    click.echo(f"sparkgen: {message}", err=True)
    sys.exit(status)


def print_data(data: Mapping[str, Any], form: str) -> None:
    """Print plain data as JSON or YAML."""
    if form == "json":
        click.echo(json.dumps(data, indent=2))
        return
    import yaml

    click.echo(yaml.safe_dump(data, sort_keys=False), nl=False)


def _namesake(name: str, first: str, second: str) -> Finding:
    message = f"{first} and {second} are both called '{name}'"
    help_text = "give each site a name of its own"
    return Finding("SG806", Severity.ERROR, message, ("name",), help=help_text)
