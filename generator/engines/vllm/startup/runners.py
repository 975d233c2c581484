"""Settings of vLLM's processes: API servers, the model runner, pooling and tracing."""

from generator.engines.startup import Condition, Effect, Refusal, Start
from generator.engines.vllm.startup.kinds import of_images

_SECOND = "VLLM_USE_V2_MODEL_RUNNER"


def _servers_of_followers(start: Start) -> Refusal | None:
    name = "api-server-count"
    if start.count(name, 0) > 0 and start.sizes.ranks > 1 and start.engine.launcher != "ray":
        return start.refuse(
            name,
            "all ranks get the head's flags, and those without an API reject this one",
            "take it out",
        )
    return None


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


def _graphs_of_no_encoder(start: Start) -> Refusal | None:
    config, key = "compilation-config", "cudagraph_mm_encoder"
    if start.is_on("language-model-only") and start.is_on(config, key):
        message = f"with 'language-model-only' there is no encoder for '{key}'"
        return start.refuse(config, message, "keep one of the two", key)
    return None


_VLLM, _MODEL, _POOLING = "vllm/config/vllm.py", "vllm/config/model.py", "vllm/config/pooler.py"

CONDITIONS = (
    Condition(_servers_of_followers, "vllm/entrypoints/cli/serve.py:71"),
    Condition(_stages_in_step, f"{_VLLM}:3107", (0, 31)),
    Condition(_pooling_of_nothing, f"{_MODEL}:733"),
    Condition(_pooled_without_text, "", effect=Effect.DIFFERS),
    Condition(of_images(_graphs_of_no_encoder), f"{_VLLM}:1562", (0, 29)),
)
