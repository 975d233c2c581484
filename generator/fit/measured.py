"""What an engine logged about its memory at startup, compared with the prediction."""

import re
from collections.abc import Iterator, Sequence

from generator.catalogs.engines import ENGINE_TRAITS
from generator.fit.assessment import Fit
from generator.fit.calibration import Correction
from generator.records import record
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel

Row = tuple[str, str, str, str]

HEAD: Row = ("", "PREDICTED", "MEASURED", "DIFFERENCE")
# How far a figure may be off before it needs attention.
OFF = 0.1

_NUMBER = r"(-?[\d,]+(?:\.\d+)?)"
_MIB, _GIB = 1 / 1024, 1.0
# Marks TensorRT-LLM's lines of the start that only measures.
_PROFILED = " in memory usage profiling"
# Per rank: the text of a line, and its unit. Sources: vLLM, gpu_model_runner.py, gpu_worker.py;
# SGLang, model_runner.py and mem_cache/memory_pool.py (its GB are 2^30 bytes); TensorRT-LLM,
# _util.py, resource_manager.py and kvCacheManager.cpp; llama.cpp, llama-model.cpp and
# llama-kv-cache.cpp.
_WEIGHTS = (
    (rf"(?:Model loading|Loading model weights) took {_NUMBER} Gi?B", _GIB),
    (rf"model weights take {_NUMBER}GiB", _GIB),
    (rf"weights memory: {_NUMBER} ?GiB", _GIB),
    (rf"Actual usage is {_NUMBER} GiB for weight,", _GIB),
    (rf"Load weight end\..*mem usage={_NUMBER} GB", _GIB),
    (rf"after loading model weights \(inside torch\){_PROFILED}: {_NUMBER} GiB", _GIB),
)
_CACHE = (
    (rf"Available KV cache memory: {_NUMBER} GiB", _GIB),
    (rf"available KV cache memory \({_NUMBER} GiB", _GIB),
    (rf"kv_cache_size={_NUMBER}GiB", _GIB),
    (rf"Current kv cache memory in use is {_NUMBER} GiB", _GIB),
    (rf"Current kv cache memory in use is {_NUMBER} bytes", 1 / 2**30),
    (rf"reserved for KV Cache is {_NUMBER}GiB", _GIB),
    (rf"reserved {_NUMBER} GiB memory for KV Cache as specified", _GIB),
)
# Follows the last line of a profile, which allocates a small cache and frees it.
_LASTING = ((rf"Allocated {_NUMBER} GiB for max tokens in paged KV cache", _GIB),)
_GRAPHS = (
    (rf"Estimated CUDA graph memory: {_NUMBER} GiB", _GIB),
    (rf"Graph capturing finished in .* took {_NUMBER} GiB", _GIB),
    (rf"CUDA graph pool memory: {_NUMBER} GiB \(actual\)", _GIB),
)
_STEPS = (
    (rf"{_NUMBER} GiB for peak activation", _GIB),
    (rf"PyTorch activation peak memory takes {_NUMBER}GiB", _GIB),
    (rf"allocated during inference \(inside torch\){_PROFILED}: {_NUMBER} GiB", _GIB),
)
# What the engine reports of the node: free and total.
_VISIBLE = (
    (rf"Free memory on [\w: ]+\([\d.]+/{_NUMBER} GiB\)", _GIB),
    (rf"total_gpu_memory={_NUMBER}GiB", _GIB),
    (rf"device total memory {_NUMBER} GiB", _GIB),
    (rf"- CUDA\d+ *: .*\({_NUMBER} MiB, \d+ MiB free\)", _MIB),
)
# SGLang prints a line for each of its pools (full attention, windows, states, those of a draft) and
# kinds of graphs, and each rank prints all of them, prefixed with its name. A start begins with its
# arguments.
_POOL = re.compile(
    r"^(.*?)(KV [Cc]ache (?:is )?(?=allocated\.)|Mamba Cache is (?=allocated\.)|"
    r"Capture [\w ]*graph end\.)(.*)",
    re.MULTILINE,
)
_RANK = re.compile(r"\[\d{4}-\d\d-\d\d [\d:]+ ([^\]]+)\]")
_SIZE = rf"(?:(?:size|_cache size): |mem usage=){_NUMBER} ?GB"
_SGLANG_STARTS = "server_args="
# llama.cpp prints a buffer for each device and kind of layer, those of other nodes prefixed with
# their address; together they are what it holds there. A start begins with its build;
# `load_tensors` before 2025 omits "model".
_BUFFERS = (
    r"(?:(load_tensors): +)?(\S+)(?: (model|KV|RS|DSV4 .+? state|compute))? buffer size ="
    rf"\s*{_NUMBER} MiB"
)
_ADDRESS = re.compile(r"RPC\d*\[(.+)\]")
_LLAMA_STARTS = r"(?m)^.*\bbuild(?:(?:_info)?: | \d+ \()"
_CONCURRENCY = rf"Maximum concurrency for {_NUMBER} tokens per request: {_NUMBER}x"
# What vLLM logs as it gives up: the tokens, what they need, and what is available.
_TOO_LONG = (
    rf"max seq len \({_NUMBER}\), \({_NUMBER} GiB KV cache is needed, which is larger than the "
    rf"available KV cache memory \({_NUMBER} GiB"
)


@record
class Measured:
    """What the fullest rank logged, in GiB; None if no line has it.

    `sequences` of `context` tokens fit in the cache at once. `visible` is all of the node's memory.
    `states` are pools of recurrent states beside the cache. `allocated` is the cache of an engine
    that allocates what its sequences take, whatever room there is.
    """

    weights: float | None
    cache: float | None
    graphs: float | None
    context: int | None
    sequences: float | None
    activations: float | None = None
    visible: float | None = None
    states: float | None = None
    allocated: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the log has nothing about memory."""
        return self.weights is None and self.cache is None and self.allocated is None


def measured(log: str) -> Measured:
    """What a log says; from several ranks and starts, the most weights and the least room."""
    buffers = list(_buffers(log))
    weights = [*_found(log, _WEIGHTS), *(held.model for held in buffers if held.model)]
    activations = [*_found(log, _STEPS), *(held.compute for held in buffers if held.compute)]
    pools = list(_pools(log))
    caches = [
        *_found(log, _CACHE),
        *_found(log.rpartition(_PROFILED)[2], _LASTING),
        *(cache for cache, _, _ in pools if cache),
    ]
    states = [states for _, states, _ in pools if states]
    graphs = [*_found(log, _GRAPHS), *(graphs for _, _, graphs in pools if graphs)]
    context, sequences = _concurrency(log)
    return Measured(
        weights=max(weights, default=None),
        cache=min(caches, default=None),
        graphs=max(graphs, default=None),
        context=context,
        sequences=sequences,
        activations=max(activations, default=None),
        visible=min(_found(log, _VISIBLE), default=None),
        states=min(states, default=None),
        allocated=max((held.cache for held in buffers if held.cache), default=None),
    )


def rows(fit: Fit, seen: Measured) -> list[Row]:
    """One row for each figure that both have."""
    return [
        (what, f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs - 1:+.1%}" if theirs else "?")
        for what, ours, theirs in _pairs(fit, seen)
    ]


def correction(
    fit: Fit, seen: Measured, model: DeclaredModel, engine: DeclaredEngine
) -> Correction | None:
    """The correction of the reserve that the room implies, including the present correction.

    For an engine whose share is of free memory, it corrects what isn't free. None if the cache has
    a fixed size, whose room implies nothing.
    """
    traits = ENGINE_TRAITS[engine.name]
    fixed = model.kv_cache_memory or {traits.pool_flag, traits.tokens_flag} & engine.args.keys()
    if seen.cache is None or fixed or not fit.nodes:
        return None
    least = min(fit.nodes, key=lambda node: node.headroom_gib)
    room = least.headroom_gib + least.kv_one_gib * fit.needed
    name = model.name or model.source or ""
    more = round(least.correction_gib + room - _room(fit, seen), 2)
    return Correction(name, engine.name, engine.version, more)


def is_off(fit: Fit, seen: Measured) -> bool:
    """Whether a decisive figure differs by more than a tenth."""
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
    if seen.allocated is not None:
        most = max(node.kv_requested_gib for node in fit.nodes)
        yield "KV cache of all sequences, GiB", most, seen.allocated
    if seen.cache is not None:
        yield "room for the KV cache, GiB", least.kv_room_gib, _room(fit, seen)
    if seen.cache is not None and seen.sequences and seen.context == fit.context:
        yield f"one of {fit.context} tokens, GiB", least.kv_one_gib, seen.cache / seen.sequences


def _found(log: str, patterns: Sequence[tuple[str, float]]) -> list[float]:
    return [_plain(text) * unit for form, unit in patterns for text in re.findall(form, log)]


def _room(fit: Fit, seen: Measured) -> float:
    """The cache, plus the states if they have a part of its room."""
    shares_states = any("states" in share for share in fit.shares)
    return (seen.cache or 0.0) + ((seen.states or 0.0) if shares_states else 0.0)


def _concurrency(log: str) -> tuple[int | None, float | None]:
    """The context that vLLM counts in, and how many of it the cache holds."""
    if matches := re.findall(_CONCURRENCY, log):
        return int(_plain(matches[-1][0])), _plain(matches[-1][1])
    matches = [tuple(map(_plain, three)) for three in re.findall(_TOO_LONG, log)]
    if matches and matches[-1][1]:
        context, needed, available = matches[-1]
        return int(context), available / needed
    return None, None


def _pools(log: str) -> Iterator[tuple[float, float, float]]:
    """What each rank and start of SGLang holds: cache, states and graphs."""
    for start in log.split(_SGLANG_STARTS):
        ranks: dict[str, list[float]] = {}
        for before, what, sizes in _POOL.findall(start):
            rank = _RANK.search(before)
            held = ranks.setdefault(rank[1] if rank else "", [0.0, 0.0, 0.0])
            kind = 2 if what.startswith("Capture") else int("Mamba" in what)
            held[kind] += sum(_plain(size) for size in re.findall(_SIZE, sizes))
        yield from ((cache, states, graphs) for cache, states, graphs in ranks.values())


@record
class _Buffers:
    """What llama.cpp holds on a node, in GiB."""

    model: float
    cache: float
    compute: float


def _buffers(log: str) -> Iterator[_Buffers]:
    """The buffers of each start and node, added up."""
    for start in re.split(_LLAMA_STARTS, log):
        nodes: dict[str, dict[str, float]] = {}
        for loading, device, layers, size in re.findall(_BUFFERS, start):
            kind = layers or ("model" if loading else "")
            if not kind or "CPU" in device or "Host" in device:
                continue
            kind = kind if kind in ("model", "compute") else "cache"
            address = _ADDRESS.match(device)
            held = nodes.setdefault(address[1] if address else "", {})
            held[kind] = held.get(kind, 0.0) + _plain(size) * _MIB
        for held in nodes.values():
            yield _Buffers(*(held.get(kind, 0.0) for kind in _Buffers.__match_args__))


def _plain(text: str) -> float:
    return float(text.replace(",", ""))
