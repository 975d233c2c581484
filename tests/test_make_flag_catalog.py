"""The catalog of an engine's next version can be generated from its own parser."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from flag_catalog_text import catalog_text, version_catalog
from test_flag_catalog import PROGRAMS
from waiting import PATIENCE

from generator.catalogs.flag_files import FOLDER
from generator.catalogs.flags import covered, parse
from generator.resources import ROOT

ARGPARSE = """\
import argparse, json, os
import torch
from torch.cuda import is_available

class Config(torch.nn.Module):
    pass

@torch.compile
def convert(text):
    return text

def human_readable_int(text):
    return int(text)

def optional(convert):
    def _optional_type(text):
        return None if text == "None" else convert(text)
    return _optional_type

def add_cli_args(parser):
    parser.add_argument("model")
    parser.add_argument("-v", "--version", action="version", version="1")
    parser.add_argument("--tensor-size", "-tp", type=int, default=1)
    parser.add_argument("--tokens", type=human_readable_int)
    parser.add_argument("--length", type=optional(int))
    parser.add_argument("--overrides", type=optional(json.loads))
    parser.add_argument("--dtype", choices=["auto", "half"])
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--middleware", action="append")
    parser.add_argument("--metrics", action="store_true")
    parser.add_argument("--graphs", action=argparse.BooleanOptionalAction)
    names = ("--enable-cache", "--no-enable-cache", "--disable-cache")
    parser.add_argument(*names, action="store_true")
    parser.add_argument("--special", type=convert)

def main():
    parser = argparse.ArgumentParser()
    add_cli_args(parser)
    torch.serve(parser.parse_args())

TIMEOUT = os.environ.get("TOY_TIMEOUT", 1), os.getenv('TOY_DEBUG'), "TOY_"
"""
EXPECTED = """\
# What `toy serve` takes, by version; generator/catalogs/flags.py says how to read this file.
# Source: toy-1.0-py3-none-any.whl
versions\t1.0
parser\tabbreviations\tequals
variables\tTOY_\tall
--dtype\ttext\tchoices=auto half
--enable-cache\tswitch\toff=--no-enable-cache --disable-cache
--graphs\tswitch\toff=--no-graphs
--length\tint\talso=None
--metrics\tswitch
--middleware\ttext\tmany=append
--overrides\tjson\talso=None
--sizes\tint\tmany=+
--special\ttext
--tensor-size -tp\tint
--tokens\tint\tsuffixes
TOY_DEBUG
TOY_TIMEOUT
"""
CLICK = """\
import click
import tensorrt

@click.command()
@click.argument("model")
@click.option("--tp_size", "--tensor_parallel_size", type=int)
@click.option("--fraction", type=click.FloatRange(0, 1))
@click.option("--backend", type=click.Choice(["pytorch", "trt"]))
@click.option("--middleware", multiple=True)
@click.option("--telemetry/--no-telemetry", default=True)
@click.option("--trust", is_flag=True)
def serve(**options):
    tensorrt.serve(**options)
"""
EXPECTED_OF_CLICK = """\
# What `toy serve` takes, by version; generator/catalogs/flags.py says how to read this file.
# Source: toy-1.0-py3-none-any.whl
versions\t1.0
parser\tequals
--backend\ttext\tchoices=pytorch trt
--fraction\tfloat
--middleware\ttext\tmany=append
--telemetry\tswitch\toff=--no-telemetry
--tp_size --tensor_parallel_size\tint
--trust\tswitch
"""


def make(folder: Path, code: str, *options: str, version: str = "1.0") -> tuple[str, str, str]:
    """The catalog of a wheel with this code, and the output."""
    wheel, output = folder / "toy-1.0-py3-none-any.whl", folder / "toy.tsv"
    with ZipFile(wheel, "w") as packed:
        packed.writestr("toy/__init__.py", "raise RuntimeError('there is no GPU')\n")
        packed.writestr("toy/cli.py", code)
    script = Path(__file__).with_name("make_flag_catalog.py")
    options = ("--command", "toy serve", "--wheel", str(wheel), "--output", str(output), *options)
    done = subprocess.run(
        [sys.executable, script, "toy", version, *options],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return output.read_text(), done.stdout, done.stderr


@pytest.mark.parametrize("name", ["add_cli_args", "main"])
def test_argparse(name: str, tmp_path: Path) -> None:
    options = ("--parser", f"toy.cli:{name}", "--variables", "TOY_", "--all-variables")
    text, _, remarks = make(tmp_path, ARGPARSE, *options)
    assert text == EXPECTED
    assert remarks == "--special: convert is taken for text\n"


def test_click(tmp_path: Path) -> None:
    text, _, remarks = make(tmp_path, CLICK, "--parser", "toy.cli:serve")
    assert (text, remarks) == (EXPECTED_OF_CLICK, "")


def test_another_version_of_a_catalog(tmp_path: Path) -> None:
    make(tmp_path, CLICK, "--parser", "toy.cli:serve")
    newer = CLICK.replace('"trt"]', '"auto"]').replace("multiple=True", "type=int")
    text, printed, _ = make(
        *(tmp_path, newer, "--parser", "toy.cli:serve", "--like", "1.0"), version="1.1"
    )
    assert text.splitlines()[2:] == [
        "versions\t1.0 1.1",
        "parser\tequals",
        "--backend\ttext\tchoices=pytorch auto@1.1.. trt@..1.0",
        "--fraction\tfloat",
        "--middleware\tint\tversions=1.1..",
        "--middleware\ttext\tmany=append\tversions=..1.0",
        "--telemetry\tswitch\toff=--no-telemetry",
        "--tp_size --tensor_parallel_size\tint",
        "--trust\tswitch",
    ]
    assert printed.strip() == ""


@pytest.mark.parametrize("program", PROGRAMS)
def test_catalogs_are_formatted_the_same(program: str) -> None:
    text = (FOLDER / f"{program}.tsv").read_text("utf-8")
    lines = text.splitlines(keepends=True)
    known = [parse(program, version, text) for version in covered(program, text)]
    prefix, extent = known[-1].prefix, known[-1].has_all_variables
    traits = next(line for line in lines if line.startswith("parser")).split()[1:]
    every = [version_catalog(each) for each in known]
    assert catalog_text("".join(lines[:2]), traits, every, prefix, extent) == text
