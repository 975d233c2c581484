"""What the schema says of each kind of topology, so that it is known without the kind's module."""

from collections.abc import Mapping
from functools import cache
from typing import Literal

from generator.records import record
from generator.sitefile.key_rules import rules_at


@record
class KindTraits:
    """How many nodes a kind connects, what with, and how it is described.

    `mtu`, in bytes, and `control_plane` hold unless the site overrides them, the latter only if
    every node has a management network. `meaning` is the description in `init`, which assumes the
    kind for up to `usual` nodes, or `most`. In the forms of a summary and a description, the number
    of nodes is {0}, and an 's' for several {1}. `switched`: each cable goes to a switch.
    `groups_alone`: it only connects nodes in groups, and never all nodes of a site. `reaches_all`:
    a fabric interface reaches all nodes. `same_port`: a cable connects the same port of both nodes.
    `spare_cables`: a second one may connect the same two.
    """

    fewest: int
    most: int
    mtu: int
    control_plane: Literal["management", "fabric"]
    meaning: str
    summary_form: str
    description_form: str = ""
    usual: int | None = None
    switched: bool = False
    groups_alone: bool = False
    reaches_all: bool = True
    same_port: bool = False
    spare_cables: bool = False

    @property
    def assumed_for(self) -> int:
        """The largest number of nodes for which `init` assumes this kind."""
        return self.most if self.usual is None else self.usual

    @property
    def connects_directly(self) -> bool:
        """Whether its cables connect all nodes of a site, without a switch."""
        return not (self.switched or self.groups_alone)


@cache
def kind_traits() -> Mapping[str, KindTraits]:
    """The traits of each kind, in the schema's order."""
    kinds = rules_at(("topology", "kind"))["meta"]["kinds"]
    return {name: KindTraits(**traits) for name, traits in kinds.items()}
