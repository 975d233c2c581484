"""Single mistakes in site files: nearly all are told, at their line, once, and none is made worse.

`python -m typos.study 3000 -v`, run in this folder, prints the figures by kind, with examples; the
same table stands at the end of a test run.
"""

from collections.abc import Callable, Iterable

import pytest
from typos.study import Outcome, outcomes, share, table

# Two parts, so that two workers share them.
SEEDS = (20, 21)
COUNT = 1500


def part(found: Iterable[Outcome], holds: Callable[[Outcome], bool]) -> float:
    return share(holds(outcome) for outcome in found)


@pytest.mark.parametrize("seed", SEEDS)
def test_mistakes(seed: int, record_property: Callable[[str, object], None]) -> None:
    found = list(outcomes(COUNT, seed))
    shown = table(found)
    record_property("table", shown)
    assert len(found) == COUNT
    seen = [outcome for outcome in found if outcome.detected]
    assert part((o for o in found if o.deserves), lambda o: o.detected) >= 0.97, shown
    assert part(seen, lambda o: o.right_line) >= 0.98, shown
    assert part(seen, lambda o: o.one_finding) >= 0.98, shown
    assert part((o for o in found if o.has_one_reading), lambda o: o.restored) >= 0.8, shown
    # A clean site of another meaning.
    assert [o.mistake.text for o in found if o.harmed] == [], shown
    assert part(found, lambda o: not o.refused) >= 0.99, shown
