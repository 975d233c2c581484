"""`sparkgen validate`."""

import sys
from pathlib import Path

import click

from generator.commands.options import FORM, INVALID, QUIET, SITES_OR_STDIN, STRICT
from generator.commands.policies import POLICY, policy_of
from generator.commands.sites import distinct, publish, read, tell
from generator.diagnostics import Finding
from generator.pipeline import Reading
from generator.sitefile.lint import lint


@click.command(epilog="Example: sparkgen validate --strict sites/*.yaml")
@SITES_OR_STDIN
@STRICT
@POLICY
@QUIET
@FORM
def command(
    sites: tuple[Path, ...], strict: bool, policy_file: Path | None, quiet: bool, form: str
) -> None:
    """Check sites and write nothing.

    Takes sites/*.yaml if none is named; '-' is standard input.
    """
    found = []
    faulty = False
    paths = distinct(sites)
    # All are read before the first is reported: one that can't be read ends the command.
    policies = [policy_of(path, policy_file, form) for path in paths]
    readings = [read(path, own) for path, own in zip(paths, policies, strict=True)]
    for reading, policy in zip(readings, policies, strict=True):
        style = list(lint(reading.document)) if reading.document.root else []
        said = _by_engines(reading)
        findings = [*said, *(policy.applied(style) if policy else style)]
        found.append((reading, findings))
        faulty |= tell(reading, findings, strict, form)
        if form == "text" and not quiet and reading.site and not findings:
            click.echo(f"{reading.document.name}: fine")
    publish(form, found)
    if faulty:
        sys.exit(INVALID)


def _by_engines(reading: Reading) -> list[Finding]:
    """The findings of a site, with what the engines are known to have said of its settings."""
    if not (reading.site and reading.lock and reading.lock.answers):
        return list(reading.findings)
    from generator.answers.findings import superseded, unasked
    from generator.answers.ranks import of_lock

    known = of_lock(reading.site, reading.sha256, reading.lock)
    return [*superseded(reading.findings, known), *unasked(known, reading.lock)]
