"""A site means the same however it is written: drawn at random, more by `spellings.py`."""

from collections import Counter

import pytest
from draws import sample
from spellings import WAYS, drawn

COUNT, SITES = sample(600), sample(100)
# The fewest ways to write a site.
LEAST = 14


@pytest.mark.drawn
def test_a_site_means_the_same_however_it_is_written() -> None:
    tried: Counter[str] = Counter()
    wrong = []
    for draw in drawn(COUNT, seed=1, of=SITES):
        tried.update(draw.ways)
        if said := draw.differences():
            wrong.append((draw.site.name, draw.ways, said))
    assert wrong == []
    assert len(WAYS) >= LEAST
    assert set(tried) == set(WAYS)
