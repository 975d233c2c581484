"""What an engine printed of its memory at its start, beside what was predicted."""

import re
from collections.abc import Iterator, Sequence

from generator.catalogs.engines import ENGINE_TRAITS
from generator.fit.assessment import Fit
from generator.fit.calibration import Correction
from generator.records import record
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel

Row = tuple[str, str, str, str]

HEAD: Row = ("", "PREDICTED", "MEASURED", "DIFFERENCE")
# By how much a figure may be off before it is worth a look.
OFF = 0.1

_NUMBER = r"(-?[\d,]+(?:\.\d+)?)"
_MIB, _GIB = 1 / 1024, 1.0
# Per rank: what a line says, and in what unit. Sources: vLLM, gpu_model_runner.py, gpu_worker.py;
# SGLang, model_runner.py and mem_cache/memory_pool.py (its GB are 2^30 bytes); TensorRT-LLM,
# resource_manager.py and kvCacheManager.cpp; llama.cpp, llama-model.cpp, llama-kv-cache.cpp.
_WEIGHTS = (
    (rf"Model loading took {_NUMBER} Gi?B", _GIB),
    (rf"Actual usage is {_NUMBER} GiB for weight,", _GIB),
    (rf"Load weight end\..*mem usage={_NUMBER} GB", _GIB),
)
_CACHE = (
    (rf"Available KV cache memory: {_NUMBER} GiB", _GIB),
    (rf"Current kv cache memory in use is {_NUMBER} GiB", _GIB),
    (rf"Allocated {_NUMBER} GiB for max tokens in paged KV cache", _GIB),
)
_GRAPHS = (
    (rf"Estimated CUDA graph memory: {_NUMBER} GiB", _GIB),
    (rf"Graph capturing finished in .* took {_NUMBER} GiB", _GIB),
    (rf"Capture cuda graph end\..*mem usage={_NUMBER} GB", _GIB),
)
_STEPS = ((rf"{_NUMBER} GiB for peak activation", _GIB),)
# What the engine sees of the node: free of all.
_VISIBLE = ((rf"Free memory on [\w: ]+\([\d.]+/{_NUMBER} GiB\)", _GIB),)
_KEYS_AND_VALUES = rf"KV Cache is allocated\..*K size: {_NUMBER} GB, V size: {_NUMBER} GB"
# llama.cpp prints a buffer for each device; together they are what one server holds there.
_BUFFERS = rf"(\S+) (model|KV|RS) buffer size =\s*{_NUMBER} MiB"
_CONCURRENCY = rf"Maximum concurrency for {_NUMBER} tokens per request: {_NUMBER}x"


@record
class Measured:
    """What the fullest rank printed, in GiB; None where no line says it.

    `sequences` of `context` tokens fit in the cache at once. `visible` is all of the node's memory.
    """

    weights: float | None
    cache: float | None
    graphs: float | None
    context: int | None
    sequences: float | None
    activations: float | None = None
    visible: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the log says nothing of memory."""
        return self.weights is None and self.cache is None


def measured(log: str) -> Measured:
    """What a log says; of several ranks and starts, the most weights and the least cache."""
    buffers = _buffers(log)
    weights = [*_found(log, _WEIGHTS), *buffers.get("model", ())]
    pairs = re.findall(_KEYS_AND_VALUES, log)
    caches = [*_found(log, _CACHE), *(_plain(k) + _plain(v) for k, v in pairs)]
    caches += [sum(sizes) for sizes in [buffers.get("KV", []) + buffers.get("RS", [])] if sizes]
    graphs = [*_found(log, _GRAPHS)]
    said = re.findall(_CONCURRENCY, log)
    return Measured(
        weights=max(weights, default=None),
        cache=min(caches, default=None),
        graphs=max(graphs, default=None),
        context=int(_plain(said[-1][0])) if said else None,
        sequences=_plain(said[-1][1]) if said else None,
        activations=max(_found(log, _STEPS), default=None),
        visible=min(_found(log, _VISIBLE), default=None),
    )


def rows(fit: Fit, seen: Measured) -> list[Row]:
    """Each figure that both have."""
    return [
        (what, f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs - 1:+.1%}" if theirs else "?")
        for what, ours, theirs in _pairs(fit, seen)
    ]


def correction(
    fit: Fit, seen: Measured, model: DeclaredModel, engine: DeclaredEngine
) -> Correction | None:
    """What the room says of the reserve, on top of what is corrected already.

    None where the room says nothing of it: the cache has a size of its own, or the engine's share
    is for weights and cache alone.
    """
    fixed = model.kv_cache_memory or ENGINE_TRAITS[engine.name].pool_flag in engine.args
    if seen.cache is None or fixed or ENGINE_TRAITS[engine.name].reserves_outside or not fit.nodes:
        return None
    least = min(fit.nodes, key=lambda node: node.headroom_gib)
    room = least.headroom_gib + least.kv_one_gib * fit.needed
    name = model.name or model.source or ""
    more = round(model.correction_gib + room - seen.cache, 2)
    return Correction(name, engine.name, engine.version, more)


def is_off(fit: Fit, seen: Measured) -> bool:
    """Whether a figure that decides differs by more than a tenth."""
    return any(abs(ours - theirs) > OFF * abs(theirs) for _, ours, theirs in _deciding(fit, seen))


def _pairs(fit: Fit, seen: Measured) -> Iterator[tuple[str, float, float]]:
    if not fit.nodes:
        return
    least = min(fit.nodes, key=lambda node: node.kv_room_gib)
    if seen.visible is not None:
        yield "memory of a node, GiB", least.visible_gib, seen.visible
    if seen.activations is not None:
        most = max(node.activations_gib for node in fit.nodes)
        yield "activations of a step, GiB", most, seen.activations
    if seen.graphs is not None:
        yield "graphs of a rank, GiB", least.graphs_gib, seen.graphs
    yield from _deciding(fit, seen)


def _deciding(fit: Fit, seen: Measured) -> Iterator[tuple[str, float, float]]:
    if not fit.nodes:
        return
    fullest = max(fit.nodes, key=lambda node: node.weights_gib + node.draft_gib)
    least = min(fit.nodes, key=lambda node: node.kv_room_gib)
    weights = fullest.weights_gib + fullest.draft_gib
    if seen.weights is not None:
        yield "weights of a rank, GiB", weights, seen.weights
    if seen.cache is not None:
        yield "room for the KV cache, GiB", least.kv_room_gib, seen.cache
    if seen.cache is not None and seen.sequences and seen.context == fit.context:
        yield f"one of {fit.context} tokens, GiB", least.kv_one_gib, seen.cache / seen.sequences


def _found(log: str, patterns: Sequence[tuple[str, float]]) -> list[float]:
    return [_plain(text) * unit for form, unit in patterns for text in re.findall(form, log)]


def _buffers(log: str) -> dict[str, list[float]]:
    found: dict[str, dict[str, float]] = {}
    for device, kind, size in re.findall(_BUFFERS, log):
        if "CPU" not in device and "Host" not in device:
            found.setdefault(kind, {})[device] = _plain(size) * _MIB
    return {kind: list(sizes.values()) for kind, sizes in found.items()}


def _plain(text: str) -> float:
    return float(text.replace(",", ""))
