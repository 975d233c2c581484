"""Conditions that many settings share: one requires another, two exclude each other, and so on.

Each function creates a check for a `Condition` of generator/engines/startup.py.
"""

from collections.abc import Callable, Collection

from generator import catalogs
from generator.engines.startup import METHOD, SPECULATIVE, Refusal, Start

Check = Callable[[Start], Refusal | None]

# Kinds of models known to have no prediction layers.
NOT_PREDICTING = (
    *("llama", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gpt_oss", "mistral", "mistral3"),
    *("mixtral", "minimax_m2", "gemma2", "gemma3"),
)


def needs(name: str, other: str, example: str = "true") -> Check:
    """A setting requires another one."""

    def check(start: Start) -> Refusal | None:
        if not start.is_given(name) or start.is_given(other):
            return None
        return start.refuse(
            name, f"'{name}' needs '{other}'", f"write '{other}: {example}' beside it"
        )

    return check


def excludes(name: str, *others: str) -> Check:
    """A setting can't be combined with others."""

    def check(start: Start) -> Refusal | None:
        found = next((other for other in others if start.is_given(other)), "")
        if not start.is_given(name) or not found:
            return None
        return start.refuse(
            name, f"'{name}' can't be combined with '{found}'", "keep one of the two"
        )

    return check


def within(name: str, least: float, most: float | None = None, *keys: str) -> Check:
    """A number has to be within bounds."""

    def check(start: Start) -> Refusal | None:
        number = start.number(name, *keys)
        if number is None or (least <= number and (most is None or number <= most)):
            return None
        shown = keys[-1] if keys else name
        bounds = (
            f"must be at least {least:g}" if most is None else f"must be from {least:g} to {most:g}"
        )
        return start.refuse(name, f"'{shown}' {bounds}", "take it out", *keys)

    return check


def one_of(name: str, words: Collection[str], why: str, remedy: str, *keys: str) -> Check:
    """A value has to be one of these words; `why` follows it in the message."""

    def check(start: Start) -> Refusal | None:
        word = start.word(name, *keys)
        if not word or word in words:
            return None
        return start.refuse(name, f"{word} {why}", remedy, *keys)

    return check


def without_prediction(start: Start) -> Refusal | None:
    """Drafts by prediction layers need a model that has some."""
    if start.method == "mtp" and start.model_type in NOT_PREDICTING:
        return Refusal(
            "the model has no MTP layers, which the method 'mtp' needs",
            METHOD,
            "write 'method: eagle3' or 'method: draft' with a 'source', or take 'speculative' out",
        )
    return None


def other_vocabulary(start: Start) -> Refusal | None:
    """A draft model has the vocabulary of the model."""
    drafts = start.model.speculative
    known = catalogs.checkpoint(drafts.source) if drafts and drafts.source else None
    own = start.known.vocab_size if start.known else None
    other = known.architecture.facts.get("vocab_size") if known else None
    if start.method == "draft" and own and other and own != other:
        return Refusal(
            f"the draft model has a vocabulary of {other} words, and the model one of {own}",
            (*SPECULATIVE, "source"),
            "choose a smaller model of the same family",
        )
    return None
