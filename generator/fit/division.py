"""How the memory of a node may be divided among the engines that share it."""

from bisect import bisect_left
from collections.abc import Collection, Mapping

from generator.fit.alternatives import Deployment, holds
from generator.records import replace

_HUNDREDTHS = range(1, 86)


def least_share(group: Deployment) -> float | None:
    """The smallest `memory_utilization` that holds the model with room to spare, if any does."""

    def is_enough(hundredths: int) -> bool:
        return holds(sharing(group, hundredths / 100))

    place = bisect_left(_HUNDREDTHS, True, key=is_enough)
    return _HUNDREDTHS[place] / 100 if place < len(_HUNDREDTHS) else None


def sharing(group: Deployment, share: float) -> Deployment:
    """The group with another share."""
    return replace(group, engine=replace(group.engine, memory_utilization=share))


def divided(least: Mapping[str, float], growing: Collection[str], most: float) -> dict[str, float]:
    """Shares that add up to `most`: what each needs, and the rest for those in `growing`.

    The rest is divided in proportion to their needs, rounded down to hundredths. Empty if they need
    more than there is.
    """
    rest = most - sum(least.values())
    if rest < -_ROUNDING:
        return {}
    grown = sum(share for key, share in least.items() if key in growing)
    return {
        key: _down(share + max(0.0, rest) * share / grown if key in growing else share)
        for key, share in least.items()
    }


# Keeps whole numbers of hundredths as they are.
_ROUNDING = 1e-6


def _down(share: float) -> float:
    return int(share * 100 + _ROUNDING) / 100
