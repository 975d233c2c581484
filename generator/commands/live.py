"""The implementation of `check --live`: captured nodes compared with the bundle of their site."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from generator.commands.adopting import captures_of
from generator.commands.options import DRIFT, FOLDER
from generator.commands.sites import TEXTUAL, publish, read_valid
from generator.drift import drift, missing, unseen
from generator.reports.remarks import Remark
from generator.reports.text import plain

_ARCHIVES = (".tar.gz", ".tgz")


def divided(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Sites and captures, told apart by their names."""
    captures = [path for path in paths if path.name.endswith(_ARCHIVES)]
    sites = [path for path in paths if path not in captures]
    if not captures:
        raise click.UsageError("--live takes captures: check SITE --live NODE.tar.gz...")
    if not sites:
        sites = [p for p in sorted(FOLDER.glob("*.yaml")) if not p.name.endswith(".lock.yaml")]
    if len(sites) != 1:
        raise click.UsageError("name one site with --live")
    return sites, captures


def check_nodes(paths: Sequence[Path], quiet: bool, form: str) -> None:
    """Report how nodes differ from their site, and exit with the status for that."""
    sites, archives = divided(paths)
    (valid,) = read_valid(sites, form=form)
    site, reading = valid.site, valid.reading
    captures = captures_of(archives, form)
    found = drift(site, captures, reading.lock)
    absent, uncompared = missing(site, captures), unseen(site, captures)
    if form in TEXTUAL:
        for line in _lines(found):
            click.echo(line, err=form != "text")
        for line in (*(f"{name} is not captured" for name in absent), *uncompared):
            click.echo(line, err=True)
    if form == "text" and not quiet and not found:
        click.echo(f"{site.name}: nothing that was compared differs")
    rest = {"missing": absent, "notCompared": uncompared}
    publish(form, [(reading, reading.findings)], found, rest)
    if found or absent or uncompared:
        sys.exit(DRIFT)


def _lines(found: Sequence[Remark]) -> list[str]:
    return [
        f"{remark.rule}: {plain(remark.message)}; {plain(remark.help)}"
        if remark.help
        else f"{remark.rule}: {plain(remark.message)}"
        for remark in found
    ]
