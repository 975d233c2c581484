"""How long tests wait for other processes."""

import time
from collections.abc import Callable

# Seconds, far beyond what anything takes on a busy machine: this ends what hangs, no more.
PATIENCE = 600.0


def until(true: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
