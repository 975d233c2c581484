"""Programs that are killed at random moments leave what can be mended; the scripts run longer."""

import random

from killed_installs import at_random


def test_killed_installs() -> None:
    found = at_random(6, random.Random(3))
    assert sum(found.values()) == 6
