"""What TensorRT-LLM logs about its memory (_util.py, resource_manager.py, kvCacheManager.cpp)."""

from generator.engines.memory_log import NUMBER, figures
from generator.fit.measured import Logged

# Marks lines of the start that only measures.
_PROFILED = " in memory usage profiling"
_WEIGHTS = rf"after loading model weights \(inside torch\){_PROFILED}: {NUMBER} GiB"
_STEPS = rf"allocated during inference \(inside torch\){_PROFILED}: {NUMBER} GiB"
_CACHE = rf"Allocated {NUMBER} GiB for max tokens in paged KV cache"
_VISIBLE = rf"device total memory {NUMBER} GiB"


def logged(log: str) -> Logged:
    """What each rank logs; a profile allocates a small cache and frees it, before its last line."""
    return Logged(
        weights=figures(log, _WEIGHTS),
        caches=figures(log.rpartition(_PROFILED)[2], _CACHE),
        activations=figures(log, _STEPS),
        visible=figures(log, _VISIBLE),
    )
