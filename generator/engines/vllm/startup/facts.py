"""What the rows of `schemas/startup/vllm.yaml` ask beside the site's own settings."""

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.versions import place
from generator.engines.rows import RowFacts
from generator.engines.startup import Start
from generator.engines.vllm.startup.kinds import FACTS as OF_KINDS
from generator.fit.requested import defaults
from generator.models.architecture import is_of_modelopt

# Kinds whose states can be kept for all tokens, not aligned with blocks; the default until 0.28.
# Source: vLLM 0.27.1, vllm/model_executor/models, the classes with `SupportsMambaPrefixCaching`.
_KEEP_ALL = ("bamba", "falcon_h1", "granitemoehybrid", "jamba", "mamba", "nemotron_h", "zamba2")
_ALWAYS_ALIGNED = (0, 28)
# Kinds whose config.json sets the type of their states, if no flag does.
_OWN_STATES = ("nemotron_h", "qwen3_5")
_UNCOMPILED = ("0", "NONE")


def _is_uncompiled(start: Start) -> bool:
    mode = start.word("compilation-config", "mode")
    return start.word("optimization-level") == "0" or mode in _UNCOMPILED


def _step(start: Start) -> int | None:
    """The tokens of a step, as requested or by default; None if the context decides, unknown.

    Source: vLLM 0.19.0 to 0.33.0, `_set_default_max_num_seqs_and_batched_tokens_args`.
    """
    tokens = defaults(start.engine).tokens
    if start.value("enable-chunked-prefill") is False:
        context = start.model.context_length or (start.known and start.known.max_context)
        tokens = max(tokens, context) if context else 0
    return start.count("max-num-batched-tokens", tokens) or None


def _drafted_slots(start: Start) -> int | None:
    """Tokens of a step that sequences have beside the first of each."""
    return start.sequences * (start.drafted - 1) if start.drafted else None


def _states_type(start: Start) -> str:
    """The type of states: the requested one, or what the model's config.json may request."""
    asked = start.word("mamba-ssm-cache-dtype")
    if asked not in ("", "auto"):
        return asked
    states = start.known.recurrent if start.known else None
    follows = start.model_type.startswith(_OWN_STATES) or not start.model_type
    return "float16" if follows and (states is None or states.state_bytes == 2) else "auto"


def _is_aligned(start: Start) -> bool | None:
    """Whether states of recurrent layers are kept for prefixes, aligned with blocks.

    Source: vllm/model_executor/models/config.py, `MambaModelConfig`.
    """
    if not start.known or not start.known.recurrent:
        return None
    given, of_release = start.value("enable-prefix-caching"), place(start.engine.version)
    paging = ENGINE_TRAITS[start.engine.name].paging
    caches = bool(paging and of_release >= paging.caches_states) if given is None else given
    mode = start.word("mamba-cache-mode")
    keeps_all = mode == "all" or (mode != "align" and of_release < _ALWAYS_ALIGNED)
    return caches is True and not (keeps_all and start.model_type.startswith(_KEEP_ALL))


FACTS: RowFacts = {
    "uncompiled": _is_uncompiled,
    "step": _step,
    "drafted_slots": _drafted_slots,
    "aligned": _is_aligned,
    "small_heads": lambda start: (
        start.model_type == "gpt_oss" or (start.known is not None and start.known.head_dim == 64)
    ),
    "modelopt": lambda start: is_of_modelopt(start.model),
    "states_type": _states_type,
    **OF_KINDS,
}
