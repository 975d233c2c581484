"""The faults of a flag's name, each with the rule that it breaks."""

import re
from typing import Any

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flags import FlagCatalog, ResolvedFlag
from generator.catalogs.replacements import Replacement, replacement
from generator.diagnostics import (
    Add,
    Data,
    KeyPath,
    Proposal,
    Remove,
    Replace,
    listed,
    misspelt,
    removal,
    renamings,
    scalar,
)
from generator.engines import ENGINES
from generator.records import replace
from generator.rules.flags.parser import Parser, first_later, of_other_versions, others
from generator.rules.flags.value_faults import Judged
from generator.rules.registry import Fault
from generator.settings.values import Argument
from generator.sitefile.sections import choices_at
from generator.sitefile.source import Document, Plain


def owned(name: str, key: str, value: Argument) -> Judged:
    """The flag is one that sparkgen sets."""
    message = f"'{name}' is set by sparkgen"
    return "SG604", _fault(name, message, _key(key), _moved(name, key, value))


# Values that a flag and its key spell differently.
_KEY_VALUES = {
    "engine.launcher": {"ray": "ray", "mp": "native"},
    "engine.bind": {"0.0.0.0": "all", "127.0.0.1": "local", "localhost": "local"},
}


def _moved(name: str, key: str, value: Argument) -> tuple[Proposal, ...]:
    """The proposal to move a flag's value to its key; `placed` then looks at what the key has."""
    out = Remove(("engine", "args", name))
    if not key:
        return ((out,),)
    meaning = Plain(value).meaning() if isinstance(value, str) else value
    meant = _KEY_VALUES[key].get(str(value)) if key in _KEY_VALUES else meaning
    if meant is None or isinstance(meant, list | dict) or not re.fullmatch(r"[a-z_.]+", key):
        return ()
    if "." in name or name.startswith(("no-", "disable-")):
        return ()
    return ((out, Add(tuple(key.split(".")), meant)),)


def placed(fault: Fault, document: Document) -> Fault:
    """The fault with a proposal that fits the document; a key that exists is not written again."""
    match fault.proposals:
        case ((Remove() as out, Add() as new),):
            *parents, last = new.path
            parent = _at(document, tuple(parents))
            if isinstance(parent, dict) and last in parent:
                return _said_twice(fault, out, new, parent[last])
            behind = (
                "image" if new.path[0] == "engine" and (len(parents) == 1 or not parent) else ""
            )
            return replace(fault, proposals=((out, replace(new, after=behind)),))
    return fault


def _said_twice(fault: Fault, out: Remove, new: Add, old: Data) -> Fault:
    current = old.meaning() if isinstance(old, Plain) else old
    if current == new.value:
        return replace(fault, help=f"{fault.help}, and remove this", proposals=((out,),))
    if isinstance(current, list | dict):
        return replace(fault, help=f"{fault.help}, which is there already", proposals=())
    choices = choices_at(new.path)
    if choices and new.value not in choices:
        text = f"{fault.help}, which says {scalar(current)}: remove this"
        return replace(fault, help=text, proposals=((out,),))
    return replace(
        fault,
        help=f"{fault.help}, which says {scalar(current)}: remove this, or write "
        f"{scalar(new.value)} there",
        proposals=((out,), (out, Replace(new.path, new.value))),
    )


def _at(document: Document, path: KeyPath) -> Any:
    """The data at a path of mappings, or None."""
    found: Any = document.data
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def short(name: str, found: ResolvedFlag) -> Judged:
    """The name is a short one, which has a single dash on a command line."""
    message = f"'{name}' is short for '{found.flag.name}'"
    proposals = renamings(_path(name), [found.flag.name])
    return "SG634", _fault(name, message, f"write '{found.flag.name}'", proposals)


def deprecated(name: str, found: ResolvedFlag, parser: Parser) -> Judged:
    """The flag still exists, but will not for long."""
    known = replacement(parser.engine, found.flag.names[0])
    reason = found.flag.deprecated or "the engine will drop it"
    message = f"'{name}' is deprecated in {parser.name}"
    if known:
        return "SG642", _fault(name, message, known.instead, _instead(name, known))
    return "SG642", _fault(name, message, f"remove it: {reason}", removal(_path(name)))


def unknown(name: str, parser: Parser) -> Judged:
    """The parser has no flag of this name: it is another's, has been removed, or never existed."""
    exact = parser.catalog.nearest(name)
    if exact and _folded(exact) == _folded(name):
        near = renamings(_path(name), [exact])
        return _unknown(name, parser, f"did you mean '{exact}'?", near)
    holding = [other for other in of_other_versions(parser.catalog) if other.find(name)]
    gone = replacement(parser.engine, f"--{name}")
    if first := first_later(parser, [other.version for other in holding], gone):
        message = f"{parser.name} has no flag '{name}' yet: {first} has it"
        return "SG633", _fault(name, message, "remove it")
    if gone:
        return _replaced(name, gone, parser)
    if holding:
        return _gone_since(name, parser, holding[-1])
    if "abbreviations" in parser.catalog.traits and parser.catalog.completions(name):
        return _abbreviated(name, parser.catalog.completions(name))
    for other in others(parser.engine):
        if other.catalog.find(name):
            return _of_another_engine(name, parser, other)
    if name in ENGINES[parser.engine].option_names(parser.catalog.version):
        flag = ENGINE_TRAITS[parser.engine].settings_flag
        return _unknown(name, parser, f"write it under '{flag}' in 'args': the options file has it")
    help_text = f"did you mean '{exact}'?" if exact else "remove it, or see the engine's '--help'"
    return _unknown(name, parser, help_text, _renamed(name, exact) if exact else ())


def _renamed(name: str, near: str) -> tuple[Proposal, ...]:
    """The proposal to write the nearest name, if that is certainly meant."""
    begun = _folded(near).startswith(_folded(name))
    return renamings(_path(name), [near] if begun else misspelt(name, [near]))


def _unknown(
    name: str, parser: Parser, help_text: str, proposals: tuple[Proposal, ...] = ()
) -> Judged:
    message = f"{parser.name} has no flag '{name}'"
    return "SG632", _fault(name, message, help_text, proposals)


def _instead(name: str, gone: Replacement) -> tuple[Proposal, ...]:
    if gone.is_needless:
        return removal(_path(name))
    return renamings(_path(name), [gone.word] if gone.word else [])


def _replaced(name: str, gone: Replacement, parser: Parser) -> Judged:
    if gone.gone == "-":
        return _unknown(name, parser, gone.instead, _instead(name, gone))
    since = "" if gone.gone == "earlier" else f": it was removed by {gone.gone}"
    message = f"{parser.name} has no flag '{name}' any more{since}"
    return "SG633", _fault(name, message, gone.instead, _instead(name, gone))


def _gone_since(name: str, parser: Parser, last: FlagCatalog) -> Judged:
    """An earlier version is the last with this flag; what that had too is no new name of it."""
    near = parser.catalog.nearest(name)
    message = f"{parser.name} has no flag '{name}' any more: {last.version} had it"
    if near and not last.find(near):
        return "SG633", _fault(name, message, f"did you mean '{near}'?", _renamed(name, near))
    return "SG633", _fault(name, message, "remove it", removal(_path(name)))


def _abbreviated(name: str, full: list[str]) -> Judged:
    proposals = renamings(_path(name), full)
    if len(full) == 1:
        message = f"'{name}' is short for '{full[0]}'"
        return "SG634", _fault(name, message, f"write '{full[0]}'", proposals)
    message = f"'{name}' is the beginning of several flags"
    return "SG634", _fault(name, message, f"write {listed(map(repr, full))}", proposals)


def _of_another_engine(name: str, parser: Parser, other: Parser) -> Judged:
    message = f"'{name}' is a flag of {other.title}, and {parser.name} has none of that name"
    key = other.owning_key(name)
    return "SG632", _fault(name, message, "remove it" if key is None else _key(key))


def _key(key: str) -> str:
    return f"use the key {key}" if key else "it follows from the nodes; remove it"


def _fault(name: str, message: str, help_text: str, proposals: tuple[Proposal, ...] = ()) -> Fault:
    return Fault(message, _path(name), help_text, at_key=True, proposals=proposals)


def _path(name: str) -> KeyPath:
    return ("engine", "args", name)


def _folded(name: str) -> str:
    return name.lower().replace("_", "-")
