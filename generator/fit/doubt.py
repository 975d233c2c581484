"""By how much the room for KV cache may differ from the computed one, on either side."""

from functools import cache

from generator.catalogs import is_patched
from generator.catalogs.engines import ENGINE_TRAITS
from generator.fit import formulas
from generator.fit.demand import Demand
from generator.fit.formulas import GIB
from generator.models.architecture import Shape
from generator.records import record
from generator.resources import rows
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel


@record
class Doubt:
    """Bytes by which the room of a rank may be smaller and larger than computed."""

    less: float
    more: float

    @property
    def between_starts(self) -> float:
        """By how much two starts of the same site differ: nearer to the limit nobody can tell."""
        return min(self.less, formulas.STARTS_DIFFER_BYTES)


@cache
def _seen(engine: str) -> tuple[float, float] | None:
    """How much less room releases had, as a multiple of activations, and how many bytes more."""
    return {name: (float(a), float(b) * GIB) for name, _, a, b in rows("reserves")}.get(engine)


def reserve_is_unknown(model: DeclaredModel, engine: DeclaredEngine) -> bool:
    """Whether the reserve is a release's, but the build is another one that was not measured.

    Source: a build of vLLM 0.21 with patches for DeepSeek-V4 has 20.36 GiB of room on two Sparks,
    where that release has 15 (variant02-dspark-nvfp4, July 2026).
    """
    if ENGINE_TRAITS[engine.name].reserves_outside:
        return False
    return model.correction_gib is None and is_patched(engine.image, engine.version)


def excess_gib(model: DeclaredModel, engine: DeclaredEngine, known: Shape) -> float:
    """How much more others' logs show than is computed, unless this site was measured.

    For more ranks than anybody has reported, the value for the most reported ones is used.
    """
    if model.correction_gib is not None:
        return 0.0
    told = (each for each in known.excess if each.engine == engine.name)
    seen = {each.tensor: each.gib for each in told if each.tensor <= engine.parallel.tensor}
    return seen[max(seen)] if seen else 0.0


def doubt(model: DeclaredModel, engine: DeclaredEngine, demand: Demand) -> Doubt:
    """Of one rank: all of the reserve may be room, if what a build needs is not known.

    What only others' logs show may not exist here.
    """
    if model.correction_gib is not None:
        return Doubt(formulas.STARTS_DIFFER_BYTES, formulas.STARTS_DIFFER_BYTES)
    if ENGINE_TRAITS[engine.name].shares_free:
        free = formulas.FREE_ERROR_BYTES * engine.memory_utilization
        return Doubt(free, free + demand.correction)
    reserve = demand.reserve_inside - demand.cache.fixed
    activations, more = _seen(engine.name) or (0.0, reserve)
    less = max(activations * demand.activations, formulas.STARTS_DIFFER_BYTES)
    more = reserve if reserve_is_unknown(model, engine) else demand.correction + more
    return Doubt(less, min(reserve, more))
