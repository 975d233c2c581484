"""`sparkgen diff`."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from generator.bundle.tree import Tree
from generator.commands import completion
from generator.commands.bundles import disk, refuse_interrupted, rendered
from generator.commands.options import DRIFT, NO_SITE, OUT, SITES_OR_BUNDLES, format_option
from generator.commands.sites import read_valid
from generator.pipeline import ValidReading
from generator.review.changes import changes, unchanged
from generator.review.ends import Before, FolderSide, previous


@click.command(epilog="Example: sparkgen diff --against main sites/*.yaml")
@SITES_OR_BUNDLES
@OUT
@click.option(
    "--against",
    metavar="GITREF",
    help="Compare with the bundle committed at GITREF.",
    shell_complete=completion.refs,
)
@click.option(
    "--with",
    "other",
    type=Path,
    metavar="SITE",
    help="Compare with another site.",
    shell_complete=completion.sites,
)
@format_option(
    ("text", "markdown", "json"),
    "Markdown is a comment for a pull request, under 65,000 characters.",
)
@click.option("--stat", is_flag=True, help="One line per file in place of its diff (text).")
@click.option("--exit-code", is_flag=True, help="Exit 1 if anything differs.")
def command(
    sites: tuple[Path, ...],
    out: Path,
    against: str | None,
    other: Path | None,
    form: str,
    stat: bool,
    exit_code: bool,
) -> None:
    """Show what a change does: what restarts on which node, in which order, and every line.

    Compares what the sites say now with the bundles on disk, or with what --against or --with name.
    """
    if against is not None and other is not None:
        raise click.UsageError("use --against or --with, not both")
    if other is not None and not sites:
        raise click.UsageError(NO_SITE)
    if other is not None and len(sites) > 1:
        raise click.UsageError("--with compares one site with one other")
    readings = read_valid(sites)
    on_disk = other is None and against is None
    if on_disk:
        refuse_interrupted(out / valid.site.name for valid in readings)
    new = [(v, tree) for v, (_, tree) in zip(readings, rendered(readings), strict=True)]
    found, gone = _on_disk(new, out) if on_disk else ([], [])
    if on_disk and form == "text" and not gone and not _differ(new, found):
        same = (unchanged(v.site.name, was.title) for (v, _), was in zip(new, found, strict=True))
        click.echo("\n".join(same), nl=False)
        return
    # To say what a change does takes more modules, and most bundles that are compared are the same.
    from generator.commands import reviewing

    if other is not None:
        reviews = [reviewing.with_site(*new[0], read_valid([other])[0], str(other))]
    elif against is not None:
        reviews = reviewing.with_commit(new, out, against)
    else:
        reviews = reviewing.with_bundles(new, found, gone)
    click.echo(reviewing.FORMS[form](reviews, stat), nl=False)
    if exit_code and any(review.changed for review in reviews):
        sys.exit(DRIFT)


def _on_disk(
    new: Sequence[tuple[ValidReading, Tree]], out: Path
) -> tuple[list[Before], list[Before]]:
    """The bundles in a folder: those of the sites, and those whose sites are gone."""
    with disk():
        return previous([(v.site, v.file, tree) for v, tree in new], FolderSide(out), out)


def _differ(new: Sequence[tuple[ValidReading, Tree]], found: Sequence[Before]) -> bool:
    """Whether a file of a bundle differs from the previous one."""
    pairs = zip(new, found, strict=True)
    return any(changes(before.bundle.tree, tree) for (_, tree), before in pairs)
