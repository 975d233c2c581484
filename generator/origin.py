"""Where a value of a derived site comes from, as `schemas/origins.tsv` says.

Keys are written as in a site file. `{node}` and `{cable}` stand for the entry of the node or cable
that the value belongs to. Of `a|b`, the first key that the site file has counts; if it has none of
them, the value is the last one's default.
"""

from collections.abc import Mapping
from functools import cache

from generator.records import record
from generator.resources import rows


@record
class Origin:
    """Patterns of keys, and how the value follows from their values."""

    keys: str
    how: str = "as it is written"


@cache
def declared() -> Mapping[str, Origin]:
    """All rows: of a record, of its field or property, and of a variable.

    For example `site.node.Node`, `site.node.Node.ssh` and `NCCL_ALGO`.
    """
    return {name: Origin(keys, how) for name, keys, how in rows("origins")}


def origin_of(kind: type, field: str) -> Origin | None:
    """The origin of a record's field or property; None if nothing is declared for it."""
    names = [f"{base.__module__}.{base.__qualname__}"[len("generator.") :] for base in kind.__mro__]
    known = (declared().get(name) for name in (*(f"{name}.{field}" for name in names), *names))
    return next(filter(None, known), None)
