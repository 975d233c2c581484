"""SGLang's API: adapters, certificates, metrics and images."""

from generator.engines.startup import Condition, Refusal, Start

_ADAPTERS, _LOADED, _AT_ONCE = "enable-lora", "max-loaded-loras", "max-loras-per-batch"

_MEDIA = ("image", "video", "audio")


def _adapters(start: Start) -> Refusal | None:
    known = "lora-paths" in start.settings
    sized = "max-lora-rank" in start.settings and "lora-target-modules" in start.settings
    if start.is_on(_ADAPTERS) and not known and not sized:
        return start.refuse(
            _ADAPTERS,
            "nothing says how large the adapters are",
            "write 'lora-paths', or 'max-lora-rank' and 'lora-target-modules', beside it",
        )
    return None


def _loaded_adapters(start: Start) -> Refusal | None:
    loaded, running = start.number(_LOADED), start.count(_AT_ONCE)
    if loaded is not None and loaded < running:
        return start.refuse(
            _LOADED,
            f"only {loaded:.0f} adapters are loaded, and {running} may run at once",
            f"write {running} or more, or '{_AT_ONCE}: {loaded:.0f}' beside it",
        )
    chunk = start.number("max-lora-chunk-size")
    if chunk is not None and chunk not in (16, 32, 64, 128):
        return start.refuse(
            "max-lora-chunk-size", "this chunk size is not supported", "write 16, 32, 64 or 128"
        )
    return None


def _adapters_over_data(start: Start) -> Refusal | None:
    data = start.count("attn-dp-size")
    if start.is_on(_ADAPTERS) and data > 1 and data != start.sizes.tensor:
        return start.refuse(
            "attn-dp-size",
            "with adapters, attention must be data parallel over all tensor ranks or none",
            f"write {start.sizes.tensor}, or take it out",
        )
    return None


def _half_a_certificate(start: Start) -> Refusal | None:
    pair = ("ssl-keyfile", "ssl-certfile")
    given = [name for name in pair if name in start.settings]
    alone = next((n for n in ("ssl-ca-certs", "ssl-keyfile-password") if n in start.settings), "")
    if len(given) == 1:
        other = pair[1 - pair.index(given[0])]
        return start.refuse(
            given[0], f"'{given[0]}' needs '{other}'", f"write '{other}: PATH' beside it"
        )
    if alone and not given:
        return start.refuse(
            alone, f"'{alone}' needs a certificate", "write 'ssl-certfile' and 'ssl-keyfile'"
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


def _same_port(start: Start) -> Refusal | None:
    port = start.number("grpc-port")
    if port and port == (start.engine.port or 30000):
        return start.refuse("grpc-port", "the API already has this port", "write another one")
    return None


def _several_tokenizers_of_grpc(start: Start) -> Refusal | None:
    if "grpc-port" in start.settings and start.count("tokenizer-worker-num") > 1:
        return start.refuse(
            "tokenizer-worker-num",
            "gRPC supports only one tokenizer",
            "write 1, or take 'grpc-port' out",
        )
    return None


def _more_adapters_than_places(start: Start) -> Refusal | None:
    paths, places = start.value("lora-paths"), start.number(_LOADED)
    if isinstance(paths, (list, dict)) and places is not None and len(paths) > places:
        return start.refuse(
            _LOADED,
            f"the limit of adapters to load is {places:.0f}, and the site names {len(paths)}",
            f"write {len(paths)} or more",
        )
    return None


def _all_modules(start: Start) -> Refusal | None:
    name = "lora-target-modules"
    given = start.value(name)
    if isinstance(given, list) and "all" in given and len(given) > 1:
        return start.refuse(name, "'all' must be alone", "write [all]")
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


def _refreshed_certificate(start: Start) -> Refusal | None:
    name = "enable-ssl-refresh"
    if start.is_on(name) and start.is_on("enable-http2"):
        return start.refuse(
            name, f"'{name}' can't be combined with 'enable-http2'", "keep one of the two"
        )
    if start.is_on(name) and "ssl-certfile" not in start.settings:
        return start.refuse(
            name, f"'{name}' needs a certificate", "write 'ssl-certfile' and 'ssl-keyfile'"
        )
    return None


def _second_http(start: Start) -> Refusal | None:
    name = "enable-http2"
    alone = not start.is_on("enable-ssl-refresh")
    if start.is_on(name) and alone and start.is_stock:
        return start.refuse(
            name,
            f"'{name}' needs the package granian, which images of SGLang may come without",
            "take it out, or name an image of your own with 'sglang[http2]'",
        )
    return None


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


def _marked_text(start: Start) -> Refusal | None:
    name = "enable-watermark"
    if "watermark-config" in start.settings and not start.is_on(name):
        return start.refuse(
            "watermark-config", f"'watermark-config' needs '{name}'", f"write '{name}: true'"
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


def _exported_metrics(start: Start) -> Refusal | None:
    if start.is_on("export-metrics-to-file") and "export-metrics-to-file-dir" not in start.settings:
        return start.refuse(
            "export-metrics-to-file",
            "files of metrics need a folder",
            "write 'export-metrics-to-file-dir' beside it",
        )
    labels = "tokenizer-metrics-allowed-custom-labels"
    if labels in start.settings and "tokenizer-metrics-custom-labels-header" not in start.settings:
        return start.refuse(
            labels,
            "custom labels need a header",
            "write 'tokenizer-metrics-custom-labels-header' beside it",
        )
    return None


def _features_between_processes(start: Start) -> Refusal | None:
    name = "mm-feature-transport"
    if start.word(name) == "cuda_ipc" and start.sizes.ranks > 1:
        return start.refuse(name, "'cuda_ipc' does not reach other nodes", "take it out")
    if start.word(name) == "cuda_vmm" and start.sizes.pipeline > 1:
        return start.refuse(name, "'cuda_vmm' does not support pipeline stages", "take it out")
    return None


def _prompts_without_cache(start: Start) -> Refusal | None:
    name = "prefill-only-disable-kv-cache"
    if start.is_on(name):
        return start.refuse(
            name, f"'{name}' needs a backend that does not run on a GB10", "take it out"
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
    Condition(_adapters, f"{_LORA}:152"),
    Condition(_loaded_adapters, f"{_LORA}:147"),
    Condition(_adapters_over_data, "sglang/srt/lora/lora_manager.py:114", (0, 5, 21)),
    Condition(_half_a_certificate, f"{_SERVING}:51", (0, 5, 10)),
    Condition(_port_of_grpc, f"{_SERVING}:383", (0, 5, 16)),
    Condition(_same_port, f"{_VALIDATION}:360", (0, 5, 16)),
    Condition(_several_tokenizers_of_grpc, f"{_SERVING}:420", (0, 5, 16)),
    Condition(_more_adapters_than_places, f"{_LORA}:162"),
    Condition(_all_modules, f"{_LORA}:147"),
    Condition(_runner_of_adapters, f"{_LORA}:200", (0, 5, 23)),
    Condition(_refreshed_certificate, f"{_SERVING}:84", (0, 5, 10)),
    # What an image contains besides SGLang is not known.
    Condition(_second_http, "", (0, 5, 11)),
    Condition(_kinds_of_media, f"{_SERVING}:603", (0, 5, 7)),
    Condition(_settings_of_media, f"{_SERVING}:148", (0, 5, 11)),
    Condition(_text_alone, "sglang/srt/arg_groups/model_hook.py:1106", (0, 5, 18)),
    Condition(_marked_text, f"{_VALIDATION}:37", (0, 5, 22)),
    Condition(_marked_drafts, f"{_VALIDATION}:78", (0, 5, 22)),
    Condition(_exported_metrics, f"{_VALIDATION}:335"),
    Condition(_features_between_processes, f"{_SERVING}:895", (0, 5, 16)),
    Condition(_prompts_without_cache, "sglang/srt/arg_groups/kv_cache_hook.py:344", (0, 5, 12)),
    Condition(_halves_of_a_model, "sglang/srt/arg_groups/pd_disaggregation_hook.py:306", (0, 5, 7)),
)
