"""A site file as the origins of a group's files are looked up in, and where its keys stand."""

from collections.abc import Mapping
from typing import Any

from generator.diagnostics import KeyPath
from generator.records import record
from generator.site import Site
from generator.sitefile.sections import GROUPS


@record
class View:
    """What a site file holds for one engine; `group` and `nodes` are indices in the file.

    `group` is where the model and the engine are written, None where there are no groups.
    """

    data: Mapping[str, Any]
    group: int | None
    nodes: tuple[int, ...]

    def place(self, path: KeyPath) -> KeyPath:
        """Where a key stands in the site file."""
        if self.group is None or len(path) < 1:
            return path
        if path[0] in ("model", "engine"):
            return (GROUPS, self.group, *path)
        if path[0] == "nodes" and len(path) > 1 and isinstance(path[1], int):
            return ("nodes", self.nodes[path[1]], *path[2:])
        return path


def view(site: Site, part: Site, data: Mapping[str, Any]) -> View:
    """The file as a part of the site sees it."""
    if not part.group:
        return View(data, None, ())
    groups = data[GROUPS]
    names = [group["name"] for group in groups]
    own = groups[names.index(part.group)]
    group = names.index(own.get("like", part.group))
    ranks = {node.name: node.rank for node in site.nodes}
    nodes = tuple(ranks[node.name] for node in part.nodes)
    written = groups[group]
    seen = {
        **data,
        "nodes": [data["nodes"][index] for index in nodes],
        "model": written["model"],
        "engine": written["engine"],
    }
    return View(seen, group, nodes)
