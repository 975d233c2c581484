"""`sparkgen diff`."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from generator import __version__
from generator.bundle.committed import NONE, Committed, bundle_of
from generator.bundle.render import render
from generator.bundle.tree import Tree
from generator.commands import completion
from generator.commands.bundles import disk, refuse_interrupted, rendered
from generator.commands.options import DRIFT, NO_SITE, OUT, SITES_OR_BUNDLES, format_option
from generator.commands.sites import color_of, fail, read_valid, refuse, width_of
from generator.pipeline import Reading, ValidReading, read_site
from generator.records import replace
from generator.review.data import document
from generator.review.edits import edits
from generator.review.ends import CommitSide, FolderSide, Side, abandoned, origin
from generator.review.history import HistoryError, at_commit, beside_at_commit, snapshot
from generator.review.impact import Before, Review, addresses, removal, renamed, review
from generator.review.markdown import comment
from generator.review.text import text
from generator.site import Site


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
    if other is not None:
        reviews = [_with_site(readings[0], read_valid([other])[0], str(other))]
    else:
        reviews = _with_bundles(readings, out, against)
    click.echo(_FORMS[form](reviews, stat), nl=False)
    if exit_code and any(found.changed for found in reviews):
        sys.exit(DRIFT)


def _with_bundles(readings: list[ValidReading], out: Path, ref: str | None) -> list[Review]:
    """The reviews of sites, and of bundles whose sites are gone."""
    files = {valid.site.name: valid.file for valid in readings}
    if ref is None:
        refuse_interrupted(out / name for name in files)
    with disk(), _history():
        end = FolderSide(out) if ref is None else CommitSide(ref, snapshot(out, ref))
        spare = abandoned(end, files)
        reviews = []
        for valid, (site, tree) in zip(readings, rendered(readings), strict=True):
            name = origin(site, valid.file, end, spare)
            if name is None and ref is not None:
                before = _built(valid, end, ref)
            else:
                before = _bundle(valid, tree, end, name, ref)
            left = _left_over(out, name) if name in spare else ""
            reviews.append(review(site, tree, replace(before, left_over=left)))
            spare.pop(name or "", None)
        gone = [
            Before(end.title(name), name, bundle, left_over=_left_over(out, name))
            for name, bundle in spare.items()
        ]
        return [*reviews, *(removal(before) for before in gone)]


def _left_over(out: Path, name: str | None) -> str:
    return str(out / name) if name and (out / name).exists() else ""


def _bundle(new: ValidReading, tree: Tree, end: Side, name: str | None, ref: str | None) -> Before:
    """The bundle of that name, and its site if git has it."""
    folder = name or new.site.name
    bundle = bundle_of(end.files(folder), tree)
    old = _as_it_was(new.file.with_name(bundle.site_file or new.file.name), bundle, ref)
    before = Before(end.title(folder), name or "", bundle, *_facts(old, new))
    return replace(before, rebuilt=_rebuilt(before, new, tree))


def _rebuilt(before: Before, new: ValidReading, tree: Tree) -> Tree | None:
    """What this version makes of the previous site, if another version has built its bundle."""
    bundle = before.bundle
    if bundle.generator in ("", f"sparkgen {__version__}"):
        return None
    if bundle.sha256 == new.reading.sha256:
        return tree
    return render(before.site, bundle.sha256) if before.site else None


def _as_it_was(file: Path, bundle: Committed, ref: str | None) -> Reading | None:
    """The site file that a bundle was built from, according to git; None if git has another one."""
    try:
        _, raw = at_commit(file, ref or "HEAD")
    except HistoryError:
        return None
    if raw is None:
        return None
    reading = read_site(f"{ref or 'HEAD'}:{file}", raw, beside_at_commit(file, ref or "HEAD"))
    return reading if ref is not None or reading.sha256 == bundle.sha256 else None


def _facts(old: Reading | None, new: ValidReading) -> tuple[Site | None, tuple[str, ...]]:
    """The previous site, and what was changed in its file, as far as either is known."""
    if old is None or not isinstance(old.document.data, dict):
        return None, ()
    names = renamed(addresses(new.site), addresses(old.site)) if old.site else {}
    return old.site, edits(old.document.data, new.reading.document.data, names)


def _built(new: ValidReading, end: Side, ref: str) -> Before:
    """What the site file of the commit builds today, if no bundle of it was committed."""
    title = end.title(new.site.name)
    _, raw = at_commit(new.file, ref)
    if raw is None:
        return Before(f"{title}, which does not have {new.file}", "", NONE)
    reading = read_site(f"{ref}:{new.file}", raw, beside_at_commit(new.file, ref))
    old = reading.valid or refuse(reading)
    return _as_built(new, old, f"{title}, built anew for want of a committed bundle")


def _with_site(new: ValidReading, old: ValidReading, title: str) -> Review:
    ((site, tree),) = rendered([new])
    return review(site, tree, _as_built(new, old, title))


def _as_built(new: ValidReading, old: ValidReading, title: str) -> Before:
    """The bundle of the other site under this site's name, which is not a difference to report."""
    renamed = replace(old.site, name=new.site.name, file=new.site.file)
    tree = render(renamed, old.reading.sha256, texts=old.reading.texts)
    bundle = Committed(tree, tuple(node.name for node in old.site.nodes))
    return Before(title, old.site.name, bundle, *_facts(old.reading, new))


@contextlib.contextmanager
def _history() -> Iterator[None]:
    """Exit with one line if a commit can't be read."""
    try:
        yield
    except HistoryError as error:
        fail(str(error))


def _text(reviews: list[Review], stat: bool) -> str:
    color, width = color_of(sys.stdout), width_of(sys.stdout)
    return "\n".join(text(found, stat, color, width) for found in reviews)


_FORMS: dict[str, Callable[[list[Review], bool], str]] = {
    "text": _text,
    "markdown": lambda reviews, stat: comment(reviews),
    "json": lambda reviews, stat: document(reviews),
}
