"""Answers whether engines start, each in a process of its own.

The Python of an engine executes it, so it needs nothing else.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

# The error that ends a start with these arguments; empty if there is none.
Verdict = Callable[[list[str]], str]


def answer(verdict: Verdict) -> None:
    """Write the verdict on each start that standard input asks about."""
    for place, line in enumerate(sys.stdin):
        start = json.loads(line)
        if not place:
            # Modules imported here are shared by all processes.
            verdict(start["words"][:1])
        print("VERDICT " + json.dumps(_alone(verdict, start)), flush=True)


def _alone(verdict: Verdict, start: dict[str, Any]) -> str:
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.environ.update(start["env"])
        os.write(writer, verdict(start["words"]).encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    return text if os.waitpid(child, 0)[1] == 0 else "the process died"
