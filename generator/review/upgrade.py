"""What another version of sparkgen changes by itself, and the entries about it in its changes."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from generator import __version__
from generator.bundle.committed import Committed
from generator.bundle.tree import Tree
from generator.catalogs.versions import version
from generator.records import record
from generator.resources import PACKAGE
from generator.review.changes import FileChange

_CHANGES = PACKAGE / "CHANGELOG.md"


@record
class Entry:
    """An entry of the changes of a version, and the files that it names."""

    version: str
    text: str
    files: tuple[str, ...]


@record
class Upgrade:
    """The two versions, the files that differ for that reason, and the entries about them."""

    before: str
    after: str
    files: tuple[str, ...]
    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        count = len(self.files)
        return (
            f"sparkgen {self.before} -> {self.after} is why {count} file{'s' * (count > 1)} "
            f"differ{'s' * (count == 1)}, not the site file; the changes of its versions say more"
        )


def upgrade(bundle: Committed, rebuilt: Tree | None, found: Sequence[FileChange]) -> Upgrade | None:
    """What another version changes: what it builds differently from the same site.

    Where that site is not known, everything that differs.
    """
    was = bundle.generator.removeprefix("sparkgen ")
    if not was or was == __version__:
        return None
    files = tuple(change.path for change in found if rebuilt is None or change.differs_in(rebuilt))
    return Upgrade(was, __version__, files, tuple(_entries(was, files))) if files else None


def _entries(since: str, files: Sequence[str]) -> Iterator[Entry]:
    """The entries of later versions that name a file, as in `health.py`, with these files."""
    text = _CHANGES.read_text(encoding="utf-8") if _CHANGES.exists() else ""
    for section in text.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        if title[0].isdigit() and version(title) <= version(since):
            return
        for entry in re.split(r"\n- ", f"\n{body}")[1:]:
            words = {*re.findall(r"[\w.-]+", entry)}
            named = tuple(path for path in files if PurePosixPath(path).name in words)
            if named:
                yield Entry(title, " ".join(entry.split()), named)
