"""vLLM's sampling: sharded over ranks, and with the mask that was sampled from."""

from generator.engines.conditions import none_of
from generator.engines.startup import Condition, Refusal, Start

_SHARDED, _MASK = "enable-batch-sharded-sampling", "return-sampling-mask"


def _sharded(start: Start) -> Refusal | None:
    tensor, sequences = start.sizes.tensor, start.model.max_sequences
    if not start.is_on(_SHARDED):
        return None
    if tensor == 1:
        message = "there is nothing to shard with tensor size 1"
    elif sequences and sequences < tensor:
        message = f"{sequences} concurrent sequences leave some of {tensor} ranks without any"
    elif (start.number("max-logprobs") or 0) < 0:
        message = (
            f"'{_SHARDED}' needs a limit of log probabilities, and 'max-logprobs: -1' sets none"
        )
    elif start.is_on(_MASK):
        message = f"'{_SHARDED}' can't be combined with '{_MASK}'"
    else:
        return None
    return start.refuse(_SHARDED, message, "take it out")


def _masked(start: Start) -> Refusal | None:
    if not start.is_on(_MASK):
        return None
    name = "VLLM_USE_V2_MODEL_RUNNER"
    if start.variable(name) is False:
        return start.refuse_variable(name, f"'{_MASK}' needs the V2 model runner", "take it out")
    if start.word("logprobs-mode") != "processed_logprobs":
        return start.refuse(
            _MASK,
            f"'{_MASK}' needs processed log probabilities",
            "write 'logprobs-mode: processed_logprobs' beside it",
        )
    return None


def _another_kind(start: Start) -> Refusal | None:
    name = "model-impl"
    if start.word(name) == "terratorch" and start.known:
        return start.refuse(name, "the model is not a TerraTorch model", "take it out")
    return None


_VLLM = "vllm/config/vllm.py"

CONDITIONS = (
    Condition(_sharded, f"{_VLLM}:3030", (0, 29)),
    Condition(_masked, f"{_VLLM}:1237", (0, 29)),
    Condition(
        none_of("kda-prefill-backend", ("fused",), "is only for AMD GPUs", "write auto"),
        "vllm/engine/arg_utils.py:2877",
        (0, 30),
    ),
    Condition(_another_kind, "vllm/config/model.py:737"),
)
