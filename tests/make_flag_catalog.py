r"""Adds a version to a flag catalog, `schemas/engines/PROGRAM.tsv`, from an engine's own parser.

    python tests/make_flag_catalog.py vllm 0.34.0 --command 'vllm serve' \
        --wheel vllm-0.34.0-cp38-abi3-manylinux_2_28_aarch64.whl \
        --parser vllm.entrypoints.common.cli_args:make_arg_parser --like 0.33.0 \
        --values tool-call-parser=tool_parsers/__init__.py:_TOOL_PARSERS_TO_REGISTER \
        --variables VLLM_ --all-variables --variables-of envs.py \
        --readers vllm.envs:environment_variables \
        --underscores --dotted --output schemas/engines/vllm.tsv

The parser is a click command, an argparse parser, or a function that returns an argparse parser,
fills one that is passed to it, or parses with one; no arguments are actually parsed. Modules that
are not installed, such as torch where there is only the wheel, are replaced by stand-ins that have
every name and do nothing, except for modules that are meant to be `--absent`. Modules of the engine
that can't be loaded without a GPU are replaced likewise if they are named with `--replaced`.
Libraries that the parser is built with, such as pydantic, must be installed. Values that the engine
itself checks later are the keys, members or words of the object that `--values` names. Variables
are the names in the package's code that have the given prefix; `--readers` names the mapping of
functions that read them, which tell their types.

With an `--output` that ends with `.json`, it writes a description of that release alone, which
`sparkgen catalog add` takes.

`--like` takes over from an earlier version what a parser does not define: known values, keys of
JSON and aliases of types. The differences between the versions are printed, to be reviewed and
recorded in `schemas/replaced.tsv`. A type that is treated as text is printed too.
"""

import argparse
import ast
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import click
import node_programs
from flag_catalog_text import HEAD, VersionCatalog, catalog_text, version_catalog
from missing_modules import loaded, pretended

from generator.catalogs.added import with_earlier
from generator.catalogs.flags import Flag, FlagCatalog, covered, parse
from generator.catalogs.versions import version as parsed
from generator.records import replace
from generator.resources import TEMPLATES

sys.path.append(str(TEMPLATES / "payload/node/opt/sparkgen/preflight"))
describe: Any = node_programs.loaded("node/opt/sparkgen/preflight/describe.py")

# Flags from a parser


def flags_of(parser: argparse.ArgumentParser | click.Command) -> list[Flag]:
    """The flags of a parser, by name, as the image's own description has them."""
    return [Flag(**each) for each in describe.flags_of(parser)]


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
    """The words of a registry: the keys of a mapping, or the members of a class or a Literal.

    Those of a decorator, `@NAME`, are its first arguments in all modules that a pattern names.
    """
    if name.startswith("@"):
        return tuple(dict.fromkeys(_registered(module, name[1:])))
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.ClassDef) and node.name == name:
            assigned = (each for each in node.body if isinstance(each, ast.Assign))
            return tuple(ast.unparse(each.targets[0]) for each in assigned)
        if isinstance(node, ast.Assign | ast.AnnAssign) and _target(node) == name and node.value:
            return tuple(map(ast.literal_eval, _words_of(node.value)))
    raise LookupError(f"{module} has no {name}")


def _registered(modules: Path, decorator: str) -> Iterator[str]:
    """The names under which classes are registered by a decorator."""
    for module in sorted(modules.parent.glob(modules.name)):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            for call in node.decorator_list if isinstance(node, ast.ClassDef) else ():
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(f".{decorator}"):
                    names = ast.literal_eval(call.args[0])
                    yield from [names] if isinstance(names, str) else names


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    return ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)


def _words_of(value: ast.expr) -> list[ast.expr]:
    match value:
        case ast.Dict(keys=keys):
            return [key for key in keys if key]
        case ast.Subscript(slice=ast.Tuple(elts=words)) | ast.List(elts=words):
            return words
    raise LookupError(ast.unparse(value))


# Facts from earlier catalogs


def differences(flags: Sequence[Flag], earlier: FlagCatalog) -> Iterator[str]:
    """Which flags of an earlier catalog are gone, and which are new."""
    now = {name for flag in flags for name in (*flag.names, *flag.off)}
    was = {name for flag in earlier.flags() for name in (*flag.names, *flag.off)}
    yield from (f"gone: {name}" for name in sorted(was - now) if name.startswith("--"))
    yield from (f"new: {name}" for name in sorted(now - was) if name.startswith("--"))


def with_values(flags: Sequence[Flag], specs: Sequence[str], package: Path) -> list[Flag]:
    """The flags with values from registries, each specified as `FLAG=FILE:NAME`.

    The first registry of a flag that the package has is taken.
    """
    known: dict[str, tuple[str, ...]] = {}
    for spec in specs:
        flag, _, where = spec.partition("=")
        module, _, name = where.partition(":")
        if not known.get(f"--{flag}"):
            with suppress(LookupError, FileNotFoundError):
                known[f"--{flag}"] = values_of(package / module, name)
    wanted = {f"--{spec.partition('=')[0]}" for spec in specs}
    unread = wanted.difference(known) & {each.names[0] for each in flags if not each.choices}
    assert not unread, f"{package} has no registry of {', '.join(sorted(unread))}"
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


def description(
    program: str, version: str, abbreviations: bool, flags: Sequence[Flag], kinds: Mapping[str, str]
) -> str:
    """What `launch.sh --describe-engine` would write for this release, as far as a wheel has it."""
    made = {
        "engine": program,
        "version": version,
        "abbreviations": abbreviations,
        "flags": [{name: getattr(flag, name) for name in Flag.__match_args__} for flag in flags],
        "variables": kinds,
        "registries": {},
    }
    return json.dumps(made, indent=1) + "\n"


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
@click.option("--readers", default="", metavar="MODULE:NAME", help="What reads them, by name.")
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
    readers: str,
    all_variables: bool,
    output: Path,
) -> None:
    with tempfile.TemporaryDirectory() as scratch, pretended():
        folder = unpacked(wheel, Path(scratch)) if wheel else None
        target, package = loaded(where, folder, absent, replaced)
        parser = parser_of(target)
        flags = with_values(flags_of(parser), values, package)
        names = describe.variables_of(package.parent.glob(f"{package.name}/{modules}"), prefix)
        table, _ = loaded(readers, folder, absent) if readers else ({}, None)
        kinds = describe.kinds_of({name: table[name] for name in names & {*table}})
    abbreviations = isinstance(parser, argparse.ArgumentParser) and parser.allow_abbrev
    if output.suffix == ".json":
        every_kind = {name: kinds.get(name, "") for name in sorted(names)}
        text = description(program, version, abbreviations, flags, every_kind)
        output.write_text(text)
        return
    earlier = earlier_catalogs(program, output)
    if like:
        others = [earlier[each] for each in like]
        flags = [with_earlier(flag, others) for flag in flags]
        print("\n".join(differences(flags, others[0])))
    optional_traits = {
        "underscores": underscores,
        "abbreviations": abbreviations,
        "dotted": dotted,
        "iec": iec,
    }
    traits = [*(name for name, holds in optional_traits.items() if holds), "equals"]
    head = head_of(output, command, source or (wheel.name if wheel else where))
    new = VersionCatalog(version, tuple(flags), dict.fromkeys(names, "") if prefix else {})
    kept = [version_catalog(known) for each, known in earlier.items() if each != version]
    every = sorted((new, *kept), key=lambda each: parsed(each.version))
    text = catalog_text(head, traits, every, prefix, all_variables)
    assert flags, f"{where} knows no flags"
    assert len(list(parse(program, version, text).flags())) == len(flags)
    output.write_text(text, encoding="utf-8", newline="\n")


def unpacked(wheel: Path, scratch: Path) -> Path:
    """Unpack the modules of a wheel; returns the folder with its packages."""
    if wheel.is_dir():
        return wheel
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(scratch, [name for name in packed.namelist() if name.endswith(".py")])
    return scratch


if __name__ == "__main__":
    make()
