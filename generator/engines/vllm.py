"""vLLM: `vllm serve` on every rank (native), or on the head of a Ray cluster (ray).

Flags and environment names are those of vLLM 0.19 to 0.33 (vllm/engine/arg_utils.py,
vllm/config/parallel.py, vllm/envs.py).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from generator.declaration import Argument, Parallel, Speculative
from generator.engines.arguments import arguments
from generator.fit.assessment import Fit
from generator.site import Engine, Model, Rank, Words

TITLE = "vLLM"
LAUNCHERS: tuple[str, ...] = ("native", "ray")
API_PORT = 8000
API_KEY: str | None = "VLLM_API_KEY"
USES_NCCL = True
SPLITS_TENSORS = True
CACHES: Mapping[str, str] = {"VLLM_CACHE_ROOT": "vllm"}
HEALTH: Words = ("python3", "/opt/sparkgen/health.py")
HEALTH_GENERATES: str | None = None

RAY_SCRIPT = "/opt/sparkgen/ray.sh"
FOLLOW_SCRIPT = "/opt/sparkgen/follow.sh"

# Flags that the site file has a key for, or that only the generator can know.
OWNED_FLAGS: Mapping[str, str] = {
    "model": "model.name",
    "served-model-name": "model.served_name",
    "revision": "model.revision",
    "max-model-len": "model.context_length",
    "max-num-seqs": "model.max_sequences",
    "kv-cache-dtype": "model.kv_cache_dtype",
    "quantization": "model.quantization",
    "speculative-config": "model.speculative",
    "spec-method": "model.speculative",
    "spec-model": "model.speculative",
    "spec-tokens": "model.speculative",
    "gpu-memory-utilization": "engine.memory_utilization",
    "tensor-parallel-size": "engine.parallel.tensor",
    "pipeline-parallel-size": "engine.parallel.pipeline",
    "data-parallel-size": "engine.parallel.data",
    "enable-expert-parallel": "engine.parallel.expert",
    "distributed-executor-backend": "engine.launcher",
    "data-parallel-backend": "engine.launcher",
    "host": "engine.bind",
    "port": "engine.port",
    "master-port": "engine.ports.master",
    "data-parallel-rpc-port": "engine.ports.data_parallel_rpc",
    "api-key": "engine.secrets (VLLM_API_KEY)",
    "hf-token": "engine.secrets (HF_TOKEN)",
    "master-addr": "",
    "nnodes": "",
    "node-rank": "",
    "headless": "",
    "data-parallel-address": "",
    "data-parallel-rank": "",
    "data-parallel-start-rank": "",
    "data-parallel-size-local": "",
}


def default_ports(launcher: str, parallel: Parallel) -> Mapping[str, int]:
    """Ports of the head: Ray's, or the torch world's, or that of replicas of a whole model each.

    vLLM takes a dense model's replicas out of a torch world, so they never share one.
    """
    if launcher == "ray":
        return {"ray": 6379, "dashboard": 8265}
    if parallel.data > 1 and parallel.tensor * parallel.pipeline == 1:
        return {"data_parallel_rpc": 29550}
    return {"master": 29501} if parallel.ranks > 1 else {}


def environment(rank: Rank, engine: Engine) -> Mapping[str, str]:
    """The node's own address, which vLLM would guess: it binds its message queues there.

    A large model takes longer to load than the ten minutes that vLLM waits for its ranks. Ray's
    memory monitor counts the page cache as used and kills workers on unified memory.
    """
    values = {
        "VLLM_HOST_IP": str(rank.address),
        "VLLM_ENGINE_READY_TIMEOUT_S": "1800",
        "RAY_memory_monitor_refresh_ms": "0",
    }
    if engine.launcher == "ray" and engine.parallel.data > 1 and _split(engine):
        values["VLLM_RAY_DP_PACK_STRATEGY"] = "span"
    return values


def entrypoint(rank: Rank, engine: Engine) -> Words:
    """Under Ray a script starts Ray first; a native follower ends when its head is gone."""
    if engine.launcher == "ray":
        return ("bash", RAY_SCRIPT)
    if _follows(rank, engine):
        return ("bash", FOLLOW_SCRIPT, "vllm", "serve")
    return ("vllm", "serve")


def scripts(rank: Rank, engine: Engine) -> Words:
    """What of that is generated."""
    if engine.launcher == "ray":
        return (RAY_SCRIPT,)
    return (FOLLOW_SCRIPT,) if _follows(rank, engine) else ()


def reads(rank: Rank, model: Model, hub: str) -> Words:
    """Every rank reads its share itself."""
    return (hub, *model.folders)


def flags(
    rank: Rank, engine: Engine, model: Model, args: Mapping[str, Argument]
) -> tuple[Words, ...]:
    """The same engine flags on every rank; only the API's address is the head's alone."""
    if engine.launcher == "ray":
        if not rank.is_head:
            return ()
        return (("vllm", "serve"), *_serve(rank, engine, model, args))
    return tuple(_serve(rank, engine, model, args))


def options(
    engine: Engine, model: Model, args: Mapping[str, Argument], memory: Fit | None
) -> Mapping[str, Any]:
    """All is said on the command line."""
    return {}


def _split(engine: Engine) -> bool:
    """Whether one copy of the model spans several nodes."""
    return engine.parallel.tensor * engine.parallel.pipeline > 1


def _follows(rank: Rank, engine: Engine) -> bool:
    """Whether the rank is part of a torch world that the head's master port stands for."""
    return not rank.is_head and "master" in engine.ports


def _serve(
    rank: Rank, engine: Engine, model: Model, args: Mapping[str, Argument]
) -> Iterator[Words]:
    yield (model.source,)
    yield (f"--served-model-name={model.served_name}",)
    if rank.is_head:
        yield (f"--host={engine.api.listen}",)
        yield (f"--port={engine.api.port}",)
    yield from _parallel(rank, engine)
    yield from _model(engine, model)
    yield from arguments("vllm", engine.version, args)


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
    """Ray places the ranks; of whole copies of a model the head takes one, its local size."""
    yield ("--distributed-executor-backend=ray",)
    if engine.parallel.data > 1:
        yield ("--data-parallel-backend=ray",)
        yield (f"--data-parallel-address={rank.head}",)
        if not _split(engine):
            yield ("--data-parallel-size-local=1",)


def _world(rank: Rank, engine: Engine) -> Iterator[Words]:
    """One torch world over all nodes, met at the head's master port."""
    yield (f"--nnodes={rank.count}",)
    yield (f"--node-rank={rank.index}",)
    yield (f"--master-addr={rank.head}",)
    yield (f"--master-port={engine.ports['master']}",)
    if not rank.is_head:
        yield ("--headless",)


def _replicas(rank: Rank, engine: Engine) -> Iterator[Words]:
    """A whole copy of the model on each node, behind the head's one API.

    The head is given no start rank: 0 would count as one (vllm/engine/arg_utils.py).
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
    if model.revision:
        yield (f"--revision={model.revision}",)
    if model.context_length:
        yield (f"--max-model-len={model.context_length}",)
    if model.max_sequences:
        yield (f"--max-num-seqs={model.max_sequences}",)
    if model.kv_cache_dtype:
        yield (f"--kv-cache-dtype={model.kv_cache_dtype}",)
    if model.quantization:
        yield (f"--quantization={model.quantization}",)
    if model.speculative:
        yield (f"--speculative-config={_speculative(model.speculative)}",)


def _speculative(drafts: Speculative) -> str:
    """The JSON of vllm/config/speculative.py, the same in all versions, unlike `--spec-model`."""
    method = "draft_model" if drafts.method == "draft" else drafts.method
    config = {"method": method, "num_speculative_tokens": drafts.tokens}
    return json.dumps(config | ({"model": drafts.source} if drafts.source else {}))
