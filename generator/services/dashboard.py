"""The Grafana dashboard of a site: metrics of its engine, its nodes and its fabric."""

import json
import re
from collections.abc import Iterator, Sequence

from generator.records import replace
from generator.resources import SCHEMAS
from generator.site import Part, Site
from generator.site.panel import Panel, panels_of

COLUMNS = 3
_WIDTH, _HEIGHT = 8, 8


def panels(site: Site) -> tuple[Panel, ...]:
    """All panels, the engine's first."""
    services = (panel for service in site.services.values() for panel in service.panels(site))
    of_engines = (panel for part in site.parts for panel in _of_engine(part))
    # Alternatives with the same engine have the same panels.
    return (*dict.fromkeys(of_engines), *services)


def _of_engine(part: Part) -> Iterator[Panel]:
    """The engine's panels; with several engines, each counts only its own group."""
    for panel in panels_of(part.engine.name):
        if not part.group:
            yield panel
            continue
        queries = tuple((_of_group(query, part.slot), legend) for query, legend in panel.queries)
        yield replace(panel, title=f"{part.slot}: {panel.title}", queries=queries)


def _of_group(query: str, group: str) -> str:
    """A query restricted to the label of a group's target."""
    return re.sub(r"\b[a-z]+:[a-z_]+", rf'\g<0>{{group="{group}"}}', query)


def dashboard(site: Site) -> str:
    """Panels of the engine's metrics, the nodes and the fabric; Grafana asks for the source."""
    content = json.loads((SCHEMAS / "dashboard.json").read_text(encoding="utf-8"))
    content |= {"title": site.name, "uid": f"sparkgen-{site.name}"[:40]}
    content["panels"] = [_panel(index, panel) for index, panel in enumerate(panels(site))]
    return json.dumps(content, indent=2) + "\n"


def _panel(index: int, panel: Panel) -> dict[str, object]:
    row, column = divmod(index, COLUMNS)
    return {
        "id": index + 1,
        "title": panel.title,
        "type": "timeseries",
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": _targets(panel.queries),
    }


def _targets(queries: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [
        {"refId": chr(ord("A") + index), "expr": query, "legendFormat": legend}
        for index, (query, legend) in enumerate(queries)
    ]
