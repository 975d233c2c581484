"""Text tables for a terminal."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap


def columns(head: Sequence[str], rows: Iterable[Sequence[str]], width: int | None = None) -> str:
    """Format rows under a header, each column as wide as it needs to be.

    If that is wider than `width`, the widest columns are wrapped between words; if single words are
    too wide as well, each row becomes a list of its cells.
    """
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    gap = 2
    if width is not None:
        least = [max(map(_longest_word, cells)) for cells in zip(*lines, strict=True)]
        if _total(least, gap) > width:
            gap = 1
        if _total(least, gap) > width:
            return "\n\n".join("\n".join(_listed(lines[0], row)) for row in lines[1:])
        _narrow(widths, least, width - gap * (len(widths) - 1))
    return "\n".join(text for line in lines for text in _wrapped(line, widths, " " * gap))


def _narrow(widths: list[int], least: Sequence[int], width: int) -> None:
    """Narrow the widest column that can still shrink, until all fit."""
    while sum(widths) > width:
        spare = [index for index, size in enumerate(widths) if size > least[index]]
        widths[max(spare, key=lambda index: widths[index])] -= 1


def _wrapped(line: Sequence[str], widths: Sequence[int], gap: str) -> Iterator[str]:
    cells = [
        [cell] if len(cell) <= size else wrap(cell, size, break_on_hyphens=False)
        for cell, size in zip(line, widths, strict=True)
    ]
    for parts in zip_longest(*cells, fillvalue=""):
        padded = (part.ljust(size) for part, size in zip(parts, widths, strict=True))
        yield gap.join(padded).rstrip()


def _listed(head: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    size = max(map(len, head))
    for name, cell in zip(head, row, strict=True):
        yield f"{name.ljust(size)}  {cell}".rstrip()


def _total(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def _longest_word(cell: str) -> int:
    return max(map(len, cell.split()), default=0)
