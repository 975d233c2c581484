"""The programs that read a bundle's files, and where Debian and Ubuntu have them."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from generator.resources import rows

PACKAGES: Mapping[str, str] = {row[0]: row[1] for row in rows("programs")}

# The folders of daemons, which a user's search path leaves out.
_SYSTEM = "/usr/local/sbin:/usr/sbin:/sbin"
_TIMEOUT = 60


class Missing(Exception):  # noqa: N818 (not an error: something is not installed)
    """A program that is not installed; its text is the name in PACKAGES."""


def found(name: str) -> str:
    """The path of a program; raises Missing."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM}")
    if path is None:
        raise Missing(name)
    return path


def compose() -> tuple[str, ...]:
    """Docker's Compose 2, as a plugin or standalone; version 1 reads other files."""
    for words in (("docker-compose",), ("docker", "compose")):
        if shutil.which(words[0]):
            done = run(*words, "version", "--short")
            if done.returncode == 0 and not done.stdout.startswith(("1.", "v1.")):
                return words
    raise Missing("compose")


def run(
    *argv: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; taking longer than a minute counts as failure."""
    try:
        return subprocess.run(
            argv, cwd=cwd, env=env, capture_output=True, text=True, errors="replace",
            timeout=_TIMEOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        words: Sequence[str] = [str(word) for word in argv]
        return subprocess.CompletedProcess(words, 1, "", f"no end after {_TIMEOUT} s")
