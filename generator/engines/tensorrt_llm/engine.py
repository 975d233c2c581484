"""TensorRT-LLM: `trtllm-serve` with the PyTorch backend, on several nodes as one MPI world.

Flags are those of 1.2.1 to 1.3.0rc29 (tensorrt_llm/commands/serve.py), settings without a flag
those of tensorrt_llm/llmapi/llm_args.py. Settings without a flag are only in the options file, and
so is all of the KV cache, since a section of the file replaces its flags; everything else is only
on the command line. If both set a value, 1.2.1 uses the file's and 1.3.0rc29 the command line's.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from generator.catalogs.speculation import method_of
from generator.catalogs.versions import version
from generator.engines import handed_on
from generator.engines.arguments import arguments
from generator.engines.defaults import OFFLOAD as OFFLOAD
from generator.engines.defaults import offload_variables as offload_variables
from generator.engines.defaults import open_paths as open_paths
from generator.engines.defaults import reads as reads
from generator.engines.draft_settings import DraftSettings
from generator.fit.assessment import Fit
from generator.settings.flags import EngineSettings
from generator.site import SECRETS_SCRIPT, Engine, Model, Rank, Words
from generator.sitefile.declaration import Parallel, Speculative
from generator.sitefile.defaults import default

if TYPE_CHECKING:
    from generator.engines import EngineModule
    from generator.engines.tensorrt_llm import engine as own

    # The module is imported by name, so its type is checked here.
    _: EngineModule = own

NAME = "tensorrt-llm"


FOLDER = "/opt/sparkgen"
MPI_SCRIPT = f"{FOLDER}/mpi.sh"
RANK_SCRIPT = f"{FOLDER}/rank.sh"
SESSION_SCRIPT = f"{FOLDER}/session.sh"
SSH_CONFIG = f"{FOLDER}/ssh_config"
SSHD_CONFIG = f"{FOLDER}/sshd_config"
HOSTFILE = f"{FOLDER}/hostfile"
OPTIONS = f"{FOLDER}/options.yaml"
KEYS = "/etc/sparkgen/mpi"

# The entry of `engine.args` with settings of the options file, named like the flag.
CONFIG = "config"


# The same for settings without a flag; a dot separates a section from its key.
OWNED_SETTINGS: Mapping[str, str] = {
    **handed_on.owned(NAME),
    "kv_cache_config.dtype": "model.kv_cache_dtype",
    "kv_cache_config.free_gpu_memory_fraction": "engine.memory_utilization",
    "speculative_config": "model.speculative",
}

# From this release on, clients can be given another name, and drafts of all methods are counted
# alike.
_NAMED = "1.3.0rc29"
_WITHOUT_BACKENDS = "1.3.0rc0"

# If too little is known about a model: the part of the engine's share that is not KV cache.
_UNKNOWN = 0.75
_LEAST_FRACTION, _MOST_FRACTION = 0.01, 0.95


def default_ports(launcher: str, parallel: Parallel) -> Mapping[str, int]:
    """SSH between the containers of an MPI world; under Slurm its daemons start the ranks."""
    is_mpi_world = launcher == "mpi" and parallel.ranks > 1
    return {"ssh": default("engine.ports.ssh")} if is_mpi_world else {}


def environment(rank: Rank, engine: Engine) -> Mapping[str, str]:
    """Containers run as root, which Open MPI has to be told, and telemetry is off."""
    return {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "TRTLLM_NO_USAGE_STATS": "1",
    }


def entrypoint(rank: Rank, engine: Engine) -> Words:
    """The head starts all ranks by MPI while its followers wait; Slurm starts each rank itself.

    `trtllm-llmapi-launch` makes the ranks one engine: the server on rank 0, workers on the others.
    """
    if rank.count == 1:
        # pyxis reads no environment files: the script does, and 'env' does without a launcher.
        return (RANK_SCRIPT, "env", "trtllm-serve") if engine.is_slurm_job else ("trtllm-serve",)
    launched = ("trtllm-llmapi-launch", "trtllm-serve")
    if engine.is_slurm_job:
        return (RANK_SCRIPT, *launched)
    return ("bash", MPI_SCRIPT, *(launched if rank.is_head else ()))


def scripts(rank: Rank, engine: Engine) -> Words:
    """Rank 0 reads the options; each rank reads its own node's environment and secrets."""
    if rank.count == 1 and not engine.is_slurm_job:
        return (OPTIONS,)
    secrets = (SECRETS_SCRIPT,) if engine.secrets else ()
    shared = (RANK_SCRIPT, *engine.env_files, *secrets)
    if engine.is_slurm_job:
        return (*shared, OPTIONS)
    own = (SSH_CONFIG, HOSTFILE, OPTIONS) if rank.is_head else (SSHD_CONFIG, SESSION_SCRIPT)
    return (MPI_SCRIPT, *shared, *own, KEYS)


def flags(rank: Rank, engine: Engine, model: Model, settings: EngineSettings) -> tuple[Words, ...]:
    """The server's flags; with MPI the head passes them to all ranks, under Slurm each has them."""
    if rank.is_head or engine.launcher == "slurm":
        return tuple(_serve(rank, engine, model, settings))
    return ()


def options(
    engine: Engine, model: Model, settings: EngineSettings, memory: Fit | None
) -> Mapping[str, Any]:
    """The options file: the site's settings under `config`, the KV cache, and drafts."""
    own = settings.value(CONFIG)
    written = dict(own) if isinstance(own, dict) else {}
    section = written.pop("kv_cache_config", {})
    cache = dict(section) if isinstance(section, dict) else {}
    fraction = free_fraction(engine.memory_utilization, memory, engine.held_by_others)
    cache["free_gpu_memory_fraction"] = fraction
    if engine.held_by_others and memory:
        cache = {**dict(_bounds(memory)), **cache}
    if model.kv_cache_dtype:
        cache["dtype"] = model.kv_cache_dtype
    written["kv_cache_config"] = cache
    if model.speculative:
        written["speculative_config"] = _speculative(model.speculative, engine.version)
    return written


def option_names(version: str) -> Collection[str]:
    """The keys of the options file, which are only needed to check one."""
    from generator.engines.keys import keys

    return [path.removeprefix("config.") for path in keys(NAME, version)]


def draft_settings(version: str, method: str) -> DraftSettings | None:
    """The keys of the method's class in the options file."""
    from generator.engines.keys import keys_of_kind

    kind = decoding_type(version, method)
    found = keys_of_kind(NAME, version, "config.speculative_config", kind)
    accepted = {name: key.wanted_instead for name, key in found.items()}
    return DraftSettings(f"'speculative_config' of {kind}", accepted)


def free_fraction(utilization: float, memory: Fit | None, held_by_others: float = 0.0) -> float:
    """The share of remaining free memory that makes the engine use `utilization` of all memory.

    TensorRT-LLM measures what is free after allocating weights, activations and buffers, and gives
    the KV cache a fraction of that: `fraction = (utilization * visible - held) / (visible - held)`.
    It is the same for all ranks, so the smallest over the nodes is used. If it is not known how
    much is held, three quarters of the engine's share are assumed. Memory that the system uses
    lowers the measurement, and so the cache. Rounded down.

    Memory held by others and the system is not free either; in that case it is rounded up, since
    the cache has a limit for when they hold less than they may.

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
    """The most that an engine which shares its node may cache, however much it finds free.

    A cache with one window is sized in tokens before its bytes are considered; one with several,
    and that of the newer manager, in bytes.

    Source: TensorRT-LLM, tensorrt_llm/_torch/pyexecutor/_util.py, `configure_kv_cache_capacity`.
    """
    if memory.pool_tokens:
        yield "max_tokens", memory.pool_tokens
    if memory.nodes:
        room = min(node.kv_room_gib for node in memory.nodes)
        yield "max_gpu_total_bytes", int(room * 1024) << 20


def has_names(release: str) -> bool:
    """Whether the version can give clients a name other than the model's."""
    return version(release) >= version(_NAMED)


def _serve(rank: Rank, engine: Engine, model: Model, settings: EngineSettings) -> Iterator[Words]:
    yield (model.source,)
    yield (f"--host={engine.api.listen}",)
    yield (f"--port={engine.api.port}",)
    if version(engine.version) < version(_WITHOUT_BACKENDS):
        yield ("--backend=pytorch",)
    if rank.count > 1:
        yield from _parallel(engine.parallel)
    yield from _model(engine, model)
    yield (f"--config={OPTIONS}",)
    # All but the options; the launcher would split JSON at its spaces.
    yield from arguments(settings, CONFIG, separators=(",", ":"))


def _parallel(sizes: Parallel) -> Iterator[Words]:
    """Experts are spread over the ranks that share a layer."""
    yield (f"--tensor_parallel_size={sizes.tensor}",)
    yield (f"--pipeline_parallel_size={sizes.pipeline}",)
    if sizes.expert:
        yield (f"--moe_expert_parallel_size={sizes.experts_over or sizes.tensor}",)


def _model(engine: Engine, model: Model) -> Iterator[Words]:
    if has_names(engine.version):
        yield (f"--served_model_name={model.served_name}",)
    yield from handed_on.words(engine, model)


def decoding_type(release: str, method: str) -> str:
    """A release's name for a method; before 1.3, EAGLE-3 is called Eagle."""
    known = method_of(NAME, method)
    kind = known.spelled if known else method
    return "Eagle" if kind == "Eagle3" and not has_names(release) else kind


def _speculative(drafts: Speculative, release: str) -> dict[str, Any]:
    """The section of tensorrt_llm/llmapi/llm_args.py.

    All versions accept `speculative_model_dir`, as an alias if there is a newer name. Before 1.3,
    MTP is counted in layers.
    """
    kind = decoding_type(release, drafts.method)
    settings: dict[str, Any] = {"decoding_type": kind}
    if drafts.tokens:
        older = kind == "MTP" and not has_names(release)
        settings["num_nextn_predict_layers" if older else "max_draft_len"] = drafts.tokens
    if drafts.source:
        settings["speculative_model_dir"] = drafts.source
    return settings | dict(drafts.config)
