"""Slips before the first key of a line: spaces, tabs, dashes, or the key of the section."""

import re
from collections import Counter
from collections.abc import Iterator

from generator.diagnostics import Rewrite
from generator.sitefile.mistakes.slips import (
    Slip,
    code,
    content,
    content_above,
    is_content,
    neighbours,
    stretch,
    width,
)
from generator.sitefile.sections import all_keys, section_keys

_KEY = re.compile(r"(?<![\w.-])([A-Za-z_][\w.-]*+):(?: |$)")
# A key and what may have been meant as its value.
_PAIR = re.compile(r" *[\w.-]+( *[:=] *| +)\S")
# What a diff, a terminal or a viewer of files writes before a line.
_MARK = re.compile(r"[ \t]*([+>$*|\u2502]|[0-9]+[:|]?)[ \t]+(?=[A-Za-z_])")
# How entries of a list begin elsewhere.
_BULLET = re.compile(r" *([*+o]|[^\w\s\x00-\x7f]|--|[0-9]+\.) +(?=\S)")


def columns(lines: list[str], at: int) -> Iterator[Slip]:
    """A line that begins in a different column from the lines around it."""
    widths = [slip for number in content(lines, at) for slip in _widths(lines, number)]
    usual = Counter(width(line) for line in lines if is_content(line))
    yield from sorted(widths, key=lambda slip: -usual[len(slip.edits[0].text)])


def tabs(lines: list[str], at: int) -> Iterator[Slip]:
    """Tabs as indentation: each is two, four or eight spaces, or as many as the line above has."""
    tabbed = {
        number: re.match(r"[ \t]*", line)
        for number, line in enumerate(lines)
        if is_content(line) and "\t" in line[: len(line) - len(line.lstrip())]
    }
    if not tabbed:
        return
    first = min(tabbed)
    around = [*neighbours(lines, first), *content(lines, first)]
    near = [width(lines[n]) for n in around if n not in tabbed]
    for wide in dict.fromkeys((2, 4, 8, *(w for w in near if w))):
        edits = []
        for number, found in tabbed.items():
            spaces = found[0].replace("\t", " " * wide) if found else ""
            edits.append(Rewrite(stretch(number, 0, len(found[0]) if found else 0), spaces))
        column = lines[first].index("\t")
        yield Slip(stretch(first, column, column + 1), "", "indent with spaces", tuple(edits))


def dashes(lines: list[str], number: int) -> Iterator[Slip]:
    """A list entry whose dash has no space after it, or is missing."""
    line = lines[number]
    if found := re.match(r" *(-)(?=[^\s-])", line):
        column = found.end(1)
        yield Slip(
            stretch(number, column - 1, column),
            "a '-' without a space after it",
            "write '- ' before every entry",
            (Rewrite(stretch(number, column, column), " "),),
        )
    for other in neighbours(lines, number, lambda other: other.lstrip(" ").startswith("- ")):
        column, own = width(lines[other]), width(line)
        if own in (column, column + 2) and line[own : own + 1].isalpha():
            yield Slip(
                stretch(number, own, own + 1),
                "an entry of a list without its '-'",
                f"write '- {line.strip().split(':')[0]}: ...'",
                (Rewrite(stretch(number, column, own), "- "),),
            )


def bullets(lines: list[str], number: int) -> Iterator[Slip]:
    """An entry of a list that begins with another sign than '-'."""
    if found := _BULLET.match(lines[number]):
        bullet = stretch(number, found.start(1), found.end())
        text = f"write '- {lines[number][found.end() :].split(':')[0]}: ...'"
        message = f"'{found[1]}' stands where an entry's '-' should"
        yield Slip(bullet, message, text, (Rewrite(bullet, "- "),))


def marks(lines: list[str], number: int) -> Iterator[Slip]:
    """A line with what a diff, a terminal or a viewer of files writes before it."""
    if found := _MARK.match(lines[number]):
        around = [width(lines[n]) for n in neighbours(lines, number)]
        key = lines[number][found.end() :].split(":")[0]
        message, text = f"'{found[1]}' stands before '{key}'", f"write '{key}: ...' alone"
        place = stretch(number, *found.span(1))
        for wide in dict.fromkeys((*around, *(w + 2 for w in around))):
            edit = Rewrite(stretch(number, 0, found.end()), " " * wide)
            # A number may be anything else.
            yield Slip(place, message, text, (edit,), unsafe=found[1][0].isdigit())


def needless_dash(lines: list[str], number: int) -> Iterator[Slip]:
    """A dash before a key beside others that have none."""
    found = re.match(r"( *)- (?=[\w.-]+:)", lines[number])
    beside = [lines[n] for n in neighbours(lines, number)]
    if found and any(re.match(rf"{found[1]}[\w.-]+:", line) for line in beside):
        dash = stretch(number, found.end(1), found.end())
        text = "write the line without the '-'"
        yield Slip(dash, "a '-' before a key that is not in a list", text, (Rewrite(dash, ""),))


def missing_section(lines: list[str], at: int) -> Iterator[Slip]:
    """Lines of a missing section: its key should be above them."""
    there = {line.split(":")[0] for line in lines if line[:1].isalpha()}
    start = at
    while start and lines[start - 1].startswith((" ", "-", "#")):
        start -= 1
    starts = (n for n in (start, at) if lines[n].startswith((" ", "-")))
    for first in dict.fromkeys(starts):
        block = _block(lines, first)
        names = {name for line in block for name in _KEY.findall(line)}
        for section in _likeliest(names, there):
            yield Slip(
                stretch(first, 0, len(lines[first])),
                f"the key '{section}' is missing above its content",
                f"write '{section}:' on a line of its own before this one",
                (Rewrite(stretch(first, 0, 0), f"{section}:\n"),),
            )


def _block(lines: list[str], first: int) -> Iterator[str]:
    for line in lines[first:]:
        if line[:1].isalpha():
            return
        yield line


def _likeliest(names: set[str], there: set[str]) -> list[str]:
    """Missing sections that have these keys, those with the most of them first."""
    shared = {
        section: len(names & keys)
        for section, keys in section_keys().items()
        if section not in there and names & keys
    }
    return sorted(shared, key=lambda section: -shared[section])


def _widths(lines: list[str], number: int) -> Iterator[Slip]:
    line = lines[number]
    if _MARK.match(line):
        return
    own = width(line)
    around = neighbours(lines, number)
    known = {width(lines[n]): n for n in reversed(around)}
    above = content_above(lines, number)
    is_pair = _PAIR.match(line) is not None or line.strip() in all_keys()
    for wide in dict.fromkeys((*known, *(_behind_dash(lines[n]) for n in around), 0)):
        # A line that is deeper than a key with a value would continue that value.
        goes_on = is_pair and above is not None and wide > _column(lines[above])
        if wide != own and not (goes_on and _has_value(lines[above or 0])):
            help_text = f"indent the line by {wide} space{'' if wide == 1 else 's'}"
            help_text = help_text if wide else "write the line without spaces before it"
            yield Slip(
                stretch(number, 0, max(1, own)),
                "the line is indented differently from those around it",
                f"{help_text}{_where(known.get(wide), number)}",
                (Rewrite(stretch(number, 0, own), " " * wide),),
                unsafe=_is_no_text(lines, above, line),
            )


def _is_no_text(lines: list[str], above: int | None, line: str) -> bool:
    """Whether a number or a truth value would become the text of a block."""
    is_block = above is not None and re.search(r"[:-] [|>][-+]?$", lines[above].rstrip())
    return bool(is_block and re.fullmatch(r"true|false|null|[-+]?[0-9.]+", line.strip()))


def _column(line: str) -> int:
    """The column of a line's key, after the dashes of lists."""
    found = re.match(r" *(- +)*", line)
    return len(found[0]) if found else 0


def _has_value(line: str) -> bool:
    """Whether a line has a key and a value of one word, which cannot be continued."""
    return re.fullmatch(r" *(- +)*[\w.-]+: +[^\s|>#&]+", code(line)) is not None


def _behind_dash(line: str) -> int:
    """The column of the keys in a list's entry or in a section."""
    inner = _column(line)
    return inner if inner != width(line) else inner + 2


def _where(other: int | None, number: int) -> str:
    if other is None:
        return ""
    return f", as the one {'above' if other < number else 'below'}"
