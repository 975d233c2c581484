"""The command line: what it prints, on which stream, and with which exit code."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command
from waiting import PATIENCE

from generator import __version__
from generator.checkout import commit
from generator.cli import COMMANDS
from generator.resources import ROOT
from generator.sitefile.defaults import default

# Without its key, because a note says what the key leaves open.
GOOD = re.sub(
    r"\n  secrets: .*|\nwaivers:\n(  .*\n)+", "", (ROOT / "sites/pair-chatbot.yaml").read_text()
)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A site without findings."""
    path = tmp_path / "good.yaml"
    path.write_text(GOOD)
    return path


@pytest.fixture
def warned(tmp_path: Path) -> Path:
    """A site with one warning: its image has no fixed tag."""
    path = tmp_path / "warned.yaml"
    path.write_text(
        GOOD.replace("name: pair-chatbot", "name: warned").replace(
            "vllm/vllm-openai:v0.33.0", "example.org/vllm:latest"
        )
    )
    return path


@pytest.fixture
def invalid(tmp_path: Path) -> Path:
    """A site with one error: a kind of topology that does not exist."""
    path = tmp_path / "invalid.yaml"
    path.write_text(GOOD.replace("kind: direct", "kind: mesh"))
    return path


def test_build_prints_one_line_per_site(
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


def test_finding_shows_its_place_and_a_remedy(
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
    assert help_line.startswith("   = help: one of: single, direct, pairs, ring, switch")
    assert total == "1 error in invalid.yaml"


@pytest.mark.parametrize("command", ["build", "validate", "check", "show"])
def test_invalid_site_exits_with_3(
    command: str, invalid: Path, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen(command, invalid, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith("error[SG104]")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["build", "validate", "check", "show"])
def test_missing_site_exits_with_4(command: str, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen(command, "none.yaml", cwd=tmp_path)
    message = "sparkgen: none.yaml: No such file or directory\n"
    assert (outcome.code, outcome.out, outcome.err) == (4, "", message)


@pytest.mark.parametrize("command", ["validate", "build", "check", "fix"])
def test_endless_input_is_refused(command: str, process: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in ("/dev/zero", "pipe.yaml"):
        outcome = process(command, path, cwd=tmp_path)
        assert (outcome.code, outcome.out) == (4, "")
        assert outcome.err == f"sparkgen: {path}: not a regular file\n"


def test_site_file_is_read_up_to_the_limit(process: Command, tmp_path: Path) -> None:
    with (tmp_path / "site.yaml").open("wb") as file:
        file.truncate(1 << 40)  # sparse, takes no space on disk
    outcome = process("validate", "site.yaml", cwd=tmp_path)
    assert outcome.code == 3
    assert outcome.err.startswith("error[SG007]: the file is larger than 512 KiB\n")


@pytest.mark.parametrize("command", ["build", "validate", "check", "show"])
def test_folder_in_place_of_a_site_exits_with_4(
    command: str, tmp_path: Path, sparkgen: Command
) -> None:
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
def test_wrong_usage_exits_with_2(
    arguments: tuple[str, ...], tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen(*arguments, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (2, "")
    assert "Error: " in outcome.err


def test_file_named_twice_is_built_once(
    good: Path, warned: Path, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen("build", good.name, warned.name, f"./{good.name}", good, cwd=tmp_path)
    assert outcome.code == 0
    assert [line.partition(":")[0] for line in outcome.out.splitlines()] == [
        "pair-chatbot",
        "warned",
    ]


# What `sparkgen lock` writes for those images and that model.
LOCK = f"""\
version: 1
images:
  - image: {default("services.web_ui.image")}
    digest: sha256:{"1" * 64}
  - image: vllm/vllm-openai:v0.33.0
    digest: sha256:{"0" * 64}
models:
  - source: nvidia/Llama-3.1-70B-Instruct-FP8
    revision: main
    commit: {"0" * 40}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A folder with two sites, the lock of one, and files that are not sites themselves."""
    folder = tmp_path / "sites"
    (folder / "bases").mkdir(parents=True)
    for name in ("anna", "berta"):
        text = GOOD.replace("name: pair-chatbot", f"name: {name}")
        (folder / f"{name}.yaml").write_text(text)
    (folder / "anna.lock.yaml").write_text(LOCK)
    for name in (".hidden.yaml", "notes.yml", "bases/base.yaml"):
        (folder / name).write_text("no: site\n")
    return tmp_path


def test_all_sites_are_built_by_default(cluster: Path, sparkgen: Command) -> None:
    validated = sparkgen("validate", cwd=cluster)
    printed = "sites/anna.yaml: fine\nsites/berta.yaml: fine\n"
    assert (validated.code, validated.out, validated.err) == (0, printed, "")
    built = sparkgen("build", cwd=cluster)
    assert [line.partition(":")[0] for line in built.out.splitlines()] == ["anna", "berta"]
    assert sparkgen("check", cwd=cluster).code == 0
    assert sparkgen("diff", cwd=cluster).out.count("nothing differs") == 2


def test_lock_that_matches_a_pattern_is_no_site(cluster: Path, sparkgen: Command) -> None:
    files = ("sites/anna.lock.yaml", "sites/anna.yaml")
    assert sparkgen("validate", *files, cwd=cluster).out == "sites/anna.yaml: fine\n"
    assert sparkgen("validate", files[0], cwd=cluster).code == 3


@pytest.mark.parametrize("command", ["build", "validate", "check", "diff"])
def test_folder_without_sites(command: str, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen(command, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (2, "")
    assert "name a site, or run it where there are sites/*.yaml" in outcome.err


@pytest.mark.parametrize("command", ["validate", "fit", "show", "diagram", "failures"])
def test_standard_input(command: str, good: Path, tmp_path: Path, sparkgen: Command) -> None:
    piped = sparkgen(command, "-", cwd=tmp_path, stdin=good.read_text())
    named = sparkgen(command, good.name, cwd=tmp_path)
    assert (piped.code, piped.err) == (0, "")
    assert piped.out == named.out.replace("good.yaml: fine", "<stdin>: fine")


@pytest.mark.parametrize("command", ["build", "check", "diff", "fix"])
def test_commands_that_write_beside_a_site_need_a_file(
    command: str, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen(command, "-", cwd=tmp_path, stdin="version: 1\n")
    assert (outcome.code, outcome.out) == (2, "")
    assert "name a file" in outcome.err


def test_finding_in_standard_input(invalid: Path, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("validate", "-", "-", cwd=tmp_path, stdin=invalid.read_text())
    assert outcome.code == 3
    assert outcome.err.count(" --> <stdin>:21:9 (topology.kind)") == 1


def test_quiet_prints_only_problems(
    good: Path, warned: Path, tmp_path: Path, sparkgen: Command
) -> None:
    for command in ("build", "validate", "check"):
        outcome = sparkgen(command, "-q", good, cwd=tmp_path)
        assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert "warning[SG609]" in sparkgen("build", "-q", warned, cwd=tmp_path).err
    (tmp_path / "out/warned/README.md").write_text("mine\n")
    drift = sparkgen("check", "--quiet", warned, good, cwd=tmp_path)
    assert (drift.code, drift.out.count("SG803")) == (1, 1)
    assert "pair-chatbot" not in drift.out


def test_build_json_lists_what_it_wrote(good: Path, tmp_path: Path, sparkgen: Command) -> None:
    first = json.loads(sparkgen("build", "--format", "json", good, cwd=tmp_path).out)
    (site,) = first["sites"]
    folder = tmp_path / site["folder"]
    on_disk = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert (first["version"], first["written"], site["new"]) == (1, True, True)
    assert (site["nodes"], site["changed"]) == (["spark1", "spark2"], on_disk)
    (again,) = json.loads(sparkgen("build", "--format", "json", good, cwd=tmp_path).out)["sites"]
    assert (again["new"], again["changed"], again["removed"]) == (False, [], [])

    (folder / "README.md").write_text("mine\n")
    refused = sparkgen("build", "--format", "json", good, cwd=tmp_path)
    assert (refused.code, refused.err) == (1, "")
    data = json.loads(refused.out)
    assert (data["written"], data["sites"][0]["edited"]) == (False, ["README.md"])
    good.write_text(good.read_text().replace("# ", "#  ", 1))
    sparkgen("build", "-q", "--force", good, cwd=tmp_path)
    good.write_text(good.read_text() + "# reworded\n")
    (reworded,) = json.loads(sparkgen("build", "--format", "json", good, cwd=tmp_path).out)["sites"]
    assert reworded["changed"] == ["MANIFEST.json", "spark1/site.yaml", "spark2/site.yaml"]


def test_build_json_lists_what_is_wrong(
    invalid: Path, good: Path, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen("build", "--format", "json", good, invalid, cwd=tmp_path)
    assert (outcome.code, outcome.err) == (3, "")
    data = json.loads(outcome.out)
    assert (data["written"], data["sites"], data["summary"]["errors"]) == (False, [], 1)
    assert data["findings"][0]["rule"] == "SG104"


def test_misspelt_command_gets_a_suggestion(tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("buid", cwd=tmp_path)
    assert outcome.code == 2
    assert "'buid'. Did you mean 'build'?" in outcome.err


def test_validate_writes_nothing(good: Path, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("validate", good, cwd=tmp_path)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{good}: fine\n", "")
    assert list(tmp_path.iterdir()) == [good]


def test_validate_checks_every_site(
    good: Path, invalid: Path, warned: Path, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen("validate", invalid, warned, good, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, f"{good}: fine\n")
    assert outcome.err.count("\nwarning[SG609]") + outcome.err.count("error[SG104]") == 2


@pytest.mark.parametrize("command", ["build", "validate"])
def test_warning_is_an_error_only_with_strict(
    command: str, warned: Path, tmp_path: Path, sparkgen: Command
) -> None:
    strict = sparkgen(command, "--strict", warned, cwd=tmp_path)
    assert (strict.code, strict.out) == (3, "")
    assert not (tmp_path / "out").exists()
    lenient = sparkgen(command, warned, cwd=tmp_path)
    assert lenient.code == 0
    written = "nothing was written\n" if command == "build" else ""
    message = f"{lenient.err.rstrip()}; with --strict a warning is an error\n{written}"
    assert strict.err == message


def test_strict_adds_nothing_to_an_error(invalid: Path, tmp_path: Path, sparkgen: Command) -> None:
    lenient = sparkgen("validate", invalid, cwd=tmp_path)
    assert sparkgen("validate", "--strict", invalid, cwd=tmp_path).err == lenient.err


def test_only_validate_warns_about_style(good: Path, tmp_path: Path, sparkgen: Command) -> None:
    good.write_text(good.read_text().replace("kind: direct", "kind:  direct"))
    outcome = sparkgen("validate", good, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.count("warning[SG011]") == 1
    assert sparkgen("validate", "--strict", good, cwd=tmp_path).code == 3
    assert sparkgen("build", "--strict", good, cwd=tmp_path).code == 0


def test_check_reports_drift(good: Path, tmp_path: Path, sparkgen: Command) -> None:
    assert sparkgen("check", good, cwd=tmp_path).code == 1
    sparkgen("build", good, cwd=tmp_path)
    outcome = sparkgen("check", good, cwd=tmp_path)
    message = "pair-chatbot: out/pair-chatbot is what the site says\n"
    assert (outcome.code, outcome.out, outcome.err) == (0, message, "")


def test_show_as_a_table(good: Path, tmp_path: Path, sparkgen: Command) -> None:
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

NODE    STAGE          WEIGHTS  RESERVE  KV CACHE  KV MEMORY  HEADROOM  SYSTEM
spark1  0 (40 layers)  33.9     4.7      40.0      57.2       17.2      23.9
spark2  1 (40 layers)  33.9     4.7      40.0      57.2       17.2      23.9

Memory in GiB: fits: 17.2 GiB left on spark1 beside 32 sequences of 16384 tokens
"""


@pytest.mark.parametrize(("form", "parse"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_show_as_json(
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


def test_show_of_an_unknown_node(good: Path, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("show", "--node", "spark9", good, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.endswith("--node: spark9; the nodes are spark1, spark2\n")


def test_version_of_a_checkout_names_its_commit(tmp_path: Path) -> None:
    def git(*words: str, cwd: Path = tmp_path) -> str:
        who = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
        done = subprocess.run(
            ["git", *who, *words], cwd=cwd, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    assert commit(tmp_path) == ""
    git("init", "-q")
    assert commit(tmp_path) == ""
    git("commit", "-q", "--allow-empty", "-m", "first")
    head = git("rev-parse", "HEAD")[:12]
    assert commit(tmp_path) == head
    git("pack-refs", "--all")
    assert commit(tmp_path) == head
    git("worktree", "add", "-q", "other")
    assert commit(tmp_path / "other") == head
    git("checkout", "-q", "--detach")
    assert commit(tmp_path) == head


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("plan", "Use 'sparkgen diff'."),
        ("lint", "Use 'sparkgen validate'."),
        ("generate", "Use 'sparkgen build'."),
        ("doctor", "Use 'sparkgen audit'."),
        ("drift", "Use 'sparkgen check --live'."),
        ("deploy", "Use 'sparkgen build, and operator/deploy.sh of the bundle'."),
        ("bild", "Did you mean 'build'?"),
    ],
)
def test_command_of_another_program_is_known(
    typed: str, answer: str, process: Command, tmp_path: Path
) -> None:
    outcome = process(typed, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.endswith(f"Error: No such command '{typed}'. {answer}\n")


def test_help_lists_every_command_on_one_line(process: Command, tmp_path: Path) -> None:
    """A description that is cut says nothing."""
    shown = process("--help", cwd=tmp_path).out.splitlines()
    for name in COMMANDS:
        (line,) = (line for line in shown if line.startswith(f"  {name} "))
        assert line.endswith("."), line
    assert max(map(len, shown)) <= 80


@pytest.mark.parametrize(("old", "new"), [("verify", "test"), ("model", "describe-model")])
def test_earlier_names_of_commands_work(
    old: str, new: str, process: Command, tmp_path: Path
) -> None:
    first, second = (process(name, "--help", cwd=tmp_path) for name in (old, new))
    assert first.code == 0
    assert first.out.replace(f"sparkgen {old}", f"sparkgen {new}") == second.out


def test_version_and_help(tmp_path: Path, process: Command) -> None:
    version = process("--version", cwd=tmp_path)
    assert (version.code, version.err) == (0, "")
    # An export of a checkout has no commit to name.
    assert re.fullmatch(rf"sparkgen {__version__}( \([0-9a-f]{{12}}\))?\n", version.out)
    usage = process("build", "-h", cwd=tmp_path)
    assert usage.code == 0
    assert usage.out.startswith("Usage: sparkgen build [OPTIONS] [SITE]...\n")


def test_streams_of_a_process(good: Path, invalid: Path, tmp_path: Path, process: Command) -> None:
    sound = process("validate", good.name, cwd=tmp_path)
    assert (sound.code, sound.out, sound.err) == (0, "good.yaml: fine\n", "")
    faulty = process("validate", invalid.name, cwd=tmp_path)
    assert (faulty.code, faulty.out) == (3, "")
    assert faulty.err.startswith("error[SG104]: ")


@pytest.mark.parametrize(
    ("env", "colored"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False)],
    ids=["color", "NO_COLOR", "both"],
)
def test_color_is_for_terminals_that_support_it(
    env: dict[str, str], colored: bool, invalid: Path
) -> None:
    output = on_a_terminal(invalid, env)
    assert "SG104" in output
    assert ("\x1b[1;31merror[SG104]\x1b[0m" in output) is colored
    assert ("\x1b" in output) is colored


def on_a_terminal(site: Path, env: dict[str, str]) -> str:
    """The output of `validate` on a terminal for an invalid site."""
    code, output = terminal(env, "validate", str(site))
    assert code == 3
    return output


def terminal(env: dict[str, str], *words: str) -> tuple[int, str]:
    """The exit status of a command on a terminal, and its output there."""
    ours, theirs = pty.openpty()
    unwanted = ("NO_COLOR", "FORCE_COLOR", "COLUMNS")
    inherited = {name: value for name, value in os.environ.items() if name not in unwanted}
    running = subprocess.Popen(
        [sys.executable, "-m", "generator", *words],
        env={**inherited, "PYTHONPATH": str(ROOT), **env},
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    received = b""
    with os.fdopen(ours, "rb", buffering=0) as output, suppress(OSError):
        while read := output.read(65_536):
            received += read
    return running.wait(PATIENCE), received.decode().replace("\r\n", "\n")


def test_forced_colors_reach_a_file(invalid: Path, process: Command) -> None:
    env = {"FORCE_COLOR": "1", "NO_COLOR": ""}
    outcome = process("validate", invalid, cwd=invalid.parent, env=env)
    assert outcome.err.startswith("\x1b[1;31merror[SG104]\x1b[0m: ")
    fit = process("fit", LAB, cwd=invalid.parent, env=env)
    assert "\x1b[34m" in fit.out
    quiet = process("fit", LAB, cwd=invalid.parent, env={"FORCE_COLOR": "", "NO_COLOR": ""})
    assert "\x1b" not in quiet.out


LAB = str(ROOT / "sites/lab-mesh.yaml")


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("words", [("show", LAB), ("fit", "--compare", LAB)], ids=" ".join)
def test_tables_fit_the_terminal(words: tuple[str, ...], width: int) -> None:
    code, output = terminal({"COLUMNS": str(width), "NO_COLOR": "1"}, *words)
    assert code == 0
    # The terminal wraps sentences, between any two characters.
    tables = [line for line in output.splitlines() if "  " in line or "|" in line]
    assert len(tables) > 10
    assert max(map(len, tables)) <= width


def test_tables_are_the_same_on_terminals_and_in_files(process: Command) -> None:
    whole = process("fit", "--compare", LAB, cwd=ROOT).out
    for width in (60, 80):
        _, output = terminal({"COLUMNS": str(width), "NO_COLOR": "1"}, "fit", "--compare", LAB)
        # Bars are shorter; wrapped and listed text has the same words.
        assert words_of(output) == words_of(whole)


def words_of(text: str) -> set[str]:
    return {word for word in text.split() if not set(word) & set("|█▓▒░·")}
