"""Cables of simulated nodes can be degraded as much, and for as long, as a test requires."""

import re
from collections.abc import Iterator

import pytest
from bundles import BUNDLES, links
from cluster.cables import Fault, bad
from programs import require, require_root

from generator.verify.namespaces import PROGRAMS, VirtualFabric, fabric

PAIR = next(bundle for bundle in BUNDLES if bundle.name == "pair-llamacpp")
HALF = PAIR.site.head.interfaces[0]
PEER = str(HALF.peers[0].address)
# A full-size frame each way.
BITS = 2 * 8 * 9000


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualFabric]:
    require_root()
    require(*PROGRAMS, "nsenter")
    work = tmp_path_factory.mktemp("cables")
    with fabric(PAIR.copy(work), links(PAIR.site.cables), work) as nodes:
        yield nodes


def fastest(network: VirtualFabric) -> float:
    """Round-trip time of the fastest ping in seconds; 0 if all were lost."""
    size = f"-s {HALF.ping_size} -M do -I {HALF.name}".split()
    done = network.run(
        "spark1", "ping", "-n", "-q", "-c", "3", "-i", "0.01", "-W", "1", *size, PEER
    )
    found = re.search(r"min\S* = ([0-9.]+)/", done.stdout)
    return float(found[1]) / 1000 if found else 0


@pytest.mark.parametrize(
    ("fault", "least"),
    [
        (Fault(), 0),
        (Fault(delay=0.05), 0.1),
        (Fault(bits_per_second=1e6), BITS / 1e6),
        (Fault(loss=1), None),
    ],
    ids=str,
)
def test_cable_with_loss_delay_or_rate(
    fault: Fault, least: float | None, network: VirtualFabric
) -> None:
    with bad(network, "spark1", [HALF.name], fault):
        seconds = fastest(network)
    assert seconds == 0 if least is None else seconds > least
    assert fastest(network) > 0
