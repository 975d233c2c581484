"""Draft models with files of their own, by their Hugging Face ids."""

from functools import cache

from generator.records import record
from generator.resources import rows


@record
class DraftCache:
    """What a draft model caches: elements per token over all its layers.

    `windowed` of them have a window of `window` tokens, which not every engine makes use of.
    """

    elements: float
    layers: int = 1
    windowed: int = 0
    window: int = 0


@record
class DraftModel:
    """A draft with files of its own; `cache` is None if nobody published what it caches."""

    id: str
    of: str
    method: str
    weight_gb: float
    cache: DraftCache | None


def draft(source: str | None) -> DraftModel | None:
    """The draft with a Hugging Face id."""
    return next((each for each in drafts() if each.id.lower() == (source or "").lower()), None)


@cache
def drafts() -> tuple[DraftModel, ...]:
    """All drafts, of schemas/drafts.tsv."""
    return tuple(
        DraftModel(
            id_, of, method, float(size), DraftCache(*map(int, cached)) if cached[0] else None
        )
        for id_, of, method, size, *cached, _ in rows("drafts")
    )
