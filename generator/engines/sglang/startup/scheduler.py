"""SGLang's scheduler: chunks and pages, queues, graphs and the cache in host memory."""

from generator.engines.conditions import excludes, needs, none_below, within
from generator.engines.sglang.startup.pages import PAGES as _PAGES
from generator.engines.startup import Condition, Refusal, Start

_CHUNK, _PAGE = "chunked-prefill-size", "page-size"


def _chunk_of_pages(start: Start) -> Refusal | None:
    chunk, page = start.number(_CHUNK), start.count(_PAGE)
    pages = _PAGES.get(start.word("attention-backend"))
    page = pages[-1] if pages and page not in pages else page
    if chunk and chunk > 0 and page > 0 and chunk % page:
        return start.refuse(
            _CHUNK,
            f"a chunk of {chunk:.0f} tokens is not a multiple of the page size {page}",
            f"write a multiple of {page}",
        )
    return None


def _multiplexed(start: Start) -> Refusal | None:
    if not start.is_on("enable-pdmux"):
        return None
    if (
        start.sizes.pipeline > 1
        or start.number(_CHUNK) != -1
        or not start.is_on("disable-overlap-schedule")
    ):
        return start.refuse(
            "enable-pdmux",
            "'enable-pdmux' can't be combined with pipeline stages, chunked prefill or "
            "overlapping steps",
            f"write '{_CHUNK}: -1' and 'disable-overlap-schedule: true' beside it, or take it out",
        )
    return None


def _padded_graphs(start: Start) -> Refusal | None:
    name = "disable-cuda-graph-padding"
    if start.is_on(name) and start.is_on("enable-torch-compile"):
        return start.refuse(
            name, f"'{name}' can't be combined with 'enable-torch-compile'", "keep one of the two"
        )
    return None


def _priorities(start: Start) -> Refusal | None:
    policy = start.word("schedule-policy") or "fcfs"
    if start.is_on("enable-priority-scheduling"):
        if policy not in ("fcfs", "lof"):
            return start.refuse(
                "schedule-policy", f"'{policy}' does not support priorities", "write fcfs or lof"
            )
    elif start.word("retraction-policy") == "priority":
        return start.refuse(
            "retraction-policy",
            "priority scheduling is not enabled",
            "write 'enable-priority-scheduling: true' beside it",
        )
    return None


def _longest_graph(start: Start) -> Refusal | None:
    name = "cuda-graph-prefill-max-context"
    number, context = start.number(name), start.model.context_length
    if number is not None and (number <= 0 or (context and number > context)):
        return start.refuse(name, f"'{name}' must be above 0 and within the context", "take it out")
    return None


def _ratio_of_windows(start: Start) -> Refusal | None:
    ratio = start.number("swa-full-tokens-ratio")
    if ratio is not None and not 0 < ratio <= 1:
        return start.refuse(
            "swa-full-tokens-ratio", "a ratio must be above 0 and at most 1", "take it out"
        )
    return None


def _hierarchical_cache(start: Start) -> Refusal | None:
    name = "enable-hierarchical-cache"
    for other in ("disable-radix-cache", "enable-lmcache"):
        if start.is_on(name) and start.is_on(other):
            return start.refuse(
                name, f"'{name}' can't be combined with '{other}'", "keep one of the two"
            )
    return None


def _lmcache(start: Start) -> Refusal | None:
    name = "enable-lmcache"
    others = (*("disable-radix-cache", "enable-dp-attention", "enable-streaming-session"),)
    found = next((other for other in others if start.is_on(other)), "")
    found = found or next((n for n in ("attn-dp-size", "dcp-size") if start.count(n) > 1), "")
    if start.is_on(name) and found:
        return start.refuse(
            name, f"'{name}' can't be combined with '{found}'", "keep one of the two"
        )
    return None


def _collected(start: Start) -> Refusal | None:
    name = "gc-threshold"
    given = start.value(name)
    if isinstance(given, list) and not 1 <= len(given) <= 3:
        return start.refuse(
            name, "Python's garbage collector takes 1 to 3 thresholds", "write 3 or fewer"
        )
    return None


def _eviction(start: Start) -> Refusal | None:
    name = "radix-eviction-policy-config"
    low, high = start.number(name, "next_prompt_estimate"), start.number(name, "threshold")
    if start.word("radix-eviction-policy") == "tlru" and (high or 0) <= (low or 0):
        return start.refuse(
            "radix-eviction-policy",
            "'tlru' needs a threshold above the estimate of the next prompt",
            f"write '{name}: {{threshold: TOKENS}}' beside it",
        )
    return None


def _buffered_cache(start: Start) -> Refusal | None:
    name = "hicache-host-memory-mode"
    if not start.is_on("enable-hierarchical-cache"):
        return None
    if start.word(name) == "buffer_only" and "hicache-storage-backend" not in start.settings:
        return start.refuse(
            name, "a buffer needs a storage backend", "write 'hicache-storage-backend' beside it"
        )
    return None


_VALIDATION = "sglang/srt/arg_groups/validation_hook.py"
_CACHE = "sglang/srt/arg_groups/kv_cache_hook.py"

_LEAST = {"schedule-conservativeness": 0, "tokenizer-worker-num": 1, "detokenizer-worker-num": 1}

CONDITIONS = (
    Condition(_chunk_of_pages, f"{_VALIDATION}:244"),
    Condition(_multiplexed, f"{_VALIDATION}:250"),
    Condition(_padded_graphs, f"{_VALIDATION}:188", (0, 5, 12)),
    Condition(_priorities, f"{_VALIDATION}:282"),
    Condition(none_below(_LEAST), f"{_VALIDATION}:273"),
    Condition(_longest_graph, "sglang/srt/arg_groups/cuda_graph_hook.py:417", (0, 5, 21)),
    Condition(_ratio_of_windows, f"{_CACHE}:428", (0, 5, 7)),
    Condition(_hierarchical_cache, f"{_CACHE}:394"),
    Condition(_lmcache, f"{_CACHE}:445", (0, 5, 21)),
    Condition(_collected, f"{_VALIDATION}:370", (0, 5, 10)),
    Condition(_eviction, f"{_CACHE}:376", (0, 5, 21)),
    Condition(within("mm-processor-worker-num", 0), f"{_VALIDATION}:276", (0, 5, 17)),
    Condition(within("swa-prefix-tails", 0), f"{_CACHE}:432", (0, 5, 21)),
    Condition(
        excludes("enable-lmcache", "enable-unified-cache-external-linker"),
        f"{_CACHE}:441",
        (0, 5, 21),
    ),
    Condition(
        needs("kv-canary-sweep-interval", "kv-canary", "log"),
        f"{_VALIDATION}:376",
        (0, 5, 13),
    ),
    Condition(_buffered_cache, "sglang/srt/arg_groups/hicache_hook.py:263", (0, 5, 19)),
)
