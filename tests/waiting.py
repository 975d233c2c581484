"""How long tests wait for other processes."""

import time
from collections.abc import Callable

# Seconds, far more than anything takes on a busy machine: this only ends processes that hang.
PATIENCE = 600.0


# Most seconds between two checks of a condition.
_MOST = 0.5


def until(true: Callable[[], bool], patience: float = PATIENCE, interval: float = 0.01) -> None:
    """Wait until a condition holds.

    Checks that take long, such as starting a program, are made less often: most of a processor is
    left to what is waited for.
    """
    deadline = time.monotonic() + patience
    while not _holds(true, interval):
        assert time.monotonic() < deadline


def _holds(true: Callable[[], bool], interval: float) -> bool:
    start = time.monotonic()
    if true():
        return True
    taken = time.monotonic() - start
    time.sleep(max(interval, min(3 * taken, _MOST)))
    return False
