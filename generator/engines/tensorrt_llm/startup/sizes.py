"""What TensorRT-LLM rejects at startup that no row can say: lists that must add up."""

from generator.engines.rows import RowFacts
from generator.engines.startup import Condition, Refusal, Start


def _layers_of_stages(start: Start) -> Refusal | None:
    layers = start.value("config", "pp_partition")
    if not isinstance(layers, list) or not all(str(layer).isdigit() for layer in layers):
        return None
    stages, known = start.sizes.pipeline, start.known.layers if start.known else None
    total = sum(int(str(layer)) for layer in layers)
    if len(layers) != stages or (known and total != known):
        return start.refuse(
            "config",
            f"'pp_partition' must give a number of layers for each of {stages} stages"
            + (f", {known} in all" if known else ""),
            "remove it: the engine splits layers evenly",
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
            "remove it: 'engine.parallel.expert' says whether experts are spread",
            key,
        )
    return None


FACTS: RowFacts = {
    "largest_graph": lambda start: max(
        start.numbers("config", "cuda_graph_config", "batch_sizes"), default=None
    ),
}

CONDITIONS = (
    Condition(_layers_of_stages, "tensorrt_llm/mapping.py, pp_layers"),
    Condition(_experts_of_ranks, "tensorrt_llm/mapping.py"),
)
