"""How the files of a bundle are read: facts, systemd's units, netplan."""

import re
from collections.abc import Iterator, Mapping

# The text of each file of a bundle by its path.
Files = Mapping[str, str]

_FACT = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)
_OF_NETPLAN = re.compile(
    r"^    (?P<interface>\w+):$"
    r"|^        - (?P<address>[\d.]+/\d+)$"
    r"|- \{to: (?P<to>[\d.]+)/32, via: (?P<via>[\d.]+)\}$",
    re.MULTILINE,
)


def facts(text: str) -> Mapping[str, list[str]]:
    """The values of each NAME=VALUE, as in a file of facts, an environment or a unit."""
    found: dict[str, list[str]] = {}
    for name, value in _FACT.findall(text):
        found.setdefault(name, []).append(value)
    return found


def netplan(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Each interface with an address, or with the destination and the next hop of a route."""
    interface = ""
    for found in _OF_NETPLAN.finditer(text):
        if found["interface"]:
            interface = found["interface"]
        else:
            yield interface, found["address"] or "", found["to"] or "", found["via"] or ""
