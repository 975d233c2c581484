"""What another version of sparkgen changes by itself, and the entries about it in its changes."""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from generator import __version__
from generator.bundle.committed import Committed
from generator.bundle.tree import Tree
from generator.catalogs.versions import version
from generator.records import record
from generator.resources import PACKAGE
from generator.review.changes import FileChange, shown

_CHANGES = PACKAGE / "CHANGELOG.md"
_FILES = re.compile(r"<!--(.*?)-->", re.DOTALL)


@record
class UpgradeEntry:
    """An entry of the changes of a version, and the files that differ because of it."""

    version: str
    text: str
    files: tuple[str, ...]


@record
class Upgrade:
    """What another version changes, with why: `files`, and of these what the site changes too."""

    before: str
    after: str
    files: tuple[FileChange, ...]
    mixed: tuple[FileChange, ...]
    entries: tuple[UpgradeEntry, ...]

    def __str__(self) -> str:
        found = shown(self.files)
        count, mixed = len(found), len({*found} & {*self.mixed})
        site = f"{mixed} of them because of the site file too" if mixed else "not the site file"
        return (
            f"sparkgen {self.before} -> {self.after} is why {count} file{'s' * (count > 1)} "
            f"differ{'s' * (count == 1)}, {site}; the changes of its versions say more"
        )


def upgrade(bundle: Committed, rebuilt: Tree | None, found: Sequence[FileChange]) -> Upgrade | None:
    """What another version changes: what it builds differently from the same site.

    Where that site is not known, everything that differs.
    """
    was = bundle.generator.removeprefix("sparkgen ")
    if not was or was == __version__:
        return None
    own = tuple(change for change in found if rebuilt is None or change.causes(rebuilt)[0])
    mixed = tuple(change for change in own if rebuilt and change.causes(rebuilt)[1])
    return Upgrade(was, __version__, own, mixed, tuple(_entries(was, own))) if own else None


def _entries(since: str, found: Sequence[FileChange]) -> Iterator[UpgradeEntry]:
    """The entries of later versions that change files of a bundle.

    Each names them in a comment: by the end of their paths, and by a word of the lines that differ
    if there may be other reasons, as in `<!-- proxy/*.js node.env:GATEWAY -->`.
    """
    text = _CHANGES.read_text(encoding="utf-8") if _CHANGES.exists() else ""
    for section in text.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        if title[0].isdigit() and version(title) <= version(since):
            return
        for entry in re.findall(r"^- (.*?)(?=\n- |\n\n|\Z)", body, re.DOTALL | re.MULTILINE):
            patterns = " ".join(_FILES.findall(entry)).split()
            own = tuple(each.path for each in found if any(_is_of(each, p) for p in patterns))
            if own:
                yield UpgradeEntry(title, " ".join(_FILES.sub("", entry).split()), own)


def _is_of(change: FileChange, pattern: str) -> bool:
    end, _, word = pattern.partition(":")
    is_named = fnmatchcase(f"/{change.path}", f"*/{end}")
    return is_named and (not word or any(word in line for line in change.lines if line[0] in "+-"))
