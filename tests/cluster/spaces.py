"""Namespaces that end with their first process: how to start it, and how to enter them.

Network namespaces that outlive a process have names; `generator.verify.namespaces` creates and
deletes them.
"""

import subprocess
from collections.abc import Sequence
from typing import Any


def first_process(
    spaces: Sequence[str], script: str, *words: str, within: Sequence[str] = (), **options: Any
) -> "subprocess.Popen[bytes]":
    """Start a script as the first process of new namespaces, including one of processes.

    Killing it kills everything that runs in them, and so does killing the thread that called this:
    a run of the tests that is killed leaves no systemd behind, and no Docker. `within` is a prefix
    that enters a namespace.
    """
    bound = ("setpriv", "--pdeathsig=KILL")
    unshare = ("unshare", *(f"--{space}" for space in spaces), "--pid", "--fork", "--kill-child")
    return subprocess.Popen([*bound, *within, *unshare, "bash", "-c", script, *words], **options)


def entering(process: int, *spaces: str) -> tuple[str, ...]:
    """The prefix of a program that runs in the namespaces of a process."""
    return ("nsenter", f"--target={process}", *(f"--{space}" for space in spaces))
