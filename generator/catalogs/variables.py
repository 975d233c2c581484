"""Environment variables in engine configurations, other than NCCL's and the engine's own."""

from functools import cache

from generator.resources import words

RAY = "RAY_"


def common() -> frozenset[str]:
    """The variables of libraries that any engine may use."""
    return of_file("common-variables.txt")


@cache
def of_file(file: str) -> frozenset[str]:
    """The variables in a list, one per line."""
    return frozenset(words(file))
