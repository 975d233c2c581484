"""Settings of vLLM's processes: API servers, the model runner, pooling and tracing."""

from generator.engines.startup import Condition, Effect, Refusal, Start
from generator.engines.vllm.startup.kinds import of_images

_SECOND = "VLLM_USE_V2_MODEL_RUNNER"
_PROFILER, _POOLER, _WATERMARK = "profiler-config", "pooler-config", "watermark-config"
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# Draft methods that work with watermarks.
_MARKED = ("dflash", "dspark", "eagle", "eagle3", "mtp")


def _servers_of_followers(start: Start) -> Refusal | None:
    name = "api-server-count"
    if start.count(name, 0) > 0 and start.sizes.ranks > 1 and start.engine.launcher != "ray":
        return start.refuse(
            name,
            "all ranks get the head's flags, and those without an API reject this one",
            "take it out",
        )
    return None


def _profiler_without_a_folder(start: Start) -> Refusal | None:
    profiler = start.word(_PROFILER, "profiler")
    key = f"{profiler}_profiler_dir"
    if profiler not in ("torch", "proton") or start.word(_PROFILER, key):
        return None
    return start.refuse(
        _PROFILER,
        f"'{profiler}' has no folder to write to",
        f"write '{key}: DIR' beside it",
        "profiler",
    )


def _stages_in_step(start: Start) -> Refusal | None:
    if start.is_on("async-scheduling") and start.sizes.pipeline > 1 and not _runs_second(start):
        return start.refuse_variable(
            _SECOND,
            "the V1 model runner does not support asynchronous scheduling of pipeline stages",
            "take it out, or 'async-scheduling'",
        )
    return None


def _runs_second(start: Start) -> bool:
    return start.variable(_SECOND) is not False


def _microbatches_of_the_second(start: Start) -> Refusal | None:
    if start.variable(_SECOND) is not True or not start.is_on("enable-dbo"):
        return None
    found = "speculative decoding" if start.method else ""
    found = found or ("pipeline stages" if start.sizes.pipeline > 1 else "")
    found = found or ("adapters" if start.is_on("enable-lora") else "")
    if found or start.count("decode-context-parallel-size") > 1:
        found = found or "context parallelism"
        return start.refuse(
            "enable-dbo", f"microbatches can't be combined with {found}", "take it out"
        )
    return None


def _pooling_of_nothing(start: Start) -> Refusal | None:
    if start.word("runner") == "pooling" and start.word("convert") == "none" and start.known:
        return start.refuse(
            "convert",
            "the model generates text and has nothing to pool with",
            "write embed or classify",
        )
    return None


def _pooled_without_text(start: Start) -> Refusal | None:
    if start.word("runner") != "pooling":
        return None
    if start.method:
        return Refusal(
            "a pooling model generates no text: nothing is drafted",
            ("model", "speculative"),
            "take it out",
        )
    for name in ("tool-call-parser", "reasoning-parser", "structured-outputs-config"):
        if start.is_given(name):
            return start.refuse(
                name, "a pooling model generates no text: nothing is parsed", "take it out"
            )
    return None


def _divided_by_nothing(start: Start) -> Refusal | None:
    if start.number(_POOLER, "logit_sigma") == 0:
        return start.refuse(_POOLER, "'logit_sigma' must not be 0", "take it out", "logit_sigma")
    return None


def _pooled_twice(start: Start) -> Refusal | None:
    for key in ("seq_pooling_type", "tok_pooling_type"):
        if start.word(_POOLER, "pooling_type") and start.word(_POOLER, key):
            return start.refuse(
                _POOLER, f"'pooling_type' and '{key}' mean the same", "keep one of the two", key
            )
    return None


def _unknown_efforts(start: Start) -> Refusal | None:
    name = "reasoning-effort-map"
    given = start.value(name)
    unknown = [key for key in given if str(key) not in _EFFORTS] if isinstance(given, dict) else []
    if unknown:
        return start.refuse(
            name, f"there is no effort '{unknown[0]}'", f"write {', '.join(_EFFORTS)}", unknown[0]
        )
    return None


def _marked_drafts(start: Start) -> Refusal | None:
    drafts = start.model.speculative
    if start.value(_WATERMARK) is None or drafts is None:
        return None
    if drafts.method not in _MARKED:
        message = f"watermarks can't be combined with drafts by '{drafts.method}'"
    elif drafts.config.get("draft_sample_method") != "probabilistic":
        message = "watermarks need 'draft_sample_method: probabilistic'"
    elif drafts.config.get("rejection_sample_method", "standard") != "standard":
        message = "watermarks need 'rejection_sample_method: standard'"
    else:
        return None
    return start.refuse(_WATERMARK, message, "take one of the two out")


def _profiled_graphs(start: Start) -> Refusal | None:
    if start.word(_PROFILER, "profiler") != "proton" or start.is_on("enforce-eager"):
        return None
    if start.word("compilation-config", "cudagraph_mode").upper() == "NONE":
        return None
    if start.word(_PROFILER, "proton_mode").split(":")[0].lower() == "pcsampling":
        message, key = "sampling the program counter does not work with CUDA graphs", "proton_mode"
    elif not start.is_on(_PROFILER, "proton_graph_attribution"):
        message, key = "Proton sees CUDA graphs only with 'proton_graph_attribution'", "profiler"
    else:
        return None
    remedy = "write 'enforce-eager: true' beside it"
    if key == "profiler":
        remedy = "write 'proton_graph_attribution: true' beside it"
    return start.refuse(_PROFILER, message, remedy, key)


def _graphs_of_no_encoder(start: Start) -> Refusal | None:
    config, key = "compilation-config", "cudagraph_mm_encoder"
    if start.is_on("language-model-only") and start.is_on(config, key):
        message = f"with 'language-model-only' there is no encoder for '{key}'"
        return start.refuse(config, message, "keep one of the two", key)
    return None


def _same_port(start: Start) -> Refusal | None:
    port = start.number("grpc-port")
    if port and port == (start.engine.port or 8000):
        return start.refuse("grpc-port", "the API already has this port", "write another one")
    return None


_VLLM, _MODEL, _POOLING = "vllm/config/vllm.py", "vllm/config/model.py", "vllm/config/pooler.py"
_COMMON = "vllm/entrypoints/common/cli_args.py"

CONDITIONS = (
    Condition(_servers_of_followers, "vllm/entrypoints/cli/serve.py:71"),
    Condition(_stages_in_step, f"{_VLLM}:3107", (0, 31)),
    Condition(_profiler_without_a_folder, "vllm/config/profiler.py:239"),
    Condition(_microbatches_of_the_second, f"{_VLLM}:3222", (0, 30)),
    Condition(_pooling_of_nothing, f"{_MODEL}:733"),
    Condition(_pooled_without_text, "", effect=Effect.DIFFERS),
    Condition(_divided_by_nothing, f"{_POOLING}:141", (0, 20)),
    Condition(_pooled_twice, f"{_POOLING}:145"),
    Condition(_unknown_efforts, f"{_COMMON}:520", (0, 33)),
    Condition(_marked_drafts, f"{_VLLM}:1361", (0, 30)),
    Condition(_profiled_graphs, f"{_VLLM}:3271", (0, 30)),
    Condition(_same_port, f"{_COMMON}:509", (0, 32)),
    Condition(of_images(_graphs_of_no_encoder), f"{_VLLM}:1562", (0, 29)),
)
