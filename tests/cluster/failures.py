"""What goes wrong on a pair that serves, what is seen of it, and when it serves again.

Each failure is carried out step by step: what is done, then what is seen of it, each time with the
promise of the runbook or the unit that it keeps.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from machines import Machine

from cluster.pairs import ENGINE, HEAD, WORKER, Pair, health, journal, kill, memory


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
# What a node writes, and what its Docker engine does.
DISKS = ("/var", "/mnt/docker")


def observe(pair: Pair, failure: Failure) -> list[Row]:
    """Carry a failure out to its end, where the pair serves as before."""
    rows: list[Row] = []
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


def rank_dies(pair: Pair) -> Steps:
    said = Journal(pair.worker)
    yield Fault("the worker's engine is killed")
    kill(pair.worker, "ggml-rpc-server")
    pair.wait(lambda: "rank 1 has ended" in said.new)
    yield Seen('the worker\'s journal: "rank 1 has ended"', 2 * MINUTE)
    yield from _heals(pair)


def head_dies(pair: Pair) -> Steps:
    worker_started = started(pair.worker)
    yield Fault("the head's engine is killed")
    kill(pair.head, "llama-server")
    pair.wait(lambda: not pair.answers())
    yield Seen("the API is gone")
    yield from _heals(pair)
    assert started(pair.worker) == worker_started


def container_is_killed(pair: Pair) -> Steps:
    yield Fault("the worker's container is killed")
    pair.worker.run("docker", "kill", ENGINE)
    assert not pair.serves()
    yield Seen("a request fails")
    yield from _heals(pair)


def docker_is_killed(pair: Pair) -> Steps:
    yield Fault("the worker's Docker engine is killed")
    pair.worker.systemctl("kill", "--signal=KILL", "--kill-who=main", "docker")
    pair.wait(lambda: not pair.serves())
    yield Seen("a request fails")
    yield from _heals(pair)


def docker_is_restarted(pair: Pair) -> Steps:
    yield Fault("the worker's Docker engine is restarted")
    pair.worker.systemctl("restart", "docker")
    yield from _heals(pair)


def link_is_pulled(pair: Pair) -> Steps:
    """Nothing of it is ended by TCP, which waits."""
    said = Journal(pair.worker)
    halves = [own.name for own in pair.bundle.site.head.interfaces]
    pair.wait(lambda: health(pair.head) == "healthy")
    yield Fault("the cable is pulled")
    pair.network.pull(HEAD, *halves)
    assert {f"no carrier on {name}" for name in halves} <= set(_verified(pair.head))
    yield Seen('verify.sh: "no carrier on" each half')
    pair.wait(lambda: "is gone; this rank ends" in said.new)
    yield Seen('the worker\'s journal: "is gone; this rank ends"', MINUTE)
    pair.wait(lambda: health(pair.head) == "unhealthy" or not pair.answers())
    yield Seen("the head is unhealthy, or ends", MINUTE)
    pair.wait(lambda: "no carrier on" in said.new)
    yield Seen('the worker\'s journal: "no carrier on"', MINUTE + RESTART)
    yield Fault("the cable is put back")
    pair.network.plug_in(HEAD, *halves)
    yield from _heals(pair, 5 * MINUTE)


def half_is_pulled(pair: Pair) -> Steps:
    """The half that llama.cpp has nothing on: what serves goes on."""
    half = pair.bundle.site.head.interfaces[1].name
    before = [started(machine) for machine in (pair.head, pair.worker)]
    yield Fault("the half of the cable without the control plane is cut")
    pair.network.pull(HEAD, half)
    assert _verified(pair.head) == [f"no carrier on {half}"]
    yield Seen('verify.sh: "no carrier on" that half')
    assert pair.serves()
    yield Seen("it goes on serving")
    yield Fault("that half is back")
    pair.network.plug_in(HEAD, half)
    pair.wait(lambda: not _verified(pair.head))
    yield Seen("verify.sh finds nothing")
    assert before == [started(machine) for machine in (pair.head, pair.worker)]


def worker_loses_power(pair: Pair) -> Steps:
    pair.wait(lambda: health(pair.head) == "healthy")
    yield Fault("the worker loses its power")
    pair.rack.turn_off(WORKER)
    pair.wait(lambda: health(pair.head) == "unhealthy" or not pair.answers(HEAD))
    yield Seen("the head is unhealthy, or ends", MINUTE)
    yield Fault("the worker has power again")
    pair.rack.turn_on(WORKER)
    yield from _heals(pair, 5 * MINUTE)


def head_is_back_first(pair: Pair) -> Steps:
    """The head waits for its cable, and that is no failed start."""
    yield from _power(pair, HEAD, WORKER)


def worker_is_back_first(pair: Pair) -> Steps:
    yield from _power(pair, WORKER, HEAD)


def _power(pair: Pair, first: str, last: str) -> Steps:
    for name in (HEAD, WORKER):
        pair.rack.turn_off(name)
    yield Fault(f"both have lost power, and {first} is on again")
    machine = pair.rack.turn_on(first)
    # The other end of a cable is dark.
    halves = [own.name for own in pair.bundle.site.head.interfaces]
    pair.network.pull(first, *halves)
    pair.wait(lambda: "no carrier on" in journal(machine) or "does not answer" in journal(machine))
    yield Seen(f"the journal of {first} names the cable, and its unit waits")
    assert machine.state() == "activating"
    yield Fault(f"{last} is on again, too")
    pair.rack.turn_on(last)
    yield from _heals(pair, 5 * MINUTE)
    assert _restarts(machine) == 0


def memory_runs_out(pair: Pair) -> Steps:
    """The guard ends the engine before the node freezes, and nothing starts it again."""
    said = Journal(pair.worker, "sparkgen-guard")
    yield Fault("the worker has 1 GiB of memory left")
    _tell_memory(pair.worker, 1)
    pair.wait(lambda: "killing an engine" in said.new)
    yield Seen('the guard\'s journal: "killing an engine"')
    pair.wait(lambda: pair.worker.state() in {"failed", "inactive"})
    yield Seen("the worker's unit has ended, and is not started again")
    assert not pair.serves()
    assert pair.worker.state() in {"failed", "inactive"}
    _tell_memory(pair.worker, 64)
    yield Fault("memory is free again, and the engine is started as in the runbook")
    pair.start()
    yield from _heals(pair)


def packets_are_lost(pair: Pair) -> Steps:
    """TCP makes up for it: what serves goes on, only slower."""
    drop = ("INPUT", "-p", "tcp", "-i", pair.bundle.site.head.interfaces[0].name)
    some = ("-m", "statistic", "--mode", "random", "--probability", "0.05", "-j", "DROP")
    yield Fault("one packet in twenty is lost on the cable")
    pair.worker.run("iptables", "-A", *drop, *some)
    assert pair.serves()
    yield Seen("a completion")
    pair.worker.run("iptables", "-D", *drop, *some)


def disk_is_full(pair: Pair) -> Steps:
    """What is loaded serves on, and a container that is there needs no room to start."""
    before = started(pair.head)
    yield Fault("the head's disks are full")
    for folder in DISKS:
        done = pair.head.run("sh", "-c", f"cat /dev/zero >{folder}/filling")
        assert "No space left" in done.stderr
    assert pair.serves()
    assert started(pair.head) == before
    yield Seen("it goes on serving")
    yield Fault("the head's engine is killed, and its disks are full")
    kill(pair.head, "llama-server")
    pair.wait(lambda: not pair.answers())
    yield Seen("the API is gone")
    yield from _heals(pair)
    for folder in DISKS:
        pair.head.run("rm", f"{folder}/filling")


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


def _heals(pair: Pair, promised: float = MINUTE + RESTART) -> Steps:
    pair.wait(pair.serves)
    yield Seen("it serves again, by itself", promised)


def started(machine: Machine) -> str:
    """When the engine's container was started."""
    form = "--format={{.State.StartedAt}}"
    return machine.run("docker", "inspect", form, ENGINE).stdout.strip()


def _restarts(machine: Machine) -> int:
    return int(machine.systemctl("show", "--property=NRestarts", "--value", ENGINE))


def _verified(machine: Machine) -> list[str]:
    """What verify.sh says of cables without a carrier."""
    said = machine.run("/var/bundle/verify.sh").stdout
    words = (line.partition("no carrier on ")[2] for line in said.splitlines())
    return [f"no carrier on {name.partition('.')[0].split()[0]}" for name in words if name]


def _tell_memory(machine: Machine, gib: int) -> None:
    """In place: the file is mounted over the kernel's."""
    machine.run("sh", "-c", f"echo '{memory(gib).strip()}' >/opt/meminfo")


# Those that take a stand-in for the engine no longer than the unit takes to start it anew.
QUICK: Sequence[Failure] = (
    rank_dies,
    docker_is_restarted,
    half_is_pulled,
    memory_runs_out,
)
ALL: Sequence[Failure] = (
    rank_dies,
    head_dies,
    container_is_killed,
    docker_is_killed,
    docker_is_restarted,
    link_is_pulled,
    half_is_pulled,
    packets_are_lost,
    worker_loses_power,
    head_is_back_first,
    worker_is_back_first,
    memory_runs_out,
    disk_is_full,
)
