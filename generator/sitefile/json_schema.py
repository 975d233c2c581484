"""The site format for editors and readers: a JSON Schema and a reference page.

What the JSON Schema rejects, sparkgen rejects too. What it can't express, such as host bits in a
subnet, it accepts and leaves to `sparkgen validate`.

An editor sees values as YAML reads them, sparkgen sees text as written: to an editor, the version
0.20 is a number. So where text may look like a number, or like true, the JSON Schema accepts those
as well.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from generator import catalogs
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import catalog, versions
from generator.diagnostics import listed
from generator.hardware import PORT_NAMES
from generator.resources import SCHEMAS
from generator.sitefile.key_rules import types_of
from generator.sitefile.renamed import renamed
from generator.sitefile.sections import ALTERNATIVES, GROUPS, SECTIONS, site_schema
from generator.sitefile.source import MAX_BYTES, MAX_DEPTH
from generator.sitefile.text_types import ARGUMENT_TEXT, TEXT_TYPES, TextType, text_type_of
from generator.sitefile.topology_kinds import kind_traits

Rules = Mapping[str, Any]
JsonSchema = dict[str, Any]

_TYPES = {
    "string": "string",
    "integer": "integer",
    "float": "number",
    "boolean": "boolean",
    "list": "array",
    "dict": "object",
}
_SCALARS = ["boolean", "string", "number"]
_NUMBERS = ("1", "1.5")


def json_schema() -> JsonSchema:
    """The JSON Schema (2020-12) of a site file.

    A site that extends a base may lack required keys, which the base may have.
    """
    site = _value({"type": "dict", "schema": site_schema()})
    _add_earlier_names(site)
    whole = {**_needs(site), "allOf": list(_needs_of_sections())}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Printed by 'sparkgen schema' from sparkgen's own schemas; not to be edited.",
        "title": "sparkgen site file",
        "description": "DGX Sparks: nodes, cables, and what they serve.",
        **_without_needs(site),
        "allOf": [*_conditions(), {"if": {"required": ["extends"]}, "else": whole}],
        "$defs": {
            "argument": _argument(),
            "setting": {**_json(), "type": [*_SCALARS, "array", "object"]},
            "json": _json(),
            **{name: {"enum": list(words)} for name, words in _suggestions().items()},
        },
    }


def _add_earlier_names(site: JsonSchema) -> None:
    """Let renamed keys have their earlier names, as deprecated ones."""
    for path, (now, _) in renamed().items():
        *sections, before = path.split(".")
        mapping = site
        for section in sections:
            mapping = mapping["properties"][section]
            mapping = mapping.get("items", mapping)
        members, absent = mapping["properties"], mapping.get("dependentSchemas", {})
        told = {"title": before, "description": f"Called '{now}' now.", "deprecated": True}
        members[before] = {**members[now], **told}
        for others in [other["properties"] for other in absent.values()]:
            others.update({before: False} if now in others else {})


def _suggestions() -> Mapping[str, Sequence[str]]:
    """What editors suggest where any text is allowed: known models, images and parsers."""
    return {
        "models": catalogs.checkpoint_names(),
        "images": catalogs.image_names(),
        "tool-parsers": _choices("tool-call-parser", "tool_parser"),
        "reasoning-parsers": _choices("reasoning-parser", "reasoning_parser"),
    }


def _choices(*flags: str) -> list[str]:
    """The values of a flag in the newest version of each engine that has it."""
    found: set[str] = set()
    for engine in ENGINE_TRAITS:
        known = versions(engine)
        newest = catalog(engine, known[-1]) if known else None
        for flag in newest.flags() if newest else ():
            if flag.name in flags:
                found.update(flag.choices or flag.known)
    return sorted(found)


# By text type.
_SUGGESTED = {"model_name": "models", "image": "images"}
_SUGGESTED_FLAGS = {
    "tool-call-parser": "tool-parsers",
    "tool_call_parser": "tool-parsers",
    "tool_parser": "tool-parsers",
    "reasoning-parser": "reasoning-parsers",
    "reasoning_parser": "reasoning-parsers",
}


def _suggested(name: str, free: JsonSchema) -> JsonSchema:
    """A value for which editors have suggestions, but which may be something else."""
    return {"anyOf": [{"$ref": f"#/$defs/{name}"}, free]}


def _conditions() -> Iterator[JsonSchema]:
    """What one section requires of another, as far as a schema can express it."""
    node_port = {"pattern": f":({'|'.join(PORT_NAMES)})$"}
    ends = {"items": {"properties": {"endpoints": {"items": node_port}}}}
    kinds = kind_traits()
    switched = [name for name, kind in kinds.items() if kind.switched]
    no_switch = {"type": "string", "not": {"enum": switched}}
    yield _when("topology", "kind", no_switch, {"properties": {"cabling": ends}})
    for name, kind in kinds.items():
        if kind.connects_directly:
            counted = {"properties": {"nodes": {"minItems": kind.fewest, "maxItems": kind.most}}}
            of_all = {"anyOf": [{"required": [GROUPS]}, counted]}
            yield _when("topology", "kind", {"const": name}, of_all)
    without = {"properties": {"model": {"properties": {"file": False}}}}
    no_file = _when("engine", "name", {"type": "string", "not": {"enum": _readers()}}, without)
    yield no_file
    yield _of_groups([no_file])


def _needs_of_sections() -> Iterator[JsonSchema]:
    """Keys that one section needs in another."""
    for name, kind in kind_traits().items():
        if kind.groups_alone:
            yield _when("topology", "kind", {"const": name}, {"required": [GROUPS]})
    yield {"dependentRequired": {"model": ["engine"], "engine": ["model"]}}
    served = list(_needs_of_serving())
    yield from served
    earlier = (path.rpartition(".")[2] for path, (now, _) in renamed().items() if now == "same_as")
    others = [["model", "engine"], ["same_as"], *([name] for name in dict.fromkeys(earlier))]
    yield _of_groups([{"anyOf": [{"required": keys} for keys in others]}, *served])


def _of_groups(conditions: Sequence[JsonSchema]) -> JsonSchema:
    """Conditions that hold for each group, and for each of its alternatives."""
    entry: JsonSchema = {"allOf": [*conditions]}
    inner = {ALTERNATIVES: {"items": entry}}
    return {"properties": {GROUPS: {"items": {**entry, "properties": inner}}}}


def _needs_of_serving() -> Iterator[JsonSchema]:
    """What a model and an engine require of each other."""
    named = {"anyOf": [{"required": ["name"]}, {"required": ["source"]}]}
    yield {"properties": {"model": {"if": {"type": "object"}, "then": named}}}
    run = {"anyOf": [{"required": ["image"]}, {"required": ["venv"]}]}
    yield {"properties": {"engine": {"if": {"type": "object"}, "then": run}}}
    with_file = {"properties": {"model": {"required": ["file"]}}}
    yield _when("engine", "name", {"enum": _readers()}, with_file)


def _readers() -> list[str]:
    """The engines that read a GGUF file."""
    return [name for name, traits in ENGINE_TRAITS.items() if traits.reads_gguf]


def _needs(value: JsonSchema) -> JsonSchema:
    """The required keys of a mapping and of those inside it, except in entries of lists."""
    inner = {key: _needs(own) for key, own in value.get("properties", {}).items()}
    needed = {key: own for key, own in inner.items() if own}
    return {
        **({"required": value["required"]} if "required" in value else {}),
        **({"properties": needed} if needed else {}),
    }


def _without_needs(value: JsonSchema) -> JsonSchema:
    """The same mapping without required keys."""
    kept = {key: own for key, own in value.items() if key != "required"}
    if "properties" in value:
        inner = value["properties"]
        kept["properties"] = {key: _without_needs(own) for key, own in inner.items()}
    return kept


def _when(section: str, key: str, value: JsonSchema, then: JsonSchema) -> JsonSchema:
    """What holds if a section has a key with such a value."""
    inner = {"properties": {key: value}, "required": [key]}
    return {"if": {"properties": {section: inner}, "required": [section]}, "then": then}


def _value(rules: Rules) -> JsonSchema:
    """The JSON Schema of a value with these rules."""
    if (name := rules.get("check_with")) in ("argument", "setting"):
        return {"$ref": f"#/$defs/{name}"}
    if section := rules.get("meta", {}).get("same_as"):
        return {"$ref": f"#/properties/{section}"}
    kinds = types_of(rules)
    types = _types(kinds, rules)
    if word := rules.get("meta", {}).get("word"):
        return {
            **_annotations(rules["meta"]),
            "anyOf": [{"type": types[0], **_limits(kinds, rules)}, {"const": word}],
        }
    return {
        **_annotations(rules.get("meta", {})),
        "type": types if len(types) > 1 else types[0],
        **_limits(kinds, rules),
        **(_pattern(text_type_of(rules["check_with"])) if "check_with" in rules else {}),
        **({"items": _value(rules["schema"])} if "list" in kinds else {}),
        **(_members(rules) if "dict" in kinds else {}),
    }


def _annotations(meta: Mapping[str, Any]) -> JsonSchema:
    """What an editor shows and suggests: description with unit, default, example."""
    unit = f" Unit: {meta['unit']}." if "unit" in meta else ""
    return {
        **({"description": meta["description"] + unit} if "description" in meta else {}),
        **({"default": meta["default"]} if "default" in meta else {}),
        **({"examples": [meta["example"]]} if "example" in meta else {}),
    }


def _types(kinds: Iterable[str], rules: Rules) -> list[str]:
    """The types that an editor may see, since YAML may read unquoted text as another type."""
    types = [_TYPES[kind] for kind in kinds]
    text_type = TEXT_TYPES.get(rules.get("check_with", ""))
    if text_type and any(text_type.fits(number) for number in _NUMBERS):
        types.append("number")
    if text_type and text_type.fits("true"):
        types.append("boolean")
    return types


def _limits(kinds: Iterable[str], rules: Rules) -> JsonSchema:
    """Choices, range and length."""
    counted = "Items" if "list" in kinds else "Length"
    keywords = {
        "allowed": "enum",
        "min": "minimum",
        "max": "maximum",
        "minlength": f"min{counted}",
        "maxlength": f"max{counted}",
    }
    return {keyword: rules[rule] for rule, keyword in keywords.items() if rule in rules}


def _pattern(text_type: TextType) -> JsonSchema:
    # The YAML language server shows the second in place of the pattern.
    return {
        "pattern": f"^({text_type.pattern})$",
        "patternErrorMessage": f"must be {text_type.wanted}",
    }


def _members(rules: Rules) -> JsonSchema:
    """The keys of a mapping: fixed ones, or any that match a text type."""
    if "schema" not in rules:
        free = _value(rules["valuesrules"])
        is_of_flags = rules["valuesrules"].get("check_with") == "argument"
        flags = {flag: _suggested(name, free) for flag, name in _SUGGESTED_FLAGS.items()}
        return {
            "propertyNames": _pattern(text_type_of(rules["keysrules"]["check_with"])),
            **({"properties": flags} if is_of_flags else {}),
            "additionalProperties": free,
        }
    members: Mapping[str, Rules] = rules["schema"]
    needed = {key: own for key, own in members.items() if own.get("required")}
    # If keys exclude each other, a condition requires one of them.
    required = [
        key
        for key, own in needed.items()
        if "unless" not in own.get("meta", {}) and "excludes" not in own
    ]
    excluded = {key: own["excludes"] for key, own in members.items() if "excludes" in own}
    return {
        "properties": {key: {"title": key, **_member(own)} for key, own in members.items()},
        **({"required": required} if required else {}),
        "additionalProperties": False,
        **({"dependentSchemas": _without(excluded)} if excluded else {}),
    }


def _member(rules: Rules) -> JsonSchema:
    """The value of a key, with suggestions for editors."""
    made = _value(rules)
    if words := _SUGGESTED.get(rules.get("check_with", "")):
        kept: JsonSchema = {
            name: made.pop(name) for name in ("description", "examples") if name in made
        }
        return {**kept, **_suggested(words, made)}
    return made


def _without(excluded: Mapping[str, str | list[str]]) -> JsonSchema:
    """For each key, that the keys it excludes are absent."""
    return {
        key: {"properties": dict.fromkeys([others] if isinstance(others, str) else others, False)}
        for key, others in excluded.items()
    }


def _argument() -> JsonSchema:
    """A value of `engine.args`, as `text_types.argument_fault` accepts it."""
    word = {"type": _SCALARS, **_pattern(ARGUMENT_TEXT)}
    return {**_json(), "type": [*_SCALARS, "array", "object"], "items": word}


def _json() -> JsonSchema:
    """Anything that becomes part of a JSON argument."""
    text = _pattern(ARGUMENT_TEXT)
    inner = {"$ref": "#/$defs/json"}
    return {**text, "items": inner, "propertyNames": text, "additionalProperties": inner}


_HEAD = "| key | type | default | unit | description | example |\n|---|---|---|---|---|---|\n"


def reference() -> str:
    """The reference page of the site format, in Markdown."""
    schema = site_schema()
    linked = (*SECTIONS, GROUPS)
    top = [
        _row(f"[`{key}`](#{key})" if key in linked else f"`{key}`", rules)
        for key, rules in schema.items()
    ]
    sections = (_section(key, schema[key]) for key in linked)
    page = (SCHEMAS / "pages/reference.txt").read_text("utf-8")
    preface = page.format(kib=MAX_BYTES >> 10, levels=MAX_DEPTH)
    return "\n".join([preface, "## All keys and sections\n", _table(top), *sections])


def _section(name: str, rules: Rules) -> str:
    """One section of a site file: its description, and a table of its keys."""
    entry = rules["schema"] if rules["type"] == "list" else rules
    need = _need(rules).replace("`", "").capitalize() or "Optional"
    intro = f"{rules['meta']['description']} {need}: {_wanted(rules)} with these keys."
    return f"## {name}\n\n{intro}\n\n{_table(_rows(entry['schema']))}"


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    return _HEAD + "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _rows(members: Mapping[str, Rules], path: str = "") -> Iterator[tuple[str, ...]]:
    """A row for every key, and for the keys inside it."""
    for key, rules in members.items():
        yield _row(f"`{path}{key}`", rules)
        if "dict" in types_of(rules) and "same_as" not in rules["meta"]:
            yield from _rows(rules.get("schema", {}), f"{path}{key}.")
            yield from _rows(rules.get("valuesrules", {}).get("schema", {}), f"{path}{key}.*.")
        entry = rules.get("schema", {}) if "list" in types_of(rules) else {}
        if entry.get("type") == "dict":
            yield from _rows(entry["schema"], f"{path}{key}.")


def description(rules: Rules) -> str:
    """What a key is for, and what its value may be, in Markdown."""
    meta = rules["meta"]
    need = _need(rules)
    facts = {
        "Type": _wanted(rules),
        "Unit": meta.get("unit", ""),
        "Default": need or _code(meta, "default"),
        "Example": _code(meta, "example"),
    }
    known = "\n".join(f"- {name}: {value}" for name, value in facts.items() if value)
    return f"{meta['description']}\n\n{known}"


def _row(key: str, rules: Rules) -> tuple[str, ...]:
    meta = rules["meta"]
    default = _need(rules) or _code(meta, "default")
    unit, example = meta.get("unit", ""), _code(meta, "example")
    return key, _wanted(rules), default, unit, meta["description"], example


def _need(rules: Rules) -> str:
    """Whether a key is required, or required unless other keys are present."""
    if not rules.get("required"):
        return ""
    others = types_of({"type": rules.get("excludes", ())})
    return f"required without {listed(map('`{}`'.format, others))}" if others else "required"


def _code(meta: Mapping[str, Any], key: str) -> str:
    """A value as written on one line of a site file."""
    if key not in meta:
        return ""
    value = meta[key]
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _wanted(rules: Rules) -> str:
    """What a value must be, in words."""
    if "allowed" in rules:
        return listed(f"`{choice}`" for choice in rules["allowed"])
    word = rules.get("meta", {}).get("word")
    return listed(
        [*(_WORDS[kind](rules) for kind in types_of(rules)), *([f"`{word}`"] if word else [])]
    )


def _text(rules: Rules) -> str:
    text_type = TEXT_TYPES.get(rules.get("check_with", ""))
    wanted = text_type.wanted.replace("`", r"\`") if text_type else "text"
    return ", ".join(filter(None, (wanted, _length(rules, "characters"))))


def _range(rules: Rules) -> str:
    low, high = rules.get("min"), rules.get("max")
    if low is not None and high is not None:
        return f", {low} to {high}"
    bounds = {"at least": low, "at most": high}
    return "".join(f", {word} {bound}" for word, bound in bounds.items() if bound is not None)


def _list(rules: Rules) -> str:
    if "schema" not in rules:
        return "a list"
    entries = _length(rules, "entries") or "entries"
    return f"a list of {entries}, each {_wanted(rules['schema'])}"


def _length(rules: Rules, parts: str) -> str:
    low, high = rules.get("minlength"), rules.get("maxlength")
    if not high:
        return ""
    count = f"{high}" if low == high else f"{low} to {high}" if low else f"at most {high}"
    return f"{count} {parts}"


def _mapping(rules: Rules) -> str:
    if "keysrules" not in rules:
        return "a mapping"
    key, value = _wanted(rules["keysrules"]), _wanted(rules["valuesrules"])
    return f"a mapping; each key {key}; each value {value}"


_WORDS = {
    "string": _text,
    "integer": lambda rules: f"a whole number{_range(rules)}",
    "float": lambda rules: f"a number{_range(rules)}",
    "boolean": lambda rules: "`true` or `false`",
    "list": _list,
    "dict": _mapping,
}
