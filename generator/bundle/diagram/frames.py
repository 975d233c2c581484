"""Frames around the nodes of each group, for nodes in a row or a column."""

from collections.abc import Iterator, Sequence

from generator.bundle.diagram.shapes import Box, Label, fitted
from generator.records import record
from generator.site import Node, Part, Site

# The margins of a frame: above its nodes, for its label; at both sides; and below, for the badges.
STRIP, RIM, BADGES = 20, 6, 28
_BASELINE = 6


@record
class FrameSpan:
    """Nodes of a group that are next to each other; `level` counts the frames inside this one."""

    label: str
    first: int
    last: int
    level: int

    def around(self, nodes: Sequence[Box]) -> Box:
        """The frame."""
        first, last = nodes[self.first], nodes[self.last]
        rim = RIM * (self.level + 1)
        x, y = first.x - rim, first.y - STRIP * (self.level + 1)
        return Box(x, y, last.right + rim - x, last.bottom + BADGES + RIM * self.level - y)


def spans(site: Site, nodes: Sequence[Node]) -> tuple[FrameSpan, ...]:
    """The frames of the groups around nodes in this order; frames of one level share no node.

    The short ones come first, so that a frame within another is drawn within it.
    """
    found: list[FrameSpan] = []
    for first, last, name in sorted(_runs(site, nodes), key=lambda run: run[1] - run[0]):
        taken = {span.level for span in found if first <= span.last and span.first <= last}
        level = next(level for level in range(len(taken) + 1) if level not in taken)
        found.append(FrameSpan(name, first, last, level))
    return tuple(found)


def levels(spans: Sequence[FrameSpan]) -> int:
    """The largest number of nested frames."""
    return max((span.level + 1 for span in spans), default=0)


def frames(spans: Sequence[FrameSpan], nodes: Sequence[Box]) -> Iterator[tuple[Box, Label]]:
    """Each frame and its label, which extends from its first node to the edge of the next frame."""
    boxes = [span.around(nodes) for span in spans]
    edges = sorted(edge for box in boxes for edge in (box.x, box.right))
    for span, box in zip(spans, boxes, strict=True):
        x = nodes[span.first].x
        room = next(edge for edge in edges if edge > x) - RIM - x
        yield box, Label(fitted(span.label, "small", room), x, box.y + STRIP - _BASELINE, "small")


def label(parts: Sequence[Part]) -> str:
    """The name of a group, and the models that it serves, one at a time, with their names."""
    return f"{parts[0].slot}: {' or '.join(dict.fromkeys(map(_model, parts)))}"


def _model(part: Part) -> str:
    """A model's own name, and the one that clients request if neither it nor the group tells."""
    model = part.model
    own = (model.file or model.source).rstrip("/").rpartition("/")[2]
    if own.lower() == model.served_name.lower():
        return model.served_name
    return own if model.served_name == part.group else f"{own} as {model.served_name}"


def _runs(site: Site, nodes: Sequence[Node]) -> Iterator[tuple[int, int, str]]:
    """The first and last place of each uninterrupted row of a group's nodes."""
    place = {node.name: index for index, node in enumerate(nodes)}
    for parts in site.slots if site.groups else ():
        own = sorted(place[node.name] for node in parts[0].nodes if node.name in place)
        firsts = [at for at in own if at - 1 not in own]
        lasts = [at for at in own if at + 1 not in own]
        yield from ((first, last, label(parts)) for first, last in zip(firsts, lasts, strict=True))
