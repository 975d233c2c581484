"""By how much the room for the cache may be more than computed, which decides what is refused."""

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.versions import version
from generator.fit import formulas
from generator.fit.demand import Demand
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel


def reserve_is_unknown(model: DeclaredModel, engine: DeclaredEngine) -> bool:
    """Whether the reserve is a release's, and the build is another one, of which none was measured.

    Source: a build of vLLM 0.21 with patches for DeepSeek-V4 has 20.36 GiB of room on two Sparks,
    where that release has 15 (variant02-dspark-nvfp4, July 2026).
    """
    if ENGINE_TRAITS[engine.name].reserves_outside:
        return False
    return model.correction_gib is None and bool(version(engine.version).local)


def doubt_bytes(model: DeclaredModel, engine: DeclaredEngine, demand: Demand) -> float:
    """Bytes by which the room may be more: all of the reserve, where that is not known."""
    if model.correction_gib is not None:
        return formulas.STARTS_DIFFER_BYTES
    if ENGINE_TRAITS[engine.name].shares_free:
        return formulas.FREE_ERROR_BYTES * engine.memory_utilization
    reserve = demand.reserve_inside - demand.cache.fixed
    if reserve_is_unknown(model, engine):
        return reserve
    return min(float(formulas.RESERVE_ERROR_BYTES), reserve)
