"""Rules about how the management network of each node is described."""

import re
from collections import Counter

from generator.diagnostics import KeyPath, Related, Severity, listed, replacements, slips
from generator.hardware import FABRIC_HALVES, RJ45, WIFI
from generator.rules.network import managed_control
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule
from generator.sitefile.declaration import DeclaredNode, Topology
from generator.sitefile.source import Document

_NAMES = (RJ45, WIFI, *FABRIC_HALVES)


@rule("SG320", unless="SG201 SG208 SG307", of_serving=True)
def misspelt_interface_of_control(nodes: Nodes, topology: Topology, document: Document) -> Faults:
    """If control traffic uses management, the interface is one that a Spark has."""
    if managed_control(nodes, topology):
        yield from _misspelt(nodes, document)


@rule("SG321", Severity.WARNING, unless="SG320 SG201")
def misspelt_interface(nodes: Nodes, document: Document) -> Faults:
    """The management interface is not a misspelling of one that a Spark has."""
    yield from _misspelt(nodes, document)


def _misspelt(nodes: Nodes, document: Document) -> Faults:
    """One fault for each place where a misspelt name is written."""
    reported: set[KeyPath] = set()
    for node in nodes:
        name = node.management.interface if node.management else RJ45
        place = _written(node, document)
        if name in _NAMES or place in reported:
            continue
        near = [known for known in _NAMES if slips(name.lower(), known.lower()) <= 1]
        if near:
            reported.add(place)
            yield Fault(
                f"no Spark has an interface '{name}'",
                place,
                f"did you mean {listed(map(repr, near))}?",
                proposals=replacements(place, near),
            )


def _written(node: DeclaredNode, document: Document) -> KeyPath:
    """Where the interface's name is written: at the node, or in the defaults for all nodes."""
    own = document.data["nodes"][node.index].get("management", {})
    above: KeyPath = node.path if "interface" in own else ("defaults",)
    return (*above, "management", "interface")


@rule("SG324", Severity.WARNING, unless="SG320 SG321 SG201", suppressed_by="SG312")
def interface_that_no_spark_has(nodes: Nodes, document: Document) -> Faults:
    """The management interface is one that a Spark has, or that its user may have added."""
    reported: set[str] = set()
    for node in nodes:
        name = node.management.interface if node.management else RJ45
        if name in (*_NAMES, *reported) or re.fullmatch(_ADDED, name):
            continue
        reported.add(name)
        place = _written(node, document)
        yield Fault(
            f"no Spark has an interface '{name}'",
            place,
            f"write {RJ45} for the RJ45 port, {WIFI} for Wi-Fi, or what 'ip -br link' shows",
            proposals=replacements(place, [RJ45, WIFI]),
            unsafe=True,
        )


# Names by place or address, and those that begin with the kind of a virtual interface.
_ADDED = (
    r"(en|wl|ww)[A-Za-z]\w*[0-9]\w*(\.[0-9]+)?|en[ox]\w*[0-9]\w*(\.[0-9]+)?"
    r"|(br|vmbr|virbr|docker|bond|team|vlan|macvlan|dummy|wg|tailscale|zt|tun|tap|usb|mgmt|lan|wan)"
    r"[A-Za-z0-9._-]*"
)


@rule("SG322", Severity.WARNING, unless="SG309 SG201")
def networks_without_gateway(nodes: Nodes) -> Faults:
    """Nodes that are managed in different networks have gateways."""
    managed = [(node, node.management) for node in nodes if node.management]
    if len(managed) < 2:
        return
    networks = Counter(management.address.network for _, management in managed)
    (usual, most), *others = networks.most_common()
    is_even = any(count == most for _, count in others)
    first = next(node for node, management in managed if management.address.network == usual)
    for node, management in managed:
        if management.address.network != usual and management.gateway is None:
            place = ("management", "address")
            yield Fault(
                f"{node.name} is in {management.address.network} without a gateway, "
                f"and {first.name} in {usual}",
                (*node.path, *place),
                "give both addresses of one network, or write the gateway of each"
                if is_even
                else f"write an address of {usual}, or the gateway of its own network",
                related=(Related(f"{first.name}'s address", (*first.path, *place)),),
            )
