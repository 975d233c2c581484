"""NVIDIA's cluster file: the nodes' management addresses, logins and passwords, as JSON."""

import json
import re
from collections.abc import Iterator
from typing import Any

from generator.adoption.found import FoundNode, Loss
from generator.adoption.text import Text


def nodes_info(raw: str) -> list[dict[str, Any]] | None:
    """The nodes of such a file; None for any other."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    nodes = data.get("nodes_info") if isinstance(data, dict) else None
    is_list = isinstance(nodes, list) and all(isinstance(node, dict) for node in nodes)
    return nodes if is_list else None


def nodes(text: Text, entries: list[dict[str, Any]]) -> Iterator[FoundNode]:
    """The nodes, in their order."""
    at = 0
    for node in entries:
        address, user = str(node.get("ip_address", "")), str(node.get("user", ""))
        if not re.fullmatch(r"[0-9.]+", address):
            continue
        at = max(text.text.find(f'"{address}"', at), 0)
        place = text.word(address, at + 1, at + 1 + len(address))
        found = text.text.find(f'"{user}"', at)
        login = text.word(user, found + 1, found + 1 + len(user)) if user and found >= 0 else None
        yield FoundNode(management=place, user=login, place=place)
        at += 1


def losses(text: Text, entries: list[dict[str, Any]]) -> Iterator[Loss]:
    """The passwords, which no site file contains."""
    if any(node.get("password") for node in entries) and (at := text.text.find('"password"')) >= 0:
        place = text.word("password", at, at + len('"password"'))
        yield Loss("passwords: a site file holds none; set up keys, and delete this file", place)
