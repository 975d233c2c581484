"""What an engine's file of settings accepts for a method of speculative decoding."""

from collections.abc import Callable, Mapping
from typing import Any

from generator.records import record

# What a setting accepts, if a value is something else; otherwise empty.
WantedInstead = Callable[[Any], str]


@record
class DraftSettings:
    """The settings of a method, by name; `section` is what they are called together."""

    section: str
    settings: Mapping[str, WantedInstead]
