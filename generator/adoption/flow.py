"""How a shell goes through a script: which of its words it executes, and in which blocks."""

import operator
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile, groupby

from generator.adoption.found import Word
from generator.records import replace

CONDITION = "only in a loop or under a condition, which is known only when it runs"
_NEVER = "its condition never holds"
_MAX_DEPTH = 8
# Programs whose only purpose is to succeed or fail; others are expected to succeed.
_TESTS = re.compile(r"\[(\[.*)?|\(\(.*|test|!|e?grep|pgrep|command|which|type|false|true")
_FUNCTION = re.compile(r"([\w.:-]+)\(\)(\{?)")
_COMPARED = {"=": operator.eq, "==": operator.eq, "!=": operator.ne}
_COUNTED = {f"-{name}": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
_COUNTED |= {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
# Words of the shell before a command.
_BEFORE = re.compile(
    r"eval|if|then|elif|else|fi|while|until|do|done|esac|!|[{}(]|\S+\(\)|[^(\s]+\)"
)
_ASKING = ("if", "elif", "while", "until")
_CLOSING = ("fi", "esac", "done", "}", ")")


class _Block:
    """A compound command; `holds`: whether its part at hand is executed, None if that is open.

    `left` is the same of the parts after the next one, and `remark` says why it may change. `part`
    is the shell's word that the part at hand began with, and `why` is said if it isn't executed.
    `is_expected`: it follows a command that is only expected to succeed.
    """

    def __init__(self, kind: str, at: int, holds: bool | None, is_expected: bool = False) -> None:
        self.kind, self.at, self.holds, self.left, self.remark = kind, at, holds, holds, ""
        self.part, self.why, self.is_expected, self.begin = kind, _NEVER, is_expected, at

    @property
    def around(self) -> str:
        kind = "&&" if self.kind in ("{", "(") else self.kind
        return kind if kind.endswith("()") else f"{kind} {self.begin}:{self.at}"


class Control:
    """Follows the words of a script, one by one."""

    def __init__(self) -> None:
        self.command: list[str] = []
        self._blocks: list[_Block] = []
        # Whether what comes next in a list of && and || is executed, and which place that is.
        self._holds: bool | None = True
        self._at = self._listed = 0
        # What the last command returned, None if that is open, and why it may change.
        self._status: bool | None = None
        self._condition: tuple[bool | None, str] = None, ""
        self._remark = ""
        self._function = self.ended = self._said = ""
        # Whether the last command was executed, and one before it is only expected to succeed.
        self.was_executed, self._is_expected = True, False
        self._calls: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        self._named: set[str] = set()

    @property
    def around(self) -> tuple[str, ...]:
        """The blocks at hand of which it is open whether they are executed."""
        chained = () if self._holds else (f"&& {self._listed}",)
        blocks = [block.around for block in self._blocks if block.holds is None]
        return (*blocks[:_MAX_DEPTH], *chained)

    @property
    def never(self) -> str:
        """Why what comes next is not executed."""
        found = (block.why for block in self._blocks if block.holds is False)
        return next(found, _NEVER if self._holds is False else self.ended)

    @property
    def remark(self) -> str:
        """Why what comes next may not be executed, as far as somebody may change a default."""
        return self._remark or next((one.remark for one in self._blocks if one.remark), "")

    @property
    def is_test(self) -> bool:
        """Whether the command at hand compares its words."""
        return self.command[:1] in (["["], ["test"], ["!"])

    @property
    def block(self) -> str:
        """The kind of the innermost block."""
        return self._blocks[-1].kind if self._blocks else ""

    @property
    def is_in_subshell(self) -> bool:
        """Whether a parenthesis ends a subshell."""
        return any(block.kind == "(" for block in self._blocks)

    def take(self, text: str, at: int, remark: str = "") -> None:
        """Go on with a word; `remark` says why it may be another."""
        self._at = at
        if self.is_test or text.startswith(("[[", "((")):
            self._said = self._said or remark
        if self.command == ["function"] or (text == "()" and len(self.command) == 1):
            self._function = (text if text != "()" else self.command[0]).removesuffix("()")
            self.command = []
        elif text == "in" and self.command[:1] == ["case"]:
            self.command, self._blocks[-1].holds = [], None
        elif self.command or not self._is_reserved(text, at):
            self.command.append(text)

    def _is_reserved(self, text: str, at: int) -> bool:
        """Whether a word at the beginning of a command belongs to the shell."""
        if found := _FUNCTION.fullmatch(text):
            self._function = found[1]
            text = found[2]
        if text in ("{", "(") and self._function:
            self._blocks.append(_Block(f"{self._function}()", at, None))
            self._function = ""
        elif text in ("if", "while", "until", "for", "select", "case", "{", "("):
            self._blocks.append(_Block(text, at, self._holds, self._is_expected))
            self._holds, self._is_expected = True, False
            self.command += [text] if text in ("for", "select", "case") else []
        elif text in ("then", "do", "else", "elif") and self._blocks:
            self._go_on(self._blocks[-1], text, at)
        elif text in _CLOSING and self._blocks:
            closed = self._blocks.pop()
            self._holds = closed.left if closed.kind in ("{", "(") else True
            self.command = [text]
        elif text.endswith(")") and self.block == "case":
            self._blocks[-1].kind, self._blocks[-1].at = "case of", at
            self._blocks[-1].holds, self._blocks[-1].why = None, _NEVER
        else:
            return found is not None
        return True

    def _go_on(self, block: _Block, text: str, at: int) -> None:
        """Go on with the next part of a block, whose condition came last."""
        block.part, block.why = text, _NEVER
        block.at, block.holds = at, None if text == "do" else block.left
        if text == "then":
            block.remark = block.remark or self._condition[1]
            block.holds = _both(block.left, _chosen(*self._condition))
            block.left = _both(block.left, _chosen(*self._condition, False))

    def end(self, mark: str, line: int) -> None:
        """Go on with what ends a command."""
        own, self.command = self.command, []
        self._remark, self._said = self._remark or self._said, ""
        if not own and mark in ("\n", "("):
            return
        if mark == ";;" and self.block == "case of":
            self._blocks[-1].kind = "case"
        self._note(own)
        self._end_at(own, mark, line)
        self.was_executed = self._holds is not False
        if self.was_executed:
            self._status = outcome(own) if self._holds and mark != "|" else None
        is_sure = self._holds and own and not _TESTS.fullmatch(own[0])
        if mark == "&&":
            self._is_expected = self._is_expected or bool(is_sure and self._status is None)
            self._holds = True if is_sure else _chosen(self._status, self._remark)
        elif mark == "||":
            self._holds = _chosen(self._status, self._remark, False)
        elif mark != "|":
            self._condition = self._status, self._remark
            self._holds, self._remark, self._is_expected = True, "", False
        self._listed = self._at

    def _end_at(self, own: Sequence[str], mark: str, line: int) -> None:
        """End the script, or the part of a block at hand, where a command certainly does."""
        is_end = re.match(r"exit\b|exec [^<>0-9]", " ".join(own[:2])) and mark != "|"
        is_asked = any(block.part in _ASKING for block in self._blocks[-1:])
        if not is_end or not self._holds or self._is_expected or self.never or is_asked:
            return
        why = f"it comes after '{own[0]}' in line {line + 1}"
        is_open = self.around or any(block.is_expected for block in self._blocks)
        if not (is_open or self.remark or self.is_in_subshell):
            self.ended = why
        for block in self._blocks[-1:]:
            block.holds, block.why = False, why

    def _note(self, own: Sequence[str]) -> None:
        """Record what a command may call."""
        said = list(dropwhile(re.compile(r"!|\w+\+?=.*").match, own))
        if said:
            self._calls[said[0]].append(self.around)
        others = (text for text in own if text not in said[:1])
        self._named.update(name for text in others for name in re.findall(r"[\w.-]+", text))

    def settled(self, words: Iterable[Word]) -> Iterator[Word]:
        """The words, with what is known of functions once the whole script is read."""
        is_open = any(first.startswith("$") for first in self._calls)
        # A call within a function is the last choice.
        known = {
            name: min(calls, key=lambda own: ("()" in "".join(own), len(own)))
            for name, calls in self._calls.items()
        }
        for word in words:
            around = [*word.around]
            for _ in range(_MAX_DEPTH):
                at = next((n for n, part in enumerate(around) if part.endswith("()")), len(around))
                name = "".join(around[at : at + 1]).removesuffix("()")
                own = known.get(name, ("if",) if is_open or name in self._named else None)
                if name and own is None:
                    word = replace(word, doubt=word.doubt or f"of {name}, which nothing calls")
                around[at : at + 1] = own or ()
            yield replace(word, around=tuple(around)) if word.around else word


def _both(one: bool | None, other: bool | None) -> bool | None:
    """Whether both hold."""
    return False if False in (one, other) else one and other


def _chosen(status: bool | None, remark: str, wanted: bool = True) -> bool | None:
    """Whether a status is the one that is wanted; one that may change rules nothing out."""
    if status is None:
        return None
    return status is wanted or (None if remark else False)


def outcome(own: Sequence[str]) -> bool | None:
    """Whether a command succeeds; None unless only its own words decide that."""
    if own[:1] == ["!"]:
        inner = outcome(own[1:])
        return None if inner is None else not inner
    if own in (["true"], [":"], ["false"]):
        return own != ["false"]
    words = [part.strip("\"'") for part in own[0].split()] if len(own) == 1 else list(own)
    is_test = words[:1] in (["["], ["[["], ["(("]) and len(words) > 2
    if not (is_test or words[:1] == ["test"]) or re.search(r"[$`*?\\]", " ".join(own)):
        return None
    said = words[1:-1] if is_test else words[1:]
    match said:
        case ["-n" | "-z" as option, word]:
            return (option == "-n") is (word != "")
        case [one, sign, other] if sign in _COMPARED and words[0] != "((":
            return bool(_COMPARED[sign](one, other))
        case [one, sign, other] if one.isdecimal() and other.isdecimal():
            compared = (_COUNTED | _COMPARED).get(sign)
            return bool(compared(int(one), int(other))) if compared else None
    return None


def commands(words: Iterable[Word]) -> Iterator[list[Word]]:
    """The commands of a script, without what ends each."""
    for breaks, own in groupby(words, key=lambda word: word.breaks):
        if not breaks:
            yield list(own)


def behind(words: Sequence[Word]) -> Sequence[Word]:
    """The words of a command behind those of the shell, such as the label of a case."""
    return list(dropwhile(lambda word: _BEFORE.fullmatch(word.text), words)) or words
