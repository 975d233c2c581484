"""How the files of a bundle are read: facts, systemd's units, netplan."""

import re
from collections.abc import Iterator, Mapping

# The text of each file of a bundle by its path.
FileTexts = Mapping[str, str]

_OF_NETPLAN = re.compile(
    r"^    (?P<interface>\w+):$"
    r"|^        - (?P<address>[\d.]+/\d+)$"
    r"|^        - \{to: (?P<to>[\d.]+)/32, via: (?P<via>[\d.]+)\}$",
    re.MULTILINE,
)


def values(text: str, name: str) -> list[str]:
    """The values of NAME=VALUE lines, as in a file of facts, an environment or a unit."""
    return [rest.partition("\n")[0] for rest in text.split(f"\n{name}=")[1:]]


def value(text: str, name: str, default: str = "") -> str:
    """The last of these values, which wins in an environment and in a unit."""
    return text.rpartition(f"\n{name}=")[2].partition("\n")[0] if f"\n{name}=" in text else default


def netplan(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Each interface with an address, or with the destination and the next hop of a route."""
    interface = ""
    for found in _OF_NETPLAN.finditer(text):
        if found["interface"]:
            interface = found["interface"]
        else:
            yield interface, found["address"] or "", found["to"] or "", found["via"] or ""
