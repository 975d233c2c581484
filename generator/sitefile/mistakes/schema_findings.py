"""Turns the schema's errors into findings: each mistake once, at its place.

`key_faults.py` words single errors; this module finds the mistake that several have in common.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from generator import catalogs
from generator.diagnostics import (
    Finding,
    KeyPath,
    all_nearest,
    did_you_mean,
    misspelt,
    reading_error,
)
from generator.records import replace
from generator.sitefile.key_rules import keys_at, rules_at, section_of, types_of
from generator.sitefile.mistakes import aliases
from generator.sitefile.mistakes.key_faults import (
    DEPENDENCY,
    REQUIRED,
    UNKNOWN,
    finding_of,
    named_otherwise,
)
from generator.sitefile.mistakes.lost_sections import LostSection, is_explained, lost_sections
from generator.sitefile.mistakes.meanings import several_meant
from generator.sitefile.mistakes.moved_keys import Misplaced, misplaced
from generator.sitefile.mistakes.values import near_misses
from generator.sitefile.sections import GROUPS, SECTIONS
from generator.sitefile.source import Document, value_at
from generator.sitefile.validation import is_valid, takes


def no_mapping() -> Finding:
    """The file contains a list or text."""
    message = "a site file is a mapping of keys to values"
    return reading_error("SG103", message, (), help="start with 'version: 1'")


def findings(document: Document, typed: Any, errors: Sequence[Any]) -> list[Finding]:
    """The findings about a document, from its typed data and all errors of the schema."""
    errors = _few(errors)
    unknown = [tuple(error.document_path) for error in errors if error.code == UNKNOWN]
    lost: list[LostSection | Misplaced] = []
    if not document.parts:
        # The order of lines shows what was meant, and a site of two files has no such order.
        lost += _lost_sections(errors, unknown, document)
        lost += misplaced(document, unknown, is_valid)
    reported = [f for f in document.findings if not is_explained(lost, f.path)]
    rest = [
        error
        for error in errors
        if not any(is_explained(lost, path) for path in (tuple(error.document_path), _rival(error)))
    ]
    reported += [
        _with_version_of_the_image(finding, typed) if place == _VERSION else finding
        for place, finding in _without_cascades(rest, document.findings, typed)
    ]
    found = near_misses(document, reported, document.data, is_valid) if reported else []
    return [one.finding for one in lost] + found


def _lost_sections(
    errors: Iterable[Any], unknown: list[KeyPath], document: Document
) -> Iterator[LostSection]:
    """Missing sections whose keys appear in another section, which doesn't have such keys."""
    in_groups = ("model", "engine") if GROUPS in document.data else ()
    missing = [s for s in SECTIONS if s not in document.data and s not in in_groups]
    if not missing:
        return
    others = [_rival(error) for error in errors]
    others += [
        path
        for error in errors
        if error.rule == "allowed"
        for path in [tuple(error.document_path)]
        if isinstance(path[-1], str)
        and any(is_valid((section, path[-1]), error.value) for section in missing)
    ]
    yield from lost_sections(missing, [*unknown, *filter(None, others)], document)


def _rival(error: Any) -> KeyPath:
    """The key excluded or needed by the one that an error is about."""
    if error.rule not in ("excludes", "dependencies"):
        return ()
    return (*error.document_path[:-1], types_of({"type": error.constraint})[0])


def _without_cascades(
    errors: Iterable[Any], reported: Iterable[Finding], data: Any
) -> Iterator[tuple[KeyPath, Finding]]:
    """One finding per mistake, with its place: a misspelled key is not also a missing one.

    `reported` has the findings of reading: a key that was not read may be the one that is missing,
    and a value with a tag is not also one of the wrong type.
    """
    flat = list(errors)
    unread = {f.path[:-1] if f.rule == "SG004" else f.path for f in reported if f.rule in _UNREAD}
    tagged = {finding.path for finding in reported if finding.rule == "SG010"}
    empty = {finding.path for finding in reported if finding.rule == "SG003"}
    unknown, moved = _unknown(flat)
    stand_ins = _stand_ins(flat, unknown)
    for path, wanted in stand_ins.items():
        yield path, named_otherwise(path, wanted, value_at(data, path))
    explained = {*stand_ins, *((*path[:-1], wanted) for path, wanted in stand_ins.items())}
    rest = [error for error in flat if _place(error) not in explained]
    for error in rest:
        path = _place(error)
        if any(path[:end] in tagged for end in range(len(path) + 1)):
            continue
        if _is_other_form(error, path, data):
            continue
        if error.code in (REQUIRED, DEPENDENCY):
            if path[:-1] in unread or _is_called_otherwise(path, unknown.get(path[:-1], [])):
                continue
            if path in moved:
                continue
        if error.rule == "nullable" and path in empty:
            continue
        yield path, finding_of(error, tuple(error.document_path), data)


def _place(error: Any) -> KeyPath:
    """The key that an error is about: the one that is missing, not the one beside it."""
    path = tuple(error.document_path)
    return (*path[:-1], error.constraint) if error.code == DEPENDENCY else path


def _unknown(errors: Iterable[Any]) -> tuple[dict[KeyPath, list[str]], set[KeyPath]]:
    """What the unknown keys of each mapping may be, and the paths where they may belong."""
    found: dict[KeyPath, list[str]] = {}
    moved: set[KeyPath] = set()
    for error in errors:
        if error.code == UNKNOWN:
            *parents, key = error.document_path
            found.setdefault(tuple(parents), []).extend(_meant(str(key), error.value))
            moved.add((section_of(str(key), tuple(parents)), key))
    return found, moved


# More unknown keys of one mapping than these are not mistyped: it is another tool's file.
_MOST_UNKNOWN = 20


def _few(errors: Iterable[Any]) -> list[Any]:
    """The errors, with the first unknown keys of each mapping alone."""
    seen: Counter[KeyPath] = Counter()
    kept = []
    for error in errors:
        if error.code == UNKNOWN:
            mapping = tuple(error.document_path[:-1])
            seen[mapping] += 1
            if seen[mapping] > _MOST_UNKNOWN:
                continue
        kept.append(error)
    return kept


def _stand_ins(
    errors: Iterable[Any], unknown: Mapping[KeyPath, Sequence[str]]
) -> dict[KeyPath, str]:
    """Unknown keys by their paths, with the one missing key beside them that takes their value."""
    missing: dict[KeyPath, list[str]] = {}
    values: dict[KeyPath, list[tuple[str, Any]]] = {}
    for error in errors:
        if error.code in (REQUIRED, DEPENDENCY):
            place = _place(error)
            missing.setdefault(place[:-1], []).append(str(place[-1]))
    for error in errors:
        path: KeyPath = tuple(error.document_path)
        if _may_stand_for(error, path[:-1], missing.get(path[:-1], ())):
            values.setdefault(path[:-1], []).append((str(path[-1]), error.value))
    found: dict[KeyPath, str] = {}
    for parents in missing.keys() & values.keys():
        wanted = [
            name
            for name in missing[parents]
            if not _is_called_otherwise((*parents, name), unknown.get(parents, ()))
        ]
        pairs = [
            (key, name)
            for key, value in values[parents]
            for name in wanted
            if takes((*parents, name), value)
        ]
        for key, name in pairs:
            if len([one for one in pairs if key in one or name in one]) == 1:
                found[(*parents, key)] = name
    return found


def _may_stand_for(error: Any, parents: KeyPath, wanted: Sequence[str]) -> bool:
    """Whether a key may be one of the missing ones beside it: an unknown key, or a wrong value."""
    key = str(error.document_path[-1])
    if error.code != UNKNOWN:
        return error.rule == "type" and bool(wanted)
    chosen = (name for name in wanted if "allowed" in rules_at((*parents, name)))
    if any(is_valid((*parents, name), error.value) for name in chosen):
        return True
    return bool(wanted) and not _has_a_meaning(key, parents, error.value)


def _has_a_meaning(key: str, parents: KeyPath, value: Any) -> bool:
    """Whether a name tells what to write: a key that takes the value, or one of another place."""
    known = keys_at(parents)
    near = misspelt(key, all_nearest(key, known))
    is_near = any(takes((*parents, name), value) for name in near)
    return bool(is_near or aliases.meant(key, known)) or bool(
        aliases.other_word(key) or section_of(key, parents)
    )


def _meant(key: str, value: Any) -> tuple[str, ...]:
    """The keys that an unknown one may be; also 'groups', if it has several models or engines."""
    several = any(did_you_mean(key, [one]) and several_meant((one,), value) for one in _OF_BOTH)
    return (key, GROUPS) if several else (key,)


def _is_called_otherwise(path: KeyPath, siblings: Collection[str]) -> bool:
    """Whether an unknown sibling stands for the missing key, or for one that may replace it."""
    wanted = str(path[-1])
    in_place = _IN_PLACE_OF_BOTH if wanted in _OF_BOTH else ()
    return any(aliases.meant(sibling, [wanted]) for sibling in siblings) or any(
        did_you_mean(key, siblings) for key in (wanted, *in_place)
    )


def _is_replaced(path: KeyPath, data: Any) -> bool:
    """Whether another key replaces a missing one."""
    other = rules_at(path).get("meta", {}).get("unless")
    return other is not None and other in value_at(data, path[:-1])


def _is_other_form(error: Any, path: KeyPath, data: Any) -> bool:
    """Whether the error is already reported at the model and engine, or at what replaces them."""
    if error.code in (REQUIRED, DEPENDENCY):
        is_reported = any(key in value_at(data, path[:-1]) for key in _IN_PLACE_OF_BOTH)
        of_both = path[-1] in _OF_BOTH and is_reported
        return path[-1] in _IN_PLACE_OF_BOTH or of_both or _is_replaced(path, data)
    return error.rule == "excludes" and error.constraint in _IN_PLACE_OF_BOTH


# What may replace both a model and an engine.
_IN_PLACE_OF_BOTH = (GROUPS, "like")
_OF_BOTH = ("model", "engine")
_UNREAD = ("SG004", "SG009")

_VERSION: KeyPath = ("engine", "version")


def _with_version_of_the_image(finding: Finding, data: Mapping[str, Any]) -> Finding:
    """For a missing version, propose the one that the image contains, if that is known."""
    if finding.rule != "SG102":
        return finding
    section = data.get("engine")
    reference = section.get("image") if isinstance(section, dict) else None
    known = catalogs.image(reference) if isinstance(reference, str) else None
    if known is None or not known.version:
        return finding
    return replace(finding, help=f"write 'version: {known.version}', as in the image")
