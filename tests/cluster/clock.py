"""A settable time of day for each node, although the kernel has only one.

A library is preloaded into every dynamically linked program of a node and its containers: systemd,
the journal, bash, Python, curl, vLLM. Statically linked programs, and those in Go, call the kernel
directly and do not see the change: the llama.cpp that is built here, Docker, containerd. A program
that sleeps until a time of day sleeps in the kernel, and is not woken.
"""

import subprocess
from pathlib import Path

from cluster.llama_cpp import cache
from cluster.machines import Machine

SOURCE = Path(__file__).with_name("clock.c")
# A folder that a node shares with its containers.
_FILE = "/var/cache/sparkgen/clock"
_LIBRARY = "opt/clock.so"


def library() -> Path:
    """The library, rebuilt if its source is newer."""
    built = cache() / "clock.so"
    if not built.exists() or built.stat().st_mtime < SOURCE.stat().st_mtime:
        built.parent.mkdir(parents=True, exist_ok=True)
        define = f'-DCLOCK_FILE="{_FILE}"'
        options = ("-shared", "-fPIC", "-O2", "-Wall", "-Werror", define)
        subprocess.run(("cc", *options, "-o", str(built), str(SOURCE)), check=True)
    return built


def add_clock(root: Path) -> None:
    """Give a node's tree, or an image, a settable clock."""
    for folder in ("etc", "opt"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / _LIBRARY).write_bytes(library().read_bytes())
    (root / _LIBRARY).chmod(0o755)
    (root / "etc/ld.so.preload").write_text(f"/{_LIBRARY}\n")


def set_clock(machine: Machine, seconds: int) -> None:
    """Set a node's clock this many seconds ahead of this machine's, or behind it."""
    machine.run("sh", "-c", f"mkdir -p {Path(_FILE).parent} && echo {seconds} >{_FILE}")
