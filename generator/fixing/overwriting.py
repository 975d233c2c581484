"""Replaces the content of a user's file: all of it, or nothing."""

import contextlib
import os
import tempfile
from pathlib import Path


class OverwriteError(Exception):
    """The file can't be written; the message says why, in one line."""


def overwrite(path: Path, data: bytes) -> None:
    """Replace the content of a file in one step, preserving mode, owner and a link to it.

    Raises OverwriteError, in which case the file is unchanged.
    """
    try:
        # A link keeps its target.
        target = path.resolve(strict=True)
        _replace(target, data, target.stat())
    except OSError as error:
        # The name of a temporary file means nothing to the user.
        message = f"{path}: {error.strerror or error}; nothing was changed"
        raise OverwriteError(message) from error


def _replace(target: Path, data: bytes, was: os.stat_result) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
            with contextlib.suppress(PermissionError):
                os.fchown(stream.fileno(), was.st_uid, was.st_gid)
            os.fchmod(stream.fileno(), was.st_mode & 0o7777)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
