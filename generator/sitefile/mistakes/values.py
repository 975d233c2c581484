"""Values that would be right except for one slip: a comment sign, a quote, a look-alike.

Each possible slip is undone, and counts if the schema accepts the result.
"""

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from generator.diagnostics import (
    Add,
    Data,
    Finding,
    KeyPath,
    Proposal,
    Related,
    Remove,
    Replace,
    Rewrite,
    Span,
    all_nearest,
    reading_error,
)
from generator.records import record, replace
from generator.sitefile.key_rules import keys_at, rules_at
from generator.sitefile.mistakes.faults import SchemaFault, SchemaFaults
from generator.sitefile.mistakes.single import finding_of
from generator.sitefile.mistakes.slips import is_content, width
from generator.sitefile.source import Document, Plain, value_at
from generator.sitefile.typed_values import as_typed
from generator.sitefile.validation import is_valid

Corrected = Iterator[tuple[Finding, Proposal]]

# Letters that look like digits and are typed in place of them.
FIGURES = str.maketrans({"O": "0", "o": "0", "l": "1", "I": "1", "i": "1"})
_SWAPPED_AMONG = 6


@record
class _Slip:
    """What the text was meant to be, what to do, and the part of it that is replaced.

    A guess is left to a person.
    """

    meant: str
    help: str
    start: int
    end: int
    text: str
    is_guess: bool = False


def behind_a_sign(faults: SchemaFaults) -> Corrected:
    """An empty key beside a comment: the comment is its value, or must be kept with the key."""
    for fault in faults.of("nullable"):
        span = faults.document.locate(fault.path, at_key=True)
        line = _line(faults.document, span) if span else ""
        hidden = re.match(r": *(#+ *)(\S.*)", line[span.end_column :]) if span else None
        if span is None or hidden is None:
            continue
        value = hidden[2].split(" #")[0].strip()
        edit = (Replace(fault.path, Plain(value)),)
        finding = replace(finding_of(fault, faults), proposals=())
        if is_valid(fault.path, Plain(value)):
            start = span.end_column + hidden.start(1)
            sign = replace(span, column=start, end_column=span.end_column + hidden.end(1))
            finding = replace(
                finding,
                message=f"the value of '{fault.path[-1]}' is a comment",
                help=f"write '{fault.path[-1]}: {value}', or remove the line",
                proposals=((Rewrite(sign, ""),),),
                # The value may have been commented out on purpose.
                unsafe=True,
            )
        yield finding, edit


def entry_without_dash(faults: SchemaFaults) -> Corrected:
    """A mapping in place of a list: its only entry has lost its dash."""
    for fault in faults.of("type"):
        path, value = fault.path, value_at(faults.data, fault.path)
        if not isinstance(value, dict) or not value or "list" not in fault.constraint:
            continue
        key = next(iter(value))
        span = faults.document.locate((*path, key), at_key=True)
        before = _line(faults.document, span)[: span.column] if span else ""
        if span is None or span.column < _DASH or before.strip():
            continue
        again = [f.span for f in faults.twice if f.path == (*path, key) and f.span]
        if not again and not is_valid(path, [value]):
            continue
        dashes = tuple(
            Rewrite(replace(at, column=at.column - _DASH, end_column=at.column), "- ")
            for at in (span, *again)
        )
        finding = replace(
            finding_of(fault, faults),
            message=f"the entries of '{path[-1]}' have no '-'"
            if again
            else f"the entry of '{path[-1]}' has no '-'",
            span=span,
            help=f"write '- {key}: ...'",
            proposals=(dashes,),
        )
        yield finding, dashes if again else (Replace(path, [value]),)


_DASH = len("- ")


def _line(document: Document, span: Span) -> str:
    """The line in which a place begins."""
    return document.file(span).text.split("\n")[span.line]


_OF_VALUES = ("type", "allowed", "min", "max", "check_with", "minlength", "maxlength")


def _of_values(faults: SchemaFaults) -> list[SchemaFault]:
    """The faults of values, not of names."""
    return [fault for fault in faults.of(*_OF_VALUES) if fault.path and not fault.of_name]


def with_slip(faults: SchemaFaults) -> Corrected:
    """A value that would be right without one wrong sign in it."""
    for fault in _of_values(faults):
        value, finding = value_at(faults.data, fault.path), finding_of(fault, faults)
        span = None if finding.proposals else _own_span(faults.document, fault.path, value)
        for slip in _slips(value) if span else ():
            if span and is_valid(fault.path, Plain(slip.meant)):
                first, last = span.column + slip.start, span.column + slip.end
                place = replace(span, column=first, end_column=last)
                edits: Proposal = (Rewrite(place, slip.text),)
                proposals = () if slip.is_guess else (edits,)
                finding = replace(finding, help=slip.help, proposals=proposals)
                yield finding, (Replace(fault.path, Plain(slip.meant)),)
                break


def _own_span(document: Document, path: KeyPath, value: Any) -> Span | None:
    """The place of a text that is unquoted, on one line, and not shared by an alias."""
    span = document.locate(path)
    if not isinstance(value, str) or span is None or span.line != span.end_line:
        return None
    written = _line(document, span)[span.column : span.end_column]
    return span if written == value else None


def _slips(value: str) -> Iterator[_Slip]:
    if found := re.search(r"(?<!\s)\s*+(#|//)(?=\s).*$", value):
        meant = value[: found.start()]
        yield _Slip(
            meant,
            f"write '{meant}  # ...': a comment begins with a space and '#'",
            found.start(),
            found.end(1),
            "  #",
        )
    for mark in "'\"":
        if value.count(mark) == 1 and value.endswith(mark):
            at = len(value) - 1
            yield _Slip(value[:-1], f"write it without the {mark} at its end", at, len(value), "")
    figures = value.translate(FIGURES)
    if figures != value and re.fullmatch(r"[0-9.,/:]+", figures):
        letter = next(a for a, b in zip(value, figures, strict=True) if a != b)
        text = f"write {figures}: the '{letter}' is a letter"
        # In 10.0.0.1l the l may stand for a 1 or for any other mistyped digit.
        yield _Slip(figures, text, 0, len(value), figures, is_guess="/" in figures)
    if re.fullmatch(r"[0-9][\w.,/+-]*", value) and "," in value:
        dotted = value.replace(",", ".")
        several = "." in value.partition(",")[0]
        text = f"write {dotted}, with a '.'"
        yield _Slip(dotted, text, 0, len(value), dotted, is_guess=several)
    near = all_nearest(value.lower(), ("true", "false"))
    if len(near) == 1 and sorted(near[0]) == sorted(value.lower()):
        yield _Slip(near[0], f"write {near[0]}", 0, len(value), near[0])


def cut_by_comma(faults: SchemaFaults) -> Corrected:
    """In braces a comma ends a value: `0,33.0` is 0, and a key 33.0 without a value."""
    data, document = faults.data, faults.document
    for path in (fault.path for fault in faults.of("unknown")):
        section = value_at(data, path[:-1])
        keys = list(section) if isinstance(section, dict) else []
        if value_at(data, path) not in ("", None) or path[-1] not in keys[1:]:
            continue
        before = keys[keys.index(path[-1]) - 1]
        first = (*path[:-1], before)
        start, end = document.locate(first), document.locate(path, at_key=True)
        if not start or not end or (start.file, start.line) != (end.file, end.line):
            continue
        signs = (".", "") if re.fullmatch("[0-9]{3}", str(path[-1])) else (".",)
        entries = [value_at(data, first), *keys[keys.index(path[-1]) :]]
        meant_list: list[Data] = [Plain(str(entry).strip("()<>")) for entry in entries]
        if is_valid(first, meant_list):
            shown = ", ".join(map(str, meant_list))
            message, text = f"'{before}' is a list, and its entries need brackets", f"[{shown}]"
            finding = reading_error("SG103", message, first, help=f"write '{before}: {text}'")
            rest = tuple(Remove((*path[:-1], key)) for key in keys[keys.index(path[-1]) :])
            yield finding, (*rest, Replace(first, meant_list))
            continue
        ways = [(f"{value_at(data, first)}{sign}{path[-1]}", sign) for sign in signs]
        meant, sign = next((way for way in ways if is_valid(first, Plain(way[0]))), ("", ""))
        if meant and _line(document, start)[start.end_column : end.column].strip() == ",":
            comma = replace(start, column=start.end_column, end_column=end.column)
            message = f"'{before}: {value_at(data, first)}' is cut at the ',' after it"
            text, edits = f"write '{before}: {meant}'", ((Rewrite(comma, sign),),)
            # Two values, or one.
            more = {"help": text, "proposals": edits, "unsafe": True}
            finding = reading_error("SG106", message, first, **more)
            yield finding, (Remove(path), Replace(first, Plain(meant)))


def list_in_a_list(faults: SchemaFaults) -> Corrected:
    """A list with brackets around it once too often."""
    for fault in faults.of("minlength", "maxlength", "type"):
        value = value_at(faults.data, fault.path)
        is_one = isinstance(value, list) and len(value) == 1 and isinstance(value[0], list)
        if is_one and is_valid(fault.path, value[0]):
            shown = ", ".join(map(str, value[0]))
            message = f"'{fault.path[-1]}' is a list in a list"
            text = f"write '{fault.path[-1]}: [{shown}]'"
            finding = reading_error("SG103", message, fault.path, help=text)
            yield finding, (Replace(fault.path, value[0]),)


def run_together(faults: SchemaFaults) -> Corrected:
    """A list in which one entry is really two: the comma or the second one's dash is missing."""
    for fault in faults.of("check_with", "minlength", "maxlength"):
        path = fault.path[:-1] if fault.kind == "check_with" else fault.path
        entries = value_at(faults.data, path)
        if not isinstance(entries, list):
            continue
        at = next((i for i, v in enumerate(entries) if isinstance(v, str) and _parts(v)), None)
        if at is None or not (words := _parts(entries[at])):
            continue
        meant = [*entries[:at], *words, *entries[at + 1 :]]
        place = (*path, at)
        parted = _comma(faults.document, place, entries[at])
        if parted := parted or _dash(faults.document, place, words[-1]):
            rule = "SG106" if fault.kind == "check_with" else "SG107"
            yield replace(parted, rule=rule), (Replace(path, meant),)


# What parts two entries: a space alone, or another comma than YAML's.
_WIDE = re.compile("[;|\uff0c\uff1b\u3001\u060c]\\s*")
_BETWEEN = re.compile(f"(?<!\\s)\\s*+{_WIDE.pattern}|\\s+")


def _parts(value: str) -> list[str]:
    """The two entries that a text is, or as many as have wide commas between them."""
    words = _BETWEEN.split(value)
    is_list = len(words) == 2 or len(words) - 1 == len(_WIDE.findall(value)) > 0
    return [word.strip("'\"") for word in words] if is_list else []


def _comma(document: Document, path: KeyPath, value: str) -> Finding | None:
    """Words on one line with a space between them, where a comma was meant too."""
    span = _own_span(document, path, value)
    if span is None:
        return None
    one, other, *_ = words = _parts(value)
    places = (found.span() for found in _BETWEEN.finditer(value))
    edits = tuple(
        Rewrite(replace(span, column=span.column + start, end_column=span.column + end), ", ")
        for start, end in places
    )
    message = f"a ',' is missing between '{one}' and '{other}'"
    help_text = f"write '{', '.join(words)}'"
    return reading_error("SG106", message, path, help=help_text, proposals=(edits,))


def _dash(document: Document, path: KeyPath, word: str) -> Finding | None:
    """Two words on two lines, the second of which should have been an entry of its own."""
    span = document.locate(path)
    lines = document.file(span).text.split("\n") if span else []
    if span is None or lines[span.line][: span.column].strip() != "-":
        return None
    below = range(span.line + 1, len(lines))
    number = next((n for n in below if is_content(lines[n])), span.line)
    own = width(lines[number])
    if number == span.line or not lines[number][own:].startswith(word):
        return None
    behind = replace(span, line=number, column=own, end_line=number, end_column=own + len(word))
    before = replace(behind, column=0, end_column=own)
    dash = Rewrite(before, f"{lines[span.line][: width(lines[span.line])]}- ")
    message = f"an entry of '{path[-2]}' without its '-'"
    return reading_error(
        "SG106", message, path, help=f"write '- {word}'", proposals=((dash,),), span=behind
    )


def swapped(faults: SchemaFaults) -> Corrected:
    """Two values of one section or entry, each of which would be valid in place of the other."""
    wrong: dict[KeyPath, dict[KeyPath, Any]] = {}
    by_path = {fault.path: fault for fault in _of_values(faults)}
    for fault in _of_values(faults):
        value = value_at(faults.data, fault.path)
        if isinstance(value, str):
            wrong.setdefault(_entry(fault.path), {})[fault.path] = value
    for of_one_entry in wrong.values():
        # If more is wrong than a slip or two, no swapped pair is the cause, and trying all pairs
        # takes quadratic time.
        if len(of_one_entry) > _SWAPPED_AMONG:
            continue
        for one, other in combinations(sorted(of_one_entry, key=len), 2):
            first, second = of_one_entry[one], of_one_entry[other]
            if is_valid(one, second) and is_valid(other, first):
                finding = replace(
                    finding_of(by_path[one], faults),
                    message=f"the values of '{one[-1]}' and '{other[-1]}' are swapped",
                    help=f"write '{one[-1]}: {second}' and '{other[-1]}: {first}'",
                    related=(Related("the other one", other),),
                    proposals=((_written(one, second), _written(other, first)),),
                )
                yield finding, (Replace(one, second), Replace(other, first))


def reversed_pair(faults: SchemaFaults) -> Corrected:
    """A key and its value in each other's place: `direct: kind`."""
    for fault in faults.of("unknown"):
        around, word = fault.path[:-1], str(fault.path[-1])
        key = fault.value
        here = value_at(faults.data, around)
        if not isinstance(key, str) or key not in keys_at(around) or key in here:
            continue
        if is_valid((*around, key), Plain(word)):
            finding = reading_error(
                "SG101",
                f"'{word}: {key}' is the wrong way round: the key comes first",
                fault.path,
                at_key=True,
                help=f"write '{key}: {word}'",
                proposals=_exchanged(faults.document, fault.path),
            )
            yield finding, (Remove(fault.path), Add((*around, key), Plain(word)))


def _exchanged(document: Document, path: KeyPath) -> tuple[Proposal, ...]:
    """A key and its value on one line in each other's place."""
    key, value = document.locate(path, at_key=True), document.locate(path)
    if not key or not value or (key.file, key.line) != (value.file, value.end_line):
        return ()
    line = _line(document, key)
    texts = [line[span.column : span.end_column] for span in (value, key)]
    between = line[key.end_column : value.column]
    whole = replace(key, end_column=value.end_column)
    return ((Rewrite(whole, between.join(texts)),),)


def _written(path: KeyPath, value: Any) -> Replace:
    return Replace(path, as_typed(value, rules_at(path)))


def _entry(path: KeyPath) -> KeyPath:
    """The entry of a list around a value, or its section."""
    ends = (end for end in range(len(path) - 1, 0, -1) if isinstance(path[end - 1], int))
    return path[: next(ends, 1)]
