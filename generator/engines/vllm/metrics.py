"""vLLM's own metrics: what counts its tokens, and the dashboard's panels."""

from generator.site import Words
from generator.site.panel import Panel

TOKEN_COUNTERS: Words = ("vllm:generation_tokens_total", "vllm:prompt_tokens_total")

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
