"""By how much the reserve exceeds the computed one, and by how much the room may be larger."""

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.versions import version
from generator.fit import formulas
from generator.fit.demand import Demand
from generator.models.architecture import Shape
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel


def reserve_is_unknown(model: DeclaredModel, engine: DeclaredEngine) -> bool:
    """Whether the reserve is a release's, but the build is another one that was not measured.

    Source: a build of vLLM 0.21 with patches for DeepSeek-V4 has 20.36 GiB of room on two Sparks,
    where that release has 15 (variant02-dspark-nvfp4, July 2026).
    """
    if ENGINE_TRAITS[engine.name].reserves_outside:
        return False
    return model.correction_gib is None and bool(version(engine.version).local)


def excess_gib(model: DeclaredModel, engine: DeclaredEngine, known: Shape) -> float:
    """How much more others' logs show than is computed, unless this site was measured.

    For more ranks than anybody has reported, the value for the most reported ones is used.
    """
    if model.correction_gib is not None:
        return 0.0
    tensor = engine.parallel.tensor
    seen = {
        each.tensor: each.gib
        for each in known.excess
        if each.engine == engine.name and each.tensor <= tensor
    }
    return seen[max(seen)] if seen else 0.0


def doubt_bytes(model: DeclaredModel, engine: DeclaredEngine, demand: Demand) -> float:
    """Bytes by which the room may be larger: all of the reserve, if that is not known.

    What only others' logs show may not exist here.
    """
    if model.correction_gib is not None:
        return formulas.STARTS_DIFFER_BYTES
    if ENGINE_TRAITS[engine.name].shares_free:
        return formulas.FREE_ERROR_BYTES * engine.memory_utilization + demand.correction
    reserve = demand.reserve_inside - demand.cache.fixed
    if reserve_is_unknown(model, engine):
        return reserve
    computed = reserve - demand.correction
    return min(float(formulas.RESERVE_ERROR_BYTES), computed) + demand.correction
