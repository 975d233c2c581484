"""Files beside a site file that it names: what is read of them, and what keeps one from it.

Whoever reads a site hands over how they are read, from a disk or from a commit, so that what is
made of a site stays a function of its text and of these files.
"""

from collections.abc import Callable

from generator.records import record

MAX_FILE_BYTES = 1 << 20
# Of the 255 that a file system takes: install.sh writes a file under a longer name first.
MAX_NAME = 240
MAX_BYTES = 16 << 20
MAX_FILES = 500

# A part of a path that needs no quoting anywhere.
NAME = r"(?!\.\.?(/|$))[A-Za-z0-9._@+][A-Za-z0-9._@+-]*"


@record
class SourceFile:
    """One file: its path below the source, empty where that is the file itself."""

    path: str
    data: bytes
    is_executable: bool


@record
class Source:
    """A file, or all files of a folder, by path; or the fault that keeps them from being read."""

    files: tuple[SourceFile, ...] = ()
    is_folder: bool = False
    fault: str = ""
    help: str = ""


Beside = Callable[[str], Source]


def nothing_beside(path: str) -> Source:
    """What there is beside a text that comes from no folder."""
    return Source(fault=f"there is no {path} beside the site file")


class Limits:
    """Counts the files of a source, and says when they become too many or too large."""

    def __init__(self) -> None:
        self._files = 0
        self._bytes = 0

    def fault(self, path: str, size: int) -> Source | None:
        """What is wrong with one file more of that size, if anything is."""
        self._files += 1
        self._bytes += size
        if size > MAX_FILE_BYTES:
            return Source(fault=f"{path} has more than {MAX_FILE_BYTES >> 20} MiB", help=ON_NODES)
        if self._files > MAX_FILES:
            return Source(fault=f"there are more than {MAX_FILES} files", help=ON_NODES)
        if self._bytes > MAX_BYTES:
            return Source(fault=f"the files have more than {MAX_BYTES >> 20} MiB", help=ON_NODES)
        return None


ON_NODES = "put it on the nodes, and write 'path:' and its place there in place of 'source:'"
