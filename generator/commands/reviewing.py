"""The reviews of changes that `diff` prints, in each of its formats."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from generator import __version__
from generator.bundle.committed import NONE, Committed
from generator.bundle.render import render
from generator.bundle.tree import Tree
from generator.commands.bundles import disk
from generator.commands.sites import color_of, fail, refuse, width_of
from generator.pipeline import Reading, ValidReading, read_site
from generator.records import replace
from generator.review import history
from generator.review.data import document
from generator.review.edits import edits
from generator.review.ends import Before, previous
from generator.review.impact import Review, addresses, removal, renamed, review
from generator.review.markdown import comment
from generator.review.text import text
from generator.site import Site


def with_commit(new: Sequence[tuple[ValidReading, Tree]], out: Path, ref: str) -> list[Review]:
    """The reviews of sites against their bundles at a commit."""
    with disk(), _history():
        sites = [(valid.site, valid.file, tree) for valid, tree in new]
        return with_bundles(new, *previous(sites, history.snapshot(out, ref), out), ref)


def with_bundles(
    new: Sequence[tuple[ValidReading, Tree]],
    found: Sequence[Before],
    gone: Sequence[Before],
    ref: str | None = None,
) -> list[Review]:
    """The reviews of sites against their previous bundles, and of bundles whose sites are gone."""
    with _history():
        reviews = []
        for (valid, tree), old in zip(new, found, strict=True):
            anew = ref if not old.name else None
            before = _built(old, valid, anew) if anew else _known(old, valid, tree, ref)
            reviews.append(review(valid.site, tree, before))
        return [*reviews, *map(removal, gone)]


def _known(bare: Before, new: ValidReading, tree: Tree, ref: str | None) -> Before:
    """A previous bundle with its site if git has it."""
    file = new.file.with_name(bare.bundle.site_file or new.file.name)
    site, changed = _facts(_as_it_was(file, bare.bundle, ref), new)
    before = replace(bare, site=site, edits=changed)
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
        reading = _at(file, ref or "HEAD")
    except history.HistoryError:
        return None
    return reading if ref or (reading and reading.sha256 == bundle.sha256) else None


def _at(file: Path, ref: str) -> Reading | None:
    """The site file at a commit; None if it didn't exist yet."""
    raw = history.at_commit(file, ref)
    beside = history.beside_at_commit(file, ref)
    return None if raw is None else read_site(f"{ref}:{file}", raw, beside)


def _facts(old: Reading | None, new: ValidReading) -> tuple[Site | None, tuple[str, ...]]:
    """The previous site, and what was changed in its file, as far as either is known."""
    if old is None or not isinstance(old.document.data, dict):
        return None, ()
    names = renamed(addresses(new.site), addresses(old.site)) if old.site else {}
    return old.site, edits(old.document.data, new.reading.document.data, names)


def _built(bare: Before, new: ValidReading, ref: str) -> Before:
    """What the site file of the commit builds today, if no bundle of it was committed."""
    reading = _at(new.file, ref)
    if reading is None:
        return Before(f"{bare.title}, which does not have {new.file}", "", NONE)
    title = f"{bare.title}, built anew for want of a committed bundle"
    return _as_built(new, reading.valid or refuse(reading), title)


def with_site(new: ValidReading, tree: Tree, old: ValidReading, title: str) -> Review:
    """The review of a site against another one."""
    return review(new.site, tree, _as_built(new, old, title))


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
    except history.HistoryError as error:
        fail(str(error))


def _text(reviews: list[Review], stat: bool) -> str:
    color, width = color_of(sys.stdout), width_of(sys.stdout)
    return "\n".join(text(found, stat, color, width) for found in reviews)


FORMS: dict[str, Callable[[list[Review], bool], str]] = {
    "text": _text,
    "markdown": lambda reviews, stat: comment(reviews),
    "json": lambda reviews, stat: document(reviews),
}
