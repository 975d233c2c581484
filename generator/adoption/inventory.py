"""NVIDIA's cluster file: the nodes' management addresses, logins and passwords, as JSON."""

import re
from collections.abc import Iterator

from generator.adoption.found import FoundNode, Loss
from generator.adoption.yaml_file import Yaml


def is_inventory(file: Yaml) -> bool:
    """Whether a file lists a cluster's nodes as NVIDIA's assistant does."""
    return next(file.items(file.get(file.root, "nodes_info")), None) is not None


def nodes(file: Yaml) -> Iterator[FoundNode]:
    """The nodes, in their order."""
    for node in file.items(file.get(file.root, "nodes_info")):
        place, user = (file.word(file.get(node, key)) for key in ("ip_address", "user"))
        if place and re.fullmatch(r"[0-9.]+", place.text):
            yield FoundNode(management=place, user=user, place=place)


def losses(file: Yaml) -> Iterator[Loss]:
    """The passwords, which no site file contains."""
    for node in file.items(file.get(file.root, "nodes_info")):
        if given := file.get(node, "password"):
            why = "passwords: a site file holds none; set up keys, and delete this file"
            yield Loss(why, file.place(given))
            return
