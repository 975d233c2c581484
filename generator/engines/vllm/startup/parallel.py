"""How vLLM splits a model: context parallelism, experts and their balance, replicas."""

from generator.engines.startup import Condition, Refusal, Start

_DCP, _PCP = "decode-context-parallel-size", "prefill-context-parallel-size"
_MODES = (
    "data-parallel-external-lb",
    "data-parallel-hybrid-lb",
    "data-parallel-multi-port-external-lb",
)
_WITHOUT_DCP = ("TRITON_ATTN", "FLEX_ATTENTION", "B12X", "TURBOQUANT")


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


def _balance_of_small_floats(start: Start) -> Refusal | None:
    if start.is_on("enable-eplb") and start.sizes.expert and start.form == "mxfp4":
        return start.refuse(
            "enable-eplb", "vLLM does not balance experts in mxfp4", "take 'enable-eplb' out"
        )
    return None


def _balance_of_one(start: Start) -> Refusal | None:
    ranks = start.sizes.tensor * start.sizes.data
    if start.is_on("enable-eplb") and start.sizes.expert and ranks == 1 and start.form != "mxfp4":
        return start.refuse(
            "enable-eplb",
            "'enable-eplb' needs several ranks to balance experts over",
            "take it out",
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


def _exchange_over_nvlink(start: Start) -> Refusal | None:
    backend = start.word("all2all-backend")
    if backend.startswith(("flashinfer_nvlink", "flashinfer_all2allv")) and start.sizes.ranks > 1:
        return start.refuse(
            "all2all-backend",
            f"'{backend}' needs NVLink between the nodes, and Sparks have none",
            "write allgather_reducescatter",
        )
    return None


def _shared_devices(start: Start) -> Refusal | None:
    given = start.value("device-ids")
    if given is not None and given not in ("0", ["0"], [0]):
        return start.refuse("device-ids", "a Spark has one GPU, number 0", "take it out")
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


_PARALLEL = "vllm/config/parallel.py"
_NEWER = (0, 33)

CONDITIONS = (
    Condition(_context_of_tensor, f"{_PARALLEL}:600"),
    Condition(_context_of_heads, "vllm/config/model.py:1582"),
    Condition(_context_without_backend, "vllm/v1/attention/backend.py:346", _NEWER),
    Condition(_interleaved_blocks, "vllm/config/vllm.py:3405"),
    Condition(_exchange_without_context, _PARALLEL, until=(0, 29)),
    Condition(_balancing_mode, "vllm/entrypoints/cli/serve.py:100"),
    Condition(_balance_without_experts, f"{_PARALLEL}:570"),
    Condition(
        _balance_of_small_floats, "vllm/model_executor/layers/fused_moe/routed_experts.py:192"
    ),
    Condition(_balance_of_one, f"{_PARALLEL}:579"),
    Condition(_uneven_experts, "vllm/model_executor/layers/fused_moe/layer.py:274"),
    Condition(_exchange_over_nvlink, "vllm/distributed/device_communicators/all2all.py:659"),
    # No publisher lists what an image contains besides vLLM.
    Condition(_exchange_with_an_extra, ""),
    Condition(_exchange_of_other_gpus, "vllm/distributed/device_communicators/all2all.py:924"),
    Condition(_shared_devices, "vllm/v1/worker/gpu_worker.py", (0, 24)),
    Condition(_packed_by_ray, "vllm/v1/engine/utils.py:709"),
)
