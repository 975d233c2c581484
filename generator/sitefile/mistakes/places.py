"""Keys and blocks in the wrong place: under another key, in no section, or without a dash."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import catalogs
from generator.diagnostics import (
    Add,
    Finding,
    KeyPath,
    Proposal,
    Remove,
    Rename,
    Replace,
    Rewrite,
    Span,
    all_nearest,
    listed,
    misspelt,
    reading_error,
    renamings,
)
from generator.grouping import grouped
from generator.records import replace
from generator.sitefile.key_rules import (
    keys_at,
    keys_of,
    place_name,
    rules_at,
    section_of,
    types_of,
)
from generator.sitefile.mistakes import other_words
from generator.sitefile.mistakes.faults import SchemaFault, SchemaFaults, typed_at
from generator.sitefile.mistakes.indentation import bullets, marks
from generator.sitefile.mistakes.single import finding_of
from generator.sitefile.mistakes.slips import is_content, width
from generator.sitefile.sections import GROUPS, SECTIONS, SERVED
from generator.sitefile.source import Plain, value_at
from generator.sitefile.validation import is_valid, takes

Corrected = Iterator[tuple[Finding, Proposal]]
_MOST_KEYS = 40


def _finding(rule: str, message: str, help_text: str, path: KeyPath, **more: Any) -> Finding:
    return reading_error(rule, message, path, at_key=True, help=help_text, **more)


def entry_without_dash(faults: SchemaFaults) -> Corrected:
    """A list entry that has all keys of the next entry too: the dash between them is missing."""
    for entry in dict.fromkeys(f.path[:2] for f in faults.twice if len(f.path) == 3):
        own = [f for f in faults.twice if f.path[:2] == entry]
        first = min((f.span for f in own if f.span), default=None)
        data = faults.data.get(str(entry[0]))
        if (
            first is None
            or first.file
            or not isinstance(data, list)
            or not isinstance(entry[1], int)
        ):
            continue
        line = faults.lines[first.line]
        key, before = line[first.column : first.end_column], line[: first.column]
        is_first = key == next(iter(data[entry[1]])) and not before.strip() and len(before) > 1
        if is_first and not _is_line_twice(faults.lines, first):
            edits = (Rewrite(Span(first.line, first.column - 2, first.line, first.column), "- "),)
            message = f"an entry of '{entry[0]}' without its '-'"
            text, path = f"write '- {key}: ...'", (*entry, key)
            yield _finding("SG003", message, text, path, span=first, proposals=(edits,)), edits


def _is_line_twice(lines: list[str], span: Span) -> bool:
    """Whether the same line appears above, so that it was copied by mistake."""
    text = lines[span.line].strip()
    # The first line of a block is the same in every entry.
    return not text.endswith(":") and any(
        line.strip().removeprefix("- ") == text for line in lines[: span.line]
    )


def dash_without_space(faults: SchemaFaults) -> Corrected:
    """The only entry of a list, or one at the margin, whose dash became part of its first key."""
    for section in SECTIONS:
        own = faults.data.get(section)
        first = str(next(iter(own), "")) if isinstance(own, dict) else ""
        paths: list[KeyPath] = [(section, first)] if first.startswith("-") else []
        if isinstance(own, list):
            paths += [(key,) for key in faults.data if str(key).startswith("-")]
        for path in paths:
            key, span = str(path[-1])[1:], faults.document.locate(path, at_key=True)
            if span and "list" in types_of(rules_at((section,))) and key in keys_at((section, 0)):
                behind = Span(span.line, span.column + 1, span.line, span.column + 1)
                edits = (Rewrite(behind, " "),)
                message, text = "a '-' without a space after it", f"write '- {key}: ...'"
                more = {"span": span, "proposals": (edits,)}
                yield _finding("SG101", message, text, (section,), **more), edits


def lost_head(faults: SchemaFaults) -> Corrected:
    """Keys of a block whose own key is missing above them, so that they are another one's."""
    if faults.document.parts:
        # The order of lines shows what was meant, and a site of two files has no such order.
        return
    for mapping, keys in _by_mapping(faults).items():
        for end in range(len(mapping), -1, -1):
            around = mapping[:end]
            here = value_at(faults.data, around)
            for head in keys_at(around) if isinstance(here, dict) else ():
                if mapping == around and "list" in types_of(rules_at((*around, head))):
                    # The keys of a mapping are no entries of a list.
                    continue
                own = [
                    key
                    for key in keys
                    if _belongs(key, (*around, head), faults, value_at(here, (key,)))
                ]
                if head not in here and _are_enough(own, (*around, head), faults):
                    yield from _with_head(faults, mapping, own, around, head)


def _by_mapping(faults: SchemaFaults) -> dict[KeyPath, list[str]]:
    """The keys of each mapping that may belong elsewhere."""
    values = (f for f in faults.of("allowed", "check_with", "type") if f.path)
    # With a word processor's quotes around it, a value is not another key's.
    paths = [*faults.strays, *(f.path for f in values if str(f.value).isascii())]
    return grouped((p[:-1], p[-1]) for p in paths[:_MOST_KEYS] if isinstance(p[-1], str))


def _entry_keys(path: KeyPath) -> Mapping[str, Any]:
    """The rules of the keys in a mapping, or in a list's entries."""
    rules = rules_at((*path, 0)) if "list" in types_of(rules_at(path)) else rules_at(path)
    return keys_of(rules)


def _belongs(key: str, head: KeyPath, faults: SchemaFaults, value: Any = None) -> bool:
    if key in _entry_keys(head):
        return True
    if isinstance(value, dict) and is_valid((*head, key), value):
        return True
    if head[-2:] == ("engine", "args"):
        return bool(_flag(key, head[:-2], faults))
    return head[-1] == "env" and key.isupper()


def _are_enough(keys: list[str], head: KeyPath, faults: SchemaFaults) -> bool:
    """Whether keys make a block: all that it requires, several, or the only one that is lost."""
    known = _entry_keys(head)
    needed = {key for key, rules in known.items() if rules.get("required")}
    if not keys or (needed and not needed <= {*keys} and len(keys) < 2):
        return False
    if needed or len(keys) > 1:
        return True
    lost = [name for name in SECTIONS if name not in faults.data]
    wanted = [name for name in lost if rules_at((name,)).get("required")] or lost
    return len(head) == 1 and wanted == [head[0]]


def _with_head(
    faults: SchemaFaults, mapping: KeyPath, keys: list[str], around: KeyPath, head: str
) -> Corrected:
    lines, is_list = faults.lines, "list" in types_of(rules_at((*around, head)))
    entry = faults.document.locate(mapping) if is_list and mapping != around else None
    spans = {
        span.line: (span, key)
        for key in keys
        for span in (
            faults.document.locate((*mapping, key), at_key=True),
            *(f.span for f in faults.twice if f.path == (*mapping, key)),
        )
        if span and not lines[span.line][: span.column].strip(" -{")
    }
    if entry and not entry.file:
        # All of the entry is one of the list, also what any entry may have.
        spans = {entry.line: (entry, keys[0])}
    beside = next(iter(value_at(faults.data, around)), "")
    margin = faults.document.locate((*around, beside), at_key=True)
    if not spans or margin is None:
        return
    twice = [f.span.line for f in faults.twice if f.span and f.span.line in spans]
    line = min(twice or spans)
    span, key = spans[line]
    edits: tuple[Rewrite, ...] = (
        Rewrite(Span(line, 0, line, 0), f"{' ' * margin.column}{head}:\n"),
    )
    if mapping == around:
        last = max(_end(lines, number) for number in spans)
        inside = [n for n in range(line, last) if is_content(lines[n])]
        # The first line gets both the key and its indentation.
        edits = tuple(Rewrite(Span(n, 0, n, 0), "  ") for n in inside if n != line)
        edits += (Rewrite(Span(line, 0, line, 0), f"{' ' * margin.column}{head}:\n  "),)
    elif span.column < margin.column or (span.column == margin.column and "- " not in lines[line]):
        return
    finding = _finding(
        "SG102",
        f"the key '{head}' is missing above its content",
        f"write '{head}:' on a line of its own before this one",
        (*mapping, key),
        span=Span(line, 0, line, 1),
        proposals=(edits,),
        # Among flags and variables any name is right, so the block may begin above.
        unsafe=mapping[-1:] in (("env",), ("args",)),
    )
    yield finding, edits


def outdented(faults: SchemaFaults) -> Corrected:
    """Keys of an empty section, in the same column below it."""
    for fault in faults.of("nullable"):
        around, head = fault.path[:-1], str(fault.path[-1])
        here = value_at(faults.data, around)
        keys = list(here) if isinstance(here, dict) else []
        known = _entry_keys(fault.path)
        at = keys.index(head) + 1 if head in keys else len(keys)
        own = [key for key in keys[at:] if (*around, key) in faults.strays]
        # A dash may have no space after it.
        own = [k for k in own if k.removeprefix("-") in known or _belongs(k, fault.path, faults)]
        if not own or keys[at] != own[0]:
            continue
        places = [faults.document.locate((*around, key), at_key=True) for key in own]
        spans = [span for span in places if span and not span.file]
        numbers = [n for s in spans for n in range(s.line, _end(faults.lines, s.line))]
        if not spans:
            continue
        edits = tuple(_indented(faults.lines, n) for n in dict.fromkeys(numbers))
        message = f"'{own[0]}' is beside '{head}', not under it"
        text = "indent the line by 2 spaces"
        if own[0].startswith("-"):
            message, text = "a '-' without a space after it", "write '- ' before every entry"
        finding = _finding("SG101", message, text, fault.path, span=spans[0], proposals=(edits,))
        yield finding, edits


def _indented(lines: list[str], number: int) -> Rewrite:
    """A line indented under its section: by two spaces, or after its dash by one."""
    is_entry = re.match(r"-\S", lines[number]) is not None
    return Rewrite(Span(number, int(is_entry), number, int(is_entry)), " " if is_entry else "  ")


def _end(lines: list[str], first: int) -> int:
    """The line after a key and its content."""
    own, dash = width(lines[first]), "- " in lines[first][: width(lines[first]) + 2]
    below = (n for n in range(first + 1, len(lines)) if is_content(lines[n]))
    return next((n for n in below if width(lines[n]) <= own + 2 * dash), len(lines))


def twice_nested(faults: SchemaFaults) -> Corrected:
    """A block that stands under a key of its own name."""
    paths = [fault.path for fault in faults.of("type", "check_with")]
    # An entry of a list may have the list's name in it once more.
    paths += [(*path[:-1], path[-2]) for path in paths if isinstance(path[-1], int)]
    paths += [path[:-1] for path in faults.strays if path[:-1]]
    for path in dict.fromkeys((*faults.strays, *paths)):
        around = value_at(faults.data, path[:-1])
        inner = value_at(around[0] if isinstance(around, list) else around, path[-1:])
        if len(path) > 1 and path[-1] == path[-2] and isinstance(inner, dict | list):
            message = f"'{path[-1]}' is written twice, one below the other"
            place = (*path[:-1], 0, path[-1]) if isinstance(around, list) else path
            finding = _finding("SG101", message, f"remove one '{path[-1]}:'", place)
            yield finding, (Replace(path[:-1], inner),)


def nested(faults: SchemaFaults) -> Corrected:
    """A key that is indented under another one, or written into an entry of a list."""
    for path in faults.strays:
        for end in range(len(path) - 2, -1, -1):
            there = (*path[:end], path[-1])
            around = value_at(faults.data, there[:-1])
            if not isinstance(around, dict) or path[-1] not in keys_at(there[:-1]):
                continue
            value = value_at(faults.data, path)
            if path[-1] in around or not takes(there, value):
                continue
            edits = _dedented(faults, path) if end == 0 else ()
            column = f"write '{path[-1]}:' at the margin, and its lines below it"
            text = column if end == 0 else f"write it beside '{path[end]}'"
            message = f"'{path[-1]}' is under {place_name(path[:-1])}, not beside it"
            proposals = (edits,) if edits else ()
            move: Proposal = (Remove(path), Add(there, value))
            yield _finding("SG101", message, text, path, proposals=proposals), move
            break


def _dedented(faults: SchemaFaults, path: KeyPath) -> tuple[Rewrite, ...]:
    """A block moved to the margin, if nothing below it would change its place with it."""
    span = faults.document.locate(path, at_key=True)
    if span is None or span.file:
        return ()
    lines, column = faults.lines, span.column
    end = _end(lines, span.line)
    below = next((line for line in lines[end:] if is_content(line)), "")
    if lines[span.line][:column].strip() or (below and width(below)):
        return ()
    inside = [n for n in range(span.line, end) if lines[n][:column].isspace()]
    return tuple(Rewrite(Span(n, 0, n, column), "") for n in inside)


def moved(faults: SchemaFaults) -> Corrected:
    """A key that one mapping has needlessly, while another one that requires it has none."""
    for path in (*faults.strays, *_among_names(faults)):
        key = str(path[-1])
        homes = [place for place, names in faults.missing.items() if key in names]
        is_twice = faults.second(path) is not None
        homes += [f.path for f in faults.of("nullable") if key in _entry_keys(f.path)]
        homes += [(s,) for s in SECTIONS if _lacks(faults, s, key, is_twice)]
        for place in dict.fromkeys(home for home in homes if home != path[:-1] and home):
            there, first = (*place, key), value_at(faults.data, path)
            ways = [(first, faults.second(path)), (faults.second(path), first)]
            ways = [way for way in ways if way[0] is not None and takes(there, way[0])]
            if len(ways) > 1:
                # The second one is the newcomer, unless only the first one can go.
                ways = [way for way in reversed(ways) if is_valid(path, way[1])]
            for value, _ in ways:
                again = value is not first
                edits = (Remove(path, again=bool(again)), Add(there, typed_at(there, value)))
                spans = [f.span for f in faults.twice if f.path == path]
                shown = f"{key}: {value}" if isinstance(value, str) else key
                whole = place_name(path[:-1]) if path[:-1] else "the site"
                message = f"'{shown}' is under {whole}, and {place_name(place)} has no '{key}'"
                proposals = (edits,) if len(ways) == 1 else ()
                more = {"span": spans[0] if again and spans else None, "proposals": proposals}
                finding = _finding(
                    "SG101", message, f"write it under {place_name(place)}", path, **more
                )
                yield finding, (edits[0], Add(there, value))


def _among_names(faults: SchemaFaults) -> Iterator[KeyPath]:
    """Keys that another mapping lacks where any name is right: among flags, variables, switches."""
    wanted = {name for names in faults.missing.values() for name in names}
    wanted |= {key for fault in faults.of("nullable") for key in _entry_keys(fault.path)}
    for path in _keys_below((), faults.data) if wanted else ():
        around = (path[:end] for end in range(1, len(path)))
        if path[-1] in wanted and any("valuesrules" in rules_at(place) for place in around):
            yield path


def _keys_below(place: KeyPath, data: Any) -> Iterator[KeyPath]:
    entries = enumerate(data) if isinstance(data, list) else ()
    for key, value in data.items() if isinstance(data, dict) else entries:
        yield from ((*place, key), *_keys_below((*place, key), value))


def _around(faults: SchemaFaults) -> list[KeyPath]:
    """The groups and the site itself, which may have an engine."""
    groups = faults.data.get(GROUPS)
    return [*((GROUPS, n) for n in range(len(groups) if isinstance(groups, list) else 0)), ()]


def beside_groups(faults: SchemaFaults) -> Corrected:
    """A model and engine at the margin, and groups that have none of their own."""
    groups, own = faults.data.get(GROUPS), [key for key in SERVED if key in faults.data]
    if not own or not isinstance(groups, list) or not all(isinstance(g, dict) for g in groups):
        return
    numbers = [n for n, group in enumerate(groups) if not {*own, "same_as"} & set(group)]
    lacking = [(GROUPS, n, key) for n in numbers for key in own]
    if lacking:
        edits: Proposal = tuple(Remove((key,)) for key in own)
        edits += tuple(Add(place, faults.data[str(place[-1])]) for place in lacking)
        names = listed(map(repr, own), "and")
        text = "move them into each group, or remove 'groups' to serve one model on all nodes"
        if len(numbers) < len(groups):
            text = f"move them into {listed((place_name((GROUPS, n)) for n in numbers), 'and')}"
        message = f"{names} at the top can't be combined with 'groups': each group needs its own"
        # In several groups each would be there more than once.
        proposals = (edits,) if len(groups) == 1 else ()
        yield _finding("SG109", message, text, (own[0],), proposals=proposals, unsafe=True), edits


def _lacks(faults: SchemaFaults, section: str, key: str, is_twice: bool) -> bool:
    """Whether a section may take a key: an empty one, or any if the key is written twice."""
    own, rules = faults.data.get(section, ""), _entry_keys((section,)).get(key)
    if section not in faults.data or rules is None:
        return False
    if own is None or (isinstance(own, Plain) and own.is_null):
        return True
    if not isinstance(own, dict) or key in own:
        return False
    known = _entry_keys((section,))
    rivals = [
        name for name, its in known.items() if key in types_of({"type": its.get("excludes", ())})
    ]
    # One of those that exclude each other is needed.
    is_needed = bool(rivals) and not any(rival in own for rival in rivals)
    return is_needed or (is_twice and not rivals)


def of_the_engine(faults: SchemaFaults) -> Corrected:
    """Flags of the engine, and variables, that are neither under 'args' nor under 'env'."""
    arounds = _around(faults)
    misnamed = {fault.path: fault for fault in faults.of("check_with") if fault.of_name}
    for path in [*faults.strays, *misnamed][:_MOST_KEYS]:
        if path[-2:-1] == ("args",):
            continue
        around = next(around for around in arounds if path[: len(around)] == around)
        if not isinstance(value_at(faults.data, (*around, "engine")), dict):
            continue
        key, value = str(path[-1]), value_at(faults.data, path)
        flag = _flag(key, around, faults, path[:-1])
        name = flag or (key if _is_variable(key, path[:-1]) else "")
        home = "args" if flag else "env"
        there = (*around, "engine", home, name)
        if not name or value_at(faults.data, there) is not None:
            continue
        what = "a flag of the engine" if flag else "a variable"
        under = f"under {place_name(path[:-1])}" if path[:-1] else "at the margin"
        message, text = f"'{key}' is {what}, {under}", f"write '{name}' under '{home}' of 'engine'"
        is_fit = is_valid(there, value)
        proposals = ((Remove(path), Add(there, typed_at(there, value))),) if is_fit else ()
        # A plain word may be another tool's.
        more = {"unsafe": name.isalpha(), "proposals": proposals}
        edits = (Remove(path), Add(there, value)) if is_fit else (Remove(path),)
        yield _finding("SG101", message, text, path, **more), edits


def _is_variable(key: str, place: KeyPath) -> bool:
    is_word = re.fullmatch(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+", key) is not None
    return is_word and not all_nearest(key.lower(), keys_at(place))


def _flag(key: str, around: KeyPath, faults: SchemaFaults, place: KeyPath = ()) -> str:
    """The flag that a key is, unless it is another name of a key at the place."""
    engine = value_at(faults.data, (*around, "engine"))
    engine_name, version = value_at(engine, ("name",)), value_at(engine, ("version",))
    if engine_name not in ENGINE_TRAITS or not isinstance(version, str):
        return ""
    name, here = key.lstrip("-"), keys_at(place)
    plain = name.replace("-", "_")
    if not name.islower() or plain in here or other_words.meant(name, here):
        return ""
    if place and misspelt(plain, all_nearest(plain, here)):
        return ""
    if other_words.elsewhere(name) or other_words.of(name) or section_of(name, place):
        return ""
    known = catalogs(engine_name, version)
    return name if known and known[0].find(name) else ""


def named_otherwise(faults: SchemaFaults) -> Corrected:
    """A missing key, and a key beside it that is unknown, or has a wrong value, and takes its."""
    for place, names in faults.missing.items():
        own = [f for f in faults.of("unknown", "type") if f.path[:-1] == place]
        for fault in own[:_MOST_KEYS]:
            for name in names:
                if takes((*place, name), fault.value) and _may_be_named(fault, name):
                    yield _named(fault, name), (Rename(fault.path, name),)


def _named(fault: SchemaFault, name: str) -> Finding:
    rules, key = rules_at((*fault.path[:-1], name)), fault.path[-1]
    # Any text would do.
    is_open = isinstance(fault.value, str) and not {"check_with", "allowed"} & rules.keys()
    message = f"unknown key '{key}', and '{name}' is missing"
    if fault.kind != "unknown":
        message = f"'{key}' is written, and '{name}' is missing"
    if fault.value == name:
        return _finding("SG101", message, f"did you mean '{name}: {key}'?", fault.path)
    proposals = () if is_open else renamings(fault.path, [name])
    return _finding("SG101", message, f"did you mean '{name}'?", fault.path, proposals=proposals)


def _may_be_named(fault: SchemaFault, name: str) -> bool:
    """Whether a key may be a missing one: it has its choice, or no meaning of its own."""
    key, place = str(fault.path[-1]), fault.path[:-1]
    if fault.kind != "unknown":
        return True
    if "allowed" in rules_at((*place, name)):
        return is_valid((*place, name), fault.value)
    known = keys_at(place)
    near = misspelt(key, all_nearest(key, known))
    is_near = any(takes((*place, one), fault.value) for one in near)
    # No other text has the form of a version.
    is_other = bool(other_words.of(key)) and rules_at((*place, name)).get("check_with") != "version"
    return not (is_near or is_other or other_words.meant(key, known) or section_of(key, place))


def below_one_key(faults: SchemaFaults) -> Corrected:
    """A whole site below a key of its own, as other programs have it, and their keys beside it."""
    others = [fault.path for fault in faults.of("unknown") if len(fault.path) == 1]
    for path in others:
        inner = value_at(faults.data, path)
        known = [key for key in inner if key in keys_at(())] if isinstance(inner, dict) else []
        if "nodes" not in known or set(known) & faults.data.keys():
            continue
        # What the site lacks may be below another of them: the name in 'metadata'.
        held = [value_at(faults.data, other) for other in others if other != path]
        found = {key: own[key] for own in held if isinstance(own, dict) for key in own}
        found = {key: value for key, value in found.items() if key in keys_at(())}
        found = {**found, **{key: inner[key] for key in known}}
        added = (Add((key,), value) for key, value in found.items())
        edits: Proposal = (*map(Remove, others), *added)
        message = f"the site is under '{path[0]}', not at the margin"
        text = f"remove '{path[0]}:', and unindent what is under it"
        if rest := [repr(other[0]) for other in others if other != path]:
            text += f"; {listed(rest, 'and')} at the margin are not keys of a site file"
        yield _finding("SG101", message, text, path), edits


def name_as_key(faults: SchemaFaults) -> Corrected:
    """An entry of a list that has its name as its first key: `- spark1:`."""
    for fault in (f for f in faults.of("unknown") if "name" in faults.missing.get(f.path[:-1], ())):
        place, name, value = fault.path[:-1], str(fault.path[-1]), fault.value
        near = misspelt(name, all_nearest(name, keys_at(place)))
        inner = {} if value is None or (isinstance(value, Plain) and value.is_null) else value
        is_name = isinstance(inner, dict) and is_valid((*place, "name"), name)
        if near or not is_name or not place or not isinstance(place[-1], int):
            continue
        span, text = faults.document.locate(fault.path, at_key=True), f"name: {name}"
        whole = span and replace(span, end_column=span.end_column + 1)
        # What is below the name is in another column than the keys beside it.
        proposals = ((Rewrite(whole, text),),) if whole and not whole.file and not inner else ()
        message = f"the name of {place_name(place)} is a key"
        text = f"write '- {text}'" + (", and what is below it in its column" if inner else "")
        finding = _finding("SG101", message, text, place, proposals=proposals)
        added = (Add((*place, key), value) for key, value in inner.items())
        yield finding, (Add((*place, "name"), name), *added, Remove(fault.path))


def dotted(faults: SchemaFaults) -> Corrected:
    """A key with those around it in one word: `engine.version`."""
    for path in (fault.path for fault in faults.of("unknown") if "." in str(fault.path[-1])):
        *around, key = str(path[-1]).split(".")
        place = (*path[:-1], *around) if path[:-1] != tuple(around) else path[:-1]
        value, there = value_at(faults.data, path), (*place, key)
        if not takes(there, value) or value_at(faults.data, there) is not None:
            continue
        edits = (Remove(path), Add(there, typed_at(there, value)))
        text = f"write '{key}: ...' under {place_name(place)}"
        message = f"'{path[-1]}' is a path, not a key"
        yield _finding("SG101", message, text, path, proposals=(edits,)), edits


def of_another_list(faults: SchemaFaults) -> Corrected:
    """An entry of a list that is one of another list."""
    entries = dict.fromkeys(f.path[:2] for f in faults.of("unknown") if len(f.path) > 2)
    for path in entries:
        entry = value_at(faults.data, path)
        lists = (*SECTIONS, GROUPS) if isinstance(entry, dict) and isinstance(path[1], int) else ()
        for section in lists:
            held, takes_entries = faults.data.get(section), "list" in types_of(rules_at((section,)))
            there = (section, len(held) if isinstance(held, list) and takes_entries else -1)
            if there[1] >= 0 and section != path[0] and is_valid(there, entry):
                message = f"{place_name(path)} is one of '{section}'"
                edits = (Remove(path), Add(there, typed_at(there, entry)))
                finding = _finding("SG101", message, f"write it under '{section}'", path)
                # The order of the entries may matter.
                yield replace(finding, proposals=(edits,), unsafe=True), edits


def behind_a_mark(faults: SchemaFaults) -> Corrected:
    """A line with what a diff, a terminal or another list writes before it."""
    for path in (fault.path for fault in faults.of("unknown")):
        span = faults.document.locate(path, at_key=True)
        for find in (bullets, marks) if span and not span.file else ():
            for slip in find(faults.lines, span.line if span else 0):
                finding = _finding("SG101", slip.message, slip.help, path, span=slip.span)
                yield replace(finding, proposals=(slip.edits,), unsafe=slip.unsafe), slip.edits


def of_another_program(faults: SchemaFaults) -> Corrected:
    """Keys below one another at the margin that no site has: another program's file."""
    unknown = {fault.path[-1]: fault for fault in faults.of("unknown") if len(fault.path) == 1}
    run: list[KeyPath] = []
    for key in (*[*faults.data][:_MOST_KEYS], None):
        fault = unknown.get(key or "")
        is_ours = _flag(str(key), (), faults) or _is_variable(str(key), ())
        own = finding_of(fault, faults).proposals if fault and not is_ours else ()
        if fault and not is_ours and own in ((), ((Remove(fault.path),),)):
            run.append(fault.path)
            continue
        if len(run) > 1:
            names = listed((f"'{path[0]}'" for path in run), "and")
            message = f"{names} are not keys of a site file"
            text = "remove them, or write what they say under the keys of a site"
            yield _finding("SG101", message, text, run[0]), tuple(map(Remove, run))
        run = []


def one_by_one(faults: SchemaFaults) -> Corrected:
    """The entries of a missing list, each under a name of its own: `from` and `to`."""
    for place, names in faults.missing.items():
        own = [f for f in faults.of("unknown") if f.path[:-1] == place]
        for name in names:
            parts = [f for f in own if other_words.meant(str(f.path[-1]), [name])]
            entries = [value_at(faults.data, f.path) for f in parts]
            if len(parts) > 1 and is_valid((*place, name), entries):
                shown = f"{name}: [{', '.join(map(str, entries))}]"
                keys = listed((repr(f.path[-1]) for f in parts), "and")
                message = f"{keys} are entries of '{name}', which is missing"
                finding = _finding("SG101", message, f"write '{shown}'", parts[0].path)
                # Added first: an entry without keys would be gone.
                added = Add((*place, name), entries)
                yield finding, (added, *(Remove(f.path) for f in parts))
