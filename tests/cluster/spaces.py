"""Namespaces that end with their first process: how it is started, and how others enter them.

Those of networks that outlive a process have names; `generator.verify.namespaces` makes and ends
them.
"""

import subprocess
from collections.abc import Sequence
from typing import Any


def first_process(
    spaces: Sequence[str], script: str, *words: str, within: Sequence[str] = (), **options: Any
) -> "subprocess.Popen[bytes]":
    """Start a script as the first process of new namespaces, of processes too.

    Killed, it takes with it all that runs in them. `within` is a prefix that leads there.
    """
    unshare = ("unshare", *(f"--{space}" for space in spaces), "--pid", "--fork", "--kill-child")
    return subprocess.Popen([*within, *unshare, "bash", "-c", script, *words], **options)


def entering(process: int, *spaces: str) -> tuple[str, ...]:
    """The prefix of a program that runs in namespaces of a process."""
    return ("nsenter", f"--target={process}", *(f"--{space}" for space in spaces))
