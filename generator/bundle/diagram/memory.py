"""Draws each node's memory: one bar per node, and one bar for nodes that are alike."""

from collections.abc import Iterator, Sequence

from generator.bundle.diagram.shapes import Label
from generator.fit.assessment import Fit, NodeMemory
from generator.fit.table import UNSURE, alike, legend, parts_of
from generator.records import record

_MARGIN = 24
_HEAD = 64
_ROW = 44
_BAR = 24
_WIDTH = 860
_NAMES = 200
_TOTAL = 90
_SCALE = _WIDTH - 2 * _MARGIN - _NAMES - _TOTAL
# Narrower parts have no room for a figure.
_LABELLED = 44
_MOST_NAMES = 2


@record
class BarSegment:
    """A part of a bar, in pixels; `fill` is the class of its colour, or of its hatching."""

    x: int
    y: int
    width: int
    fill: str


@record
class MemoryPicture:
    """Bars, the legend's marks and all texts; `edges` mark the end of each node's memory.

    `unsure` is the colour of the hatching: that of the room, of which it is a part.
    """

    width: int
    height: int
    bar: int
    title: str
    description: str
    parts: tuple[BarSegment, ...]
    edges: tuple[tuple[int, int], ...]
    texts: tuple[Label, ...]
    unsure: int = UNSURE - 1


def picture(name: str, fit: Fit) -> MemoryPicture:
    """The picture of a site's memory; the fit must be known."""
    rows = alike(fit.nodes)
    largest = max(max(sum(parts_of(node)), node.visible_gib) for node, _ in rows)
    title = f"{name}: what each node's memory holds, in GiB"
    texts = [Label(title, _MARGIN, _MARGIN + 12, "title")]
    parts: list[BarSegment] = []
    edges = []
    for row, (node, names) in enumerate(rows):
        y = _HEAD + row * _ROW
        base = y + _BAR - 7
        texts.append(Label(_names(names), _MARGIN, base, "name"))
        drawn = list(_parts(node, y, largest))
        parts += [part for part, _ in drawn]
        texts += [
            Label(f"{size:.1f}", part.x + part.width // 2, base, "badge", "middle")
            for part, size in drawn
            if part.width >= _LABELLED
        ]
        edge = _MARGIN + _NAMES + round(node.visible_gib / largest * _SCALE)
        edges.append((edge, y))
        texts.append(Label(f"{node.visible_gib:.1f}", edge + 8, base, "small"))
    y = _HEAD + len(rows) * _ROW + 8
    x = _MARGIN
    for kind, word in enumerate(legend(fit.nodes)):
        parts.append(BarSegment(x, y, 14, _fill(kind)))
        texts.append(Label(word, x + 20, y + 17, "small"))
        x += 30 + round(6.7 * len(word))
    description = "; ".join(_summary(node, names) for node, names in rows)
    height = y + _BAR + _MARGIN
    return MemoryPicture(
        *(_WIDTH, height, _BAR, title, description, tuple(parts), tuple(edges), tuple(texts))
    )


def _parts(node: NodeMemory, y: int, largest: float) -> Iterator[tuple[BarSegment, float]]:
    end = 0.0
    for kind, size in enumerate(parts_of(node)):
        start = round(end / largest * _SCALE)
        end += size
        width = round(end / largest * _SCALE) - start
        if width:
            yield BarSegment(_MARGIN + _NAMES + start, y, width, _fill(kind)), size


def _fill(kind: int) -> str:
    """The class of a part of the legend: what is unsure has no colour of its own."""
    return "hatched" if kind == UNSURE else f"fill{kind - (kind > UNSURE)}"


def _names(names: Sequence[str]) -> str:
    more = f" +{len(names) - _MOST_NAMES}" if len(names) > _MOST_NAMES else ""
    text = ", ".join(names[:_MOST_NAMES]) + more
    return text if len(text) <= 22 else f"{text[:21]}\u2026"


def _summary(node: NodeMemory, names: Sequence[str]) -> str:
    sizes = zip(legend([node]), parts_of(node), strict=False)
    held = ", ".join(f"{word} {size:.1f}" for word, size in sizes)
    return f"{_names(names)}: {held} of {node.visible_gib:.1f} GiB"
