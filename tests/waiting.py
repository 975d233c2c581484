"""How long tests wait for other processes, and how much of a processor their own work may take."""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

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


# CPU seconds that the work of `_slowness` takes on a quiet machine.
_QUIET = 0.025


def computed_within(seconds: float, work: Callable[[], Result]) -> Result:
    """What the work returns, if it takes no more of a quiet processor than this.

    On a busy machine, threads of one core slow each other down, and CPU time grows with the load.
    """
    for _ in range(3):
        began = time.process_time()
        result = work()
        taken = time.process_time() - began
        if taken < seconds or taken < seconds * _slowness():
            return result
    raise AssertionError(f"{taken:.1f} s of CPU time, and at most {seconds} s are allowed")


def _slowness() -> float:
    """How many times as long as on a quiet machine the same work takes now."""
    began = time.process_time()
    sum(len(str(number)) for number in range(200_000))
    return (time.process_time() - began) / _QUIET
