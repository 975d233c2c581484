"""The derived site for people and programs: tables, or plain data for JSON and YAML."""

from collections.abc import Iterable, Mapping
from typing import Any

from generator.columns import columns
from generator.fabric.addressing import Cable
from generator.fit import table as fit_table
from generator.fit.assessment import Fit
from generator.records import Record, values
from generator.site import Member, Node, Part, Site, Variables


def plain(site: Site, node: str | None = None) -> dict[str, Any]:
    """The site as dicts, lists and scalars; one node of it if a name is given."""
    data: dict[str, Any] = as_data(site)
    if node:
        data["nodes"] = [item for item in data["nodes"] if item["name"] == node]
    return data


def as_data(value: Any) -> Any:
    """A record in the types of JSON and YAML: dicts, lists and scalars."""
    if isinstance(value, Record):
        return {name: as_data(held) for name, held in values(value).items()}
    if isinstance(value, Mapping):
        return {str(key): as_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_data(item) for item in value]
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def table(site: Site, node: str | None = None, width: int | None = None) -> str:
    """The nodes, addresses and cables of a site, or everything about one node."""
    if node:
        members = [_member(member, width, part) for part, member in site.parts_of(node)]
        return "\n".join(members) if members else _idle(site.node(node), width)
    count = len(site.nodes)
    summary = f"{site.name}: {site.kind}, {_count(count, 'node')}"
    if site.serving:
        parts = [f"{summary}, {_served(site.serving)}{_address(site)}"]
    elif site.groups:
        title = f"{summary}, {_count(len(site.slots), 'group')}{_address(site)}"
        parts = [title, groups(site.groups, width)]
    else:
        parts = [f"{summary}, without an engine"]
    parts.append(_nodes(site.nodes, width))
    if site.has_fabric:
        parts += [_interfaces(site.nodes, width), cables(site.cables, width)]
    for part in site.parts:
        if part.memory:
            name = [part.group] if part.group else []
            parts.append("\n".join([*name, _memory(part.memory, width)]))
    return "\n\n".join(parts) + "\n"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def _served(part: Part) -> str:
    return (
        f"{part.engine.title} {part.engine.version} ({part.engine.launcher}), "
        f"{part.model.served_name} at {part.engine.api.url}"
    )


def _address(site: Site) -> str:
    """The single address for all models, if there is a gateway."""
    return f"; all at {site.address}" if site.address else ""


def groups(found: Iterable[Part], width: int | None = None) -> str:
    """The table of groups."""
    rows = [
        (
            _named(part),
            ", ".join(node.name for node in part.nodes),
            part.model.served_name,
            f"{part.engine.title} {part.engine.version}",
            part.engine.api.url,
        )
        for part in found
    ]
    return columns(("GROUP", "NODES", "SERVES", "WITH", "API"), rows, width)


def _named(part: Part) -> str:
    """Its name, and whether it is waiting for its turn."""
    return part.group if part.is_active else f"{part.group} (in turn)"


def _nodes(nodes: Iterable[Node], width: int | None) -> str:
    rows = [
        (
            str(node.rank),
            node.name,
            str(node.management.address) if node.management else "-",
            f"{node.control.interface} {node.control.address}",
            node.ssh,
            f"{node.memory_gb} GB",
        )
        for node in nodes
    ]
    return columns(("RANK", "NODE", "MANAGEMENT", "CONTROL PLANE", "LOGIN", "MEMORY"), rows, width)


def _interfaces(nodes: Iterable[Node], width: int | None) -> str:
    rows = [
        (
            node.name,
            f"p{interface.half.port}",
            interface.name,
            interface.hca,
            str(interface.address),
            str(interface.mtu),
            str(interface.cable),
        )
        for node in nodes
        for interface in node.interfaces
    ]
    return columns(("NODE", "PORT", "INTERFACE", "HCA", "ADDRESS", "MTU", "CABLE"), rows, width)


def cables(found: Iterable[Cable], width: int | None = None) -> str:
    """A table of the cables and everything known about them."""
    rows = [
        (
            str(cable.number),
            str(cable.a),
            str(cable.b),
            ", ".join(map(str, cable.subnets)),
            (cable.kind or "-").upper(),
            f"{cable.length_m:g} m" if cable.length_m else "-",
            cable.label or "-",
        )
        for cable in found
    ]
    return columns(("CABLE", "FROM", "TO", "SUBNETS", "KIND", "LENGTH", "LABEL"), rows, width)


def _memory(fit: Fit, width: int | None) -> str:
    nodes = [columns(fit_table.head(fit), fit_table.rows(fit), width)] if fit.nodes else []
    return "\n\n".join([*nodes, f"Memory in GiB: {fit_table.verdict(fit)[0]}"])


def _node(node: Node, width: int | None, of_group: str = "") -> list[str]:
    parts = [f"{node.name}, rank {node.rank}{of_group}", _nodes([node], width)]
    if node.interfaces:
        parts.append(_interfaces([node], width))
    if node.hosts:
        parts.append(columns(("ADDRESS", "HOST"), node.hosts, width))
    return parts


def _idle(node: Node, width: int | None) -> str:
    environment = _environment((Variables("NCCL", node.nccl), Variables("logins", node.login)))
    return "\n\n".join([*_node(node, width), *environment]) + "\n"


def _member(node: Member, width: int | None, part: Part) -> str:
    container = node.container
    command = [container.entrypoint, *(" ".join(words) for words in container.command)]
    mounts = [
        f"{mount.path}{f' at {mount.inside}' if mount.inside != mount.path else ''}"
        f"{' (read-only)' if mount.read_only else ''}"
        for mount in container.mounts
    ]
    raw = Variables("raw, as Docker reads them", node.raw_environment)
    parts = _node(node, width, f" of {part.group}" if part.group else "")
    parts += _environment((*node.environment, raw))
    parts.append(
        "\n".join(("# container", f"image {container.image}", *map("mount {}".format, mounts)))
        if container.image
        else f"# without a container\nvenv {part.engine.venv}"
    )
    return "\n\n".join([*parts, "\n  ".join(command)]) + "\n"


def _environment(groups: Iterable[Variables]) -> list[str]:
    return [
        f"# {group.title}\n" + "\n".join(f"{name}={value}" for name, value in group.values.items())
        for group in groups
        if group.values
    ]
