"""How a file of facts, an environment or a unit is read."""

import re
from collections.abc import Mapping

_FACT = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)


def facts(text: str) -> Mapping[str, list[str]]:
    """The values of each NAME=VALUE, as in a file of facts, an environment or a unit."""
    found: dict[str, list[str]] = {}
    for name, value in _FACT.findall(text):
        found.setdefault(name, []).append(value)
    return found
