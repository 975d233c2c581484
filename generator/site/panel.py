"""What a dashboard shows of an engine, a node or a service."""

from generator.records import record


@record
class Panel:
    """One graph: its title, the unit as Grafana calls it, and each query with its legend."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
