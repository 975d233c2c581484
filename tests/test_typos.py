"""Single mistakes in site files: nearly all are reported once, at their line; `fix` worsens none.

`python -m typos.study 3000 -v`, run in this folder, prints the figures by kind, with examples; the
same table appears at the end of a test run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import pytest
from draws import sample
from typos.study import Outcome, outcomes, share, table

# Two parts, so that two workers share them.
SEEDS = (20, 21)
COUNT = sample(150)


# A part has few mistakes of each kind: one miss in thirty is 3 %.
FEW = 20
OF_A_KIND = 0.9


def part(found: Iterable[Outcome], holds: Callable[[Outcome], bool]) -> float:
    return share(holds(outcome) for outcome in found)


def shares(found: Sequence[Outcome]) -> Mapping[str, tuple[int, float]]:
    """For each floor, the number of outcomes that it is about, and the share that meets it."""
    deserving = [o for o in found if o.deserves]
    seen = [o for o in found if o.detected]
    restorable = [o for o in found if o.has_one_reading]
    return {
        "detected": (len(deserving), part(deserving, lambda o: o.detected)),
        "line": (len(seen), part(seen, lambda o: o.right_line)),
        "one": (len(seen), part(seen, lambda o: o.one_finding)),
        "restored": (len(restorable), part(restorable, lambda o: o.restored)),
    }


# If two values contradict each other, either may be the one with a wrong digit.
OF_NO_LINE = ("digit", "line")
FLOORS = {"detected": 0.99, "line": 0.98, "one": 0.98, "restored": 0.95}


@pytest.mark.long
@pytest.mark.drawn
@pytest.mark.parametrize("seed", SEEDS)
def test_share_of_mistakes_that_are_reported(
    seed: int, record_property: Callable[[str, object], None]
) -> None:
    found = list(outcomes(COUNT, seed))
    shown = table(found)
    record_property("table", shown)
    assert len(found) == COUNT
    assert {name: s for name, (_, s) in shares(found).items() if s < FLOORS[name]} == {}, shown
    below = {
        (kind, name): share
        for kind in sorted({o.mistake.kind for o in found})
        for name, (count, share) in shares([o for o in found if o.mistake.kind == kind]).items()
        if count >= FEW and share < OF_A_KIND and (kind, name) != OF_NO_LINE
    }
    assert below == {}, shown
    # A clean site of another meaning.
    assert [o.mistake.text for o in found if o.harmed] == [], shown
    assert [o.mistake.text for o in found if o.refused] == [], shown
