"""Rules about the interfaces and RoCE devices that `engine.env` names."""

import re
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, ip_network

from generator.diagnostics import KeyPath, Proposal, all_nearest, listed, removal, replacements
from generator.fabric.addressing import Fabric
from generator.fabric.topologies import TOPOLOGIES
from generator.hardware import FABRIC_HALVES, RJ45
from generator.records import record
from generator.rules.nccl.grammar import HCAS, INTERFACES, SOCKETS, is_subnet, marks
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule, to_remove
from generator.settings.environment import Variable
from generator.sitefile.declaration import DeclaredEngine, DeclaredNode, Topology

_DERIVED = "remove it: sparkgen derives it for each node"
_HARDWARE = tuple(FABRIC_HALVES.values())
_OTHER_KIND = {half.interface: half.hca for half in _HARDWARE} | {
    half.hca: half.interface for half in _HARDWARE
}


@record
class _Named:
    """A name in the value of a variable; NCCL may take it for the `prefix` of several."""

    variable: Variable
    name: str
    prefix: bool

    def of(self, names: Sequence["_Names"]) -> list["_Names"]:
        """The names of those nodes that get the variable."""
        nodes = self.variable.nodes
        return [each for each in names if not nodes or each.node in nodes]

    def fault(
        self, message: str, advice: str, instead: Sequence[str] = (), nodes: Sequence[str] = ()
    ) -> Fault:
        """The fault of this name, with other names in its place, or without the variable."""
        path = self.variable.path
        proposals = self.replaced(instead) + removal(path)
        return Fault(message, path, advice, proposals=proposals, nodes=tuple(nodes))

    def replaced(self, names: Sequence[str]) -> tuple[Proposal, ...]:
        """Proposals to write another name."""
        values = [self.variable.value.replace(self.name, name, 1) for name in names]
        return replacements(self.variable.path, values)


def _listed_names(engine: DeclaredEngine, names: Iterable[str]) -> Iterator[_Named]:
    """Each name in the lists that these variables have, unless it is a list of exclusions."""
    for variable in (variable for name in names for variable in engine.environment.of(name)):
        first, items = marks(variable.name, variable.value)
        if not first.startswith("^"):
            prefix = variable.name.startswith("NCCL_") and not first
            for item in filter(None, items.split(",")):
                yield _Named(variable, item.split(":")[0], prefix)


class _Names:
    """The interfaces and RoCE devices of a node that have an address."""

    def __init__(self, node: DeclaredNode, fabric: Fabric, alone: bool) -> None:
        own = fabric.interfaces[node.name]
        management = node.management
        self.node = node.name
        self.hcas = {i.hca for i in own}
        self.fabric = {i.name for i in own}
        # Without an address for management, the network that gives one is likely on this port.
        self.interfaces = self.fabric | {management.interface if management else RJ45}
        self.interfaces |= {"lo"} if alone else set()
        self.addresses: list[IPv4Address] = [i.address.ip for i in own]
        self.addresses += [management.address.ip] if management else []

    def of(self, variable: str) -> set[str]:
        """The names that a variable may contain."""
        if variable == "UCX_NET_DEVICES":
            return self.interfaces | self.hcas | {"all"}
        return self.hcas if variable == HCAS else self.interfaces

    def has(self, named: _Named) -> bool:
        """Whether the node has an interface or device of that name, or an address in a subnet."""
        if "/" in named.name:
            return is_subnet(named.name) and any(
                address in ip_network(named.name, strict=False) for address in self.addresses
            )
        return bool(_matching(named, self.of(named.variable.name)))


def _matching(named: _Named, known: Iterable[str]) -> list[str]:
    name = named.name
    return sorted(k for k in known if k == name or (named.prefix and k.startswith(name)))


def _all_names(nodes: Nodes, fabric: Fabric) -> list[_Names]:
    return [_Names(node, fabric, len(nodes) == 1) for node in nodes]


def _hardware_names(variable: str) -> set[str]:
    """The names that DGX OS gives, cabled or not."""
    hcas = {half.hca for half in _HARDWARE}
    interfaces = {half.interface for half in _HARDWARE} | {RJ45}
    if variable == "UCX_NET_DEVICES":
        return hcas | interfaces
    return hcas if variable == HCAS else interfaces


@rule("SG414", unless="SG307 SG602", suppressed_by="SG413")
def name_without_address(engine: DeclaredEngine, nodes: Nodes, fabric: Fabric) -> Faults:
    """A named interface or RoCE device has an address on every node."""
    all_names = _all_names(nodes, fabric)
    reported: set[KeyPath] = set()
    for named in _listed_names(engine, INTERFACES):
        own = named.of(all_names)
        lacking = [names.node for names in own if not names.has(named)]
        if lacking and named.variable.path not in reported:
            reported.add(named.variable.path)
            yield _without_address(named, _known(named, own), lacking, len(own))


def _known(named: _Named, own: Sequence[_Names]) -> set[str]:
    """The names that a variable may contain on some node."""
    variable = named.variable.name
    return _hardware_names(variable).union(*(names.of(variable) for names in own))


def _without_address(named: _Named, known: set[str], lacking: Sequence[str], count: int) -> Fault:
    """The fault of a name that has no address on some nodes, or on none of them."""
    name, who = named.name, _who(lacking, count)
    nodes = () if len(lacking) == count > 1 else lacking
    if "/" in name:
        return named.fault(f"{who} an address in '{name}'", _DERIVED, nodes=nodes)
    if _matching(named, known):
        advice = f"{_DERIVED}; or name one that has an address on every node"
        return named.fault(f"{who} an address on '{name}'", advice, nodes=nodes)
    if misnamed := _misnamed(named, known):
        return misnamed
    near = all_nearest(name, known)
    return named.fault(
        f"{who} an address on '{name}' that the site file knows of",
        f"did you mean {listed(map(repr, near))}? Or {_DERIVED}" if near else _DERIVED,
        near,
        nodes,
    )


def _misnamed(named: _Named, known: Iterable[str]) -> Fault | None:
    """The fault of a name that no Spark can have."""
    variable, name = named.variable, named.name
    if name in _OTHER_KIND:
        kind = "RoCE devices" if variable.name == HCAS else "interfaces"
        right = _OTHER_KIND[name]
        message = f"{variable.name} takes {kind}, and '{name}' is not one"
        return named.fault(message, f"write {right}, or {_DERIVED}", [right])
    lower = {word.lower(): word for word in known}
    if name.lower() in lower:
        right = lower[name.lower()]
        message = f"there is no '{name}': upper and lower case matter"
        proposals = named.replaced([right])
        return Fault(message, variable.path, f"write '{right}'", proposals=proposals)
    if re.fullmatch(r"mlx[45]_[0-9]+", name):
        devices = listed((half.hca for half in _HARDWARE), "and")
        return named.fault(f"DGX OS has no '{name}'", f"its devices are {devices}; {_DERIVED}")
    return None


def _who(lacking: Sequence[str], count: int) -> str:
    """As in `spark1 and spark3 do not have`; with many nodes, only their number."""
    if len(lacking) == count > 1:
        return "no node has"
    shown = listed(lacking, "and")
    if len(lacking) > 3:
        shown = f"{lacking[0]} and {len(lacking) - 1} other nodes"
    return f"{shown} {'does' if len(lacking) == 1 else 'do'} not have"


@rule("SG415", unless="SG307 SG602", suppressed_by="SG413 SG414")
def ambiguous_prefix(engine: DeclaredEngine, nodes: Nodes, fabric: Fabric) -> Faults:
    """A name for NCCL is exact, or the prefix of only one name."""
    own = _all_names(nodes, fabric)
    for named in _listed_names(engine, (HCAS, "NCCL_SOCKET_IFNAME")):
        found = _matching(named, _known(named, named.of(own)))
        if len(found) > 1:
            yield named.fault(
                f"without '=' NCCL takes '{named.name}' for a prefix of {listed(found, 'and')}",
                f"{_DERIVED}; or write '=' and whole names",
            )


@rule("SG416", suppressed_by="SG413")
def fabric_disabled(engine: DeclaredEngine, fabric: Fabric) -> Faults:
    """NCCL uses the fabric if there is one."""
    if not fabric.cables:
        return
    off = {"NCCL_IB_DISABLE": ("1", "0"), "NCCL_NET": ("socket", "IB")}
    for values in engine.environment.together(off):
        if values.get("NCCL_NET", "ib").lower() not in ("ib", "socket"):
            continue
        for name, (value, right) in off.items():
            if values.get(name).lower() == value:
                yield to_remove(
                    f"'{name}: {values.get(name)}' keeps NCCL off the fabric, on slow sockets",
                    values.path(name),
                    f"remove it: sparkgen sets it to {right}",
                )
    for host in engine.environment.of("NCCL_HOSTID"):
        if "nodes" not in host.path:
            message = f"with 'NCCL_HOSTID: {host.value}' on all nodes NCCL takes them for one"
            yield to_remove(message, host.path)


@rule("SG417", unless="SG307 SG602", suppressed_by="SG413 SG414 SG415")
def fabric_socket_on_a_ring(
    engine: DeclaredEngine, nodes: Nodes, fabric: Fabric, topology: Topology
) -> Faults:
    """On a ring, sockets use the management network."""
    if TOPOLOGIES[topology.kind].reaches_all:
        return
    all_names = _all_names(nodes, fabric)
    reported = set[KeyPath]()
    for named in _listed_names(engine, SOCKETS):
        on_fabric = set[str]().union(*(names.fabric for names in named.of(all_names)))
        # Whoever lists one such interface mostly lists all of them.
        if named.variable.path not in reported and _matching(named, on_fabric):
            reported.add(named.variable.path)
            management = nodes[0].management
            right = management.interface if management else RJ45
            mark = "=" if named.variable.name.startswith("NCCL_") else ""
            yield named.fault(
                f"on a {topology.kind} '{named.name}' reaches one peer, "
                f"and {named.variable.name} needs one that reaches all",
                f"{_DERIVED}, here {mark}{right}",
            )
