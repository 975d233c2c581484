r"""Makes the tables about an engine's release from its wheel, and prints what people must decide.

    python tests/make_release.py vllm 0.34.0 --wheel vllm-0.34.0-cp38-abi3-linux_aarch64.whl

The tables are `schemas/engines/ENGINE.tsv` and, for vLLM, `schemas/vllm-settings.tsv` and
`schemas/vllm-kinds.tsv`; what they say of other releases stays. What a wheel can't say is in
`schemas/corrections.tsv`. A second run changes nothing, nor does one for the newest release that
the tables have. The libraries that build the parser must be installed: pydantic and regex for
vLLM, msgspec for SGLang, and dill before 0.5.6. The catalogs of TensorRT-LLM and llama.cpp are
not made from wheels.
"""

import argparse
import ast
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click
import yaml
from flag_catalog_text import VersionCatalog, catalog_text, version_catalog
from make_flag_catalog import (
    describe,
    differences,
    earlier_catalogs,
    flags_of,
    head_of,
    parser_of,
    unpacked,
    with_values,
)
from make_vllm_settings import Release, merged_text
from missing_modules import loaded, pretended
from vllm_kinds_text import kinds_text

from generator.catalogs.added import with_earlier
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flags import Flag, FlagCatalog
from generator.catalogs.versions import version as parsed
from generator.records import record, replace
from generator.resources import SCHEMAS

_LISTS = ("choices", "known")


@record
class Source:
    """Where a wheel has the parser of an engine, and what else says what its flags are.

    Several places are those of different releases: the first that a wheel has is taken.
    """

    command: str
    parsers: tuple[str, ...]
    traits: tuple[str, ...]
    prefix: str
    # The modules that name variables, and the object that maps them to their readers.
    modules: tuple[str, ...]
    readers: str = ""
    absent: tuple[str, ...] = ()
    # Modules of the engine that can't be loaded here, and have no part in the parser.
    replaced: tuple[str, ...] = ()
    # Registries of values, and classes of JSON, as FLAG=FILE:NAME.
    values: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    # The modules that warn of deprecated flags.
    warnings: tuple[str, ...] = ()


_BACKENDS = "v1/attention/backends/registry.py:AttentionBackendEnum"
_EARLIER_BACKENDS = "attention/backends/registry.py:AttentionBackendEnum"
_TOOLS, _REASONING = "_TOOL_PARSERS_TO_REGISTER", "_REASONING_PARSERS_TO_REGISTER"
SOURCES = {
    "vllm": Source(
        command="vllm serve",
        parsers=(
            "vllm.entrypoints.common.cli_args:make_arg_parser",
            "vllm.entrypoints.openai.cli_args:make_arg_parser",
        ),
        traits=("underscores", "dotted"),
        prefix="VLLM_",
        modules=("envs.py",),
        readers="vllm.envs:environment_variables",
        replaced=(
            "vllm.entrypoints.openai.protocol",
            "vllm.entrypoints.openai.chat_completion.protocol",
            "vllm.entrypoints.openai.engine.protocol",
            "vllm.entrypoints.openai.responses.protocol",
            "vllm.entrypoints.openai.completion.protocol",
            "vllm.platforms",
        ),
        values=(
            f"tool-call-parser=tool_parsers/__init__.py:{_TOOLS}",
            f"tool-call-parser=entrypoints/openai/tool_parsers/__init__.py:{_TOOLS}",
            "tool-call-parser=entrypoints/openai/tool_parsers/*.py:@register_module",
            f"reasoning-parser=reasoning/__init__.py:{_REASONING}",
            "reasoning-parser=reasoning/*.py:@register_module",
            f"attention-backend={_BACKENDS}",
            f"attention-backend={_EARLIER_BACKENDS}",
            f"mm-encoder-attn-backend={_BACKENDS}",
            f"mm-encoder-attn-backend={_EARLIER_BACKENDS}",
            "quantization=model_executor/layers/quantization/__init__.py:QuantizationMethods",
            "load-format=model_executor/model_loader/__init__.py:LoadFormats",
        ),
        classes=(
            "speculative-config=config/speculative.py:SpeculativeConfig",
            "speculative-config=config/__init__.py:SpeculativeConfig",
            "speculative-config=config.py:SpeculativeConfig",
        ),
        warnings=("engine/*.py", "entrypoints/**/*.py"),
    ),
    "sglang": Source(
        command="sglang serve",
        parsers=("sglang.srt.server_args:ServerArgs.add_cli_args",),
        traits=("iec",),
        prefix="SGLANG_",
        modules=("*.py", "cli/*.py", "srt/**/*.py", "kernels/**/*.py", "benchmark/**/*.py"),
        absent=("torch.npu",),
        replaced=("sglang.srt.distributed",),
        warnings=("srt/server_args.py", "srt/arg_groups/**/*.py"),
    ),
}


@record
class Described:
    """What a wheel says of its engine."""

    flags: tuple[Flag, ...]
    # Variables with their kinds, empty if unknown.
    variables: Mapping[str, str]
    abbreviations: bool


def described(source: Source, folder: Path) -> Described:
    """Read an unpacked wheel."""
    with pretended():
        target, package = loaded(
            place_of(source.parsers, folder), folder, source.absent, source.replaced
        )
        parser = parser_of(target)
        assert isinstance(parser, argparse.ArgumentParser)
        assert flags_of(parser), f"{source.command} has no flags in {folder}"
        flags = with_values(flags_of(parser), source.values, package)
        variables = _variables(source, folder, package)
    why = {**_warned(source.warnings, package), **_replaced_by(parser)}
    keys: dict[str, tuple[str, ...]] = {}
    for flag, module, name in (re.split("[=:]", spec) for spec in source.classes):
        if (package / module).exists():
            keys[f"--{flag}"] = keys.get(f"--{flag}") or tuple(_fields(package / module, name))
    return Described(
        tuple(
            replace(
                flag,
                deprecated=why.get(flag.names[0], flag.deprecated),
                fields=keys.get(flag.names[0], flag.fields),
            )
            for flag in flags
        ),
        variables,
        parser.allow_abbrev,
    )


def place_of(places: Sequence[str], folder: Path) -> str:
    """The first of the places, as `MODULE:NAME`, whose module is there."""
    modules = ((place, place.partition(":")[0].replace(".", "/")) for place in places)
    return next(place for place, module in modules if (folder / f"{module}.py").exists())


def _variables(source: Source, folder: Path, package: Path) -> dict[str, str]:
    """The variables that the engine reads: of its table of readers, or else named in its code."""
    modules = (path for each in source.modules for path in package.glob(each))
    names = describe.variables_of(modules, source.prefix)
    if not source.readers:
        return dict.fromkeys(sorted(names), "")
    readers, _ = loaded(source.readers, folder, source.absent)
    kinds: dict[str, str] = describe.kinds_of(
        {name: readers[name] for name in sorted(names & {*readers})}
    )
    return kinds


def _warned(globs: Sequence[str], package: Path) -> dict[str, str]:
    """Why flags are deprecated, from the warnings that code writes: `--flag is deprecated ...`."""
    texts = (
        node.value
        for each in globs
        for path in sorted(package.glob(each))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    found = ((re.match(r"(?:\w+ \()?(--[\w-]+)\)? is deprecated", text), text) for text in texts)
    return {match[1]: why_deprecated(text) for match, text in found if match}


def why_deprecated(warning: str) -> str:
    """A warning in short: whether the flag has an effect, when it goes, and what to write."""
    removal = re.search(r"removed in v?(\d+(?:\.\d+)+)", warning)
    other = re.search(r"\b[Uu]se '?(--[\w.=-]*[\w])", warning)
    parts = (
        "no effect" if "no effect" in warning else "",
        f"removal planned in {removal[1]}" if removal else "",
        f"use {other[1]}" if other else "",
    )
    return "; ".join(filter(None, parts))


def _replaced_by(parser: argparse.ArgumentParser) -> dict[str, str]:
    """What to write for deprecated flags, as their actions know it."""
    known = ((each.option_strings, getattr(each, "new_flag", None)) for each in parser._actions)
    return {names[0]: f"use {other}" for names, other in known if names and other}


def _fields(module: Path, name: str) -> Iterator[str]:
    """The fields of a dataclass that its creator can set."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.ClassDef) and node.name == name:
            fields = (each for each in node.body if isinstance(each, ast.AnnAssign))
            named = ((ast.unparse(each.target), ast.unparse(each.value or each)) for each in fields)
            yield from (
                field
                for field, value in named
                if not field.startswith("_") and "init=False" not in value
            )


def in_order(flag: Flag, earlier: FlagCatalog | None) -> Flag:
    """The flag with lists sorted that were sorted before, since some come from sets."""
    found = earlier.find(flag.names[0].removeprefix("--")) if earlier else None
    was = found.flag if found else flag
    for name in _LISTS:
        words = getattr(was, name) or getattr(was, "known" if name == "choices" else "choices")
        if list(words) == sorted(words) and words:
            flag = replace(flag, **{name: tuple(sorted(getattr(flag, name)))})
    return flag


# Corrections


def corrected(flag: Flag, corrections: Iterable[Mapping[str, str]]) -> Flag:
    """The flag with the corrections that are about it."""
    for each in corrections:
        if each["name"] == flag.names[0]:
            flag = _corrected(flag, each["correction"], each["attribute"], each["words"].split())
    return flag


def _corrected(flag: Flag, correction: str, attribute: str, words: list[str]) -> Flag:
    held: tuple[str, ...] = getattr(flag, attribute)
    match correction:
        case "add":
            return replace(flag, **{attribute: tuple(dict.fromkeys((*held, *words)))})
        case "remove":
            return replace(flag, **{attribute: tuple(w for w in held if w not in words)})
        case "move":
            return replace(flag, **{attribute: (), words[0]: held or getattr(flag, words[0])})
    raise ValueError(correction)


def corrections_of(engine: str, version: str, schemas: Path) -> list[dict[str, str]]:
    """The lines of `corrections.tsv` that apply to a release."""
    text = (schemas / "corrections.tsv").read_text("utf-8")
    lines = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    names, *rows = lines
    every = (dict(zip(names, row, strict=True)) for row in rows)
    return [
        each
        for each in every
        if each["engine"] == engine and parsed(each["since"]) <= parsed(version)
    ]


# The tables


def catalog(engine: str, version: str, release: Described, schemas: Path) -> tuple[str, list[Flag]]:
    """The text of the flag catalog with the release, and the flags of the release."""
    source, path = SOURCES[engine], schemas / "engines" / f"{engine}.tsv"
    others = {
        name: each for name, each in earlier_catalogs(engine, path).items() if name != version
    }
    before = _before(others, version)
    likes = [before] if before else []
    corrections = corrections_of(engine, version, schemas)
    flags = [
        corrected(in_order(with_earlier(flag, likes), before), corrections)
        for flag in release.flags
    ]
    traits = {"abbreviations": release.abbreviations}
    order = ("underscores", "abbreviations", "dotted", "iec")
    held = [each for each in order if each in source.traits or traits.get(each)]
    gone = {each["name"] for each in corrections if each["attribute"] == "variables"}
    # Whatever is read as text is never wrong.
    variables = {
        name: "" if kind == "text" else kind
        for name, kind in release.variables.items()
        if name not in gone
    }
    new = VersionCatalog(version, tuple(flags), variables)
    every = [new, *map(version_catalog, others.values())]
    every.sort(key=lambda each: parsed(each.version))
    head = head_of(path, source.command, source.parsers[0])
    return catalog_text(head, [*held, "equals"], every, source.prefix, bool(source.readers)), flags


def _before(others: Mapping[str, FlagCatalog], version: str) -> FlagCatalog | None:
    """The catalog of the release before one, or of the first of all if none is before it."""
    in_order = sorted(others.values(), key=lambda each: parsed(each.version))
    older = [each for each in in_order if parsed(each.version) < parsed(version)]
    return next(iter((*older[-1:], *in_order)), None)


# What people must decide


def decisions(
    engine: str, version: str, flags: Sequence[Flag], release: Described, schemas: Path
) -> Iterator[str]:
    """What no wheel says, a line each."""
    others = earlier_catalogs(engine, schemas / "engines" / f"{engine}.tsv")
    before = _before(others, version)
    # Of a release that the tables have already, people have decided that.
    if before and version not in others:
        yield from _of_differences(engine, flags, release, before, schemas)
    for name, kind in sorted(release.variables.items()):
        if not kind and SOURCES[engine].readers and (not before or name not in before.variables):
            yield f"engines/{engine}.tsv: the kind of {name} could not be found by reading it"
    images = (schemas / "images" / f"{engine}.yaml").read_text("utf-8")
    if f"version: {version}," not in images:
        yield f"images/{engine}.yaml: no image is listed with {version}"
    if parsed(ENGINE_TRAITS[engine].start.version) < parsed(version):
        yield f"schemas/traits: new sites start with {ENGINE_TRAITS[engine].start.version}"
    yield from _of_rows(engine, version, schemas)


def _of_differences(
    engine: str, flags: Sequence[Flag], release: Described, before: FlagCatalog, schemas: Path
) -> Iterator[str]:
    replaced = (schemas / "replaced.tsv").read_text("utf-8")
    for line in differences(flags, before):
        state, _, name = line.partition(": ")
        if state == "new":
            yield f"new: {name}"
        elif f"\n{engine}\t{name}\t" not in replaced:
            yield f"replaced.tsv: {name} is gone; what replaces it?"
    for name in sorted(before.variables - {*release.variables}):
        if f"\n{engine}\t{name}\t" not in replaced:
            yield f"replaced.tsv: {name} is gone; what replaces it?"


def _of_rows(engine: str, version: str, schemas: Path) -> Iterator[str]:
    path = schemas / "startup" / f"{engine}.yaml"
    held = yaml.safe_load(path.read_text("utf-8"))
    if parsed(str(held["looked_at"])) < parsed(version):
        yield f"startup/{path.name}: every row; it was last looked at for {held['looked_at']}"
    for row in held["rows"]:
        until = parsed(row["until"]) if "until" in row else parsed("0")
        if parsed(str(held["looked_at"])) < until <= parsed(version):
            yield f"startup/{path.name}: ends before {row['until']}: {row.get('says', row)}"


def _of_vllm(version: str, package: Path, schemas: Path) -> tuple[dict[Path, str], list[str]]:
    """The tables that only vLLM has, and what people must decide about them."""
    settings, kinds = schemas / "vllm-settings.tsv", schemas / "vllm-kinds.tsv"
    known = merged_text(settings.read_text("utf-8"), version, Release(package / "config"))
    text, remarks = kinds_text(kinds.read_text("utf-8"), version, package)
    return {settings: known, kinds: text}, remarks


@click.command(context_settings={"max_content_width": 100}, help=__doc__)
@click.argument("engine", type=click.Choice(sorted(SOURCES)))
@click.argument("version")
@click.option("--wheel", required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--schemas", default=SCHEMAS, type=click.Path(exists=True, path_type=Path))
def make(engine: str, version: str, wheel: Path, schemas: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = unpacked(wheel, Path(scratch))
        release = described(SOURCES[engine], folder)
        text, flags = catalog(engine, version, release, schemas)
        lines = list(decisions(engine, version, flags, release, schemas))
        tables = {schemas / "engines" / f"{engine}.tsv": text}
        # What these say of the first release that was read, they say of none before it.
        if engine == "vllm" and ENGINE_TRAITS[engine].startup_since <= parsed(version).release:
            more, remarks = _of_vllm(version, folder / "vllm", schemas)
            tables |= more
            lines += remarks
    for path, content in tables.items():
        path.write_text(content, "utf-8", newline="\n")
    print("\n".join(lines))


if __name__ == "__main__":
    make()
