"""The elements of a picture of the cabling; all measures in pixels, y from the top.

Text is set in a monospaced font, so that its width is known without font metrics: a character is
about 0.6 em wide in all common ones, an East Asian wide character a whole em.
"""

import unicodedata
from typing import Literal

from generator.records import record

Anchor = Literal["start", "middle", "end"]
Style = Literal["title", "name", "small", "port", "badge"]

# The colors of cables, in turn: on a light and on a dark background.
LIGHT = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#9a6700")
DARK = ("#58a6ff", "#f0883e", "#3fb950", "#bc8cff", "#f778ba", "#d29922")

SIZES: dict[Style, int] = {"title": 16, "name": 14, "small": 11, "port": 11, "badge": 10}
_CHARACTER_EM, _WIDE_EM = 0.61, 1.05
# Relative to the font size: how far letters extend above and below the baseline.
_ASCENT, _DESCENT = 0.8, 0.25


@record
class Box:
    """A rectangle."""

    x: int
    y: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """The x coordinate of its right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> int:
        """The y coordinate of its lower edge."""
        return self.y + self.height

    @property
    def center(self) -> int:
        """The x coordinate of its center."""
        return self.x + self.width // 2

    def overlaps(self, other: "Box") -> bool:
        """Whether the two overlap in more than an edge."""
        return (
            self.x < other.right
            and other.x < self.right
            and self.y < other.bottom
            and other.y < self.bottom
        )

    def holds(self, other: "Box") -> bool:
        """Whether the other is completely inside."""
        return (
            self.x <= other.x
            and self.y <= other.y
            and other.right <= self.right
            and other.bottom <= self.bottom
        )


@record
class Label:
    """One line of text at a point of its baseline."""

    text: str
    x: int
    y: int
    style: Style
    anchor: Anchor = "start"
    muted: bool = False

    @property
    def box(self) -> Box:
        """The area that it covers."""
        size, width = SIZES[self.style], width_of(self.text, self.style)
        left = {"start": self.x, "middle": self.x - width // 2, "end": self.x - width}[self.anchor]
        top = self.y - round(size * _ASCENT)
        return Box(left, top, width, round(size * (_ASCENT + _DESCENT)))


@record
class Socket:
    """A port on the back of a node or on a switch; `color` is that of its cable."""

    box: Box
    color: int | None


@record
class Line:
    """A cable along these points, each directly above, below or beside the previous one."""

    points: tuple[tuple[int, int], ...]
    color: int
    cable: int

    @property
    def segments(self) -> tuple[Box, ...]:
        """Its straight segments, as boxes without an area."""
        return tuple(
            Box(min(ax, bx), min(ay, by), abs(ax - bx), abs(ay - by))
            for (ax, ay), (bx, by) in zip(self.points, self.points[1:], strict=False)
        )

    @property
    def path(self) -> str:
        """The `d` of an SVG path."""
        return " ".join(f"{'L' if i else 'M'} {x} {y}" for i, (x, y) in enumerate(self.points))


@record
class Badge:
    """A cable's number, on the cable where it leaves a port."""

    box: Box
    text: Label
    color: int


@record
class Drawing:
    """The whole picture; `groups` surround `frames`, which are the nodes and the switch."""

    title: str
    description: str
    width: int
    height: int
    groups: tuple[Box, ...]
    frames: tuple[Box, ...]
    sockets: tuple[Socket, ...]
    lines: tuple[Line, ...]
    badges: tuple[Badge, ...]
    texts: tuple[Label, ...]


def width_of(text: str, style: Style) -> int:
    """The width of a text."""
    em = sum(
        _WIDE_EM if unicodedata.east_asian_width(character) in "WF" else _CHARACTER_EM
        for character in text
    )
    return round(em * SIZES[style])


def fitted(text: str, style: Style, room: int, at_start: bool = False) -> str:
    """The text, truncated if there is not enough room; at its start if its end tells it apart."""
    if width_of(text, style) <= room:
        return text
    while text and width_of(text + "\u2026", style) > room:
        text = text[1:] if at_start else text[:-1]
    return "\u2026" + text.lstrip() if at_start else text.rstrip() + "\u2026"
