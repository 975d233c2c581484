"""Writes a tree to a folder: all of it or nothing, and only the differences."""

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path

from generator.bundle.journal import BusyError, Journal, Staging, interrupted, merged, stage
from generator.bundle.output import Comparison, OutputError, parents
from generator.bundle.tree import File, Tree


def write(tree: Tree, folder: Path, comparison: Comparison) -> None:
    """Make the folder match the tree, or leave it as it was; foreign files are kept.

    Everything is staged beside the folder first. A failure or an interrupt halfway is rolled back;
    what a kill leaves half written, the next call completes. Raises OutputError.
    """
    paths = [*comparison.changed, *(path for path in comparison.edited if path in tree)]
    paths += comparison.origin
    gone = [*comparison.left_over, *(path for path in comparison.edited if path not in tree)]
    earlier = interrupted(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _exact_modes(), stage(folder) as work:
            work.new.mkdir(mode=0o755)
            _write_files(work.new, [tree[path] for path in paths])
            if comparison.exists:
                with _replacing(work, _journal(tree, folder, comparison)) as moves:
                    _replace(moves, work, folder, paths, gone)
                _prune(folder, {*gone, *(earlier or ())})
            else:
                work.new.rename(folder)
            work.done()
    except BusyError as error:
        raise OutputError(f"{folder} is being written by another process") from error
    except OSError as error:
        place = error.filename or folder
        left = "nothing was changed" if interrupted(folder) == earlier else "run it again"
        raise OutputError(f"{place}: {error.strerror or error}; {left}") from error


def _journal(tree: Tree, folder: Path, comparison: Comparison) -> Journal:
    """The checksums that files may have until the folder matches the tree."""
    coming = {path: file.sha256 for path, file in tree.items()}
    edits = {path: sha256((folder / path).read_bytes()).hexdigest() for path in comparison.edited}
    return merged(comparison.known, coming, edits)


def _replace(
    moves: "_Moves", work: Staging, folder: Path, paths: list[str], gone: list[str]
) -> None:
    for path in [*paths, *gone]:
        if (folder / path).exists():
            moves.move(folder / path, work.old / path)
    for path in paths:
        moves.move(work.new / path, folder / path)


@contextlib.contextmanager
def _exact_modes() -> Iterator[None]:
    """Set a fixed umask: the user's own must not change the modes of a bundle."""
    mask = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(mask)


def _write_files(root: Path, files: list[File]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    made: set[str] = set()
    for file in files:
        folder, _, _ = file.path.rpartition("/")
        # A large bundle has thousands of small files and folders: a Path and a stream each cost too
        # much.
        for parent in () if folder in made else parents(file.path):
            if parent not in made:
                os.mkdir(f"{root}/{parent}", mode=0o755)  # noqa: PTH102
                made.add(parent)
        opened = os.open(f"{root}/{file.path}", flags, file.mode)
        try:
            data = file.data
            while data:
                data = data[os.write(opened, data) :]
        finally:
            os.close(opened)


class _Moves:
    """Renames, and the folders created for them, that can be undone."""

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
def _replacing(work: Staging, journal: Journal) -> Iterator[_Moves]:
    """Moves that are all undone if one fails; the journal is written before the first."""
    work.begin(journal)
    moves = _Moves()
    try:
        yield moves
    except BaseException:
        moves.undo()
        work.undone()
        raise


def _prune(folder: Path, gone: set[str]) -> None:
    """Remove the folders that became empty, the deepest first."""
    for parent in sorted({parent for path in gone for parent in parents(path)}, reverse=True):
        with contextlib.suppress(OSError):  # not empty
            (folder / parent).rmdir()
