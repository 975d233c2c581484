"""The words of shell text, as far as they are certain without running it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile

from generator.adoption.flow import CONDITION, Control
from generator.adoption.found import Word
from generator.adoption.text import NAME, Text
from generator.diagnostics import Span
from generator.records import replace
from generator.sitefile.redaction import MASK, is_secret_key

_BREAKS = ("&&", "||", ";;", ";", "|", "&")
_ASSIGNED = re.compile(rf"{NAME}(\+?)=(.*)", re.DOTALL)
_ARRAY = re.compile(rf"{NAME}\+?=\(")
_ELEMENTS = re.compile(rf'"?\$?\$\{{{NAME}\[[@*]\]\}}"?')
# What a template inserts, which is one word whatever it is.
_TEMPLATED = re.compile(r"\{\{[^\n{}]{1,200}\}\}")
_PARAMETER = re.compile(rf"(?:{NAME}|[1-9])(?:(:?[-+?=])(.*))?", re.DOTALL)
_DEFAULTED = re.compile(rf"\$\{{{NAME}:?=([^{{}}]*)\}}")
# What a script gives a variable from its own options.
_OPTION = re.compile(rf"""\b{NAME}=["']?\$\{{?(?:OPTARG|[1-9])\b""")
# The beginning of what a case does for an option.
_LABEL = re.compile(r"(?m)^[ \t]*[\"']?-[\w|\"' -]{0,200}\)")
_SET = re.compile(rf"\b{NAME}=")
# Where a variable may get a value.
_MENTIONED = re.compile(r"(?<![\w${/.-])[A-Za-z_]\w*")
_SOURCES = re.compile(r"(?m)^[^#\n]*\b(?:source|eval)[ \t]|^[ \t]*\.[ \t](?!.*/activate)")
_MAX_EXPANSION = 4000
_MAX_DEPTH = 8
_MAX_VALUE = 8000
_MAX_ELEMENTS = 1000
_HERE = re.compile(r"""[^#]*<<(?!<)-?[ \t]*(["']?)(\w+)\1.*""")
# What reads commands from the lines after it, and a script that gets them; what prints them.
_EXECUTES = re.compile(r"[^<>]*\b(ssh|(ba)?sh)\b[^<>]*<<[^>]*|.*<<.*\|.*\b(ssh|(ba)?sh)\b.*")
_WRITES = re.compile(r".*(?:>|\btee\b)[ \t]*(?:-a[ \t]+)?[\"']?(?:[^\s\"'>]*/)?([\w.-]+\.sh)\b.*")
_PRINTS = re.compile(r"""cat[ \t]*<<-?[ \t]*(["']?)(\w+)\1\n""")
# A function that hands its arguments on to a command, and does nothing else.
_FORWARDS = re.compile(
    r"(?m)^[ \t]*(?:function[ \t]+)?([\w.-]+)[ \t]*\(\)\s*\{"
    r"\s*((?:[^\s;&|\"$#]+[ \t]+)+)\"\$@\"[\s;]*\}"
)
# Conditions, and what begins a part of a case.
_CONDITIONS = re.compile(r"\[\[\s[^\n]{0,400}?\s\]\]|\(\([^\n]{0,400}?\)\)")
_PATTERNS = re.compile(r"[^\s;&#][^\n();&]{0,400}\)")
# What executes a script that is given as a word, and what does so in a container.
_RUNS = re.compile(r"(?:.*/)?(ssh|eval)")
# Its options with an argument of their own.
_SSH_TAKES = re.compile(r"-[46AaCfGgKkMNnqsTtVvXxYy]*[BbcDEeFIiJLlmOopQRSWw]")
_ELSEWHERE = re.compile(r"(?:.*[/=])?(docker|podman|nerdctl|kubectl|apptainer|singularity|srun)")
_MAX_LINE = 400
_MAX_SHOWN = 60
_OPENING = {"(": ")", "{": "}"}
# The line that writes a file, the numbers of the file's own lines, and its text.
WrittenFile = tuple[str, range, Text]


def shell_words(
    text: Text, start: int, end: int, variables: Mapping[str, str], by_line: bool = True
) -> Iterator[Word]:
    """The words between two offsets.

    A variable that is not set stays as written. Unless `by_line`, a newline is a space.
    """
    return _Shell(text, end, variables, by_line).words(start)


def script(
    text: Text, variables: Mapping[str, str]
) -> tuple[list[Word], list[Word], Sequence[WrittenFile]]:
    """A script's words, each array's elements like a command, and the files that it writes."""
    shell = _Shell(text, len(text.text), variables, True)
    words, end = list(shell.words(0)), text.word("\n", 0, 0, True)
    arrays = [word for own in shell.arrays.values() for word in (*dict.fromkeys(own), end)]
    settled = shell.control.settled
    sure = [w if w.doubt or not w.around else replace(w, doubt=CONDITION) for w in settled(arrays)]
    return list(unwrapped(settled(words), {})), sure, shell.files


def unwrapped(
    words: Iterable[Word], known: Mapping[str, str], by_any: bool = False
) -> Iterator[Word]:
    """The words, with those of scripts that are given as one word, which read known variables.

    Scripts that a container executes are read if they are `by_any`.
    """
    runs, last, is_next, host = "", "", False, ""
    for word in words:
        is_script = is_next or (runs in ("ssh", "eval") and not last.startswith("-"))
        if is_script and re.search(r"\s", word.text) and (by_any or runs != "elsewhere"):
            # What a container executes may go on behind its script.
            ends = () if by_any else (replace(word, text=";", breaks=True, script=None),)
            text = word.script or Text(word.file, word.text)
            own = _Shell(text, len(word.text), known, True)
            inner = own.control.settled(own.words(0))
            yield from (*ends, *(_within(one, word, host) for one in inner), *ends)
        else:
            yield replace(word, host=host) if host and not word.host else word
        is_option = word.text.startswith("-") or _SSH_TAKES.fullmatch(last)
        if word.breaks:
            host = ""
        elif runs == "ssh" and not host and not is_option:
            host = word.text
        is_next, last = is_script_next(word.text, is_next), word.text
        if word.breaks or not runs:
            found = _RUNS.fullmatch(word.text)
            is_elsewhere = _ELSEWHERE.fullmatch(word.text)
            runs = found[1] if found else "elsewhere" if is_elsewhere else ""


def _within(word: Word, outer: Word, host: str) -> Word:
    """A word of a script that is given as a word, and is executed on `host`."""
    around = (*outer.around, *word.around)
    span = word.span if outer.script else outer.span
    doubt, remark = word.doubt or outer.doubt, word.remark or outer.remark
    host = word.host or host
    return Word(word.text, word.file, span, word.breaks, doubt, around, remark, word.script, host)


def is_script_next(text: str, was_next: bool) -> bool:
    """Whether a shell script follows a word: after the shell's -c and its other options."""
    return bool(re.fullmatch(r"-[a-z]*c", text)) or (was_next and text.startswith("-"))


class _Quoted(Text):
    """A text that is one word of another one, with the places that its parts have there."""

    def __init__(self, outer: Text, text: str, places: Sequence[int]) -> None:
        super().__init__(outer.file, text)
        self._outer, self._places = outer, places

    def span(self, start: int, end: int) -> Span:
        """The lines and columns of two offsets, in the whole text."""
        first, last = (self._places[min(at, len(self._places) - 1)] for at in (start, end - 1))
        return self._outer.span(first, max(first, last) + 1)


class _Shell:
    def __init__(self, text: Text, end: int, variables: Mapping[str, str], by_line: bool) -> None:
        self._text, self._source, self._end = text, text.text, end
        self._by_line = by_line
        self.known = dict(variables)
        self.control = Control()
        self.arrays: dict[str, list[Word]] = {}
        self.files: list[WrittenFile] = []
        self._function = ""
        # The name of the array whose elements are being read, and what ends lines of commands.
        self._array = self._mark = ""
        # Whether it executes what its commands print.
        self._is_evaluated = re.search(r"\b(eval|sh -l?c)[ \t]+\"?\$\(", text.text) is not None
        # What whoever starts the script may change; what was set in which blocks, with the value
        # before.
        self._remarks: dict[str, str] = {}
        arms = ((part, _LABEL.search(part)) for part in text.text.split(";;")[:-1])
        self._options = {n for own, at in arms if at for n in _SET.findall(own, at.end())}
        self._options.update(_OPTION.findall(text.text))
        self._forwards = {name: own.split() for name, own in _FORWARDS.findall(text.text)}
        # What has values under conditions.
        self._open: dict[str, list[str]] = {}
        self._is_sourced = _SOURCES.search(text.text) is not None
        self._local: dict[str, tuple[tuple[str, ...], str | None]] = {}

    def words(self, at: int) -> Iterator[Word]:
        source, end, control = self._source, self._end, self.control
        while at < end:
            character = source[at]
            if after := self._blank(at):
                at = after
            elif character == "\n":
                yield self._break(at, at + 1)
                yield from self._file(at + 1)
                at = self._after
            elif character == "#" and not source.startswith("#SBATCH", at):
                at = end if (line_end := source.find("\n", at, end)) < 0 else line_end
            elif character == ")" and self._array:
                self._array = ""
                at += 1
            elif found := self._whole(at):
                said = expand(found[0], self.known)
                control.take(
                    said if self._is_sure(found[0]) else found[0], at, self._remark(found[0])
                )
                yield self._stamped(self._text.word(said, at, found.end()))
                at = found.end()
            elif mark := self._mark_at(at):
                yield self._break(at, at + len(mark))
                at += len(mark)
            elif found := _ARRAY.match(source, at, end):
                self._array = found[1]
                self.arrays.setdefault(found[1], [])
                control.command.append(found[0])
                at = found.end()
            else:
                self._leave()
                self._enter()
                after, word = self._one_word(at)
                own = [self._stamped(part) for part in self._read(at, after, word)]
                if self._array:
                    self.arrays[self._array] += own
                else:
                    yield from own
                at = max(after, at + 1)

    def _enter(self) -> None:
        """Take the arguments of the function at hand for those of the script, until it ends."""
        name = next((part for part in self.control.around if part.endswith("()")), "")
        if name != self._function:
            outer = {key: own for key, own in self.known.items() if not key.isdecimal()}
            self._function, self.known = name, {**outer, **self._arguments(name[:-2])}

    def _arguments(self, name: str) -> dict[str, str]:
        """What a function gets from its only call; from several, only the shell knows it."""
        if not name:
            return {}
        call = rf"(?<![\w./-]){re.escape(name)}(?![\w.()-]|[ \t]*\()"
        calls = [found.span() for found in re.finditer(call, self._source)]
        is_only = len(calls) == 1 and not re.search(r"\bshift\b", self._source)
        if not is_only or self._source[: calls[0][0]].rstrip(" \t")[-1:] != "\n":
            return {str(number): f"${number}" for number in range(1, 10)}
        words = shell_words(self._text, calls[0][1], self._end, self.known)
        given = takewhile(lambda word: not word.breaks, words)
        return {str(number): word.text for number, word in enumerate(given, 1) if number < 10}

    def _whole(self, at: int) -> re.Match[str] | None:
        """A condition or a label, which is one word whatever it contains."""
        if self.control.block == "case" and not self.control.command:
            return _PATTERNS.match(self._source, at, self._end)
        is_first = len(self.control.command) < 2 and not self._array
        return _CONDITIONS.match(self._source, at, self._end) if is_first else None

    def _mark_at(self, at: int) -> str:
        """What stands between two commands; empty at a word."""
        is_open = not self.control.command and self._source[at : at + 2] not in ("((", "()")
        marks = (*_BREAKS, *("(" if is_open else ""), *(")" if self.control.is_in_subshell else ""))
        return next((mark for mark in marks if self._source.startswith(mark, at)), "")

    def _break(self, at: int, after: int) -> Word:
        """What ends a command."""
        word = self._text.word(self._source[at:after], at, after, True)
        self.control.end(word.text, word.span.line)
        if word.text in ("(", ")"):
            self.control.take(word.text, at)
        return word

    def _stamped(self, word: Word) -> Word:
        """A word with what may keep a shell from executing it, beside what was said of it."""
        around, never = self.control.around, self.control.never
        is_certain = {*word.around} <= {*around}
        doubt = word.doubt or never or ("" if is_certain else CONDITION)
        remark = word.remark or self.control.remark
        is_plain = not (doubt or around or remark)
        return word if is_plain else replace(word, around=around, doubt=doubt, remark=remark)

    def _file(self, at: int) -> Iterator[Word]:
        """The lines that the line before holds for a program, unless they are commands."""
        source, self._after = self._source, at
        start = source.rfind("\n", 0, at - 1) + 1
        line_end = source.find("\n", at, self._end)
        if self._mark and source[at:line_end].strip() == self._mark:
            self._after, self._mark = line_end if line_end >= 0 else self._end, ""
            return
        found = _HERE.match(source, start, at - 1) if at - start < _MAX_LINE else None
        if found is None or self._mark:
            return
        number = self._text.span(at, at).line
        last = self._text.next_line(found[2], number)
        begin = self._end if last is None else min(self._text.offset(last, 0), self._end)
        runs = _EXECUTES.match(found[0]) and self.control.was_executed
        if self._is_evaluated or runs or self._is_started(found[0], begin):
            self._mark = found[2]
            return
        line_end = source.find("\n", begin, self._end)
        self._after = line_end if line_end >= 0 else self._end
        body = source[at:begin]
        content = "\n" * number + (body if found[1] else expand(body, self.known))
        its = range(number, number + body.count("\n") + 1)
        if not self.control.never:
            self.files.append((found[0].strip(), its, Text(self._text.file, content)))
        for part in re.compile(r"\n|\S+").finditer(source, at, begin):
            yield replace(self._text.word(part[0], *part.span(), part[0] == "\n"), doubt="text")

    def _is_started(self, line: str, after: int) -> bool:
        """Whether a line writes a script that is named again later, by what may execute it."""
        found = _WRITES.fullmatch(line)
        if found is None:
            return False
        own = rf"(?m)^(?!\s*(?:#|chmod|cat|echo|rm)\b).*(?<![\w.-]){re.escape(found[1])}(?![\w.-])"
        return re.compile(own).search(self._source, after) is not None

    def _blank(self, at: int) -> int:
        """The end of a separator between words; 0 at a word, or at the end of a command."""
        if self._source.startswith("\\\n", at):
            return at + 2
        is_line_blank = bool(self._array) or not self._by_line
        return at + 1 if self._source[at] in (" \t\r\n" if is_line_blank else " \t\r") else 0

    def _read(self, at: int, after: int, own: _Quoted) -> Iterator[Word]:
        """The words that a program gets for one in the text: none, one or more."""
        raw, value = self._source[at:after], own.text
        if (elements := _ELEMENTS.fullmatch(raw)) and elements[1] in self.arrays:
            # An array may be made of itself, once more each time.
            yield from self.arrays[elements[1]][:_MAX_ELEMENTS]
            return
        remark = self._remark(raw)
        for name, default in _DEFAULTED.findall(raw):
            if name not in self.known:
                self.known[name], self._remarks[name] = expand(default, self.known), remark
        word = replace(self._text.word(value, at, after), remark=remark)
        if found := _ASSIGNED.fullmatch(value):
            is_own = re.search(rf"\$\{{?{found[1]}\b", raw) is not None
            is_dropped = self._assign(found[1], bool(found[2]), found[3], is_own, remark)
            word = replace(word, doubt=CONDITION if is_dropped else "")
        if not self._array:
            is_sure = not self.control.is_test or self._is_sure(raw)
            self.control.take(value if is_sure else raw, at, remark)
            if self.control.command == [value] and value in self._forwards:
                yield from (replace(word, text=text) for text in self._forwards[value])
                return
        is_output = "$(" in value or "`" in value or self.control.command[:1] == ["eval"]
        if raw.startswith("$") and value != raw and not (is_output or re.search("[\"']", raw)):
            # An expansion outside quotes is split into words.
            yield from (replace(word, text=text) for text in value.split())
        elif value or not raw.startswith("$"):
            yield replace(word, script=own) if re.search(r"\s", value) else word

    @cached_property
    def _named(self) -> Counter[str]:
        """How often names are mentioned without a value, beside what is done for options."""
        *parts, last = self._source.split(";;")
        rest = [p[: found.start()] if (found := _LABEL.search(p)) else p for p in parts]
        return Counter(_MENTIONED.findall("\n".join((*rest, last))))

    def _is_sure(self, raw: str) -> bool:
        """Whether variables have the value of the one place that sets them, beside options."""
        names = re.findall(r"\$[{#!]*([A-Za-z_]\w*)", raw)
        return not any(self._is_sourced or n in self._open or self._named[n] > 1 for n in names)

    def _remark(self, raw: str) -> str:
        """What is to be said of a word with the default of a variable."""
        for name, default in re.findall(r"\$\{?([A-Za-z_]\w*|[1-9])(:?[-=])?", raw):
            is_default = name in self._options or (default and name not in self.known)
            if self._remarks.get(name) or is_default:
                said = f"the default of ${name}, which may be changed"
                if self.known.get(name, "").startswith("$"):
                    said = f"${name}, which whoever starts the script gives"
                return self._remarks.get(name) or said
        return ""

    def _assign(self, name: str, is_more: bool, value: str, is_own: bool, remark: str) -> bool:
        """Record a variable's value; whether it is longer only in the blocks at hand.

        `is_own` means that the value is made of the one before.
        """
        before, around = self.known.get(name), self.control.around
        whole = (before or "") + value if is_more else value
        if len(whole) > _MAX_VALUE or len(self._local) > _MAX_ELEMENTS:
            self.known.pop(name, None)
        elif around and before is not None and not is_own and re.search(r"[$`]", value):
            # Another value, which only the shell knows.
            self._options.add(name)
        elif not self.control.never:
            if around:
                self._local.setdefault(name, (around, before))
            self.known[name], self._remarks[name] = whole, remark
            return bool(around) and before is not None and before != whole
        return False

    def _leave(self) -> None:
        """Forget values of variables that they have only in blocks which are no longer at hand."""
        around = {*self.control.around}
        for name in [name for name, own in self._local.items() if not {*own[0]} <= around]:
            before, now = self._local.pop(name)[1], self.known.pop(name, "")
            remark = f"the value of ${name} under a condition of the script"
            # Options that are added to nothing are marked themselves.
            is_first = before is None or (not before and not now.startswith("-"))
            if not is_first and before is not None and (before in now or name in self._options):
                self.known[name] = before
                continue
            values = self._open.setdefault(name, [] if is_first else [before or ""])
            values.append(MASK if is_secret_key(name) else now[:_MAX_SHOWN])
            if len(values) == 1:
                self.known[name] = now
            self._remarks[name] = remark + (f": {' or '.join(values)}" if values[1:] else "")

    def _inserted(self, at: int, quote: str) -> tuple[int, str] | None:
        """The end and the value of what a shell or a template inserts at an offset."""
        source = self._source
        if source[at] == "$" and (quote != "'" or source.startswith("$${", at)):
            return _expanded(source, at, self.known)
        found = None if quote else _TEMPLATED.match(source, at, self._end)
        return (found.end(), found[0]) if found else None

    def _one_word(self, at: int) -> tuple[int, _Quoted]:
        """The end of a word, and its value with the places of its parts."""
        start, source, result, quote = at, self._source, "", ""
        places: list[int] = []
        ends = " \t\r\n;|&" + (")" if self._array or self.control.is_in_subshell else "")
        while at < self._end:
            character, began = source[at], at
            if character == quote:
                quote = ""
            elif character in "'\"" and not quote:
                quote = character
            elif inserted := self._inserted(at, quote):
                at, value = inserted
                result += value
                places += [began] * len(value)
                continue
            elif character == "\\" and quote != "'":
                after = source[at + 1 : at + 2]
                if not quote and after == "\n":
                    break
                if not quote or after in ('"', "\\", "$", "`", "\n"):
                    at += 1
                    character = "" if after == "\n" else after
                result += character
            elif (
                not quote
                and character in ends
                and source[at - 1 : at + 1] not in ("<&", ">&", "()")
            ):
                break
            else:
                result += character
            places += [began] * (len(result) - len(places))
            at += 1
        if quote and self._by_line:
            line = self._text.span(start, start).line + 1
            self.control.ended = f"line {line} begins a quotation that nothing ends"
        return at, _Quoted(self._text, result, places or [at])


def expand(text: str, known: Mapping[str, str]) -> str:
    """A text with the values of known variables, or else their defaults."""
    result, at = "", 0
    while (found := text.find("$", at)) >= 0:
        after, value = _expanded(text, found, known)
        result += text[at:found] + value
        at = after
    return result + text[at:]


def _expanded(source: str, at: int, known: Mapping[str, str]) -> tuple[int, str]:
    """The end of an expansion, and its value: itself if only a shell could tell."""
    if source.startswith("$$", at):
        # Compose's way of leaving a variable to the shell.
        close = _OPENING.get(source[at + 2 : at + 3])
        after = _closed(source, at + 3, close) if close else 0
        return (after, source[at + 1 : after]) if after else (at + 2, "$")
    if (close := _OPENING.get(source[at + 1 : at + 2])) and (
        after := _closed(source, at + 2, close)
    ):
        raw = source[at:after]
        return after, _parameter(raw, known) if close == "}" else raw
    if found := re.compile(rf"{NAME}|[1-9]").match(source, at + 1):
        return found.end(), known.get(found[0], f"${found[0]}")
    return at + 1, "$"


def _closed(source: str, at: int, close: str) -> int:
    """The end of an expansion, including nested ones; 0 if it isn't closed."""
    opening, depth = source[at - 1], 1
    if found := _PRINTS.match(source, at):
        last = source.find(f"\n{found[2]}\n", found.end() - 1, at + 10 * _MAX_EXPANSION)
        at = max(at, last)
    if source.find(close, at, at + _MAX_EXPANSION) < 0:
        return 0
    for number in range(at, min(len(source), at + _MAX_EXPANSION)):
        depth += (source[number] == opening) - (source[number] == close)
        if depth == 0:
            return number + 1
        if depth > _MAX_DEPTH:
            break
    return 0


def _parameter(raw: str, known: Mapping[str, str]) -> str:
    found = _PARAMETER.fullmatch(raw[2:-1])
    if raw[2:-1] in known:
        return known[raw[2:-1]]
    if found is None:
        return raw
    name, operator, rest = found[1] or raw[2], found[2] or "", found[3] or ""
    value = known.get(name)
    is_set = bool(value) if operator.startswith(":") else value is not None
    if operator.endswith("+"):
        return expand(rest, known) if is_set else raw if value is None else ""
    if is_set and value is not None:
        return value
    if operator.endswith(("-", "=")):
        quoted = re.fullmatch(r"""(["'])(.*)\1""", rest, re.DOTALL)
        return expand(quoted[2] if quoted else rest, known)
    return raw
