"""The command line: what it answers, on which stream, and with which exit code."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command

from generator import __version__
from generator.resources import ROOT

GOOD = ROOT / "sites/pair-chatbot.yaml"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A site without findings."""
    path = tmp_path / "good.yaml"
    path.write_text(GOOD.read_text())
    return path


@pytest.fixture
def warned(tmp_path: Path) -> Path:
    """A site with one warning: its image has no fixed tag."""
    path = tmp_path / "warned.yaml"
    path.write_text(
        GOOD.read_text()
        .replace("name: pair-chatbot", "name: warned")
        .replace("vllm/vllm-openai:v0.33.0", "example.org/vllm:latest")
    )
    return path


@pytest.fixture
def invalid(tmp_path: Path) -> Path:
    """A site with one error: a kind of topology that there is not."""
    path = tmp_path / "invalid.yaml"
    path.write_text(GOOD.read_text().replace("kind: direct", "kind: mesh"))
    return path


def test_build_answers_in_a_line_a_site(
    good: Path, warned: Path, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen("build", good, warned, cwd=tmp_path)
    assert outcome.code == 0
    files = len([path for path in (tmp_path / "out/warned").rglob("*") if path.is_file()])
    assert outcome.out.splitlines() == [
        f"pair-chatbot: {files} files for 2 nodes in out/pair-chatbot (new)",
        f"warned: {files} files for 2 nodes in out/warned (new)",
    ]
    assert outcome.err.endswith("1 warning in " + str(warned) + "\n")


def test_finding_shows_its_place_and_a_way_out(
    invalid: Path, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen("validate", invalid.name, cwd=tmp_path)
    assert outcome.code == 3
    assert outcome.out == ""
    *shown, help_line, _, total = outcome.err.splitlines()
    assert shown == [
        "error[SG104]: 'kind: mesh' is not allowed",
        " --> invalid.yaml:21:9 (topology.kind)",
        "   |",
        "21 |   kind: mesh",
        "   |         ^^^^",
    ]
    assert help_line.startswith("   = help: one of: single, direct, ring, switch")
    assert total == "1 error in invalid.yaml"


@pytest.mark.parametrize("command", ["build", "validate", "check", "show"])
def test_invalid_site_is_3(command: str, invalid: Path, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen(command, invalid, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith("error[SG104]")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["build", "validate", "check", "show"])
def test_unknown_site_is_4(command: str, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen(command, "none.yaml", cwd=tmp_path)
    message = "sparkgen: none.yaml: No such file or directory\n"
    assert (outcome.code, outcome.out, outcome.err) == (4, "", message)


@pytest.mark.parametrize("command", ["build", "validate", "check", "show"])
def test_folder_in_place_of_a_site_is_4(command: str, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen(command, ".", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err == "sparkgen: .: Is a directory\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("build",),
        ("validate",),
        ("check",),
        ("show",),
        ("show", "a.yaml", "b.yaml"),
        ("show", "--format", "xml", "a.yaml"),
        ("build", "--fast", "a.yaml"),
        ("fly",),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2(arguments: tuple[str, ...], tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen(*arguments, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (2, "")
    assert "Error: " in outcome.err


def test_file_that_is_named_twice_is_built_once(
    good: Path, warned: Path, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen("build", good.name, warned.name, f"./{good.name}", good, cwd=tmp_path)
    assert outcome.code == 0
    assert [line.partition(":")[0] for line in outcome.out.splitlines()] == [
        "pair-chatbot",
        "warned",
    ]


def test_misspelt_command_is_told_its_neighbor(tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("buid", cwd=tmp_path)
    assert outcome.code == 2
    assert "'buid'. Did you mean 'build'?" in outcome.err


def test_validate_says_what_is_fine_and_writes_nothing(
    good: Path, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen("validate", good, cwd=tmp_path)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{good}: fine\n", "")
    assert list(tmp_path.iterdir()) == [good]


def test_validate_judges_every_site(
    good: Path, invalid: Path, warned: Path, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen("validate", invalid, warned, good, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, f"{good}: fine\n")
    assert outcome.err.count("\nwarning[SG609]") + outcome.err.count("error[SG104]") == 2


@pytest.mark.parametrize("command", ["build", "validate"])
def test_warning_stops_only_where_it_is_asked_to(
    command: str, warned: Path, tmp_path: Path, sparkgen: Command
) -> None:
    strict = sparkgen(command, "--strict", warned, cwd=tmp_path)
    assert (strict.code, strict.out) == (3, "")
    assert not (tmp_path / "out").exists()
    lenient = sparkgen(command, warned, cwd=tmp_path)
    assert lenient.code == 0
    written = "nothing was written\n" if command == "build" else ""
    said = f"{lenient.err.rstrip()}; with --strict a warning is an error\n{written}"
    assert strict.err == said


def test_strict_adds_nothing_to_an_error(invalid: Path, tmp_path: Path, sparkgen: Command) -> None:
    lenient = sparkgen("validate", invalid, cwd=tmp_path)
    assert sparkgen("validate", "--strict", invalid, cwd=tmp_path).err == lenient.err


def test_style_is_a_warning_of_validate_alone(
    good: Path, tmp_path: Path, sparkgen: Command
) -> None:
    good.write_text(good.read_text().replace("kind: direct", "kind:  direct   "))
    outcome = sparkgen("validate", good, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.count("warning[SG011]") == 2
    assert sparkgen("validate", "--strict", good, cwd=tmp_path).code == 3
    assert sparkgen("build", "--strict", good, cwd=tmp_path).code == 0


def test_check_tells_drift(good: Path, tmp_path: Path, sparkgen: Command) -> None:
    assert sparkgen("check", good, cwd=tmp_path).code == 1
    sparkgen("build", good, cwd=tmp_path)
    outcome = sparkgen("check", good, cwd=tmp_path)
    said = "pair-chatbot: out/pair-chatbot is what the site says\n"
    assert (outcome.code, outcome.out, outcome.err) == (0, said, "")


def test_show_is_a_table(good: Path, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("show", good, cwd=tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == TABLE


TABLE = """\
pair-chatbot: direct, 2 nodes, vLLM 0.33.0 (native), \
llama-3.1-70b-instruct-fp8 at http://10.0.0.11:8000

RANK  NODE    MANAGEMENT    CONTROL PLANE            LOGIN             MEMORY
0     spark1  10.0.0.11/24  enp1s0f0np0 10.100.0.11  nvidia@10.0.0.11  128 GB
1     spark2  10.0.0.12/24  enp1s0f0np0 10.100.0.12  nvidia@10.0.0.12  128 GB

NODE    PORT  INTERFACE      HCA           ADDRESS         MTU   CABLE
spark1  p0    enp1s0f0np0    rocep1s0f0    10.100.0.11/24  9000  1
spark1  p0    enP2p1s0f0np0  roceP2p1s0f0  10.100.1.11/24  9000  1
spark2  p0    enp1s0f0np0    rocep1s0f0    10.100.0.12/24  9000  1
spark2  p0    enP2p1s0f0np0  roceP2p1s0f0  10.100.1.12/24  9000  1

CABLE  FROM       TO         SUBNETS                       KIND  LENGTH  LABEL
1      spark1:p0  spark2:p0  10.100.0.0/24, 10.100.1.0/24  DAC   0.5 m   A1

NODE    STAGE          WEIGHTS  RESERVE  KV ASKED  KV ROOM  HEADROOM  SYSTEM
spark1  0 (40 layers)  33.9     4.8      40.0      57.2     55.9      23.9
spark2  1 (40 layers)  33.9     4.8      40.0      57.1     55.9      23.9

Memory in GiB: fits: 55.9 GiB left on spark2 beside one sequence of 16384 tokens
"""


@pytest.mark.parametrize(("form", "parse"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_show_is_data(
    form: str, parse: Callable[[str], Any], good: Path, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen("show", "--format", form, good, cwd=tmp_path)
    site = parse(outcome.out)
    assert (outcome.code, outcome.err) == (0, "")
    assert {
        node["name"]: [interface["address"] for interface in node["interfaces"]]
        for node in site["nodes"]
    } == {
        "spark1": ["10.100.0.11/24", "10.100.1.11/24"],
        "spark2": ["10.100.0.12/24", "10.100.1.12/24"],
    }
    assert site["nodes"][1]["rank"] == 1
    assert site["nodes"][1]["nccl"]["NCCL_SOCKET_IFNAME"] == "=enp1s0f0np0"
    assert site["engine"]["memory_utilization"] == 0.8


def test_show_of_a_node(good: Path, tmp_path: Path, sparkgen: Command) -> None:
    table = sparkgen("show", "--node", "spark2", good, cwd=tmp_path)
    assert table.out.startswith("spark2, rank 1\n")
    assert "\nVLLM_HOST_IP=10.100.0.12\n" in table.out
    assert "--node-rank=1\n" in table.out
    assert "10.100.0.11/24" not in table.out
    data = sparkgen("show", "--node", "spark2", "--format", "json", good, cwd=tmp_path)
    assert [node["name"] for node in json.loads(data.out)["nodes"]] == ["spark2"]


def test_show_of_a_node_that_there_is_not(good: Path, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("show", "--node", "spark9", good, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.endswith("--node: spark9; the nodes are spark1, spark2\n")


def test_version_and_help(tmp_path: Path, process: Command) -> None:
    version = process("--version", cwd=tmp_path)
    assert (version.code, version.out, version.err) == (0, f"sparkgen {__version__}\n", "")
    usage = process("build", "-h", cwd=tmp_path)
    assert usage.code == 0
    assert usage.out.startswith("Usage: sparkgen build [OPTIONS] SITE...\n")


def test_streams_of_a_process(good: Path, invalid: Path, tmp_path: Path, process: Command) -> None:
    sound = process("validate", good.name, cwd=tmp_path)
    assert (sound.code, sound.out, sound.err) == (0, "good.yaml: fine\n", "")
    faulty = process("validate", invalid.name, cwd=tmp_path)
    assert (faulty.code, faulty.out) == (3, "")
    assert faulty.err.startswith("error[SG104]: ")


@pytest.mark.parametrize(
    ("env", "colored"), [({}, True), ({"NO_COLOR": "1"}, False)], ids=["color", "NO_COLOR"]
)
def test_color_is_for_terminals_that_want_it(
    env: dict[str, str], colored: bool, invalid: Path
) -> None:
    said = on_a_terminal(invalid, env)
    assert "SG104" in said
    assert ("\x1b[1;31merror[SG104]\x1b[0m" in said) is colored
    assert ("\x1b" in said) is colored


def on_a_terminal(site: Path, env: dict[str, str]) -> str:
    """What `validate` writes on a terminal."""
    ours, theirs = pty.openpty()
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    done = subprocess.run(
        [sys.executable, "-m", "generator", "validate", str(site)],
        env={**inherited, "PYTHONPATH": str(ROOT), **env},
        stdout=theirs,
        stderr=theirs,
        check=False,
        timeout=60,
    )
    os.close(theirs)
    with os.fdopen(ours, "rb") as terminal:
        said = os.read(terminal.fileno(), 65_536).decode()
    assert done.returncode == 3
    return said
