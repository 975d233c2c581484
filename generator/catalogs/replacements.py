"""What to write in place of names that a program no longer has, or never had."""

import re
from collections.abc import Mapping
from functools import cache

from generator.records import record
from generator.resources import rows


@record
class Replacement:
    """What to write in place of a name that a program no longer has, or never had.

    `gone` is the first version of a catalog without it, "earlier" if it was removed before all of
    them, "deprecated" if it still exists, and "-" if it never did.
    """

    gone: str
    instead: str

    @property
    def is_needless(self) -> bool:
        """Whether nothing has to be written in its place."""
        return self.instead.startswith("remove it")

    @property
    def word(self) -> str:
        """The single word that replaces it with the same meaning, if there is one."""
        found = re.fullmatch(r"write '?([A-Za-z0-9_.-]+)'?", self.instead)
        return found[1] if found else ""


def replacement(program: str, name: str) -> Replacement | None:
    """What to write in place of a flag, `--flag=value` or a variable, if that is known."""
    return _replacements().get((program, name.replace("_", "-")))


@cache
def _replacements() -> Mapping[tuple[str, str], Replacement]:
    return {
        (program, name.replace("_", "-")): Replacement(gone, instead)
        for program, name, gone, instead in rows("replaced")
    }
