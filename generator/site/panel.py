"""Panels of a Grafana dashboard, those of `schemas/panels.yaml`."""

from generator import precompiled
from generator.records import record


@record
class Panel:
    """One graph: its title, Grafana's name for the unit, and each query with its legend."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


def panels_of(what: str) -> tuple[Panel, ...]:
    """The panels of an engine, by its name, of a service or of the nodes."""
    held = precompiled.schema("panels").get(what, ())
    return tuple(Panel(p["title"], p["unit"], tuple(map(tuple, p["queries"]))) for p in held)
