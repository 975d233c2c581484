"""A number that a site file leaves to be determined, with the word 'auto'."""

from collections.abc import Mapping
from typing import Any


class Automatic(int):
    """The smallest number that its key takes, as a placeholder for the one to be determined."""


def automatic(value: Any, rules: Mapping[str, Any]) -> Automatic | None:
    """The placeholder for a key's word, if the key has one and the value is that word."""
    word = rules.get("meta", {}).get("word")
    is_it = word is not None and isinstance(value, str) and value == word
    return Automatic(rules["min"]) if is_it else None
