"""What a command says when the fault is sparkgen's own, or that of how it was installed."""

import sys
import traceback
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import NoReturn

from generator.resources import DamagedFileError

_ENVIRONMENT = 4


def fail(error: BaseException) -> NoReturn:
    """Exit with one line: the file that is damaged, or else where the exception was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    what = " ".join(str(error).split())
    if isinstance(error, DamagedFileError):
        said = f"{what}; install sparkgen again"
    elif file := next(damaged(), None):
        said = f"{file} is missing or was changed: install sparkgen again"
    else:
        where = f"{type(error).__name__}: {what} ({Path(last.filename).name}:{last.lineno})"
        said = f"SG901: a bug in sparkgen, please report it: {where}"
    print(f"sparkgen: {said}", file=sys.stderr)
    sys.exit(_ENVIRONMENT)


def damaged() -> Iterator[Path]:
    """The installed files that differ from the installer's list; a checkout is on no such list."""
    try:
        listed = files("sparkgen") or ()
    except PackageNotFoundError:
        return
    for file in (file for file in listed if file.hash):
        path = Path(str(file.locate()))
        digest = sha256(path.read_bytes()).digest() if path.is_file() else b""
        if file.hash and urlsafe_b64encode(digest).decode().rstrip("=") != file.hash.value:
            yield path
