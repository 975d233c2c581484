"""SGLang's own metrics: what tells whether it works, and the dashboard's panels."""

from collections.abc import Mapping

from generator.site import Words
from generator.site.panel import Panel

WORK_METRICS: Mapping[str, Words] = {
    "TOKEN_COUNTERS": ("sglang:generation_tokens_total", "sglang:prompt_tokens_total"),
    "REQUEST_GAUGES": ("sglang:num_running_reqs", "sglang:num_queue_reqs"),
    "PROGRESS": ("sglang:token_usage",),
}

PANELS: tuple[Panel, ...] = (
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
)
