"""What a program makes of a file that it reads: its lines without comments and names for people."""

import re
from functools import lru_cache

# Files of which every line counts: own files, and those without comments.
_WHOLE = (".md", ".svg", ".html", ".json", "SHA256SUMS")
_CARRIED = "opt/sparkgen/files/"
_DIRECTIVES = ("#!", "#SBATCH")
# What scripts and systemd only repeat in their messages.
_SHOWN = ("SITE=", "Description=")


def meaning(path: str, text: str) -> tuple[str, ...]:
    """The lines that have an effect; `path` is that on the node."""
    if path.endswith(_WHOLE) or path.startswith(_CARRIED):
        return (text,)
    return _lines(text, "//" if path.endswith(".js") else "#")


# Those that differ are compared again for each step.
@lru_cache(maxsize=4096)
def _lines(text: str, comment: str) -> tuple[str, ...]:
    idle = re.compile(rf"\s*(?!{'|'.join(_DIRECTIVES)})({'|'.join((comment, *_SHOWN))})")
    return tuple(line for line in text.split("\n") if not idle.match(line))


UNKNOWN = "-"


def same(path: str, one: str, other: str) -> bool:
    """Whether two texts of a file mean the same, or may do so as far as is known."""
    return one == other or UNKNOWN in (one, other) or meaning(path, one) == meaning(path, other)
