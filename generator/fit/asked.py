"""What the engine is asked to hold, in its own words and by its own defaults."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from generator.declaration import Argument, DeclaredEngine, DeclaredModel
from generator.fit.formulas import CACHED, GIB

# From this release vLLM takes the GB10 for a small GPU: fewer tokens a step, fewer sequences.
# Source: vLLM 0.33.0 and 0.19.0, vllm/engine/arg_utils.py, `get_batch_defaults`.
_VLLM_SMALL = (0, 33)
_STEP = {"vllm": 2048, "sglang": 8192, "tensorrt-llm": 8192, "llama.cpp": 512}
_SEQUENCES = {"vllm": 256, "sglang": 256, "tensorrt-llm": 64, "llama.cpp": 1}
_LARGE_STEP, _LARGE_SEQUENCES = 8192, 1024

_STEP_FLAGS = {
    "vllm": "max-num-batched-tokens",
    "sglang": "chunked-prefill-size",
    "tensorrt-llm": "max_num_tokens",
    "llama.cpp": "ubatch-size",
}
_EAGER_FLAGS = {"vllm": "enforce-eager", "sglang": "disable-cuda-graph"}
_POOL_FLAGS = {"vllm": "kv-cache-memory-bytes"}
_STAGE_VARIABLES = {"vllm": "VLLM_PP_LAYER_PARTITION", "sglang": "SGLANG_PP_LAYER_PARTITION"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked; lengths in tokens, `cached` in bytes an element of KV cache.

    `step` is the most tokens of one step, `running` the most sequences that the engine runs at
    once, `sequences` those that the site asks for, `needed` those that must have room from the
    start. `pool` is a fixed size of the KV cache in bytes;
    `stages` are the layers of each pipeline stage where they are given.
    """

    context: int | None
    sequences: int
    needed: int
    running: int
    step: int
    cached: float | None
    drafted: int
    eager: bool
    text_only: bool
    pool: int | None
    stages: tuple[int, ...]


def asked(model: DeclaredModel, engine: DeclaredEngine, longest: int | None) -> Asked:
    """What a site asks for; `longest` is the model's own context, which is the default."""
    step, running = _defaults(engine)
    args = engine.args
    return Asked(
        context=model.context_length or longest,
        sequences=model.max_sequences or 1,
        needed=(model.max_sequences or 1) if allocates_all(engine.name) else 1,
        running=model.max_sequences or running,
        step=_number(args, _STEP_FLAGS[engine.name]) or step,
        cached=CACHED.get((model.kv_cache_dtype or "auto").lower()),
        drafted=model.speculative.tokens if model.speculative else 0,
        eager=args.get(_EAGER_FLAGS.get(engine.name, "")) is True
        or not uses_graphs_and_nccl(engine.name),
        text_only=args.get("language-model-only") is True,
        pool=_number(args, _POOL_FLAGS.get(engine.name, "")),
        stages=given_stages(engine) or (),
    )


def share_bytes(visible: float, utilization: float) -> float:
    """Bytes of a node that the engine may take in all; `visible` in bytes.

    vLLM and SGLang take a fraction of all; TensorRT-LLM's share of free memory and what llama.cpp
    leaves free are converted from one.
    Source: vLLM, `request_memory`; SGLang, `profile_max_num_token`; TensorRT-LLM, `KvCacheConfig`;
    llama.cpp, `--fit-target`.
    """
    return visible * utilization


def allocates_all(engine: str) -> bool:
    """Whether the cache of all sequences is allocated at the start, and not shared as they grow.

    Source: llama.cpp, `--ctx-size` is the sum over its slots.
    """
    return engine == "llama.cpp"


def uses_graphs_and_nccl(engine: str) -> bool:
    """Whether the engine captures graphs of many sizes, and talks over NCCL.

    Source: llama.cpp, ggml/src/ggml-rpc: over TCP or RDMA of its own.
    """
    return engine != "llama.cpp"


def reserve_is_outside(engine: str) -> bool:
    """Whether activations and graphs come out of what the engine's fraction leaves.

    Source: SGLang: mem_fraction_static = (weights + KV cache pool) / memory.
    """
    return engine == "sglang"


def spreads_experts_over_replicas(engine: str) -> bool:
    """Whether data parallel ranks share the experts of a model, spread or sliced.

    Source: vLLM, `FusedMoEParallelConfig.flatten_tp_across_dp_and_pcp`.
    """
    return engine == "vllm"


def stage_variable(engine: DeclaredEngine) -> str:
    """The variable that gives the engine the layers of each stage; nothing if it has none."""
    return _STAGE_VARIABLES.get(engine.name, "")


def given_stages(engine: DeclaredEngine) -> tuple[int, ...] | None:
    """Layers of each pipeline stage as a variable gives them; None if none does, or not so."""
    text = engine.env.get(stage_variable(engine), "")
    return tuple(map(int, text.split(","))) if re.fullmatch(r"\d+(,\d+)*", text) else None


def release(version: str) -> tuple[int, ...]:
    """A version as numbers that compare: `0.19.0rc1` is the release that it leads up to."""
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"rc|post|dev|-", version)[0]))


def _defaults(engine: DeclaredEngine) -> tuple[int, int]:
    if engine.name == "vllm" and release(engine.version) < _VLLM_SMALL:
        return _LARGE_STEP, _LARGE_SEQUENCES
    return _STEP[engine.name], _SEQUENCES[engine.name]


def _number(args: Mapping[str, Argument], flag: str) -> int | None:
    """A flag's number as engines read it: 16384, 16k, 8G or 8GiB."""
    said = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgG])?(i?[bB])?", str(args.get(flag, "")))
    if not said:
        return None
    powers = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "K": 1024, "M": 1024**2, "G": GIB}
    return int(float(said[1]) * powers[said[2] or ""])
