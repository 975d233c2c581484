r"""Makes a flag catalog out of an engine's own parser: `schemas/engines/PROGRAM-VERSION.tsv`.

    python tests/make_flag_catalog.py vllm 0.34.0 --command 'vllm serve' \
        --wheel vllm-0.34.0-cp38-abi3-manylinux_2_28_x86_64.whl \
        --parser vllm.entrypoints.common.cli_args:make_arg_parser \
        --underscores --dotted --variables VLLM_ --all-variables --like 0.33.0 \
        --output schemas/engines/vllm-0.34.0.tsv

The parser is a click command, an argparse parser, or a function that returns one, fills one that it
is given, or parses with one: what it would parse stays unread. Modules that aren't there, as torch
where only the wheel is, are replaced by ones that have every name and do nothing, but for those
that are to be `--absent`; what a parser is made with, as pydantic, must be installed. Variables are
the names with the prefix that the package's code has.

`--like` takes over from an earlier catalog what a parser doesn't say: known values, keys of JSON,
aliases of the type; and what the versions differ in is printed, for people to look at and to write
into `schemas/replaced.tsv`. A type that is taken for text is printed too.
"""

import argparse
import importlib
import importlib.abc
import importlib.machinery
import re
import sys
import tempfile
import types
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import click

from generator.catalogs.flags import Flag, FlagCatalog, catalog, parse

HEAD = """\
# What `{command}` {version} takes; generator/catalogs/flags.py says how to read this file.
# Source: {source}
"""


# A catalog as text


def catalog_text(
    command: str,
    version: str,
    source: str,
    traits: Sequence[str],
    flags: Sequence[Flag],
    variables: Sequence[str] = (),
    prefix: str = "",
    has_all_variables: bool = False,
) -> str:
    """The whole file."""
    lines = ["\t".join(["parser", *traits])]
    if prefix:
        lines.append(f"variables\t{prefix}\t{'all' if has_all_variables else 'some'}")
    lines += sorted(map(written, flags))
    lines += sorted(variables)
    head = HEAD.format(command=command, version=version, source=source)
    return head + "".join(f"{line}\n" for line in lines)


def written(flag: Flag) -> str:
    """The line of a flag."""
    said = [_attribute(name, getattr(flag, name)) for name in Flag.__slots__[2:]]
    return "\t".join([" ".join(flag.names), flag.type, *filter(None, said)])


def _attribute(name: str, value: object) -> str:
    if isinstance(value, tuple):
        return f"{name}={' '.join(value)}" if value else ""
    if isinstance(value, bool):
        return name if value else ""
    is_said = value is not None if name == "deprecated" else bool(value)
    return f"{name}={value}" if is_said else ""


# What a parser knows


def flags_of(parser: argparse.ArgumentParser | click.Command) -> list[Flag]:
    """The flags of a parser, by name."""
    if isinstance(parser, click.Command):
        own = (_of_click(option) for option in parser.params if isinstance(option, click.Option))
    else:
        own = (_of_argparse(action) for action in parser._actions)
    return sorted((flag for flag in own if flag), key=lambda flag: flag.names)


def _of_click(option: click.Option) -> Flag | None:
    kind = "switch" if option.is_flag or option.count else _TYPES.get(option.type.name, "text")
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    many = "append" if option.multiple else str(option.nargs) if option.nargs > 1 else ""
    return Flag(
        names=_ordered(option.opts),
        type=kind,
        off=tuple(option.secondary_opts),
        many=many,
        choices=tuple(map(str, choices)),
        deprecated="" if option.deprecated else None,
    )


def _of_argparse(action: argparse.Action) -> Flag | None:
    given, left_out = action.option_strings, (argparse._HelpAction, argparse._VersionAction)
    off = [name for name in given if _is_off(name, given[0])]
    names = [name for name in given if name not in off]
    if isinstance(action, left_out) or not any(name.startswith("--") for name in names):
        return None
    kind, optional = ("switch", False) if action.nargs == 0 else _type_of(action)
    many = "append" if isinstance(action, argparse._AppendAction) else action.nargs
    return Flag(
        names=_ordered(names),
        type=kind,
        off=tuple(off),
        many=str(many) if many not in (None, 0, "?", 1) else "",
        choices=tuple(map(str, action.choices or ())),
        also=("None",) if optional else (),
        suffixes="human_readable" in _name(action.type),
        optional=action.nargs == "?",
        deprecated="" if _is_deprecated(action) else None,
    )


def _is_deprecated(action: argparse.Action) -> bool:
    """As Python 3.13 says it, or an engine by an action of its own."""
    return getattr(action, "deprecated", False) or "deprecated" in _name(type(action))


def _is_off(name: str, first: str) -> bool:
    """Whether a name switches off what the first one switches on."""
    pairs = (("--", "--no-"), ("--enable-", "--disable-"), ("--disable-", "--enable-"))
    stems = ((first.removeprefix(on), name.removeprefix(off), off) for on, off in pairs)
    return name != first and any(name.startswith(off) and on == its for on, its, off in stems)


_TYPES = {"integer": "int", "integer range": "int", "float": "float", "float range": "float"}
_KNOWN_TYPES: dict[Any, str] = {int: "int", float: "float", str: "text", None: "text"}


def _type_of(action: argparse.Action) -> tuple[str, bool]:
    """The type, and whether `None` is a value too, as functions that convert are called."""
    convert: Any = action.type
    if convert in _KNOWN_TYPES:
        return _KNOWN_TYPES[convert], False
    name, optional = _name(convert), "optional" in _name(convert)
    inner = [cell.cell_contents for cell in getattr(convert, "__closure__", None) or ()]
    for known in (kind for kind in inner if kind in (int, float, str)):
        return _KNOWN_TYPES[known], optional
    if any(re.search("json|dict|loads", text) for text in (name, *map(_name, inner))):
        return "json", optional
    if "int" in re.split("[^a-z]", name):
        return "int", optional
    print(f"{action.option_strings[0]}: {name} is taken for text", file=sys.stderr)
    return "text", optional


def _name(convert: object) -> str:
    return str(getattr(convert, "__qualname__", "")).lower()


def _ordered(names: Sequence[str]) -> tuple[str, ...]:
    """The names, the first one with two dashes first."""
    full = next(name for name in names if name.startswith("--"))
    return (full, *(name for name in names if name != full))


# Where the parser is


class _Parsed(Exception):  # noqa: N818 (it is no error)
    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def parser_of(target: Any) -> argparse.ArgumentParser | click.Command:
    """The parser that a target is, returns, fills or parses with."""

    def stop(parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        raise _Parsed(parser)

    if isinstance(target, argparse.ArgumentParser | click.Command):
        return target
    empty = argparse.ArgumentParser()
    with patch.object(argparse.ArgumentParser, "parse_known_args", stop):
        try:
            made = target(empty) if _takes_one(target) else target()
        except _Parsed as parsed:
            return parsed.parser
    return made if isinstance(made, argparse.ArgumentParser | click.Command) else empty


def _takes_one(function: Callable[..., object]) -> bool:
    code = getattr(function, "__code__", None)
    bound = int(hasattr(function, "__self__"))
    return code is not None and code.co_argcount - bound >= 1


class _Base:
    """What a class inherits from that stand-ins are the bases of."""

    def __init__(self, *_: object, **values: object) -> None:
        self.__dict__.update(values)

    def __init_subclass__(cls, **_: object) -> None: ...


class _Anything:
    """Has every attribute, takes every call, decorates nothing, and can be the base of a class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __call__(self, *args: Any, **_: object) -> Any:
        decorates = len(args) == 1 and isinstance(args[0], types.FunctionType | type)
        return args[0] if decorates else _Anything()

    def __getitem__(self, _: object) -> "_Anything":
        return self

    def __or__(self, _: object) -> "_Anything":
        return self

    __ror__ = __or__

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __int__(self) -> int:
        return 0

    def __lt__(self, _: object) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __instancecheck__(self, _: object) -> bool:
        return False

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        first = next(base for base in bases if isinstance(base, _Anything))
        return (_Base,) if self is first else ()


class _StandIn(types.ModuleType):
    """A module that has every name, but for those that are to be absent."""

    def __init__(self, name: str, absent: Sequence[str]) -> None:
        super().__init__(name)
        self.__absent = absent

    def __getattr__(self, name: str) -> Any:
        if f"{self.__name__}.{name}" in self.__absent:
            raise AttributeError(name)
        if name == "__version__":
            return "999.0"
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module that nobody else finds, but for those that are to be absent."""

    def __init__(self, absent: Sequence[str]) -> None:
        self.absent = absent

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if name in self.absent:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name, self.absent)

    def exec_module(self, module: types.ModuleType) -> None: ...


def loaded(where: str, folder: Path | None, absent: Sequence[str]) -> tuple[Any, Path]:
    """What `package.module:name.attribute` is, and the package's folder.

    Modules that aren't there have stand-ins. Of a package in a folder of its own what its
    `__init__` would do is left out: it is made for machines with a GPU.
    """
    module, _, names = where.partition(":")
    name = module.partition(".")[0]
    finder = _StandIns(absent)
    if folder:
        sys.path.insert(0, str(folder))
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(folder / name)]
    sys.meta_path.append(finder)
    try:
        found = reduce(getattr, names.split("."), importlib.import_module(module))
    finally:
        sys.meta_path.remove(finder)
    return found, Path(sys.modules[name].__path__[0])


def variables_of(package: Path, prefix: str) -> list[str]:
    """The names with a prefix that stand in quotes in a package's code, or in a class of them."""
    found: set[str] = set()
    for module in package.rglob("*.py"):
        text = module.read_text(encoding="utf-8", errors="replace")
        found.update(re.findall(rf"['\"]({prefix}[A-Z0-9_]*[A-Z0-9])['\"]", text))
        found.update(re.findall(rf"(?m)^\s+({prefix}[A-Z0-9_]*[A-Z0-9]) = Env", text))
    return sorted(found)


# What only an earlier catalog knows


def with_earlier(flag: Flag, earlier: FlagCatalog) -> Flag:
    """A flag with what its parser does not say, as it was in an earlier catalog."""
    found = earlier.find(flag.names[0].removeprefix("--"))
    if found is None or found.flag.names[0] != flag.names[0]:
        return flag
    was, own = found.flag, flag
    if own.type == "text" and was.type == "json":
        own = replace(own, type="json")
    if not own.choices:
        own = replace(own, known=was.known)
    also = tuple(dict.fromkeys((*own.also, *was.also)))
    own = replace(own, also=also, fields=was.fields, folded=was.folded, words=was.words)
    return replace(own, deprecated=was.deprecated) if own.deprecated == "" else own


def differences(flags: Sequence[Flag], earlier: FlagCatalog) -> Iterator[str]:
    """What flags an earlier catalog has no more, and which are new."""
    now = {name for flag in flags for name in (*flag.names, *flag.off)}
    was = {name for flag in earlier.flags() for name in (*flag.names, *flag.off)}
    yield from (f"gone: {name}" for name in sorted(was - now) if name.startswith("--"))
    yield from (f"new: {name}" for name in sorted(now - was) if name.startswith("--"))


@click.command(context_settings={"max_content_width": 100}, help=__doc__)
@click.argument("program")
@click.argument("version")
@click.option("--parser", "where", required=True, metavar="MODULE:NAME", help="The parser.")
@click.option("--command", required=True, help="The command line whose flags they are.")
@click.option("--wheel", type=click.Path(exists=True, path_type=Path), help="A wheel to read.")
@click.option("--absent", multiple=True, metavar="MODULE[.NAME]", help="Has no stand-in.")
@click.option("--source", default="", help="Where it comes from; the wheel's name else.")
@click.option("--like", default="", help="The version of an earlier catalog.")
@click.option("--underscores", is_flag=True, help="`_` is `-` in names.")
@click.option("--dotted", is_flag=True, help="`--flag.key` sets a key of JSON.")
@click.option("--variables", "prefix", default="", help="The prefix of its variables.")
@click.option("--all-variables", is_flag=True, help="It reads no others with the prefix.")
@click.option("--output", required=True, type=click.Path(path_type=Path), help="The catalog.")
def make(
    program: str,
    version: str,
    where: str,
    command: str,
    wheel: Path | None,
    absent: tuple[str, ...],
    source: str,
    like: str,
    underscores: bool,
    dotted: bool,
    prefix: str,
    all_variables: bool,
    output: Path,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if wheel:
            zipfile.ZipFile(wheel).extractall(folder)
        target, package = loaded(where, Path(folder) if wheel else None, absent)
        parser = parser_of(target)
        variables = variables_of(package, prefix) if prefix else []
    flags = flags_of(parser)
    earlier = catalog(program, like) if like else None
    if earlier:
        flags = [with_earlier(flag, earlier) for flag in flags]
        print("\n".join(differences(flags, earlier)))
    abbreviations = isinstance(parser, argparse.ArgumentParser) and parser.allow_abbrev
    said = {"underscores": underscores, "abbreviations": abbreviations, "dotted": dotted}
    traits = [*(name for name, holds in said.items() if holds), "equals"]
    origin = source or (wheel.name if wheel else where)
    text = catalog_text(command, version, origin, traits, flags, variables, prefix, all_variables)
    assert len(list(parse(program, version, text).flags())) == len(flags)
    output.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    make()
