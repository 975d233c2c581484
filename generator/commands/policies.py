"""How commands find the policy of a repository."""

import sys
from pathlib import Path

import click

from generator.commands.options import FOLDER, INVALID, STDIN
from generator.commands.sites import content, publish, tell
from generator.pipeline import Reading
from generator.rules.policy import NAME, Policy, read_policy

POLICY = click.option(
    "--policy",
    "policy_file",
    type=Path,
    metavar="FILE",
    help=f"The policy that makes findings errors.  [default: {NAME} beside the folder of the site]",
)


def policy_of(site: Path, given: Path | None, form: str) -> Policy | None:
    """The given policy, or that of the site's repository, if it has one.

    Exits if it can't be read or is not a valid policy.
    """
    found = given or beside(site)
    return _read(found, form) if found else None


def beside(site: Path) -> Path | None:
    """The policy beside the folder `sites` that contains a site file, or else beside the file."""
    folder = Path() if site == STDIN else site.parent
    if folder.absolute().name == FOLDER.name:
        folder = folder.parent if folder.name == FOLDER.name else folder / ".."
    path = folder / NAME
    return path if path.is_file() else None


def readable_policy_of(site: Path) -> Policy | None:
    """The policy of the site's repository, for a program that continues if it can't be read."""
    found = beside(site)
    try:
        return read_policy(str(found), found.read_bytes())[2] if found else None
    except OSError:
        return None


def _read(path: Path, form: str) -> Policy | None:
    document, findings, policy = read_policy(str(path), content(path))
    reading = Reading(document, tuple(findings), None, None, {})
    if tell(reading, findings, strict=False, form=form):
        publish(form, [(reading, findings)])
        sys.exit(INVALID)
    return policy
