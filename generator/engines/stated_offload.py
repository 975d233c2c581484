"""A KV cache on disk as people configure it themselves."""

from typing import Any

from generator.records import record
from generator.site import Words
from generator.sitefile.source import Plain


@record
class StatedOffload:
    """What an engine's flags and variables say of it; `gib` is 0 if they set no limit.

    With `more` they say more than the site file's key can.
    `flags` mean nothing without it, and neither do the variables whose names begin with `prefix`.
    """

    path: str
    gib: int
    buffer_gib: int
    flags: Words
    prefix: str
    connector: str = "native"
    more: bool = False


def whole(value: Any) -> int:
    """An integer, or the integer part of a number; 0 if there is none."""
    text = str(value.meaning() if isinstance(value, Plain) else value).partition(".")[0]
    return int(text) if text.isdecimal() and len(text) < 16 else 0
