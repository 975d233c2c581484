"""The options file: every key and value has to be one that its class accepts."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from generator.diagnostics import all_nearest, did_you_mean, listed, misspelt, scalar
from generator.engines.startup import Condition, Refusal, Start
from generator.engines.tensorrt_llm.startup.keys import Key, keys, sections
from generator.records import replace

CONFIG = "config"
# Set by sparkgen, and rejected by a rule of its own.
_OWNED = ("speculative_config", "kv_cache_config.dtype", "kv_cache_config.free_gpu_memory_fraction")

_BOUNDS = {
    "int>0": lambda number: number >= 1,
    "int>=0": lambda number: number >= 0,
    "int>=1": lambda number: number >= 1,
    "float>=0": lambda number: number >= 0,
    "float 0..1": lambda number: 0 <= number <= 1,
}
_WANTED = {
    "int>0": "a whole number above 0",
    "int>=0": "a whole number of 0 or more",
    "int>=1": "a whole number above 0",
    "float>=0": "a number of 0 or more",
    "float 0..1": "a number from 0 to 1",
    "int": "a whole number",
    "bool": "true or false",
}
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE]-?\d+)?")


def _settings(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Everything under `config`, with its path."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield (*path, str(name)), inner
            yield from _settings(inner, (*path, str(name)))


def _unknown_keys(start: Start) -> Iterator[Refusal]:
    version = start.engine.version
    known, parents = keys(version), sections(version)
    absent = f"remove it: TensorRT-LLM {version} has no such key"
    for path, _ in _settings(start.value(CONFIG)):
        name, parent = ".".join(path), ".".join(path[:-1])
        if name in known or (parent and parent not in parents) or path[0] in _OWNED:
            continue
        beside = [key.rpartition(".")[2] for key in known if key.rpartition(".")[0] == parent]
        help_text = did_you_mean(path[-1], beside) or absent
        where = f"'{parent}'" if parent else "TensorRT-LLM's options file"
        refusal = start.refuse(CONFIG, f"{where} has no key '{path[-1]}'", help_text, *path)
        sure = misspelt(path[-1], all_nearest(path[-1], beside))
        yield replace(refusal, renamed=sure[0] if len(sure) == 1 else "")


def _wrong_values(start: Start) -> Iterator[Refusal]:
    known = keys(start.engine.version)
    for path, value in _settings(start.value(CONFIG)):
        key = known.get(".".join(path))
        if key and ".".join(path) not in _OWNED and (wanted := wanted_instead(key, value)):
            instead = "and there is no value here" if value is None else f"not '{scalar(value)}'"
            yield start.refuse(
                CONFIG, f"'{path[-1]}' takes {wanted}, {instead}", f"write {wanted}", *path
            )


def wanted_instead(key: Key, value: Any) -> str:
    """What a setting accepts, if the value is something else; otherwise empty."""
    if not _is_wrong(key, value):
        return ""
    return listed(key.choices) if key.choices else _WANTED.get(key.type, key.type)


def _is_wrong(key: Key, value: Any) -> bool:
    if value is None:
        # Other types may be null; the list doesn't say which.
        return key.type == "bool"
    if key.choices:
        words = value if isinstance(value, list) else [value]
        return any(str(word) not in key.choices for word in words)
    if key.type == "bool":
        return not isinstance(value, bool) and str(value).lower() not in ("true", "false", "0", "1")
    if key.type == "int" or key.type in _BOUNDS:
        return not _is_number(value, key.type)
    return False


def _is_number(value: Any, kind: str) -> bool:
    if isinstance(value, (bool, list, Mapping)) or not _NUMBER.fullmatch(str(value)):
        return False
    number = float(str(value))
    whole = kind.startswith("float") or number.is_integer()
    return whole and (kind not in _BOUNDS or _BOUNDS[kind](number))


_ARGUMENTS = "tensorrt_llm/llmapi/llm_args.py, StrictBaseModel"

CONDITIONS = (
    # The source of exactly 1.3.0rc29 was not available: keys may have been added or removed.
    Condition(_unknown_keys, _ARGUMENTS, until=(1, 3)),
    Condition(_unknown_keys, "", since=(1, 3)),
    Condition(_wrong_values, _ARGUMENTS),
)
