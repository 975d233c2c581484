"""What llama.cpp rejects or fails on at startup: `schemas/startup/llama.cpp.yaml`, and lists.

Source: b11434, and commit 0c1e57098.
"""

import re
from collections.abc import Collection

from generator import resources
from generator.catalogs.flag_files import catalog
from generator.engines import rows
from generator.engines.startup import Condition, Refusal, Start

# The syntax of values, and an example.
_FORMS = {flag: (pattern, example) for flag, pattern, example in resources.rows("llama-forms")}


def _split(start: Start) -> list[str]:
    """The share of each device."""
    given = start.value("tensor-split")
    if isinstance(given, list):
        return [str(part) for part in given]
    return start.word("tensor-split").replace("/", ",").split(",") if given else []


def _devices(start: Start, name: str) -> list[str]:
    given = start.value(name)
    return [str(item) for item in given] if isinstance(given, list) else start.word(name).split(",")


def _unknown_devices(start: Start) -> Refusal | None:
    known = {"CUDA0", "none", *(f"RPC{number}" for number in range(start.sizes.ranks - 1))}
    for name in ("device", "spec-draft-device", "mmproj-device"):
        wrong = [device for device in _devices(start, name) if device and device not in known]
        if wrong:
            return start.refuse(
                name,
                f"the nodes have no device '{wrong[0]}'",
                f"write {' or '.join(sorted(known - {'none'}))}, or remove it",
            )
    return None


def _variables_of_numbers(start: Start) -> Refusal | None:
    known = catalog(start.engine.name, start.settings.version) if start.environment.given else None
    flags = {flag.variable: flag for flag in known.flags()} if known else {}
    for name, variable in start.environment.given.items():
        flag, value = flags.get(name), variable.value
        if flag and flag.type in ("int", "float") and not _is_number(value, flag.also):
            message = f"{name} must be a number, not '{value}'"
            return Refusal(message, variable.path, "remove it, or write a number")
    return None


def _is_number(value: str, others: Collection[str]) -> bool:
    return value in others or re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", value) is not None


def _forms(start: Start) -> Refusal | None:
    for name, (form, example) in _FORMS.items():
        given = start.value(name)
        texts = given if isinstance(given, list) else start.word(name).split(",")
        wrong = next((str(t) for t in texts if t != "" and not re.fullmatch(form, str(t))), "")
        if wrong:
            return start.refuse(
                name, f"'{wrong}' does not have the form '{example}'", f"write '{example}'"
            )
    return None


_ARGUMENTS = "common/arg.cpp"

FACTS: rows.RowFacts = {
    "step": lambda start: start.count("ubatch-size", 512),
    "parts": lambda start: len(_split(start)),
    "empty_split": lambda start: all(
        re.fullmatch(r"0+(\.0*)?", part.strip()) for part in _split(start)
    ),
    "first_device": lambda start: next(iter(_devices(start, "device")), ""),
}

CONDITIONS = (
    *rows.conditions("llama.cpp", FACTS),
    Condition(_unknown_devices, f"{_ARGUMENTS}:1135"),
    Condition(_variables_of_numbers, f"{_ARGUMENTS}:806"),
    Condition(_forms, _ARGUMENTS),
)
