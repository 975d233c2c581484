"""A virtual environment with LiteLLM for the gateway tests, created once from litellm.txt.

    python tests/litellm_environment.py

It is kept with the user's other caches, so that all checkouts share it.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from package_index import index_of_pip

REQUIREMENTS = Path(__file__).parent / "litellm.txt"
# The hashes are those of the wheels for this version.
_PYTHON, _VERSION, _MACHINE = "python3.11", (3, 11), "x86_64"


def place() -> Path:
    """The environment's folder, whether or not it exists; each list of requirements has its own."""
    if folder := os.environ.get("SPARKGEN_LITELLM"):
        return Path(folder)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    requirements = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    python = platform.python_version() if _is_this_python() else "3.11"
    return cache / "sparkgen" / f"litellm-{python}-{requirements}"


def _is_this_python() -> bool:
    """Whether LiteLLM runs with the Python that runs the tests.

    Debian's own 3.11.2 crashes now and then while it frees what LiteLLM's failed requests leave.
    """
    return sys.version_info[:2] == _VERSION


def _python() -> str | None:
    if _is_this_python():
        return sys.executable
    return shutil.which(_PYTHON, path=f"/usr/bin:{os.environ['PATH']}")


def make() -> None:
    """Create it unless it exists; a failure leaves nothing half made."""
    target = place()
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "litellm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            fresh = Path(folder) / "fresh"
            _install(fresh)
            fresh.rename(target)


def _install(folder: Path) -> None:
    python = _python()
    if python is None or platform.machine() != _MACHINE:
        sys.exit(f"LiteLLM of {REQUIREMENTS.name} needs {_PYTHON} on {_MACHINE}")
    subprocess.run((python, "-m", "venv", "--without-pip", folder), check=True)
    failures = []
    for command in _installers(folder / "bin/python"):
        if not (failure := _failure(command)):
            return
        failures.append(failure)
    sys.exit("\n".join(failures))


def _installers(python: Path) -> Iterator[tuple[str | Path, ...]]:
    """With uv, if installed, in a tenth of pip's time; or with pip, which takes several indexes."""
    options = ("--no-deps", "--require-hashes", "--requirement", REQUIREMENTS)
    uv = Path(sys.executable).with_name("uv")
    if uv.exists():
        yield (uv, "pip", "install", "--python", python, *options)
    yield (sys.executable, "-m", "pip", "--python", python, "install", *options)


def _failure(command: Sequence[str | Path]) -> str:
    """The output of a command if it fails, or nothing."""
    index = index_of_pip().get("UV_DEFAULT_INDEX")
    env = os.environ | ({"UV_DEFAULT_INDEX": index} if index else {})
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


if __name__ == "__main__":
    make()
