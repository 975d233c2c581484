"""TensorRT-LLM: `trtllm-serve` with the PyTorch backend, on several nodes as one MPI world.

Flags are those of 1.2.1 to 1.3.0rc29 (tensorrt_llm/commands/serve.py), settings without a flag
those of tensorrt_llm/llmapi/llm_args.py. What has no flag stands in the options file alone, and so
does all of the KV cache, for a section of the file replaces what flags say of it; all else stands
on the command line alone. Where both speak, 1.2.1 takes the file's word and 1.3.0rc29 the command
line's.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from generator.catalogs.engines.tensorrt_llm import NAME
from generator.catalogs.speculation import method_of
from generator.catalogs.versions import version
from generator.engines.arguments import arguments
from generator.engines.offload import Connectors
from generator.engines.startup import Condition
from generator.fit.assessment import Fit
from generator.origin import Origin
from generator.site import SECRETS_SCRIPT, Engine, Model, Rank, Words
from generator.site.panel import Panel
from generator.sitefile.declaration import Argument, KvOffload, Parallel, Speculative
from generator.sitefile.defaults import default

if TYPE_CHECKING:
    from generator.engines import EngineModule, tensorrt_llm

    # It is imported by its name, which says nothing of its type.
    _: EngineModule = tensorrt_llm

LAUNCHERS: tuple[str, ...] = ("mpi", "slurm")
API_PORT = 8000
API_KEY: str | None = None
CACHES: Mapping[str, str] = {}
HEALTH: Words = ("python3", "/opt/sparkgen/health.py")
HEALTH_GENERATES: str | None = None
# With these the API speaks TLS.
TLS_FLAGS: tuple[str, ...] = ()
PANELS: tuple[Panel, ...] = ()

FOLDER = "/opt/sparkgen"
MPI_SCRIPT = f"{FOLDER}/mpi.sh"
RANK_SCRIPT = f"{FOLDER}/rank.sh"
SESSION_SCRIPT = f"{FOLDER}/session.sh"
SSH_CONFIG = f"{FOLDER}/ssh_config"
SSHD_CONFIG = f"{FOLDER}/sshd_config"
HOSTFILE = f"{FOLDER}/hostfile"
OPTIONS = f"{FOLDER}/options.yaml"
KEYS = "/etc/sparkgen/mpi"

# The entry of `engine.args` that holds settings of the options file, as the flag is called.
CONFIG = "config"

VARIABLE_ORIGINS: Mapping[str, Origin] = {}
OWNED_FLAGS: Mapping[str, str] = {
    "backend": "engine.name",
    "config": "engine.args.config, as a mapping of its settings",
    "free_gpu_memory_fraction": "engine.memory_utilization",
    "host": "engine.bind",
    "kv_cache_dtype": "model.kv_cache_dtype",
    "max_batch_size": "model.max_sequences",
    "max_seq_len": "model.context_length",
    "moe_expert_parallel_size": "engine.parallel.expert",
    "pipeline_parallel_size": "engine.parallel.pipeline",
    "port": "engine.port",
    "revision": "model.revision",
    "served_model_name": "model.served_name",
    "tensor_parallel_size": "engine.parallel.tensor",
    "gpus_per_node": "",
}

# The same of settings that have no flag; a dot parts a section from its key.
OWNED_SETTINGS: Mapping[str, str] = {
    **OWNED_FLAGS,
    "kv_cache_config.dtype": "model.kv_cache_dtype",
    "kv_cache_config.free_gpu_memory_fraction": "engine.memory_utilization",
    "speculative_config": "model.speculative",
}

# From here on clients may be told another name, and drafts are all counted alike.
_NAMED = "1.3.0rc29"
_WITHOUT_BACKENDS = "1.3.0rc0"

# Of a model that not enough is known of: what part of the engine's share is not KV cache.
_UNKNOWN = 0.75
_LEAST_FRACTION, _MOST_FRACTION = 0.01, 0.95
OFFLOAD: Connectors = {}


def conditions() -> tuple[Condition, ...]:
    """What the engine refuses or dies of at its start; imported where that is asked for."""
    from generator.engines.tensorrt_llm.startup import CONDITIONS

    return CONDITIONS


def default_ports(launcher: str, parallel: Parallel) -> Mapping[str, int]:
    """SSH between the containers of an MPI world; under Slurm its daemons start the ranks."""
    is_mpi_world = launcher == "mpi" and parallel.ranks > 1
    return {"ssh": default("engine.ports.ssh")} if is_mpi_world else {}


def environment(rank: Rank, engine: Engine) -> Mapping[str, str]:
    """Containers run as root, which Open MPI wants to be told, and nothing is reported home."""
    return {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "TRTLLM_NO_USAGE_STATS": "1",
    }


def entrypoint(rank: Rank, engine: Engine) -> Words:
    """The head starts all ranks by MPI, its followers wait for that; Slurm starts each by itself.

    `trtllm-llmapi-launch` makes one engine of the ranks: the server on rank 0, a worker on others.
    """
    if rank.count == 1:
        # pyxis knows no file of variables: the script reads it, and 'env' launches nothing.
        return (RANK_SCRIPT, "env", "trtllm-serve") if engine.is_slurm_job else ("trtllm-serve",)
    launched = ("trtllm-llmapi-launch", "trtllm-serve")
    if engine.is_slurm_job:
        return (RANK_SCRIPT, *launched)
    return ("bash", MPI_SCRIPT, *(launched if rank.is_head else ()))


def scripts(rank: Rank, engine: Engine) -> Words:
    """The options are read on rank 0; each rank reads its own node's environment and secrets."""
    if rank.count == 1 and not engine.is_slurm_job:
        return (OPTIONS,)
    secrets = (SECRETS_SCRIPT,) if engine.secrets else ()
    shared = (RANK_SCRIPT, *engine.env_files, *secrets)
    if engine.is_slurm_job:
        return (*shared, OPTIONS)
    own = (SSH_CONFIG, HOSTFILE, OPTIONS) if rank.is_head else (SSHD_CONFIG, SESSION_SCRIPT)
    return (MPI_SCRIPT, *shared, *own, KEYS)


def reads(rank: Rank, model: Model, hub: str) -> Words:
    """Every rank reads its share itself."""
    return (hub, *model.folders)


def flags(
    rank: Rank, engine: Engine, model: Model, args: Mapping[str, Argument]
) -> tuple[Words, ...]:
    """The server's flags; under MPI the head hands them to all ranks, under Slurm each has them."""
    if rank.is_head or engine.launcher == "slurm":
        return tuple(_serve(rank, engine, model, args))
    return ()


def open_paths(version: str, env: Mapping[str, str], args: Mapping[str, Argument]) -> Words:
    """None is known."""
    return ()


def offload_variables(offload: KvOffload) -> Mapping[str, str]:
    """It has none."""
    return {}


def options(
    engine: Engine, model: Model, args: Mapping[str, Argument], memory: Fit | None
) -> Mapping[str, Any]:
    """The options file: what the site gives under `config`, the KV cache, and drafts."""
    own = args.get(CONFIG)
    settings = dict(own) if isinstance(own, dict) else {}
    section = settings.pop("kv_cache_config", {})
    cache = dict(section) if isinstance(section, dict) else {}
    fraction = free_fraction(engine.memory_utilization, memory, engine.held_by_others)
    cache["free_gpu_memory_fraction"] = fraction
    if engine.held_by_others and memory:
        cache = {**dict(_bounds(memory)), **cache}
    if model.kv_cache_dtype:
        cache["dtype"] = model.kv_cache_dtype
    settings["kv_cache_config"] = cache
    if model.speculative:
        settings["speculative_config"] = _speculative(model.speculative, engine.version)
    return settings


def free_fraction(utilization: float, memory: Fit | None, held_by_others: float = 0.0) -> float:
    """The share of the memory left free that makes the engine take `utilization` of all.

    TensorRT-LLM measures what is free once weights, activations and buffers are there, and gives
    the KV cache a fraction of that: `fraction = (utilization * visible - held) / (visible - held)`.
    It is one for all ranks, so that of the node where it is smallest. Where it is not known what is
    held, that is taken for three quarters of the engine's part. What the system uses lowers the
    measure, and with it the cache. Rounded down.

    What others and the system hold is not free either; there it is rounded up, for the cache is
    bounded where less of that is held than may be.

    Source: TensorRT-LLM, tensorrt_llm/_torch/pyexecutor/_util.py, `_cal_max_memory`.
    """
    parts = [
        (node.weights_gib + node.draft_gib + node.reserve_gib) / node.visible_gib
        for node in (memory.nodes if memory else ())
    ]
    held = min(max(parts, default=utilization * _UNKNOWN), utilization)
    fraction = (utilization - held) / max(_LEAST_FRACTION, 1 - held - held_by_others)
    rounded = math.ceil(fraction * 100) if held_by_others else math.floor(fraction * 100)
    return min(max(rounded / 100, _LEAST_FRACTION), _MOST_FRACTION)


def _bounds(memory: Fit) -> Iterator[tuple[str, int]]:
    """What an engine that is not alone on its node may cache at most, whatever it finds free.

    A cache of one window is sized in tokens before the bytes are looked at; one of several, and
    that of the newer manager, in bytes.

    Source: TensorRT-LLM, tensorrt_llm/_torch/pyexecutor/_util.py, `configure_kv_cache_capacity`.
    """
    if memory.pool_tokens:
        yield "max_tokens", memory.pool_tokens
    if memory.nodes:
        room = min(node.kv_room_gib for node in memory.nodes)
        yield "max_gpu_total_bytes", int(room * 1024) << 20


def has_names(release: str) -> bool:
    """Whether the version has a name of its own for clients, and not that of the model alone."""
    return version(release) >= version(_NAMED)


def _serve(
    rank: Rank, engine: Engine, model: Model, args: Mapping[str, Argument]
) -> Iterator[Words]:
    yield (model.source,)
    yield (f"--host={engine.api.listen}",)
    yield (f"--port={engine.api.port}",)
    if version(engine.version) < version(_WITHOUT_BACKENDS):
        yield ("--backend=pytorch",)
    if rank.count > 1:
        yield from _parallel(engine.parallel)
    yield from _model(engine, model)
    yield (f"--config={OPTIONS}",)
    yield from arguments(NAME, engine.version, _on_the_command_line(args))


def _parallel(sizes: Parallel) -> Iterator[Words]:
    """Experts are spread over the ranks that share a layer."""
    yield (f"--tensor_parallel_size={sizes.tensor}",)
    yield (f"--pipeline_parallel_size={sizes.pipeline}",)
    if sizes.expert:
        yield (f"--moe_expert_parallel_size={sizes.experts_over or sizes.tensor}",)


def _model(engine: Engine, model: Model) -> Iterator[Words]:
    if has_names(engine.version):
        yield (f"--served_model_name={model.served_name}",)
    if model.revision:
        yield (f"--revision={model.revision}",)
    if model.context_length:
        yield (f"--max_seq_len={model.context_length}",)
    if model.max_sequences:
        yield (f"--max_batch_size={model.max_sequences}",)


def _on_the_command_line(args: Mapping[str, Argument]) -> dict[str, Argument]:
    """All but the options' own; JSON without spaces, at which the launcher would cut it."""
    return {
        name: json.dumps(value, separators=(",", ":"), sort_keys=True)
        if isinstance(value, dict)
        else value
        for name, value in args.items()
        if name != CONFIG
    }


def decoding_type(release: str, method: str) -> str:
    """What a release calls a method; before 1.3 EAGLE-3 is called Eagle."""
    known = method_of(NAME, method)
    kind = known.spelled if known else method
    return "Eagle" if kind == "Eagle3" and not has_names(release) else kind


def _speculative(drafts: Speculative, release: str) -> dict[str, Any]:
    """The section of tensorrt_llm/llmapi/llm_args.py.

    `speculative_model_dir` is understood by all versions, as an alias where there is a newer name.
    Before 1.3 MTP counts in layers.
    """
    kind = decoding_type(release, drafts.method)
    settings: dict[str, Any] = {"decoding_type": kind}
    if drafts.tokens:
        older = kind == "MTP" and not has_names(release)
        settings["num_nextn_predict_layers" if older else "max_draft_len"] = drafts.tokens
    if drafts.source:
        settings["speculative_model_dir"] = drafts.source
    return settings | dict(drafts.config)
