"""What the engine is requested to hold, from its own flags and defaults."""

import re
from collections.abc import Mapping

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.engines.traits import BatchDefaults, Paging
from generator.catalogs.versions import Release, place
from generator.fit.formulas import CACHED, GIB, NOT_FREE_BYTES, captured_sizes
from generator.records import record, replace
from generator.settings.flags import EngineSettings
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel

_MOST_CAPTURED = 512
# The graphs that a mode of vLLM captures: for steps of any kind, and for decoding alone; and the
# mode of each optimization level.
_CAPTURED: Mapping[str, tuple[bool, bool]] = {
    "NONE": (False, False),
    "PIECEWISE": (True, False),
    "FULL": (True, False),
    "FULL_DECODE_ONLY": (False, True),
    "FULL_AND_PIECEWISE": (True, True),
}
_MODES: Mapping[str, str] = {"0": "NONE", "1": "PIECEWISE"}
_PREFIXES = "enable-prefix-caching"
_STATES: Mapping[str, int] = {"float32": 4, "float16": 2, "bfloat16": 2}


@record
class Division:
    """How an engine divides its room among pools, one for each kind of layer.

    `windows` is the number of tokens in windows for each token of full attention, `states` the
    bytes of states for each byte of KV cache. A request has `slots` states; `held` is their total
    if that is fixed.
    """

    windows: float
    states: float
    slots: int
    held: int | None = None


@record
class Requested:
    """What is requested; lengths in tokens, `cached` in bytes per element of KV cache.

    `step` is the most tokens of one step, `measured` of the one that activations are counted for,
    `running` the most sequences that the engine runs at once, `sequences` how many the site
    requests, `needed` how many must have room from the start.
    `pool` is a fixed size of the KV cache in bytes, `most_tokens` a limit in tokens. `block` is the
    number of tokens in a block of the cache if it is given; `caches_prefixes` whether models with
    recurrent layers keep states for prefixes. `graphs` is how many are captured: for steps of any
    kind, and for decoding; None if not known. With `profiles_images` a step has images.
    Windows are rounded up to multiples of `window_cells` tokens; with `wide_states` all of a state
    is in 32 bits. `division` is how the room is divided at startup, None if it is not.
    `context_ranks` share the tokens of a sequence. `scored` is the size in bytes of the scores that
    a sparse attention's index computes at once, and `sized_gathers` whether its entries are
    gathered in less space for long contexts. With `schedules_ahead` a step is scheduled while
    another one runs. `windows_drafts`: a draft's layers with windows keep only these.
    """

    context: int
    sequences: int
    needed: int
    running: int
    step: int
    measured: int
    cached: float
    drafted: int
    eager: bool
    text_only: bool
    profiles_images: bool
    pool: int | None
    most_tokens: int | None = None
    version: Release = ()
    block: int | None = None
    caches_prefixes: bool = False
    graphs: tuple[int, int] | None = None
    reserves_graphs: bool = True
    sorts: bool = True
    state_bytes: int | None = None
    window_cells: int = 1
    wide_states: bool = False
    division: Division | None = None
    context_ranks: int = 1
    scored: int = 0
    sized_gathers: bool = False
    schedules_ahead: bool = True
    windows_drafts: bool = False


def element_bytes(model: DeclaredModel) -> float | None:
    """Bytes of an element of KV cache; None where its type is not known."""
    return CACHED.get((model.kv_cache_dtype or "auto").lower())


def sequences(model: DeclaredModel) -> int:
    """The number of sequences that a site requests."""
    return model.max_sequences or 1


def needed(model: DeclaredModel, engine: DeclaredEngine) -> int:
    """How many of them must have room from the start."""
    return sequences(model) if ENGINE_TRAITS[engine.name].allocates_all else 1


def defaults(engine: DeclaredEngine) -> BatchDefaults:
    """The engine's default batch sizes, which vLLM doubles for throughput."""
    batch = ENGINE_TRAITS[engine.name].batch(engine.version)
    if engine.settings.word("performance-mode") != "throughput":
        return batch
    return replace(batch, tokens=2 * batch.tokens, sequences=2 * batch.sequences)


def step(engine: DeclaredEngine) -> int:
    """The most tokens of one step."""
    flag = ENGINE_TRAITS[engine.name].step_flag
    return _whole(engine.settings, flag) or defaults(engine).tokens


def requested(
    model: DeclaredModel, engine: DeclaredEngine, context: int, cached: float
) -> Requested:
    """What a site requests with sequences of this many tokens."""
    traits, settings = ENGINE_TRAITS[engine.name], engine.settings
    drafted = (model.speculative.tokens or 0) if model.speculative else 0
    batch = defaults(engine)
    running = model.max_sequences or batch.counted_sequences or batch.sequences
    paging, version = traits.paging, place(engine.version)
    graphs = _graphs(engine, running, drafted) if paging else None
    return Requested(
        context=context,
        sequences=sequences(model),
        needed=needed(model, engine),
        running=running,
        step=step(engine),
        measured=_whole(settings, traits.step_flag) or batch.counted_tokens or batch.tokens,
        cached=cached,
        drafted=drafted,
        eager=settings.is_on(traits.eager_flag) or not traits.captures_graphs or graphs == (0, 0),
        text_only=settings.is_on("language-model-only"),
        profiles_images=_profiles_images(settings),
        pool=_pool(model, settings, traits.pool_flag),
        most_tokens=int(most) if (most := settings.word(traits.tokens_flag)).isdecimal() else None,
        version=version,
        block=_whole(settings, "block-size") if paging else None,
        caches_prefixes=_caches_prefixes(engine),
        graphs=graphs,
        reserves_graphs=_reserves_graphs(engine),
        sorts=paging is not None and version < paging.draws_unsorted,
        window_cells=traits.window_cells,
        wide_states=traits.wide_states,
        state_bytes=_state_bytes(settings),
        division=_division(model, engine, drafted),
        context_ranks=context_ranks(engine),
        scored=_scored(engine, paging) if paging else 0,
        sized_gathers=paging is not None and version >= paging.sizes_gathers,
        windows_drafts=paging is not None and version >= paging.windows_drafts,
        schedules_ahead="async-scheduling" not in settings or settings.is_on("async-scheduling"),
    )


def _profiles_images(settings: EngineSettings) -> bool:
    """Whether vLLM encodes images of the largest size when it measures its memory."""
    kinds = (settings.number("limit-mm-per-prompt", kind) for kind in ("image", "video"))
    skipped = map(settings.is_on, ("language-model-only", "skip-mm-profiling"))
    return not any(skipped) and any(count != 0 for count in kinds)


def _scored(engine: DeclaredEngine, paging: Paging) -> int:
    """Source: vLLM 0.33.0, vllm/envs.py, line 1095, and sparse_attn_indexer.py, line 503."""
    limit = engine.environment.first(paging.scores_variable)
    return (int(limit) if limit.isdecimal() else 512) * 2**20


def context_ranks(engine: DeclaredEngine) -> int:
    """The number of ranks that share the KV cache of a sequence."""
    flags = ENGINE_TRAITS[engine.name].context_flags
    return max([1, *(engine.settings.count(flag) for flag in flags)])


def _state_bytes(settings: EngineSettings) -> int | None:
    """The bytes of a state's element that vLLM and SGLang are configured with."""
    return _STATES.get(settings.word("mamba-ssm-cache-dtype") or settings.word("mamba-ssm-dtype"))


def _division(model: DeclaredModel, engine: DeclaredEngine, drafted: int) -> Division | None:
    """How SGLang divides its room; each drafted token has a state, besides that of the request.

    Source: SGLang 0.5.23, mem_cache/kv_cache_configurator.py, line 3228, `_handle_max_mamba_cache`.
    """
    pools, settings = ENGINE_TRAITS[engine.name].pools, engine.settings
    if pools is None:
        return None
    uncached = settings.is_on(pools.uncached_flag)
    slots = 1 if uncached else pools.slots.get(settings.word(pools.strategy), pools.slots[""])
    steps = drafted + 1 if drafted else 0
    fixed = _whole(settings, pools.slots_flag) or (model.max_sequences if uncached else None)
    held = None
    if fixed:
        running = min(model.max_sequences or fixed, fixed // slots)
        held = fixed + 1 + steps * (running + 1)
    windows, states = (
        otherwise if (share := settings.number(flag)) is None else share
        for flag, otherwise in (pools.windows, pools.states)
    )
    return Division(windows, states, slots + steps, held)


def _graphs(engine: DeclaredEngine, running: int, drafted: int) -> tuple[int, int]:
    """The number of graphs that vLLM captures: for steps of any kind, and for decoding alone.

    Source: vLLM 0.33.0, vllm/config/vllm.py, `_set_cudagraph_sizes`: twice the sequences, at most
    512; vllm/config/compilation.py, `CUDAGraphMode`, and the levels of vllm/config/vllm.py.
    """
    settings, config = engine.settings, "compilation-config"
    listed = settings.numbers(config, "cudagraph_capture_sizes") or settings.numbers(
        "cudagraph-capture-sizes"
    )
    most = settings.number(config, "max_cudagraph_capture_size") or settings.number(
        "max-cudagraph-capture-size"
    )
    largest = int(most or min(2 * running * (1 + drafted), _MOST_CAPTURED))
    mixed = len(set(listed)) or captured_sizes(largest)
    decode = len({size for size in listed if size <= running})
    decode = decode if listed else captured_sizes(min(largest, running))
    of_any, of_decoding = _CAPTURED.get(_graph_mode(settings), (True, True))
    return mixed * of_any, decode * of_decoding


def _graph_mode(settings: EngineSettings) -> str:
    """The mode of vLLM's CUDA graphs, empty for the default one."""
    level = _MODES.get(settings.word("optimization-level"), "")
    return (settings.word("compilation-config", "cudagraph_mode") or level).upper()


def has_full_graphs(engine: DeclaredEngine) -> bool:
    """Whether vLLM captures graphs of whole steps, which need a state for each sequence."""
    eager = engine.settings.is_on(ENGINE_TRAITS[engine.name].eager_flag)
    return not eager and _graph_mode(engine.settings) not in ("NONE", "PIECEWISE")


def _reserves_graphs(engine: DeclaredEngine) -> bool:
    """Whether graphs are taken from the engine's share, rather than from what it leaves."""
    paging = ENGINE_TRAITS[engine.name].paging
    if paging is None:
        return True
    switch = engine.environment.first(paging.graphs_variable)
    return switch == "1" if switch in ("0", "1") else place(engine.version) >= paging.counts_graphs


def _pool(model: DeclaredModel, settings: EngineSettings, flag: str) -> int | None:
    if flag and model.kv_cache_gib:
        return int(model.kv_cache_gib * GIB)
    return _whole(settings, flag)


def _caches_prefixes(engine: DeclaredEngine) -> bool:
    """Whether prefixes of models with recurrent layers are cached: as requested, or by default."""
    paging, settings, flag = ENGINE_TRAITS[engine.name].paging, engine.settings, _PREFIXES
    if paging is None or flag in settings:
        return paging is not None and settings.is_on(flag)
    return place(engine.version) >= paging.caches_states


def share_bytes(visible: float, utilization: float, shares_free: bool) -> float:
    """The bytes of a node that the engine may take in all; `visible` in bytes.

    vLLM takes a fraction of the total, SGLang of what is free; TensorRT-LLM's share of free memory
    and what llama.cpp leaves free are converted from a share of the total.
    Source: vLLM, `request_memory`; SGLang, `profile_max_num_token`; TensorRT-LLM, `KvCacheConfig`;
    llama.cpp, `--fit-target`.
    """
    return (visible - (NOT_FREE_BYTES if shares_free else 0)) * utilization


def stages_of(text: str) -> tuple[int, ...] | None:
    """The layers of each stage that a variable's value means; None if it isn't such a list."""
    return tuple(map(int, text.split(","))) if re.fullmatch(r"\d+(,\d+)*", text) else None


def _whole(settings: EngineSettings, flag: str) -> int | None:
    number = settings.number(flag)
    return int(number) if number is not None and number >= 0 else None
