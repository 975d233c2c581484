"""What SGLang logs about its memory (model_runner.py, mem_cache/memory_pool.py).

Its GB are 2^30 bytes. It prints a line for each of its pools (full attention, windows, states,
those of a draft) and kinds of graphs, and each rank prints all of them, prefixed with its name.
"""

import re
from collections.abc import Iterator

from generator.engines.memory_log import NUMBER, figures
from generator.fit.measured import Logged

_WEIGHTS = rf"Load weight end\..*mem usage={NUMBER} GB"
_POOL = re.compile(
    r"^(.*?)(KV [Cc]ache (?:is )?(?=allocated\.)|Mamba Cache is (?=allocated\.)|"
    r"Capture [\w ]*graph end\.)(.*)",
    re.MULTILINE,
)
_RANK = re.compile(r"\[\d{4}-\d\d-\d\d [\d:]+ ([^\]]+)\]")
_SIZE = rf"(?:(?:size|_cache size): |mem usage=){NUMBER} ?GB"
# A start begins with its arguments.
_STARTS = "server_args="


def logged(log: str) -> Logged:
    """What each rank and start logs."""
    pools = list(_pools(log))
    return Logged(
        weights=figures(log, _WEIGHTS),
        caches=[cache for cache, _, _ in pools if cache],
        states=[states for _, states, _ in pools if states],
        graphs=[graphs for _, _, graphs in pools if graphs],
    )


def _pools(log: str) -> Iterator[tuple[float, float, float]]:
    """What each rank and start holds: cache, states and graphs."""
    for start in log.split(_STARTS):
        ranks: dict[str, list[float]] = {}
        for before, what, sizes in _POOL.findall(start):
            rank = _RANK.search(before)
            held = ranks.setdefault(rank[1] if rank else "", [0.0, 0.0, 0.0])
            kind = 2 if what.startswith("Capture") else int("Mamba" in what)
            held[kind] += sum(figures(sizes, _SIZE))
        yield from ((cache, states, graphs) for cache, states, graphs in ranks.values())
