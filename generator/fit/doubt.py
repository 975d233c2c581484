"""What the reserve is beyond what is computed, and by how much the room may be more than that."""

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.versions import version
from generator.fit import formulas
from generator.fit.demand import Demand
from generator.models.architecture import Shape
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel


def reserve_is_unknown(model: DeclaredModel, engine: DeclaredEngine) -> bool:
    """Whether the reserve is a release's, and the build is another one, of which none was measured.

    Source: a build of vLLM 0.21 with patches for DeepSeek-V4 has 20.36 GiB of room on two Sparks,
    where that release has 15 (variant02-dspark-nvfp4, July 2026).
    """
    if ENGINE_TRAITS[engine.name].reserves_outside:
        return False
    return model.correction_gib is None and bool(version(engine.version).local)


def excess_gib(model: DeclaredModel, engine: DeclaredEngine, known: Shape) -> float:
    """What starts of others held beyond what is computed, unless this site was measured.

    Over more ranks than anybody reported of it is as over the most that were.
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
    """Bytes by which the room may be more: all of the reserve, where that is not known.

    What only others' starts held may not be there in this one.
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
