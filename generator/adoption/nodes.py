"""What nodes say of themselves: their commands, their variables, their ports."""

import re
from collections.abc import Iterable, Sequence

from generator.adoption import variables as environment
from generator.adoption.cables import FoundCabling
from generator.adoption.captures import serves
from generator.adoption.command import Command, find
from generator.adoption.found import Found, FoundNode, FoundVariable
from generator.catalogs.engines import ENGINE_TRAITS
from generator.hardware import FABRIC_HALVES
from generator.records import replace


def nodes_of(found: Found) -> list[FoundNode]:
    """The nodes; whatever belongs to none is the head's."""
    named = [node for node in found.nodes if node.name]
    loose = [node for node in found.nodes if not node.name]
    if not named:
        own = loose[0] if loose else FoundNode()
        return _by_rank(replace(own, name="spark1"))
    if loose:
        first = named[0]
        named[0] = replace(
            first,
            containers=first.containers + loose[0].containers,
            settings=first.settings + loose[0].settings,
        )
    return named


def _by_rank(node: FoundNode) -> list[FoundNode]:
    """The node, with what runs as further ranks of its first one on nodes of their own."""
    found = [(container, find(container, {})) for container in node.containers]
    ranks = [c for c, command in found if command and command.rank and not _is_repeated(command)]
    if not ranks or len(ranks) == sum(command is not None for _, command in found):
        return [node]
    first = tuple(container for container in node.containers if container not in ranks)
    others = [FoundNode(f"spark{n}", containers=(c,)) for n, c in enumerate(ranks, 2)]
    return [replace(node, containers=first), *others]


def _is_repeated(command: Command) -> bool:
    """Whether a loop starts it, for as many nodes as only the shell knows."""
    return any(block.startswith(("for ", "while ", "until ")) for block in command.around)


def command_of(node: FoundNode) -> Command | None:
    """What a node serves, or helps to serve, with the settings of its other containers."""
    found = [
        (container, command)
        for container in node.containers
        if serves(container) and (command := find(container, dict(node.programs)))
    ]
    found.sort(key=lambda pair: (not pair[1].entries, pair[1].rank))
    return found[0][1] if found else None


def variables_of(node: FoundNode, command: Command | None) -> list[FoundVariable]:
    """The variables from NCCL's file and the container's, which take precedence even if empty."""
    merged = {variable.name: variable for variable in node.settings}
    for container in node.containers:
        is_loose = not (container.words or container.image)
        is_own = command is not None and container.words == command.container.words
        if command is None or is_own or is_loose:
            env = command.container.env if command and is_own else container.env
            merged |= {variable.name: variable for variable in env}
    # Without a known command that serves a model, only NCCL's variables concern the cluster.
    return [v for v in merged.values() if command or v.name.startswith("NCCL_")]


def control_of(
    head: FoundNode, variables: Iterable[FoundVariable], command: Command | None
) -> tuple[str, str]:
    """The interface for control traffic, and whether that is on the fabric; empty if unknown."""
    values = {variable.name: variable.value.text for variable in variables}
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "MN_IF_NAME", "TP_SOCKET_IFNAME"):
        first = values.get(name, "").lstrip("=").partition(",")[0]
        if first and first[0] not in "^$":
            return first, "fabric" if first.startswith(("enp1s0", "enP2p1s0")) else "management"
    addresses = {w.text.partition("/")[0]: i.name for i in head.interfaces for w in i.addresses}
    entry = command.entry("master-addr", "dist-init-addr") if command else None
    own = ENGINE_TRAITS[command.engine].address_variable if command else ""
    for text in (values.get(own, ""), str(entry.value) if entry else ""):
        if name := addresses.get(text.partition(":")[0], ""):
            return name, "fabric" if name in FABRIC_HALVES else "management"
    return "", ""


def has_fabric(nodes: Sequence[FoundNode]) -> bool:
    """Whether anything is said of nodes' ports, or of NCCL on them."""
    said = (v.name for node in nodes for c in node.containers for v in c.env)
    is_linked = any(i.has_link and i.name in FABRIC_HALVES for n in nodes for i in n.interfaces)
    return is_linked or any(map(has_settings, nodes)) or any(v.startswith("NCCL_") for v in said)


def has_settings(node: FoundNode) -> bool:
    """Whether a node has NCCL's file, or a script that sets its variables."""
    loose = [c for c in node.containers if not (c.words or c.image)]
    return bool(node.settings) or any(v.name.startswith("NCCL_") for c in loose for v in c.env)


def is_mesh(nodes: Sequence[FoundNode], variables: Sequence[FoundVariable]) -> bool:
    """Whether a recipe or a variable says that cables join the nodes without a switch."""
    said = {f"{v.name}={v.value.text}".lower() for v in variables}
    words = (i.value for node in nodes for c in node.containers if c.is_launched for i in c.items)
    mesh = {"nccl_ib_subnet_aware_routing=1", "nccl_net=mesh"}
    return not mesh.isdisjoint(said) or any(re.search(r"(?i)\bmesh\b", text) for text in words)


def uses_first_halves(variables: Sequence[FoundVariable], cabling: FoundCabling) -> bool:
    """Whether RDMA is configured to use only the first halves."""
    named = (v.value.text for v in variables if v.name == "NCCL_IB_HCA")
    return any(environment.is_by_half(text, cabling) for text in named)
