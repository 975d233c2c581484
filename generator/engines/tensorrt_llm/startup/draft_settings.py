"""Keys of TensorRT-LLM's `speculative_config`, checked against each other and the method."""

from generator.engines.startup import Condition, Refusal, Start

_PATH = ("model", "speculative", "config")
_CONFIG = "config"


def _dynamic_tree(start: Start) -> Refusal | None:
    key = "use_dynamic_tree"
    if start.draft_setting(key) is not True:
        return None
    if start.draft_setting("eagle_choices") is not None:
        return Refusal(
            f"'eagle_choices' sets a static tree, and '{key}' a dynamic one",
            (*_PATH, "eagle_choices"),
            "keep one of the two",
        )
    needed = ("dynamic_tree_max_topK", "max_total_draft_tokens")
    missing = next((name for name in needed if start.draft_setting(name) is None), "")
    if missing:
        return Refusal(f"'{key}' needs '{missing}'", (*_PATH, key), f"write '{missing}' beside it")
    return None


def _length_of_matches(start: Start) -> Refusal | None:
    key = "max_matching_ngram_size"
    size = start.draft_setting(key)
    if start.method == "ngram" and isinstance(size, int) and size <= 0:
        return Refusal("a lookup needs at least 1 word", (*_PATH, key), "write 2")
    return None


def _no_length_of_matches(start: Start) -> Refusal | None:
    key = "max_matching_ngram_size"
    if start.method == "ngram" and start.draft_setting(key) is None:
        return Refusal(
            f"'ngram' of TensorRT-LLM {start.engine.version} needs '{key}', which defaults to 0",
            ("model", "speculative"),
            f"write 'config: {{{key}: 2}}' beside the method",
        )
    return None


def _schedule(start: Start) -> Refusal | None:
    key, drafted = "draft_len_schedule", start.drafted
    lengths = start.draft_setting(key)
    if not isinstance(lengths, dict) or not drafted:
        return None
    by_batch = {str(batch): length for batch, length in lengths.items()}
    if by_batch.get("1") != drafted:
        return Refusal(
            f"a schedule must begin with batch size 1 and the {drafted} drafted tokens",
            (*_PATH, key),
            f"write '1: {drafted}' in it",
        )
    wrong = [n for n in by_batch.values() if not isinstance(n, int) or not 0 <= n <= drafted]
    if wrong:
        return Refusal(
            f"{wrong[0]} is not within the {drafted} drafted tokens",
            (*_PATH, key),
            f"write 0 to {drafted}",
        )
    return None


def _acceptance(start: Start) -> Refusal | None:
    for key in ("acceptance_window", "acceptance_length_threshold"):
        number = start.draft_setting(key)
        if isinstance(number, int | float) and number < 0:
            return Refusal(f"'{key}' must be at least 0", (*_PATH, key), "take it out")
    return None


def _sampler(start: Start) -> Refusal | None:
    if start.word(_CONFIG, "sampler_type") == "TRTLLMSampler" and start.method in ("mtp", "eagle3"):
        return start.refuse(
            _CONFIG,
            f"TRTLLMSampler can't be combined with drafts by '{start.method}'",
            "take it out",
            "sampler_type",
        )
    return None


def _blocks_of_helix(start: Start) -> Refusal | None:
    keys = ("cp_config", "tokens_per_block")
    own = start.number(_CONFIG, *keys)
    cache = start.number(_CONFIG, "kv_cache_config", "tokens_per_block") or 32
    if start.word(_CONFIG, "cp_config", "cp_type").upper() == "HELIX" and own and own != cache:
        return start.refuse(
            _CONFIG,
            f"blocks of {own:.0f} tokens differ from those of the KV cache, {cache:.0f}",
            f"write {cache:.0f}",
            *keys,
        )
    return None


_ARGUMENTS = "tensorrt_llm/llmapi/llm_args.py"

CONDITIONS = (
    Condition(_dynamic_tree, f"{_ARGUMENTS}, EagleDecodingConfig"),
    Condition(_length_of_matches, f"{_ARGUMENTS}, NGramDecodingConfig"),
    Condition(_no_length_of_matches, f"{_ARGUMENTS}, NGramDecodingConfig", until=(1, 3)),
    Condition(_schedule, f"{_ARGUMENTS}, DecodingBaseConfig"),
    Condition(_acceptance, f"{_ARGUMENTS}, DecodingBaseConfig"),
    Condition(
        _sampler,
        "tensorrt_llm/_torch/pyexecutor/_util.py, validate_feature_combination",
        until=(1, 3),
    ),
    Condition(_blocks_of_helix, f"{_ARGUMENTS}, validate_helix_tokens_per_block", (1, 3)),
)
