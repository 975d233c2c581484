"""The dashboard's panels of llama.cpp, from its own metrics."""

from generator.site.panel import Panel

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
