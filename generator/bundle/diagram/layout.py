"""Lays out the cabling of a site as a picture.

Nodes that are connected directly are in rows, and each cable has a lane of its own below them.
Nodes on a switch are to its left and right. Each is seen from the back, where the ports are. Groups
are frames around their nodes.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil

from generator.bundle.diagram import gateway
from generator.bundle.diagram.frames import RIM, STRIP, FrameSpan, frames, label, levels, spans
from generator.bundle.diagram.shapes import (
    LIGHT,
    Badge,
    Box,
    Drawing,
    Label,
    Line,
    Socket,
    fitted,
    width_of,
)
from generator.fabric.addressing import Cable, Port
from generator.hardware import PORTS
from generator.site import Node, Site

_MARGIN = 24
_HEAD = 64
_FOOT = 40
_NODE = (220, 88)
_PANEL = 60
_SOCKET = (56, 28)
_SOCKET_X = (78, 146)
_RJ45 = Box(14, _PANEL, 44, _SOCKET[1])
_PITCH = 340
# Between two rows: the distance of cables at the side, and the room for the labels of these.
_MOST_IN_A_ROW, _RISER, _BESIDE = 4, 24, 160
_FIRST_LANE, _LANE = 40, 46
_ABOVE, _BELOW = 7, 16
_TEXT = 16
_CELL = _NODE[1] + _FIRST_LANE
_ZONE = 260
_SWITCH, _WIDEST_SWITCH = 210, 420
_SWITCH_HEAD = 30
_SWITCH_PORT = (8, 16)
# The gap between the frame of a group and the label of the cable below it.
_CLEAR = 4

_NOTE = "Seen from the back: p0 is the left QSFP port, beside the RJ45; p1 is the right one."


def layout(site: Site) -> Drawing:
    """The picture of a site's cabling."""
    return (_Switch(site) if site.switches else _Rows(site)).drawing()


def lanes(cables: Sequence[Cable], column: dict[Port, int]) -> list[Cable]:
    """The cables of a row of nodes in the order of their lanes, the shortest first."""
    return sorted(cables, key=lambda cable: (_length(cable, column), cable.number))


def widest_gap(left: int, right: int, crossing: Iterable[int]) -> tuple[int, int]:
    """The widest part of a lane that no other cable crosses."""
    stops = sorted({left, right, *(x for x in crossing if left < x < right)})
    return max(pairwise(stops), key=lambda gap: gap[1] - gap[0])


def cable_text(cable: Cable) -> str:
    """A cable's properties, its number first."""
    length = f"{cable.length_m:g} m" if cable.length_m else ""
    kind = (cable.kind or "").upper()
    parts = (f"cable {cable.number}", f"{kind} {length}".strip(), cable.label or "")
    return " \u00b7 ".join(filter(None, parts))


def role(site: Site, node: Node) -> str:
    """A node's role: its rank or its groups, and whether the gateway is on it."""
    also = ", gateway" if gateway.is_here(site, node) else ""
    if site.groups:
        slots = dict.fromkeys(part.slot for part, _ in site.parts_of(node.name))
        return f"{', '.join(slots) or 'idle'}{also}"
    return f"rank {node.rank}{', head' if node.is_head else ''}{also}"


def subnets(cable: Cable) -> str:
    """The subnets of a cable, one for each half."""
    return " \u00b7 ".join(map(str, cable.subnets))


def _length(cable: Cable, column: dict[Port, int]) -> int:
    ends = [column[port] for port in cable.ports]
    return max(ends) - min(ends)


def _color(number: int) -> int:
    return (number - 1) % len(LIGHT)


class _Picture:
    """What both kinds of picture share: nodes in rows or columns, and their cables."""

    def __init__(self, site: Site, *lines: Sequence[Node]) -> None:
        self.site = site
        self.spans = [spans(site, nodes) for nodes in lines]
        deepest = max(map(levels, self.spans))
        # The space that the frames of groups need around a node.
        self.above, self.aside = STRIP * deepest, RIM * deepest
        self.below = self.aside + _CLEAR if deepest else 0
        self.groups: list[Box] = []
        self.colors = {port: _color(c.number) for c in site.cables for port in c.ports}
        self.frames: list[Box] = []
        self.sockets: list[Socket] = []
        self.lines: list[Line] = []
        self.badges: list[Badge] = []
        self.texts: list[Label] = []
        # The labels of groups that do not fit on their frames.
        self.cut: list[str] = []

    def finished(self, width: int, height: int) -> Drawing:
        title = f"{self.site.name}: how it is cabled"
        legend = [
            Label(line, _MARGIN, height - _FOOT + _TEXT * (index + 1), "small")
            for index, line in enumerate((*gateway.lines(self.site), *dict.fromkeys(self.cut)))
        ]
        height += _TEXT * len(legend)
        note = Label(_NOTE, _MARGIN, height - 16, "small", muted=True)
        width = max(width, *(text.box.right + _MARGIN for text in (*legend, note)))
        room = width - 2 * _MARGIN
        return Drawing(
            title=title,
            description=_description(self.site),
            width=width,
            height=height,
            groups=tuple(self.groups),
            frames=tuple(self.frames),
            sockets=tuple(self.sockets),
            lines=tuple(self.lines),
            badges=tuple(self.badges),
            texts=(
                Label(fitted(title, "title", room), _MARGIN, 34, "title"),
                *self.texts,
                *legend,
                note,
            ),
        )

    def node(self, node: Node, x: int, y: int) -> Box:
        box = Box(x, y, *_NODE)
        room = _NODE[0] - 28
        # The frames around it show its groups.
        details = [role(self.site, node), str(node.address)]
        if self.site.groups:
            details = [details[1], *(["gateway"] if gateway.is_here(self.site, node) else ())]
        about = ", ".join(details)
        self.frames.append(box)
        self.texts += [
            Label(fitted(node.name, "name", room), x + 14, y + 22, "name"),
            Label(fitted(about, "small", room), x + 14, y + 40, "small", muted=True),
        ]
        self._socket("RJ45", Box(x + _RJ45.x, y + _RJ45.y, _RJ45.width, _RJ45.height), None)
        for port in PORTS:
            place = Box(x + _SOCKET_X[port], y + _PANEL, *_SOCKET)
            self._socket(f"p{port}", place, self.colors.get(Port(node.name, port)))
        return box

    def frame(self, spans: Sequence[FrameSpan], nodes: Sequence[Box]) -> None:
        """Draw the frames of the groups in one row or column."""
        for span, (box, text) in zip(spans, frames(spans, nodes), strict=True):
            self.groups.append(box)
            self.texts.append(text)
            if text.text != span.label:
                self.cut.append(span.label)

    def badge(self, cable: Cable, x: int, top: int) -> None:
        box = Box(x - 13, top + 5, 26, 18)
        text = Label(str(cable.number), x, top + 18, "badge", "middle")
        self.badges.append(Badge(box, text, _color(cable.number)))

    def label(self, cable: Cable, center: int, y: int, room: int) -> None:
        """Write a cable's properties above its line, and its subnets below."""
        for text, baseline in ((cable_text(cable), y - _ABOVE), (subnets(cable), y + _BELOW)):
            shown = fitted(text, "small", room)
            self.texts.append(Label(shown, center, baseline, "small", "middle", baseline > y))

    def _socket(self, name: str, box: Box, color: int | None) -> None:
        self.sockets.append(Socket(box, color))
        self.texts.append(Label(name, box.center, box.y + 18, "port", "middle", color is None))


def _description(site: Site) -> str:
    """The picture in words, for those who can't see it."""
    cables = [
        f"{cable_text(cable)}: {cable.a} to {cable.b}, {subnets(cable)}" for cable in site.cables
    ]
    groups = [
        f"{label(parts)} on {', '.join(node.name for node in parts[0].nodes)}"
        for parts in (site.slots if site.groups else ())
    ]
    return ". ".join([_NOTE.rstrip("."), *cables, *groups, *gateway.lines(site)]) + "."


class _Rows(_Picture):
    """Nodes side by side in rows, with the lanes of their cables below each row.

    A cable between two rows has a lane in both, and passes what is between them at the side.
    """

    def __init__(self, site: Site) -> None:
        self.rows = _rows(site)
        super().__init__(site, *self.rows)
        row = {node.name: index for index, nodes in enumerate(self.rows) for node in nodes}
        between = [c for c in site.cables if len({row[port.node] for port in c.ports}) > 1]
        room = _RISER * len(between) + _BESIDE if between else 0
        self.left = _MARGIN + self.aside + room
        self.width = 2 * self.left + (len(self.rows[0]) - 1) * _PITCH + _NODE[0]
        self.open: dict[int, tuple[tuple[int, int], ...]] = {}
        place = {node.name: nodes.index(node) for nodes in self.rows for node in nodes}
        self.riser = {
            cable.number: self._riser(index, sum(place[port.node] for port in cable.ports))
            for index, cable in enumerate(between)
        }

    def _riser(self, index: int, places: int) -> int:
        """Where a cable passes rows: at the side that is nearer to both of its ends."""
        x = _MARGIN + index * _RISER
        return x if places < len(self.rows[0]) - 1 else self.width - x

    def drawing(self) -> Drawing:
        top = _HEAD
        frames: dict[str, Box] = {}
        for nodes, groups in zip(self.rows, self.spans, strict=True):
            top += self.above
            boxes = [self.node(node, self._x(nodes, i), top) for i, node in enumerate(nodes)]
            self.frame(groups, boxes)
            column = {
                Port(node.name, port): box.x + _SOCKET_X[port] + _SOCKET[0] // 2
                for node, box in zip(nodes, boxes, strict=True)
                for port in PORTS
            }
            frames |= dict(zip((node.name for node in nodes), boxes, strict=True))
            first = top + _CELL + self.below
            top = first + self._cables(column, top, first) * _LANE
        self.frames = [frames[node.name] for node in self.site.nodes]
        return self.finished(self.width, top + _FOOT)

    def _x(self, nodes: Sequence[Node], index: int) -> int:
        """A row that continues the one above is as far to the right as that."""
        continues = self.rows.index(nodes) > 0 and nodes[0].rank > nodes[-1].rank
        first = len(self.rows[0]) - len(nodes) if continues else 0
        return self.left + (first + index) * _PITCH

    def _cables(self, column: dict[Port, int], top: int, first: int) -> int:
        """Draw the cables of a row, those to other rows in the deepest lanes; return how many."""
        cables = self.site.cables
        here = {c.number: sorted(column[p] for p in c.ports if p in column) for c in cables}
        own = lanes([c for c in cables if len(here[c.number]) > 1], column)
        others = [c for c in cables if len(here[c.number]) == 1]
        ordered = [*own, *others]
        for index, cable in enumerate(ordered):
            y, ends = first + index * _LANE, here[cable.number]
            deeper = [x for other in ordered[index + 1 :] for x in here[other.number]]
            self._cable(cable, ends, top, y, deeper)
        return len(ordered)

    def _cable(
        self, cable: Cable, ends: Sequence[int], top: int, y: int, deeper: Sequence[int]
    ) -> None:
        """Draw a cable from port to port along a lane, with a label where nothing crosses."""
        port = top + _PANEL + _SOCKET[1]
        for x in ends:
            self.badge(cable, x, top + _NODE[1])
        there = ends[1] if len(ends) > 1 else self.riser[cable.number]
        begun = self.open.pop(cable.number, ())
        points = ((ends[0], port), (ends[0], y), (there, y))
        if len(ends) == 1 and not begun:
            self.open[cable.number] = points
        else:
            whole = (*begun, *points[::-1]) if begun else (*points, (there, port))
            self.lines.append(Line(whole, _color(cable.number), cable.number))
        if not begun:
            left, right = sorted((ends[0], there))
            start, end = widest_gap(left, right, deeper)
            self.label(cable, (start + end) // 2, y, end - start - 20)


def _rows(site: Site) -> tuple[tuple[Node, ...], ...]:
    """At most four nodes a row, with few cables between rows.

    A row runs backwards if a cable joins its first node to the end of the row above.
    """
    joined = [{port.node for port in cable.ports} for cable in site.cables]
    even = ceil(len(site.nodes) / ceil(len(site.nodes) / _MOST_IN_A_ROW))
    size = min((even, _MOST_IN_A_ROW), key=lambda size: _cut(site.nodes, size, joined))
    rows = [site.nodes[first : first + size] for first in range(0, len(site.nodes), size)]
    for index in range(1, len(rows)):
        if {rows[index - 1][-1].name, rows[index][0].name} in joined:
            rows[index] = rows[index][::-1]
    return tuple(rows)


def _cut(nodes: Sequence[Node], size: int, joined: Sequence[set[str]]) -> int:
    """How many cables are between two rows of this size."""
    row = {node.name: index // size for index, node in enumerate(nodes)}
    return sum(len({row[name] for name in names}) > 1 for names in joined)


class _Switch(_Picture):
    """The switch in the middle, half of the nodes on either side."""

    def __init__(self, site: Site) -> None:
        half = (len(site.nodes) + 1) // 2
        self.columns = (site.nodes[:half], site.nodes[half:])
        super().__init__(site, *self.columns)
        self.zone = _ZONE + self.aside
        self.switch_head = max(_SWITCH_HEAD, self.above)
        longest = max(width_of(self._port_name(cable), "port") for cable in site.cables)
        self.width = min(max(_SWITCH, 2 * (longest + _SWITCH_PORT[0] + 14)), _WIDEST_SWITCH)

    def drawing(self) -> Drawing:
        cables = {node.name: self._cables(node) for node in self.site.nodes}
        room = self.above + _CELL + self.below
        cell = room + max(map(len, cables.values())) * _LANE
        left = _MARGIN + self.aside
        height = self.switch_head + len(self.columns[0]) * cell
        switch = Box(left + _NODE[0] + self.zone, _HEAD, self.width, height)
        self.frames.append(switch)
        title = fitted(", ".join(self.site.switches), "name", self.width - 28)
        self.texts.append(Label(title, switch.center, _HEAD + 22, "name", "middle"))
        for x, nodes, groups in zip(
            (left, switch.right + self.zone), self.columns, self.spans, strict=True
        ):
            first = _HEAD + self.switch_head
            boxes = []
            for row, node in enumerate(nodes):
                boxes.append(self.node(node, x, first + row * cell))
                self._wire(cables[node.name], boxes[-1], switch)
            self.frame(groups, boxes)
        return self.finished(switch.right + self.zone + _NODE[0] + left, switch.bottom + _FOOT)

    def _cables(self, node: Node) -> list[Cable]:
        return [cable for cable in self.site.cables if cable.a.node == node.name]

    def _wire(self, cables: Sequence[Cable], box: Box, switch: Box) -> None:
        """The port that is closer to the switch takes the upper lane, so that lines don't cross."""
        on_left = box.x < switch.x
        near = box.right + self.aside if on_left else box.x - self.aside
        side = switch.x if on_left else switch.right
        ordered = sorted(cables, key=lambda cable: cable.a.port, reverse=on_left)
        for lane, cable in enumerate(ordered):
            x = box.x + _SOCKET_X[cable.a.port] + _SOCKET[0] // 2
            y = box.bottom + self.below + _FIRST_LANE + lane * _LANE
            points = ((x, box.y + _PANEL + _SOCKET[1]), (x, y), (side, y))
            self.lines.append(Line(points, _color(cable.number), cable.number))
            self.badge(cable, x, box.bottom)
            self.label(cable, (near + side) // 2, y, _ZONE - 20)
            self._switch_port(cable, side, y, on_left)

    def _port_name(self, cable: Cable) -> str:
        """The port of the switch, with the name of the switch if there are several."""
        return str(cable.b if len(self.site.switches) > 1 else cable.b.port)

    def _switch_port(self, cable: Cable, side: int, y: int, on_left: bool) -> None:
        width, height = _SWITCH_PORT
        place = Box(side if on_left else side - width, y - height // 2, width, height)
        self.sockets.append(Socket(place, _color(cable.number)))
        room = self.width // 2 - width - 14
        shown = fitted(self._port_name(cable), "port", room, at_start=True)
        x = place.right + 6 if on_left else place.x - 6
        self.texts.append(Label(shown, x, y + 4, "port", "start" if on_left else "end"))
