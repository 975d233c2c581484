"""A container's resource limits, as a site file states them."""

import re

from generator.adoption.draft import Draft
from generator.adoption.found import FoundContainer
from generator.sitefile.defaults import default
from generator.sitefile.text_types import TEXT_TYPES

# The key in a site, its type of text, and Docker's name for it.
_LIMITS = (
    ("memory", "gib", ("memory", "m")),
    ("shm", "gib", ("shm-size",)),
    ("cpus", "cpus", ("cpuset-cpus",)),
)
# Source: docker/go-units, RAMInBytes.
_SIZE = re.compile(r"([0-9]{1,18}) ?([kmgt])?i?b?", re.IGNORECASE)
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def limits(draft: Draft, container: FoundContainer) -> None:
    """Write a container's limits, if they differ from sparkgen's."""
    given = container.options
    # /dev/shm is then the node's own, whatever its size.
    without = ("shm",) if "ipc" in given and given["ipc"].text == "host" else ()
    for key, text_type, names in _LIMITS:
        word = next((given[name] for name in names if name in given), None)
        if word is None or key in without:
            continue
        path = ("engine", "container", key)
        text = _gib(word.text) if text_type == "gib" else word.text
        if not TEXT_TYPES[text_type].fits(text):
            draft.lose(f"{names[0]} {word.text} of the container", word)
        elif key != "shm" or text != default("engine.container.shm"):
            draft.put(path, text, word)


def _gib(size: str) -> str:
    """A size in Docker's syntax, in GiB; empty if it isn't a whole number of them."""
    whole, rest = divmod(size_in_bytes(size) or 0, 1 << 30)
    return f"{whole}g" if whole and not rest else ""


def size_in_bytes(size: str) -> int | None:
    """A size in Docker's syntax, in bytes; None if it is none."""
    found = _SIZE.fullmatch(size)
    return int(found[1]) << _SHIFTS[(found[2] or "").lower()] if found else None
