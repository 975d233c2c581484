"""Failures on the nodes of a pair that is serving, and how it recovers by itself."""

from collections.abc import Sequence

from recabling import pull

from cluster.machines import Machine
from cluster.observing import (
    MINUTE,
    Failure,
    Fault,
    Journal,
    Seen,
    Steps,
    heals,
    restarts,
    started,
)
from cluster.pairs import ENGINE, HEAD, WORKER, Pair, health, journal, kill, memory

# Folders that a node and its Docker engine write to.
DISKS = ("/var", "/mnt/docker")


def rank_dies(pair: Pair) -> Steps:
    log = Journal(pair.worker)
    yield Fault("the worker's engine is killed")
    kill(pair.worker, "ggml-rpc-server")
    pair.wait(lambda: "rank 1 has ended" in log.new)
    yield Seen('the worker\'s journal: "rank 1 has ended"', 2 * MINUTE)
    yield from heals(pair)


def head_dies(pair: Pair) -> Steps:
    worker_started = started(pair.worker)
    yield Fault("the head's engine is killed")
    kill(pair.head, "llama-server")
    pair.wait(lambda: not pair.answers())
    yield Seen("the API is gone")
    yield from heals(pair)
    assert started(pair.worker) == worker_started


def container_is_killed(pair: Pair) -> Steps:
    yield from _container_is_killed(pair, pair.worker, "the worker's")


def head_container_is_killed(pair: Pair) -> Steps:
    yield from _container_is_killed(pair, pair.head, "the head's")


def _container_is_killed(pair: Pair, machine: Machine, whose: str) -> Steps:
    yield Fault(f"{whose} container is killed")
    machine.run("docker", "kill", ENGINE)
    assert not pair.serves()
    yield Seen("a request fails")
    yield from heals(pair)


def docker_is_killed(pair: Pair) -> Steps:
    yield from _docker_is_killed(pair, pair.worker, "the worker's")


def head_docker_is_killed(pair: Pair) -> Steps:
    yield from _docker_is_killed(pair, pair.head, "the head's")


def _docker_is_killed(pair: Pair, machine: Machine, whose: str) -> Steps:
    yield Fault(f"{whose} Docker engine is killed")
    machine.systemctl("kill", "--signal=KILL", "--kill-who=main", "docker")
    pair.wait(lambda: not pair.serves())
    yield Seen("a request fails")
    yield from heals(pair)


def docker_is_restarted(pair: Pair) -> Steps:
    yield from _docker_is_restarted(pair, pair.worker, "the worker's")


def head_docker_is_restarted(pair: Pair) -> Steps:
    yield from _docker_is_restarted(pair, pair.head, "the head's")


def _docker_is_restarted(pair: Pair, machine: Machine, whose: str) -> Steps:
    yield Fault(f"{whose} Docker engine is restarted")
    machine.systemctl("restart", "docker")
    yield from heals(pair)


def worker_loses_power(pair: Pair) -> Steps:
    pair.wait(lambda: health(pair.head) == "healthy")
    yield Fault("the worker loses its power")
    pair.rack.turn_off(WORKER)
    pair.wait(lambda: health(pair.head) == "unhealthy" or not pair.answers(HEAD))
    yield Seen("the head is unhealthy, or ends", MINUTE)
    yield Fault("the worker has power again")
    pair.rack.turn_on(WORKER)
    yield from heals(pair, 5 * MINUTE)


def head_loses_power(pair: Pair) -> Steps:
    """The worker ends by itself: otherwise its connection would stay open forever."""
    log = Journal(pair.worker)
    yield Fault("the head loses its power")
    pair.rack.turn_off(HEAD)
    pair.wait(lambda: "is gone; this rank ends" in log.new)
    yield Seen('the worker\'s journal: "is gone; this rank ends"', MINUTE)
    yield Fault("the head has power again")
    pair.rack.turn_on(HEAD)
    yield from heals(pair, 5 * MINUTE)


def head_is_back_first(pair: Pair) -> Steps:
    """The head waits for its cable; that does not count as a failed start."""
    yield from _power(pair, HEAD, WORKER)


def worker_is_back_first(pair: Pair) -> Steps:
    yield from _power(pair, WORKER, HEAD)


def _power(pair: Pair, first: str, last: str) -> Steps:
    for name in (HEAD, WORKER):
        pair.rack.turn_off(name)
    yield Fault(f"both have lost power, and {first} is on again")
    machine = pair.rack.turn_on(first)
    # The cable's other end has no carrier.
    halves = [interface.name for interface in pair.bundle.site.head.interfaces]
    pull(pair.network, first, *halves)
    pair.wait(lambda: "no carrier on" in journal(machine) or "does not answer" in journal(machine))
    yield Seen(f"the journal of {first} names the cable, and its unit waits")
    assert machine.state() == "activating"
    yield Fault(f"{last} is on again, too")
    pair.rack.turn_on(last)
    yield from heals(pair, 5 * MINUTE)
    assert restarts(machine) == 0


def memory_runs_out(pair: Pair) -> Steps:
    yield from _memory_runs_out(pair, pair.worker, "worker")


def head_memory_runs_out(pair: Pair) -> Steps:
    yield from _memory_runs_out(pair, pair.head, "head")


def _memory_runs_out(pair: Pair, machine: Machine, who: str) -> Steps:
    """The guard kills the engine before the node freezes, and nothing restarts it."""
    log = Journal(machine, "sparkgen-guard")
    yield Fault(f"the {who} has 1 GiB of memory left")
    _set_memory(machine, 1)
    pair.wait(lambda: "killing an engine" in log.new)
    yield Seen('the guard\'s journal: "killing an engine"')
    pair.wait(lambda: machine.state() in {"failed", "inactive"})
    yield Seen(f"the {who}'s unit has ended, and is not started again")
    assert not pair.serves()
    assert machine.state() in {"failed", "inactive"}
    _set_memory(machine, 64)
    yield Fault(f"the {who}'s memory is free again, and the engine is started as in the runbook")
    pair.start()
    yield from heals(pair)


def disk_is_full(pair: Pair) -> Steps:
    yield from _disk_is_full(pair, pair.head, "head", "llama-server")


def worker_disk_is_full(pair: Pair) -> Steps:
    yield from _disk_is_full(pair, pair.worker, "worker", "ggml-rpc-server")


def _disk_is_full(pair: Pair, machine: Machine, who: str, program: str) -> Steps:
    """A loaded model keeps serving, and starting an existing container needs no disk space."""
    before = started(machine)
    yield Fault(f"the {who}'s disks are full")
    for folder in DISKS:
        done = machine.run("sh", "-c", f"cat /dev/zero >{folder}/filling")
        assert "No space left" in done.stderr
    assert pair.serves()
    assert started(machine) == before
    yield Seen("it goes on serving")
    yield Fault(f"the {who}'s engine is killed, and its disks are full")
    kill(machine, program)
    pair.wait(lambda: not pair.serves())
    yield Seen("a request fails")
    yield from heals(pair)
    for folder in DISKS:
        machine.run("rm", f"{folder}/filling")


def _set_memory(machine: Machine, gib: int) -> None:
    """Written in place: the file is bind-mounted over the kernel's."""
    machine.run("sh", "-c", f"echo '{memory(gib).strip()}' >/opt/meminfo")


ALL: Sequence[Failure] = (
    rank_dies,
    head_dies,
    container_is_killed,
    head_container_is_killed,
    docker_is_killed,
    head_docker_is_killed,
    docker_is_restarted,
    head_docker_is_restarted,
    worker_loses_power,
    head_loses_power,
    head_is_back_first,
    worker_is_back_first,
    memory_runs_out,
    head_memory_runs_out,
    disk_is_full,
    worker_disk_is_full,
)
