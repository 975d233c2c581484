"""What the schema says of each kind of topology, so that it is known without the kind's module."""

from collections.abc import Mapping
from functools import cache

from generator.records import record
from generator.sitefile.key_rules import rules_at


@record
class KindTraits:
    """How many nodes a kind connects, and what with.

    `switched`: each cable goes to a switch. `groups_alone`: it only connects nodes in groups, and
    never all nodes of a site.
    """

    fewest: int
    most: int
    switched: bool = False
    groups_alone: bool = False

    @property
    def connects_directly(self) -> bool:
        """Whether its cables connect all nodes of a site, without a switch."""
        return not (self.switched or self.groups_alone)


@cache
def kind_traits() -> Mapping[str, KindTraits]:
    """The traits of each kind, in the schema's order."""
    kinds = rules_at(("topology", "kind"))["meta"]["kinds"]
    return {name: KindTraits(**traits) for name, traits in kinds.items()}
