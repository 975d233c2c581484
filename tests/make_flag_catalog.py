r"""Adds a version to a flag catalog, `schemas/engines/PROGRAM.tsv`, from an engine's own parser.

    python tests/make_flag_catalog.py vllm 0.34.0 --command 'vllm serve' \
        --wheel vllm-0.34.0-cp38-abi3-manylinux_2_28_aarch64.whl \
        --parser vllm.entrypoints.common.cli_args:make_arg_parser --like 0.33.0 \
        --values tool-call-parser=tool_parsers/__init__.py:_TOOL_PARSERS_TO_REGISTER \
        --variables VLLM_ --all-variables --variables-of envs.py \
        --underscores --dotted --output schemas/engines/vllm.tsv

The parser is a click command, an argparse parser, or a function that returns an argparse parser,
fills one that is passed to it, or parses with one; no arguments are actually parsed. Modules that
are not installed, such as torch where there is only the wheel, are replaced by stand-ins that have
every name and do nothing, except for modules that are meant to be `--absent`. Modules of the engine
that can't be loaded without a GPU are replaced likewise if they are named with `--replaced`.
Libraries that the parser is built with, such as pydantic, must be installed. Values that the engine
itself checks later are the keys, members or words of the object that `--values` names. Variables
are the names in the package's code that have the given prefix.

`--like` takes over from an earlier version what a parser does not define: known values, keys of
JSON and aliases of types. The differences between the versions are printed, to be reviewed and
recorded in `schemas/replaced.tsv`. A type that is treated as text is printed too.
"""

import argparse
import ast
import dataclasses
import inspect
import re
import sys
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import click
from flag_catalog_text import HEAD, VersionCatalog, catalog_text, version_catalog
from missing_modules import loaded, pretended

from generator.catalogs.flags import ANY, Flag, FlagCatalog, covered, parse
from generator.catalogs.versions import version as parsed
from generator.records import record, replace

# Flags from a parser


@record
class Meaning:
    """The kind of values that a flag takes."""

    type: str
    is_optional: bool = False
    has_suffixes: bool = False
    fields: tuple[str, ...] = ()


def flags_of(parser: argparse.ArgumentParser | click.Command) -> list[Flag]:
    """The flags of a parser, by name."""
    if isinstance(parser, click.Command):
        flags = (_of_click(option) for option in parser.params if isinstance(option, click.Option))
    else:
        names: dict[int, list[str]] = defaultdict(list)
        # An action may be registered under names that it does not list itself.
        for name, action in parser._option_string_actions.items():
            names[id(action)].append(name)
        flags = (_of_argparse(action, names[id(action)]) for action in parser._actions)
    return sorted((flag for flag in flags if flag), key=lambda flag: flag.names)


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


def _of_argparse(action: argparse.Action, spellings: Sequence[str]) -> Flag | None:
    left_out = (argparse._HelpAction, argparse._VersionAction)
    off = [name for name in spellings if _is_off(name, spellings[0])]
    names = [name for name in spellings if name not in off]
    if isinstance(action, left_out) or not any(name.startswith("--") for name in names):
        return None
    switch = Meaning("switch")
    meaning = switch if action.nargs == 0 else _meaning(action)
    many = "append" if isinstance(action, argparse._AppendAction) else action.nargs
    known = action.metavar if isinstance(action.metavar, list | set) else ()
    return Flag(
        names=_ordered(names),
        type=meaning.type,
        off=tuple(off),
        many=str(many) if many not in (None, 0, "?", 1) else "",
        choices=tuple(word for word in _words(action.choices) if word != "None"),
        known=_words(known),
        also=_also(action, meaning),
        fields=meaning.fields,
        suffixes=meaning.has_suffixes,
        optional=action.nargs == "?",
        deprecated="" if _is_deprecated(action) else None,
    )


def _also(action: argparse.Action, meaning: Meaning) -> tuple[str, ...]:
    """Values accepted besides the type and the choices; any text if some choice can't be read."""
    choices = tuple(action.choices or ())
    is_whole = len(_words(choices)) == len([value for value in choices if value is not None])
    optional = meaning.is_optional or None in choices or "None" in choices
    return (*(("None",) if optional else ()), *(() if is_whole else (ANY,)))


def _words(values: Any) -> tuple[str, ...]:
    """Choices as users write them; choices that come from a stand-in are unknown and left out."""
    plain = (getattr(value, "value", value) for value in values or () if value is not None)
    return tuple(str(value) for value in plain if isinstance(value, str | int | float))


def _is_deprecated(action: argparse.Action) -> bool:
    """Whether it is deprecated, as marked by Python 3.13 or by an action class of the engine."""
    return getattr(action, "deprecated", False) or "deprecated" in _name(type(action))


def _is_off(name: str, first: str) -> bool:
    """Whether a name switches off what the first one switches on."""
    pairs = (("--", "--no-"), ("--enable-", "--disable-"), ("--disable-", "--enable-"))
    stems = ((first.removeprefix(on), name.removeprefix(off), off) for on, off in pairs)
    return name != first and any(name.startswith(off) and on == its for on, its, off in stems)


_TYPES = {"integer": "int", "integer range": "int", "float": "float", "float range": "float"}
_KNOWN_TYPES: dict[Any, str] = {int: "int", float: "float", str: "text", None: "text"}


def _meaning(action: argparse.Action) -> Meaning:
    """The kind of values, judged by the functions that convert a flag's text."""
    if action.type in _KNOWN_TYPES:
        return Meaning(_KNOWN_TYPES[action.type])
    inner = list(_inner(action.type))
    names = [_name(each) for each in inner]
    optional = any("optional" in name for name in names)
    for keys in filter(dataclasses.is_dataclass, inner):
        fields = tuple(field.name for field in dataclasses.fields(keys) if _is_key(field))
        return Meaning("json", optional, fields=fields)
    if any("human_readable" in name for name in names):
        return Meaning("int", optional, has_suffixes=True)
    if any(re.search("json|dict|loads", name) for name in names):
        return Meaning("json", optional)
    for known in (kind for kind in inner if kind in (int, float, str)):
        return Meaning(_KNOWN_TYPES[known], optional)
    if any("int" in re.split("[^a-z]", name) for name in names):
        return Meaning("int", optional)
    print(f"{action.option_strings[0]}: {names[0]} is taken for text", file=sys.stderr)
    return Meaning("text", optional)


def _inner(convert: Any) -> Iterator[Any]:
    """A converter, and the functions and types in its closure and defaults."""
    yield convert
    cells = [cell.cell_contents for cell in getattr(convert, "__closure__", None) or ()]
    for each in (*cells, *(getattr(convert, "__defaults__", None) or ())):
        if isinstance(each, type) or inspect.isfunction(each):
            yield from _inner(each)


def _is_key(field: Any) -> bool:
    """Whether a field can be set, according to dataclasses or, in its default, to pydantic."""
    return bool(field.init) and getattr(field.default, "init", None) is not False


def _name(convert: object) -> str:
    return str(getattr(convert, "__qualname__", "")).lower()


def _ordered(names: Sequence[str]) -> tuple[str, ...]:
    """The names, starting with the first one that has two dashes."""
    full = next(name for name in names if name.startswith("--"))
    return (full, *(name for name in names if name != full))


# Finding the parser


class _Parsed(Exception):  # noqa: N818 (it is no error)
    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def parser_of(target: Any) -> argparse.ArgumentParser | click.Command:
    """The parser that a target is, returns, fills or parses with."""

    def stop(parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        raise _Parsed(parser)

    if isinstance(target, argparse.ArgumentParser | click.Command):
        return target
    empty = _empty_parser(target)
    with patch.object(argparse.ArgumentParser, "parse_known_args", stop):
        try:
            result = target(empty) if _takes_one(target) else target()
        except _Parsed as parsed:
            return parsed.parser
    return result if isinstance(result, argparse.ArgumentParser | click.Command) else empty


def _empty_parser(function: Callable[..., object]) -> argparse.ArgumentParser:
    """An empty parser of the class that the function expects, which may define its own actions."""
    for wanted in getattr(function, "__annotations__", {}).values():
        if isinstance(wanted, type) and issubclass(wanted, argparse.ArgumentParser):
            return wanted()
    return argparse.ArgumentParser()


def _takes_one(function: Callable[..., object]) -> bool:
    code = getattr(function, "__code__", None)
    bound = int(hasattr(function, "__self__"))
    return code is not None and code.co_argcount - bound >= 1


def values_of(module: Path, name: str) -> tuple[str, ...]:
    """The words of a registry: the keys of a mapping, or the members of a class or a Literal."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.ClassDef) and node.name == name:
            assigned = (each for each in node.body if isinstance(each, ast.Assign))
            return tuple(ast.unparse(each.targets[0]) for each in assigned)
        if isinstance(node, ast.Assign | ast.AnnAssign) and _target(node) == name and node.value:
            return tuple(map(ast.literal_eval, _words_of(node.value)))
    raise LookupError(f"{module} has no {name}")


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    return ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)


def _words_of(value: ast.expr) -> list[ast.expr]:
    match value:
        case ast.Dict(keys=keys):
            return [key for key in keys if key]
        case ast.Subscript(slice=ast.Tuple(elts=words)) | ast.List(elts=words):
            return words
    raise LookupError(ast.unparse(value))


def variables_of(files: Iterator[Path], prefix: str) -> frozenset[str]:
    """The names with a prefix that a package's code quotes, or defines as fields of a class."""
    found: set[str] = set()
    for module in files:
        text = module.read_text(encoding="utf-8", errors="replace")
        found.update(re.findall(rf"['\"]({prefix}[A-Z0-9_]*[A-Z0-9])['\"]", text))
        found.update(re.findall(rf"(?m)^\s+({prefix}[A-Z0-9_]*[A-Z0-9]) = Env", text))
    return frozenset(found)


# Facts from earlier catalogs


def with_earlier(flag: Flag, others: Sequence[FlagCatalog]) -> Flag:
    """A flag with facts that its parser lacks, from the first other version that has the flag."""
    found = (other.find(flag.names[0].removeprefix("--")) for other in others)
    holding = (each.flag for each in found if each and each.flag.names[0] == flag.names[0])
    earlier, merged = next(holding, flag), flag
    is_same = merged.choices and merged.choices == earlier.choices
    if is_same or (merged.type == "text" and earlier.type == "json"):
        merged = replace(merged, type=earlier.type)
    if earlier.many == "comma" and not merged.many:
        merged = replace(merged, many=earlier.many)
    if not merged.choices and not merged.known:
        merged = replace(merged, choices=earlier.choices, known=earlier.known)
    also = tuple(dict.fromkeys((*merged.also, *earlier.also)))
    fields = merged.fields or earlier.fields
    merged = replace(merged, also=also, fields=fields, folded=earlier.folded, words=earlier.words)
    return replace(merged, deprecated=earlier.deprecated) if merged.deprecated == "" else merged


def differences(flags: Sequence[Flag], earlier: FlagCatalog) -> Iterator[str]:
    """Which flags of an earlier catalog are gone, and which are new."""
    now = {name for flag in flags for name in (*flag.names, *flag.off)}
    was = {name for flag in earlier.flags() for name in (*flag.names, *flag.off)}
    yield from (f"gone: {name}" for name in sorted(was - now) if name.startswith("--"))
    yield from (f"new: {name}" for name in sorted(now - was) if name.startswith("--"))


def with_values(flags: Sequence[Flag], specs: Sequence[str], package: Path) -> list[Flag]:
    """The flags with values from registries, each specified as `FLAG=FILE:NAME`."""
    known: dict[str, tuple[str, ...]] = {}
    for spec in specs:
        flag, _, where = spec.partition("=")
        module, _, name = where.partition(":")
        known[f"--{flag}"] = values_of(package / module, name)
    return [
        replace(each, known=known[each.names[0]])
        if each.names[0] in known and not each.choices
        else each
        for each in flags
    ]


def earlier_catalogs(program: str, path: Path) -> dict[str, FlagCatalog]:
    """The versions that a file already contains."""
    text = path.read_text("utf-8") if path.exists() else ""
    return {each: parse(program, each, text) for each in covered(program, text)} if text else {}


def head_of(path: Path, command: str, source: str) -> str:
    """The comments at the beginning of a file, which people may have edited."""
    if not path.exists():
        return HEAD.format(command=command, source=source)
    lines = path.read_text("utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if line.startswith("#"))


@click.command(context_settings={"max_content_width": 100}, help=__doc__)
@click.argument("program")
@click.argument("version")
@click.option("--parser", "where", required=True, metavar="MODULE:NAME", help="The parser.")
@click.option("--command", required=True, help="The command line whose flags they are.")
@click.option("--wheel", type=click.Path(exists=True, path_type=Path), help="Or its folder.")
@click.option("--absent", multiple=True, metavar="MODULE[.NAME]", help="Gets no stand-in.")
@click.option("--replaced", multiple=True, metavar="MODULE", help="Gets one although it is there.")
@click.option("--source", default="", help="Where it comes from; by default the wheel's name.")
@click.option("--like", multiple=True, help="A version in the catalog, nearest first.")
@click.option("--values", multiple=True, metavar="FLAG=FILE:NAME", help="A registry of values.")
@click.option("--underscores", is_flag=True, help="`_` is `-` in names.")
@click.option("--dotted", is_flag=True, help="`--flag.key` sets a key of JSON.")
@click.option("--iec", is_flag=True, help="Sizes have the suffixes k, Ki, M, Mi.")
@click.option("--variables", "prefix", default="", help="The prefix of its variables.")
@click.option("--variables-of", "modules", default="**/*.py", help="The files that have them.")
@click.option("--all-variables", is_flag=True, help="The program reads no others with the prefix.")
@click.option("--output", required=True, type=click.Path(path_type=Path), help="The catalog.")
def make(
    program: str,
    version: str,
    where: str,
    command: str,
    wheel: Path | None,
    absent: tuple[str, ...],
    replaced: tuple[str, ...],
    source: str,
    like: tuple[str, ...],
    values: tuple[str, ...],
    underscores: bool,
    dotted: bool,
    iec: bool,
    prefix: str,
    modules: str,
    all_variables: bool,
    output: Path,
) -> None:
    with tempfile.TemporaryDirectory() as scratch, pretended():
        folder = unpacked(wheel, Path(scratch)) if wheel else None
        target, package = loaded(where, folder, absent, replaced)
        parser = parser_of(target)
        flags = with_values(flags_of(parser), values, package)
        names = variables_of(package.parent.glob(f"{package.name}/{modules}"), prefix)
    earlier = earlier_catalogs(program, output)
    if like:
        others = [earlier[each] for each in like]
        flags = [with_earlier(flag, others) for flag in flags]
        print("\n".join(differences(flags, others[0])))
    abbreviations = isinstance(parser, argparse.ArgumentParser) and parser.allow_abbrev
    optional_traits = {
        "underscores": underscores,
        "abbreviations": abbreviations,
        "dotted": dotted,
        "iec": iec,
    }
    traits = [*(name for name, holds in optional_traits.items() if holds), "equals"]
    head = head_of(output, command, source or (wheel.name if wheel else where))
    new = VersionCatalog(version, tuple(flags), names if prefix else frozenset())
    kept = [version_catalog(known) for each, known in earlier.items() if each != version]
    every = sorted((new, *kept), key=lambda each: parsed(each.version))
    text = catalog_text(head, traits, every, prefix, all_variables)
    assert flags, f"{where} knows no flags"
    assert len(list(parse(program, version, text).flags())) == len(flags)
    output.write_text(text, encoding="utf-8", newline="\n")


def unpacked(wheel: Path, scratch: Path) -> Path:
    """Unpack a wheel; returns the folder with its packages."""
    if wheel.is_dir():
        return wheel
    zipfile.ZipFile(wheel).extractall(scratch)
    return scratch


if __name__ == "__main__":
    make()
