"""What was meant by a value of the wrong type, and what to write instead."""

import json
import re
from collections.abc import Mapping
from typing import Any

from generator.diagnostics import Data, Finding, KeyPath, replacements
from generator.records import replace
from generator.sitefile.key_rules import (
    LONGEST,
    flow_text,
    is_of_type,
    key_name,
    keys_at,
    rules_at,
    rules_of_key,
    types_of,
)
from generator.sitefile.sections import GROUPS
from generator.sitefile.source import Plain
from generator.sitefile.text_types import text_fault, valid_text
from generator.sitefile.typed_values import as_typed
from generator.sitefile.validation import is_valid

YES = ("yes", "y", "on", "ok", "enable", "enabled")
NO = ("no", "n", "off", "disable", "disabled")
# Quotes and dashes as a word processor writes them.
_TYPOGRAPHIC = str.maketrans(
    dict.fromkeys("\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u00ab\u00bb\u2033", "")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
    | {"\u00a0": " "}
)


def in_plain_characters(finding: Finding, value: Any) -> Finding:
    """If a value has a word processor's characters, name them and propose the plain ones."""
    if isinstance(value, dict | list):
        inner = _first_odd(value)
        return (
            in_plain_characters(replace(finding, path=(*finding.path, *inner[0])), inner[1])
            if inner
            else finding
        )
    plain = value.translate(_TYPOGRAPHIC).strip() if isinstance(value, str) else value
    if plain == value or not plain or not plain.isascii():
        return finding
    odd = next((letter for letter in value if letter.translate(_TYPOGRAPHIC) != letter), None)
    if odd is None:
        return finding
    meaning: Any = Plain(plain).meaning()
    types = types_of(rules_at(finding.path))
    data = meaning if not types or is_of_type(types, meaning) else str(plain)
    return replace(
        finding,
        help=f"U+{ord(odd):04X} is not a plain character; write {plain}",
        proposals=replacements(finding.path, [data]),
    )


def _first_odd(value: Any) -> tuple[KeyPath, str] | None:
    """The first text in a mapping or list with a word processor's characters, and its path."""
    if isinstance(value, str):
        return ((), value) if value.translate(_TYPOGRAPHIC) != value else None
    if not isinstance(value, dict | list):
        return None
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if (found := _first_odd(item)) is not None:
            return (key, *found[0]), found[1]
    return None


def _is_variable(path: KeyPath) -> bool:
    return bool(rules_at(path).get("check_with") == "environment_value")


def _is_misplaced(path: KeyPath) -> bool:
    """Whether a key among variables is another key in the wrong place: theirs are in upper case."""
    return _is_variable(path) and str(path[-1]).islower()


def json_text(path: KeyPath, value: Any) -> tuple[str, Data] | None:
    """JSON for a variable, which YAML reads as a mapping or a list."""
    if not _is_variable(path) or _is_misplaced(path) or not isinstance(value, dict | list):
        return None
    text = json.dumps(value)
    quoted = "'" + text.replace("'", "''") + "'"
    short = len(quoted) <= LONGEST
    return f"write {quoted}" if short else "write the JSON in quotes, as a text", text


def unwrapped(types: tuple[str, ...], path: KeyPath, value: Any) -> tuple[str, Data] | None:
    """The only entry of a list, or what is under `value`, if its key takes a value of that type."""
    is_list = isinstance(value, list) and len(value) == 1 and "list" not in types
    is_dict = isinstance(value, dict) and [*value] in (["value"], ["enabled"])
    if _is_misplaced(path) or not (is_list or is_dict):
        return None
    (entry,) = value if is_list else value.values()
    meaning: Any = Plain(entry).meaning() if isinstance(entry, str) else entry
    is_text = "string" in types and not {"integer", "float"} & set(types)
    meaning = str(entry) if is_text else meaning
    if not is_of_type(types, meaning):
        return None
    return f"write {flow_text(meaning)} without brackets", meaning


def wrapped(path: KeyPath, value: Any) -> tuple[str, Data | None] | None:
    """A mapping with its only required key, if just that key's value is written."""
    rules = rules_at(path)
    inner = rules.get("schema", {})
    if isinstance(value, str) and len(pairs := re.findall(_ASSIGNED, value)) > 1:
        return _assigned(path, value, dict(pairs))
    bare = _OF_A_COMMAND.sub("", value, count=1) if isinstance(value, str) else ""
    pair = re.fullmatch(r"([\w.-]+)(:| *= *| +)(\S.*)", bare)
    is_open = "valuesrules" in rules and pair and (pair[2].strip() or " " not in pair[3])
    if pair and (pair[1] in inner or is_open):
        missing = "a space" if pair[2] == ":" else "a colon and a space"
        meant = as_typed(Plain(pair[3]), rules_of_key(rules, pair[1]))
        if is_valid(path, {pair[1]: Plain(pair[3])}):
            return f"write '{pair[1]}: {pair[3]}', with {missing}", {pair[1]: meant}
    wanted = [key for key in inner if isinstance(inner[key], dict) and inner[key].get("required")]
    wanted = wanted or [key for key in inner if key in ("name", "node", "kind")]
    if isinstance(value, list) and not wanted:
        wanted = [key for key in inner if inner[key].get("type") == "list"]
    if len(wanted) != 1 or "dict" not in types_of(rules):
        return None
    kind = {"string": str, "list": list}.get(inner[wanted[0]]["type"], ())
    value = re.findall(_END, value) if kind is list and isinstance(value, str) else value
    if not isinstance(value, kind) or len(flow_text(value)) > LONGEST:
        return None
    is_right = is_valid((*path, wanted[0]), value)
    meant = value if is_right else valid_text(inner[wanted[0]].get("check_with", ""), value)
    found = {wanted[0]: meant}
    return (f"write '{flow_text(found)}'", found if is_right else None) if meant else None


# An end of a cable, and what stands before a variable or a flag on a command line.
_END = r"[\w.-]+:[\w.-]+"
_OF_A_COMMAND = re.compile(r"(?:(?:export|set|-e|--env|-) +)?(?:--)?")
_ASSIGNED = r"(?:^|(?<=\s))([A-Za-z_]\w*)=(\S+)"


def _assigned(path: KeyPath, value: str, pairs: dict[str, str]) -> tuple[str, Data] | None:
    """Lines of `NAME=VALUE`, which YAML reads as one text, as a mapping."""
    meant: dict[str, Data] = {**pairs}
    if re.sub(_ASSIGNED, "", value).strip() or not is_valid(path, pairs):
        return None
    return "write NAME: VALUE on each line, with a colon and a space", meant


def one_of_several(types: tuple[str, ...], path: KeyPath, value: Any) -> tuple[str, None] | None:
    """What to write in place of a list, for something that a site has once."""
    advice = several_meant(path, value) if "list" not in types else ""
    return (advice, None) if advice else None


def several_meant(path: KeyPath, value: Any) -> str:
    """What to write for several values, in a list or mapping, under the name of a single one."""
    entries = list(value.values()) if isinstance(value, dict) else value
    are_several = isinstance(entries, list) and len(entries) > 1
    if isinstance(value, dict):
        are_several = are_several and all(isinstance(entry, dict) for entry in entries)
    if not are_several or is_valid(path, value):
        return ""
    rules = rules_at(path)
    in_groups = _EACH_IN_A_GROUP if rules.get("excludes") == GROUPS else ""
    advice: str = rules.get("meta", {}).get("several", in_groups)
    return advice


_EACH_IN_A_GROUP = (
    f"write '{GROUPS}' in place of 'model' and 'engine': "
    "a list, each with a name, nodes, a model and an engine"
)


# A variable or a flag as an entry of a list.
_ENTRY = re.compile(r"-{0,2}([\w.-]+)=(.*)|--([\w.-]+) +(\S+)")


def mapping_of(path: KeyPath, value: Any) -> tuple[str, Data] | None:
    """A list of `NAME=VALUE`, of single keys, or of names and values, as the mapping it is."""
    if not isinstance(value, list) or not value or "valuesrules" not in rules_at(path):
        return None
    meant: dict[str, Data] = {}
    for entry in value:
        if isinstance(entry, dict) and set(entry) == {"name", "value"}:
            meant[str(entry["name"])] = entry["value"]
        elif isinstance(entry, dict) and len(entry) == 1:
            meant |= {str(key): item for key, item in entry.items()}
        elif isinstance(entry, str) and (found := _ENTRY.fullmatch(entry)):
            meant[found[1] or found[3]] = found[2] or found[4] or ""
        else:
            return None
    if len(meant) != len(value) or not is_valid(path, meant):
        return None
    first, its = next(iter(meant.items()))
    shown = f"{first}: {flow_text(its)}"
    text = f"write '{shown}'" if len(shown) <= LONGEST else "write NAME: VALUE"
    return f"{text}, not a list", as_typed(meant, rules_at(path))


def listed_alone(types: tuple[str, ...], path: KeyPath, value: Any) -> tuple[str, Data] | None:
    """A list of one entry, if the entry is written on its own."""
    if types != ("list",) or not isinstance(value, str) or not is_valid(path, [value]):
        return None
    if isinstance(Plain(value).meaning(), bool):
        return None
    return f"write '{key_name(path)}: {flow_text([value])}'", [str(value)]


def named_entries(path: KeyPath, value: Any) -> tuple[str, None] | None:
    """A list whose entries have names, if each is under its name, or only their number is there."""
    if path == ("nodes",) and re.fullmatch("[1-8]", str(value)):
        value = {f"spark{number}": None for number in range(1, int(value) + 1)}
    entries = value.values() if isinstance(value, dict) and "name" in keys_at((*path, 0)) else ()
    if not entries or any(own and not isinstance(own, dict) for own in entries):
        return None
    meant = [{"name": name, **(own or {})} for name, own in value.items()]
    shown, first = f"{path[-1]}: {flow_text(meant)}", f"- name: {next(iter(value))}"
    text = f"write '{shown}'" if len(shown) <= LONGEST else f"write '{first}', and its keys below"
    return f"{text}: a list of entries with names", None


# How people write the units of numbers, and how many of the schema's unit one of them is.
_UNITS: Mapping[str, Mapping[str, float]] = {
    "tokens": {"token": 1, "tokens": 1, "tok": 1},
    "bytes": {"b": 1, "byte": 1, "bytes": 1},
    "m": {"m": 1, "meter": 1, "meters": 1, "metre": 1, "metres": 1, "cm": 0.01},
    "GiB": {"gib": 1, "gi": 1},
    "GB": {"gb": 1},
}


def _number(text: str, unit: str) -> int | float | None:
    """A number as people write it: 128k, 131,072, 80 %, 9000 bytes, 50 cm."""
    in_unit = re.fullmatch(r"([0-9][0-9.,_']*[kK]?) ?([A-Za-z]+)", text)
    one = _UNITS.get(unit, {}).get(in_unit[2].lower()) if in_unit else None
    if in_unit and one:
        number = Plain(in_unit[1]).meaning()
        bare = number if isinstance(number, int | float) else _number(in_unit[1], unit)
        return bare if bare is None or one == 1 else round(bare * one, 6)
    # A thousand bytes or 1024 of them: only a context is always counted in 1024 tokens.
    if unit == "tokens" and (found := re.fullmatch(r"([0-9]{1,6})[kK]", text)):
        return int(found[1]) * 1024
    if re.fullmatch(r"[0-9]{1,3}([,_' ][0-9]{3}){1,5}", text):
        return int(re.sub(r"[,_' ]", "", text))
    if found := re.fullmatch(r"([0-9]{1,2}) ?%", text):
        return int(found[1]) / 100
    return None


def meant_value(types: tuple[str, ...], path: KeyPath, value: Any) -> tuple[str, Data] | None:
    """What to write for text that should be another type, and its value."""
    if not isinstance(value, str):
        return None
    if "boolean" in types and value.lower() in (*YES, *NO):
        flag = value.lower() in YES
        return f"write {'true' if flag else 'false'}", flag
    unit = rules_at(path).get("meta", {}).get("unit", "")
    if {"integer", "float"} & set(types) and (number := _number(value, unit)) is not None:
        return f"write {number}", number
    # Unquoted, it would not have been read as text.
    meaning = Plain(value).meaning()
    if meaning is not None and is_of_type(types, meaning) and len(value) < LONGEST:
        return f"write {value} without quotes", meaning
    bare = value.lstrip("+-").lstrip("0")
    if {"integer", "float"} & set(types) and bare.isdigit() and value.lstrip("+-")[0] == "0":
        return f"a leading zero is octal to some readers; write {bare}", int(bare)
    return None


def meant_key(path: KeyPath) -> str:
    """The intended name: a flag without its dashes, a variable with '_'."""
    text_type, key = rules_at(path[:-1])["keysrules"]["check_with"], str(path[-1])
    meant = [key.lstrip("-"), key.rstrip(":")]
    # Names of variables are in upper case; others with hyphens are flags in the wrong place.
    meant += [key.replace("-", "_")] if key.isupper() else []
    return next((name for name in meant if not text_fault(text_type, name)), "")
