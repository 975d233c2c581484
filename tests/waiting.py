"""How long tests wait for other processes."""

import time
from collections.abc import Callable

# Seconds, far more than anything takes on a busy machine: this only ends processes that hang.
PATIENCE = 600.0


def until(true: Callable[[], bool], patience: float = PATIENCE, interval: float = 0.01) -> None:
    """Wait until a condition holds; poll rarely if checking it is expensive."""
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline
        time.sleep(interval)
