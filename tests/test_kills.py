"""Short runs of the scripts that kill programs at random moments and check that they recover."""

import random

from killed_installs import at_random


def test_killed_installs() -> None:
    found = at_random(6, random.Random(3))
    assert sum(found.values()) == 6
