"""The panels that a dashboard has for an engine, a node or a service."""

from generator.records import record


@record
class Panel:
    """One graph: its title, Grafana's name for the unit, and each query with its legend."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
