"""Which commit a checkout is at, read from git's own files: git need not be installed."""

from pathlib import Path

_LENGTH = 12


def commit(root: Path) -> str:
    """The short id of the commit; empty if `root` is no checkout, such as an installed package."""
    try:
        git = _folder(root / ".git")
        head = (git / "HEAD").read_text("ascii").strip()
        if not head.startswith("ref: "):
            return head[:_LENGTH]
        return _of_branch(git, head.removeprefix("ref: "))[:_LENGTH]
    except (OSError, ValueError):
        return ""


def _folder(path: Path) -> Path:
    """The folder with HEAD; a work tree of its own names it in a file (gitrepository-layout(5))."""
    if path.is_dir():
        return path
    return path.parent / path.read_text("utf-8").removeprefix("gitdir: ").strip()


def _of_branch(git: Path, branch: str) -> str:
    common = git / "commondir"
    shared = git / common.read_text("utf-8").strip() if common.is_file() else git
    if (shared / branch).is_file():
        return (shared / branch).read_text("ascii").strip()
    packed = (shared / "packed-refs").read_text("utf-8").splitlines()
    return next((line.split()[0] for line in packed if line.endswith(f" {branch}")), "")
