"""Compares a tree with the folder of its bundle."""

import os
import stat
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from generator import __version__
from generator.bundle.committed import Content, entries, parsed
from generator.bundle.conflicts import is_conflicted, sides
from generator.bundle.journal import Journal, interrupted, merged
from generator.bundle.plan import CHECKSUMS, MANIFEST, is_recorded
from generator.bundle.tree import Tree
from generator.catalogs.versions import version
from generator.records import record


class OutputError(Exception):
    """The folder can't be read or written; the text says why, in one line."""


@record
class Comparison:
    """How a folder differs from a tree; paths are relative to the folder, and sorted.

    `edited` files match neither the tree nor the folder's manifest: somebody changed them by hand;
    a file with an unresolved git conflict is only stale. `foreign` files are in no manifest and not
    in the tree. `origin` files only say where the bundle is from: the site's text, and a manifest
    that differs only in the generator's version or the site file's checksum. `modes` has the modes
    on disk and in the tree, for stale or edited files that differ in nothing else. `built` means
    that a file of the tree exists, `interrupted` that a build did not finish. `known` has the
    checksums of files that sparkgen wrote, and `made_by` is the version of sparkgen that wrote the
    folder, empty if not known.
    """

    missing: tuple[str, ...]
    stale: tuple[str, ...]
    edited: tuple[str, ...]
    left_over: tuple[str, ...]
    foreign: tuple[str, ...]
    origin: tuple[str, ...]
    exists: bool
    built: bool
    modes: Mapping[str, tuple[int, int]]
    interrupted: bool
    known: Journal
    made_by: str

    @property
    def is_newer(self) -> bool:
        """Whether a later version of sparkgen than this one wrote the folder."""
        return bool(self.made_by) and version(self.made_by) > version(__version__)

    @property
    def drifted(self) -> bool:
        """Whether the folder differs from the tree."""
        found = self.missing or self.stale or self.edited or self.left_over
        return bool(found) or self.interrupted

    @property
    def changed(self) -> tuple[str, ...]:
        """Files of the tree that writing replaces or creates."""
        return (*self.missing, *self.stale)


def compare(tree: Tree, folder: Path) -> Comparison:
    """Compare a folder with a tree."""
    found = _files(folder)
    _refuse_what_is_in_the_way(tree, folder, found)
    journal = interrupted(folder)
    known = merged(journal or {}, *_listed(found.get(MANIFEST)))
    missing: list[str] = []
    stale: list[str] = []
    edited: list[str] = []
    modes: dict[str, tuple[int, int]] = {}
    origin: list[str] = []
    for path, file in tree.items():
        on_disk = found.get(path)
        if on_disk is None:
            missing.append(path)
        elif path == MANIFEST or is_recorded(path):
            if (data := _read(on_disk)) != file.data:
                is_origin = is_recorded(path) or same_but_origin(data, file.data)
                (origin if is_origin else stale).append(path)
        # Of a mode, git keeps no more than the executable bit.
        elif _read(on_disk) != file.data or os.access(on_disk, os.X_OK) != file.executable:
            data = _read(on_disk)
            written = is_conflicted(data) or sha256(data).hexdigest() in known.get(path, ())
            (stale if written else edited).append(path)
            if _read(on_disk) == file.data:
                modes[path] = stat.S_IMODE(os.stat(on_disk).st_mode), file.mode  # noqa: PTH116
    nodes = {path.removesuffix(CHECKSUMS) for path in known if path.endswith(f"/{CHECKSUMS}")}
    recorded = {
        path for path in found if is_recorded(path) and path[: path.index("/") + 1] in nodes
    }
    gone = [path for path in found if (path in known or path in recorded) and path not in tree]
    touched = [
        path
        for path in gone
        if path not in recorded and sha256(_read(found[path])).hexdigest() not in known[path]
    ]
    return Comparison(
        missing=tuple(missing),
        stale=tuple(stale),
        edited=tuple(sorted([*edited, *touched])),
        left_over=tuple(sorted(set(gone) - set(touched))),
        foreign=tuple(sorted(found.keys() - known.keys() - recorded - tree.keys())),
        origin=tuple(origin),
        exists=folder.exists(),
        built=len(missing) < len(tree),
        modes=modes,
        interrupted=journal is not None,
        known=known,
        made_by=_made_by(found.get(MANIFEST)),
    )


class FolderContents(Mapping[str, Content]):
    """The files in a folder, if it exists: their bytes, and whether each is executable.

    A file is read when it is asked for: those of a large bundle need not be in memory together.
    Raises OutputError.
    """

    def __init__(self, folder: Path) -> None:
        self._places = _files(folder)

    def __getitem__(self, path: str) -> Content:
        place = self._places[path]
        return _read(place), os.access(place, os.X_OK)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _files(folder: Path) -> dict[str, str]:
    """Every file below a folder, if it exists, and where it is.

    Links are rejected, since their targets are outside the bundle. The places are texts, because a
    large bundle has thousands of files, and a Path for each takes longer than reading it.
    """
    if folder.is_symlink():
        raise OutputError(f"{folder} is a symbolic link; a bundle is a folder of plain files")
    return dict(_below(str(folder), "")) if folder.exists() else {}


def _below(folder: str, within: str) -> Iterator[tuple[str, str]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}") from error
    for entry in entries:
        path = f"{within}{entry.name}"
        if entry.is_symlink():
            place = Path(entry.path)
            raise OutputError(f"{place} is a symbolic link; a bundle is a folder of plain files")
        if entry.is_dir():
            yield from _below(entry.path, f"{path}/")
        else:
            yield path, entry.path


def _refuse_what_is_in_the_way(tree: Tree, folder: Path, found: Mapping[str, str]) -> None:
    """Refuse to replace a folder with a file or the reverse: it is not ours to remove."""
    if not folder.exists():
        return
    for path in (path for path in tree if path not in found):
        if (folder / path).exists():
            raise OutputError(f"{folder / path} is a folder; the bundle has a file there")
        for parent in parents(path):
            if parent in found:
                raise OutputError(f"{folder / parent} is a file; the bundle has a folder there")


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read()
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}") from error


def _listed(manifest: str | None) -> list[dict[str, str]]:
    """Checksums by path, from the folder's own manifest; none if it can't be read.

    A manifest with an unresolved git conflict has those of both branches.
    """
    if manifest is None:
        return []
    found = [entries(parsed(side)) for side in sides(_read(manifest))]
    listed = [{p: str(entry.get("sha256")) for p, entry in side.items()} for side in found]
    return [side | {MANIFEST: ""} for side in listed if side]


def _made_by(manifest: str | None) -> str:
    """The version of sparkgen that wrote the folder; empty if it can't be read."""
    generator = str(parsed(_read(manifest)).get("generator", "")) if manifest else ""
    return generator.removeprefix("sparkgen ")


def same_but_origin(ours: bytes, theirs: bytes) -> bool:
    """Whether two manifests differ only in the generator's version or the site's checksum."""
    if ours == theirs:
        return False
    a, b = dict(parsed(ours)), dict(parsed(theirs))
    for content in (a, b):
        content.pop("generator", None)
        content.pop("site", None)
    return bool(a) and a == b


def parents(path: str) -> Iterator[str]:
    """The parents of a path: for `a/b/c`, `a` and `a/b`."""
    parts = path.split("/")[:-1]
    return ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
