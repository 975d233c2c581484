"""`sparkgen lock`."""

import sys
from pathlib import Path
from typing import Any

import click

from generator.commands.adopting import CAPTURES, captures_of
from generator.commands.options import DATA_FORM, DRIFT, QUIET, SITE
from generator.commands.sites import fail, publish, read, refuse
from generator.locking import Locking, changes, lock_of
from generator.records import replace
from generator.services import images
from generator.site.complete import CompleteDeclaration, CompletePart
from generator.sitefile.lock import SUFFIX, Lock


@click.command(epilog="Example: sparkgen lock sites/mine.yaml spark1.tar.gz spark2.tar.gz")
@SITE
@CAPTURES
@QUIET
@DATA_FORM
def command(site: Path, captures: tuple[Path, ...], quiet: bool, form: str) -> None:
    """Record which image and which commit of the model a site's names stand for on its nodes.

    The lock is written beside the site, as SITE.lock.yaml, and build uses it: images are pinned to
    their digests, and models.sh fetches those commits. The site file does not change.
    """
    reading = read(site)
    if reading.declaration is None:
        refuse(reading)
    declared = _as_written(reading.declaration, reading.lock)
    parts = reading.site.parts if reading.site else ()
    builds = {b.name: f"sha256:{b.inputs}" for part in parts if (b := part.image_build)}
    beside = [name for name, _ in images(declared.services, declared.nodes)]
    made = lock_of(declared, captures_of(captures, form), beside, builds)
    if reading.lock:
        made = replace(made, lock=replace(made.lock, answers=reading.lock.answers))
    moved = list(changes(reading.lock, made.lock))
    target = site.with_name(site.name.removesuffix(".yaml") + SUFFIX)
    if not made.different:
        _write(target, made.lock.text())
    if form == "json":
        publish(form, [(reading, reading.findings)], rest=_data(target, made, moved))
    else:
        _report(target, made, moved, quiet)
    if made.different:
        sys.exit(DRIFT)


def _as_written(declared: CompleteDeclaration, lock: Lock | None) -> CompleteDeclaration:
    """The declared site without the effects of its previous lock."""
    if isinstance(declared, CompletePart):
        return _part_as_written(declared, lock)
    groups = tuple(_part_as_written(group, lock) for group in declared.groups)
    return replace(declared, groups=groups)


def _part_as_written(part: CompletePart, lock: Lock | None) -> CompletePart:
    image = part.engine.image.partition("@")[0]
    known = lock.image(image) if lock else None
    if known is None or known.pinned != part.engine.image:
        return part
    return replace(part, engine=replace(part.engine, image=image))


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        fail(f"{error.filename or target}: {error.strerror}")


def _report(target: Path, made: Locking, moved: list[str], quiet: bool) -> None:
    for line in made.missing:
        click.echo(f"not locked: {line}", err=True)
    for line in made.different:
        click.echo(f"SG852: {line}", err=True)
    if made.different:
        click.echo("nothing was written; fetch it anew on the nodes that are behind", err=True)
    elif not quiet:
        for line in moved or ["nothing has moved"]:
            click.echo(line)
        click.echo(f"{target} is written")


def _data(target: Path, made: Locking, moved: list[str]) -> dict[str, Any]:
    return {
        "file": str(target),
        "written": not made.different,
        "changes": moved,
        "missing": list(made.missing),
        "different": list(made.different),
    }
