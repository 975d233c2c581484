"""Holds a document against the Cerberus schemas: out come typed data and findings SG1xx.

The schemas are data in `schemas/`, one file a section; this module is all that knows Cerberus.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from functools import cache, partial
from typing import Any

import cerberus
import yaml
from cerberus.schema import UnvalidatedSchema

from generator import catalogs, foreign
from generator.diagnostics import (
    Add,
    Data,
    Finding,
    KeyPath,
    Related,
    Severity,
    all_nearest,
    did_you_mean,
    listed,
    misspelt,
    removal,
    renamings,
    replacements,
)
from generator.forms import FORM_HELP, argument_fault, form_fault, sound_text
from generator.resources import SCHEMAS
from generator.source import Document, Plain

SECTIONS = (
    "defaults",
    "nodes",
    "cabling",
    "topology",
    "model",
    "engine",
    "services",
    "waivers",
)

_KINDS = {
    "string": "text",
    "integer": "a whole number",
    "float": "a number",
    "boolean": "true or false",
    "list": "a list",
    "dict": "a mapping of keys to values",
}


@cache
def site_schema() -> dict[str, Any]:
    """The rules of a whole site file, section files joined."""
    rules: dict[str, Any] = _load("site")
    return rules | {section: _load(section) for section in SECTIONS}


def check(document: Document) -> tuple[Any, list[Finding]]:
    """The document's data with every scalar as its schema wants it, and what is wrong with it."""
    data = document.data
    if not isinstance(data, dict):
        message = "a site file is a mapping of keys to values"
        return None, [_error("SG103", message, (), help="start with 'version: 1'")]
    typed = {
        key: _typed(value, site_schema()[key]) if key in site_schema() else value
        for key, value in data.items()
    }
    validator = _validator()
    validator.validate(typed, normalize=False)
    found = _without_cascades(_flat(validator._errors), document.findings)
    return typed, [_with_version_of_the_image(finding, typed) for finding in found]


def _load(section: str) -> Any:
    path = SCHEMAS / f"{section}.yaml"
    return yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)


def _with_forms(rules: Any) -> Any:
    """The rules with every `check_with` name as the function that Cerberus calls."""
    if isinstance(rules, list):
        return [_with_forms(item) for item in rules]
    if isinstance(rules, dict):
        return {
            key: _form_check(value) if key == "check_with" else _with_forms(value)
            for key, value in rules.items()
        }
    return rules


def _form_check(name: str) -> Callable[[str, Any, Callable[[str, str], None]], None]:
    fault = argument_fault if name == "argument" else partial(form_fault, name)

    def check_with(field: str, value: Any, error: Callable[[str, str], None]) -> None:
        if said := fault(value):
            error(field, said)

    return check_with


@cache
def _validator() -> Any:
    # Cerberus would hold the schema against its own schema first, which takes longer than all the
    # rest of reading a site; the tests do that once.
    return _Validator(UnvalidatedSchema(_with_forms(site_schema())))


class _Validator(cerberus.Validator):  # type: ignore[misc]
    """Made for files of any size, and any number of errors in them.

    Lengths come first: of a list that is too long the entries are not looked at.
    """

    priority_validations = (*cerberus.Validator.priority_validations, "minlength", "maxlength")

    def _error(self, *args: Any) -> None:
        if len(args) == 1:
            # Cerberus sorts all errors anew for each that is added, and files them in two trees.
            self._errors.extend(args[0])
        else:
            super()._error(*args)

    def _validate_maxlength(self, most: int, field: str, value: Sized) -> None:
        """{'type': 'integer'}"""  # noqa: D400, D415 (Cerberus reads the rule's schema here)
        if len(value) > most:
            self._error(field, cerberus.errors.MAX_LENGTH, len(value))
            self._drop_remaining_rules("schema", "check_with")


def _typed(value: Any, rules: Mapping[str, Any]) -> Any:
    """A value with its scalars as the schema's types say."""
    if isinstance(value, Plain):
        return _scalar(value, _types(rules))
    if isinstance(value, list):
        # Of a list without a schema the entries are what an argument is made of: words or flags.
        entries = rules.get("schema") or ({"type": ["string", "boolean"]} if rules else {})
        return [_typed(item, entries) for item in value]
    if isinstance(value, dict):
        return {key: _typed(item, _of_key(rules, key)) for key, item in value.items()}
    return value


def _types(rules: Mapping[str, Any]) -> tuple[str, ...]:
    types = rules.get("type", ())
    return (types,) if isinstance(types, str) else tuple(types)


def _of_key(rules: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    known: Mapping[str, Any] = rules.get("schema", {}).get(key) or rules.get("valuesrules", {})
    return known


def _scalar(value: Plain, types: tuple[str, ...]) -> Any:
    if value.is_null:
        return None
    meaning = value.meaning()
    if not types:
        return meaning
    if isinstance(meaning, bool):
        # Cerberus would take true for the number 1.
        return meaning if "boolean" in types else str(value)
    return str(value) if "string" in types else meaning


def _flat(errors: Iterable[Any]) -> Iterator[Any]:
    for error in errors:
        if error.child_errors:
            yield from _flat(error.child_errors)
        else:
            yield error


def _without_cascades(errors: Iterable[Any], said: Iterable[Finding]) -> Iterator[Finding]:
    """One finding a mistake: a misspelt key is not also a missing one.

    `said` is what reading has found: a key that was not read may be the one that is missing, and a
    value with a tag is not also one of the wrong form.
    """
    flat = list(errors)
    unread = {f.path[:-1] if f.rule == "SG004" else f.path for f in said if f.rule in _UNREAD}
    tagged = {finding.path for finding in said if finding.rule == "SG010"}
    misspelt: dict[KeyPath, list[str]] = {}
    for error in flat:
        if error.code == _UNKNOWN:
            *parents, key = error.document_path
            misspelt.setdefault(tuple(parents), []).append(str(key))
    for error in flat:
        path = tuple(error.document_path)
        if any(path[:end] in tagged for end in range(len(path) + 1)):
            continue
        if error.code == _REQUIRED:
            siblings = misspelt.get(path[:-1], [])
            wanted = str(path[-1])
            known_as = any(foreign.meant(sibling, [wanted]) for sibling in siblings)
            if path[:-1] in unread or known_as or did_you_mean(wanted, siblings):
                continue
        yield _finding(error, path)


_UNREAD = ("SG004", "SG009")
_UNKNOWN = cerberus.errors.UNKNOWN_FIELD.code
_REQUIRED = cerberus.errors.REQUIRED_FIELD.code


def _finding(error: Any, path: KeyPath) -> Finding:
    make = _BY_RULE.get("unknown" if error.code == _UNKNOWN else error.rule, _form_fault)
    return make(error, path)


def _error(rule: str, message: str, path: KeyPath, **more: Any) -> Finding:
    return Finding(rule, Severity.ERROR, message, path, **more)


def _unknown_key(error: Any, path: KeyPath) -> Finding:
    if said := foreign.said(str(path[-1])):
        rule, help_text = said
        return _error(
            rule,
            f"unknown key '{path[-1]}'",
            path,
            at_key=True,
            help=help_text,
            proposals=removal(path) if help_text.startswith("take it out") else (),
        )
    known = _keys_at(path[:-1])
    key = str(path[-1])
    meant = foreign.meant(key, known)
    near = [meant] if meant else all_nearest(key, known)
    sure = [meant] if meant else misspelt(key, near)
    home = "" if sure else _home(key, path[:-1])
    near = [] if home else near
    elsewhere = "" if near or not known else home or foreign.elsewhere(key)
    if near == ["endpoints"] and key != "ends":
        near, sure, elsewhere = [], [], "write 'endpoints: [NODE:PORT, NODE:PORT]'"
    help_text = (
        f"did you mean {listed(map(repr, near))}?"
        if near
        else elsewhere or f"the keys here are {listed(known, 'and')}"
    )
    return _error(
        "SG101",
        f"unknown key '{path[-1]}'",
        path,
        at_key=True,
        help=help_text,
        proposals=renamings(path, sure),
    )


def _home(key: str, place: KeyPath) -> str:
    """How to say that a key has its place in another section, where one alone has it."""
    homes = [
        section
        for section, rules in site_schema().items()
        if rules.get("type") == "dict" and key in rules.get("schema", {}) and (section,) != place
    ]
    return f"write it under '{homes[0]}'" if len(homes) == 1 and place else ""


def _missing_key(error: Any, path: KeyPath) -> Finding:
    key = str(path[-1])
    message = f"the key '{key}' is missing"
    if path[:-1]:
        message += f" in {_place_name(path[:-1])}"
    rules = _rules_at(path)
    help_text = f"write '{key}: {_flow(_smallest(rules))}'"
    only = rules.get("allowed", ())
    return _error(
        "SG102",
        message,
        path[:-1],
        at_key=True,
        help=help_text,
        proposals=((Add(path, only[0]),),) if len(only) == 1 else (),
    )


def _with_version_of_the_image(finding: Finding, data: Mapping[str, Any]) -> Finding:
    """A missing version is the one that the image holds, where that is known."""
    if (finding.rule, finding.path) != ("SG102", ("engine",)) or "'version'" not in finding.message:
        return finding
    section = data.get("engine")
    reference = section.get("image") if isinstance(section, dict) else None
    known = catalogs.image(reference) if isinstance(reference, str) else None
    if known is None or not known.version:
        return finding
    return replace(finding, help=f"write 'version: {known.version}', as in the image")


def _smallest(rules: Mapping[str, Any]) -> Any:
    """The example of a key, or one made of what its section can't be without."""
    if "example" in rules.get("meta", {}):
        return rules["meta"]["example"]
    inner = rules["schema"]
    if rules["type"] == "list":
        return [_smallest(inner)]
    wanted = [key for key in inner if inner[key].get("required")] or [next(iter(inner))]
    return {key: _smallest(inner[key]) for key in wanted}


def _flow(value: Any) -> str:
    """A value as it is written on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_flow(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _wrong_kind(error: Any, path: KeyPath) -> Finding:
    types = _types({"type": error.constraint})
    wanted = listed(_KINDS[kind] for kind in types)
    message = f"{_said(path, error.value)} must be {wanted}"
    help_text, meant = (
        _meant(types, error.value)
        or _wrapped(path, error.value)
        or (
            _example(path),
            None,
        )
    )
    proposals = () if meant is None else replacements(path, [meant])
    return _error("SG103", message, path, help=help_text, proposals=proposals)


def _wrapped(path: KeyPath, value: Any) -> tuple[str, Data] | None:
    """A mapping of the one key that it can't be without, where its value alone is written."""
    inner = _rules_at(path).get("schema", {})
    wanted = [key for key in inner if isinstance(inner[key], dict) and inner[key].get("required")]
    wanted = wanted or [key for key in inner if key == "name"]
    if len(wanted) != 1 or _rules_at(path).get("type") != "dict":
        return None
    kind = {"string": str, "list": list}.get(inner[wanted[0]]["type"], ())
    if not isinstance(value, kind) or len(_flow(value)) > _LONGEST:
        return None
    return f"write '{_flow({wanted[0]: value})}'", {wanted[0]: value}


def _number(text: str) -> int | float | None:
    """A number as people write it: 128k, 131,072, 80 %."""
    if found := re.fullmatch(r"([0-9]{1,6})[kK]", text):
        return int(found[1]) * 1024
    if re.fullmatch(r"[0-9]{1,3}([,_' ][0-9]{3}){1,5}", text):
        return int(re.sub(r"[,_' ]", "", text))
    if found := re.fullmatch(r"([0-9]{1,2}) ?%", text):
        return int(found[1]) / 100
    return None


def _meant(types: tuple[str, ...], value: Any) -> tuple[str, Data] | None:
    """What to write for a text that should be something else, and its value."""
    if not isinstance(value, str):
        return None
    if "boolean" in types and value.lower() in ("yes", "on", "no", "off"):
        flag = value.lower() in ("yes", "on")
        return f"write {'true' if flag else 'false'}", flag
    if {"integer", "float"} & set(types) and (number := _number(value)) is not None:
        return f"write {number}", number
    # Without quotes it would be no text by now.
    meaning = Plain(value).meaning()
    if meaning is not None and not isinstance(meaning, str) and len(value) < _LONGEST:
        return f"write {value} without quotes", meaning
    bare = value.lstrip("+-").lstrip("0")
    if {"integer", "float"} & set(types) and bare.isdigit() and value.lstrip("+-")[0] == "0":
        return f"a leading zero is octal to some readers; write {bare}", int(bare)
    return None


def _empty(error: Any, path: KeyPath) -> Finding:
    subject = _place_name(path)
    flag = "boolean" in _types(_rules_at(path))
    help_text = _example(path) or ("write true or false" if flag else "leave it out")
    proposals = removal(path) if help_text == "leave it out" else ()
    message = f"{subject} is empty"
    return _error("SG108", message, path, at_key=True, help=help_text, proposals=proposals)


def _not_allowed(error: Any, path: KeyPath) -> Finding:
    allowed = [str(choice) for choice in error.constraint]
    choices = f"one of: {', '.join(allowed)}" if len(allowed) > 1 else f"write {allowed[0]}"
    word = str(error.value)
    meant = foreign.meant(word, allowed)
    near = [meant] if meant else all_nearest(word, allowed)
    guess = f"did you mean {listed(map(repr, near))}?" if near else ""
    help_text = "; ".join(filter(None, (choices, guess)))
    sure = allowed if len(allowed) == 1 else [meant] if meant else misspelt(word, near)
    return _error(
        "SG104",
        f"{_said(path, error.value)} is not allowed",
        path,
        help=help_text,
        proposals=replacements(path, [c for c in error.constraint if str(c) in sure]),
    )


def _out_of_range(error: Any, path: KeyPath) -> Finding:
    rules = _rules_at(path)
    unit = rules.get("meta", {}).get("unit", "")
    bounds = f"{rules['min']} to {rules['max']}"
    message = f"{_said(path, error.value)} is out of range: {bounds}"
    message += f" ({unit})" if unit else ""
    if unit == "fraction" and rules["max"] < error.value < 100:
        share = error.value / 100
        help_text = f"write {share:g}"
        return _error("SG105", message, path, help=help_text, proposals=replacements(path, [share]))
    return _error("SG105", message, path, help=_example(path))


def _wrong_length(error: Any, path: KeyPath) -> Finding:
    rules, count = _rules_at(path), len(error.value)
    low, high = rules.get("minlength"), rules.get("maxlength")
    bounds = f"{low}" if low == high else f"{low} to {high}" if low else f"at most {high}"
    one, many = (
        ("character", "characters") if isinstance(error.value, str) else ("entry", "entries")
    )
    message = (
        f"'{_name(path)}' has {count or 'no'} {one if count == 1 else many}; it takes {bounds}"
    )
    return _error("SG107", message, path, help=_example(path))


def _excluded(error: Any, path: KeyPath) -> Finding:
    other = str(_types({"type": error.constraint})[0])
    return _error(
        "SG109",
        f"'{path[-1]}' and '{other}' exclude each other",
        path,
        at_key=True,
        related=(Related("the other one", (*path[:-1], other)),),
        help="keep one of the two",
        proposals=(*removal(path), *removal((*path[:-1], other))),
    )


def _form_fault(error: Any, path: KeyPath) -> Finding:
    is_key = "keysrules" in error.schema_path
    if is_key:
        meant = _sound_key(path)
        message = f"the name '{path[-1]}' {error.info[0]}"
        help_text = f"write '{meant}'" if meant else ""
        proposals = renamings(path, filter(None, [meant]))
    else:
        meant = sound_text(_rules_at(path).get("check_with", ""), error.value)
        message = f"{_said(path, error.value)} {error.info[0]}"
        form = _rules_at(path).get("check_with", "")
        help_text = f"write '{meant}'" if meant else _example(path) or FORM_HELP.get(form, "")
        if meant and meant == f"{error.value}/24":
            help_text += ", or with the prefix length that your network has"
        proposals = replacements(path, filter(None, [meant]))
    return _error("SG106", message, path, at_key=is_key, help=help_text, proposals=proposals)


def _sound_key(path: KeyPath) -> str:
    """The name as it was meant: a flag without its dashes, a variable with '_'."""
    form, key = _rules_at(path[:-1])["keysrules"]["check_with"], str(path[-1])
    meant = (key.lstrip("-"), key.replace("-", "_"))
    return next((name for name in meant if not form_fault(form, name)), "")


_BY_RULE = {
    "unknown": _unknown_key,
    "required": _missing_key,
    "type": _wrong_kind,
    "nullable": _empty,
    "allowed": _not_allowed,
    "min": _out_of_range,
    "max": _out_of_range,
    "minlength": _wrong_length,
    "maxlength": _wrong_length,
    "excludes": _excluded,
}


_LONGEST = 60


def _said(path: KeyPath, value: Any) -> str:
    """The value as it was written, with the key that it is for."""
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(value, list | dict) or len(shown) > _LONGEST or not shown.isprintable():
        return _place_name(path) if path else "'site'"
    return f"'{_name(path)}: {shown}'" if isinstance(path[-1], str) else f"'{shown}'"


def _name(path: KeyPath) -> str:
    return next((part for part in reversed(path) if isinstance(part, str)), "site")


def _place_name(path: KeyPath) -> str:
    if isinstance(path[-1], int):
        return f"entry {path[-1] + 1} of '{_name(path)}'"
    return f"'{path[-1]}'"


def _rules_at(path: KeyPath) -> Mapping[str, Any]:
    rules: Mapping[str, Any] = {"schema": site_schema()}
    for part in path:
        rules = rules.get("schema", {}) if isinstance(part, int) else _of_key(rules, part)
    return rules


def _keys_at(path: KeyPath) -> list[str]:
    return list(_rules_at(path).get("schema", {}))


def _example(path: KeyPath) -> str:
    rules = _rules_at(path)
    if "schema" not in rules and "example" not in rules.get("meta", {}):
        return ""
    key = f"{path[-1]}: " if isinstance(path[-1], str) else ""
    return f"for example '{key}{_flow(_smallest(rules))}'"
