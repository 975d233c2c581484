"""`diff` in real git repositories: what a change costs on which node, and in which order."""

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path

import pytest
from conftest import Command
from racks import site_text
from repositories import commit, data, git, lab, order, todo
from waiting import PATIENCE

from generator.activation import NOTHING, Scope
from generator.bundle.plan import activations
from generator.bundle.tree import File
from generator.resources import ROOT
from generator.review import changes as review_changes
from generator.review.changes import changes
from generator.review.impact import minutes
from generator.review.markdown import LIMIT


@pytest.fixture
def site(tmp_path: Path, sparkgen: Command) -> Path:
    """A site file and its bundle, both committed."""
    return lab(tmp_path, sparkgen)


# Every scenario gives the same review against the bundle's folder and against the commit.
against = pytest.mark.parametrize("words", [(), ("--against", "HEAD")], ids=["folder", "commit"])


@against
def test_no_change(words: tuple[str, ...], site: Path, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("diff", site, "--exit-code", *words, cwd=tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    assert re.fullmatch(r"lab: nothing differs from (out/lab|HEAD \(\w{12}\))\n", outcome.out)


def test_no_change_takes_no_plan(site: Path, tmp_path: Path) -> None:
    """Most bundles that are compared are the same; to know that takes neither plans nor git."""
    command = [sys.executable, "-X", "importtime", "-m", "generator", "diff", str(site)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "lab: nothing differs from out/lab\n"
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "generator.review.changes" in loaded
    assert loaded & {"generator.operation.plan", "generator.review.impact", "subprocess"} == set()


@against
def test_new_wording_is_no_difference(
    words: tuple[str, ...], site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    site.write_text(f"# The lab downstairs.\n{site_text()}")
    outcome = sparkgen("diff", site, "--exit-code", *words, cwd=tmp_path)
    assert (outcome.code, outcome.out.partition(" from ")[0]) == (0, "lab: nothing differs")


@against
def test_address(words: tuple[str, ...], site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.write_text(
        site_text().replace("{kind: switch}", "{kind: switch, subnet_pool: 10.200.0.0/16}")
    )
    found = data(sparkgen, tmp_path, *words)
    links = "netplan apply (links drop), engine restart"
    assert todo(found) == {"spark1": links, "spark2": links}
    assert found["downtimeSeconds"] == 120 + 60 + 10 + 1200
    assert order(found) == [
        "copy the folder (operator/deploy.sh --run): spark2 spark1",
        "stop the engine, the head first: spark1 spark2",
        "install.sh --apply, then install.sh --confirm in a new session within 120 s: "
        "spark2 spark1",
        "check the fabric: wait-fabric.sh 10: spark1 spark2",
        "start the engine, the head last: spark2 spark1",
        "wait until these serve: spark1",
    ]
    assert sparkgen("diff", site, "--exit-code", *words, cwd=tmp_path).code == 1
    text = sparkgen("diff", site, *words, cwd=tmp_path).out
    assert "\n-        - 10.100.0.11/24\n+        - 10.200.0.11/24\n" in text
    assert "\n--- a/spark2/etc/netplan/40-cx7.yaml\n+++ b/spark2/etc/netplan/40-cx7.yaml\n" in text
    assert "SHA256SUMS" not in text


@against
def test_management_address_of_one_node(
    words: tuple[str, ...], site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    """The worker's own address only appears in names: nothing that runs was started with it."""
    site.write_text(site_text().replace("10.0.0.2/16", "10.0.0.99/16"))
    found = data(sparkgen, tmp_path, *words)
    assert todo(found) == dict.fromkeys(("spark1", "spark2"), "files only, nothing restarts")
    assert found["downtimeSeconds"] is None
    assert order(found) == [
        "change the management address to 10.0.0.99 by hand: spark2",
        "copy the folder (operator/deploy.sh --run): spark2 spark1",
        "install.sh --apply: spark2 spark1",
    ]


@against
def test_management_addresses_are_exchanged(
    words: tuple[str, ...], site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    """No address is ever on two nodes: one of them has another one meanwhile."""
    text = site_text().replace("10.0.0.2/16", "10.0.0.X/16").replace("10.0.0.1/16", "10.0.0.2/16")
    site.write_text(text.replace("10.0.0.X/16", "10.0.0.1/16"))
    by_hand = [step for step in order(data(sparkgen, tmp_path, *words)) if "by hand" in step]
    assert by_hand == [
        "change the management address to a free one by hand: spark2",
        "change the management address to 10.0.0.2 by hand: spark1",
        "change the management address to 10.0.0.1 by hand: spark2",
    ]


@against
def test_management_address_of_a_node_that_moves_on(
    words: tuple[str, ...], site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    """A node gets the address of another one once that has left it."""
    text = site_text().replace("10.0.0.2/16", "10.0.0.99/16")
    site.write_text(text.replace("10.0.0.1/16", "10.0.0.2/16"))
    by_hand = [step for step in order(data(sparkgen, tmp_path, *words)) if "by hand" in step]
    assert by_hand == [
        "change the management address to 10.0.0.99 by hand: spark2",
        "change the management address to 10.0.0.2 by hand: spark1",
    ]


@against
def test_model(words: tuple[str, ...], site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.write_text(site_text(model="gpt-oss-20b"))
    found = data(sparkgen, tmp_path, *words)
    assert todo(found) == {"spark1": "engine restart", "spark2": "engine restart"}
    assert order(found) == [
        "fetch the model first: hf download openai/gpt-oss-20b: spark1 spark2",
        "copy the folder (operator/deploy.sh --run): spark2 spark1",
        "stop the engine, the head first: spark1 spark2",
        "install.sh --apply: spark2 spark1",
        "start the engine, the head last: spark2 spark1",
        "wait until these serve: spark1",
    ]


@against
def test_model_is_added_and_removed(
    words: tuple[str, ...], site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    """A network without an engine gets one later, and may lose it again."""
    serving = site_text()
    network = serving[: serving.index("model:")]
    site.write_text(network)
    found = data(sparkgen, tmp_path, *words)
    assert todo(found) == {"spark1": "engine stop", "spark2": "engine stop"}
    assert found["downtimeSeconds"] is None
    assert order(found) == [
        "copy the folder (operator/deploy.sh --run): spark2 spark1",
        "stop the engine, the head first: spark1 spark2",
        "install.sh --apply: spark2 spark1",
    ]
    assert "; the API is gone\n" in sparkgen("diff", site, *words, cwd=tmp_path).out
    assert sparkgen("build", site, cwd=tmp_path).code == 0
    commit(tmp_path)
    site.write_text(serving)
    found = data(sparkgen, tmp_path, *words)
    assert todo(found) == {"spark1": "engine start", "spark2": "engine start"}
    assert found["downtimeSeconds"] is None
    assert [step.partition(" first:")[0] for step in order(found)] == [
        "fetch the image",
        "fetch the model",
        "fetch the vocabulary",
        "fetch the vocabulary",
        "copy the folder (operator/deploy.sh --run): spark2 spark1",
        "install.sh --apply: spark2 spark1",
        "start the engine, the head last: spark2 spark1",
        "wait until these serve: spark1",
    ]


@against
def test_image(words: tuple[str, ...], site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.write_text(site_text(image="v0.33.0-aarch64"))
    found = data(sparkgen, tmp_path, *words)
    assert {node["effect"] for node in found["nodes"]} == {"restart"}
    assert order(found)[0] == (
        "fetch the image first: docker pull vllm/vllm-openai:v0.33.0-aarch64: spark1 spark2"
    )
    outcome = sparkgen("diff", site, "--exit-code", "--stat", *words, cwd=tmp_path)
    assert outcome.code == 1
    assert "spark1/opt/sparkgen/compose.yaml  +1     -1  restart the engine\n" in outcome.out
    assert "@@" not in outcome.out


def test_image_in_no_registry(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    before = site_text()
    after = re.sub(r"vllm/vllm-openai:\S+?(?=[\s,}])", "vllm-of-ours:v0.33.0", before)
    assert after != before
    site.write_text(after)
    found = data(sparkgen, tmp_path)
    assert order(found)[0] == (
        "build and load the image first, as README.md says: vllm-of-ours:v0.33.0: spark1 spark2"
    )
    facts = tmp_path / "out/lab/spark1/etc/sparkgen/node.env"
    assert "IMAGE_IS_BUILT=" not in facts.read_text()
    assert sparkgen("build", "sites/lab.yaml", "--force", cwd=tmp_path).code == 0
    assert "IMAGE_IS_BUILT=yes\n" in facts.read_text()
    runbook = (tmp_path / "out/lab/README.md").read_text()
    assert "docker pull" not in runbook
    assert "docker save vllm-of-ours:v0.33.0 | ssh" in runbook


@against
def test_node_added(words: tuple[str, ...], site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.write_text(site_text(nodes=3))
    found = data(sparkgen, tmp_path, *words)
    assert todo(found) == {
        "spark1": "engine restart",
        "spark2": "engine restart",
        "spark3": "new: install all, start the engine",
    }
    assert [node["state"] for node in found["nodes"]] == ["changed", "changed", "new"]
    assert [re.sub(r"(fetch .*) first:.*", r"\1", step) for step in order(found)] == [
        "plug cable 3 into spark3:p0 and rack:3.0",
        "start the node and prepare it as README.md says: spark3",
        "fetch the image",
        "fetch the model",
        "fetch the vocabulary",
        "fetch the vocabulary",
        "copy the folder (operator/deploy.sh --run): spark2 spark3 spark1",
        "install.sh --apply, then install.sh --confirm in a new session within 120 s: spark3",
        "check the fabric: wait-fabric.sh 10: spark1 spark2 spark3",
        "see that each plugged port is up at 200000Mb/s (operator/cables.txt), "
        "and measure the cables (verify.py --bandwidth): spark3",
        "stop the engine, the head first: spark1 spark2",
        "install.sh --apply: spark2 spark1",
        "start the engine, the head last: spark2 spark3 spark1",
        "wait until these serve: spark1",
    ]
    assert {file["kind"] for file in found["nodes"][2]["files"]} == {"added"}


@against
def test_node_removed(
    words: tuple[str, ...], site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    site.write_text(site_text(nodes=3))
    sparkgen("build", site, cwd=tmp_path)
    commit(tmp_path)
    site.write_text(site_text(nodes=2))
    found = data(sparkgen, tmp_path, *words)
    assert todo(found)["spark3"] == "removed: stop the engine, remove the files"
    assert order(found) == [
        "copy the folder (operator/deploy.sh --run): spark2 spark1",
        "stop the engine, the head first: spark1 spark2 spark3",
        "install.sh --apply: spark2 spark1",
        "start the engine, the head last: spark2 spark1",
        "wait until these serve: spark1",
        "install.sh --uninstall: spark3",
        "unplug cable 3 from spark3:p0 and rack:3.0",
    ]
    assert {file["kind"] for file in found["nodes"][2]["files"]} == {"removed"}
    assert sparkgen("diff", site, "--exit-code", *words, cwd=tmp_path).code == 1


def test_one_rank_restarts_and_the_others_with_it(
    site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    file = tmp_path / "out/lab/spark2/etc/sparkgen/engine.env"
    file.write_text(file.read_text() + "NCCL_DEBUG=INFO\n")
    found = data(sparkgen, tmp_path)
    assert todo(found) == {
        "spark1": "engine restart, with the other ranks",
        "spark2": "engine restart",
    }
    assert [node["restarts"] for node in found["nodes"]] == [True, True]
    assert found["nodes"][0]["files"] == []


@pytest.mark.parametrize(
    ("path", "old", "new", "effect"),
    [
        ("etc/systemd/system/sparkgen-engine.service", "RestartSec=30", "RestartSec=5", "reload"),
        ("etc/systemd/system/sparkgen-engine.service", "# Nothing else", "# Systemd", "files"),
        ("etc/nccl.conf", "# Replaces", "# Supersedes", "files"),
        ("etc/nccl.conf", "NCCL_NET=IB", "NCCL_NET=Socket", "restart"),
        ("etc/netplan/40-cx7.yaml", "mtu: 1500", "mtu: 9000", "links"),
        ("opt/sparkgen/launch.sh", "set -euo pipefail", "set -eu", "files"),
    ],
)
def test_effect_of_one_file(
    path: str, old: str, new: str, effect: str, site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    file = tmp_path / "out/lab/spark1" / path
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))
    found = data(sparkgen, tmp_path)
    assert [node["effect"] for node in found["nodes"]] == [effect, "nothing"]
    restarts = effect in ("restart", "links")
    assert [node["restarts"] for node in found["nodes"]] == [restarts, restarts]
    assert (found["downtimeSeconds"] is None) == (not restarts)


def test_script_that_lost_its_mode(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "out/lab/spark1/opt/sparkgen/launch.sh").chmod(0o644)
    outcome = sparkgen("diff", site, cwd=tmp_path)
    assert "\nspark1/opt/sparkgen/launch.sh: mode 0644 -> 0755\n" in outcome.out


def test_change_of_checksums_only(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    """A file derived from others is shown only if nothing else differs."""
    sums = tmp_path / "out/lab/spark1/SHA256SUMS"
    sums.write_text(sums.read_text().rstrip("\n"))
    outcome = sparkgen("diff", site, "--exit-code", cwd=tmp_path)
    assert outcome.code == 1
    assert "\n--- a/spark1/SHA256SUMS\n" in outcome.out
    assert "\n\\ No newline at end of file\n" in outcome.out


def test_first_bundle(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("diff", site, "--out", "elsewhere", "--stat", cwd=tmp_path)
    assert outcome.code == 0
    head = outcome.out.partition("\n")[0]
    count = r"\d+ files, \d+ of them of no node"
    pattern = rf"lab against elsewhere/lab: 2 of 2 nodes change, {count}; nothing runs yet"
    assert re.fullmatch(pattern, head)
    assert not (tmp_path / "elsewhere").exists()


def test_foreign_files_are_left_out(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "out/lab/spark1/notes.txt").write_text("mine\n")
    assert sparkgen("diff", site, "--exit-code", cwd=tmp_path).code == 0


def test_bytes_that_are_no_text_cannot_take_over_a_terminal(
    site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    file = tmp_path / "out/lab/spark1/etc/nccl.conf"
    file.write_bytes(file.read_bytes() + b"\x1b]0;owned\x07 \xff\n")
    outcome = sparkgen("diff", site, cwd=tmp_path)
    assert outcome.code == 0
    assert "\x1b" not in outcome.out
    assert "-\\x1b]0;owned\\x07" in outcome.out


def test_another_site(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    """The site file's name is in every file, but is no difference between two sites."""
    other = tmp_path / "sites/other.yaml"
    other.write_text(site_text(image="v0.33.1"))
    outcome = sparkgen("diff", other, "--with", site, "--stat", cwd=tmp_path)
    assert outcome.out.startswith(f"lab against {site}: 2 of 2 nodes change, ")
    changed = set(re.findall(r"^changed +(\S+)", outcome.out, re.MULTILINE))
    assert {Path(path).name for path in changed} == {
        "README.md",
        "compose.yaml",
        "node.env",
        # It names the image that is copied to nodes without a network.
        "site.env",
    }


def test_new_site(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    """A new site is reviewed like any other: all of it is new."""
    new = tmp_path / "sites/new.yaml"
    new.write_text(site_text().replace("name: lab", "name: new"))
    outcome = sparkgen("diff", "sites/new.yaml", "--against", "HEAD", "--stat", cwd=tmp_path)
    assert outcome.code == 0
    assert ", which does not have sites/new.yaml: 2 of 2 nodes change" in outcome.out


def test_site_that_was_invalid(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    """The committed bundle is compared; only without one would the site have to be built."""
    site.write_text(site_text().replace("kind: switch", "kind: swich"))
    commit(tmp_path)
    site.write_text(site_text())
    outcome = sparkgen("diff", "sites/lab.yaml", "--against", "main", cwd=tmp_path)
    assert (outcome.code, outcome.out.partition(" from ")[0]) == (0, "lab: nothing differs")
    git(tmp_path, "rm", "-r", "--quiet", "out")
    git(tmp_path, "commit", "--quiet", "--message=Leave bundles to CI")
    outcome = sparkgen("diff", "sites/lab.yaml", "--against", "main", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert " --> main:sites/lab.yaml:" in outcome.err


def test_from_a_folder_below_and_by_an_older_name(
    site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    git(tmp_path, "tag", "v1")
    site.write_text(site_text(model="gpt-oss-20b"))
    commit(tmp_path)
    outcome = sparkgen("diff", "lab.yaml", "--against", "v1", "--exit-code", cwd=site.parent)
    assert outcome.code == 1
    assert (
        sparkgen("diff", "lab.yaml", "--against", "HEAD", "--exit-code", cwd=site.parent).code == 0
    )


def test_unknown_commit(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    for ref in ("nowhere", "--help", "HEAD:sites"):
        outcome = sparkgen("diff", site, f"--against={ref}", cwd=tmp_path)
        assert (outcome.code, outcome.out) == (4, "")
        assert outcome.err == f"sparkgen: git knows no commit called '{ref}'\n"


def test_no_repository(tmp_path: Path, process: Command) -> None:
    site = tmp_path / "lab.yaml"
    site.write_text(site_text())
    ceiling = {"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    outcome = process("diff", "lab.yaml", "--against", "HEAD", cwd=tmp_path, env=ceiling)
    assert (outcome.code, outcome.out) == (4, "")
    assert re.fullmatch(r"sparkgen: git: .*not a git repository.*\n", outcome.err)


def test_no_git(site: Path, tmp_path: Path, process: Command) -> None:
    empty = {"PATH": str(tmp_path / "sites")}
    outcome = process("diff", site, "--against", "HEAD", cwd=tmp_path, env=empty)
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err == "sparkgen: git is not installed; --against asks it for the site file\n"


def test_exclusive_options(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    both = sparkgen("diff", site, "--against", "HEAD", "--with", site, cwd=tmp_path)
    assert both.code == 2
    assert sparkgen("diff", site, site, "--with", site, cwd=tmp_path).code == 2


def test_invalid_site(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.write_text(site_text().replace("kind: switch", "kind: swich"))
    assert sparkgen("diff", site, cwd=tmp_path).code == 3


def test_markdown(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.write_text(site_text(nodes=3, model="gpt-oss-20b"))
    outcome = sparkgen("diff", site, "--against", "main", "--format", "markdown", cwd=tmp_path)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[:3] == ["<!-- sparkgen diff -->", "### lab", ""]
    told = "gpt-oss-20b is answered in place of gpt-oss-120b"
    both = "gpt-oss-120b and gpt-oss-20b"
    assert f"**{told}; nobody answers to {both} in steps 11 to 14, time limit" in outcome.out
    instead = "what runs in its place answers to gpt-oss-20b"
    assert f"\n- nobody answers to gpt-oss-120b any more; {instead}\n" in outcome.out.replace(
        "\\", ""
    )
    assert "| spark1, spark2 | engine restart |" in lines
    assert "| spark3 | new: install all, start the engine |" in lines
    folds = [line for line in lines if line.startswith("<summary>")]
    assert [re.sub(r" \(.*", "", fold) for fold in folds] == [
        "<summary>lab/spark1: engine restart",
        "<summary>lab/spark2: engine restart",
        "<summary>lab/spark3: new: install all, start the engine",
        "<summary>lab: files of no node",
    ]
    assert "\n+ spark3/etc/netplan/40-cx7.yaml\n" in outcome.out
    assert re.search(r"^    spark1.* \|█+▓.*\| 119\.7 GiB$", outcome.out, re.MULTILINE)
    balanced(outcome.out)


def test_markdown_without_a_change(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("diff", site, "--format", "markdown", cwd=tmp_path)
    assert outcome.out == "<!-- sparkgen diff -->\nNothing differs: lab\n"


def test_markdown_fits_into_a_comment(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.write_text(site_text(nodes=36))
    outcome = sparkgen("diff", site, "--against", "main", "--format", "markdown", cwd=tmp_path)
    assert outcome.code == 0
    assert LIMIT - 500 < len(outcome.out) <= LIMIT
    assert re.search(r"^\.\.\. and \d+ more lines$", outcome.out, re.MULTILINE)
    assert outcome.out.endswith("`sparkgen diff` prints all of it.\n")
    balanced(outcome.out)


def balanced(comment: str) -> None:
    """Every fold and every fence that is opened is also closed."""
    lines = comment.splitlines()
    assert lines.count("<details>") == lines.count("</details>")
    fences = re.findall(r"^`{3,}(?:diff)?$", comment, re.MULTILINE)
    assert [fence.endswith("diff") for fence in fences] == [True, False] * (len(fences) // 2)


def test_color_is_for_terminals(site: Path, tmp_path: Path, process: Command) -> None:
    site.write_text(site_text(model="gpt-oss-20b"))
    assert "\x1b" not in process("diff", site, cwd=tmp_path).out
    output = on_a_terminal("diff", str(site), cwd=tmp_path)
    assert "\x1b[31m-" in output
    assert "\x1b[32m+" in output


def on_a_terminal(*words: str, cwd: Path) -> str:
    """The output of the command on a terminal."""
    ours, theirs = pty.openpty()
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with subprocess.Popen(
        [sys.executable, "-m", "generator", *words],
        cwd=cwd,
        env={**inherited, "PYTHONPATH": str(ROOT)},
        stdout=theirs,
    ) as running:
        os.close(theirs)
        received = b""
        with os.fdopen(ours, "rb", buffering=0) as terminal, suppress(OSError):
            while read := terminal.read(65_536):  # raises at the end on Linux
                received += read
        assert running.wait(PATIENCE) == 0
    return received.decode()


def test_every_service_has_a_step() -> None:
    for activation in activations().values():
        assert bool(activation.step) == (activation.effect is Scope.SERVICE), activation


@pytest.mark.parametrize(("seconds", "text"), [(30, "30 s"), (60, "1 min"), (61, "2 min")])
def test_minutes(seconds: int, text: str) -> None:
    assert minutes(seconds) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nx\ny\nc\n"),
        ("++ a\n-- b\n", "-- b\n++ c\n"),
        ("a\n", "a"),
        ("", "a\n"),
        ("a\nb", "a\nb\nc"),
        (None, "a\nb\n"),
        ("a", None),
        (None, ""),
    ],
)
def test_lines_are_counted_without_printing_them(
    before: str | None, after: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (
        {} if text is None else {"f": File("f", text, 0o644, NOTHING)} for text in (before, after)
    )
    (change,), (again,) = changes(old, new), changes(old, new)
    body = list(change.lines)[2:]
    monkeypatch.setattr(review_changes, "visible", lambda text: pytest.fail("a text was printed"))

    assert again.added == sum(line.startswith("+") for line in body)
    assert again.removed == sum(line.startswith("-") for line in body)


@pytest.mark.parametrize("text", ["a\n", "a\nb\n", "a", ""])
def test_a_file_on_one_side_alone_is_shown_as_by_difflib(text: str) -> None:
    tree = {"f": File("f", text, 0o644, NOTHING)}
    (added,), (removed,) = changes({}, tree), changes(tree, {})
    ended = [
        *text.split("\n")[:-1],
        *([f"{text}\n\\ No newline at end of file"] if text == "a" else []),
    ]

    assert list(added.lines) == [*unified_diff([], ended, "/dev/null", "b/f", lineterm="")]
    assert list(removed.lines) == [*unified_diff(ended, [], "a/f", "/dev/null", lineterm="")]
