"""How many inputs tests draw or choose: a sample in each run, and more of them by hand.

`SPARKGEN_DRAWS=5 pytest -m drawn` draws five times as many.
"""

import os

MANY = int(os.environ.get("SPARKGEN_DRAWS", "1"))


def sample(count: int) -> int:
    """A number of inputs, many times as many in a long run."""
    return count * MANY
