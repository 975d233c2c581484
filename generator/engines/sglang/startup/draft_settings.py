"""SGLang's flags for speculative decoding with trees, blocks and n-grams, and what they exclude."""

from typing import Any

from generator.diagnostics import KeyPath
from generator.engines.startup import SPECULATIVE, Condition, Refusal, Start

_PREFIX = "speculative-"

# Backends that verify a tree of drafts with several tokens per page.
_OF_TREES = ("flashinfer", "fa3", "triton")


def _setting(start: Start, name: str) -> tuple[Any, KeyPath]:
    """The value of a flag, possibly a key of the drafts' `config`, and its place."""
    drafts = start.model.speculative
    for key, value in drafts.config.items() if drafts else ():
        if key.replace("_", "-").removeprefix(_PREFIX) == name.removeprefix(_PREFIX):
            return value, (*SPECULATIVE, "config", key)
    return None, ()


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _branches_of_pages(start: Start) -> Refusal | None:
    drafts, backend = start.model.speculative, start.word("attention-backend")
    if not drafts or (drafts.topk or 1) <= 1 or not backend:
        return None
    if backend == "trtllm_mha":
        message = "trtllm_mha can't verify a tree of drafts"
    elif backend not in _OF_TREES and start.count("page-size") > 1:
        message = f"{backend} can't verify a tree of drafts with pages of several tokens"
    else:
        return None
    return Refusal(
        message,
        (*SPECULATIVE, "topk"),
        "write 1, or 'attention-backend: flashinfer' under engine.args",
    )


def _branches_of_ngrams(start: Start) -> Refusal | None:
    breadth, _ = _setting(start, "speculative-ngram-max-bfs-breadth")
    backend = start.word("attention-backend")
    if start.method != "ngram" or breadth == 1 or start.count("page-size") <= 1:
        return None
    if not backend or backend == "flashinfer":
        return None
    return start.refuse(
        "page-size",
        f"{backend} can't verify a tree of words with pages of several tokens",
        "write 1, or 'ngram-max-bfs-breadth: 1' under model.speculative.config",
    )


def _budget_of_ngrams(start: Start) -> Refusal | None:
    budget, path = _setting(start, "speculative-ngram-external-sam-budget")
    number = _whole(budget)
    if number is not None and (number <= 0 or (start.drafted and number > start.drafted)):
        return Refusal(
            f"a budget of {number} is not within the {start.drafted} drafted tokens",
            path,
            f"write 1 to {start.drafted}" if start.drafted else "write 1 or more",
        )
    most, path = _setting(start, "speculative-ngram-external-corpus-max-tokens")
    number = _whole(most)
    if number is not None and number <= 0:
        return Refusal("a corpus must have at least 1 token", path, "take it out")
    return None


def _size_of_blocks(start: Start) -> Refusal | None:
    if start.method not in ("dflash", "dspark"):
        return None
    size, path = _setting(start, f"speculative-{start.method}-block-size")
    block = _whole(size)
    if block is None:
        return None
    if block <= 0:
        return Refusal("a block must have at least 1 token", path, "take it out")
    # The block includes the token that is verified besides the drafts.
    if start.method == "dflash" and start.drafted and block != start.drafted + 1:
        return Refusal(
            f"a block of {block} tokens must have one more than the {start.drafted} drafted tokens",
            path,
            f"write {start.drafted + 1}, or 'tokens: {block - 1}'",
        )
    return None


def _blocks_with_attention_data(start: Start) -> Refusal | None:
    is_spread = start.count("attn-dp-size") > 1
    if start.method == "dflash" and is_spread and not start.is_on("enable-dp-lm-head"):
        return start.refuse(
            "attn-dp-size",
            "drafts by 'dflash' need 'enable-dp-lm-head' with data parallel attention",
            "write 'enable-dp-lm-head: true' beside it",
        )
    return None


def _blocks_in_four_bits(start: Start) -> Refusal | None:
    is_small = start.model.kv_cache_dtype == "nvfp4"
    if is_small and start.method in ("dflash", "dspark"):
        if start.word("attention-backend") != "trtllm_mha":
            return None
        return start.refuse(
            "attention-backend",
            f"on a GB10, trtllm_mha does not support drafts by '{start.method}' with a KV cache in "
            "nvfp4",
            "write another 'kv_cache_dtype' under model",
        )
    return None


_HOOK = "sglang/srt/arg_groups/speculative_hook.py"

CONDITIONS = (
    Condition(_branches_of_pages, f"{_HOOK}:1278", (0, 5, 23)),
    Condition(_branches_of_ngrams, f"{_HOOK}:1361", (0, 5, 23)),
    Condition(_budget_of_ngrams, f"{_HOOK}:1333", (0, 5, 23)),
    Condition(_size_of_blocks, f"{_HOOK}:298", (0, 5, 23)),
    Condition(_blocks_with_attention_data, f"{_HOOK}:420", (0, 5, 23)),
    Condition(_blocks_in_four_bits, "sglang/srt/arg_groups/kv_cache_hook.py:172", (0, 5, 23)),
)
