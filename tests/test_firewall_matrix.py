"""One set-up of ufw, drawn from those that firewall_matrix.py tries by hand."""

import random

import pytest
from firewall_matrix import ROWS, WAYS, tried


@pytest.mark.long
def test_ufw_and_logins_are_as_before() -> None:
    row = random.choice(ROWS)
    lines = tried([row], seconds=5)
    assert [line for line in lines if not line.startswith("= ")] == [], row
    assert len(lines) == len(WAYS)
