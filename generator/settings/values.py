"""One form for each value of a flag, whichever of its spellings a site file has."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from generator.catalogs.flags import Flag

Scalar = bool | str
Argument = Scalar | list[Any] | dict[str, Any]

_INTEGER = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# The suffixes of sizes. Source: `human_readable_int` of vLLM, vllm/utils/argparse_utils.py, and of
# SGLang, sglang/srt/utils/common.py. Powers of 1024 take no fractions.
_MIXED = {letter: 1000**power for power, letter in enumerate("kmgt", 1)} | {
    letter: 1024**power for power, letter in enumerate("KMGT", 1)
}
_IEC = {letter: 1000**power for power, letter in enumerate("kMGT", 1)} | {
    f"{letter}i": 1024**power for power, letter in enumerate("KMGT", 1)
}
# The words that mean on and off, for a flag that takes one of the two as a word.
_ON, _OFF = ("on", "enabled", "true", "1"), ("off", "disabled", "false", "0")


def canonical(value: Argument, flag: Flag | None, is_iec: bool = False) -> Argument:
    """The form of a value that all of its spellings have; a wrong one is kept as written.

    A number has digits alone, and JSON is data. A flag that takes several words has a list, or one
    word with commas where it takes them so. `is_iec` says which suffixes sizes have.
    """
    if flag is None or flag.type == "switch":
        return value
    if flag.type == "json":
        return parsed(value) if isinstance(value, str) and value not in flag.also else value
    if isinstance(value, bool):
        return flag.words[not value] if flag.words else value
    if isinstance(value, str) and not flag.many:
        return _word(value, flag, is_iec)
    if isinstance(value, dict) or not flag.many:
        return value
    by_commas = flag.many == "comma"
    items = value if isinstance(value, list) else value.split(",") if by_commas else [value]
    words = [_word(as_text(item), flag, is_iec) for item in items]
    return ",".join(words) if by_commas else words


def of_key(value: Argument) -> Any:
    """The value of one key of a flag's JSON, given as a word of its own: JSON, a size, or text.

    Source: vLLM, vllm/utils/argparse_utils.py, `parse_args`.
    """
    if isinstance(value, list):
        return [of_key(item) for item in value]
    if not isinstance(value, str):
        return value
    found = parsed(value)
    size = whole(value) if isinstance(found, str) else None
    return found if size is None else size


def parsed(text: str) -> Any:
    """Text parsed as JSON; other text as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def whole(text: str, is_iec: bool = False) -> int | None:
    """A whole number as engines read it, also with a suffix: 16384, 16k or 8G; None if it isn't."""
    if _INTEGER.fullmatch(text):
        return int(text)
    powers: Mapping[str, int] = _IEC if is_iec else _MIXED
    digits = text.rstrip("kKmMgGtTi")
    power = powers.get(text[len(digits) :])
    if power is None or not re.fullmatch(r"\d+(\.\d+)?", digits):
        return None
    if "." not in digits:
        return int(digits) * power
    is_binary = power & (power - 1) == 0
    return None if is_binary else int(float(digits) * power)


def number(text: str) -> float | None:
    """A text as a number; None if it isn't one."""
    if _NUMBER.fullmatch(text):
        return float(text)
    found = whole(text)
    return None if found is None else float(found)


def _word(text: str, flag: Flag, is_iec: bool) -> str:
    if text in flag.also:
        return text
    if flag.type == "int":
        read = whole(text, is_iec) if flag.suffixes or _INTEGER.fullmatch(text) else None
        return text if read is None else str(read)
    if flag.type == "float":
        return _shortest(text)
    if flag.words:
        low = text.lower()
        return flag.words[0] if low in _ON else flag.words[1] if low in _OFF else text
    return _in_case(text, (*flag.choices, *flag.known)) if flag.folded else text


def _shortest(text: str) -> str:
    """A number in its shortest form: 0.8 for 0.80, and 1 for 1.0."""
    if not _NUMBER.fullmatch(text):
        return text
    read = float(text)
    return str(int(read)) if read.is_integer() and abs(read) < 1e15 else repr(read)


def _in_case(text: str, known: Iterable[str]) -> str:
    """A word in the case of the engine's own."""
    if text in known:
        return text
    spelled = (text.lower(), text.lower().replace("-", "_"))
    return next((word for word in known if word.lower() in spelled), text)


def as_text(value: object) -> str:
    """A value of YAML as engines take it."""
    return json.dumps(value) if isinstance(value, bool) else str(value)
