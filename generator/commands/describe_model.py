"""`sparkgen describe-model`."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import click

from generator.commands.options import INVALID
from generator.commands.sites import fail
from generator.diagnostics import scalar
from generator.fit.complete import complete
from generator.fit.parts import parameters
from generator.models.architecture import shape_of
from generator.models.huggingface import ConfigValue, NoModelError, Section, section
from generator.pipeline import read_site

_CONFIG, _INDEX = "config.json", "model.safetensors.index.json"
_QUANTIZED = "hf_quant_config.json"


@click.command(epilog="Example: sparkgen describe-model config.json --source Qwen/Qwen3-32B")
@click.argument("config", metavar="CONFIG.json|FOLDER", type=Path)
@click.option(
    "--index",
    type=Path,
    metavar="FILE",
    help=f"The weights' index; {_INDEX} beside CONFIG.json unless given.",
)
@click.option("--source", metavar="OWNER/NAME", help="The model's Hugging Face id.")
def command(config: Path, index: Path | None, source: str | None) -> None:
    """Print the 'model' section of a model outside the catalog, from its Hugging Face files.

    A folder stands for the config.json in it, and an index for the one beside it.
    """
    if config.is_dir():
        config /= _CONFIG
    elif config.name == _INDEX:
        index, config = index or config, config.with_name(_CONFIG)
    beside = config.with_name(_INDEX)
    files = index or (beside if beside.is_file() else None)
    known = _json(config)
    total = _total_size(files) if files else None
    quantized = config.with_name(_QUANTIZED)
    packed = _json(quantized) if quantized.is_file() else None
    try:
        found = section(known, total, packed)
    except NoModelError as error:
        _refuse(config, str(error))
    text = _text(found, source or _source(config, known))
    site = read_site("", f"version: 1\n{text}".encode())
    for finding in site.findings:
        # The section alone has no engine, which a finding at the section as a whole says.
        if finding.path[:1] == ("model",) and finding.path != ("model",):
            _refuse(config, finding.message)
    click.echo("\n".join([text.rstrip("\n"), *_parameters(found.architecture)]))


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    except (ValueError, RecursionError) as error:
        _refuse(path, f"no JSON: {error}")


def _total_size(path: Path) -> object:
    index = _json(path)
    metadata = index.get("metadata") if isinstance(index, dict) else None
    if not isinstance(metadata, dict) or "total_size" not in metadata:
        _refuse(path, "it holds no metadata.total_size")
    return metadata["total_size"]


def _source(path: Path, config: object) -> str:
    """The model's id, from its folder in a Hugging Face cache or from the file itself."""
    for part in reversed(path.absolute().parts):
        if cached := re.fullmatch(r"models--([^-].*?)--(.+)", part):
            return f"{cached[1]}/{cached[2]}"
    name = config.get("_name_or_path") if isinstance(config, dict) else None
    is_id = isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", name)
    return name if isinstance(name, str) and is_id else ""


def _text(found: Section, source: str) -> str:
    lines = ["model:", f"  source: {source or 'OWNER/NAME'}", "  architecture:"]
    for key, value in found.architecture.items():
        lines.append(f"    {key}: {scalar(value)}")
    remarks = list(found.remarks)
    if not source:
        remarks.insert(0, "source: write the model's Hugging Face id, or its folder on the nodes")
    remarks.append("gated: true, if its page on huggingface.co asks for a license")
    lines += ["  # Not in these files:", *(f"  # - {remark}" for remark in remarks)]
    return "\n".join(lines) + "\n"


def _parameters(architecture: Mapping[str, ConfigValue]) -> Iterator[str]:
    """How many parameters the model has, and how many of them one token uses, if it is known."""
    whole = complete(shape_of(architecture)) if "layers" in architecture else None
    if whole and (counts := parameters(whole)):
        total, active = (f"{count / 1e9:.3g}e9" for count in counts)
        yield f"  # {total} parameters, of which a token uses {active}"


def _refuse(path: Path, why: str) -> NoReturn:
    fail(f"{path}: {' '.join(why.split())}", INVALID)
