"""Where a value of a derived site comes from, as declared by the record that holds it.

A record's `ORIGIN` holds for all of its fields, except for those listed in `ORIGINS`. Keys are
written as in a site file. `{node}` and `{cable}` stand for the entry of the node or cable that the
value belongs to. Of `a|b`, the first key that the site file has counts; if it has none of them, the
value is the last one's default.
"""

from collections.abc import Mapping

from generator.records import record


@record
class Origin:
    """Patterns of keys, and how the value follows from their values."""

    keys: str
    how: str = "as it is written"


def origins(**by_field: Origin) -> dict[str, Origin]:
    """Origins by the name of a field, property or variable."""
    return by_field


def origin_of(kind: type, field: str) -> Origin | None:
    """The origin that a class declares for a field or property; None if it declares none."""
    own: Mapping[str, Origin] = getattr(kind, "ORIGINS", {})
    return own.get(field) or getattr(kind, "ORIGIN", None)
