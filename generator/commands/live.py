"""The implementation of `check --live`: captured nodes compared with the bundle of their site."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from generator.commands.adopting import captures_of
from generator.commands.options import DRIFT, FOLDER
from generator.commands.sites import TEXTUAL, publish, read_valid
from generator.drift import NEVER, drift, missing
from generator.pipeline import Reading, read_site
from generator.reports.remarks import Remark
from generator.reports.text import plain
from generator.sitefile.beside import nothing_beside
from generator.sitefile.disk import beside
from generator.sitefile.lock import lock_name

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
    plain = unlocked(reading, valid.file).site if reading.lock else None
    seen = drift(site, captures, reading.lock, plain)
    found, uncompared, absent = seen.differences, seen.uncaptured, missing(site, captures)
    verdicts = {
        node.name: _verdict([r for r in found if r.message.startswith(f"{node.name}: ")])
        for node in site.nodes
        if node.name not in absent
    }
    if form in TEXTUAL:
        for line in lines(found):
            click.echo(line, err=form != "text")
        notes = [f"{name} is not captured" for name in absent]
        notes += [f"{name}: not captured: {one}" for name, own in uncompared.items() for one in own]
        for line in notes:
            click.echo(line, err=True)
    if form == "text" and not quiet:
        for name, verdict in verdicts.items():
            click.echo(f"{name}: {verdict}{', as far as it is captured' * (name in uncompared)}")
        click.echo(f"not looked at: {NEVER}", err=True)
    rest = {"verdicts": verdicts, "missing": absent, "notCompared": uncompared}
    publish(form, [(reading, reading.findings)], found, rest)
    if found or absent or uncompared:
        sys.exit(DRIFT)


def unlocked(reading: Reading, file: Path) -> Reading:
    """The site without its lock: a lock may be made of nodes that run already."""
    near, own = beside(file), lock_name(str(file))
    return read_site(
        str(file), reading.raw[""], lambda path: near(path) if path != own else nothing_beside(path)
    )


def _verdict(found: Sequence[Remark]) -> str:
    """What a node is, in the order in which one would mend it."""
    if not found:
        return "as the site says"
    if any(remark.rule == "SG890" for remark in found):
        return "not applied"
    applied = all(_UNRESTARTED in f"{remark.message}; {remark.help}" for remark in found)
    return _UNRESTARTED if applied else "differs"


_UNRESTARTED = "applied, not restarted"


def lines(found: Sequence[Remark]) -> list[str]:
    """The remarks as text, one per line."""
    return [f"{r.rule}: {'; '.join(plain(t) for t in (r.message, r.help) if t)}" for r in found]
