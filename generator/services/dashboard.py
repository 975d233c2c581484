"""The Grafana dashboard of a site: what its engine, its nodes and its fabric say to Prometheus."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from generator.site import Site

COLUMNS = 3
_WIDTH, _HEIGHT = 8, 8


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph: its title, the unit as Grafana calls it, and a query a line with its legend."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


# Each engine has names of its own for the same things.
_ENGINES = {
    "vllm": (
        Panel(
            "Requests",
            "short",
            (("vllm:num_requests_running", "running"), ("vllm:num_requests_waiting", "waiting")),
        ),
        Panel(
            "Tokens",
            "short",
            (
                ("rate(vllm:generation_tokens_total[5m])", "generated/s"),
                ("rate(vllm:prompt_tokens_total[5m])", "read/s"),
            ),
        ),
        Panel(
            "Time to the first token",
            "s",
            (
                (
                    "histogram_quantile(0.95, sum by (le) "
                    "(rate(vllm:time_to_first_token_seconds_bucket[5m])))",
                    "95 %",
                ),
            ),
        ),
        Panel("KV cache", "percentunit", (("vllm:kv_cache_usage_perc", "in use"),)),
    ),
    "sglang": (
        Panel(
            "Requests",
            "short",
            (("sglang:num_running_reqs", "running"), ("sglang:num_queue_reqs", "waiting")),
        ),
        Panel("Tokens", "short", (("sglang:gen_throughput", "generated/s"),)),
        Panel(
            "Time to the first token",
            "s",
            (
                (
                    "histogram_quantile(0.95, sum by (le) "
                    "(rate(sglang:time_to_first_token_seconds_bucket[5m])))",
                    "95 %",
                ),
            ),
        ),
        Panel("KV cache", "percentunit", (("sglang:token_usage", "in use"),)),
    ),
    "llama.cpp": (
        Panel(
            "Requests",
            "short",
            (
                ("llamacpp:requests_processing", "running"),
                ("llamacpp:requests_deferred", "waiting"),
            ),
        ),
        Panel(
            "Tokens",
            "short",
            (
                ("rate(llamacpp:tokens_predicted_total[5m])", "generated/s"),
                ("rate(llamacpp:prompt_tokens_total[5m])", "read/s"),
            ),
        ),
    ),
}

_NODES = (
    Panel("Memory available", "bytes", (("node_memory_MemAvailable_bytes", "{{node}}"),)),
    Panel("GPU", "percent", (("DCGM_FI_DEV_GPU_UTIL", "{{node}}"),)),
    Panel("GPU power", "watt", (("DCGM_FI_DEV_POWER_USAGE", "{{node}}"),)),
    Panel("GPU temperature", "celsius", (("DCGM_FI_DEV_GPU_TEMP", "{{node}}"),)),
    Panel(
        "Free disk space",
        "bytes",
        (('node_filesystem_avail_bytes{mountpoint="/"}', "{{node}}"),),
    ),
    Panel("Targets", "short", (("up", "{{job}} {{node}}"),)),
)

# RDMA passes by the kernel: interfaces do not count it, HCAs do.
_FABRIC = (
    Panel(
        "RoCE received",
        "Bps",
        (("rate(node_infiniband_port_data_received_bytes_total[1m])", "{{node}} {{device}}"),),
    ),
    Panel(
        "RoCE sent",
        "Bps",
        (("rate(node_infiniband_port_data_transmitted_bytes_total[1m])", "{{node}} {{device}}"),),
    ),
    Panel(
        "Fabric errors",
        "short",
        (
            (
                'rate(node_network_receive_errs_total{device=~"en.*p1s0f.*"}[5m])',
                "{{node}} {{device}}",
            ),
        ),
    ),
)


def panels(site: Site) -> tuple[Panel, ...]:
    """What is shown, the engine first."""
    engine = _ENGINES.get(site.engine.name, ())
    return (*engine, *_NODES, *(_FABRIC if site.has_fabric else ()))


def dashboard(site: Site) -> str:
    """The dashboard as Grafana imports it; it asks for the data source."""
    content = {
        "title": site.name,
        "uid": f"sparkgen-{site.name}"[:40],
        "tags": ["sparkgen"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "source",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                }
            ]
        },
        "panels": [_panel(index, panel) for index, panel in enumerate(panels(site))],
    }
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
