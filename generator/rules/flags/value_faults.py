"""The faults of a flag's value, each with the rule that it breaks.

A value is checked for its shape, then for its type, then against the values that the engine
accepts.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from generator.catalogs.flags import ANY, Flag, FlagCatalog, ResolvedFlag
from generator.catalogs.replacements import replacement
from generator.diagnostics import KeyPath, all_nearest, did_you_mean, listed, misspelt, replacements
from generator.records import replace
from generator.rules.flags.parser import Parser, first_later, of_other_versions, others
from generator.rules.registry import Fault, to_remove
from generator.settings.values import Argument, whole
from generator.sitefile.source import Plain
from generator.sitefile.text_types import before_comment

Judged = tuple[str, Fault]
# A word in a value, and its place.
ValueItem = tuple[str, KeyPath]

_YES, _NO = ("1", "yes", "on", "y", "enable", "enabled"), ("0", "no", "off", "n", "disabled")
_INTEGER = r"[+-]?\d+"
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf"
# Words that argparse takes as a flag where it expects a value.
_LIKE_A_FLAG = r"-(?!\d*\.?\d+$)[^ ]+"
# The longest help text, in characters, that people still read.
_READABLE = 240
_WANTED = {"int": "a whole number", "float": "a number"}
_SHOWN = {"int": "NUMBER", "float": "NUMBER", "json": "{KEY: VALUE}"}


def value_fault(
    name: str, value: Argument, found: ResolvedFlag, parser: Parser, is_any_choice: bool = False
) -> Judged | None:
    """The first fault of an entry of `engine.args`, or None.

    With `is_any_choice`, the catalog does not know all values of the flag.
    """
    path: KeyPath = ("engine", "args", name)
    flag = replace(found.flag, also=(ANY,)) if is_any_choice else found.flag
    found = replace(found, flag=flag)
    verdict = next(_faults(name, value, path, found, parser), None)
    if verdict and isinstance(value, str) and (meant := before_comment(value)) != value:
        argument = _argument(meant)
        if next(_faults(name, argument, path, found, parser), None) is None:
            right = replacements(path, [argument])
            help_text = f"write '{name}: {meant}': a comment begins with a space and '#'"
            return verdict[0], replace(verdict[1], help=help_text, proposals=right)
    return verdict


def _argument(text: str) -> str | bool:
    meaning = Plain(text).meaning()
    return meaning if isinstance(meaning, bool) else text


def _faults(
    name: str, value: Argument, path: KeyPath, found: ResolvedFlag, parser: Parser
) -> Iterator[Judged]:
    flag = found.flag
    if found.key:
        yield from _keys(name, [found.key.partition(".")[0]], path, flag)
    elif flag.type == "switch":
        yield from _switch(name, value, path, found)
    elif isinstance(value, bool):
        yield from _without_value(name, value, path, flag)
    elif flag.type == "json":
        yield from _json(name, value, path, flag)
    else:
        yield from _shape(name, value, path, flag)
        if not isinstance(value, dict):
            items = list(_items(value, path, flag))
            yield from _types(name, items, flag, parser)
            yield from choice_faults(flag, items, parser)


def _switch(name: str, value: Argument, path: KeyPath, found: ResolvedFlag) -> Iterator[Judged]:
    """True or false only, and false only if the engine has a negation of the flag."""
    plain = found.flag.name
    if value is False and found.is_off:
        message = f"'{name}: false' is a double negative, and may mean on or off"
        yield "SG639", Fault(message, path, f"write '{plain}: true'")
    elif value is False and not found.flag.off:
        message = f"'{name}' has no negation: it is off unless it is given"
        yield "SG639", to_remove(message, path)
    elif not isinstance(value, bool):
        meant = "false" if isinstance(value, str) and _is_no(value) else "true"
        help_text = "remove it" if meant == "false" and not found.flag.off else ""
        message = f"'{name}' is a switch, and takes no value"
        sure = not help_text and isinstance(value, str) and _is_truth(value)
        proposals = replacements(path, [meant == "true"] if sure else [])
        help_text = help_text or f"write '{name}: {meant}'"
        yield "SG639", Fault(message, path, help_text, proposals=proposals)


def _is_no(value: str) -> bool:
    return value.lower() in _NO or sorted(value.lower()) == sorted("false")


def _is_truth(value: str) -> bool:
    """Whether a word means true or false, in other common words or with letters transposed."""
    word = value.lower()
    words = ("true", "false")
    return word in (*_NO, "yes", "on", "1") or sorted(word) in [sorted(known) for known in words]


def _without_value(name: str, value: bool, path: KeyPath, flag: Flag) -> Iterator[Judged]:
    """True or false instead of a value, which few flags accept."""
    word = json.dumps(value)
    if flag.words or (flag.optional and value):
        return
    known = flag.choices or flag.known
    help_text = _one_of(known) if known else f"write '{name}: {_SHOWN.get(flag.type, 'TEXT')}'"
    yield "SG639", Fault(f"'{name}' takes a value, not {word}", path, help_text)


def _json(name: str, value: Argument, path: KeyPath, flag: Flag) -> Iterator[Judged]:
    """JSON as text, or a mapping or list that becomes JSON."""
    read: Any = value
    if isinstance(value, str):
        # Quotes of a shell within those of YAML are part of the text.
        is_text = not value.lstrip(" '\"").startswith(("{", "["))
        if value in flag.also or (ANY in flag.also and is_text):
            return
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            message = f"'{name}' takes JSON, not '{value}'"
            yield "SG636", Fault(message, path, f"write '{name}: {{KEY: VALUE}}'")
            return
    if isinstance(read, dict):
        yield from _keys(name, read, path, flag, in_mapping=isinstance(value, dict))
    elif flag.fields:
        message = f"'{name}' takes a mapping"
        yield "SG640", Fault(message, path, f"write '{name}: {{{flag.fields[0]}: VALUE}}'")


def _keys(
    name: str, keys: Iterable[str], path: KeyPath, flag: Flag, in_mapping: bool = False
) -> Iterator[Judged]:
    """The keys of a JSON flag are those of the engine's own class."""
    for key in keys if flag.fields else ():
        if key not in flag.fields:
            place = (*path, key) if in_mapping else path
            help_text = did_you_mean(key, flag.fields) or _one_of(flag.fields)
            message = f"'{flag.name}' has no key '{key}'"
            yield "SG641", Fault(message, place, help_text, at_key=True)


def _shape(name: str, value: Argument, path: KeyPath, flag: Flag) -> Iterator[Judged]:
    """A single value, a list of the right length, or a mapping if the engine may read one."""
    if isinstance(value, dict):
        if flag.type != "text" or flag.choices or flag.known or flag.many:
            yield "SG640", Fault(f"'{name}' takes no mapping", path, _instead(name, flag))
    elif isinstance(value, list):
        yield from _list(name, value, path, flag)
    elif flag.many.isdigit():
        message = f"'{name}' takes {flag.many} values"
        yield "SG640", Fault(message, path, f"write a list of {flag.many}")


def _list(name: str, value: list[Any], path: KeyPath, flag: Flag) -> Iterator[Judged]:
    if not flag.many:
        yield "SG640", Fault(f"'{name}' takes one value, not a list", path, _instead(name, flag))
    elif flag.many.isdigit() and len(value) != int(flag.many):
        message = f"'{name}' takes {flag.many} values, and here are {len(value)}"
        yield "SG640", Fault(message, path, f"write a list of {flag.many}")
    elif not value and flag.many != "*":
        yield "SG640", Fault(f"'{name}' takes at least one value", path, "remove it")
    elif flag.many in ("+", "*"):
        for index, item in enumerate(value):
            if isinstance(item, str) and re.fullmatch(_LIKE_A_FLAG, item):
                message = f"the engine would read '{item}' as a flag of its own"
                place = (*path, index)
                yield "SG640", Fault(message, place, f"remove it from the values of '{name}'")


def _instead(name: str, flag: Flag) -> str:
    word = _SHOWN.get(flag.type, "TEXT")
    return f"write '{name}: [{word}, ...]'" if flag.many else f"write '{name}: {word}'"


def _items(value: str | list[Any], path: KeyPath, flag: Flag) -> Iterator[ValueItem]:
    """The words of a value, each with its place."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield (item if isinstance(item, str) else json.dumps(item)), (*path, index)
    elif flag.many == "comma":
        yield from ((item, path) for item in value.split(","))
    else:
        yield value, path


def _types(name: str, items: Iterable[ValueItem], flag: Flag, parser: Parser) -> Iterator[Judged]:
    is_iec = "iec" in parser.catalog.traits
    for item, place in items:
        if not _fits(item, flag, is_iec):
            message = f"'{name}' takes {_WANTED[flag.type]}, not '{item}'"
            digits = re.sub(r"[ ,_']", "", item)
            instead = f"write {digits}" if _fits(digits, flag, is_iec) else _instead(name, flag)
            yield "SG636", Fault(message, place, instead)


def _fits(item: str, flag: Flag, is_iec: bool) -> bool:
    if flag.type not in _WANTED or item in flag.also or ANY in flag.also:
        return True
    if flag.suffixes:
        return whole(item, is_iec) is not None
    return re.fullmatch(_INTEGER if flag.type == "int" else _NUMBER, item) is not None


def choice_faults(flag: Flag, items: Iterable[ValueItem], parser: Parser) -> Iterator[Judged]:
    """Values that the engine does not accept, or is not known to accept."""
    known = flag.choices or flag.known
    for item, place in items:
        if known and not _is_taken(item, flag):
            yield _choice(flag, item, place, known, parser)


def _is_taken(item: str, flag: Flag) -> bool:
    if item in flag.choices or item in flag.known or item in flag.also or ANY in flag.also:
        return True
    folded = {word.lower() for word in (*flag.choices, *flag.known)} if flag.folded else set()
    return item.lower() in folded or item.lower().replace("-", "_") in folded


def _choice(
    flag: Flag, item: str, place: KeyPath, known: tuple[str, ...], parser: Parser
) -> Judged:
    message = f"{parser.name} has no '{item}' for '{flag.name}'"
    instead = replacement(parser.engine, f"{flag.names[0]}={item}")
    own = next((word for word in known if _folded(word) == _folded(item)), None)
    alike = _nearest(item, known, flag)
    near = [instead.word] if instead else [own] if own else misspelt(item, alike)
    # In a list written as text, each item has the place of the whole text.
    whole = flag.many != "comma"
    proposals = replacements(place, filter(None, near)) if whole else ()
    owners = [other.title for other in others(parser.engine) if _has_parser(other, flag, item)]
    holding = [v.version for v in of_other_versions(parser.catalog) if _takes(v, flag, item)]
    if later := first_later(parser, holding, None):
        return "SG637", Fault(f"{message} yet: {later} has it", place, _one_of(known))
    if instead:
        help_text = instead.instead
    elif own:
        help_text = f"did you mean '{own}'?"
    else:
        help_text = f"did you mean {listed(map(repr, alike))}?" if alike else _one_of(known)
    if owners:
        message = f"'{item}' is a parser of {listed(owners, 'and')}, not of {parser.name}"
        return "SG643", Fault(message, place, help_text, proposals=proposals)
    if instead or flag.choices:
        return "SG637", Fault(message, place, help_text, proposals=proposals)
    message = message.replace("has no", "is not known to have")
    return "SG638", Fault(message, place, help_text, proposals=proposals)


def _takes(known: FlagCatalog, flag: Flag, item: str) -> bool:
    """Whether a release has a flag that takes a value."""
    found = known.find(flag.name)
    return found is not None and item in (*found.flag.choices, *found.flag.known)


def _nearest(item: str, known: tuple[str, ...], flag: Flag) -> list[str]:
    """The nearest words, ignoring case if none is near in the case as written."""
    if near := all_nearest(item, known):
        return near
    lower = {word.lower(): word for word in known}
    near = all_nearest(item.lower(), lower)
    # If case does not matter, keep the lower case that the user wrote.
    return near if item.islower() and flag.folded else [lower[word] for word in near]


def _one_of(known: tuple[str, ...]) -> str:
    """As many of the words as people read."""
    text = f"write {listed(known)}"
    return text if len(text) <= _READABLE else f"{text[:_READABLE].rpartition(',')[0]}, ..."


def _has_parser(other: Parser, flag: Flag, item: str) -> bool:
    """Whether another engine has a parser of that name for the same purpose."""
    kind = _kind(flag)
    return kind != "" and any(
        item in (*its.choices, *its.known) for its in other.catalog.flags() if _kind(its) == kind
    )


def _kind(flag: Flag) -> str:
    found = re.fullmatch(r"(tool|reasoning)[-_](call[-_])?parser", flag.name)
    return found[1] if found else ""


def _folded(word: str) -> str:
    return re.sub(r"[-_.]", "", word.lower())
