"""The cabling as plain text: nodes in a row with one lane per cable, or tables for a switch."""

from collections.abc import Iterable, Sequence

from generator.bundle.diagram import gateway
from generator.bundle.diagram.frames import levels, spans
from generator.bundle.diagram.layout import lanes, role, widest_gap
from generator.fabric.addressing import Cable, Port
from generator.hardware import PORTS
from generator.site import Node, Site
from generator.site.show import cables, groups

_PITCH, _FRAME, _GAP = 32, 21, 2
_PORT_X = (9, 15)


def drawing(site: Site) -> str:
    """The picture, followed by a table of the cables."""
    parts = [] if site.switches else [_row(site)]
    if site.switches and site.groups:
        parts.append(groups(site.groups))
    if site.cables:
        parts.append(cables(site.cables))
    if lines := gateway.lines(site):
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _row(site: Site) -> str:
    """Nodes from the back, with one lane per cable below: `+` is a corner, `|` a crossing.

    The frames of groups are drawn above their nodes.
    """
    left = {node.name: index * _PITCH for index, node in enumerate(site.nodes)}
    column = {Port(name, port): x + _PORT_X[port] for name, x in left.items() for port in PORTS}
    head = [
        _beside(f"{node.name}, {_role(site, node)}"[: _PITCH - _GAP] for node in site.nodes),
        _beside("+" + "-" * (_FRAME - 2) + "+" for _ in site.nodes),
        _beside("| RJ45 [ p0 ][ p1 ] |"[:_FRAME] for _ in site.nodes),
        _beside("+" + "-" * (_FRAME - 2) + "+" for _ in site.nodes),
    ]
    return "\n".join([*_groups(site), *head, *_lanes(lanes(site.cables, column), column)])


def _groups(site: Site) -> list[str]:
    """The upper edges of the frames around groups, the outermost first."""
    found = spans(site, site.nodes)
    lines = [[" "] * (_PITCH * len(site.nodes)) for _ in range(levels(found))]
    for span in found:
        width = (span.last - span.first + 1) * _PITCH - _GAP
        side = f"+- {span.label[: width - 6]} ".ljust(width - 1, "-") + "+"
        lines[span.level][span.first * _PITCH : span.first * _PITCH + width] = side
    return ["".join(line).rstrip() for line in reversed(lines)]


def _role(site: Site, node: Node) -> str:
    return role(site, node) if site.groups else f"rank {node.rank}"


def _beside(cells: Iterable[str]) -> str:
    return "".join(cell.ljust(_PITCH) for cell in cells).rstrip()


def _lanes(ordered: Sequence[Cable], column: dict[Port, int]) -> list[str]:
    """Two lines per cable: the cables that continue downwards, then the lane with its number."""
    lines = []
    for index, cable in enumerate(ordered):
        below = {column[port] for other in ordered[index:] for port in other.ports}
        lines.append(_line(below, {}))
        start, end = sorted(column[port] for port in cable.ports)
        lane = dict.fromkeys(range(start, end + 1), "-") | {start: "+", end: "+"}
        lane |= dict(enumerate(f" {cable.number} ", sum(widest_gap(start, end, below)) // 2 - 1))
        lines.append(_line(below - {start, end}, lane))
    return lines


def _line(verticals: Iterable[int], lane: dict[int, str]) -> str:
    marks = lane | dict.fromkeys(verticals, "|")
    return "".join(marks.get(x, " ") for x in range(max(marks) + 1))
