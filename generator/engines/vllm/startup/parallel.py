"""How vLLM splits a model: context parallelism, experts and their balance, replicas."""

import re

from generator.catalogs.versions import release
from generator.engines.startup import Condition, Refusal, Start

_DCP, _PCP = "decode-context-parallel-size", "prefill-context-parallel-size"
_MODES = (
    "data-parallel-external-lb",
    "data-parallel-hybrid-lb",
    "data-parallel-multi-port-external-lb",
)
_WITHOUT_DCP = ("TRITON_ATTN", "FLEX_ATTENTION", "B12X", "TURBOQUANT")
# The release since which experts are balanced asynchronously by default.
_ASYNCHRONOUS = (0, 23)
_MICROBATCHED = ("deepep_low_latency", "deepep_high_throughput", "nixl_ep")


def _prefill_context(start: Start) -> Refusal | None:
    if start.count(_PCP) > 1:
        return start.refuse(
            _PCP,
            "prefill context parallelism needs more GPUs, and every node already has a rank",
            "take it out: the tensor, pipeline and data sizes already use all nodes",
        )
    return None


def _context_of_tensor(start: Start) -> Refusal | None:
    size, tensor = start.count(_DCP), start.sizes.tensor
    if size > 1 and tensor % size:
        return start.refuse(
            _DCP,
            f"decode context parallel size {size} does not divide tensor size {tensor}",
            "write a divisor of the tensor size",
        )
    return None


def _context_of_heads(start: Start) -> Refusal | None:
    size, tensor, known = start.count(_DCP), start.sizes.tensor, start.known
    if size < 2 or tensor % size or known is None or known.latent:
        return None
    heads, kv_heads = known.heads, known.kv_heads
    if tensor <= kv_heads or size > tensor // kv_heads:
        return start.refuse(
            _DCP,
            f"decode context parallelism needs copies of KV heads, and with tensor size {tensor} "
            f"each of the {kv_heads} has {max(1, tensor // kv_heads)}",
            "take it out: the tensor size must be larger than the number of KV heads",
        )
    if heads // kv_heads % size:
        return start.refuse(
            _DCP,
            f"decode context parallel size {size} does not divide the {heads // kv_heads} query "
            "heads of each KV head",
            f"write a divisor of {heads // kv_heads}",
        )
    return None


def _context_without_backend(start: Start) -> Refusal | None:
    backend = (start.word("attention-backend") or start.word("attention-config", "backend")).upper()
    if start.count(_DCP) > 1 and backend in _WITHOUT_DCP:
        flag = "attention-backend" in start.settings
        return start.refuse(
            "attention-backend" if flag else "attention-config",
            f"{backend} does not support decode context parallelism",
            "write FLASHINFER, or TRITON_MLA for latent attention",
            *(() if flag else ("backend",)),
        )
    return None


def _interleaved_blocks(start: Start) -> Refusal | None:
    block = start.number("block-size")
    step = start.count("cp-kv-cache-interleave-size")
    if start.count(_DCP) > 1 and block is not None and step > 0 and block % step:
        return start.refuse(
            "block-size",
            f"a block of {block:.0f} tokens is not a multiple of the interleave size {step}",
            "write a multiple of it",
        )
    return None


def _exchange_without_context(start: Start) -> Refusal | None:
    if start.word("dcp-comm-backend") == "a2a" and start.count(_DCP) == 1:
        return start.refuse(
            "dcp-comm-backend",
            "'dcp-comm-backend: a2a' needs decode context parallelism",
            "take it out",
        )
    return None


def _balancing_mode(start: Start) -> Refusal | None:
    mode = next((name for name in _MODES if start.is_on(name)), None)
    if mode:
        return start.refuse(
            mode,
            f"'{mode}' is only for API servers that are started one by one",
            "take it out: the bundle has one API for all replicas",
        )
    return None


def _balance_without_experts(start: Start) -> Refusal | None:
    if start.is_on("enable-eplb") and not start.sizes.expert:
        return start.refuse(
            "enable-eplb",
            "'enable-eplb' needs expert parallelism",
            "write 'expert: true' under engine.parallel, or take it out",
        )
    return None


def _balance_of_one(start: Start) -> Refusal | None:
    ranks = start.sizes.tensor * start.sizes.data
    if start.is_on("enable-eplb") and start.sizes.expert and ranks == 1:
        return start.refuse(
            "enable-eplb",
            "'enable-eplb' needs several ranks to balance experts over",
            "take it out",
        )
    return None


def _redundant_without_balance(start: Start) -> Refusal | None:
    if start.number("eplb-config", "num_redundant_experts") and not start.is_on("enable-eplb"):
        return start.refuse(
            "eplb-config",
            "redundant experts need 'enable-eplb'",
            "write 'enable-eplb: true' beside it, or take it out",
            "num_redundant_experts",
        )
    return None


def _uneven_experts(start: Start) -> Refusal | None:
    ranks = start.sizes.tensor * start.sizes.data
    experts = start.known.experts if start.known else None
    if not (start.is_on("enable-eplb") and experts and start.sizes.expert):
        return None
    redundant = int(start.number("eplb-config", "num_redundant_experts") or 0)
    if (experts + redundant) % ranks:
        return start.refuse(
            "enable-eplb",
            f"{experts + redundant} experts can't be divided evenly among {ranks} ranks",
            f"write 'eplb-config: {{num_redundant_experts: {-experts % ranks}}}'",
        )
    return None


def _asynchronous_balance(start: Start) -> Refusal | None:
    policy = start.word("eplb-config", "policy") or "default"
    communicator = start.word("eplb-config", "communicator")
    if (
        start.is_on("enable-eplb")
        and _is_asynchronous(start)
        and (policy != "default" or communicator in ("torch_nccl", "pynccl"))
    ):
        return start.refuse(
            "eplb-config",
            "asynchronous balancing needs the policy 'default' and no communicator over NCCL",
            "write 'use_async: false' in it, or take 'policy' and 'communicator' out",
        )
    return None


def _is_asynchronous(start: Start) -> bool:
    """As requested, or by default."""
    by_default = release(start.engine.version) >= _ASYNCHRONOUS
    return start.is_on("eplb-config", "use_async") or (
        by_default and start.value("eplb-config", "use_async") is None
    )


def _elastic_experts(start: Start) -> Refusal | None:
    if start.is_on("enable-elastic-ep") and (
        not start.is_on("enable-eplb") or start.sizes.pipeline > 1
    ):
        return start.refuse(
            "enable-elastic-ep",
            "'enable-elastic-ep' needs 'enable-eplb' and a single pipeline stage",
            "take it out",
        )
    return None


def _exchange_over_nvlink(start: Start) -> Refusal | None:
    backend = start.word("all2all-backend")
    if backend.startswith(("flashinfer_nvlink", "flashinfer_all2allv")) and start.sizes.ranks > 1:
        return start.refuse(
            "all2all-backend",
            f"'{backend}' needs NVLink between the nodes, and Sparks have none",
            "write allgather_reducescatter",
        )
    return None


def _microbatches(start: Start) -> Refusal | None:
    backend = start.word("all2all-backend") or "allgather_reducescatter"
    several = next((n for n in ("enable-dbo", "ubatch-size") if start.is_on(n)), "")
    several = several or ("ubatch-size" if start.count("ubatch-size", 0) > 1 else "")
    if several and backend not in _MICROBATCHED:
        return start.refuse(
            several,
            f"microbatches can't be combined with the backend '{backend}'",
            "take it out: what it needs (DeepEP) is made for InfiniBand clusters",
        )
    return None


def _bound_to_nodes(start: Start) -> Refusal | None:
    name = next((n for n in ("numa-bind-nodes", "numa-bind-cpus") if n in start.settings), None)
    if name and not start.is_on("numa-bind"):
        return start.refuse(
            name, f"'{name}' needs 'numa-bind'", "write 'numa-bind: true' beside it"
        )
    return None


def _profiled_by_ray(start: Start) -> Refusal | None:
    if start.is_on("ray-workers-use-nsight") and start.engine.launcher != "ray":
        return start.refuse(
            "ray-workers-use-nsight",
            "'ray-workers-use-nsight' is only for the launcher ray",
            "take it out",
        )
    return None


def _sequence_parallel_stages(start: Start) -> Refusal | None:
    # With a single tensor rank the switch has no effect.
    if start.is_on("enable-hc-sp") and start.sizes.tensor > 1 and start.sizes.pipeline > 1:
        return start.refuse(
            "enable-hc-sp", "'enable-hc-sp' does not support pipeline stages", "take it out"
        )
    return None


def _sequence_parallel_kind(start: Start) -> Refusal | None:
    known = start.model_type and not start.model_type.startswith("qwen4")
    if start.is_on("enable-hc-sp") and start.sizes.tensor > 1 and known:
        return start.refuse(
            "enable-hc-sp", f"{start.model_type} models do not support it", "take it out"
        )
    return None


def _shared_devices(start: Start) -> Refusal | None:
    given = start.value("device-ids")
    if given is not None and given not in ("0", ["0"], [0]):
        return start.refuse("device-ids", "a Spark has one GPU, number 0", "take it out")
    return None


def _tolerated_faults(start: Start) -> Refusal | None:
    if start.is_on("enable-fault-tolerance"):
        return start.refuse(
            "enable-fault-tolerance",
            "'enable-fault-tolerance' is only for API servers that are started one by one",
            "take it out",
        )
    return None


def _exchange_with_an_extra(start: Start) -> Refusal | None:
    backend = start.word("all2all-backend")
    # A site with microbatches has an image with the kernels that they need.
    extra = backend.startswith(("deepep_", "nixl_ep")) and start.is_stock
    if extra and not start.is_on("enable-dbo"):
        return start.refuse(
            "all2all-backend",
            f"'{backend}' needs kernels that few images for a GB10 have",
            "write allgather_reducescatter, or take it out",
        )
    return None


def _exchange_of_other_gpus(start: Start) -> Refusal | None:
    backend = start.word("all2all-backend")
    if backend.startswith("mori"):
        return start.refuse("all2all-backend", f"'{backend}' is only for AMD GPUs", "take it out")
    return None


def _exchange_of_plain_weights(start: Start) -> Refusal | None:
    name, known = "all2all-backend", start.form not in ("", "bf16")
    if start.word(name) != "moonep":
        return None
    found = f"weights in {start.form}" if known else ""
    found = found or ("'enable-eplb'" if start.is_on("enable-eplb") else "")
    found = found or (start.word("dtype") if start.word("dtype") in ("float16", "half") else "")
    placed = start.word("expert-placement-strategy")
    found = found or (f"experts that are placed '{placed}'" if placed not in ("", "linear") else "")
    if found:
        return start.refuse(name, f"'moonep' can't be combined with {found}", "take it out")
    return None


def _lists_of_processors(start: Start) -> Refusal | None:
    nodes, cores = start.value("numa-bind-nodes"), start.value("numa-bind-cpus")
    if nodes == [] or any(number < 0 for number in start.numbers("numa-bind-nodes")):
        return start.refuse("numa-bind-nodes", "a Spark has one NUMA node, number 0", "write [0]")
    sets = [str(text) for text in (cores if isinstance(cores, list) else ())]
    wrong = [text for text in sets if not _ascends(text)]
    if cores == [] or wrong:
        message = f"'{wrong[0]}' is not a list of CPUs" if wrong else "the list of CPUs is empty"
        return start.refuse("numa-bind-cpus", message, "write numbers in order, as 0-9,15")
    return None


def _ascends(text: str) -> bool:
    found = [re.fullmatch(r"(\d+)(?:-(\d+))?", part) for part in text.split(",")]
    return all(each and (not each[2] or int(each[1]) <= int(each[2])) for each in found)


def _packed_by_ray(start: Start) -> Refusal | None:
    name = "VLLM_RAY_DP_PACK_STRATEGY"
    value = start.environment.get(name, "span")
    if value not in ("strict", "fill", "span"):
        return start.refuse_variable(
            name, f"{name} does not accept '{value}'", "write strict, fill or span"
        )
    is_alone = start.sizes.data == start.sizes.ranks > 1
    if name in start.environment.given and value == "span" and is_alone:
        return start.refuse_variable(
            name, "a replica of one rank can't span nodes", "write strict, or take it out"
        )
    if value == "fill" and start.word("all2all-backend").startswith("deepep_"):
        return start.refuse_variable(
            name, "DeepEP can't be combined with ranks that fill the nodes", "write strict"
        )
    return None


def _partial_microbatches(start: Start) -> Refusal | None:
    for name in ("dbo-decode-token-threshold", "dbo-prefill-token-threshold"):
        least = start.count("ubatch-size", 2)
        if start.is_on("enable-dbo") and start.count(name, least) < least:
            return start.refuse(
                name,
                f"'{name}' must be at least the number of microbatches",
                f"write {least} or more",
            )
    return None


_PARALLEL = "vllm/config/parallel.py"
_NEWER = (0, 33)

CONDITIONS = (
    Condition(_prefill_context, "vllm/v1/worker/gpu_worker.py:487"),
    Condition(_context_of_tensor, f"{_PARALLEL}:600"),
    Condition(_context_of_heads, "vllm/config/model.py:1582"),
    Condition(_context_without_backend, "vllm/v1/attention/backend.py:346", _NEWER),
    Condition(_interleaved_blocks, "vllm/config/vllm.py:3405"),
    Condition(_exchange_without_context, _PARALLEL, until=(0, 29)),
    Condition(_balancing_mode, "vllm/entrypoints/cli/serve.py:100"),
    Condition(_balance_without_experts, f"{_PARALLEL}:570"),
    Condition(_balance_of_one, f"{_PARALLEL}:579"),
    Condition(_redundant_without_balance, f"{_PARALLEL}:587"),
    Condition(_uneven_experts, "vllm/model_executor/layers/fused_moe/layer.py:274"),
    Condition(_asynchronous_balance, f"{_PARALLEL}:123", (0, 24)),
    Condition(_elastic_experts, f"{_PARALLEL}:976"),
    Condition(_exchange_over_nvlink, "vllm/distributed/device_communicators/all2all.py:659"),
    Condition(_microbatches, "vllm/config/vllm.py:2198"),
    Condition(_partial_microbatches, f"{_PARALLEL}:1184", (0, 30)),
    # No publisher lists what an image contains besides vLLM.
    Condition(_exchange_with_an_extra, ""),
    Condition(_exchange_of_other_gpus, "vllm/distributed/device_communicators/all2all.py:924"),
    Condition(_exchange_of_plain_weights, "vllm/config/vllm.py:2107", (0, 31)),
    Condition(_lists_of_processors, f"{_PARALLEL}:485", (0, 20)),
    Condition(_bound_to_nodes, f"{_PARALLEL}:490", (0, 20)),
    Condition(_shared_devices, "vllm/v1/worker/gpu_worker.py", (0, 24)),
    Condition(_tolerated_faults, "vllm/engine/arg_utils.py:2451", (0, 27)),
    Condition(_profiled_by_ray, f"{_PARALLEL}:1174"),
    Condition(_sequence_parallel_kind, "vllm/config/model.py:1549", (0, 32)),
    Condition(_sequence_parallel_stages, "vllm/config/model.py:1551", (0, 32)),
    Condition(_packed_by_ray, "vllm/v1/engine/utils.py:709"),
)
