"""A file as it was at a commit, out of git's repository: nothing is checked out or fetched."""

import subprocess
from pathlib import Path


class HistoryError(Exception):
    """The commit can't be had; the text says why, in one line."""


def at_commit(file: Path, ref: str) -> tuple[str, bytes | None]:
    """The commit's short name, and the file's bytes there; None if it was not there yet."""
    commit = _commit(file.parent, ref)
    # The path counts from the folder that git is run in, and not from the top of the repository.
    entry = _git(file.parent, "ls-tree", commit, "--", f"./{file.name}").split()
    if not entry:
        return commit[:12], None
    if entry[1] != b"blob" or entry[0] == b"120000":
        raise HistoryError(f"{file} is not a plain file at {ref}")
    return commit[:12], _git(file.parent, "cat-file", "blob", entry[2].decode())


def _commit(folder: Path, ref: str) -> str:
    _git(folder, "rev-parse", "--git-dir")
    try:
        name = ("--end-of-options", f"{ref}^{{commit}}")
        return _git(folder, "rev-parse", "--verify", *name).decode().strip()
    except HistoryError:
        raise HistoryError(f"git knows no commit called '{ref}'") from None


def _git(folder: Path, *arguments: str) -> bytes:
    """What git answers; its complaint becomes the error."""
    try:
        done = subprocess.run(("git", "-C", str(folder), *arguments), capture_output=True)
    except FileNotFoundError:
        raise HistoryError("git is not installed; --against asks it for the site file") from None
    if done.returncode:
        complaint = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise HistoryError(f"git: {complaint or 'failed'}")
    return done.stdout
