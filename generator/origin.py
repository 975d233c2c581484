"""Where a value of a derived site comes from, as the record that holds it declares.

A record has an `ORIGIN`, which holds for all of its fields, and in `ORIGINS` those that differ by
field. Keys are written as in a site file. `{node}` and `{cable}` stand for the entry of the node or
cable that the value belongs to; of `a|b` the first that is written counts, and where none is, the
last has its default.
"""

from collections.abc import Mapping

from generator.records import record


@record
class Origin:
    """Patterns of keys, and how the value follows from what they hold."""

    keys: str
    how: str = "as it is written"


def origins(**by_field: Origin) -> Mapping[str, Origin]:
    """Origins by the field, property or variable that each is of."""
    return by_field


def origin_of(kind: type, field: str) -> Origin | None:
    """What a class says of a field or property; None if it says nothing."""
    own: Mapping[str, Origin] = getattr(kind, "ORIGINS", {})
    return own.get(field) or getattr(kind, "ORIGIN", None)
