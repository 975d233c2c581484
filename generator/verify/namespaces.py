"""A fabric on one machine: one network namespace per node, configured from netplan's output."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from generator.hardware import FABRIC_HALVES, RJ45, Half
from generator.records import record

PROGRAMS = ("hostname", "ip", "netplan", "ping", "sysctl", "unshare")
MANAGEMENT = RJ45

VirtualPort = tuple[str, int]
Plug = tuple[str, str]

_NETNS = Path("/run/netns")
_PARALLEL = 32
_READY_TIMEOUT = 10.0

_serial = itertools.count()

# A new namespace starts with the host's net.ipv4.conf: a CI runner that forwards for its containers
# would carry a ping around a wrong cable. These are Ubuntu's values. The group of root may open
# ping sockets: otherwise ping uses a raw one, which the answers to all other pings of the node also
# fill.
_BASELINE = ["net.ipv4.ip_forward = 0", "net.ipv4.ping_group_range = 0 0"] + [
    f"net.{key} = {value}"
    for scope in ("all", "default")
    for key, value in (
        (f"ipv4.conf.{scope}.rp_filter", 2),
        (f"ipv4.conf.{scope}.arp_filter", 0),
        (f"ipv4.conf.{scope}.arp_ignore", 0),
        (f"ipv4.conf.{scope}.arp_announce", 0),
        (f"ipv6.conf.{scope}.disable_ipv6", 1),
    )
]

# All namespaces share one socket per CPU for their ICMP replies. A reply to a node that a wrong
# cable does not reach counts against its buffer until ARP gives up, by default after three seconds:
# with eight full frames, no node of any namespace answers (ipv4_icmp_sk in net/ipv4/icmp.c).
_NEIGHBOURS = "retrans 100"

_WITHOUT_EFFECT = {
    ("Link", "WakeOnLan"),
    ("Link", "RequiredForOnline"),
    ("Network", "ConfigureWithoutCarrier"),
    ("Network", "IPv6AcceptRA"),
    ("Network", "LinkLocalAddressing"),
}


@record
class VirtualLink:
    """A cable between two ports (node, number), or from one to a switch when `b` is None.

    Cables to switches of different names are not joined.
    """

    a: VirtualPort
    b: VirtualPort | None = None
    switch: str = ""


VirtualWay = tuple[str, str]


class VirtualInterface(NamedTuple):
    """What networkd would configure on an interface; the destination and gateway of each route."""

    addresses: tuple[IPv4Interface, ...]
    mtu: int
    routes: tuple[VirtualWay, ...] = ()


def halves(port: int) -> tuple[str, str]:
    """Name the two interfaces of a QSFP port."""
    return Half(port, 0).interface, Half(port, 1).interface


INTERFACES = tuple(FABRIC_HALVES)
UNCONFIGURED = VirtualInterface((), 1500)


def netplan(tree: Path, work: Path) -> dict[str, VirtualInterface]:
    """Have netplan generate networkd's files from a copy of a node's tree, and read them."""
    copy = Path(tempfile.mkdtemp(prefix=f"{tree.name}-", dir=work))
    shutil.copytree(tree / "etc/netplan", copy / "etc/netplan")
    for file in (copy / "etc/netplan").iterdir():
        file.chmod(0o600)
    _check("netplan", "generate", "--root-dir", str(copy))
    return networkd(copy / "run/systemd/network")


def networkd(folder: Path) -> dict[str, VirtualInterface]:
    """Read a folder of .network and .link files; a setting that is not simulated is an error."""
    networks: dict[str, tuple[list[IPv4Interface], list[VirtualWay]]] = {}
    mtus: dict[str, set[int]] = defaultdict(set)
    for file in sorted(folder.iterdir()):
        name, addresses, ways, mtu = _read(file)
        mtus[name] |= mtu
        if file.suffix == ".network":
            networks[name] = addresses, ways
    # With NetworkManager as renderer there are .link files, but nothing that sets an address.
    if unaddressed := mtus.keys() - networks.keys():
        raise ValueError(f"no .network file for {', '.join(sorted(unaddressed))}")
    read = {}
    for name, (addresses, ways) in networks.items():
        first, *others = mtus[name] or {UNCONFIGURED.mtu}
        if others:
            raise ValueError(f"{name} has several MTUs: {first}, {others}")
        read[name] = VirtualInterface(tuple(addresses), first, tuple(ways))
    return read


def _read(file: Path) -> tuple[str, list[IPv4Interface], list[VirtualWay], set[int]]:
    name = ""
    addresses = []
    destinations, gateways = [], []
    mtus = set()
    for section, key, value in _settings(file):
        match file.suffix, section, key:
            case (".network", "Match", "Name") | (".link", "Match", "OriginalName"):
                name = value
            case ".network", "Network" | "Address", "Address":
                addresses.append(IPv4Interface(value))
            case ".network", "Route", "Destination":
                destinations.append(value)
            case ".network", "Route", "Gateway":
                gateways.append(value)
            case ".network" | ".link", "Link", "MTUBytes":
                mtus.add(int(value))
            case _ if (section, key) not in _WITHOUT_EFFECT:
                raise ValueError(f"{file.name}: [{section}] {key}={value} is not simulated")
    return name, addresses, list(zip(destinations, gateways, strict=True)), mtus


def _settings(file: Path) -> Iterator[tuple[str, str, str]]:
    # Not configparser: it rejects a second Address=, which is how networkd writes a list.
    section = ""
    for line in filter(None, file.read_text().splitlines()):
        key, equals, value = line.partition("=")
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif section and key.isalnum() and equals and value:
            yield section, key, value
        else:
            raise ValueError(f"{file.name}: cannot read {line!r}")


@record
class VirtualFabric:
    """Running nodes. Each of their interfaces is a veth whose far end is its plug.

    The plugs are in a separate namespace, where a bridge stands for a half of a cable or for the
    switch. Only this way can an interface lose its carrier but remain up, as when a cable is
    pulled.
    """

    trees: Mapping[str, Path]
    links: Sequence[VirtualLink]
    interfaces: Mapping[str, Mapping[str, VirtualInterface]]
    _name: str
    _bridges: Mapping[Plug, str]
    _numbers: Mapping[Plug, int]

    def namespace(self, node: str) -> str:
        """Name the namespace of a node."""
        return f"{self._name}-{node}"

    def command(self, node: str, *argv: str) -> list[str]:
        """Prefix a program so that it runs in the network, and under the host name, of a node."""
        # With a common host name MPI takes the nodes for one machine and doesn't use the network.
        rename = ("unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', node)
        return ["ip", "netns", "exec", self.namespace(node), *rename, *argv]

    def run(
        self, node: str, *argv: str, env: Mapping[str, str] | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on a node to its end, whatever its exit status."""
        command = self.command(node, *argv)
        return subprocess.run(command, env=env, timeout=timeout, capture_output=True, text=True)

    def ping_all(self) -> list[str]:
        """Send a full frame each way over every half of every cable; return what is wrong."""
        with ThreadPoolExecutor(_PARALLEL) as pool:
            lost = list(pool.map(lambda pair: self._ping(*pair), self._pairs()))
        return [*self._doubled(), *itertools.chain.from_iterable(lost)]

    def arp_flux(self) -> list[str]:
        """Return where a node, after the pings, sends frames for an address of another interface.

        A ping may succeed anyway: Linux accepts a packet for any of its addresses on any interface.
        RDMA does not.
        """
        homes = {str(address.ip): plug for plug, address in self._addresses()}
        owners = {_mac(number): plug for plug, number in self._numbers.items()}
        wrong = []
        for node in self.trees:
            for entry in json.loads(_check("ip", "-n", self.namespace(node), "-j", "neigh")):
                home, owner = homes.get(entry["dst"]), owners.get(entry.get("lladdr"))
                if home and owner and home != owner:
                    wrong.append(f"{node} sends to {' '.join(owner)} what is for {' '.join(home)}")
        return wrong

    def _addresses(self) -> Iterator[tuple[Plug, IPv4Interface]]:
        for node, interface in self._bridges:
            for address in self.interfaces[node][interface].addresses:
                yield (node, interface), address

    def _doubled(self) -> Iterator[str]:
        # A ping cannot tell: two interfaces with the same address answer, if need be to themselves.
        holders: dict[IPv4Address, list[Plug]] = defaultdict(list)
        for plug, address in self._addresses():
            holders[address.ip].append(plug)
        for ip, plugs in holders.items():
            if len(plugs) > 1:
                yield f"{ip} is on {' and '.join(' '.join(plug) for plug in plugs)}"

    def _pairs(self) -> Iterator[tuple[Plug, Plug]]:
        # A node on a switch may use one half where others use both.
        addressed = {plug for plug, _ in self._addresses()}
        for a, b in self._connected():
            pairs = zip(_plugs_of(a), _plugs_of(b), strict=True)
            yield from (pair for pair in pairs if pair[0] in addressed)

    def _connected(self) -> Iterator[tuple[VirtualPort, VirtualPort]]:
        switched: dict[tuple[str, str], set[int]] = defaultdict(set)
        for link in self.links:
            if link.b:
                yield link.a, link.b
                yield link.b, link.a
            else:
                switched[link.switch, link.a[0]].add(link.a[1])
        near = (pair for pair in itertools.permutations(switched, 2) if pair[0][0] == pair[1][0])
        for a, b in near:
            # Two ports of a node are two networks, so port 0 need not reach port 1 of another.
            same = [(port, port) for port in switched[a] & switched[b]]
            for port, other in same or itertools.product(switched[a], switched[b]):
                yield (a[1], port), (b[1], other)

    def _ping(self, source: Plug, target: Plug) -> list[str]:
        node, interface = source
        # Less the IPv4 and ICMP headers.
        size = self.interfaces[node][interface].mtu - 28
        lost = []
        for address in self.interfaces[target[0]][target[1]].addresses:
            if reason := self._unanswered(source, size, address.ip):
                lost.append(f"{node} {interface} -> {target[0]} {address.ip}: {reason}")
        return lost

    def _unanswered(self, source: Plug, size: int, address: IPv4Address) -> str:
        """Return why no ping of two seconds from an interface was answered; nothing if one was."""
        node, interface = source
        options = f"-n -c 1 -i 0.5 -w 2 -M do -s {size} -I {interface} {address}".split()
        # Without the node's host name, which would cost more processes than the ping.
        command = ["ip", "netns", "exec", self.namespace(node), "ping", *options]
        ping = subprocess.run(command, timeout=60, capture_output=True, text=True)
        errors = [line for line in ping.stderr.splitlines() if "Warning" not in line]
        return ("; ".join(errors) or "no answer") if ping.returncode else ""

    def _namespaces(self) -> list[str]:
        return [self._name, *map(self.namespace, self.trees)]

    def _start(self) -> None:
        with ThreadPoolExecutor(_PARALLEL) as pool:
            list(pool.map(lambda name: _sysctl(name, _BASELINE), self._namespaces()))
            _ip(self._name, *self._wiring())
            list(pool.map(self._configure, self.trees))
        self._await_bridges()

    def _wiring(self) -> Iterator[str]:
        for bridge in sorted(set(self._bridges.values())):
            yield f"link add {bridge} type bridge mcast_snooping 0"
            yield f"link set {bridge} up"
        for (node, interface), number in self._numbers.items():
            # The cable itself carries any frame; what counts is the MTU of the two interfaces.
            peer = f"{interface} address {_mac(number)} netns {self.namespace(node)}"
            yield f"link add plug{number} mtu 65535 type veth peer name {peer}"
            if (node, interface) in self._bridges:
                yield f"link set plug{number} master {self._bridges[node, interface]} up"

    def _configure(self, node: str) -> None:
        commands = ["link set lo up"]
        ways = []
        for interface, (addresses, mtu, routes) in self.interfaces[node].items():
            commands.append(f"link set {interface} mtu {mtu} up")
            commands.append(f"ntable change name arp_cache dev {interface} {_NEIGHBOURS}")
            # networkd configures no address on an interface without a carrier.
            if (node, interface) in self._bridges:
                commands += [f"address add {address} dev {interface}" for address in addresses]
                ways += [f"route add {to} via {via} dev {interface}" for to, via in routes]
        _ip(self.namespace(node), *commands, *ways)
        file = self.trees[node] / "etc/sysctl.d/90-sparkgen.conf"
        if file.exists():
            lines = file.read_text().splitlines()
            _sysctl(self.namespace(node), [line for line in lines if "net.ipv4.conf." in line])

    def _await_bridges(self) -> None:
        # The kernel notices a carrier with some delay, and until then the bridge drops frames.
        deadline = time.monotonic() + _READY_TIMEOUT
        while True:
            links = json.loads(_check("ip", "-n", self._name, "-d", "-j", "link"))
            ports = [link["linkinfo"]["info_slave_data"] for link in links if "master" in link]
            if all(port["state"] == "forwarding" for port in ports):
                return
            if time.monotonic() > deadline:
                raise TimeoutError("the bridges do not forward")
            time.sleep(0.01)


@contextmanager
def networks(names: Sequence[str]) -> Iterator[None]:
    """Create network namespaces; whatever still runs in them at the end is killed."""
    try:
        _check("ip", "-batch", "-", stdin="\n".join(f"netns add {name}" for name in names))
        yield
    finally:
        existing = [name for name in names if (_NETNS / name).exists()]
        for name in existing:
            for pid in _check("ip", "netns", "pids", name).split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        _check("ip", "-batch", "-", stdin="\n".join(f"netns del {name}" for name in existing))


@contextmanager
def fabric(
    nodes: Mapping[str, Path],
    links: Sequence[VirtualLink],
    work: Path,
    management: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[VirtualFabric]:
    """Run nodes (name to root tree) joined by `links`; `management` sets addresses on enP7s7."""
    with ThreadPoolExecutor(_PARALLEL) as pool:
        read = pool.map(lambda tree: netplan(tree, work), nodes.values())
        interfaces = dict(zip(nodes, read, strict=True))
    for node, configured in interfaces.items():
        if foreign := configured.keys() - set(INTERFACES):
            raise ValueError(f"{node} has no {', '.join(sorted(foreign))}")
        interfaces[node] = dict.fromkeys(INTERFACES, UNCONFIGURED) | configured
    for node, address in management.items():
        interfaces[node][MANAGEMENT] = VirtualInterface((IPv4Interface(address),), 1500)

    plugs = [(node, interface) for node in interfaces for interface in interfaces[node]]
    numbers = {plug: number for number, plug in enumerate(plugs)}
    bridges = {(node, MANAGEMENT): "management" for node in management}
    switches = sorted({link.switch for link in links})
    for number, link in enumerate(links):
        shared = f"switch{switches.index(link.switch)}"
        for port in filter(None, (link.a, link.b)):
            for half, plug in enumerate(_plugs_of(port)):
                if plug in bridges or plug not in numbers:
                    raise ValueError(f"{link}: no free port {port}")
                bridges[plug] = f"cable{number}half{half}" if link.b else shared
    name = f"sparkgen-{os.getpid()}-{next(_serial)}"
    running = VirtualFabric(nodes, links, interfaces, name, bridges, numbers)
    with networks(running._namespaces()):
        running._start()
        yield running


def _plugs_of(port: VirtualPort) -> Iterator[Plug]:
    for interface in halves(port[1]):
        yield port[0], interface


def _mac(number: int) -> str:
    return f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"


def _sysctl(namespace: str, lines: Iterable[str]) -> None:
    _check("ip", "netns", "exec", namespace, "sysctl", "-q", "-p", "-", stdin="\n".join(lines))


def _ip(namespace: str, *commands: str) -> None:
    _check("ip", "-n", namespace, "-batch", "-", stdin="\n".join(commands))


def _check(*argv: str, stdin: str = "") -> str:
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}\n{stdin}")
    return done.stdout
