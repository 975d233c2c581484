"""`sparkgen lock`."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from generator.commands import completion
from generator.commands.adopting import captures_of
from generator.commands.live import unlocked
from generator.commands.options import DATA_FORM, DRIFT, QUIET, SITE
from generator.commands.sites import accessing, publish, read, refuse
from generator.locking.locking import Locking, changes, lock_of, stale
from generator.pipeline import Reading
from generator.records import replace
from generator.services import images
from generator.site import FILES
from generator.site.container import ImageBuild
from generator.sitefile.lock import SUFFIX, Lock, LockedFile, LockedImage, LockedModel


@click.command(epilog="Example: sparkgen lock sites/mine.yaml spark1.tar.gz spark2.tar.gz")
@SITE
@click.argument(
    "captures", nargs=-1, metavar="CAPTURE...", type=Path, shell_complete=completion.outputs
)
@click.option("--check", is_flag=True, help="Write nothing: say what the lock lacks.")
@QUIET
@DATA_FORM
def command(site: Path, captures: tuple[Path, ...], check: bool, quiet: bool, form: str) -> None:
    """Record which image and which commit of the model a site's names stand for on its nodes.

    The lock is written beside the site, as SITE.lock.yaml, and build uses it: images are pinned to
    their digests, and models.sh fetches those commits. The site file does not change. With --check,
    the lock is compared with the site, and with captures if there are any; the exit status is 1 if
    it is stale.
    """
    if not captures and not check:
        raise click.UsageError("name the captures of the site's nodes, or --check")
    reading = read(site)
    is_unread = check and any(finding.rule == "SG850" for finding in reading.findings)
    if reading.declaration is None or is_unread:
        refuse(reading)
    target = site.with_name(site.name.removesuffix(".yaml") + SUFFIX)
    before, plain = reading.lock or Lock((), ()), unlocked(reading, site)
    made = _made(plain, before, captures, form) if captures else Locking(Lock((), ()), (), ())
    moved = list(changes(before, made.lock)) if captures else []
    if check:
        bases = (build.base for build in _builds(plain) if before.image(build.base))
        moved += [*stale(before, _named(plain, bases))]
    if not made.different and not check:
        with accessing(target):
            target.write_text(made.lock.text(), encoding="utf-8", newline="\n")
    if form == "json":
        publish(form, [(reading, reading.findings)], rest=_data(target, made, moved, check))
    else:
        _report(target, made, moved, quiet, check)
    if made.different or (check and moved):
        sys.exit(DRIFT)


def _made(reading: Reading, before: Lock, paths: Sequence[Path], form: str) -> Locking:
    """The lock that captures make."""
    assert reading.declaration
    bases = {build.base for build in _builds(reading)}
    wanted, nodes = _named(reading, bases), [node.name for node in reading.declaration.nodes]
    made = lock_of(wanted, nodes, captures_of(paths, form), before, _hubs(reading), bases)
    return replace(made, lock=replace(made.lock, answers=before.answers, files=wanted.files))


def _hubs(reading: Reading) -> dict[str, str]:
    """The caches that the engines' models are read from."""
    parts = reading.site.parts if reading.site else ()
    envs = [(source, part.nodes[0].env) for part in parts for source in part.model.downloads]
    return {source: env.get("HF_HUB_CACHE", "") for source, env in envs}


def _named(reading: Reading, bases: Iterable[str]) -> Lock:
    """What a site names, and the files that it carries, as a lock without digests."""
    assert reading.declaration
    declared = reading.declaration
    names = [name for name, _ in declared.images if "@" not in name]
    names += [name for name, _ in images(declared.services, declared.nodes)]
    builds = {build.name: f"sha256:{build.inputs}" for build in _builds(reading)}
    every = sorted({*names, *builds, *bases})
    locked = [LockedImage(name, inputs=builds.get(name, "")) for name in every]
    models = (LockedModel(source, revision, "") for source, revision, _ in declared.downloads)
    return Lock(tuple(locked), tuple(models), files=tuple(_files(reading)))


def _builds(reading: Reading) -> list[ImageBuild]:
    parts = reading.site.parts if reading.site else ()
    return [build for part in parts if (build := part.image_build)]


def _files(reading: Reading) -> Iterator[LockedFile]:
    """The files that the bundle carries from beside the site."""
    parts = reading.site.parts if reading.site else ()
    carried = [file for part in parts for node in part.nodes for file in node.carried]
    own = {file.path.removeprefix(f"{FILES}/"): file.data for file in carried}
    own |= {f"image/{f.path}": f.data for build in _builds(reading) for f in build.files}
    for path, data in sorted(own.items()):
        yield LockedFile(path, sha256(data).hexdigest())


def _report(target: Path, made: Locking, moved: list[str], quiet: bool, check: bool) -> None:
    for line in made.missing:
        click.echo(f"not locked: {line}", err=True)
    for line in made.different:
        click.echo(f"SG852: {line}", err=True)
    if check:
        for line in moved or ([] if quiet else [f"{target} has all that the site names"]):
            click.echo(line)
    elif made.different:
        click.echo("nothing was written; fetch it anew on the nodes that are behind", err=True)
    elif not quiet:
        for line in moved or ["nothing has moved"]:
            click.echo(line)
        click.echo(f"{target} is written")


def _data(target: Path, made: Locking, moved: list[str], check: bool) -> dict[str, Any]:
    return {
        "file": str(target),
        "written": not made.different and not check,
        "changes": moved,
        "missing": list(made.missing),
        "different": list(made.different),
    }
