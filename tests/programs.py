"""What tests need of the machine: without it they are skipped, or fail where CI must have it."""

import os
import shutil
import subprocess
from ctypes import CDLL
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

# Programs that .ci/run unpacks because the system's version is missing or too old.
UNPACKED = Path(__file__).parent / ".programs"


def program(name: str) -> str:
    """The path of a program; one unpacked beside the tests is preferred."""
    path = shutil.which(name, path=f"{UNPACKED}/usr/bin:{UNPACKED}/usr/sbin:{os.environ['PATH']}")
    return path or decline(f"not installed: {name}")


def require(*names: str) -> None:
    """Continue only if every program is on the search path."""
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        decline(f"not installed: {', '.join(missing)}")


def require_library(name: str) -> None:
    """Continue only if a shared library can be found, as programs need for their plugins."""
    try:
        CDLL(name)
    except OSError:
        decline(f"not installed: {name}")


def require_root() -> None:
    """Continue only as root that may create namespaces, which a container's root may not."""
    if os.geteuid() != 0:
        decline("not run as root")
    if not _may_unshare():
        decline("not allowed to make namespaces")


@cache
def _may_unshare() -> bool:
    return subprocess.run(("unshare", "--mount", "--net", "true"), check=False).returncode == 0


def decline(reason: str) -> NoReturn:
    """Skip the test because something is missing here, or fail it in CI."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
