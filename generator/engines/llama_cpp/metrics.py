"""llama.cpp's own metrics: what tells whether it works, and the dashboard's panels."""

from collections.abc import Mapping

from generator.site import Words
from generator.site.panel import Panel

WORK_METRICS: Mapping[str, Words] = {
    "TOKEN_COUNTERS": ("llamacpp:tokens_predicted_total", "llamacpp:prompt_tokens_total"),
    "REQUEST_GAUGES": ("llamacpp:requests_processing", "llamacpp:requests_deferred"),
    "PROGRESS": ("llamacpp:n_decode_total",),
}

PANELS: tuple[Panel, ...] = (
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
)
