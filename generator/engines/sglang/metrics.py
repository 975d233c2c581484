"""SGLang's own metrics: what counts its tokens, and the dashboard's panels."""

from generator.site import Words
from generator.site.panel import Panel

TOKEN_COUNTERS: Words = ("sglang:generation_tokens_total", "sglang:prompt_tokens_total")

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
