"""Files that a site file names beside it: their content, or why they can't be read.

The caller supplies the function that reads them, from a disk or from a commit, so that everything
derived from a site remains a function of its text and these files.
"""

from collections.abc import Callable

from generator.records import record

MAX_FILE_BYTES = 1 << 20
# File systems allow 255 characters; install.sh writes a file under a longer name first.
MAX_NAME = 240
MAX_BYTES = 16 << 20
MAX_FILES = 500

# The folder with catalogs of images.
CATALOGS = "catalogs"

# A component of a path that needs no quoting anywhere.
NAME = r"(?!\.\.?(/|$))[A-Za-z0-9._@+][A-Za-z0-9._@+-]*"


@record
class SourceFile:
    """One file: its path below the source, empty if the source is the file itself."""

    path: str
    data: bytes
    is_executable: bool


@record
class Source:
    """A file, or all files of a folder by path; or the reason why they can't be read."""

    files: tuple[SourceFile, ...] = ()
    is_folder: bool = False
    fault: str = ""
    help: str = ""


ReadBeside = Callable[[str], Source]


def nothing_beside(path: str) -> Source:
    """Reads nothing: a text that comes from no folder has no files beside it."""
    return Source(fault=f"there is no {path} beside the site file")


class Limits:
    """Counts the files of a source, and reports when they become too many or too large."""

    def __init__(self) -> None:
        self._files = 0
        self._bytes = 0

    def fault(self, path: str, size: int) -> Source | None:
        """What would be wrong with one more file of that size, if anything."""
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
