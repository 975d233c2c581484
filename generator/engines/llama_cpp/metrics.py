"""llama.cpp's own metrics: what counts its tokens, and the dashboard's panels."""

from generator.site import Words
from generator.site.panel import Panel

TOKEN_COUNTERS: Words = ("llamacpp:tokens_predicted_total", "llamacpp:prompt_tokens_total")

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
