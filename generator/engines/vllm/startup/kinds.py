"""What vLLM's class of a model supports.

A line of `schemas/vllm-kinds.tsv` is a kind of model, by the model_type of its config.json. Nothing
is known or reported about other kinds.
"""

from collections.abc import Mapping
from functools import cache, partial

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.versions import Release, place
from generator.engines.rows import RowFacts, class_since
from generator.engines.startup import Start
from generator.records import record
from generator.resources import rows

_NEVER: Release = (10**6,)
_OLDEST = ENGINE_TRAITS["vllm"].startup_since


@record
class Kind:
    """The first releases in which a class has adapters, EAGLE-3, it over stages, and MTP layers."""

    images: bool
    adapters: Release
    eagle3: Release
    stages: Release
    prediction: Release


@cache
def kinds() -> Mapping[str, Kind]:
    """The known kinds by model_type."""
    return {
        name: Kind(images == "yes", *(_NEVER if r == "-" else place(r) for r in releases))
        for name, *releases, images in rows("vllm-kinds")
    }


def _has(feature: str, start: Start) -> bool | None:
    """Whether the class has it; what the oldest release that was read has may be older."""
    since = getattr(kinds().get(start.model_type), feature, None)
    own = place(start.engine.version)
    if since is None or own < since == _OLDEST or class_since(start):
        return None
    return bool(since <= own)


def _later(feature: str, start: Start) -> str:
    """What to write if a later release has it, before another proposal; otherwise empty."""
    known = kinds().get(start.model_type)
    since: Release = getattr(known, feature) if known else _NEVER
    return "" if since == _NEVER else f"take vLLM {'.'.join(map(str, since))} or later, or "


_FEATURES = ("adapters", "eagle3", "stages", "prediction")

FACTS: RowFacts = {
    "kind.images": lambda start: getattr(kinds().get(start.model_type), "images", None),
    **{f"kind.{feature}": partial(_has, feature) for feature in _FEATURES},
    **{f"kind.{feature}_later": partial(_later, feature) for feature in _FEATURES},
}
