"""What a node's firewall lets in, by the rules that it was given last."""

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address, ip_network

from generator.operation.state import Program

# `allow 22/tcp`, `allow from 10.0.0.0/24 to any port 22 proto tcp`, `allow from 10.0.0.2 proto tcp`
_RULE = re.compile(
    r"^allow (?:(\d+)/tcp|from (\S+)(?: to any port (\d+))? proto tcp)$", re.MULTILINE
)


def lets_in(programs: Mapping[str, Program], port: str, source: str = "") -> bool:
    """Whether these programs of a node leave a port open to an address, or to a network."""
    firewall = programs.get("firewall")
    return not firewall or any(_allows(text, port, source) for text in firewall.reads.values())


@lru_cache(maxsize=4096)
def _allows(rules: str, port: str, source: str) -> bool:
    for anybody, network, own in _RULE.findall(rules):
        is_for = ip_address(source) in ip_network(network) if source and network else "/" in network
        if (anybody or own or port) == port and (anybody or is_for):
            return True
    return False
