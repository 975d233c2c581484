"""vLLM's own metrics: what tells whether it works, and the dashboard's panels."""

from collections.abc import Mapping

from generator.site import Words
from generator.site.panel import Panel

WORK_METRICS: Mapping[str, Words] = {
    "TOKEN_COUNTERS": ("vllm:generation_tokens_total", "vllm:prompt_tokens_total"),
    "REQUEST_GAUGES": ("vllm:num_requests_running", "vllm:num_requests_waiting"),
    "PROGRESS": ("vllm:kv_cache_usage_perc",),
}

PANELS: tuple[Panel, ...] = (
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
)
