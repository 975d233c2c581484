"""Files at a commit, read from git's object store: nothing is checked out or fetched."""

import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from generator.bundle.committed import Content
from generator.bundle.plan import MANIFEST
from generator.records import record
from generator.sitefile.beside import Limits, ReadBeside, Source, SourceFile, nothing_beside

_SYMBOLIC_LINK = "120000"
_EXECUTABLE = "100755"


class HistoryError(Exception):
    """The commit can't be read; the message says why, in one line."""


@record
class Blob:
    """A file at a commit: git's name for its bytes, and whether it is executable."""

    name: str
    executable: bool


@record
class Snapshot:
    """All bundles of a folder at a commit: the blobs of each by path, by the bundle's name."""

    folder: Path
    ref: str
    commit: str
    bundles: dict[str, dict[str, Blob]]

    @property
    def names(self) -> Sequence[str]:
        """The folders with a manifest."""
        return sorted(self.bundles)

    def title(self, name: str) -> str:
        """`main (0123456789ab)`."""
        return self.commit if self.commit.startswith(self.ref) else f"{self.ref} ({self.commit})"

    def files(self, name: str) -> dict[str, Content]:
        """The files of a bundle; none if there is no such bundle. Raises HistoryError."""
        blobs = self.bundles.get(name, {})
        bytes_of = _contents(_existing(self.folder), {blob.name for blob in blobs.values()})
        return {path: (bytes_of[blob.name], blob.executable) for path, blob in blobs.items()}


def snapshot(folder: Path, ref: str) -> Snapshot:
    """The bundles in a folder at a commit; the folder itself may have been removed since."""
    there = _existing(folder)
    commit = _commit(there, ref)
    below = folder.absolute().relative_to(there.absolute()).as_posix()
    bundles: dict[str, dict[str, Blob]] = {}
    for path, blob in _listed(there, commit, below):
        bundle, _, inside = path.removeprefix(f"{below}/" if below != "." else "").partition("/")
        if blob and inside:
            bundles.setdefault(bundle, {})[inside] = blob
    whole = {name: files for name, files in bundles.items() if MANIFEST in files}
    return Snapshot(folder, ref, commit[:12], whole)


def at_commit(file: Path, ref: str) -> bytes | None:
    """The file's bytes at a commit; None if it didn't exist yet."""
    folder = _existing(file.parent)
    commit = _commit(folder, ref)
    # The path is relative to the folder that git runs in, not to the top of the repository.
    below = file.absolute().relative_to(folder.absolute()).as_posix()
    entry = _git(folder, "ls-tree", commit, "--", f"./{below}").split()
    if not entry:
        return None
    if entry[1] != b"blob" or entry[0] == _SYMBOLIC_LINK.encode():
        raise HistoryError(f"{file} is not a plain file at {ref}")
    return _git(folder, "cat-file", "blob", entry[2].decode())


def beside_at_commit(file: Path, ref: str) -> ReadBeside:
    """A reader of the files beside a site file at a commit."""
    return lambda path: _source_at_commit(file.parent, path, ref)


def _source_at_commit(folder: Path, path: str, ref: str) -> Source:
    there = _existing(folder)
    top = (folder / path).absolute().relative_to(there.absolute()).as_posix()
    blobs: dict[str, Blob] = {}
    for name, blob in _listed(there, _commit(there, ref), top):
        if blob is None:
            return Source(fault=f"{path} is more than plain files at {ref}")
        blobs[name.removeprefix(top).removeprefix("/")] = blob
    if not blobs:
        return nothing_beside(path)
    data = _contents(there, {blob.name for blob in blobs.values()})
    limits = Limits()
    files = []
    for name, found in sorted(blobs.items()):
        if fault := limits.fault(name or path, len(data[found.name])):
            return fault
        files.append(SourceFile(name, data[found.name], found.executable))
    return Source(tuple(files), is_folder="" not in blobs)


def _listed(folder: Path, commit: str, below: str) -> Iterator[tuple[str, Blob | None]]:
    """What is below a path at a commit, by path; None for what is no plain file."""
    listed = _git(folder, "ls-tree", "-r", "-z", commit, "--", f"./{below}")
    for entry in filter(None, listed.decode(errors="replace").split("\0")):
        facts, _, path = entry.partition("\t")
        mode, kind, name = facts.split()
        is_plain = kind == "blob" and mode != _SYMBOLIC_LINK
        yield path, Blob(name, mode == _EXECUTABLE) if is_plain else None


def _existing(folder: Path) -> Path:
    """The folder, or its nearest existing parent, in which git is run."""
    return next(path for path in (folder, *folder.absolute().parents) if path.is_dir())


def _contents(folder: Path, names: Iterable[str]) -> dict[str, bytes]:
    """The bytes of blobs by their names, fetched all at once."""
    wanted = sorted(names)
    answer = _git(folder, "cat-file", "--batch", stdin="".join(f"{n}\n" for n in wanted).encode())
    found: dict[str, bytes] = {}
    start = 0
    for name in wanted:
        line = answer.index(b"\n", start)
        size = int(answer[start:line].split()[-1])
        found[name] = answer[line + 1 : line + 1 + size]
        start = line + size + 2
    return found


def _commit(folder: Path, ref: str) -> str:
    _git(folder, "rev-parse", "--git-dir")
    try:
        name = ("--end-of-options", f"{ref}^{{commit}}")
        return _git(folder, "rev-parse", "--verify", *name).decode().strip()
    except HistoryError:
        raise HistoryError(f"git knows no commit called '{ref}'") from None


def _git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """The output of git; its complaint becomes the error."""
    command = ("git", "-C", str(folder), *arguments)
    try:
        done = subprocess.run(command, input=stdin, capture_output=True)
    except FileNotFoundError:
        raise HistoryError("git is not installed; --against asks it for the site file") from None
    if done.returncode:
        complaint = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise HistoryError(f"git: {complaint or 'failed'}")
    return done.stdout
