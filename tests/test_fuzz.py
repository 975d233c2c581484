"""Damaged files never end in a traceback; `fuzz.py` draws many more by hand."""

import pytest
from draws import sample
from fuzz import faults


@pytest.mark.drawn
@pytest.mark.parametrize("seed", [1, 2])
def test_damaged_files_get_an_answer(seed: int) -> None:
    assert [(one.words, fault) for one, fault in faults(sample(30), seed)] == []
