"""What the site format and the engines' catalogs say of the place of a cursor.

`documentation` explains the key there, and `suggestions` are what may be written.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from generator import catalogs
from generator.catalogs import flag_files, nccl, variables
from generator.catalogs.flags import Flag, FlagCatalog
from generator.diagnostics import KeyPath, listed
from generator.editors.places import Cursor
from generator.hardware import PORT_NAMES
from generator.records import record
from generator.sitefile.json_schema import description
from generator.sitefile.key_rules import rules_at, types_of
from generator.sitefile.source import value_at

_ARGUMENTS = ("engine", "args")
_ENVIRONMENT = "env"
_FLAG_TYPES = {
    "switch": "`true` or `false`",
    "int": "a whole number",
    "float": "a number",
    "text": "a string",
    "json": "a mapping, given to the engine as JSON",
}
_FLAG_VALUES = {"switch": ("true", "false")}


@record
class Suggestion:
    """What may be written at a place, and its documentation in Markdown."""

    text: str
    documentation: str = ""
    is_key: bool = False


def documentation(place: Cursor) -> str:
    """What is known of the key at a place, in Markdown; empty if nothing is."""
    path = (*place.path, place.word) if place.is_key else place.path
    return _documentation(path, place.data)


def suggestions(place: Cursor) -> Iterator[Suggestion]:
    """What may be written at a place: keys that are not there yet, or values."""
    rules = rules_at(place.path)
    if place.is_key or "dict" in types_of(rules):
        here = value_at(place.data, place.path)
        present = set(here) - {place.word} if isinstance(here, Mapping) else set()
        for key in dict.fromkeys(_keys(place.path, rules, place.data)):
            if key not in present:
                text = _documentation((*place.path, key), place.data)
                yield Suggestion(key, text, is_key=True)
    if not place.is_key:
        for value in dict.fromkeys(_values(place.path, rules, place.data)):
            yield Suggestion(value)


def _documentation(path: KeyPath, data: Any) -> str:
    if path[-3:-1] == _ARGUMENTS and (flag := _flag(path, data)):
        return _of_flag(flag)
    rules = rules_at(path)
    return description(rules) if "description" in rules.get("meta", {}) else ""


def _of_flag(flag: Flag) -> str:
    wanted = (
        listed([f"`{choice}`" for choice in flag.choices or flag.known])
        if flag.choices or flag.known
        else _FLAG_TYPES[flag.type]
    )
    several = {"": "", "comma": "; several in one string, separated by commas"}
    lines = [
        f"`{'`, `'.join(flag.names)}`",
        f"Type: {wanted}{several.get(flag.many, '; a list')}",
        f"Keys: {listed([f'`{key}`' for key in flag.fields])}" if flag.fields else "",
        f"Also read from: `{flag.variable}`" if flag.variable else "",
        "" if flag.deprecated is None else f"Deprecated. {flag.deprecated}",
    ]
    return "\n\n".join(filter(None, lines))


def _keys(path: KeyPath, rules: Mapping[str, Any], data: Any) -> Iterator[str]:
    yield from rules.get("schema", {})
    if path[-2:] == _ARGUMENTS:
        yield from (
            flag.name for flag in chain.from_iterable(c.flags() for c in _flags(path, data))
        )
    elif path[-1:] == (_ENVIRONMENT,):
        of_engine = chain.from_iterable(c.variables for c in _flags(path, data))
        yield from sorted({*nccl.names(), *variables.common(), *of_engine})


def _values(path: KeyPath, rules: Mapping[str, Any], data: Any) -> Iterator[str]:
    if path[-3:-1] == _ARGUMENTS:
        if flag := _flag(path, data):
            yield from flag.choices or flag.known or _FLAG_VALUES.get(flag.type, ())
        return
    meta = rules.get("meta", {})
    yield from map(str, rules.get("allowed", ()))
    if "boolean" in types_of(rules):
        yield from ("true", "false")
    if "word" in meta:
        yield meta["word"]
    yield from _known(rules.get("check_with", ""), path, data)


def _known(text_type: str, path: KeyPath, data: Any) -> Iterator[str]:
    """The values that the catalogs or the rest of the site have for a type of text."""
    match text_type:
        case "node_name" if path[:1] != ("nodes",):
            yield from _names(data, "nodes")
        case "endpoint":
            yield from (f"{name}:{port}" for name in _names(data, "nodes") for port in PORT_NAMES)
        case "model_name":
            yield from catalogs.checkpoint_names()
        case "image" if path[0] != "services":
            yield from catalogs.image_names()
        case "version":
            yield from reversed(flag_files.versions(_engine(path, data)[0]))


def _names(data: Any, section: str) -> list[str]:
    entries = value_at(data, (section,))
    found = (entry.get("name") for entry in entries or () if isinstance(entry, Mapping))
    return [name for name in found if isinstance(name, str)]


def _flag(path: KeyPath, data: Any) -> Flag | None:
    found = (catalog.find(str(path[-1])) for catalog in _flags(path, data))
    return next((each.flag for each in found if each), None)


def _flags(path: KeyPath, data: Any) -> tuple[FlagCatalog, ...]:
    """The flags of the engine that a place belongs to, in its version; else in the newest."""
    name, version = _engine(path, data)
    known = flag_files.versions(name)
    return flag_files.catalogs(name, version or known[-1])[:1] if known else ()


def _engine(path: KeyPath, data: Any) -> tuple[str, str]:
    """The name and the version of the engine around a place, or of the site's engine."""
    depth = path.index("engine") + 1 if "engine" in path else 0
    own = value_at(data, path[:depth] if depth else ("engine",))
    engine = own if isinstance(own, Mapping) else {}
    image = catalogs.image(str(engine.get("image", "")))
    version = engine.get("version") or (image.version if image else None)
    return str(engine.get("name") or (image.engine if image else "")), str(version or "")
