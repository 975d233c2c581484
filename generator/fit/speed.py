"""How fast one sequence is, by what published starts on Sparks had of bandwidth and arithmetic.

A row of schemas/speeds.tsv has a kind, an engine, one node or several, the drafts, and the lower
bound of a range of a factor of two that holds at least 80 % of the published figures: of the speed
that memory bandwidth alone would allow without drafts, or in 1e12 operations per second. What has
no row has too little evidence, or figures that differ too much.
"""

from functools import cache

from generator.records import record
from generator.resources import rows

# How wide a range is.
WIDTH = 2
# Longer prompts are read more slowly, by their attention.
LONGEST_PROMPT = 32768


@record
class Speed:
    """The bounds of a speed in tokens per second, and how many published figures they rest on."""

    least: float
    most: float
    figures: int


@cache
def _rows() -> dict[tuple[str, ...], tuple[float, int]]:
    return {tuple(key): (float(least), int(count)) for *key, least, count in rows("speeds")}


def decode(bandwidth: float | None, engine: str, ranks: int, drafts: str) -> Speed | None:
    """Of decoding, from what memory bandwidth allows without drafts; None without evidence."""
    return _of("decode", engine, ranks, drafts or "none", bandwidth)


def prefill(active: float | None, engine: str, ranks: int) -> Speed | None:
    """Of reading a prompt of some thousand tokens: two operations per active parameter."""
    return _of("prefill", engine, ranks, "any", 1e12 / (2 * active) if active else None)


def _of(kind: str, engine: str, ranks: int, drafts: str, scale: float | None) -> Speed | None:
    row = _rows().get((kind, engine, "one" if ranks == 1 else "several", drafts))
    if row is None or scale is None:
        return None
    least = float(f"{row[0] * scale:.2g}")
    return Speed(least, WIDTH * least, row[1])
