"""`sparkgen diff`."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from generator.commands import completion
from generator.commands.bundles import disk, rendered
from generator.commands.options import DRIFT, INVALID, OUT, SITES
from generator.commands.sites import color_of, fail, sound, tell
from generator.output import committed
from generator.pipeline import Reading, read_site
from generator.render import render
from generator.review.data import document
from generator.review.history import HistoryError, at_commit
from generator.review.impact import Review, review
from generator.review.markdown import comment
from generator.review.text import text
from generator.site import Site
from generator.tree import Tree


@click.command(epilog="Example: sparkgen diff --against main sites/*.yaml")
@SITES
@OUT
@click.option("--against", metavar="GITREF", help="Against the site as it was at that commit.")
@click.option(
    "--with",
    "other",
    type=Path,
    metavar="SITE",
    help="Against another site.",
    shell_complete=completion.sites,
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="Markdown is a comment for a pull request, under 65,000 characters.",
)
@click.option("--stat", is_flag=True, help="A line a file in place of its diff (text).")
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
    """Say what a change does: what restarts on which node, in which order, and every line.

    Compares what the sites say now with the bundles on disk, or with what --against or --with name.
    """
    if against is not None and other is not None:
        raise click.UsageError("use --against or --with, not both")
    if other is not None and len(sites) > 1:
        raise click.UsageError("--with compares one site with one other")
    reviews = []
    for path, (site, tree) in zip(sites, rendered(sound(sites)), strict=True):
        if against is not None:
            reviews.append(_at_commit(site, tree, path, against))
        elif other is not None:
            reviews.append(_with_site(site, tree, sound([other])[0], str(other)))
        else:
            reviews.append(_with_folder(site, tree, out / site.name))
    click.echo(_FORMS[form](reviews, stat), nl=False)
    if exit_code and any(found.changed for found in reviews):
        sys.exit(DRIFT)


def _with_folder(site: Site, tree: Tree, folder: Path) -> Review:
    with disk():
        before, members = committed(folder, tree)
    return review(site, tree, before, members, str(folder))


def _with_site(site: Site, tree: Tree, old: Reading, against: str) -> Review:
    """A bundle names its site file: that it is another one is not a difference."""
    assert old.site
    before = render(replace(old.site, file=site.file), old.sha256)
    return review(site, tree, before, [node.name for node in old.site.nodes], against)


def _at_commit(site: Site, tree: Tree, path: Path, ref: str) -> Review:
    try:
        commit, raw = at_commit(path, ref)
    except HistoryError as error:
        fail(str(error))
    against = f"{ref} ({commit})" if not commit.startswith(ref) else commit
    if raw is None:
        return review(site, tree, {}, [], f"{against}, which does not have {path}")
    reading = read_site(f"{ref}:{path}", raw)
    if reading.site is None:
        tell(reading, reading.findings, strict=False)
        sys.exit(INVALID)
    return _with_site(site, tree, reading, against)


def _text(reviews: list[Review], stat: bool) -> str:
    color = color_of(sys.stdout)
    return "\n".join(text(found, stat, color) for found in reviews)


_FORMS: dict[str, Callable[[list[Review], bool], str]] = {
    "text": _text,
    "markdown": lambda reviews, stat: comment(reviews),
    "json": lambda reviews, stat: document(reviews),
}
