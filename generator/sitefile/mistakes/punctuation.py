"""Slips in quotes, brackets, commas and colons."""

import re
from collections.abc import Iterator
from itertools import takewhile

from generator.diagnostics import Rewrite, Span
from generator.sitefile.mistakes.slips import Slip, code, is_content, stretch, width
from generator.sitefile.sections import all_keys
from generator.sitefile.source import Plain

_QUOTE = re.compile(r"(?:: +|- +|[\[{,] *)(['\"])")
_KEY = r"[A-Za-z_][\w.-]*"
_PAIR = re.compile(
    rf" *(?:- +)*({_KEY})"
    r"(:(?=[^\s/:])|:: *| *(?:[:=]=|[=-]>|[:=;\uff1a]) *| +-+ +|[ \t]+)(?=\S)(.*)"
)
_HEAD = re.compile(rf" *(?:- +)*({_KEY})\s*(?:#.*)?")
_BETWEEN = re.compile(r"(?<=[\w\]}'\"]) +(?=[\w'\"\[{])")
_OPENING = {"[": "]", "{": "}"}
_CLOSING = {closing: opening for opening, closing in _OPENING.items()}


def quoted_lines(lines: list[str], number: int) -> Iterator[Slip]:
    """A key and its value, in quotes together."""
    if found := re.match(rf" *(?:- +)*(['\"`])({_KEY}: [^'\"`]+)\1(?=,? *$)", lines[number]):
        start, end = found.start(1), found.end()
        marks = (stretch(number, start, start + 1), stretch(number, end - 1, end))
        edits = tuple(Rewrite(mark, "") for mark in marks)
        place = stretch(number, start, end)
        yield Slip(place, "quotes around a key and its value", f"write {found[2]}", edits)


def toml(lines: list[str], number: int) -> Iterator[Slip]:
    """A section as TOML or an INI file has it."""
    line = lines[number]
    found = re.fullmatch(r"\[(\w+)\]\s*", line)
    if found and found[1] in all_keys():
        inside = map(re.compile(rf"({_KEY})( *= *)").match, lines[number + 1 :])
        pairs = [*takewhile(bool, inside)]
        edits = [Rewrite(stretch(number, 0, len(line)), f"{found[1]}:")]
        for below, pair in enumerate(filter(None, pairs), number + 1):
            edits.append(Rewrite(stretch(below, 0, pair.end()), f"  {pair[1]}: "))
        message = f"'[{found[1]}]' is how TOML begins a section"
        text = f"write '{found[1]}:', and its keys below it as '  KEY: VALUE'"
        yield Slip(stretch(number, *found.span(1)), message, text, tuple(edits))


# What begins a comment elsewhere, and what ends it.
_OTHER_COMMENT = re.compile(r" *(//|;|--|/\*|<!--|%|(?i:rem)(?= ))(.*?)(\*/|-->|)")


def strangers(lines: list[str], number: int) -> Iterator[Slip]:
    """A line that is neither a key nor an entry: another language's comment, or a command."""
    line, begin = lines[number], width(lines[number])
    place = stretch(number, begin, len(line))
    if found := _OTHER_COMMENT.fullmatch(line.rstrip()):
        edits = tuple(
            Rewrite(stretch(number, *found.span(part)), sign)
            for part, sign in ((1, "#" if found[2][:1] == " " else "# "), (3, ""))
        )
        message = f"'{found[1]}' does not begin a comment"
        yield Slip(place, message, f"write '# {found[2].strip()}'", edits)
    elif not re.match(rf" *(?:- |[\[{{]|{_KEY}:(?: |$))", line):
        edits = (Rewrite(stretch(number, begin, begin), "# "),)
        message = f"'{line.strip()[:40]}' is neither a key nor an entry of a list"
        yield Slip(place, message, "remove the line", edits, unsafe=True)


def quotes(lines: list[str], number: int) -> Iterator[Slip]:
    """A value whose quote is not closed on its line: close it at the end of the value."""
    line = lines[number]
    for found in _QUOTE.finditer(line) if is_content(line) else ():
        start, mark = found.start(1), found[1]
        if mark in line[start + 1 :]:
            continue
        opened = stretch(number, start, start + 1)
        other = "'" if mark == '"' else '"'
        column = start + _length(line, start)
        if line[column - 1] == other and column - 1 > start:
            wrong = stretch(number, column - 1, column)
            yield Slip(
                opened,
                f"a quote is opened by {mark} and closed by {other}",
                f"write {mark} at both ends",
                (Rewrite(wrong, mark),),
            )
            yield from _without_quotes(opened, line[start + 1 : column - 1], Rewrite(wrong, ""))
            continue
        value = line[start + 1 : column]
        if value not in ("true", "false"):
            yield Slip(
                opened,
                "a quote is not closed",
                "write the second quote",
                (Rewrite(stretch(number, column, column), mark),),
            )
        yield from _without_quotes(opened, value)


def _without_quotes(opened: Span, value: str, *more: Rewrite) -> Iterator[Slip]:
    """What would be a number or true or false without the quote may have been meant as such."""
    if not isinstance(Plain(value).meaning(), str):
        edits = (Rewrite(opened, ""), *more)
        yield Slip(opened, "a quote is not closed", f"write {value} without quotes", edits)


def _length(line: str, start: int) -> int:
    """Where a value that begins at a column ends: at a comma or bracket, or at a comment."""
    in_flow = re.search(r"[\[{]", line[:start])
    end = re.search(r"[,\]}]|\s#|$" if in_flow else r"(?<!\s)(?:\s+#|\s*$)", line[start:])
    return end.start() if end else 0


# A variable or a flag as a shell script, Compose or a command line has it.
_ASSIGNMENT = re.compile(
    r" *(?P<sign>(?:(?:export|set|-e|--env|-) +)+(?=[A-Z])|(?:- +)?--)"
    r"(?P<name>[A-Za-z][\w.-]*)(?P<between>=|(?<=[a-z]) +|(?= *$))"
)


def assignments(lines: list[str], number: int) -> Iterator[Slip]:
    """A variable or a flag that is written as elsewhere, under 'env' or 'args'."""
    found = _ASSIGNMENT.match(code(lines[number]))
    if found is None:
        return
    name = stretch(number, found.start("sign"), found.end("name"))
    is_switch = not code(lines[number])[found.end() :].strip()
    edits = (
        Rewrite(stretch(number, found.start("sign"), found.end("sign")), ""),
        Rewrite(stretch(number, *found.span("between")), ": true" if is_switch else ": "),
    )
    value = "true" if is_switch else "VALUE"
    message = f"'{found['sign']}{found['name']}' is not how it is written in this file"
    yield Slip(name, message, f"write '{found['name']}: {value}'", edits)


def colons(lines: list[str], number: int) -> Iterator[Slip]:
    """A key without its colon, or with something other than a colon before its value."""
    line = lines[number]
    if _ASSIGNMENT.match(code(line)):
        return
    pair, head = _PAIR.match(line), _HEAD.fullmatch(line)
    if pair and pair[2].strip(" ") != ":":
        yield _colon(number, pair, f"write '{pair[1]}: VALUE', with a colon and a space")
    elif pair and not pair[2].endswith(" "):
        yield _colon(number, pair, f"write '{pair[1]}: VALUE', with a space")
    elif head and (head[1] in all_keys() or _has_keys_below(lines, number)):
        key = stretch(number, head.start(1), head.end(1))
        end = stretch(number, head.end(1), head.end(1))
        text = f"write '{head[1]}:', with a colon"
        yield Slip(key, "a key without its ':'", text, (Rewrite(end, ":"),))


def _has_keys_below(lines: list[str], number: int) -> bool:
    """Whether the next line with content is a key that is indented deeper."""
    below = next((line for line in lines[number + 1 :] if is_content(line)), "")
    return width(below) > width(lines[number]) and _PAIR.match(below) is not None


def texts(lines: list[str], number: int) -> Iterator[Slip]:
    """Unquoted text that contains a colon and a space."""
    line = code(lines[number])
    found = re.fullmatch(rf" *(?:- +)*{_KEY}: +([^'\"\[{{|>&*!%@`\s-][^\"]*)", line)
    if found and ": " in f"{found[1]} ":
        start, end = found.start(1), found.end(1)
        text = stretch(number, start, end)
        if pair := re.search(rf"(?<! )(?: +and| *[,;|/])? *(?<![\w.-])(?={_KEY}: )", found[1]):
            place = stretch(number, start + pair.start(), start + pair.end())
            text_alone = f"write '{found[1][pair.end() :]}' on a line of its own"
            edits = (Rewrite(place, f"\n{' ' * (len(line) - len(line.lstrip(' -')))}"),)
            yield Slip(place, "two keys on one line", text_alone, edits)
        # With another bracket in place of one, it was to be a mapping or a list.
        is_bracketed = found[1][0] in "(])}" or found[1][-1] in "])}"
        yield Slip(
            text,
            "a string that contains ': ' needs quotes",
            "write the string in quotes" + ", or '{' before it and '}' behind it" * is_bracketed,
            (Rewrite(text, f'"{found[1]}"'),),
            is_bracketed,
        )


def _colon(number: int, pair: re.Match[str], help_text: str) -> Slip:
    between = Rewrite(stretch(number, pair.start(2), pair.end(2)), ": ")
    key = stretch(number, pair.start(1), pair.end(1))
    # A sentence, not a key and its value.
    unsafe = pair[2].isspace() and " " in pair[3].strip() and pair[1] not in all_keys()
    return Slip(key, "a key without ': ' after it", help_text, (between,), unsafe)


def brackets(lines: list[str], number: int) -> Iterator[Slip]:
    """A bracket or brace that is not closed on its line, with every place where it could be."""
    line = code(lines[number])
    left = _unclosed(line)
    if left and (inside := _COMMENT_INSIDE.fullmatch(lines[number][len(line) :])):
        yield _comment_inside(number, line, inside, "".join(_OPENING[line[at]] for at in left))
        return
    if len(left) != 1:
        return
    (opened,) = left
    mark = line[opened]
    closing = _OPENING[mark]
    if line.endswith(")") and "(" not in line:
        # It may belong to a text, too.
        place = stretch(number, len(line) - 1, len(line))
        help_text = f"write '{closing}' in place of ')'"
        edits = (Rewrite(place, closing),)
        yield Slip(place, f"a '{mark}' is closed by ')'", help_text, edits, unsafe=True)
        return
    ends = [place.start() for place in re.finditer(r",|[\]}]|$", line) if place.start() > opened]
    for column in reversed(ends):
        yield Slip(
            stretch(number, opened, opened + 1),
            f"a '{mark}' is not closed",
            f"write '{closing}'{_before(line, column)}",
            (Rewrite(stretch(number, column, column), closing),),
        )


# A comment that takes the other entries and the end of the brackets with it.
_COMMENT_INSIDE = re.compile(r"\s+#\s*([^,\]}]*)([,\]}].*)")


def _comment_inside(number: int, line: str, inside: re.Match[str], closing: str) -> Slip:
    """A comment between brackets, which hides what follows on its line."""
    end = len(line) + len(inside[0])
    comment = stretch(number, len(line) + inside[0].index("#"), end)
    message = f"a comment hides the rest of its line, and the '{closing}'"
    if line[-1] in ",[{":
        # The entry may have been commented out on purpose.
        close = (Rewrite(stretch(number, len(line), len(line)), closing),)
        text = f"write the '{closing}' before it, or remove the '#'"
        return Slip(comment, message, text, close, unsafe=True)
    behind = f"{inside[2].rstrip()}  # {inside[1].rstrip()}"
    edits = (Rewrite(stretch(number, len(line), end), behind),)
    return Slip(comment, message, f"write the comment behind the '{closing}'", edits)


def _unclosed(line: str) -> list[int]:
    """The columns of brackets that are not closed by a matching one, the inner ones first."""
    stack: list[int] = []
    left: list[int] = []
    for column, letter in enumerate(line):
        if letter in _OPENING:
            stack.append(column)
        elif letter in _CLOSING:
            while stack and line[stack[-1]] != _CLOSING[letter]:
                left.append(stack.pop())
            if not stack:
                return []
            stack.pop()
    return left + stack[::-1]


def _before(line: str, column: int) -> str:
    return f" before '{line[column:].split()[0][:12]}'" if line[column:].strip() else ""


def commas(lines: list[str], number: int) -> Iterator[Slip]:
    """A missing comma between two entries in brackets or braces."""
    line = code(lines[number])
    start = re.search(r"[\[{]", line)
    for blank in _BETWEEN.finditer(line, start.end()) if start else ():
        key = re.match(rf"{_KEY}(?=:)", line[blank.end() :])
        yield Slip(
            stretch(number, blank.start(), blank.end()),
            "a ',' is missing between two entries",
            f"write ',' before '{key[0]}'" if key else "write ',' between them",
            (Rewrite(stretch(number, blank.start(), blank.start()), ","),),
        )
