"""Speculative decoding in SGLang, and what it can't be combined with."""

from generator.engines.conditions import without_prediction
from generator.engines.startup import METHOD, Condition, Effect, Refusal, Start

_EAGLE = ("eagle", "eagle3", "mtp")


def _own_drafts(start: Start) -> Refusal | None:
    if start.model_type == "deepseek_v4" and start.method in ("eagle3", "draft"):
        return Refusal("the model drafts only with its own layers", METHOD, "write 'method: mtp'")
    return None


def _draft_with_attention_data(start: Start) -> Refusal | None:
    if start.method in ("draft", "ngram") and start.count("attn-dp-size") > 1:
        return start.refuse(
            "attn-dp-size",
            f"drafts by '{start.method}' can't be combined with data parallel attention",
            "take one of the two out",
        )
    return None


def _draft_with_mixed_chunks(start: Start) -> Refusal | None:
    if start.method in ("draft", "ngram") and start.is_on("enable-mixed-chunk"):
        return start.refuse(
            "enable-mixed-chunk",
            f"drafts by '{start.method}' can't be combined with mixed chunks",
            "take one of the two out",
        )
    return None


def _mixed_chunks_switched_off(start: Start) -> Refusal | None:
    if start.method in _EAGLE and start.is_on("enable-mixed-chunk"):
        return start.refuse(
            "enable-mixed-chunk",
            "speculative decoding disables mixed chunks",
            "take it out",
        )
    return None


def _verified_blocks(start: Start) -> Refusal | None:
    name = "speculative-use-block-verification"
    if start.is_on(name) and start.method not in (*_EAGLE, "dflash", "dspark"):
        return start.refuse(
            name, f"'{name}' is only for drafts by EAGLE, DFlash and DSpark", "take it out"
        )
    return None


def _sampled_rejection(start: Start) -> Refusal | None:
    name = "speculative-use-rejection-sampling"
    if not start.is_on(name):
        return None
    if start.method not in _EAGLE:
        return start.refuse(name, f"'{name}' is only for drafts by EAGLE", "take it out")
    for other in ("speculative-accept-threshold-single", "speculative-accept-threshold-acc"):
        if start.number(other) not in (None, 1):
            return start.refuse(
                other, f"'{other}' can't be combined with '{name}'", "keep one of the two"
            )
    return None


def _draft_with_flexible_attention(start: Start) -> Refusal | None:
    backend = start.word("attention-backend")
    # torch_native is not rejected, but fails on the first request, which is SGLang's own warm-up
    # (sgl-project/sglang issue 36352).
    if start.method and backend in ("flex_attention", "hpc_ops", "torch_native"):
        return start.refuse(
            "attention-backend",
            f"{backend} does not support speculative decoding",
            "write flashinfer or triton",
        )
    return None


def _draft_with_adapters(start: Start) -> Refusal | None:
    if start.method == "draft" and start.is_on("enable-lora"):
        return start.refuse(
            "enable-lora",
            "adapters can't be combined with a draft model",
            "take one of the two out",
        )
    return None


_SPECULATIVE = "sglang/srt/arg_groups/speculative_hook.py"

CONDITIONS = (
    Condition(without_prediction, f"{_SPECULATIVE}:1115"),
    Condition(_own_drafts, "sglang/srt/arg_groups/deepseek_v4_hook.py:149", (0, 5, 16)),
    Condition(_draft_with_attention_data, f"{_SPECULATIVE}:1082"),
    Condition(_draft_with_mixed_chunks, "sglang/srt/arg_groups/validation_hook.py:230", (0, 5, 19)),
    Condition(_mixed_chunks_switched_off, f"{_SPECULATIVE}:1103", effect=Effect.DIFFERS),
    Condition(_verified_blocks, f"{_SPECULATIVE}:177", (0, 5, 22)),
    Condition(_sampled_rejection, f"{_SPECULATIVE}:1216", (0, 5, 14)),
    Condition(_draft_with_flexible_attention, "sglang/srt/arg_groups/attention_hook.py:161"),
    Condition(_draft_with_adapters, "sglang/srt/arg_groups/lora_hook.py:260", (0, 5, 6)),
)
