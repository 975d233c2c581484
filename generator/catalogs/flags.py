"""What the engines' own parsers take, by version: flags with their types, and variables.

Nothing is read before the first question. A catalog is a file of its own,
`schemas/engines/PROGRAM-VERSION.tsv`; a line of it has fields parted by tabs:

- `#` and text: where the catalog comes from.
- `parser` and how the program's parser reads: `underscores` (`_` is `-` in names), `abbreviations`
  (it completes a beginning), `dotted` (`--flag.key value` sets a key of a JSON flag), `equals` (it
  takes `--flag=value`).
- `variables`, a prefix, and `all` where the catalog has all that begin with it, else `some`.
- `--name --alias -a`, a type (`switch`, which takes no value, `int`, `float`, `text` or `json`),
  and what else is known: each an attribute of `Flag`, `=`, and its words.
- The name of a variable.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import zip_longest
from typing import NamedTuple

from generator import diagnostics
from generator.resources import SCHEMAS

FOLDER = SCHEMAS / "engines"

# Any text, among the words that are taken beside a type.
ANY = "*"

Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag as its parser knows it; names with their dashes, the full one first."""

    names: tuple[str, ...]
    type: str
    # The names that switch it off.
    off: tuple[str, ...] = ()
    # Several values: "+" and "*" as words of their own, a number so many, "append" the flag again
    # for each, "comma" one word.
    many: str = ""
    # The values that the parser takes, and those that the engine is known to take later.
    choices: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    # What is taken beside the type: words, or ANY text.
    also: tuple[str, ...] = ()
    # The words for true and false of a flag that is no switch.
    words: tuple[str, ...] = ()
    # The keys of the JSON object.
    fields: tuple[str, ...] = ()
    # `16k` is a number; a choice in any case, and with `-` for `_`; no value is needed.
    suffixes: bool = False
    folded: bool = False
    optional: bool = False
    variable: str = ""
    # Why it is deprecated, which may be nothing that is known; None where it is not.
    deprecated: str | None = None

    @property
    def name(self) -> str:
        """The full name, as a site file writes it: without dashes."""
        return self.names[0].lstrip("-")


class Found(NamedTuple):
    """What a name of a site file stands for: the option, and the key of a dotted name."""

    flag: Flag
    option: str
    key: str

    @property
    def is_short(self) -> bool:
        """Whether the option is one that takes a single dash."""
        return not self.option.startswith("--")

    @property
    def is_off(self) -> bool:
        """Whether the option switches the flag off."""
        return self.option in self.flag.off


@dataclass(frozen=True)
class FlagCatalog:
    """The flags and variables of one version of a program."""

    program: str
    version: str
    traits: frozenset[str]
    # The variables that begin with the prefix: all that are read, or some.
    prefix: str
    has_all_variables: bool
    variables: frozenset[str]
    lines: tuple[str, ...]

    @cached_property
    def _by_option(self) -> Mapping[str, str]:
        return {option: line for line in self.lines for option in _options(line)}

    def flags(self) -> Iterator[Flag]:
        """All flags, in the order of their names."""
        return map(_flag, self.lines)

    def find(self, name: str) -> Found | None:
        """The flag that a name without dashes stands for: a full name, an alias or a negation."""
        first, dot, key = name.partition(".") if "dotted" in self.traits else (name, "", "")
        spelled = first.replace("_", "-") if "underscores" in self.traits else first
        for option in (f"--{spelled}", f"-{spelled}"):
            if option in self._by_option:
                flag = _flag(self._by_option[option])
                return Found(flag, option, key) if not dot or flag.type == "json" else None
        return None

    def completions(self, beginning: str) -> list[str]:
        """The full names that a text is the beginning of, one a flag."""
        start = "--" + beginning.replace("_", "-")
        names: dict[str, str] = {}
        for option, line in self._by_option.items():
            if option.replace("_", "-").startswith(start):
                names.setdefault(line, option.removeprefix("--"))
        return sorted(names.values())

    def nearest(self, name: str) -> str | None:
        """The full name that a misspelt one is likely to be."""
        spelled = {option[2:].replace("_", "-"): option[2:] for option in self._long()}
        asked = name.lower().replace("_", "-")
        completed = self.completions(asked)
        if asked not in spelled and len(completed) == 1:
            return completed[0]
        found = asked if asked in spelled else diagnostics.nearest(asked, spelled)
        return spelled[found] if found else None

    def _long(self) -> Iterator[str]:
        return (option for option in self._by_option if option.startswith("--"))


def catalog(program: str, version: str) -> FlagCatalog | None:
    """The catalog of that version, or of the nearest one there is; None where there is none."""
    known = versions(program)
    if not known:
        return None
    asked = _numbers(version)
    older = [other for other in known if _numbers(other) <= asked]
    newer = [other for other in known if _numbers(other) > asked]
    around = older[-1:] + newer[:1]
    return _read(program, min(around, key=lambda other: _distance(asked, _numbers(other))))


@cache
def versions(program: str) -> tuple[str, ...]:
    """The versions with a catalog, oldest first."""
    files = FOLDER.glob(f"{program}-[0-9]*.tsv")
    return tuple(sorted((file.stem.removeprefix(f"{program}-") for file in files), key=_numbers))


def _numbers(version: str) -> Numbers:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _distance(one: Numbers, other: Numbers) -> Numbers:
    """How far apart two versions are, in the first number that differs before the others."""
    return tuple(abs(mine - its) for mine, its in zip_longest(one, other, fillvalue=0))


@cache
def _read(program: str, version: str) -> FlagCatalog:
    return parse(program, version, (FOLDER / f"{program}-{version}.tsv").read_text("utf-8"))


def parse(program: str, version: str, text: str) -> FlagCatalog:
    """The catalog that a file of the format says."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    flags = tuple(line for line in lines if line.startswith("-"))
    head = {line.partition("\t")[0]: line.split("\t")[1:] for line in lines[:2]}
    prefix, extent = head.get("variables", ("", "some"))
    own = (_VARIABLE.search(line) for line in flags)
    return FlagCatalog(
        program,
        version,
        frozenset(head["parser"]),
        prefix,
        extent == "all",
        frozenset(line for line in lines if "\t" not in line)
        | {found[1] for found in own if found},
        flags,
    )


_VARIABLE = re.compile(r"\tvariable=(\w+)")
_OFF = re.compile(r"\toff=([^\t]+)")


def _options(line: str) -> list[str]:
    """All names on a line, those that switch the flag off too."""
    off = _OFF.search(line)
    return line.partition("\t")[0].split(" ") + (off[1].split(" ") if off else [])


@cache
def _flag(line: str) -> Flag:
    names, kind, *rest = line.split("\t")
    said = dict(part.partition("=")[::2] for part in rest)

    def words(attribute: str) -> tuple[str, ...]:
        return tuple(said.get(attribute, "").split())

    return Flag(
        names=tuple(names.split()),
        type=kind,
        off=words("off"),
        many=said.get("many", ""),
        choices=words("choices"),
        known=words("known"),
        also=words("also"),
        words=words("words"),
        fields=words("fields"),
        suffixes="suffixes" in said,
        folded="folded" in said,
        optional="optional" in said,
        variable=said.get("variable", ""),
        deprecated=said.get("deprecated"),
    )


class Replacement(NamedTuple):
    """What to write in place of a name that a program has no more, or never had.

    `gone` is the first version of a catalog without it, "earlier" where it was gone before them
    all, "deprecated" where it is still there, and "-" where it never was.
    """

    gone: str
    instead: str

    @property
    def is_needless(self) -> bool:
        """Whether nothing is to be written in its place."""
        return self.instead.startswith("take it out")

    @property
    def word(self) -> str:
        """The one word that takes its place and means the same, if there is one."""
        found = re.fullmatch(r"write '?([A-Za-z0-9_.-]+)'?", self.instead)
        return found[1] if found else ""


def replacement(program: str, name: str) -> Replacement | None:
    """What to write in place of a flag, `--flag=value` or a variable, if that is known."""
    return _replacements().get((program, name.replace("_", "-")))


@cache
def _replacements() -> Mapping[tuple[str, str], Replacement]:
    lines = (SCHEMAS / "replaced.tsv").read_text("utf-8").splitlines()
    _, *rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {
        (program, name.replace("_", "-")): Replacement(gone, instead)
        for program, name, gone, instead in rows
    }
