"""Speculative decoding in vLLM: which methods a model supports, and what they exclude."""

from generator import catalogs
from generator.catalogs.versions import release
from generator.engines.conditions import other_vocabulary
from generator.engines.startup import METHOD, SPECULATIVE, Condition, Effect, Refusal, Start
from generator.engines.vllm.startup.kinds import lacks_eagle3

# Beginnings of kinds whose MTP layers run over pipeline stages: always, and from 0.30 on.
_STAGED = ("glm4_moe_lite", "glm_ocr", "nemotron_h", "bailing_moe_v3", "qwen4_exp")
_STAGED_LATER = ("deepseek", "glm_moe_dsa", "glm5", "kimi_k", "qwen3_5", "qwen4")
# Parts of the names of kinds that 0.19 to 0.21 accept for EAGLE-3.
_WITH_EAGLE3 = (
    *("llama", "qwen", "minicpm", "gpt_oss", "hunyuan", "afmoe", "nemotron_h", "deepseek"),
    *("kimi_k2", "gemma4", "minimax_m2"),
)


def _other_prediction(start: Start) -> Refusal | None:
    if start.method == "mtp" and start.model_type == "deepseek_v41":
        return Refusal(
            "the method of the model's own draft layers is 'dspark', not 'mtp'",
            METHOD,
            "take 'speculative' out",
        )
    return None


def _eagle_of_another_kind(start: Start) -> Refusal | None:
    kind = start.model_type
    listed = any(name in kind for name in _WITH_EAGLE3)
    if start.method == "eagle3" and kind and not listed and lacks_eagle3(start) is not True:
        return Refusal(
            f"vLLM {start.engine.version} has no EAGLE-3 for models of the kind {kind}",
            METHOD,
            "take vLLM 0.22 or later, or take 'speculative' out",
        )
    return None


def _draft_over_stages(start: Start) -> Refusal | None:
    if start.method == "draft" and start.sizes.pipeline > 1:
        return Refusal(
            "a draft model can't be combined with pipeline stages: only the last one loads it, "
            "and waits for the others",
            METHOD,
            "split the model by 'tensor' alone, or take 'speculative' out",
        )
    return None


def _prediction_over_stages(start: Start) -> Refusal | None:
    """The layers of most models do not implement `SupportsPP`."""
    kind, since = start.model_type, release(start.engine.version)
    known = _STAGED if since < (0, 30) else (*_STAGED, *_STAGED_LATER)
    if start.method != "mtp" or start.sizes.pipeline == 1 or not kind or kind.startswith(known):
        return None
    return Refusal(
        f"vLLM {start.engine.version} does not run this model's own MTP layers over pipeline "
        "stages",
        METHOD,
        "split the model by 'tensor' alone, or take 'speculative' out",
    )


def _vocabulary_of_the_draft(start: Start) -> Refusal | None:
    shares = start.draft_setting("use_heterogeneous_vocab") is not True
    return other_vocabulary(start) if shares else None


def _draft_of_shorter_contexts(start: Start) -> Refusal | None:
    drafts, context = start.model.speculative, start.model.context_length
    known = catalogs.checkpoint(drafts.source) if drafts and drafts.source else None
    most = known.max_context if known else None
    if start.method != "draft" or not most or not context or context <= most:
        return None
    return Refusal(
        f"the draft model supports {most} tokens, and the context is cut to that",
        ("model", "context_length"),
        f"write {most} or less",
    )


def _no_room_beside_drafts(start: Start) -> Refusal | None:
    step, name = start.number("max-num-batched-tokens"), "max-num-batched-tokens"
    if step is not None and start.drafted and step <= start.drafted:
        return start.refuse(
            name,
            f"a step of {step:.0f} tokens has no room beside {start.drafted} drafted tokens",
            f"write {start.drafted + 1} or more",
        )
    return None


def _graphs_of_drafts(start: Start) -> Refusal | None:
    sizes = start.numbers("cudagraph-capture-sizes") or start.numbers(
        "compilation-config", "cudagraph_capture_sizes"
    )
    width = start.drafted + 1
    if not start.drafted or not sizes or start.is_on("enforce-eager") or width <= max(sizes):
        return None
    flag = "cudagraph-capture-sizes" in start.settings
    keys = () if flag else ("cudagraph_capture_sizes",)
    return start.refuse(
        "cudagraph-capture-sizes" if flag else "compilation-config",
        f"with drafts, a sequence has {width} tokens per step, and the largest CUDA graph only "
        f"{max(sizes):.0f}",
        f"write a size of {width} or more",
        *keys,
    )


def _graphs_of_drafts_in_the_first(start: Start) -> Refusal | None:
    is_first = start.variable("VLLM_USE_V2_MODEL_RUNNER") is False
    return _graphs_of_drafts(start) if is_first else None


def _too_few_tokens_for_adapters(start: Start) -> Refusal | None:
    tokens = _step(start)
    sequences = start.sequences
    wanted = sequences * (start.drafted + 1)
    if start.drafted and start.is_on("enable-lora") and tokens < wanted:
        return Refusal(
            f"with adapters, {sequences} sequences of {start.drafted} drafted tokens need a step "
            f"of {wanted} tokens, and it has {tokens}",
            SPECULATIVE,
            f"write 'max-num-batched-tokens: {wanted}' under engine.args, or fewer 'max_sequences'",
        )
    return None


def _step(start: Start) -> int:
    return start.count("max-num-batched-tokens", start.batch.tokens)


_SPECULATION = "vllm/config/speculative.py"

CONDITIONS = (
    Condition(_other_prediction, f"{_SPECULATION}:1479", (0, 30)),
    Condition(_eagle_of_another_kind, f"{_SPECULATION}:795", until=(0, 22)),
    Condition(_draft_over_stages, "vllm/v1/worker/gpu/spec_decode/standalone_ar/speculator.py"),
    Condition(_prediction_over_stages, "vllm/config/model.py:1378"),
    Condition(_vocabulary_of_the_draft, f"{_SPECULATION}:2049"),
    Condition(
        _draft_of_shorter_contexts, "vllm/config/vllm.py:3018", (0, 33), None, Effect.DIFFERS
    ),
    Condition(_no_room_beside_drafts, "vllm/config/vllm.py:2372", (0, 33)),
    # From 0.23 on, some models run on the second model runner by default, which has no such limit.
    Condition(_graphs_of_drafts, "vllm/config/compilation.py:1556", until=(0, 23)),
    Condition(_graphs_of_drafts_in_the_first, "vllm/config/compilation.py:1556", (0, 23)),
    Condition(_too_few_tokens_for_adapters, "vllm/engine/arg_utils.py:2721"),
)
