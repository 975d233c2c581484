"""Clock jumps while a pair serves, or while its engines wait for each other."""

import time
from collections.abc import Sequence

from cluster.clock import set_clock
from cluster.machines import Machine
from cluster.observing import (
    MINUTE,
    RESTART,
    Failure,
    Fault,
    Journal,
    Seen,
    Steps,
    heals,
    restarts,
    started,
)
from cluster.pairs import ENGINE, Pair, health, inspected, kill

HOUR = 3600
# Seconds by which an engine that gives up would have: it checks every five.
LONG = 20


def clock_goes_forward(pair: Pair) -> Steps:
    yield from _jumps(pair, HOUR, "an hour forward")


def clock_goes_back(pair: Pair) -> Steps:
    yield from _jumps(pair, -HOUR, "an hour back")


def _jumps(pair: Pair, seconds: int, way: str) -> Steps:
    machines = (pair.head, pair.worker)
    pair.wait(lambda: health(pair.head) == "healthy")
    before = [started(machine) for machine in machines]
    yield Fault(f"the clocks of both nodes are set {way}")
    for machine in machines:
        set_clock(machine, seconds)
    assert pair.serves()
    yield Seen("it goes on serving")
    for _ in range(2):
        _await_check(pair)
    assert health(pair.head) == "healthy"
    yield Seen("health is asked for twice more, and is healthy")
    assert [started(machine) for machine in machines] == before
    assert [restarts(machine) for machine in machines] == [0, 0]
    log = Journal(pair.worker)
    yield Fault(f"the worker's engine is killed, its clock set {way}")
    kill(pair.worker, "ggml-rpc-server")
    pair.wait(lambda: "rank 1 has ended" in log.new)
    assert abs(_stamped(pair.worker) - time.time() - seconds) < 10 * MINUTE
    yield Seen('the worker\'s journal: "rank 1 has ended", at the new time', 2 * MINUTE)
    yield from heals(pair)
    yield from _while_waiting(pair, -seconds, way)
    set_clock(pair.worker, 0)


def _while_waiting(pair: Pair, seconds: int, way: str) -> Steps:
    """As when a node's clock is first set after boot: an engine that waits must not give up."""
    pair.stop()
    set_clock(pair.head, seconds)
    pair.head.systemctl("start", "--no-block", ENGINE)
    pair.wait(lambda: _waits(pair.head))
    yield Fault(f"the head's clock is set {way} while it waits for its worker")
    set_clock(pair.head, 0)
    time.sleep(LONG)
    assert _waits(pair.head)
    yield Seen("it waits on")
    pair.worker.systemctl("start", "--no-block", ENGINE)
    yield from heals(pair, MINUTE + RESTART)


def _waits(machine: Machine) -> bool:
    return "llama.sh" in machine.run("docker", "top", ENGINE, "-eo", "pid,args").stdout


def _await_check(pair: Pair) -> None:
    """Wait until Docker has checked the head's health once more."""
    before = _last_check(pair.head)
    pair.wait(lambda: _last_check(pair.head) != before)


def _last_check(machine: Machine) -> str:
    return str(inspected(machine)["State"]["Health"]["Log"][-1]["Start"])


def _stamped(machine: Machine) -> int:
    """The time of the unit's latest line in the journal."""
    options = ("--lines=1", "--output=short-unix", "--no-pager", f"--unit={ENGINE}")
    return int(float(machine.run("journalctl", *options).stdout.split()[0]))


ALL: Sequence[Failure] = (clock_goes_forward, clock_goes_back)
