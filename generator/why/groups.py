"""A site file as one group sees it, to look up origins, and where its keys are."""

from collections.abc import Mapping
from typing import Any

from generator.diagnostics import KeyPath
from generator.records import record
from generator.site import Site
from generator.sitefile.source import value_at


@record
class GroupView:
    """The part of a site file that concerns one engine.

    `written` is the place of the model and the engine, which is the top if there are no groups;
    `nodes` are indices in the file.
    """

    data: Mapping[str, Any]
    written: KeyPath
    nodes: tuple[int, ...]

    def place(self, path: KeyPath) -> KeyPath:
        """The place of a key in the site file."""
        if not self.written or not path:
            return path
        if path[0] in ("model", "engine"):
            return (*self.written, *path)
        if path[0] == "nodes" and len(path) > 1 and isinstance(path[1], int):
            return ("nodes", self.nodes[path[1]], *path[2:])
        return path


def view(site: Site, part: Site, data: Mapping[str, Any]) -> GroupView:
    """The file as a part of the site sees it."""
    if part.serving is None or not part.group:
        return GroupView(data, (), ())
    ranks = {node.name: node.rank for node in site.nodes}
    nodes = tuple(ranks[node.name] for node in part.nodes)
    written = value_at(data, part.serving.written)
    seen = {
        **data,
        "nodes": [data["nodes"][index] for index in nodes],
        "model": written["model"],
        "engine": written["engine"],
    }
    return GroupView(seen, part.serving.written, nodes)
