"""The tables about a release are made from its wheel, and are no older than the newest release."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import make_release
import pytest
from make_flag_catalog import earlier_catalogs
from make_release import SOURCES, corrected, corrections_of, why_deprecated
from make_vllm_settings import Release, merged_text
from vllm_kinds_text import kinds_text
from waiting import PATIENCE

from generator import precompiled
from generator.catalogs.engines import ENGINE_TRAITS, names
from generator.catalogs.flag_files import versions
from generator.catalogs.versions import version
from generator.resources import ROOT, SCHEMAS

SERVER_ARGS = """\
import argparse
import torch

class Renamed(argparse.Action):
    def __init__(self, option_strings, dest, new_flag=None, **kwargs):
        self.new_flag = new_flag
        super().__init__(option_strings, dest, **kwargs)

class ServerArgs:
    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser):
        parser.add_argument("--port", type=int)
        parser.add_argument("--backend", choices={"c", "d", "a", "b"})
        parser.add_argument("--old", action=Renamed, new_flag="--new", type=int)
        parser.add_argument("--late", action="store_true")

def check(args):
    if args.late:
        torch.warn("--late is deprecated and has no effect. It will be removed in v9.1.")
    return envs.get("SGLANG_READ"), "SGLANG_EXAMPLE"
"""
BEFORE = """\
# What `sglang serve` takes, by version; generator/catalogs/flags.py says how to read this file.
# Source: nobody
versions\t1.0
parser\tabbreviations\tiec\tequals
variables\tSGLANG_\tsome
--backend\ttext\tchoices=a b c
--gone\tswitch
--late\tswitch
--port\tint
SGLANG_GONE
"""
AFTER = """\
# What `sglang serve` takes, by version; generator/catalogs/flags.py says how to read this file.
# Source: nobody
versions\t1.0 1.1
parser\tabbreviations\tiec\tequals
variables\tSGLANG_\tsome
--backend\ttext\tchoices=a b c d@1.1..
--gone\tswitch\tversions=..1.0
--late\tswitch\tdeprecated=no effect; removal planned in 9.1\tversions=1.1..
--late\tswitch\tversions=..1.0
--old\tint\tdeprecated=use --new\tversions=1.1..
--port\tint\talso=auto@1.1..
SGLANG_GONE\t..1.0
SGLANG_READ\t1.1..
"""
CORRECTIONS = """\
engine\tname\tsince\tcorrection\tattribute\twords\tsource
sglang\t--port\t1.1\tadd\talso\tauto\tnobody
sglang\tSGLANG_EXAMPLE\t1.1\tremove\tvariables\t\tnobody
sglang\t--port\t1.2\tadd\talso\tlater\tnobody
"""
STARTUP = """\
looked_at: "1.0"
names: {}
rows:
  - {when: {port: "> 1"}, says: long past, help: none, until: "0.9"}
  - {when: {port: "> 1"}, says: past, help: none, until: "1.1"}
"""
DECISIONS = f"""\
replaced.tsv: --gone is gone; what replaces it?
new: --old
replaced.tsv: SGLANG_GONE is gone; what replaces it?
images/sglang.yaml: no image is listed with 1.1
schemas/traits: new sites start with {ENGINE_TRAITS["sglang"].start.version}
startup/sglang.yaml: every row; it was last looked at for 1.0
startup/sglang.yaml: ends before 1.1: past
"""


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    """Tables about a made-up engine."""
    for name, text in (
        ("corrections.tsv", CORRECTIONS),
        ("replaced.tsv", "engine\tname\tgone\tinstead\n"),
        ("engines/sglang.tsv", BEFORE),
        ("images/sglang.yaml", "[]\n"),
        ("startup/sglang.yaml", STARTUP),
    ):
        path = tmp_path / "schemas" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "schemas"


def make(schemas: Path) -> str:
    """Add release 1.1 to the tables, and return what it prints."""
    wheel = schemas.parent / "wheel"
    shutil.rmtree(wheel, ignore_errors=True)
    (wheel / "sglang/srt").mkdir(parents=True)
    (wheel / "sglang/srt/server_args.py").write_text(SERVER_ARGS)
    script = Path(make_release.__file__)
    done = subprocess.run(
        [sys.executable, script, "sglang", "1.1", "--wheel", wheel, "--schemas", schemas],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_release_is_made_from_its_wheel(schemas: Path) -> None:
    printed = make(schemas)
    assert (schemas / "engines/sglang.tsv").read_text() == AFTER
    assert sorted(printed.splitlines()) == sorted(DECISIONS.splitlines())
    again = set(make(schemas).splitlines())
    assert again < set(printed.splitlines())
    assert not any("what replaces it?" in line for line in again)
    assert (schemas / "engines/sglang.tsv").read_text() == AFTER


@pytest.mark.parametrize(
    ("warning", "short"),
    [
        ("--a is deprecated and will be removed in v0.33.0. Use --b instead.", "use --b"),
        ("--a is deprecated; use '--b=c' instead.", "use --b=c"),
        ("--a is deprecated. Use --b.", "use --b"),
        ("--a is deprecated and has no effect.", "no effect"),
        ("--a is deprecated.", ""),
    ],
)
def test_warnings_in_short(warning: str, short: str) -> None:
    assert why_deprecated(warning).rpartition("; ")[2] == short


@pytest.mark.parametrize("engine", SOURCES)
def test_corrections_are_in_the_catalogs(engine: str) -> None:
    for name, catalog in earlier_catalogs(engine, SCHEMAS / "engines" / f"{engine}.tsv").items():
        corrections = corrections_of(engine, name, SCHEMAS)
        flags = {flag.names[0]: flag for flag in catalog.flags()}
        for each in corrections:
            if each["attribute"] == "variables":
                assert each["name"] not in catalog.variables
            elif each["name"] in flags:
                flag = flags[each["name"]]
                assert corrected(flag, [each]) == flag


def test_settings_take_one_more_release(tmp_path: Path) -> None:
    code = "class EPLBConfig:\n    window: int = 1\n    policy: Literal['new'] = 'new'\n"
    (tmp_path / "config.py").write_text(code)
    text = (SCHEMAS / "vllm-settings.tsv").read_text("utf-8").partition("setting\t")[0]
    text += "setting\ttype\twords\neplb-config.policy\twords\told\neplb-config.window\tfloat\t\n"
    more = merged_text(text, "99.0", Release(tmp_path))
    assert more.endswith("eplb-config.policy\twords\told new\neplb-config.window\t\t\n")
    assert ", 99.0 (" in more
    assert merged_text(more, "99.0", Release(tmp_path)) == more


def test_kinds_take_one_more_release(tmp_path: Path) -> None:
    models = tmp_path / "model_executor/models"
    models.mkdir(parents=True)
    classes = "class Base(SupportsLoRA): ...\nclass ToyForCausalLM(Base, nn.Module): ...\n"
    (models / "toy.py").write_text(classes)
    (models / "registry.py").write_text("M = {'ToyForCausalLM': ('toy', 'ToyForCausalLM')}\n")
    head = "# none up to 1.0\n# 0.9 to 1.0.0, the bases\nkind\tadapters\teagle3\timages\n"
    text = f"{head}other\t-\t-\t-\ntoy\t-\t0.9\t-\n"
    more, remarks = kinds_text(text, "1.1.0", tmp_path)
    assert more.splitlines() == [
        "# none up to 1.1",
        "# 0.9 to 1.1.0, the bases",
        "kind\tadapters\teagle3\timages",
        "other\t-\t-\t-",
        "toy\t1.1.0\t0.9\t-",
    ]
    assert remarks == [
        "vllm-kinds.tsv: no class is registered for other",
        "vllm-kinds.tsv: toy has no eagle3 any more",
        "vllm-kinds.tsv: kinds that are new, and the columns stages and prediction",
    ]


# No table is older than the newest release


@pytest.mark.parametrize("engine", names())
def test_rows_were_looked_at_for_the_newest_release(engine: str) -> None:
    looked_at = version(str(precompiled.schema(f"startup/{engine}")["looked_at"]))
    assert looked_at >= max(map(version, versions(engine)))


@pytest.mark.parametrize("table", ["vllm-settings.tsv", "vllm-kinds.tsv"])
def test_tables_of_vllm_have_the_newest_release(table: str) -> None:
    head = (SCHEMAS / table).read_text("utf-8").partition("Source:")[2].splitlines()[0]
    newest = max(map(version, versions("vllm")))
    assert max(map(version, re.findall(r"\d+\.\d+\.\d+", head))) == newest
