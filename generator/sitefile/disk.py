"""Reads site files, and the files they name, from disk: only regular files of a limited size."""

import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from generator.sitefile.beside import (
    MAX_FILE_BYTES,
    MAX_NAME,
    NAME,
    Limits,
    ReadBeside,
    Source,
    SourceFile,
    nothing_beside,
)
from generator.sitefile.source import MAX_BYTES


def contents(path: Path) -> bytes:
    """The bytes of a site file, at most one more than a site file may have.

    Raises OSError, also for anything but a regular file: opening a FIFO would wait for its writer.
    """
    return _read(path, MAX_BYTES)[0]


def bounded(path: Path, most: int) -> bytes:
    """The bytes of any regular file, at most one more than `most`; raises OSError likewise."""
    return _read(path, most)[0]


def beside(site: Path) -> ReadBeside:
    """A function that reads files in the folder of a site file or below it."""
    return lambda path: _source(site.absolute().parent, path)


class _Refusal(Exception):  # noqa: N818 (it carries an answer)
    def __init__(self, source: Source) -> None:
        self.source = source


def _source(folder: Path, path: str) -> Source:
    top = folder / path
    if not os.path.lexists(top):
        return nothing_beside(path)
    try:
        home = folder.resolve(strict=True)
        if top.is_dir():
            _refuse_links_out(top, home, path)
            files = tuple(_below(top, home, path, Limits()))
            fault = "" if files else f"{path} is a folder without files"
            return Source(files, is_folder=True, fault=fault)
        return Source((_file(top, home, path, "", Limits()),))
    except _Refusal as refusal:
        return refusal.source
    except OSError as error:
        return Source(fault=f"{path} can't be read: {error.strerror}")


def _below(folder: Path, home: Path, shown: str, limits: Limits) -> Iterator[SourceFile]:
    """All files in a folder and its subfolders, by path."""
    for path in sorted(_walk(folder, shown)):
        yield _file(folder / path, home, f"{shown}/{path}", path, limits)


def _walk(folder: Path, shown: str, below: str = "") -> Iterator[str]:
    with os.scandir(folder / below) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            path = f"{below}/{entry.name}" if below else entry.name
            if not re.fullmatch(NAME, entry.name):
                fault = f"{path!a} in {shown} has a name not of letters, digits and '._@+-'"
                raise _Refusal(Source(fault=fault, help="rename it"))
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(folder, shown, path)
            elif entry.is_symlink() and entry.is_dir():
                raise _Refusal(Source(fault=f"{shown}/{path} is a link to a folder"))
            else:
                yield path


def _file(file: Path, home: Path, shown: str, path: str, limits: Limits) -> SourceFile:
    _refuse_links_out(file, home, shown)
    if len(file.name) > MAX_NAME:
        message = f"{shown} has a name of more than {MAX_NAME} letters"
        raise _Refusal(Source(fault=message, help="give it a shorter one"))
    try:
        data, mode = _read(file, MAX_FILE_BYTES)
    except OSError as error:
        # A socket cannot be opened at all.
        if error.errno in (errno.EINVAL, errno.ENXIO):
            raise _Refusal(Source(fault=f"{shown} is not a regular file")) from error
        raise
    if fault := limits.fault(shown, len(data)):
        raise _Refusal(fault)
    return SourceFile(path, data, bool(mode & 0o100))


def _refuse_links_out(file: Path, home: Path, shown: str) -> None:
    if not file.resolve(strict=True).is_relative_to(home):
        raise _Refusal(
            Source(fault=f"{shown} is a link out of the site file's folder", help="copy it there")
        )


def _read(path: Path, most: int) -> tuple[bytes, int]:
    """The bytes of a regular file, at most one more than allowed, and its mode."""
    with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as stream:
        mode = os.fstat(stream.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return stream.read(most + 1), mode
