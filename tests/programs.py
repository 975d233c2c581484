"""What tests need of the machine: without it they are skipped, or fail where CI must have it."""

import os
import shutil
import subprocess
from ctypes import CDLL
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

# What .ci/run unpacks because the system has it too old, or not at all.
UNPACKED = Path(__file__).parent / ".programs"


def program(name: str) -> str:
    """The path of a program, preferably of the one unpacked beside the tests."""
    path = shutil.which(name, path=f"{UNPACKED}/usr/bin:{UNPACKED}/usr/sbin:{os.environ['PATH']}")
    return path or decline(f"not installed: {name}")


def require(*names: str) -> None:
    """Go on only if every program is on the search path."""
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        decline(f"not installed: {', '.join(missing)}")


def require_library(name: str) -> None:
    """Go on only if a shared library is found, as programs find their plugins'."""
    try:
        CDLL(name)
    except OSError:
        decline(f"not installed: {name}")


def require_root() -> None:
    """Go on only as a root that may make namespaces, which a container's root may not."""
    if os.geteuid() != 0:
        decline("not run as root")
    if not _may_unshare():
        decline("not allowed to make namespaces")


@cache
def _may_unshare() -> bool:
    return subprocess.run(("unshare", "--mount", "--net", "true"), check=False).returncode == 0


def decline(reason: str) -> NoReturn:
    """Leave the test out for what is missing here."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
