"""How SGLang subdivides tensor ranks: by requests, by context and by experts."""

from generator.engines.startup import Condition, Effect, Refusal, Start

_DATA, _CONTEXT, _DECODE = "attn-dp-size", "attn-cp-size", "dcp-size"
_EXPERTS, _EXCHANGE = "moe-dp-size", "moe-a2a-backend"


def _decode_context(start: Start) -> Refusal | None:
    size = start.count(_DECODE)
    if size < 1:
        return start.refuse(_DECODE, "a size must be at least 1", "take it out")
    if size > 1 and start.is_on("enable-prefill-cp"):
        return start.refuse(
            _DECODE,
            f"'{_DECODE}' can't be combined with 'enable-prefill-cp'",
            "keep one of the two",
        )
    backend = start.word("dcp-comm-backend")
    if backend in ("a2a", "fi_a2a") and size == 1:
        return start.refuse(
            "dcp-comm-backend", f"'{backend}' needs a '{_DECODE}' above 1", "take it out"
        )
    if backend == "fi_a2a":
        return start.refuse(
            "dcp-comm-backend",
            "'fi_a2a' needs NVLink between the nodes, and Sparks have none",
            "write a2a",
        )
    return None


def _runner_of_whole_experts(start: Start) -> Refusal | None:
    runner = start.word("moe-runner-backend")
    if not start.sizes.expert or start.sizes.tensor == 1:
        return None
    sliced = runner == "cutlass" and start.form.startswith(("fp8", "mxfp8"))
    if sliced or (runner == "triton_kernel" and start.model_type == "gpt_oss"):
        return start.refuse(
            "moe-runner-backend", f"'{runner}' does not support expert parallelism", "take it out"
        )
    return None


def _balance_of_one(start: Start) -> Refusal | None:
    spread = start.sizes.expert or start.word(_EXCHANGE) not in ("", "none")
    if start.is_on("enable-eplb") and not (spread and start.sizes.tensor > 1):
        return start.refuse(
            "enable-eplb",
            "'enable-eplb' needs expert parallelism",
            "write 'expert: true' under engine.parallel, or take it out",
        )
    return None


def _experts_by_exchange(start: Start) -> Refusal | None:
    backend = start.word(_EXCHANGE)
    if backend not in ("", "none") and not start.sizes.expert and start.sizes.tensor > 1:
        return start.refuse(
            _EXCHANGE,
            f"'{backend}' always spreads the experts over the ranks",
            "write 'expert: true' under engine.parallel",
        )
    return None


def _whole_head(start: Start) -> Refusal | None:
    return _without_attention_data(start, "enable-dp-lm-head")


def _without_attention_data(start: Start, name: str) -> Refusal | None:
    is_spread = start.count(_DATA) > 1 or start.is_on("enable-dp-attention")
    if not start.is_on(name) or is_spread:
        return None
    message, remedy = f"'{name}' needs data parallel attention", f"write '{_DATA}', or take it out"
    return start.refuse(name, message, remedy)


def _parallel_norms(start: Start) -> Refusal | None:
    name = "enable-layernorm-sp"
    if not start.is_on(name):
        return None
    if (
        start.sizes.tensor == 1
        or start.sizes.pipeline > 1
        or start.method
        or start.count(_DATA) > 1
    ):
        return start.refuse(
            name,
            f"'{name}' can't be combined with pipeline stages, drafts or data parallel attention",
            "take it out",
        )
    return None


_PARALLEL = "sglang/srt/arg_groups/parallel_hook.py"
_MOE = "sglang/srt/arg_groups/moe_hook.py"

CONDITIONS = (
    Condition(_decode_context, f"{_PARALLEL}:244", (0, 5, 15)),
    Condition(_runner_of_whole_experts, f"{_MOE}:161", (0, 5, 9)),
    Condition(_balance_of_one, f"{_PARALLEL}:791"),
    Condition(_experts_by_exchange, _MOE, effect=Effect.DIFFERS),
    Condition(_whole_head, "sglang/srt/arg_groups/overrides.py:1369", effect=Effect.DIFFERS),
    Condition(_parallel_norms, "sglang/srt/arg_groups/layernorm_sp_hook.py:129", (0, 5, 19)),
)
