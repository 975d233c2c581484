"""SGLang's settings that require another one, or apply only to some kinds of models."""

from generator.engines.conditions import Check, needs, within
from generator.engines.startup import Condition, Refusal, Start

# Kinds without an encoder that could run separately.
_OF_TEXT = (
    *("llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "qwen3_next", "gpt_oss", "nemotron_h"),
    *("deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe", "glm_moe_dsa", "minimax_m2"),
)
_EXCHANGE, _RUNNER = "moe-a2a-backend", "moe-runner-backend"
_RUNNERS = ("flashinfer_cutlass", "flashinfer_cutedsl", "deep_gemm")
_TRTLLM = ("flashinfer_trtllm", "flashinfer_trtllm_routed")


def _of_kinds(name: str, *kinds: str) -> Check:
    """A setting applies only to some kinds of models."""

    def check(start: Start) -> Refusal | None:
        kind = start.model_type
        if not start.is_given(name) or not kind or kind in kinds:
            return None
        return start.refuse(name, f"{kind} models do not support '{name}'", "take it out")

    return check


def _of_sparse_attention(name: str, *others: str) -> Check:
    """A setting applies only to models with sparse attention, or to some other kinds."""

    def check(start: Start) -> Refusal | None:
        is_sparse = start.known is None or start.known.indexer is not None
        is_other = bool(others) and start.model_type.startswith(others)
        if not start.is_on(name) or is_sparse or is_other:
            return None
        return start.refuse(name, "the model has no sparse attention", "take it out")

    return check


def _dispatched(start: Start) -> Refusal | None:
    name = "flashinfer-a2a-dispatch-type"
    if start.word(name) in ("", "auto") or start.word(_EXCHANGE) == "flashinfer":
        return None
    message = f"'{name}' is only for the backend 'flashinfer'"
    return start.refuse(name, message, f"write '{_EXCHANGE}: flashinfer' beside it, or take it out")


def _exchanged_by_flashinfer(start: Start) -> Refusal | None:
    runner = start.word(_RUNNER)
    if start.word(_EXCHANGE) != "flashinfer" or runner in (*_RUNNERS, *_TRTLLM):
        return None
    if runner in ("", "auto") and start.form not in ("mxfp4", "fp8-block128", "bf16"):
        return None
    message = f"the backend 'flashinfer' needs one of {', '.join(_RUNNERS)}"
    return start.refuse(_EXCHANGE, message, f"write '{_RUNNER}: {_RUNNERS[0]}' beside it")


def _joined_ranks(start: Start) -> Refusal | None:
    name, mode = "elastic-ep-join-rank-offset", "elastic-ep-join-mode"
    if start.is_given(name) and start.word(mode) != "scale":
        return start.refuse(name, f"'{name}' is only for '{mode}: scale'", "take it out")
    return None


def _initial_ranks(start: Start) -> Refusal | None:
    name, most = "elastic-ep-initial-size", "max-ep-size"
    if start.is_given(name) and start.count(most, 0) <= start.sizes.tensor:
        message = f"'{name}' needs a '{most}' above {start.sizes.tensor}"
        return start.refuse(name, message, f"write '{most}' beside it, or take it out")
    return None


def _shared_port(start: Start) -> Refusal | None:
    name, count = "enable-http-worker-reuseport", "tokenizer-worker-num"
    if start.is_on(name) and start.count(count) < 2:
        return start.refuse(
            name, f"'{name}' needs several workers", f"write '{count}: 2' beside it"
        )
    return None


def _encoder_alone(start: Start) -> Refusal | None:
    name = next((name for name in ("encoder-only", "language-only") if start.is_on(name)), "")
    if name and start.model_type in _OF_TEXT:
        return start.refuse(name, "the model has no encoder", "take it out")
    return None


def _buffered_states(start: Start) -> Refusal | None:
    name = "mamba-radix-cache-strategy"
    if start.word(name).startswith("extra_buffer") and start.known and not start.known.keeps_states:
        return start.refuse(name, "the model has no recurrent states", "take it out")
    return None


def _rounded_states(start: Start) -> Refusal | None:
    name, kernels = "enable-mamba-cache-stochastic-rounding", "mamba-backend"
    if not start.is_on(name):
        return None
    if start.word("mamba-ssm-dtype") != "float16":
        need, remedy = "needs states in float16", "write 'mamba-ssm-dtype: float16' beside it"
    elif start.word(kernels) in ("", "triton"):
        need, remedy = (
            "needs FlashInfer's kernels on a GB10",
            f"write '{kernels}: flashinfer' beside it",
        )
    else:
        return None
    return start.refuse(name, f"'{name}' {need}", remedy)


def _other_processors(start: Start) -> Refusal | None:
    name = "enable-quant-communications"
    if start.is_on(name):
        return start.refuse(name, f"'{name}' is not for GPUs", "take it out")
    return None


def _overlapped_batches(start: Start) -> Refusal | None:
    name = "enable-two-batch-overlap"
    is_spread = start.count("attn-dp-size") > 1 or start.is_on("enable-dp-attention")
    if not start.is_on(name) or is_spread or start.word(_EXCHANGE) not in ("", "none"):
        return None
    message = "overlapping batches need an all-to-all backend or data parallel attention"
    return start.refuse(name, message, f"write '{_EXCHANGE}' or 'attn-dp-size' beside it")


def _shards_of_prompts(start: Start) -> Refusal | None:
    name, role = "enable-kv-cache-sharding", "disaggregation-mode"
    if start.is_on(name) and start.word(role) != "prefill":
        return start.refuse(name, f"'{name}' is only for '{role}: prefill'", "take it out")
    return None


_GROUPS = "sglang/srt/arg_groups"
_PARALLEL, _MODEL = f"{_GROUPS}/parallel_hook.py", f"{_GROUPS}/model_hook.py"
_ROLES = f"{_GROUPS}/pd_disaggregation_hook.py"

CONDITIONS = (
    Condition(needs("enable-prefix-mm-cache", "encoder-only"), f"{_ROLES}:306", (0, 5, 9)),
    Condition(
        needs("enable-megamoe-for-layernorm-sp", "enable-layernorm-sp"),
        f"{_GROUPS}/layernorm_sp_hook.py:25",
        (0, 5, 23),
    ),
    Condition(
        _of_kinds("enable-layernorm-sp", "muse_spark", "qwen3"),
        f"{_GROUPS}/layernorm_sp_hook.py:131",
        (0, 5, 20),
    ),
    Condition(needs("max-ep-size", "elastic-ep-backend", "NAME"), f"{_PARALLEL}:567", (0, 5, 18)),
    Condition(
        needs("elastic-ep-join-mode", "elastic-ep-backend", "NAME"), f"{_PARALLEL}:547", (0, 5, 18)
    ),
    Condition(_joined_ranks, f"{_PARALLEL}:561", (0, 5, 18)),
    Condition(_initial_ranks, f"{_PARALLEL}:578", (0, 5, 18)),
    Condition(_of_kinds("shared-experts-tp-size", "kimi_k3"), f"{_PARALLEL}:226", (0, 5, 21)),
    Condition(
        needs("enable-page-major-kv-layout", "enable-unified-memory"),
        f"{_GROUPS}/kv_cache_hook.py:783",
        (0, 5, 20),
    ),
    Condition(_dispatched, f"{_GROUPS}/moe_hook.py:311", (0, 5, 20)),
    Condition(_exchanged_by_flashinfer, f"{_GROUPS}/moe_hook.py:531", (0, 5, 20)),
    Condition(_shared_port, f"{_GROUPS}/serving_hook.py:91", (0, 5, 23)),
    Condition(
        _of_kinds("enable-cp-decode-attn-tp", "deepseek_v4", "deepseek_v41", "glm_moe_dsa"),
        f"{_MODEL}:199",
        (0, 5, 18),
    ),
    Condition(
        _of_sparse_attention("enable-dsa-cache-layer-split"),
        f"{_MODEL}:188",
        (0, 5, 18),
    ),
    Condition(
        _of_sparse_attention("enable-hisparse", "deepseek_v4", "minimax_m3"),
        f"{_GROUPS}/hisparse_hook.py:104",
        (0, 5, 12),
    ),
    Condition(
        _of_kinds("enable-encoder-swa-bounded-replay", "deepseek_v41"), f"{_MODEL}:1045", (0, 5, 21)
    ),
    Condition(_encoder_alone, f"{_ROLES}:372", (0, 5, 12)),
    Condition(_buffered_states, f"{_MODEL}:1063", (0, 5, 21)),
    Condition(_rounded_states, f"{_GROUPS}/mamba_hook.py:32", (0, 5, 15)),
    Condition(
        needs("return-aux-hidden-state-layer-ids", "enable-return-aux-hidden-states"),
        f"{_GROUPS}/validation_hook.py:707",
        (0, 5, 23),
    ),
    Condition(
        within("disaggregation-decode-host-receive-threshold", 0, 1), f"{_ROLES}:65", (0, 5, 21)
    ),
    Condition(within("max-loras-per-batch", 1), f"{_GROUPS}/lora_hook.py:36"),
    Condition(_other_processors, f"{_GROUPS}/validation_hook.py:353", (0, 5, 12)),
    Condition(_overlapped_batches, f"{_GROUPS}/validation_hook.py:768", (0, 5, 15)),
    Condition(_shards_of_prompts, f"{_GROUPS}/kv_shard_hook.py:100", (0, 5, 22)),
)
