"""What is done to a pair that serves, what is seen of it, and after how many seconds.

A failure is carried out step by step: what is done, then what is seen of it, each time with the
promise of the runbook or the unit that it keeps.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cluster.machines import Machine
from cluster.pairs import ENGINE, Pair, journal


@dataclass(frozen=True)
class Fault:
    """What is done; times count from here."""

    text: str


@dataclass(frozen=True)
class Seen:
    """What is seen, and within how many seconds the bundle promises it; 0 is no promise."""

    text: str
    promised: float = 0


@dataclass(frozen=True)
class Row:
    """What was seen so many seconds after a fault."""

    fault: str
    seen: Seen
    seconds: float


Steps = Iterator[Fault | Seen]
Failure = Callable[[Pair], Steps]

# The unit starts an engine anew after 30 s, and the health check finds out within a minute.
RESTART, MINUTE = 30, 60


def observe(pair: Pair, failure: Failure) -> list[Row]:
    """Carry a failure out to its end, where the pair serves as before."""
    rows: list[Row] = []
    # One that was not carried out to its end may have left it so.
    if not pair.serves():
        pair.start()
        pair.wait(pair.serves)
    # Of starts there are only so many in a few hours; each failure has all of them.
    for machine in (pair.head, pair.worker):
        machine.systemctl("reset-failed", ENGINE)
    fault, start = "", time.monotonic()
    for step in failure(pair):
        if isinstance(step, Fault):
            fault, start = step.text, time.monotonic()
        else:
            rows.append(Row(fault, step, time.monotonic() - start))
    assert pair.serves()
    return rows


@dataclass
class Journal:
    """What a unit says from now on."""

    machine: Machine
    unit: str = ENGINE

    def __post_init__(self) -> None:
        self._before = len(journal(self.machine, self.unit))

    @property
    def new(self) -> str:
        return journal(self.machine, self.unit)[self._before :]


def heals(pair: Pair, promised: float = MINUTE + RESTART) -> Steps:
    pair.wait(pair.serves)
    yield Seen("it serves again, by itself", promised)


def started(machine: Machine) -> str:
    """When the engine's container was started."""
    form = "--format={{.State.StartedAt}}"
    return machine.run("docker", "inspect", form, ENGINE).stdout.strip()


def restarts(machine: Machine) -> int:
    return int(machine.systemctl("show", "--property=NRestarts", "--value", ENGINE))
