"""Shared by the commands that read captures and other people's files."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from generator.adoption.found import Found
from generator.adoption.reading import Input, check, read
from generator.capture import Capture, CaptureError
from generator.capture.archive import MAX_ARCHIVE_BYTES
from generator.capture.archive import read as read_archive
from generator.commands import completion
from generator.commands.options import INVALID
from generator.commands.sites import TEXTUAL, accessing
from generator.diagnostics import Severity
from generator.reports import report
from generator.reports.remarks import Place, Remark
from generator.sitefile.text_types import TEXT_TYPES

INPUTS = click.argument(
    "inputs", nargs=-1, required=True, metavar="[NODE=]FILE...", shell_complete=completion.outputs
)
_NO_CAPTURE = "SG830"


def found(inputs: Iterable[str], form: str, serving: bool = True) -> Found:
    """What all the files say, also if nothing has to be `serving`; exits at the first without."""
    given = []
    for one in inputs:
        node, equals, name = one.partition("=")
        if not equals or not TEXT_TYPES["hostname"].fits(node):
            node, name = "", one
        given.append(Input(node, name, _bytes(Path(name))))
    for file in given:
        # Read one by one first, so that a refusal names its file.
        try:
            check(file)
        except CaptureError as error:
            _refuse(file.name, error, form)
    try:
        return read(given, serving)
    except CaptureError as error:
        _refuse(given[-1].name, error, form)
    raise AssertionError


def given_captures(inputs: Sequence[str], form: str) -> list[Capture]:
    """The captures, if the inputs are nothing else; none otherwise."""
    paths = [Path(name) for name in inputs]
    if not all(path.is_file() and _bytes(path).startswith(b"\x1f\x8b") for path in paths):
        return []
    return captures_of(paths, form)


def captures_of(paths: Iterable[Path], form: str) -> list[Capture]:
    """The captures; exits at a file that isn't one."""
    taken: dict[str, Capture] = {}
    for path in paths:
        try:
            capture = read_archive(str(path), _bytes(path))
            if taken.setdefault(capture.node.lower(), capture) is not capture:
                raise CaptureError(f"there are two captures of {capture.node}", "name one of each")
        except CaptureError as error:
            _refuse(str(path), error, form)
    return list(taken.values())


def site_name(given: str | None, file: Path | None) -> str:
    """The name of the site: the one given, or else the file's."""
    name = given or (file.name.partition(".")[0] if file else "mine")
    if not TEXT_TYPES["hostname"].fits(name):
        why = "can't be the name of a site: lower-case letters, digits and '-'"
        raise click.UsageError(f"'{name}' {why}")
    return name


def _bytes(path: Path) -> bytes:
    from generator.sitefile.disk import bounded

    with accessing(path):
        return bounded(path, MAX_ARCHIVE_BYTES)


def _refuse(name: str, error: CaptureError, form: str) -> None:
    """Exit with the finding."""
    remark = Remark(_NO_CAPTURE, Severity.ERROR, error.why, error.advice, Place(name))
    if form in TEXTUAL:
        more = f"run 'sparkgen explain {_NO_CAPTURE}'"
        click.echo(f"error[{_NO_CAPTURE}]: {error.why}\n --> {name}", err=True)
        click.echo(f"  = help: {error.advice}; {more}\nnothing was written", err=True)
    if form != "text":
        click.echo(report(form, [remark], Path.cwd()), nl=False)
    sys.exit(INVALID)
