"""The words of shell text, as far as they are certain without running it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from generator.adoption.found import Word
from generator.adoption.text import NAME, Text
from generator.records import replace

_BREAKS = ("&&", "||", ";;", ";", "|", "&")
_ASSIGNED = re.compile(rf"{NAME}(\+?)=(.*)", re.DOTALL)
_ARRAY = re.compile(rf"{NAME}\+?=\(")
_ELEMENTS = re.compile(rf'"?\$\{{{NAME}\[[@*]\]\}}"?')
_PARAMETER = re.compile(rf"(?:{NAME}|[1-9])(?:(:?[-+?=])(.*))?", re.DOTALL)
_DEFAULTED = re.compile(rf"\$\{{{NAME}:?=([^{{}}]*)\}}")
_MAX_EXPANSION = 4000
_MAX_DEPTH = 8
_MAX_VALUE = 8000
_MAX_ELEMENTS = 1000
_HERE = re.compile(r"""[^#]*<<-?[ \t]*(["']?)(\w+)\1.*""")
# What reads commands from the lines after it, and what starts and ends what may not be executed.
_EXECUTES = re.compile(r"[^<>]*\b(ssh|(ba)?sh)\b[^<>]*<<.*|.*(\.sh\b|<<.*\|.*\b(ssh|(ba)?sh)\b).*")
_BLOCKS = ("if", "case", "while", "until", "for", "select")
_FIRST = re.compile(r"then|else|elif|do|!|\{|\}|if|while|until|[^(\s]*\)|[\w.-]+\(\)\{?")
_NEVER = "its condition never holds"
_CLOSING = ("fi", "esac", "done")
_TESTS = ("[", "[[", "test", "false", "grep", "command")
_MAX_LINE = 400
CONDITION = "only in a loop or under a condition, which is known only when it runs"
_OPENING = {"(": ")", "{": "}"}


def shell_words(
    text: Text, start: int, end: int, variables: Mapping[str, str], by_line: bool = True
) -> Iterator[Word]:
    """The words between two offsets.

    A variable that is not set stays as written. Unless `by_line`, a newline is a space.
    """
    return _Shell(text, end, variables, by_line).words(start)


def commands(words: Iterable[Word]) -> Iterator[list[Word]]:
    """The commands of a script, without what ends each."""
    for breaks, own in groupby(words, key=lambda word: word.breaks):
        if not breaks:
            yield list(own)


def script(
    text: Text, variables: Mapping[str, str]
) -> tuple[list[Word], list[Word], Mapping[str, str]]:
    """A script's words, each array's elements like a command, and its variables."""
    shell = _Shell(text, len(text.text), variables, True)
    words, end = list(_uncalled(list(shell.words(0)))), text.word("\n", 0, 0, True)
    arrays = [word for own in shell.arrays.values() for word in (*dict.fromkeys(own), end)]
    return words, arrays, shell.known


def _uncalled(words: Sequence[Word]) -> Iterator[Word]:
    """The words, those of functions that nothing calls with a doubt."""
    said = (word.text for word in words if not word.doubt)
    named = {name for text in said if "()" not in text for name in re.findall(r"[\w.-]+", text)}
    is_open = any(own[0].text.startswith(("$", '"$')) for own in commands(words))
    function, depth = "", 0
    for word in words:
        found = re.fullmatch(r"([\w.-]+)\(\)(\{?)", word.text)
        if found and not (depth or found[1] in named or is_open):
            function, depth = found[1], len(found[2])
        elif function:
            depth += (word.text == "{") - (word.text == "}")
            if depth and not word.doubt:
                word = replace(word, doubt=f"of {function}, which nothing calls")
            function = function if depth or word.breaks else ""
        yield word


class _Shell:
    def __init__(self, text: Text, end: int, variables: Mapping[str, str], by_line: bool) -> None:
        self._text, self._source, self._end = text, text.text, end
        self._by_line = by_line
        self.known = dict(variables)
        self._assigned: set[str] = set()
        self.arrays: dict[str, list[Word]] = {}
        # The name of the array whose elements are being read.
        self._array = ""
        # The command at hand, up to its first word; blocks that may not be executed; what ended
        # the command before, if that may prevent this one.
        self._first, self._blocks, self._doubt = "", list[str](), ""
        # Whether it executes what its commands print.
        self._is_evaluated = re.search(r"\b(eval|sh -l?c)[ \t]+\"?\$\(", text.text) is not None
        # Variables that whoever starts the script may give another value.
        self._remarks: dict[str, str] = {}

    def words(self, at: int) -> Iterator[Word]:
        source, end = self._source, self._end
        while at < end:
            character = source[at]
            if after := self._blank(at):
                at = after
            elif character == "\n":
                yield self._text.word(character, at, at + 1, True)
                self._first = self._doubt = ""
                at += 1
                yield from self._file(at)
                at = self._after
            elif character == "#" and not source.startswith("#SBATCH", at):
                at = end if (line_end := source.find("\n", at, end)) < 0 else line_end
            elif character == ")" and self._array:
                self._array = ""
                at += 1
            elif mark := next((m for m in _BREAKS if source.startswith(m, at)), ""):
                yield self._text.word(mark, at, at + len(mark), True)
                self._join(mark)
                at += len(mark)
            elif found := _ARRAY.match(source, at, end):
                self._array = found[1]
                self.arrays.setdefault(found[1], [])
                at = found.end()
            else:
                after, value = self._one_word(at)
                own = self._read(at, after, value)
                if self._array:
                    placed = map(self._in_blocks, own)
                    self.arrays[self._array] += (
                        replace(w, doubt=w.doubt or (CONDITION if w.around else "")) for w in placed
                    )
                else:
                    yield from map(self._in_blocks, own)
                    self._follow(value, at)
                at = max(after, at + 1)

    def _in_blocks(self, word: Word) -> Word:
        """A word with what may keep a shell from executing it."""
        around = (*self._blocks[-_MAX_DEPTH:], *([f"&& {self._doubt}"] if self._doubt else []))
        doubt = word.doubt or (self._doubt if self._doubt == _NEVER else "")
        return replace(word, around=around, doubt=doubt) if around else word

    def _follow(self, text: str, at: int) -> None:
        """Go on with a word of a command."""
        if not self._first:
            if text in _BLOCKS:
                self._blocks.append(f"{text} {at}")
            elif text in _CLOSING:
                del self._blocks[-1:]
            self._first = "" if _FIRST.fullmatch(text) else text

    def _join(self, mark: str) -> None:
        """Go on behind what joins two commands."""
        is_never = mark == "&&" and self._first == "false"
        is_test = mark == "||" or (mark == "&&" and (self._first in _TESTS or self._doubt))
        self._doubt = _NEVER if is_never else CONDITION if is_test else ""
        self._first = ""

    def _file(self, at: int) -> Iterator[Word]:
        """The lines that the line before holds for a program, unless they are commands."""
        source, self._after = self._source, at
        start = source.rfind("\n", 0, at - 1) + 1
        found = _HERE.match(source, start, at - 1) if at - start < _MAX_LINE else None
        if found is None or self._is_evaluated or _EXECUTES.match(found[0]):
            return
        last = self._text.next_line(found[2], self._text.span(at, at).line)
        if last is not None:
            line_end = source.find("\n", self._text.offset(last, 0), self._end)
            self._after = line_end if line_end >= 0 else self._end
        for part in re.compile(r"\n|\S+").finditer(source, at, self._after):
            yield replace(self._text.word(part[0], *part.span(), part[0] == "\n"), doubt="text")

    def _blank(self, at: int) -> int:
        """The end of a separator between words; 0 at a word, or at the end of a command."""
        if self._source.startswith("\\\n", at):
            return at + 2
        is_line_blank = bool(self._array) or not self._by_line
        return at + 1 if self._source[at] in (" \t\r\n" if is_line_blank else " \t\r") else 0

    def _read(self, at: int, after: int, value: str) -> Iterator[Word]:
        """The words that a program gets for one in the text: none, one or more."""
        raw = self._source[at:after]
        if (elements := _ELEMENTS.fullmatch(raw)) and elements[1] in self.arrays:
            # An array may be made of itself, once more each time.
            yield from self.arrays[elements[1]][:_MAX_ELEMENTS]
            return
        for name, default in _DEFAULTED.findall(raw):
            if name not in self.known:
                self._assign(name, False, expand(default, self.known))
        remark = self._remark(raw)
        if found := _ASSIGNED.fullmatch(value):
            self._remarks[found[1]] = remark
            is_own = re.search(rf"\$\{{?{found[1]}\b", raw) is not None
            self._assign(found[1], bool(found[2]), found[3], is_own)
        word = replace(self._text.word(value, at, after), remark=remark)
        is_output = "$(" in value or "`" in value
        if self._first == "eval" and not is_output:
            inner = shell_words(Text("", value), 0, len(value), self.known)
            yield from (replace(word, text=own.text, breaks=own.breaks) for own in inner)
        elif raw.startswith("$") and value != raw and not (is_output or re.search("[\"']", raw)):
            # An expansion outside quotes is split into words.
            yield from (replace(word, text=text) for text in value.split())
        elif value or not raw.startswith("$"):
            yield word

    def _remark(self, raw: str) -> str:
        """What is to be said of a word with the default of a variable."""
        for name, default in re.findall(r"\$\{?([A-Za-z_]\w*|[1-9])(:?[-=])?", raw):
            if self._remarks.get(name) or (default and name not in self.known):
                return self._remarks.get(name) or f"the default of ${name}, which may be changed"
        return ""

    def _assign(self, name: str, is_more: bool, value: str, is_own: bool = False) -> None:
        """Record a variable's value; if two differ, as in branches of a script, neither counts.

        `is_own` means that the value is made of the one before.
        """
        before = self.known.get(name)
        if value.startswith("-") and (self._blocks or self._doubt):
            # Options that a command has only under a condition.
            self.known.pop(name, None)
            return
        if len(value) + len(before or "") > _MAX_VALUE:
            self.known.pop(name, None)
        elif is_more:
            self.known[name] = (before or "") + value
        elif name not in self._assigned or (before is not None and is_own):
            self.known[name] = value
        elif before != value and "$" not in value:
            self.known.pop(name, None)
        self._assigned.add(name)

    def _one_word(self, at: int) -> tuple[int, str]:
        """The end of a word, and its value."""
        source, result, quote = self._source, "", ""
        while at < self._end:
            character = source[at]
            if character == quote:
                quote = ""
            elif character in "'\"" and not quote:
                quote = character
            elif character == "$" and quote != "'":
                at, value = _expanded(source, at, self.known)
                result += value
                continue
            elif character == "\\" and quote != "'":
                after = source[at + 1 : at + 2]
                if not quote and after == "\n":
                    break
                if not quote or after in ('"', "\\", "$", "`", "\n"):
                    at += 1
                    character = "" if after == "\n" else after
                result += character
            elif not quote and character == "&" and source[at - 1] in "<>":
                result += character
            elif not quote and (character in " \t\r\n;|&" or (character == ")" and self._array)):
                break
            else:
                result += character
            at += 1
        return at, result


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
    if found := re.compile(NAME).match(source, at + 1):
        return found.end(), known.get(found[1], f"${found[1]}")
    return at + 1, "$"


def _closed(source: str, at: int, close: str) -> int:
    """The end of an expansion, including nested ones; 0 if it isn't closed."""
    opening, depth = source[at - 1], 1
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
    if found is None:
        return raw
    name, operator, rest = found[1], found[2] or "", found[3] or ""
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
