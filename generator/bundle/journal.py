"""The staging folder beside a bundle, and the journal of the files that a build is replacing.

A process can be killed between any two renames. The journal is written before the first of them and
removed after the last. It has every checksum that the bundle's files may have meanwhile: those of
the old and the new bundle, and those of edits that the user chose to overwrite. If there is a
journal, the bundle may be half old and half new, and the next build takes none of these files for
an edit.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

# The checksums that each file of the bundle may have, by path.
Journal = Mapping[str, frozenset[str]]
_JOURNAL = "journal.json"


class BusyError(Exception):
    """Another process is writing the same bundle."""


class Staging:
    """The folders for new and for replaced files, and the journal."""

    def __init__(self, root: Path, earlier: Journal | None) -> None:
        self.new, self.old = root / "new", root / "old"
        self._file = root / _JOURNAL
        self._earlier = earlier

    def begin(self, journal: Journal) -> None:
        """Write the journal: from now on the bundle may be half old and half new."""
        content = {path: sorted(checksums) for path, checksums in journal.items()}
        draft = self._file.with_suffix(".draft")
        draft.write_text(json.dumps(content))
        draft.replace(self._file)

    def undone(self) -> None:
        """The bundle is as it was found, which may have been half written."""
        if self._earlier is None:
            self.done()
        else:
            self.begin(self._earlier)

    def done(self) -> None:
        """The bundle is complete: remove the journal."""
        self._file.unlink(missing_ok=True)


def interrupted(folder: Path) -> Journal | None:
    """The journal of an unfinished build of this folder."""
    try:
        content = json.loads((_root(folder) / _JOURNAL).read_bytes())
    except (OSError, ValueError):
        return None
    return {path: frozenset(checksums) for path, checksums in content.items()}


def merged(journal: Journal, *more: Mapping[str, str]) -> Journal:
    """A journal with more checksums, one for each path."""
    content = {path: set(checksums) for path, checksums in journal.items()}
    for listed in more:
        for path, checksum in listed.items():
            content.setdefault(path, set()).add(checksum)
    return {path: frozenset(checksums) for path, checksums in content.items()}


@contextlib.contextmanager
def stage(folder: Path) -> Iterator[Staging]:
    """A stage for one process at a time, without the files of an interrupted build.

    It is removed at the end, unless the bundle is still half written. Raises BusyError and OSError.
    """
    root = _root(folder)
    with _locked(root):
        work = Staging(root, interrupted(folder))
        _empty(work)
        try:
            yield work
        finally:
            _empty(work)
            if not (root / _JOURNAL).exists():
                _remove(root)


def _root(folder: Path) -> Path:
    """Beside the bundle, and so in the same file system."""
    folder = folder.absolute()
    return folder.with_name(f".{folder.name}.build")


def _empty(work: Staging) -> None:
    for path in (work.new, work.old):
        _remove(path)


def _remove(path: Path) -> None:
    """Remove a folder if possible; most are missing or empty."""
    try:
        path.rmdir()
    except FileNotFoundError:
        return
    except OSError:
        from shutil import rmtree

        rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Create the folder if it is missing, and lock it until the end of the block."""
    while True:
        root.mkdir(mode=0o755, exist_ok=True)
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _lock(handle)
            if _is(root, handle):
                yield
                return
        finally:
            os.close(handle)


def _lock(handle: int) -> None:
    """Some file systems, such as NFS, can't lock a folder; a second build goes unnoticed there."""
    with contextlib.suppress(OSError):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError from None


def _is(root: Path, handle: int) -> bool:
    """Whether the folder is still the one that was opened: its last owner may have removed it."""
    try:
        return os.path.samestat(os.fstat(handle), root.stat())
    except FileNotFoundError:
        return False
