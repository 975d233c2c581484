"""Entries of a bundle's plan: files before they are rendered."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from generator.activation import Activation
from generator.records import record
from generator.site import Node, Site


@record
class Entry:
    """A file in the nodes' folders; nodes with the same value of `alike` have the same text.

    There is one for each engine of a node if it is `of_engine`, or for each job if it is `of_job`.

    `values` are passed to its template besides the site and the node. `payload` has no template: it
    is the same on every node of every site.
    """

    path: str
    activation: Activation
    mode: int = 0o644
    wanted: Callable[[Site, Node], bool] | None = None
    alike: Callable[[Site, Node], Hashable] | None = None
    payload: bool = False
    values: Callable[[Site, Node], dict[str, object]] | None = None
    of_engine: bool = False
    of_job: bool = False

    def instances(self, site: Site, node: Node) -> Sequence[tuple[Site, Node]]:
        """What the file is rendered for on a node: the node, or each of its engines or jobs."""
        places: Sequence[tuple[Site, Node]] = ((site, node),)
        if self.of_engine or self.of_job:
            places = site.parts_of(node.name) if self.of_engine else site.jobs_of(node.name)
        wanted = self.wanted
        return [place for place in places if wanted(*place)] if wanted else places

    def given(self, site: Site, node: Node) -> dict[str, Any]:
        """The values for the template."""
        more = self.values(site, node) if self.values else {}
        return {"site": site, "node": node, **more}


@record
class OperatorEntry:
    """A file for the operator's machine; `made` writes it if no template does.

    `payload` is the same for every site, and `wanted` tells which sites have the file.
    """

    path: str
    mode: int = 0o644
    made: Callable[[Site], str] | None = None
    payload: bool = False
    wanted: Callable[[Site], bool] | None = None

    def is_wanted(self, site: Site) -> bool:
        """Whether the site has the file."""
        return self.wanted is None or self.wanted(site)


def several(site: Site, node: Node) -> bool:
    """Whether the site has more than one node."""
    return len(site.nodes) > 1
