"""How many inputs tests draw or choose: a sample in each run, and more of them by hand.

`SPARKGEN_DRAWS=5 pytest -m drawn` draws five times as many.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

One = TypeVar("One")
MANY = int(os.environ.get("SPARKGEN_DRAWS", "1"))


def sample(count: int) -> int:
    """A number of inputs, many times as many in a long run."""
    return count * MANY


def share(items: Sequence[One], number: int, shares: int) -> Sequence[One]:
    """A different share of the inputs for each number; in a long run, all of them."""
    return items[number % shares :: shares] if MANY == 1 else items


def part(items: Sequence[One], which: str) -> Sequence[One]:
    """One of so many parts of the inputs, such as 1/3."""
    number, parts = (int(word) for word in which.split("/"))
    return items[number - 1 :: parts]
