"""Values of the keys of vLLM's JSON flags, which its config classes validate strictly.

A line of `schemas/vllm-settings.tsv` is a key. The file is read at the first such flag.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from generator.diagnostics import did_you_mean, listed, scalar
from generator.engines.startup import Condition, Refusal, Start
from generator.resources import rows

_WANTED = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "text": "a text",
    "list": "a list",
    "keys": "a mapping",
}
# The words that pydantic accepts for a boolean.
_SWITCHES = frozenset(("true", "false", "1", "0", "yes", "no", "on", "off", "y", "n", "t", "f"))
# The first release whose classes were not read.
_UNREAD = (0, 34)


class SettingType(NamedTuple):
    """What a key accepts: a type, empty if not known, and the words of a closed list."""

    type: str
    words: tuple[str, ...]


@cache
def _settings() -> Mapping[str, SettingType]:
    """The settings by flag and keys, as `flag.key`."""
    return {
        path: SettingType(kind, tuple(words.split())) for path, kind, words in rows("vllm-settings")
    }


def _wrong_values(start: Start) -> Iterator[Refusal]:
    for setting in start.settings:
        if setting.name.endswith("-config") and isinstance(setting.value, Mapping):
            for key, value in setting.value.items():
                yield from _faults(start, setting.name, (str(key),), value)


def _faults(start: Start, flag: str, keys: tuple[str, ...], value: Any) -> Iterator[Refusal]:
    """What is wrong with a value."""
    path = ".".join((flag, *keys))
    known = _settings().get(path)
    if known is None or value is None or not known.type:
        return
    if known.type == "keys" and isinstance(value, Mapping):
        names = _keys(path)
        for key, inner in value.items() if names else ():
            if key not in names:
                message, remedy = f"'{keys[-1]}' has no key '{key}'", did_you_mean(key, names)
                yield start.refuse(flag, message, remedy or f"it has {listed(names)}", *keys, key)
            yield from _faults(start, flag, (*keys, key), inner)
    elif _is_wrong(known, value):
        wanted = listed(known.words) if known.words else _WANTED[known.type]
        near = did_you_mean(str(value), known.words) if known.words else ""
        message = f"'{keys[-1]}' takes {wanted}, not {scalar(value)}"
        yield start.refuse(flag, message, near or f"write {wanted}", *keys)


def _keys(path: str) -> list[str]:
    return [each.rpartition(".")[2] for each in _settings() if each.rpartition(".")[0] == path]


def _is_wrong(known: SettingType, value: Any) -> bool:
    if known.words:
        # Some may be spelled in several ways, which the classes normalize.
        return _folded(value) not in {_folded(word) for word in known.words}
    if known.type == "bool":
        return str(value).lower() not in _SWITCHES
    if known.type in ("int", "float"):
        return not _is_number(value, known.type)
    kinds: dict[str, type] = {"text": str, "list": list, "keys": Mapping}
    return not isinstance(value, kinds[known.type])


def _folded(value: Any) -> str:
    return str(value).upper().replace("-", "_")


def _is_number(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return True
    try:
        number = float(value)
    except (TypeError, ValueError):
        return False
    return kind == "float" or number.is_integer()


CONDITIONS = (Condition(_wrong_values, "vllm/config", until=_UNREAD),)
