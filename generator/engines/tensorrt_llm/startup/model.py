"""How TensorRT-LLM handles a model: its stages, its ranks, its drafts."""

from generator.engines.conditions import NOT_PREDICTING, other_vocabulary, without_prediction
from generator.engines.startup import METHOD, Condition, Effect, Refusal, Start


def _prediction_with_windows(start: Start) -> Refusal | None:
    windows = start.known.sliding_layers if start.known else 0
    if start.method == "mtp" and windows and start.model_type not in NOT_PREDICTING:
        return Refusal(
            "'mtp' can't be combined with sliding window layers, which the model has",
            METHOD,
            "take 'speculative' out",
        )
    return None


def _layers_of_stages(start: Start) -> Refusal | None:
    layers = start.value("config", "pp_partition")
    if not isinstance(layers, list) or not all(str(layer).isdigit() for layer in layers):
        return None
    stages, known = start.sizes.pipeline, start.known.layers if start.known else None
    total = sum(int(str(layer)) for layer in layers)
    if len(layers) != stages or (known and total != known):
        return start.refuse(
            "config",
            f"'pp_partition' is not a number of layers for each of {stages} stages"
            + (f", {known} in all" if known else ""),
            "take it out: the engine splits layers evenly",
            "pp_partition",
        )
    return None


def _experts_of_ranks(start: Start) -> Refusal | None:
    sizes = [start.number("config", f"moe_{kind}_parallel_size") for kind in ("tensor", "cluster")]
    spread = start.sizes.tensor if start.sizes.expert else None
    tensor, cluster = (int(size) if size is not None and size > 0 else None for size in sizes)
    if tensor is None and cluster is None:
        return None
    product = (tensor or 1) * (cluster or 1) * (spread or 1)
    if start.sizes.tensor % product or (tensor and spread and product != start.sizes.tensor):
        key = "moe_tensor_parallel_size" if tensor else "moe_cluster_parallel_size"
        return start.refuse(
            "config",
            f"the expert parallel sizes do not multiply to tensor size {start.sizes.tensor}",
            "take it out: 'engine.parallel.expert' says whether experts are spread",
            key,
        )
    return None


def _context_ranks(start: Start) -> Refusal | None:
    if start.count("context_parallel_size") > 1:
        return start.refuse(
            "context_parallel_size",
            "context parallelism needs more GPUs, and every node already has a rank",
            "take it out: the tensor and pipeline sizes already use all nodes",
        )
    if (start.number("config", "context_parallel_size") or 1) > 1:
        return start.refuse(
            "config",
            "context parallelism needs more GPUs, and every node already has a rank",
            "take it out: the tensor and pipeline sizes already use all nodes",
            "context_parallel_size",
        )
    return None


def _latent_prefixes(start: Start) -> Refusal | None:
    latent = start.known and start.known.latent
    if latent and start.is_on("config", "kv_cache_config", "enable_block_reuse"):
        return start.refuse(
            "config",
            "on a GB10, latent attention (MLA) does not support the reuse of KV cache blocks",
            "take it out",
            *("kv_cache_config", "enable_block_reuse"),
        )
    return None


_EXECUTOR = "tensorrt_llm/_torch/pyexecutor"

CONDITIONS = (
    Condition(without_prediction, "tensorrt_llm/_torch/speculative"),
    Condition(_prediction_with_windows, f"{_EXECUTOR}/_util.py, validate_feature_combination"),
    Condition(_layers_of_stages, "tensorrt_llm/mapping.py, pp_layers"),
    Condition(_experts_of_ranks, "tensorrt_llm/mapping.py"),
    Condition(_context_ranks, "tensorrt_llm/mapping.py"),
    Condition(_latent_prefixes, f"{_EXECUTOR}/py_executor_creator.py", effect=Effect.DIFFERS),
    Condition(other_vocabulary, ""),
)
