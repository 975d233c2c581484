"""A number that a site file leaves to be found, by the word 'auto'."""

from collections.abc import Mapping
from typing import Any


class Automatic(int):
    """The least number that its key takes, in place of the one that is to be found."""


def automatic(value: Any, rules: Mapping[str, Any]) -> Automatic | None:
    """What stands for a key's word, where it has one and the value is that."""
    word = rules.get("meta", {}).get("word")
    is_it = word is not None and isinstance(value, str) and value == word
    return Automatic(rules["min"]) if is_it else None
