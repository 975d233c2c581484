"""Carries out failures on a pair that is serving, and measures how soon their effects are seen.

A failure is carried out step by step: a fault, then what is observed, each with the time that the
runbook or the unit promises.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cluster.machines import Machine
from cluster.pairs import ENGINE, Pair, journal


@dataclass(frozen=True)
class Fault:
    """A fault; times count from here."""

    text: str


@dataclass(frozen=True)
class Seen:
    """What must be observed, and within how many promised seconds; 0 means nothing is promised."""

    text: str
    promised: float = 0


@dataclass(frozen=True)
class Row:
    """What was observed, and how many seconds after the fault."""

    fault: str
    seen: Seen
    seconds: float


Steps = Iterator[Fault | Seen]
Failure = Callable[[Pair], Steps]

# The unit restarts an engine after 30 s, and the health check notices within a minute.
RESTART, MINUTE = 30, 60


def observe(pair: Pair, failure: Failure) -> list[Row]:
    """Carry a failure out to its end, when the pair serves as before."""
    rows: list[Row] = []
    # An earlier failure that was interrupted may have left the pair broken.
    if not pair.serves():
        pair.start()
        pair.wait(pair.serves)
    # The number of starts in a few hours is limited; each failure begins with a fresh count.
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
    """What a unit logs from now on."""

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
