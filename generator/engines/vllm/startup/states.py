"""vLLM's states for recurrent layers: Mamba, gated delta nets and the like."""

from generator.engines.conditions import excludes, within
from generator.engines.startup import Condition, Refusal, Start
from generator.models.architecture import MAMBA, Recurrent

_REPLAY, _KERNELS, _BUFFER = "use-replayssm", "mamba-backend", "replayssm-buffer-len"
# Kinds whose classes replay states.
_REPLAYED = ("nemotron_h", "kimi_k3", "kimi_linear")

# Kinds whose config.json sets the type of their states, if no flag does.
_OWN_STATES = ("nemotron_h", "qwen3_5")


def _may_be_half_floats(start: Start, states: Recurrent | None) -> bool:
    """Whether the model's config.json may request it, which vLLM follows for some kinds."""
    follows = start.model_type.startswith(_OWN_STATES) or not start.model_type
    return follows and (states is None or states.state_bytes == 2)


def _rounded_states(start: Start) -> Refusal | None:
    name, dtype = "enable-mamba-cache-stochastic-rounding", start.word("mamba-ssm-cache-dtype")
    states = start.known.recurrent if start.known else None
    if not start.is_on(name):
        return None
    if dtype != "float16" and not (dtype in ("", "auto") and _may_be_half_floats(start, states)):
        return start.refuse(
            name,
            f"'{name}' needs states in float16",
            "write 'mamba-ssm-cache-dtype: float16' beside it",
        )
    # Delta rules have kernels of their own, which always round in the same way.
    of_mamba = states is not None and states.kind == MAMBA
    if of_mamba and start.word(_KERNELS).lower() in ("", "triton"):
        return start.refuse(
            name,
            f"on a GB10, '{name}' needs FlashInfer's kernels",
            "write 'mamba-backend: flashinfer' beside it",
        )
    return None


def _algorithm_of_states(start: Start) -> Refusal | None:
    name = "mamba-ssu-algorithm"
    if name in start.settings and start.word(_KERNELS).lower() != "flashinfer":
        return start.refuse(
            name,
            f"'{name}' needs FlashInfer's kernels",
            "write 'mamba-backend: flashinfer' beside it",
        )
    return None


def _whole_images(start: Start) -> Refusal | None:
    name = "disable-chunked-mm-input"
    has_states = start.known is not None and start.known.recurrent is not None
    if has_states and start.is_on(name) and start.word("mamba-cache-mode") == "align":
        return start.refuse(
            name, "'mamba-cache-mode: align' needs chunked multimodal input", "take it out"
        )
    return None


def _replayed_by_another_kind(start: Start) -> Refusal | None:
    if start.is_on(_REPLAY) and start.model_type and start.model_type not in _REPLAYED:
        return start.refuse(
            _REPLAY, f"{start.model_type} models do not support the replay of states", "take it out"
        )
    return None


def _replayed_by_triton(start: Start) -> Refusal | None:
    plain = start.is_on(_REPLAY) and not start.method and start.model_type == "nemotron_h"
    if plain and start.word(_KERNELS).lower() in ("", "triton"):
        if start.variable("VLLM_USE_V2_MODEL_RUNNER") is not True:
            return None
        return start.refuse(
            _REPLAY,
            "Triton's kernels do not support the replay of states in the V2 model runner",
            "write 'mamba-backend: flashinfer' beside it",
        )
    return None


def _replayed_drafts(start: Start) -> Refusal | None:
    if not start.is_on(_REPLAY) or not start.method or start.model_type != "nemotron_h":
        return None
    if start.word(_KERNELS).lower() != "flashinfer":
        return start.refuse(
            _REPLAY,
            "with drafts, only FlashInfer supports the replay of states",
            "write 'mamba-backend: flashinfer' beside it",
        )
    length = start.number(_BUFFER)
    if length is not None and length < start.drafted + 1:
        return start.refuse(
            _BUFFER,
            f"{start.drafted} drafted tokens do not fit into a buffer of {length:.0f}",
            f"write {start.drafted + 1} or more",
        )
    return None


def _long_replay(start: Start) -> Refusal | None:
    replayed = start.is_on(_REPLAY) and start.word(_KERNELS).lower() == "flashinfer"
    return within(_BUFFER, 1, 16)(start) if replayed else None


_MAMBA, _VLLM = "vllm/config/mamba.py", "vllm/config/vllm.py"

CONDITIONS = (
    Condition(_rounded_states, f"{_MAMBA}:98"),
    Condition(_algorithm_of_states, f"{_MAMBA}:77", (0, 27)),
    Condition(_whole_images, f"{_VLLM}:3415"),
    Condition(_replayed_by_another_kind, f"{_VLLM}:3476", (0, 29), (0, 34)),
    Condition(_replayed_by_triton, f"{_VLLM}:3532", (0, 30)),
    Condition(_replayed_drafts, f"{_VLLM}:3510", (0, 32)),
    Condition(_long_replay, f"{_VLLM}:3480", (0, 32)),
    Condition(excludes(_REPLAY, "kv-transfer-config"), f"{_VLLM}:3545", (0, 27)),
)
