"""Failures of the cable of a pair that is serving: pulled, lossy or slow."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from recabling import plug_in, pull, replugged, set_mtu

from cluster import cables
from cluster.machines import Machine
from cluster.observing import MINUTE, RESTART, Failure, Fault, Journal, Seen, Steps, heals, started
from cluster.pairs import HEAD, WORKER, Pair, health, kill
from generator.verify import namespaces

# Bits per second of a half, a thousandth of the real rate: the ib_write_bw.py here reports Mb/s as
# Gb/s. At WHOLE, TCP reaches what verify.py expects, both ways at once; SLOW is half of 1 Gb/s.
WHOLE, SLOW = 200e6, 0.5e6


def link_is_pulled(pair: Pair) -> Steps:
    """TCP just waits: nothing ends because of it."""
    yield from _pulled(pair, "the cable", _halves(pair))


def control_half_is_pulled(pair: Pair) -> Steps:
    """The half that llama.cpp uses; the other half does not take over."""
    yield from _pulled(pair, "the half of the cable with the control plane", _halves(pair)[:1])


def _pulled(pair: Pair, what: str, halves: Sequence[str]) -> Steps:
    log = Journal(pair.worker)
    pair.wait(lambda: health(pair.head) == "healthy")
    yield Fault(f"{what} is pulled")
    pull(pair.network, HEAD, *halves)
    assert _found(pair.head, "link") == [f"no carrier on {name}" for name in halves]
    yield Seen('verify.py: "no carrier on" each half that is')
    pair.wait(lambda: "is gone; this rank ends" in log.new)
    yield Seen('the worker\'s journal: "is gone; this rank ends"', MINUTE)
    pair.wait(lambda: health(pair.head) == "unhealthy" or not pair.answers(HEAD))
    yield Seen("the head is unhealthy, or ends", MINUTE)
    pair.wait(lambda: "no carrier on" in log.new)
    yield Seen('the worker\'s journal: "no carrier on"', MINUTE + RESTART)
    yield Fault(f"{what} is put back")
    plug_in(pair.network, HEAD, *halves)
    yield from heals(pair, 5 * MINUTE)


def cable_is_in_the_other_port(pair: Pair) -> Steps:
    """At the head, whose right port goes dark; the worker reaches a port without addresses."""
    log = Journal(pair.worker)
    halves = _halves(pair)
    yield Fault("the cable is in the other port of the head")
    with ExitStack() as wrong:
        for name, other in zip(halves, namespaces.halves(1), strict=True):
            wrong.enter_context(replugged(pair.network, HEAD, name, other))
        assert _found(pair.head, "link") == [f"no carrier on {name}" for name in halves]
        yield Seen('verify.py of the head: "no carrier on" each half of the right one')
        faults = _found(pair.worker, "peers")
        assert faults == [f"does not answer on {name}" for name in halves]
        yield Seen('verify.py of the worker: "does not answer" on each half')
        pair.wait(lambda: "is gone; this rank ends" in log.new)
        yield Seen('the worker\'s journal: "is gone; this rank ends"', MINUTE)
    yield Fault("the cable is in the right port again")
    yield from heals(pair, 5 * MINUTE)


def mtu_is_wrong(pair: Pair) -> Steps:
    """Small frames pass, so serving may continue; a starting engine waits, and says what for."""
    log = Journal(pair.worker)
    half = _halves(pair)[0]
    yield Fault("the worker's end of a half has an MTU of 1500")
    set_mtu(pair.network, WORKER, half, 1500)
    assert _found(pair.worker, "link") == [f"the MTU of {half} is 1500, not 9000"]
    yield Seen('verify.py of the worker: "the MTU of ... is 1500, not 9000"')
    assert _found(pair.head, "peers") == [f"answers small pings, but not 8972 bytes on {half}"]
    yield Seen('verify.py of the head: "answers small pings, but not 8972 bytes"')
    assert pair.serves()
    yield Seen("a completion whose frames are small")
    yield Fault("the worker's engine is killed, its MTU wrong")
    kill(pair.worker, "ggml-rpc-server")
    pair.wait(lambda: f"the MTU of {half} is 1500, not 9000" in log.new)
    yield Seen("the worker's journal says so, and its unit waits", MINUTE + RESTART)
    assert pair.worker.state() == "activating"
    yield Fault("the MTU is right again")
    set_mtu(pair.network, WORKER, half, 9000)
    yield from heals(pair, 5 * MINUTE)


def half_is_pulled(pair: Pair) -> Steps:
    """The half that llama.cpp does not use: serving continues."""
    half = _halves(pair)[1]
    before = [started(machine) for machine in (pair.head, pair.worker)]
    yield Fault("the half of the cable without the control plane is cut")
    pull(pair.network, HEAD, half)
    assert _found(pair.head, "link") == [f"no carrier on {half}"]
    yield Seen('verify.py: "no carrier on" that half')
    assert pair.serves()
    yield Seen("it goes on serving")
    yield Fault("that half is back")
    plug_in(pair.network, HEAD, half)
    pair.wait(lambda: not _found(pair.head, "link"))
    yield Seen("verify.py finds nothing")
    assert before == [started(machine) for machine in (pair.head, pair.worker)]


def frames_are_lost(pair: Pair) -> Steps:
    """TCP makes up for the loss, RDMA hardly: verify.py reports it before anyone notices."""
    what = "one frame in ten is lost on the cable, each way"
    with cables.bad(pair.network, HEAD, _halves(pair), cables.Fault(loss=0.1)):
        yield Fault(what)
        faults = _found(pair.head, "peers")
        first_words = [fault.partition(" ")[0] for fault in faults]
        assert first_words == ["answers"] * len(_halves(pair)), faults
        yield Seen('verify.py: "answers ... of 40 full frames" on each half')
        yield from _serves_and_heals(pair, what)


def frames_are_late(pair: Pair) -> Steps:
    """As over a long distance or congested switches: every token is delayed, but nothing fails."""
    what = "each frame takes 50 ms more, each way"
    with cables.bad(pair.network, HEAD, _halves(pair), cables.Fault(delay=0.05)):
        yield Fault(what)
        assert _found(pair.head, "peers") == []
        yield Seen("verify.py finds nothing")
        yield from _serves_and_heals(pair, what)


def cable_is_slow(pair: Pair) -> Steps:
    """Serving continues, only slower; only a bandwidth test shows it, and it needs an idle pair."""
    for fault, rate, is_sound in (
        ("the cable carries 200 Mb/s a half, for as many Gb/s", WHOLE, True),
        ("the cable carries 0.5 Mb/s a half, for as many Gb/s", SLOW, False),
    ):
        whole = cables.Fault(bits_per_second=rate)
        with cables.bad(pair.network, HEAD, _halves(pair), whole):
            yield from _serves_and_heals(pair, fault)
            pair.stop()
            yield Fault(f"{fault}, and nothing serves")
            with _measured(pair.worker, f"measured-{rate:.0f}"):
                faults = _found(pair.head, "bandwidth", "--bandwidth")
            are_slow = [" Gb/s " in fault for fault in faults]
            assert are_slow == ([] if is_sound else [True] * 3), faults
            result = "finds nothing" if is_sound else '"... Gb/s to spark2, 184 expected"'
            yield Seen(f"verify.py --bandwidth: {result}")
        pair.start()
        pair.wait(pair.serves)


def _serves_and_heals(pair: Pair, fault: str) -> Steps:
    yield Fault(fault)
    assert pair.serves()
    yield Seen("a completion of 8 tokens")
    yield Fault(f"{fault}, and the worker's engine is killed")
    kill(pair.worker, "ggml-rpc-server")
    pair.wait(lambda: not pair.serves())
    yield from heals(pair, 5 * MINUTE)


def _halves(pair: Pair) -> list[str]:
    return [interface.name for interface in pair.bundle.site.head.interfaces]


def _found(machine: Machine, kind: str, *options: str) -> list[str]:
    """The faults that verify.py finds with checks of one kind, without naming cable and peer."""
    checks: list[dict[str, Any]] = json.loads(
        machine.run("/var/bundle/verify.py", "--json", *options).stdout
    )["checks"]
    failed = [
        check for check in checks if check["status"] == "FAIL" and check["check"].startswith(kind)
    ]
    return [re.sub(r"^cable \d+: (\S+ \(\S+\) )?", "", check["found"]) for check in failed]


@contextmanager
def _measured(machine: Machine, unit: str) -> Iterator[None]:
    """Let a node answer its peers' measurements, in a unit of this name."""
    done = machine.run(
        "systemd-run", f"--unit={unit}", "/var/bundle/verify.py", "--bandwidth-server"
    )
    assert done.returncode == 0, done.stderr
    try:
        yield
    finally:
        machine.systemctl("stop", unit)


ALL: Sequence[Failure] = (
    link_is_pulled,
    control_half_is_pulled,
    half_is_pulled,
    cable_is_in_the_other_port,
    mtu_is_wrong,
    frames_are_lost,
    frames_are_late,
    cable_is_slow,
)
