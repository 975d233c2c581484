"""What vLLM logs about its memory at startup (gpu_model_runner.py, gpu_worker.py)."""

import re

from generator.engines.memory_log import NUMBER, figures, number
from generator.fit.measured import Logged

_WEIGHTS = (
    rf"(?:Model loading|Loading model weights) took {NUMBER} Gi?B",
    rf"model weights take {NUMBER}GiB",
    rf"weights memory: {NUMBER} ?GiB",
    rf"Actual usage is {NUMBER} GiB for weight,",
)
_CACHE = (
    rf"Available KV cache memory: {NUMBER} GiB",
    rf"available KV cache memory \({NUMBER} GiB",
    rf"kv_cache_size={NUMBER}GiB",
    rf"Current kv cache memory in use is {NUMBER} GiB",
    rf"reserved for KV Cache is {NUMBER}GiB",
    rf"reserved {NUMBER} GiB memory for KV Cache as specified",
)
_CACHE_BYTES = rf"Current kv cache memory in use is {NUMBER} bytes"
_GRAPHS = (
    rf"Estimated CUDA graph memory: {NUMBER} GiB",
    rf"Graph capturing finished in .* took {NUMBER} GiB",
    rf"CUDA graph pool memory: {NUMBER} GiB \(actual\)",
)
_STEPS = (
    rf"{NUMBER} GiB for peak activation",
    rf"PyTorch activation peak memory takes {NUMBER}GiB",
)
# What it reports of the node: free and total.
_VISIBLE = (rf"Free memory on [\w: ]+\([\d.]+/{NUMBER} GiB\)", rf"total_gpu_memory={NUMBER}GiB")
_CONCURRENCY = rf"Maximum concurrency for {NUMBER} tokens per request: {NUMBER}x"
# Logged as it gives up: the tokens, what they need, and what is available.
_TOO_LONG = (
    rf"max seq len \({NUMBER}\), \({NUMBER} GiB KV cache is needed, which is larger than the "
    rf"available KV cache memory \({NUMBER} GiB"
)


def logged(log: str) -> Logged:
    """What each rank logs."""
    return Logged(
        weights=figures(log, *_WEIGHTS),
        caches=[*figures(log, *_CACHE), *(size / 2**30 for size in figures(log, _CACHE_BYTES))],
        graphs=figures(log, *_GRAPHS),
        activations=figures(log, *_STEPS),
        visible=figures(log, *_VISIBLE),
        concurrency=_concurrency(log),
    )


def _concurrency(log: str) -> tuple[int, float] | None:
    """The context that it counts in, and how many of it the cache holds."""
    if matches := re.findall(_CONCURRENCY, log):
        return int(number(matches[-1][0])), number(matches[-1][1])
    matches = [tuple(map(number, three)) for three in re.findall(_TOO_LONG, log)]
    if matches and matches[-1][1]:
        context, needed, available = matches[-1]
        return int(context), available / needed
    return None
