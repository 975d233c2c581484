"""Keys of vLLM's `speculative-config`: what they require and what they exclude."""

from generator.catalogs.versions import release
from generator.engines.startup import SPECULATIVE, Condition, Refusal, Start

_SECOND = "VLLM_USE_V2_MODEL_RUNNER"

# Ways to accept drafts, by the first release that has these names.
_ACCEPTED = (
    ((), ("strict", "probabilistic", "synthetic")),
    ((0, 21), ("standard", "synthetic")),
    ((0, 25), ("standard", "synthetic", "block")),
    ((0, 33), ("standard", "synthetic", "block", "fly")),
)

# Methods that can't be scheduled asynchronously, ahead of the GPU.
_IN_STEP_ALONE = ("ngram", "suffix", "medusa", "mlp_speculator", "custom_class")

# Drafts without a model, whose length is not checked against anything.
_WITHOUT_A_MODEL = ("ngram", "ngram_gpu", "suffix", "custom_class", "extract_hidden_states")

# Drafts in blocks, in which a token sees those after it.
_BLOCKS = ("dflash", "dspark")


def _refuse(key: str, message: str, remedy: str = "take it out") -> Refusal:
    return Refusal(message, (*SPECULATIVE, "config", key), remedy)


def _draft_in_parts(start: Start) -> Refusal | None:
    size, tensor = start.draft_setting("draft_tensor_parallel_size"), start.sizes.tensor
    if start.method == "draft" and isinstance(size, int) and size != tensor:
        return _refuse(
            "draft_tensor_parallel_size",
            f"the draft model must have the model's tensor size, {tensor}",
        )
    return None


def _padded_drafts(start: Start) -> Refusal | None:
    key = "disable_padded_drafter_batch"
    if start.draft_setting(key) is not True:
        return None
    if start.method == "draft" or start.draft_setting("parallel_drafting") is True:
        return _refuse(key, f"'{key}' can't be combined with draft models or parallel drafts")
    return None


def _drafts_in_step(start: Start) -> Refusal | None:
    if start.is_on("async-scheduling") and start.method in _IN_STEP_ALONE:
        return start.refuse(
            "async-scheduling",
            f"'async-scheduling' can't be combined with drafts by '{start.method}'",
            "take it out",
        )
    return None


def _reduced_samples_of_another_vocabulary(start: Start) -> Refusal | None:
    key = "use_heterogeneous_vocab"
    if (
        start.draft_setting(key) is True
        and start.draft_setting("use_local_argmax_reduction") is True
    ):
        return _refuse(
            "use_local_argmax_reduction",
            f"'use_local_argmax_reduction' can't be combined with '{key}'",
        )
    return None


def _longer_drafts(start: Start) -> Refusal | None:
    length, context = str(start.draft_setting("max_model_len")), start.model.context_length
    context = context or (start.known.max_context if start.known else None)
    if start.method in _WITHOUT_A_MODEL or not length.isdecimal():
        return None
    most = int(length)
    if context and most > context:
        return _refuse(
            "max_model_len",
            f"drafts of {most} tokens are longer than the context of {context}",
            f"write {context} or less",
        )
    return None


def _not_of_the_first_runner(start: Start) -> Refusal | None:
    if start.variable(_SECOND) is not False:
        return None
    keys = ("enable_adaptive_verification", "draft_lm_head_quantization", "xpress_topc")
    found = next((f"'{key}'" for key in keys if start.draft_setting(key)), "")
    if start.method == "dspark" or found:
        return start.refuse_variable(
            _SECOND,
            f"the V1 model runner does not support {found or 'drafts by dspark'}",
            "take it out",
        )
    return None


def _not_of_the_second_runner(start: Start) -> Refusal | None:
    if start.variable(_SECOND) is not True:
        return None
    in_parallel = start.draft_setting("parallel_drafting") is True
    found = "'parallel_drafting'" if in_parallel and start.method in ("eagle", "eagle3") else ""
    if start.method in ("suffix", "custom_class"):
        found = f"drafts by {start.method}"
    return _missing_in_the_second(start, found)


def _missing_in_the_second(start: Start, what: str) -> Refusal | None:
    if not what:
        return None
    return start.refuse_variable(
        _SECOND, f"the V2 model runner does not support {what} yet", "take it out"
    )


def _one_hidden_state(start: Start) -> Refusal | None:
    if start.method == "extract_hidden_states" and start.drafted not in (0, 1):
        return Refusal(
            "'extract_hidden_states' drafts exactly one token", (*SPECULATIVE, "tokens"), "write 1"
        )
    return None


def _hidden_states(start: Start) -> Refusal | None:
    if start.method != "extract_hidden_states":
        return None
    if start.draft_setting("draft_sample_method") not in (None, "greedy"):
        return _refuse(
            "draft_sample_method",
            "'extract_hidden_states' needs greedy draft sampling",
            "write greedy",
        )
    if start.draft_setting("disable_padded_drafter_batch") is True:
        key = "disable_padded_drafter_batch"
        return _refuse(key, f"'{key}' can't be combined with 'extract_hidden_states'")
    return None


def _reduced_samples(start: Start) -> Refusal | None:
    key = "use_local_argmax_reduction"
    if (
        start.draft_setting(key) is True
        and start.draft_setting("draft_sample_method") == "probabilistic"
    ):
        return _refuse(key, f"'{key}' needs greedy draft sampling")
    return None


def _acceptance(start: Start) -> Refusal | None:
    key, text = "rejection_sample_method", start.engine.version
    word = start.draft_setting(key)
    words = [words for since, words in _ACCEPTED if since <= release(text)][-1]
    if word is None or word in words:
        return None
    return _refuse(key, f"vLLM {text} has no '{word}' for '{key}'", f"write {words[0]}")


def _adaptive_verification(start: Start) -> Refusal | None:
    key = "enable_adaptive_verification"
    found = "adapters" if start.is_on("enable-lora") else ""
    found = found or ("pipeline stages" if start.sizes.pipeline > 1 else "")
    if start.draft_setting(key) is True and found:
        return _refuse(key, f"'{key}' can't be combined with {found}")
    return None


def _verification_without_graphs(start: Start) -> Refusal | None:
    key = "enable_adaptive_verification"
    mode = start.word("compilation-config", "cudagraph_mode").upper()
    is_partial = start.is_on("enforce-eager") or mode in ("NONE", "PIECEWISE")
    if start.draft_setting(key) is True and is_partial:
        return _refuse(key, f"'{key}' needs full CUDA graphs")
    return None


def _blocks_with_b12x(start: Start) -> Refusal | None:
    if start.method not in _BLOCKS:
        return None
    if str(start.draft_setting("attention_backend")).upper() == "B12X":
        return _refuse("attention_backend", f"B12X does not support the method '{start.method}'")
    return None


_SPECULATION = "vllm/config/speculative.py"
_VLLM = "vllm/config/vllm.py"

# Releases in which the wheels from 0.19.0 to 0.33.0 have these checks; lines are those of 0.33.0.
CONDITIONS = (
    Condition(_draft_in_parts, "vllm/v1/spec_decode/draft_model.py:47", until=(0, 20)),
    Condition(_padded_drafts, "vllm/v1/spec_decode/eagle.py:282", until=(0, 20)),
    Condition(_drafts_in_step, _VLLM, until=(0, 33)),
    Condition(_reduced_samples_of_another_vocabulary, f"{_SPECULATION}:2005", (0, 33)),
    Condition(_longer_drafts, f"{_SPECULATION}:1781"),
    Condition(_not_of_the_first_runner, f"{_VLLM}:3089", (0, 29)),
    Condition(_not_of_the_second_runner, f"{_VLLM}:3053", (0, 29)),
    Condition(_one_hidden_state, "vllm/v1/spec_decode/extract_hidden_states.py:35", (0, 22)),
    Condition(_hidden_states, "vllm/v1/spec_decode/extract_hidden_states.py:24", (0, 33)),
    Condition(_reduced_samples, "vllm/v1/worker/gpu/spec_decode/eagle/speculator.py:419", (0, 33)),
    Condition(_acceptance, f"{_SPECULATION}:83"),
    Condition(_adaptive_verification, f"{_VLLM}:3161", (0, 29)),
    Condition(_verification_without_graphs, f"{_VLLM}:3177", (0, 30)),
    Condition(_blocks_with_b12x, "vllm/v1/attention/backend.py:336", (0, 33)),
)
