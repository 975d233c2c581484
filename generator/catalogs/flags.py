"""What the engines' own parsers take, by version: flags with their types, and variables.

A catalog is a file for each program, `schemas/engines/PROGRAM.tsv`, with fields parted by tabs:

- `#` and text: where the catalog comes from.
- `versions` and the versions that the file covers, oldest first.
- `parser` and how the program's parser reads: `underscores` (`_` is `-` in names), `abbreviations`
  (it completes a beginning), `dotted` (`--flag.key value` sets a key of a JSON flag), `iec` (sizes
  end with k, Ki, M or Mi; otherwise with k for 1000 and K for 1024), `equals` (it takes
  `--flag=value`).
- `variables`, a prefix, and `all` where the catalog has all that begin with it, else `some`.
- `--name --alias -a`, a type (`switch`, which takes no value, `int`, `float`, `text` or `json`),
  and what else is known: each an attribute of `Flag`, `=`, and its words.
- The name of a variable; a third field has the kind of value that it is read as, if that is known.

What not every version has says which do: a flag in an attribute `versions`, a variable in a second
field, a name, a value or a key behind an `@`. `0.20.0..0.26.0` is a range with both ends, of which
either may be left out; several ranges are parted by commas.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

from generator import diagnostics
from generator.records import record, replace

# Any text, among the words that are accepted besides the type.
ANY = "*"


@record
class Flag:
    """A flag as its parser defines it; names with their dashes, the full one first."""

    names: tuple[str, ...]
    type: str
    # The names that turn it off.
    off: tuple[str, ...] = ()
    # Several values: "+" and "*" as separate words, a number for exactly that many, "append" by
    # repeating the flag, "comma" in one word.
    many: str = ""
    # The values that the parser accepts, and those that the engine is known to accept later.
    choices: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    # Accepted besides the type: words, or ANY text.
    also: tuple[str, ...] = ()
    # The words for true and false, for a flag that is not a switch.
    words: tuple[str, ...] = ()
    # The keys of the JSON object.
    fields: tuple[str, ...] = ()
    # `16k` is a number; a choice may be in any case, with `-` for `_`; the value may be omitted.
    suffixes: bool = False
    folded: bool = False
    optional: bool = False
    variable: str = ""
    # Why it is deprecated, empty if no reason is known; None if it is not deprecated.
    deprecated: str | None = None

    @property
    def name(self) -> str:
        """The full name as in a site file, without dashes."""
        return self.names[0].lstrip("-")


@record
class ResolvedFlag:
    """What a name in a site file stands for: the option, and the key of a dotted name."""

    flag: Flag
    option: str
    key: str

    @property
    def is_short(self) -> bool:
        """Whether the option has a single dash."""
        return not self.option.startswith("--")

    @property
    def is_off(self) -> bool:
        """Whether the option turns the flag off."""
        return self.option in self.flag.off


class Coverage:
    """Which of a file's version ranges contain one version."""

    def __init__(self, versions: Sequence[str], version: str) -> None:
        self._places = {known: place for place, known in enumerate(versions)}
        self._place = self._places[version]
        self._holds: dict[str, bool] = {}

    def holds(self, ranges: str) -> bool:
        """Whether the version is in one of the ranges; no ranges mean all versions."""
        if ranges not in self._holds:
            self._holds[ranges] = not ranges or any(map(self._is_in, ranges.split(",")))
        return self._holds[ranges]

    def words(self, text: str) -> tuple[str, ...]:
        """The words that apply to the version."""
        parts = (word.partition("@") for word in text.split())
        return tuple(word for word, _, ranges in parts if self.holds(ranges))

    def _is_in(self, text: str) -> bool:
        first, dots, last = text.partition("..")
        start = self._places[first] if first else 0
        if not dots:
            return self._place == start
        return start <= self._place and (not last or self._place <= self._places[last])


@record
class FlagCatalog:
    """The flags and variables of one version of a program."""

    program: str
    version: str
    traits: frozenset[str]
    # The variables that begin with the prefix: all that are read, or only some.
    prefix: str
    has_all_variables: bool
    variables: frozenset[str]
    # How variables are read: `int`, `float` or `switch`.
    kinds: Mapping[str, str]
    lines: tuple[str, ...]
    coverage: Coverage

    @cached_property
    def _flags(self) -> dict[str, Flag]:
        """The flags that were looked up, by line."""
        return {}

    @cached_property
    def _by_option(self) -> Mapping[str, str]:
        return {option: line for line in self.lines for option in self._options(line)}

    @cached_property
    def _spelled(self) -> Sequence[tuple[str, int, str]]:
        """The options in the order of their spelling, each with its number."""
        numbered = enumerate(self._by_option)
        return sorted((option.replace("_", "-"), number, option) for number, option in numbered)

    def flags(self) -> Iterator[Flag]:
        """All flags, in the order of their names."""
        return map(self._flag, self.lines)

    def find(self, name: str) -> ResolvedFlag | None:
        """The flag for a name without dashes: a full name, an alias or a negation."""
        first, dot, key = name.partition(".") if "dotted" in self.traits else (name, "", "")
        spelled = first.replace("_", "-") if "underscores" in self.traits else first
        for option in (f"--{spelled}", f"-{spelled}"):
            if option in self._by_option:
                flag = self._flag(self._by_option[option])
                return ResolvedFlag(flag, option, key) if not dot or flag.type == "json" else None
        return None

    def completions(self, beginning: str) -> list[str]:
        """The full names that begin with a text, one per flag."""
        start = "--" + beginning.replace("_", "-")
        names: dict[str, str] = {}
        first, last = (bisect_left(self._spelled, (text,)) for text in (start, f"{start}~"))
        for _, _, option in sorted(self._spelled[first:last], key=itemgetter(1)):
            names.setdefault(self._by_option[option], option.removeprefix("--"))
        return sorted(names.values())

    def nearest(self, name: str) -> str | None:
        """The full name that a misspelled one most likely stands for."""
        long = [option[2:] for option in self._by_option if option.startswith("--")]
        spelled = {option.replace("_", "-"): option for option in long}
        requested = name.lower().replace("_", "-")
        completed = self.completions(requested)
        if requested not in spelled and len(completed) == 1:
            return completed[0]
        found = requested if requested in spelled else diagnostics.nearest(requested, spelled)
        return spelled[found] if found else None

    def _options(self, line: str) -> tuple[str, ...]:
        """All names on a line, including those that turn the flag off."""
        off = re.search(_OFF, line)
        return self.coverage.words(line.partition("\t")[0] + (f" {off[1]}" if off else ""))

    def _flag(self, line: str) -> Flag:
        if line not in self._flags:
            self._flags[line] = _flag(line, self.coverage)
        return self._flags[line]


def parse(program: str, version: str, text: str) -> FlagCatalog:
    """Parse the catalog of one version from a file in this format."""
    coverage = Coverage(covered(program, text), version)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    head = {line.partition("\t")[0]: line.split("\t")[1:] for line in lines[:3]}
    if "parser" not in head:
        place = f"schemas/engines/{program}.tsv:{text.partition(lines[0])[0].count(chr(10)) + 2}"
        raise LookupError(f"{place}: no line 'parser' follows 'versions'")
    flags = tuple(line for line in lines if line.startswith("-") and _is_flag(line, coverage))
    prefix, extent = head.get("variables", ("", "some"))
    own = (re.search(_VARIABLE, line) for line in flags)
    variables = dict(_variables(lines, coverage))
    return FlagCatalog(
        program,
        version,
        frozenset(head["parser"]),
        prefix,
        extent == "all",
        frozenset(variables).union(found[1] for found in own if found),
        variables,
        flags,
        coverage,
    )


def covered(program: str, text: str) -> tuple[str, ...]:
    """The versions that a file in this format covers, oldest first."""
    found = re.findall(_VERSIONS, text)
    if len(found) != 1:
        raise LookupError(f"schemas/engines/{program}.tsv: {len(found)} lines 'versions', not one")
    return tuple(found[0].split())


_VERSIONS = r"(?m)^versions\t(.*\S.*)$"
_VARIABLE = r"\tvariable=(\w+)"
_OFF = r"\toff=([^\t]+)"
_HELD_BY = r"\tversions=([^\t]+)"


def _is_flag(line: str, coverage: Coverage) -> bool:
    held = re.search(_HELD_BY, line)
    return not held or coverage.holds(held[1])


def _variables(lines: Sequence[str], coverage: Coverage) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, _, rest = line.partition("\t")
        ranges, _, kind = rest.partition("\t")
        if name.isupper() and coverage.holds(ranges):
            yield name, kind


def _flag(line: str, coverage: Coverage) -> Flag:
    names, kind, *rest = line.split("\t")
    flag = Flag(coverage.words(names), kind)
    given: dict[str, Any] = {}
    for name, _, text in (part.partition("=") for part in rest):
        if name in Flag.__match_args__:
            default = getattr(flag, name)
            is_list, is_mark = isinstance(default, tuple), isinstance(default, bool)
            given[name] = coverage.words(text) if is_list else is_mark or text
    return replace(flag, **given)
