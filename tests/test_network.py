"""The fabric of every bundle works as cabled, and wait-fabric.sh reports what is wrong."""

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from bundles import BUNDLES, Bundle, links, representatives
from draws import MANY
from programs import require, require_root
from racks import ring_text
from recabling import set_mtu, unplug
from waiting import PATIENCE

from generator.site import Site
from generator.verify.namespaces import PROGRAMS, VirtualFabric, VirtualLink, fabric, halves

FABRICS = {bundle.name: bundle for bundle in BUNDLES if bundle.site.has_fabric}
# The first of the bundles that address the same cables alike.
DISTINCT = {
    tuple(
        (node.name, str(interface.address), interface.name, interface.mtu)
        for node in b.site.nodes
        for interface in node.interfaces
    ): b
    for b in reversed(FABRICS.values())
}
RINGS = [bundle for bundle in DISTINCT.values() if bundle.site.kind == "ring"]

# The ring of the faults below, and the two ends of the first half of its first cable.
LAB_MESH = FABRICS["lab-mesh"]
NEAR, FAR = "enp1s0f0np0", "enp1s0f1np1"
FAR_ADDRESS = "192.168.177.12"


@contextmanager
def running(
    bundle: Bundle, trees: Mapping[str, Path], work: Path, cabling: Sequence[VirtualLink] = ()
) -> Iterator[VirtualFabric]:
    """The nodes of a bundle that have cables, connected as its site says or as given."""
    require(*PROGRAMS)
    require_root()
    cabled = {node.name: trees[node.name] for node in bundle.site.nodes if node.interfaces}
    with fabric(cabled, cabling or links(bundle.site.cables), work) as nodes:
        yield nodes


@pytest.fixture
def lab_mesh(tmp_path: Path) -> Iterator[VirtualFabric]:
    with running(LAB_MESH, LAB_MESH.copy(tmp_path), tmp_path) as nodes:
        yield nodes


def script(nodes: VirtualFabric, node: str, limit: int) -> tuple[str, str]:
    return str(nodes.trees[node] / "opt/sparkgen/wait-fabric.sh"), str(limit)


def faults(nodes: VirtualFabric, node: str, limit: int = 0) -> list[str]:
    """The faults that wait-fabric.sh reports on a node, one per line; empty if all is well."""
    done = nodes.run(node, *script(nodes, node, limit))
    if done.returncode == 0:
        assert (done.stdout, done.stderr) == (f"the fabric of {node} is ready\n", "")
        return []
    head, *lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert head == f"the fabric of {node} is not ready after {limit} s:"
    assert lines
    return lines


def test_forever_waits_and_reports_faults_once(lab_mesh: VirtualFabric, tmp_path: Path) -> None:
    """A fault is reported once, and the wait ends when it is gone."""
    program, _ = script(lab_mesh, "spark1", 0)
    set_mtu(lab_mesh, "spark1", "enp1s0f0np0", 1500)
    with (tmp_path / "log").open("w+") as log:
        argv = lab_mesh.command("spark1", program, "--forever")
        with subprocess.Popen(argv, stdout=log, stderr=log) as waiting:
            with pytest.raises(subprocess.TimeoutExpired):
                waiting.wait(6)
            set_mtu(lab_mesh, "spark1", "enp1s0f0np0", 9000)
            assert waiting.wait(20) == 0
        log.seek(0)
        assert log.read().splitlines() == [
            "the fabric of spark1 is not ready yet:",
            "cable 1: the MTU of enp1s0f0np0 is 1500, not 9000",
            "the fabric of spark1 is ready",
        ]


def all_faults(nodes: VirtualFabric) -> dict[str, list[str]]:
    """The faults of every node, all checked at once."""
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda node: faults(nodes, node), nodes.trees)
        return dict(zip(nodes.trees, found, strict=True))


def unanswered(site: Site, *silent: str) -> dict[str, list[str]]:
    """The faults of every node when these addresses do not answer."""
    return {
        node.name: sorted(
            f"cable {interface.cable}: {peer.node} ({peer.address}) does not answer "
            f"{interface.ping_size} bytes on {interface.name}"
            for interface in node.interfaces
            for peer in interface.peers
            if str(peer.address) in silent
        )
        for node in site.nodes
    }


def fabric_parts(bundle: Bundle) -> set[object]:
    """What distinguishes fabrics, each with their kind: sizes, interfaces, MTUs and peers."""
    site = bundle.site
    parts: set[object] = {len(site.nodes), len(site.cables)}
    for node in site.nodes:
        parts |= {(one.name, one.mtu, len(one.peers)) for one in node.interfaces}
        parts.add((len(node.interfaces), node.management is None))
    return {(site.kind, part) for part in parts}


@pytest.mark.drawn
@pytest.mark.parametrize("bundle", representatives([*DISTINCT.values()], fabric_parts), ids=str)
def test_fabric_works_and_every_lost_address_is_reported(bundle: Bundle, tmp_path: Path) -> None:
    site = bundle.site
    ports = [port for cable in site.cables for port in cable.ports]
    cabled = {(port.node, name) for port in ports for name in halves(port.port)}
    addressed = {
        (node.name, interface.name) for node in site.nodes for interface in node.interfaces
    }
    with running(bundle, bundle.copy(tmp_path), tmp_path) as nodes:
        assert (
            nodes._bridges.keys() - {plug for plug, _ in nodes._addresses()} == cabled - addressed
        )
        assert nodes.ping_all() == []
        assert nodes.arp_flux() == []
        assert all_faults(nodes) == {node: [] for node in nodes.trees}


@pytest.fixture(params=range(4, 9) if MANY > 1 else (4, 5, 8))
def long_ring(request: pytest.FixtureRequest, tmp_path: Path) -> Bundle:
    """A ring in which most nodes are not neighbors."""
    file = tmp_path / "ring.yaml"
    file.write_text(ring_text(request.param))
    return Bundle(f"ring-of-{request.param}", file)


@pytest.mark.parametrize("bundle", RINGS, ids=str)
def test_swapped_cables(bundle: Bundle, tmp_path: Path) -> None:
    check_swapped_cables_are_reported(bundle, tmp_path)


def test_long_ring(long_ring: Bundle, tmp_path: Path) -> None:
    test_fabric_works_and_every_lost_address_is_reported(long_ring, tmp_path)


def test_swapped_cables_of_a_long_ring(long_ring: Bundle, tmp_path: Path) -> None:
    check_swapped_cables_are_reported(long_ring, tmp_path)


def test_missing_cable_of_a_long_ring(long_ring: Bundle, tmp_path: Path) -> None:
    site = long_ring.site
    there = links(site.cables)[:-1]
    missing = site.cables[-1].number
    with running(long_ring, long_ring.copy(tmp_path), tmp_path, there) as nodes:
        assert nodes.ping_all() == []
        assert all_faults(nodes) == {
            node.name: [
                f"cable {missing}: no carrier on {interface.name}"
                for interface in node.interfaces
                if interface.cable == missing
            ]
            for node in site.nodes
        }


@pytest.mark.parametrize("count", [4, 5, 8])
def test_routes_reach_across_a_ring(count: int, tmp_path: Path) -> None:
    """Each node reaches all addresses, replies take the same way back, and full frames fit."""
    file = tmp_path / "ring.yaml"
    file.write_text(ring_text(count, "{kind: ring, routes: true}"))
    bundle = Bundle(f"routed-ring-of-{count}", file)
    with running(bundle, bundle.copy(tmp_path), tmp_path) as nodes:
        for node in nodes.trees:
            nodes.run(node, "sysctl", "-w", "net.ipv4.conf.all.rp_filter=1")
            for name in nodes.interfaces[node]:
                nodes.run(node, "sysctl", "-w", f"net.ipv4.conf.{name}.rp_filter=1")
        far = [(node.name, route.to) for node in bundle.site.nodes for route in node.routes]
        assert len(far) == count * (count - 2) * 4
        ping = ["ping", "-n", "-q", "-c", "1", "-i", "0.5", "-w", "2", "-M", "do", "-s", "8972"]
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda way: nodes.run(way[0], *ping, str(way[1])), far))
        assert [way for way, run in zip(far, done, strict=True) if run.returncode] == []
        assert all_faults(nodes) == {node: [] for node in nodes.trees}


def check_swapped_cables_are_reported(bundle: Bundle, tmp_path: Path) -> None:
    """Both cables of the head in each other's port: neither end gets an answer."""
    site = bundle.site
    confused = site.head.name
    cabling = [
        VirtualLink(swapped(link.a, confused), link.b and swapped(link.b, confused))
        for link in links(site.cables)
    ]
    numbers = [c.number for c in site.cables if confused in {port.node for port in c.ports}]
    lost = [(n.name, i) for n in site.nodes for i in n.interfaces if i.cable in numbers]
    with running(bundle, bundle.copy(tmp_path), tmp_path, cabling) as nodes:
        silent = {failure.partition(" -> ")[0] for failure in nodes.ping_all()}
        assert silent == {f"{node} {interface.name}" for node, interface in lost}
        assert all_faults(nodes) == unanswered(site, *(str(i.address.ip) for _, i in lost))


def swapped(end: tuple[str, int], node: str) -> tuple[str, int]:
    """The port that a cable ends up in when somebody confuses a node's two ports."""
    return (node, 1 - end[1]) if end[0] == node else end


def test_small_mtu_in_one_file(tmp_path: Path) -> None:
    trees = LAB_MESH.copy(tmp_path)
    file = trees["spark2"] / "etc/netplan/40-cx7.yaml"
    address, mtu = f"- {FAR_ADDRESS}/24", "\n      mtu: "
    file.write_text(file.read_text().replace(f"{address}{mtu}9000", f"{address}{mtu}1500"))
    with running(LAB_MESH, trees, tmp_path) as nodes:
        assert nodes.ping_all() == [f"spark1 {NEAR} -> spark2 {FAR_ADDRESS}: no answer"]


def test_small_mtu(lab_mesh: VirtualFabric) -> None:
    set_mtu(lab_mesh, "spark2", FAR, 1500)
    fault = f"cable 1: the MTU of {FAR} is 1500, not 9000"
    assert all_faults(lab_mesh) == unanswered(LAB_MESH.site, FAR_ADDRESS) | {"spark2": [fault]}


def test_missing_address(lab_mesh: VirtualFabric) -> None:
    lab_mesh.run("spark2", "ip", "address", "flush", "dev", FAR)
    fault = f"cable 1: {FAR} does not have the address {FAR_ADDRESS}/24"
    assert all_faults(lab_mesh) == unanswered(LAB_MESH.site, FAR_ADDRESS) | {"spark2": [fault]}


def test_unplugged(lab_mesh: VirtualFabric) -> None:
    unplug(lab_mesh, "spark1", NEAR)
    assert all_faults(lab_mesh) == {
        "spark1": [f"cable 1: no carrier on {NEAR}"],
        "spark2": [f"cable 1: no carrier on {FAR}"],
        "spark3": [],
    }


def test_unplugged_from_the_switch(tmp_path: Path) -> None:
    bundle = FABRICS["rack-switch"]
    with running(bundle, bundle.copy(tmp_path), tmp_path) as nodes:
        unplug(nodes, "spark3", NEAR)
        found = all_faults(nodes)
    assert found.pop("spark3") == [f"cable 3: no carrier on {NEAR}"]
    numbers = {node.name: node.interfaces[0].cable for node in bundle.site.nodes}
    for node, lines in found.items():
        (line,) = lines
        assert line.startswith(f"cable {numbers[node]} or 3: spark3 ")


def test_limit(lab_mesh: VirtualFabric) -> None:
    unplug(lab_mesh, "spark1", NEAR)
    start = time.monotonic()
    assert faults(lab_mesh, "spark1", limit=3)
    # A shell counts whole seconds, so the first may be shorter.
    assert time.monotonic() - start >= 2


def test_late_cable(lab_mesh: VirtualFabric) -> None:
    set_mtu(lab_mesh, "spark1", NEAR, 1500)
    argv = lab_mesh.command("spark1", *script(lab_mesh, "spark1", limit=int(PATIENCE)))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1)
        set_mtu(lab_mesh, "spark1", NEAR, 9000)
        assert waiting.communicate(timeout=PATIENCE)[0] == "the fabric of spark1 is ready\n"
        assert waiting.returncode == 0
