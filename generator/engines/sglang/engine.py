"""SGLang: `sglang serve` on every rank, all in one torch world with its API on rank 0.

Flags and environment names are those of SGLang 0.5.23 (sglang/srt/arg_groups/fields,
sglang/srt/arg_groups/validation_hook.py, sglang/srt/environ.py).
"""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.speculation import method_of
from generator.engines import handed_on
from generator.engines.arguments import arguments, draft_flags
from generator.engines.defaults import draft_settings as draft_settings
from generator.engines.defaults import open_paths as open_paths
from generator.engines.defaults import option_names as option_names
from generator.engines.defaults import options as options
from generator.engines.defaults import reads as reads
from generator.engines.offload import Connectors, OffloadTraits
from generator.settings.flags import EngineSettings
from generator.site import Engine, Model, Rank, Words
from generator.site.control_plane import LOOPBACK
from generator.sitefile.declaration import KvOffload, Parallel, Speculative
from generator.sitefile.defaults import default

if TYPE_CHECKING:
    from generator.engines import EngineModule
    from generator.engines.sglang import engine as own

    # The module is imported by name, so its type is checked here.
    _: EngineModule = own

NAME = "sglang"


FOLLOW_SCRIPT = "/opt/sparkgen/follow.sh"
SERVE_SCRIPT = "/opt/sparkgen/serve.py"

# HiCache on files, with host memory only as a buffer: otherwise it would hold as much as the GPU's
# part, in the same memory.
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

# A share of free memory has to be less than all of it and more than nothing.
_LEAST_FREE, _MOST_FRACTION = 0.01, 0.99

# SGLang's names where they differ from the site file's.
_KV_CACHE_DTYPES = {"fp8": "fp8_e4m3"}


def default_ports(launcher: str, parallel: Parallel) -> Mapping[str, int]:
    """The port of the head where all ranks meet."""
    return {"dist_init": default("engine.ports.dist_init")} if parallel.ranks > 1 else {}


def environment(rank: Rank, engine: Engine) -> Mapping[str, str]:
    """The node's own address, which SGLang would guess: its message queues listen there.

    SGLang rejects nodes whose free memory differs by a tenth; on unified memory the page cache and
    other programs are enough to cause that.
    """
    values = {ENGINE_TRAITS[NAME].address_variable: str(rank.address)}
    if engine.parallel.tensor > 1:
        values["SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK"] = "0"
    return values


def entrypoint(rank: Rank, engine: Engine) -> Words:
    """A follower ends when its head is gone; the API's key is passed to the head by a script."""
    if not rank.is_head:
        return ("bash", FOLLOW_SCRIPT, "sglang", "serve")
    return ("python3", SERVE_SCRIPT, "serve") if engine.key else ("sglang", "serve")


def scripts(rank: Rank, engine: Engine) -> Words:
    """Those of the scripts that are generated."""
    if not rank.is_head:
        return (FOLLOW_SCRIPT,)
    return (SERVE_SCRIPT,) if engine.key else ()


def flags(rank: Rank, engine: Engine, model: Model, settings: EngineSettings) -> tuple[Words, ...]:
    """The same engine flags on every rank, except for the address on which it listens."""
    return tuple(_serve(rank, engine, model, settings))


def offload_variables(offload: KvOffload) -> Mapping[str, str]:
    """The folder of the files, and their size limit in releases that have one."""
    return {
        "SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR": offload.path,
        "SGLANG_HICACHE_FILE_BACKEND_MAX_SIZE": f"{offload.gib}Gi",
    }


def _serve(rank: Rank, engine: Engine, model: Model, settings: EngineSettings) -> Iterator[Words]:
    yield (f"--model-path={model.source}",)
    yield (f"--served-model-name={model.served_name}",)
    # Other ranks answer health checks there in any case, and need not be reachable.
    yield (f"--host={engine.api.listen if rank.is_head else LOOPBACK}",)
    yield (f"--port={engine.api.port}",)
    yield from _parallel(rank, engine)
    yield from _model(engine, model)
    if "enable-metrics" not in settings:
        yield ("--enable-metrics",)
    yield from arguments(settings)


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
    yield from handed_on.words(engine, model)
    if dtype := model.kv_cache_dtype:
        yield (f"--kv-cache-dtype={_KV_CACHE_DTYPES.get(dtype, dtype)}",)
    if model.speculative:
        yield from _speculative(model.speculative, engine.version)
    if model.kv_offload:
        yield ("--enable-hierarchical-cache",)
        yield ("--hicache-storage-backend=file",)
        yield ("--hicache-host-memory-mode=buffer_only",)
        yield (f"--hicache-size={model.kv_offload.buffer_gib}",)


def free_fraction(engine: Engine) -> float:
    """The share of memory free at startup that gives the engine its share of the total.

    Memory held by others and the system is not free. All others count, including those started
    later: this engine may be restarted while they run. If they hold less, the limit on tokens keeps
    the cache at the same size. Rounded up.

    Source: SGLang 0.5.23, mem_cache/kv_cache_configurator.py, line 2990,
    `_profile_available_bytes`, and line 3090, `_apply_token_constraints`; utils/common.py, line
    427, `get_available_gpu_memory` (MemAvailable on a GB10).
    """
    if not engine.held_by_others:
        return engine.memory_utilization
    share = engine.memory_utilization / max(_LEAST_FREE, 1 - engine.held_by_others)
    return min(math.ceil(share * 1000) / 1000, _MOST_FRACTION)


def _speculative(drafts: Speculative, release: str) -> Iterator[Words]:
    """What makes drafts, how many tokens, and the site's other settings for it."""
    known = method_of(NAME, drafts.method)
    yield (f"--speculative-algorithm={known.spelled if known else drafts.method.upper()}",)
    if drafts.source:
        yield (f"--speculative-draft-model-path={drafts.source}",)
    if known and known.tree and (drafts.tokens or drafts.steps or drafts.topk):
        yield from _tree(drafts)
    elif drafts.tokens:
        yield (f"--speculative-num-draft-tokens={drafts.tokens + 1}",)
    yield from arguments(draft_flags(NAME, release, drafts))


def _tree(drafts: Speculative) -> Iterator[Words]:
    """A chain of drafts is verified together with one more token; a tree includes that token."""
    topk = drafts.topk or 1
    steps = drafts.steps or drafts.tokens or 1
    verified = drafts.tokens if topk > 1 and drafts.tokens else steps + 1
    yield (f"--speculative-num-steps={steps}",)
    yield (f"--speculative-eagle-topk={topk}",)
    yield (f"--speculative-num-draft-tokens={verified}",)
