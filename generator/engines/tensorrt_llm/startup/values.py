"""Settings of TensorRT-LLM's options file that conflict with each other or don't run on a GB10."""

from generator.engines.startup import Condition, Effect, Refusal, Start

_CONFIG = "config"


def _list_of_numbers(value: object) -> list[int]:
    items = value if isinstance(value, list) else []
    return [int(str(item)) for item in items if str(item).isdigit()]


def _largest_graph(start: Start) -> Refusal | None:
    most = start.number(_CONFIG, "cuda_graph_config", "max_batch_size")
    sizes = _list_of_numbers(start.value(_CONFIG, "cuda_graph_config", "batch_sizes"))
    if most and sizes and most != max(sizes):
        return start.refuse(
            _CONFIG,
            f"the largest graph has {most:.0f} sequences here, and {max(sizes)} in the list of "
            "sizes",
            "take 'max_batch_size' out: the list sets it",
            *("cuda_graph_config", "max_batch_size"),
        )
    return None


def _experts_of_other_gpus(start: Start) -> Refusal | None:
    backend = start.word(_CONFIG, "moe_config", "backend")
    if backend in ("TRTLLM", "CUTEDSL", "DEEPGEMM", "WIDEEP"):
        return start.refuse(
            _CONFIG,
            f"{backend} has no expert kernels for a GB10",
            "write CUTLASS, or TRITON for MXFP4",
            *("moe_config", "backend"),
        )
    return None


def _loader(start: Start) -> Refusal | None:
    name, newer = start.word(_CONFIG, "load_format"), ("GMS",)
    if name and name.upper() not in ("AUTO", "DUMMY", "VISION_ONLY", *newer):
        return start.refuse(_CONFIG, f"there is no '{name}'", "write AUTO", "load_format")
    return None


def _prefetched_adapters(start: Start) -> Refusal | None:
    if start.value(_CONFIG, "peft_cache_config", "lora_prefetch_dir") is not None:
        return start.refuse(
            _CONFIG,
            "'lora_prefetch_dir' is not supported",
            "take it out",
            "peft_cache_config",
            "lora_prefetch_dir",
        )
    return None


def _window(start: Start) -> Refusal | None:
    path = ("kv_cache_config", "max_attention_window")
    value = start.value(_CONFIG, *path)
    if isinstance(value, list) and (not value or any(str(n).startswith(("-", "0")) for n in value)):
        return start.refuse(_CONFIG, "a window must have at least 1 token", "take it out", *path)
    return None


def _kernels_of_small_floats(start: Start) -> Refusal | None:
    path = ("nvfp4_gemm_config", "allowed_backends")
    if start.value(_CONFIG, *path) == []:
        return start.refuse(_CONFIG, "the list allows no kernels", "take it out", *path)
    return None


def _placed_by_ray(start: Start) -> Refusal | None:
    for name in ("ray_worker_extension_cls", "ray_placement_config"):
        given = start.value(_CONFIG, name) is not None
        if given and start.word(_CONFIG, "orchestrator_type") != "ray":
            return start.refuse(
                _CONFIG, f"'{name}' is for Ray, and MPI starts the ranks", "take it out", name
            )
    return None


def _balance_of_replicas(start: Start) -> Refusal | None:
    for name in ("timeout_iters", "batching_wait_iters"):
        number = start.number(_CONFIG, "attention_dp_config", name)
        if (
            start.is_on(_CONFIG, "attention_dp_config", "enable_balance")
            and number is not None
            and number < 0
        ):
            return start.refuse(
                _CONFIG, f"'{name}' must be at least 0", "take it out", "attention_dp_config", name
            )
    return None


def _removed_sampler(start: Start) -> Refusal | None:
    if start.word(_CONFIG, "sampler_type") == "TRTLLMSampler":
        return start.refuse(_CONFIG, "'sampler_type' was removed", "take it out", "sampler_type")
    return None


def _reductions_over_nvlink(start: Start) -> Refusal | None:
    name = start.word(_CONFIG, "allreduce_strategy")
    if start.sizes.ranks > 1 and name not in ("", "AUTO", "NCCL"):
        return start.refuse(
            _CONFIG,
            f"{name} needs NVLink between the nodes, and Sparks have none",
            "write NCCL",
            "allreduce_strategy",
        )
    return None


def _blocks_not_reused(start: Start) -> Refusal | None:
    reused = start.is_on(_CONFIG, "kv_cache_config", "enable_block_reuse")
    if reused and start.word(_CONFIG, "attn_backend") == "FLASHINFER":
        return start.refuse(
            _CONFIG,
            "FLASHINFER does not support the reuse of KV cache blocks",
            "take 'attn_backend' out",
            "attn_backend",
        )
    return None


def _slots_of_experts(start: Start) -> Refusal | None:
    path, ranks = ("moe_config", "load_balancer", "num_slots"), start.sizes.tensor
    slots = start.number(_CONFIG, *path)
    if slots and start.sizes.expert and slots % ranks:
        return start.refuse(
            _CONFIG,
            f"{slots:.0f} expert slots can't be divided evenly among {ranks} ranks",
            f"write a multiple of {ranks}",
            *path,
        )
    return None


def _connected_cache(start: Start) -> Refusal | None:
    path = ("scheduler_config", "capacity_scheduler_policy")
    policy = start.word(_CONFIG, *path)
    given = start.value(_CONFIG, "kv_connector_config") is not None
    if given and policy not in ("", "GUARANTEED_NO_EVICT"):
        return start.refuse(
            _CONFIG,
            f"a KV cache connector can't be combined with {policy}",
            "write GUARANTEED_NO_EVICT, or take it out",
            *path,
        )
    return None


def _adapters_of_all_modules(start: Start) -> Refusal | None:
    given = start.value(_CONFIG, "lora_config")
    named = isinstance(given, dict) and (given.get("lora_dir") or given.get("lora_target_modules"))
    if isinstance(given, dict) and not named:
        return start.refuse(
            _CONFIG,
            "neither adapters nor modules are named, so memory is reserved for all modules",
            "write 'lora_target_modules: [attn_q, attn_k, attn_v]' in it",
            "lora_config",
        )
    return None


def _more_sequences_than_tokens(start: Start) -> Refusal | None:
    step, sequences = start.number("max_num_tokens"), start.model.max_sequences
    if step is not None and sequences and sequences > step:
        return start.refuse(
            "max_num_tokens",
            f"a step of {step:.0f} tokens has no room for {sequences} sequences",
            f"write {sequences} or more",
        )
    return None


_ARGUMENTS = "tensorrt_llm/llmapi/llm_args.py"

CONDITIONS = (
    Condition(_largest_graph, f"{_ARGUMENTS}, CudaGraphConfig"),
    Condition(_experts_of_other_gpus, "tensorrt_llm/_torch/modules/fused_moe"),
    Condition(_loader, f"{_ARGUMENTS}, TorchLlmArgs"),
    Condition(_prefetched_adapters, f"{_ARGUMENTS}, BaseLlmArgs"),
    Condition(_window, f"{_ARGUMENTS}, KvCacheConfig"),
    Condition(_kernels_of_small_floats, f"{_ARGUMENTS}, Nvfp4GemmConfig"),
    Condition(_placed_by_ray, f"{_ARGUMENTS}, TorchLlmArgs", since=(1, 3)),
    Condition(_balance_of_replicas, f"{_ARGUMENTS}, AttentionDpConfig", since=(1, 3)),
    Condition(_removed_sampler, f"{_ARGUMENTS}, _check_removed_sampler_type", since=(1, 4)),
    Condition(_slots_of_experts, "tensorrt_llm/llmapi/llm_args.py, MoeLoadBalancerConfig.setup"),
    Condition(_connected_cache, "tensorrt_llm/_torch/pyexecutor/py_executor_creator.py"),
    Condition(
        _adapters_of_all_modules,
        f"{_ARGUMENTS}, validate_lora_config_consistency",
        effect=Effect.DIFFERS,
    ),
    Condition(_reductions_over_nvlink, "tensorrt_llm/_torch/distributed", effect=Effect.DIFFERS),
    Condition(
        _blocks_not_reused,
        "tensorrt_llm/_torch/pyexecutor/py_executor_creator.py",
        effect=Effect.DIFFERS,
    ),
    Condition(
        _more_sequences_than_tokens, f"{_ARGUMENTS}, validate_runtime_args", effect=Effect.DIFFERS
    ),
)
