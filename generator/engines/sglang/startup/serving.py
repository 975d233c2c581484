"""SGLang's API: adapters, certificates, metrics and images."""

from generator.engines.startup import Condition, Refusal, Start

_ADAPTERS, _LOADED, _AT_ONCE = "enable-lora", "max-loaded-loras", "max-loras-per-batch"

_MEDIA = ("image", "video", "audio")


def _adapters_over_data(start: Start) -> Refusal | None:
    data = start.count("attn-dp-size")
    if start.is_on(_ADAPTERS) and data > 1 and data != start.sizes.tensor:
        return start.refuse(
            "attn-dp-size",
            "with adapters, attention must be data parallel over all tensor ranks or none",
            f"write {start.sizes.tensor}, or take it out",
        )
    return None


def _port_of_grpc(start: Start) -> Refusal | None:
    if (
        "grpc-port" in start.settings
        and start.engine.secrets
        and "SGLANG_API_KEY" in start.engine.secrets
    ):
        return start.refuse("grpc-port", "gRPC does not check the API's key", "take it out")
    return None


def _runner_of_adapters(start: Start) -> Refusal | None:
    name, runner = "moe-runner-backend", start.word("moe-runner-backend")
    if not runner.startswith("lora_"):
        return None
    if not start.is_on(_ADAPTERS) and "lora-paths" not in start.settings:
        text, remedy = f"{runner} is only for adapters", "write 'enable-lora: true' beside it"
    elif start.word("lora-backend") != "triton_v2":
        text, remedy = (
            f"{runner} needs other adapter kernels",
            "write 'lora-backend: triton_v2' beside it",
        )
    elif start.word("moe-a2a-backend") not in ("", "none"):
        text, remedy = f"{runner} can't be combined with 'moe-a2a-backend'", "keep one of the two"
    else:
        return None
    return start.refuse(name, text, remedy)


def _kinds_of_media(start: Start) -> Refusal | None:
    name = "limit-mm-data-per-request"
    given = start.value(name)
    wrong = [key for key in given if key not in _MEDIA] if isinstance(given, dict) else []
    if wrong:
        return start.refuse(
            name, f"there is no '{wrong[0]}'", f"write {', '.join(_MEDIA)}", wrong[0]
        )
    return None


def _settings_of_media(start: Start) -> Refusal | None:
    name = "mm-process-config"
    for kind in _MEDIA:
        value = start.value(name, kind)
        if value is not None and not isinstance(value, dict):
            return start.refuse(name, f"'{kind}' must be a mapping", "write {KEY: VALUE}", kind)
    return None


def _text_alone(start: Start) -> Refusal | None:
    name, kind = "language-model-only", start.model_type
    if not start.is_on(name):
        return None
    if kind and not kind.startswith(("deepseek_v4", "muse_glimmer", "cosmos3")):
        return start.refuse(name, f"{kind} models do not support '{name}'", "take it out")
    found = next((n for n in ("language-only", "mm-enable-dp-encoder") if start.is_on(n)), "")
    if found:
        return start.refuse(
            name, f"'{name}' can't be combined with '{found}'", "keep one of the two"
        )
    return None


def _marked_drafts(start: Start) -> Refusal | None:
    name = "enable-watermark"
    if not start.is_on(name):
        return None
    if start.method == "draft":
        return start.refuse(
            name, f"'{name}' can't be combined with a draft model", "keep one of the two"
        )
    found = ("enable-custom-logit-processor", "speculative-use-rejection-sampling")
    other = next((each for each in found if start.is_on(each)), "")
    if other:
        return start.refuse(
            name, f"'{name}' can't be combined with '{other}'", "keep one of the two"
        )
    return None


def _halves_of_a_model(start: Start) -> Refusal | None:
    if start.is_on("encoder-only") and start.is_on("language-only"):
        return start.refuse(
            "encoder-only",
            "'encoder-only' and 'language-only' exclude each other",
            "keep one of the two",
        )
    return None


_LORA, _SERVING = "sglang/srt/arg_groups/lora_hook.py", "sglang/srt/arg_groups/serving_hook.py"
_VALIDATION = "sglang/srt/arg_groups/validation_hook.py"

CONDITIONS = (
    Condition(_adapters_over_data, "sglang/srt/lora/lora_manager.py:114", (0, 5, 21)),
    Condition(_port_of_grpc, f"{_SERVING}:383", (0, 5, 16)),
    Condition(_runner_of_adapters, f"{_LORA}:200", (0, 5, 23)),
    # What an image contains besides SGLang is not known.
    Condition(_kinds_of_media, f"{_SERVING}:603", (0, 5, 7)),
    Condition(_settings_of_media, f"{_SERVING}:148", (0, 5, 11)),
    Condition(_text_alone, "sglang/srt/arg_groups/model_hook.py:1106", (0, 5, 18)),
    Condition(_marked_drafts, f"{_VALIDATION}:78", (0, 5, 22)),
    Condition(_halves_of_a_model, "sglang/srt/arg_groups/pd_disaggregation_hook.py:306", (0, 5, 7)),
)
