"""vLLM: `vllm serve` on every rank (native), or on the head of a Ray cluster (ray).

Flags and environment names are those of vLLM 0.19 to 0.33 (vllm/engine/arg_utils.py,
vllm/config/parallel.py, vllm/envs.py).
"""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.speculation import method_of
from generator.engines import handed_on
from generator.engines.arguments import arguments
from generator.engines.defaults import draft_settings as draft_settings
from generator.engines.defaults import option_names as option_names
from generator.engines.defaults import options as options
from generator.engines.defaults import reads as reads
from generator.engines.offload import Connectors, OffloadTraits
from generator.engines.vllm.routes import open_paths as open_paths
from generator.settings.flags import EngineSettings
from generator.site import Engine, Model, Rank, Words
from generator.sitefile.declaration import KvOffload, Parallel, Speculative
from generator.sitefile.defaults import default

if TYPE_CHECKING:
    from generator.engines import EngineModule
    from generator.engines.vllm import engine as own

    # The module is imported by name, so its type is checked here.
    _: EngineModule = own

NAME = "vllm"

# The folder of FlashInfer's tuning, and the releases that keep it only on rank 0.
TUNING = "VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR"

RAY_SCRIPT = "/opt/sparkgen/ray.sh"
# The secret that Ray requires from 2.52 on: anyone who can reach Ray can run anything.
RAY_TOKEN = "RAY_AUTH_TOKEN"
FOLLOW_SCRIPT = "/opt/sparkgen/follow.sh"

# The filesystem tier of the native connector came with 0.22, as did the allocator that lets memory
# be both registered and growing. All workers share one region in the memory of one host: with
# several nodes, blocks are silently corrupted (MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks issue
# 57). Ranks with LMCache look blocks up over sockets of one machine: with several nodes, none is
# found (LMCache 0.5.4, calculate_local_rank_and_world_size; LMCache issue 3472).
_OFFLOADED_BY = (
    *("kv-transfer-config", "kv-offloading-size", "kv-offloading-backend"),
    *("no-enable-prefix-caching", "enable-cumem-allocator", "no-enable-cumem-allocator"),
)
OFFLOAD: Connectors = {
    "native": OffloadTraits(since=(0, 22), contradicted_by=_OFFLOADED_BY, spans_nodes=False),
    "lmcache": OffloadTraits(
        since=(0, 22), contradicted_by=_OFFLOADED_BY, spans_nodes=False, keeps_states=False
    ),
}


def default_ports(launcher: str, parallel: Parallel) -> Mapping[str, int]:
    """Ports of the head: Ray's, the torch world's, or that of replicas with a whole model each.

    In vLLM, replicas of a dense model are not part of a torch world, so they never share one.
    """
    if launcher == "ray":
        return {name: default(f"engine.ports.{name}") for name in ("ray", "dashboard")}
    if parallel.data > 1 and parallel.tensor * parallel.pipeline == 1:
        return {"data_parallel_rpc": default("engine.ports.data_parallel_rpc")}
    return {"master": default("engine.ports.master")} if parallel.ranks > 1 else {}


def environment(rank: Rank, engine: Engine) -> Mapping[str, str]:
    """The node's own address, which vLLM would guess: its message queues listen there.

    A large model takes longer to load than the ten minutes that vLLM waits for its ranks. Ray's
    memory monitor counts the page cache as used, and kills workers on unified memory. A folder that
    only the container has is empty at each start, on every node.
    """
    traits = ENGINE_TRAITS[NAME]
    values = {traits.address_variable: str(rank.address), **traits.replaced_variables}
    if engine.traits.tunes_anew(engine.version, engine.parallel.ranks):
        values[TUNING] = "/tmp/flashinfer-autotune"
    if engine.launcher == "ray" and engine.parallel.data > 1 and _split(engine):
        values["VLLM_RAY_DP_PACK_STRATEGY"] = "span"
    if engine.launcher == "ray" and RAY_TOKEN in engine.secrets:
        values["RAY_AUTH_MODE"] = "token"
    return values


def entrypoint(rank: Rank, engine: Engine) -> Words:
    """With Ray, a script starts Ray first; a native follower ends when its head is gone."""
    if engine.launcher == "ray":
        return ("bash", RAY_SCRIPT)
    if _follows(rank, engine):
        return ("bash", FOLLOW_SCRIPT, "vllm", "serve")
    return ("vllm", "serve")


def scripts(rank: Rank, engine: Engine) -> Words:
    """Those of the scripts that are generated."""
    if engine.launcher == "ray":
        return (RAY_SCRIPT,)
    return (FOLLOW_SCRIPT,) if _follows(rank, engine) else ()


def flags(rank: Rank, engine: Engine, model: Model, settings: EngineSettings) -> tuple[Words, ...]:
    """The same engine flags on every rank; only the head has the API's address."""
    if engine.launcher == "ray":
        if not rank.is_head:
            return ()
        return (("vllm", "serve"), *_serve(rank, engine, model, settings))
    return tuple(_serve(rank, engine, model, settings))


def offload_variables(offload: KvOffload) -> Mapping[str, str]:
    """Blocks are named by hashes, whose seed differs from start to start unless it is set.

    Without expandable segments, the memory of a long prompt is never returned, and GB10 hangs (same
    repository, pull request 58).
    """
    same = {"PYTHONHASHSEED": "0", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    return same | (_lmcache(offload) if offload.connector == "lmcache" else {})


def _lmcache(offload: KvOffload) -> dict[str, str]:
    """LMCache forgets its own disk at each start, but finds the files of a remote store again.

    Source: LMCache 0.5.4, lmcache/v1/config.py; local_disk_backend.py, fs_connector.py of its
    storage_backend; usage_telemetry/identity.py.
    """
    return {
        "LMCACHE_LOCAL_CPU": "True",
        "LMCACHE_MAX_LOCAL_CPU_SIZE": str(offload.buffer_gib),
        "LMCACHE_REMOTE_URL": f"fs://localhost:0{offload.path}",
        "LMCACHE_TRACK_USAGE": "false",
    }


def _split(engine: Engine) -> bool:
    """Whether one copy of the model spans several nodes."""
    return engine.parallel.tensor * engine.parallel.pipeline > 1


def _follows(rank: Rank, engine: Engine) -> bool:
    """Whether the rank belongs to a world, or to replicas, that a port of the head represents."""
    return not rank.is_head and engine.launcher != "ray"


def _serve(rank: Rank, engine: Engine, model: Model, settings: EngineSettings) -> Iterator[Words]:
    yield (model.source,)
    if model.aliases:
        yield ("--served-model-name", model.served_name, *model.aliases)
    else:
        yield (f"--served-model-name={model.served_name}",)
    if rank.is_head:
        yield (f"--host={engine.api.listen}",)
        yield (f"--port={engine.api.port}",)
    yield from _parallel(rank, engine)
    yield from _model(engine, model)
    yield from arguments(settings)


def _parallel(rank: Rank, engine: Engine) -> Iterator[Words]:
    sizes = engine.parallel
    if rank.count == 1:
        return
    yield (f"--tensor-parallel-size={sizes.tensor}",)
    yield (f"--pipeline-parallel-size={sizes.pipeline}",)
    if sizes.data > 1:
        yield (f"--data-parallel-size={sizes.data}",)
    if sizes.expert:
        yield ("--enable-expert-parallel",)
    if engine.launcher == "ray":
        yield from _ray(rank, engine)
    elif "master" in engine.ports:
        yield from _world(rank, engine)
    else:
        yield from _replicas(rank, engine)


def _ray(rank: Rank, engine: Engine) -> Iterator[Words]:
    """Ray places the ranks; with replicas of a whole model, the head takes one, its local size."""
    yield ("--distributed-executor-backend=ray",)
    if engine.parallel.data > 1:
        yield ("--data-parallel-backend=ray",)
        yield (f"--data-parallel-address={rank.head}",)
        if not _split(engine):
            yield ("--data-parallel-size-local=1",)


def _world(rank: Rank, engine: Engine) -> Iterator[Words]:
    """One torch world over all nodes, which meets at the head's master port."""
    yield (f"--nnodes={rank.count}",)
    yield (f"--node-rank={rank.index}",)
    yield (f"--master-addr={rank.head}",)
    yield (f"--master-port={engine.ports['master']}",)
    if not rank.is_head:
        yield ("--headless",)


def _replicas(rank: Rank, engine: Engine) -> Iterator[Words]:
    """A whole copy of the model on each node, behind the head's single API.

    The head gets no start rank: 0 would count as one (vllm/engine/arg_utils.py).
    """
    yield ("--data-parallel-size-local=1",)
    if not rank.is_head:
        yield (f"--data-parallel-start-rank={rank.index}",)
    yield (f"--data-parallel-address={rank.head}",)
    yield (f"--data-parallel-rpc-port={engine.ports['data_parallel_rpc']}",)
    if not rank.is_head:
        yield ("--headless",)


def _model(engine: Engine, model: Model) -> Iterator[Words]:
    yield (f"--gpu-memory-utilization={engine.memory_utilization}",)
    if model.kv_cache_gib:
        yield (f"--kv-cache-memory-bytes={int(model.kv_cache_gib * 2**30)}",)
    yield from handed_on.words(engine, model)
    if model.speculative:
        yield (f"--speculative-config={_speculative(model.speculative)}",)
    if model.kv_offload:
        yield (f"--kv-transfer-config={_offload(model.kv_offload)}",)
        # The connector registers memory, which expandable segments would otherwise move.
        yield ("--enable-cumem-allocator",)


def _offload(offload: KvOffload) -> str:
    """The native connector with a folder behind its buffer (docs/features/kv_offloading_usage.md).

    Each replica is an engine with a buffer of its own. LMCache is configured by variables.
    """
    if offload.connector == "lmcache":
        return json.dumps({"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"})
    config = {
        "spec_name": "TieringOffloadingSpec",
        "cpu_bytes_to_use": offload.buffer_gib << 30,
        "secondary_tiers": [{"type": "fs", "root_dir": offload.path}],
    }
    connector = {"kv_connector": "OffloadingConnector", "kv_role": "kv_both"}
    return json.dumps({**connector, "kv_connector_extra_config": config})


def _speculative(drafts: Speculative) -> str:
    """The JSON of vllm/config/speculative.py, the same in all versions, unlike `--spec-model`."""
    known = method_of(NAME, drafts.method)
    config: dict[str, Any] = {"method": known.spelled if known else drafts.method}
    if drafts.tokens:
        config["num_speculative_tokens"] = drafts.tokens
    if drafts.source:
        config["model"] = drafts.source
    return json.dumps(config | dict(sorted(drafts.config.items())))
