"""Brings a tree and a folder together: compares them, and writes all of the tree or nothing."""

import contextlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from generator.render import MANIFEST
from generator.tree import Change, File, Tree


class OutputError(Exception):
    """The folder can't be read or written as it is; the text says why, in one line."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a folder differs from a tree; paths relative to the folder, sorted.

    `edited` files are neither what the tree nor what the folder's manifest says: somebody changed
    them by hand. `foreign` files stand in no manifest and in no tree. `manifest_only` says that the
    manifest differs in nothing but the generator's version or the site file's checksum. `modes` has
    the mode on disk and that of the tree, of stale or edited files that differ in nothing else.
    `built` says that a file of the tree is there.
    """

    missing: tuple[str, ...]
    stale: tuple[str, ...]
    edited: tuple[str, ...]
    left_over: tuple[str, ...]
    foreign: tuple[str, ...]
    manifest_only: bool
    exists: bool
    built: bool
    modes: Mapping[str, tuple[int, int]]

    @property
    def drifted(self) -> bool:
        """Whether the folder is not what the tree says."""
        return bool(self.missing or self.stale or self.edited or self.left_over)

    @property
    def changed(self) -> tuple[str, ...]:
        """Files of the tree that writing replaces or creates."""
        return (*self.missing, *self.stale)


def compare(tree: Tree, folder: Path) -> Comparison:
    """Hold a folder against a tree."""
    found = dict(_files(folder, folder))
    _refuse_what_is_in_the_way(tree, folder, found)
    listed = _listed(found.get(MANIFEST))
    missing: list[str] = []
    stale: list[str] = []
    edited: list[str] = []
    modes: dict[str, tuple[int, int]] = {}
    manifest_only = False
    for path, file in tree.items():
        on_disk = found.get(path)
        if on_disk is None:
            missing.append(path)
        elif path == MANIFEST:
            manifest_only = same_but_origin(_read(on_disk), file.data)
            if not manifest_only and _read(on_disk) != file.data:
                stale.append(path)
        elif not _same(file, on_disk):
            written = listed.get(path) == sha256(_read(on_disk)).hexdigest()
            (stale if written else edited).append(path)
            if _read(on_disk) == file.data:
                modes[path] = stat.S_IMODE(on_disk.stat().st_mode), file.mode
    gone = [path for path in found if path in listed and path not in tree]
    touched = [p for p in gone if listed[p] != sha256(_read(found[p])).hexdigest()]
    return Comparison(
        missing=tuple(missing),
        stale=tuple(stale),
        edited=tuple(sorted([*edited, *touched])),
        left_over=tuple(sorted(set(gone) - set(touched))),
        foreign=tuple(sorted(path for path in found if path not in listed and path not in tree)),
        manifest_only=manifest_only,
        exists=folder.exists(),
        built=len(missing) < len(tree),
        modes=modes,
    )


def committed(folder: Path, tree: Tree) -> tuple[Tree, tuple[str, ...]]:
    """The bundle in a folder, which may have none, and its nodes in the order of their ranks.

    What neither the folder's manifest nor the tree has is not of the bundle. Raises OutputError.
    """
    found = dict(_files(folder, folder))
    manifest = _manifest(_read(found[MANIFEST])) if MANIFEST in found else {}
    listed = _entries(manifest)
    files = [
        _committed_file(path, file, listed.get(path, {}).get("change"))
        for path, file in found.items()
        if path in listed or path in tree
    ]
    ranks = manifest.get("nodes")
    folders = {path.partition("/")[0] for path in found}
    nodes = [name for name in ranks if name in folders] if isinstance(ranks, list) else []
    return {file.path: file for file in files}, tuple(nodes)


def _committed_file(path: str, file: Path, change: object) -> File:
    """Bytes that are no text come from no sparkgen, and are only ever shown."""
    # What another version says in words of its own is taken for a restart, the safe side.
    unknown = Change.RESTART if change else Change.NOTHING
    known = next((one for one in Change if one == change), unknown)
    mode = 0o755 if os.access(file, os.X_OK) else 0o644
    return File(path, _read(file).decode(errors="replace"), mode, known)


def write(tree: Tree, folder: Path, comparison: Comparison) -> None:
    """Make the folder what the tree says, or leave it as it was; foreign files stay.

    Everything is staged beside the folder first. A failure in the middle, an interrupt too, is
    undone. Raises OutputError.
    """
    paths = [*comparison.changed, *(path for path in comparison.edited if path in tree)]
    if comparison.manifest_only:
        paths.append(MANIFEST)
    gone = [*comparison.left_over, *(path for path in comparison.edited if path not in tree)]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _exact_modes(), _stage(folder) as stage:
            new, old = stage / "new", stage / "old"
            new.mkdir(mode=0o755)
            _write_files(new, [tree[path] for path in paths])
            if not comparison.exists:
                new.rename(folder)
                return
            with _undo() as moves:
                for path in [*paths, *gone]:
                    if (folder / path).exists():
                        moves.move(folder / path, old / path)
                for path in paths:
                    moves.move(new / path, folder / path)
            _prune(folder, gone)
    except OSError as error:
        place = error.filename or folder
        raise OutputError(f"{place}: {error.strerror or error}; nothing was changed") from error


def _files(folder: Path, root: Path) -> Iterator[tuple[str, Path]]:
    """Every file below a folder; a link is refused, for what is behind it isn't the bundle's."""
    if folder.is_symlink():
        raise OutputError(f"{folder} is a symbolic link; a bundle is a folder of plain files")
    if not folder.exists():
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}") from error
    for entry in entries:
        path = Path(entry.path)
        if entry.is_symlink():
            raise OutputError(f"{path} is a symbolic link; a bundle is a folder of plain files")
        if entry.is_dir():
            yield from _files(path, root)
        else:
            yield path.relative_to(root).as_posix(), path


def _refuse_what_is_in_the_way(tree: Tree, folder: Path, found: Mapping[str, Path]) -> None:
    """A folder where the tree has a file, or the reverse, is not ours to remove."""
    for path in tree:
        if path not in found and (folder / path).exists():
            raise OutputError(f"{folder / path} is a folder; the bundle has a file there")
        for parent in _parents(path):
            if parent in found:
                raise OutputError(f"{folder / parent} is a file; the bundle has a folder there")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}") from error


def _same(file: File, path: Path) -> bool:
    """The same bytes, and a script where the tree has one; git keeps no more of a mode."""
    return _read(path) == file.data and os.access(path, os.X_OK) == file.executable


def _manifest(data: bytes) -> Mapping[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _listed(manifest: Path | None) -> dict[str, str]:
    """Checksums by path, as the folder's own manifest has them; none if it can't be read."""
    if manifest is None:
        return {}
    entries = _entries(_manifest(_read(manifest)))
    listed = {path: str(entry.get("sha256")) for path, entry in entries.items()}
    return listed | {MANIFEST: ""} if listed else {}


def _entries(manifest: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What a manifest says of each file."""
    files = manifest.get("files")
    if not isinstance(files, dict):
        return {}
    return {path: entry for path, entry in files.items() if isinstance(entry, dict)}


def same_but_origin(ours: bytes, theirs: bytes) -> bool:
    """Whether two manifests differ, and only in the generator's version or the site's checksum."""
    if ours == theirs:
        return False
    a, b = dict(_manifest(ours)), dict(_manifest(theirs))
    for content in (a, b):
        content.pop("generator", None)
        content.pop("site", None)
    return bool(a) and a == b


@contextlib.contextmanager
def _exact_modes() -> Iterator[None]:
    """The umask is the user's, the modes of a bundle are not."""
    mask = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(mask)


@contextlib.contextmanager
def _stage(folder: Path) -> Iterator[Path]:
    """A scratch folder on the same file system, gone at the end whatever happens."""
    stage = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _write_files(root: Path, files: list[File]) -> None:
    for parent in sorted({folder for file in files for folder in _parents(file.path)}):
        Path(root, parent).mkdir(mode=0o755)
    for file in files:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(f"{root}/{file.path}", flags, file.mode), "wb") as stream:
            stream.write(file.data)


def _parents(path: str) -> Iterator[str]:
    """`a/b/c` is in `a` and `a/b`."""
    parts = path.split("/")[:-1]
    return ("/".join(parts[:end]) for end in range(1, len(parts) + 1))


class _Moves:
    """Renames, and the folders made for them, that can be taken back."""

    def __init__(self) -> None:
        self._back: list[Callable[[], object]] = []

    def move(self, source: Path, target: Path) -> None:
        for folder in reversed(target.parents):
            if not folder.exists():
                folder.mkdir(mode=0o755)
                self._back.append(folder.rmdir)
        source.rename(target)
        self._back.append(partial(target.rename, source))

    def undo(self) -> None:
        for step in reversed(self._back):
            step()


@contextlib.contextmanager
def _undo() -> Iterator[_Moves]:
    moves = _Moves()
    try:
        yield moves
    except BaseException:
        moves.undo()
        raise


def _prune(folder: Path, gone: list[str]) -> None:
    """Remove the folders that became empty, the deepest first."""
    for parent in sorted({parent for path in gone for parent in _parents(path)}, reverse=True):
        with contextlib.suppress(OSError):  # not empty
            (folder / parent).rmdir()
