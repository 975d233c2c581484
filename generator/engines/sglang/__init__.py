"""SGLang: `sglang serve` on every rank, all of them in one torch world that rank 0 answers for.

Flags and environment names are those of SGLang 0.5.23 (sglang/srt/arg_groups/fields,
sglang/srt/arg_groups/validation_hook.py, sglang/srt/environ.py).
"""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from generator.catalogs.engines.sglang import NAME
from generator.catalogs.speculation import method_of
from generator.engines.arguments import arguments, settings
from generator.engines.offload import Connectors, OffloadTraits
from generator.engines.sglang.panels import PANELS as PANELS
from generator.engines.startup import Condition
from generator.fit.assessment import Fit
from generator.origin import Origin
from generator.site import Engine, Model, Rank, Words
from generator.site.control_plane import LOOPBACK
from generator.sitefile.declaration import Argument, KvOffload, Parallel, Speculative
from generator.sitefile.defaults import default

if TYPE_CHECKING:
    from generator.engines import EngineModule, sglang

    # It is imported by its name, which says nothing of its type.
    _: EngineModule = sglang

LAUNCHERS: tuple[str, ...] = ("native",)
API_PORT = 30000
API_KEY: str | None = "SGLANG_API_KEY"
# SGLang points Inductor, TileLang and the CUDA driver below its own folder itself.
CACHES: Mapping[str, str] = {
    "SGLANG_CACHE_DIR": "sglang",
    "SGLANG_JIT_CACHE_DIR": "sglang/jit",
    "TVM_FFI_CACHE_DIR": "tvm-ffi",
}
HEALTH: Words = ("python3", "/opt/sparkgen/health.py")
# Any answer of the scheduler within 20 s will do, so a busy engine is not asked for more; a token
# of its own is generated only where it is idle. It wants no key.
HEALTH_GENERATES: str | None = "/health_generate"
# With these the API speaks TLS.
TLS_FLAGS: tuple[str, ...] = ("ssl-certfile",)

FOLLOW_SCRIPT = "/opt/sparkgen/follow.sh"
SERVE_SCRIPT = "/opt/sparkgen/serve.py"

# Flags that the site file has a key for, or that only the generator can know.
VARIABLE_ORIGINS: Mapping[str, Origin] = {
    "SGLANG_HOST_IP": Origin(
        "topology.control_plane|topology.kind {node}.management",
        "the node's address on the control plane",
    ),
}
# HiCache on files, with host memory as a mere buffer: else it would hold as much as the GPU's part,
# out of the same memory.
OFFLOAD: Connectors = {
    "native": OffloadTraits(
        since=(0, 5, 19),
        contradicted_by=(
            *("enable-hierarchical-cache", "enable-hicache", "hicache-ratio", "hicache-size"),
            *("hicache-host-memory-mode", "hicache-storage-backend", "enable-lmcache"),
            "disable-radix-cache",
        ),
        spans_nodes=True,
    )
}
OWNED_FLAGS: Mapping[str, str] = {
    "model-path": "model.name",
    "served-model-name": "model.served_name",
    "revision": "model.revision",
    "context-length": "model.context_length",
    "max-running-requests": "model.max_sequences",
    "kv-cache-dtype": "model.kv_cache_dtype",
    "quantization": "model.quantization",
    "speculative-algorithm": "model.speculative",
    "speculative-draft-model-path": "model.speculative",
    "speculative-num-steps": "model.speculative",
    "speculative-eagle-topk": "model.speculative",
    "speculative-num-draft-tokens": "model.speculative",
    "mem-fraction-static": "engine.memory_utilization",
    "tp-size": "engine.parallel.tensor",
    "pp-size": "engine.parallel.pipeline",
    "dp-size": "engine.parallel.data",
    "ep-size": "engine.parallel.expert",
    "host": "engine.bind",
    "port": "engine.port",
    "api-key": "engine.secrets (SGLANG_API_KEY)",
    "dist-init-addr": "",
    "nnodes": "",
    "node-rank": "",
}

# A share of what is free is less than all of it, and of more than nothing.
_LEAST_FREE, _MOST_FRACTION = 0.01, 0.99

# The names of the same things; what is not here is spelt alike.
_KV_CACHE_DTYPES = {"fp8": "fp8_e4m3"}


def conditions() -> tuple[Condition, ...]:
    """What the engine refuses or dies of at its start; imported where that is asked for."""
    from generator.engines.sglang.startup import CONDITIONS

    return CONDITIONS


def default_ports(launcher: str, parallel: Parallel) -> Mapping[str, int]:
    """The port of the head at which all ranks meet."""
    return {"dist_init": default("engine.ports.dist_init")} if parallel.ranks > 1 else {}


def environment(rank: Rank, engine: Engine) -> Mapping[str, str]:
    """The node's own address, which SGLang would guess: it binds its message queues there.

    Nodes whose free memory differs by a tenth are refused; on unified memory the page cache and
    whatever else runs are enough for that.
    """
    values = {"SGLANG_HOST_IP": str(rank.address)}
    if engine.parallel.tensor > 1:
        values["SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK"] = "0"
    return values


def entrypoint(rank: Rank, engine: Engine) -> Words:
    """A follower ends when its head is gone; a key reaches the head's API by a script alone."""
    if not rank.is_head:
        return ("bash", FOLLOW_SCRIPT, "sglang", "serve")
    return ("python3", SERVE_SCRIPT, "serve") if engine.key else ("sglang", "serve")


def scripts(rank: Rank, engine: Engine) -> Words:
    """What of that is generated."""
    if not rank.is_head:
        return (FOLLOW_SCRIPT,)
    return (SERVE_SCRIPT,) if engine.key else ()


def reads(rank: Rank, model: Model, hub: str) -> Words:
    """Every rank reads its share itself."""
    return (hub, *model.folders)


def flags(
    rank: Rank, engine: Engine, model: Model, args: Mapping[str, Argument]
) -> tuple[Words, ...]:
    """The same engine flags on every rank but for the address that each one serves at."""
    return tuple(_serve(rank, engine, model, args))


def open_paths(version: str, env: Mapping[str, str], args: Mapping[str, Argument]) -> Words:
    """None is known."""
    return ()


def offload_variables(offload: KvOffload) -> Mapping[str, str]:
    """Where the files are, and their bound in the releases that have one."""
    return {
        "SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR": offload.path,
        "SGLANG_HICACHE_FILE_BACKEND_MAX_SIZE": f"{offload.gib}Gi",
    }


def options(
    engine: Engine, model: Model, args: Mapping[str, Argument], memory: Fit | None
) -> Mapping[str, Any]:
    """All is said on the command line."""
    return {}


def _serve(
    rank: Rank, engine: Engine, model: Model, args: Mapping[str, Argument]
) -> Iterator[Words]:
    yield (f"--model-path={model.source}",)
    yield (f"--served-model-name={model.served_name}",)
    # Ranks above 0 answer health checks there whatever happens, and need not be reachable.
    yield (f"--host={engine.api.listen if rank.is_head else LOOPBACK}",)
    yield (f"--port={engine.api.port}",)
    yield from _parallel(rank, engine)
    yield from _model(engine, model)
    if "enable-metrics" not in args:
        yield ("--enable-metrics",)
    yield from arguments(NAME, engine.version, args)


def _parallel(rank: Rank, engine: Engine) -> Iterator[Words]:
    sizes = engine.parallel
    if rank.count == 1:
        return
    yield (f"--tp-size={sizes.tensor}",)
    yield (f"--pp-size={sizes.pipeline}",)
    if sizes.expert:
        yield (f"--ep-size={sizes.experts_over or sizes.tensor}",)
    yield (f"--nnodes={rank.count}",)
    yield (f"--node-rank={rank.index}",)
    yield (f"--dist-init-addr={rank.head}:{engine.ports['dist_init']}",)


def _model(engine: Engine, model: Model) -> Iterator[Words]:
    yield (f"--mem-fraction-static={free_fraction(engine)}",)
    if model.revision:
        yield (f"--revision={model.revision}",)
    if model.context_length:
        yield (f"--context-length={model.context_length}",)
    if model.max_sequences:
        yield (f"--max-running-requests={model.max_sequences}",)
    if dtype := model.kv_cache_dtype:
        yield (f"--kv-cache-dtype={_KV_CACHE_DTYPES.get(dtype, dtype)}",)
    if model.quantization:
        yield (f"--quantization={model.quantization}",)
    if model.speculative:
        yield from _speculative(model.speculative, engine.version)
    if model.kv_offload:
        yield ("--enable-hierarchical-cache",)
        yield ("--hicache-storage-backend=file",)
        yield ("--hicache-host-memory-mode=buffer_only",)
        yield (f"--hicache-size={model.kv_offload.buffer_gib}",)


def free_fraction(engine: Engine) -> float:
    """The share of what is free at the start that makes weights and cache the engine's part of all.

    What others and the system hold is not free. All of them count, also those that are started
    later: this one may be restarted when they are there. Where less is held, the bound on tokens
    keeps the cache as large. Rounded up.

    Source: SGLang 0.5.23, mem_cache/kv_cache_configurator.py, line 2990,
    `_profile_available_bytes`, and line 3090, `_apply_token_constraints`; utils/common.py, line
    427, `get_available_gpu_memory` (MemAvailable on a GB10).
    """
    if not engine.held_by_others:
        return engine.memory_utilization
    share = engine.memory_utilization / max(_LEAST_FREE, 1 - engine.held_by_others)
    return min(math.ceil(share * 1000) / 1000, _MOST_FRACTION)


def _speculative(drafts: Speculative, release: str) -> Iterator[Words]:
    """What drafts, how many tokens, and what else the site says of it."""
    known = method_of(NAME, drafts.method)
    yield (f"--speculative-algorithm={known.spelled if known else drafts.method.upper()}",)
    if drafts.source:
        yield (f"--speculative-draft-model-path={drafts.source}",)
    if known and known.tree:
        yield from _tree(drafts)
    elif drafts.tokens:
        yield (f"--speculative-num-draft-tokens={drafts.tokens + 1}",)
    yield from arguments(NAME, release, settings("speculative-", drafts))


def _tree(drafts: Speculative) -> Iterator[Words]:
    """A chain of drafts is verified with one token more than it has; a tree has that one in it."""
    topk = drafts.topk or 1
    steps = drafts.steps or drafts.tokens or 1
    verified = drafts.tokens if topk > 1 and drafts.tokens else steps + 1
    yield (f"--speculative-num-steps={steps}",)
    yield (f"--speculative-eagle-topk={topk}",)
    yield (f"--speculative-num-draft-tokens={verified}",)
