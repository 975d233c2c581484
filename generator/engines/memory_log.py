"""Figures in the lines that engines log about their memory."""

import re

NUMBER = r"(-?\d[\d,]*(?:\.\d+)?)"
MIB = 1 / 1024


def number(text: str) -> float:
    """A number as engines print it, perhaps with commas."""
    return float(text.replace(",", ""))


def figures(log: str, *patterns: str) -> list[float]:
    """The number in each match of the patterns."""
    return [number(text) for pattern in patterns for text in re.findall(pattern, log)]
