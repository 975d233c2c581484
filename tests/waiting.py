"""How long tests wait for other processes."""

import time
from collections.abc import Callable

# Seconds, far beyond what anything takes on a busy machine: this ends what hangs, no more.
PATIENCE = 600.0


def until(true: Callable[[], bool], patience: float = PATIENCE, interval: float = 0.01) -> None:
    """Wait until something holds; seldom asked is what costs more than it waits for."""
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline
        time.sleep(interval)
