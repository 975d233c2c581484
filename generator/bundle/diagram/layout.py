"""Lays out the cabling of a site as a picture.

Nodes that are connected directly are in a row, and each cable has a lane of its own below them.
Nodes on a switch are to its left and right. Each is seen from the back, where the ports are. Groups
are frames around their nodes.
"""

from collections.abc import Sequence
from itertools import pairwise

from generator.bundle.diagram import gateway
from generator.bundle.diagram.frames import RIM, STRIP, Span, frames, label, levels, spans
from generator.bundle.diagram.shapes import LIGHT, Badge, Box, Drawing, Line, Socket, Text, fitted
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
_FIRST_LANE, _LANE = 40, 46
_ABOVE, _BELOW = 7, 16
_TEXT = 16
_CELL = _NODE[1] + _FIRST_LANE
_ZONE = 260
_SWITCH = 210
_SWITCH_HEAD = 30
_SWITCH_PORT = (8, 16)
# The gap between the frame of a group and the label of the cable below it.
_CLEAR = 4

_NOTE = "Seen from the back: p0 is the left QSFP port, beside the RJ45; p1 is the right one."


def layout(site: Site) -> Drawing:
    """The picture of a site's cabling."""
    return (_Switch(site) if site.switches else _Row(site)).drawing()


def lanes(cables: Sequence[Cable], column: dict[Port, int]) -> list[Cable]:
    """The cables of a row of nodes in the order of their lanes, the shortest first."""
    return sorted(cables, key=lambda cable: (_length(cable, column), cable.number))


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
        self.texts: list[Text] = []

    def finished(self, width: int, height: int) -> Drawing:
        title = f"{self.site.name}: how it is cabled"
        gateway_lines = [
            Text(line, _MARGIN, height - _FOOT + _TEXT * (index + 1), "small")
            for index, line in enumerate(gateway.lines(self.site))
        ]
        height += _TEXT * len(gateway_lines)
        note = Text(_NOTE, _MARGIN, height - 16, "small", muted=True)
        width = max(width, *(text.box.right + _MARGIN for text in (*gateway_lines, note)))
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
                Text(fitted(title, "title", room), _MARGIN, 34, "title"),
                *self.texts,
                *gateway_lines,
                note,
            ),
        )

    def node(self, node: Node, x: int, y: int) -> Box:
        box = Box(x, y, *_NODE)
        room = _NODE[0] - 28
        details = [role(self.site, node), str(node.address)]
        # There may be more groups than fit, and their frames show them anyway.
        about = ", ".join(reversed(details) if self.site.groups else details)
        self.frames.append(box)
        self.texts += [
            Text(fitted(node.name, "name", room), x + 14, y + 22, "name"),
            Text(fitted(about, "small", room), x + 14, y + 40, "small", muted=True),
        ]
        self._socket("RJ45", Box(x + _RJ45.x, y + _RJ45.y, _RJ45.width, _RJ45.height), None)
        for port in PORTS:
            place = Box(x + _SOCKET_X[port], y + _PANEL, *_SOCKET)
            self._socket(f"p{port}", place, self.colors.get(Port(node.name, port)))
        return box

    def frame(self, spans: Sequence[Span], nodes: Sequence[Box]) -> None:
        """Draw the frames of the groups in one row or column."""
        for box, text in frames(spans, nodes):
            self.groups.append(box)
            self.texts.append(text)

    def badge(self, cable: Cable, x: int, top: int) -> None:
        box = Box(x - 13, top + 5, 26, 18)
        text = Text(str(cable.number), x, top + 18, "badge", "middle")
        self.badges.append(Badge(box, text, _color(cable.number)))

    def label(self, cable: Cable, center: int, y: int, room: int) -> None:
        """Write a cable's properties above its line, and its subnets below."""
        for text, baseline in ((cable_text(cable), y - _ABOVE), (subnets(cable), y + _BELOW)):
            shown = fitted(text, "small", room)
            self.texts.append(Text(shown, center, baseline, "small", "middle", baseline > y))

    def _socket(self, name: str, box: Box, color: int | None) -> None:
        self.sockets.append(Socket(box, color))
        self.texts.append(Text(name, box.center, box.y + 18, "port", "middle", color is None))


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


class _Row(_Picture):
    """Nodes side by side, cables in lanes below."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, site.nodes)
        self.top = _HEAD + self.above
        self.first_lane = self.top + _CELL + self.below

    def drawing(self) -> Drawing:
        left = _MARGIN + self.aside
        boxes = {
            node.name: self.node(node, left + index * _PITCH, self.top)
            for index, node in enumerate(self.site.nodes)
        }
        self.frame(self.spans[0], list(boxes.values()))
        column = {
            Port(name, port): box.x + _SOCKET_X[port] + _SOCKET[0] // 2
            for name, box in boxes.items()
            for port in PORTS
        }
        ordered = lanes(self.site.cables, column)
        for index, cable in enumerate(ordered):
            deeper = [column[port] for other in ordered[index + 1 :] for port in other.ports]
            y = self.first_lane + index * _LANE
            self._cable(cable, [column[port] for port in cable.ports], y, deeper)
        width = 2 * left + (len(boxes) - 1) * _PITCH + _NODE[0]
        return self.finished(width, self.first_lane + len(ordered) * _LANE + _FOOT)

    def _cable(self, cable: Cable, ends: Sequence[int], y: int, deeper: Sequence[int]) -> None:
        """Draw a cable from port to port along a lane, with a label where nothing crosses."""
        left, right = min(ends), max(ends)
        port, bottom = self.top + _PANEL + _SOCKET[1], self.top + _NODE[1]
        points = ((left, port), (left, y), (right, y), (right, port))
        self.lines.append(Line(points, _color(cable.number)))
        for x in (left, right):
            self.badge(cable, x, bottom)
        stops = sorted({left, right, *(x for x in deeper if left < x < right)})
        start, end = max(pairwise(stops), key=lambda gap: gap[1] - gap[0])
        self.label(cable, (start + end) // 2, y, end - start - 20)


class _Switch(_Picture):
    """The switch in the middle, half of the nodes on either side."""

    def __init__(self, site: Site) -> None:
        half = (len(site.nodes) + 1) // 2
        self.columns = (site.nodes[:half], site.nodes[half:])
        super().__init__(site, *self.columns)
        self.zone = _ZONE + self.aside
        self.switch_head = max(_SWITCH_HEAD, self.above)

    def drawing(self) -> Drawing:
        cables = {node.name: self._cables(node) for node in self.site.nodes}
        room = self.above + _CELL + self.below
        cell = room + max(map(len, cables.values())) * _LANE
        left = _MARGIN + self.aside
        height = self.switch_head + len(self.columns[0]) * cell
        switch = Box(left + _NODE[0] + self.zone, _HEAD, _SWITCH, height)
        self.frames.append(switch)
        title = fitted(", ".join(self.site.switches), "name", _SWITCH - 28)
        self.texts.append(Text(title, switch.center, _HEAD + 22, "name", "middle"))
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
            self.lines.append(Line(points, _color(cable.number)))
            self.badge(cable, x, box.bottom)
            self.label(cable, (near + side) // 2, y, _ZONE - 20)
            self._switch_port(cable, side, y, on_left)

    def _switch_port(self, cable: Cable, side: int, y: int, on_left: bool) -> None:
        width, height = _SWITCH_PORT
        place = Box(side if on_left else side - width, y - height // 2, width, height)
        self.sockets.append(Socket(place, _color(cable.number)))
        name = str(cable.b if len(self.site.switches) > 1 else cable.b.port)
        shown = fitted(name, "port", _SWITCH // 2 - width - 14)
        x = place.right + 6 if on_left else place.x - 6
        self.texts.append(Text(shown, x, y + 4, "port", "start" if on_left else "end"))
