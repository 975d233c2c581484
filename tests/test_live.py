"""`check --live`: compares captured nodes with their site, sorted by what a difference means."""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from bundles import BUNDLES, Bundle
from captured_nodes import Machine
from conftest import Command
from drifted_nodes import DRIFTS, GOLDEN, MORE, PATH, SERVICES, clean, nodes
from valid_sites import valid_file

from generator.capture import Capture
from generator.capture.archive import read
from generator.drift import drift
from generator.drift.seen import OWN
from generator.records import replace as changed
from generator.resources import ROOT

# One for each rule about a single node; compare_live.py takes every site and every drift.
CLEAN = [GOLDEN / name / "site.yaml" for name in ("direct-services", "groups-alternatives")]
BETWEEN = "SG867"
OF_EACH_RULE = {start[:5]: name for name, (_, _, start) in reversed(MORE.items())}
SOME = sorted({*OF_EACH_RULE.values(), "not restarted"} - {OF_EACH_RULE[BETWEEN]})
UNASKED = ("systemctl", "nvidia-smi")
UNREAD = ("commands/docker-info.txt", "commands/ufw.txt")


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The other node, without any difference."""
    return nodes()[1].capture(tmp_path_factory.mktemp("second"))


@pytest.mark.parametrize("name", DRIFTS)
def test_drift_of_a_node(name: str, second: Path, sparkgen: Command, tmp_path: Path) -> None:
    change, expected = DRIFTS[name]
    first = change(nodes()[0]).capture(tmp_path)
    outcome = sparkgen("check", PATH, "--live", first, second, cwd=tmp_path)
    *lines, verdict, other = outcome.out.splitlines()
    assert other == "spark2: as the site says"
    *lacking, never = outcome.err.splitlines()
    assert never.startswith("not looked at: the values of secrets,")
    assert lacking == LACKING.get(name, [])
    between = all(start.startswith(BETWEEN) for start in expected)
    means = "as the site says" if between else VERDICTS.get(name, "differs")
    assert verdict == f"spark1: {means}{ASIDE * bool(lacking)}"
    assert outcome.code == (1 if expected else 0)
    assert len(lines) == len(expected), outcome.out
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(start)


# What the files say and the running engine does not.
VERDICTS = dict.fromkeys(
    (
        *("variable of the process", "variable that is gone", "another variable of NCCL"),
        *("image", "command"),
    ),
    "applied, not restarted",
)
ASIDE = ", as far as it is captured"
LACKING = {
    "nothing of the bundle": [
        f"spark1: not captured: {what}"
        for what in ("which files are installed", "the kernel's settings", "the state of its units")
    ],
    "unit and container gone": ["spark1: not captured: the state of its units"],
}


@pytest.mark.parametrize("name", SOME)
def test_what_else_may_differ(name: str, tmp_path: Path) -> None:
    """Findings of one rule, since nothing else differs."""
    site, change, start = MORE[name]
    valid = valid_file(site)
    archive = change(clean(valid)[0]).capture(tmp_path)
    capture = read(archive.name, archive.read_bytes())
    found = drift(valid.site, [capture], None)
    remark, *more = found.differences
    assert f"{remark.rule}: {remark.message}; {remark.help}".startswith(start)
    assert {one.rule for one in more} <= {remark.rule}
    assert found.uncaptured == {}


@pytest.mark.parametrize("path", CLEAN, ids=lambda path: path.parent.name)
def test_clean_nodes_are_as_the_site_says(path: Path, sparkgen: Command, tmp_path: Path) -> None:
    valid = valid_file(path)
    archives = [node.capture(tmp_path) for node in clean(valid)]
    outcome = sparkgen("check", path, "--live", *archives, cwd=tmp_path)
    lines = [f"{node.name}: as the site says" for node in valid.site.nodes]
    assert (outcome.code, outcome.out.splitlines()) == (0, lines)


@pytest.mark.parametrize("path", [*CLEAN, PATH], ids=lambda path: path.parent.name)
def test_site_comes_back_from_its_nodes(path: Path, sparkgen: Command, tmp_path: Path) -> None:
    archives = [node.capture(tmp_path) for node in clean(valid_file(path))]
    outcome = sparkgen("import", *archives, "-o", "again.yaml", cwd=tmp_path)
    assert outcome.out == (
        "again.yaml is written, as it was: nothing has changed since it was installed\n"
        "nodes keep no policy and no 'catalogs/': copy yours beside it\n"
    )
    assert (tmp_path / "again.yaml").read_text() == path.read_text()


def test_site_comes_back_with_what_has_changed(sparkgen: Command, tmp_path: Path) -> None:
    """Also what one node was given later, and a comment that is not ASCII."""
    text = PATH.read_text().replace("\n", "\n# Köln, Südstadt\n", 1)
    (tmp_path / "pair.yaml").write_text(text)
    first, second = clean(valid_file(tmp_path / "pair.yaml"))
    older = {**second.files, "etc/sparkgen/bundle/site.yaml": text.replace("Köln", "Bonn")}
    first = DRIFTS["command"][0](first)
    archives = [first.capture(tmp_path), replace(second, files=older).capture(tmp_path)]
    outcome = sparkgen("import", *archives, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (0, text)
    lines = [line for line in outcome.err.splitlines() if line.startswith("changed since: ")]
    assert "changed since: +# Bonn, Südstadt" in lines
    assert any(line.startswith("changed since: SG868: spark1: the engine runs") for line in lines)


def test_site_comes_back_from_its_bundle(sparkgen: Command, tmp_path: Path) -> None:
    """With its base and its lock, although the site file is lost."""
    (tmp_path / "base.yaml").write_text("user: ops\n")
    (tmp_path / "lab.yaml").write_text("extends: base.yaml\n" + PATH.read_text())
    lock = "version: 1\nmodels:\n" + LOCKED
    (tmp_path / "lab.lock.yaml").write_text(lock)
    kept = {path.name: path.read_text() for path in tmp_path.glob("*.yaml")}
    assert sparkgen("build", "lab.yaml", cwd=tmp_path).code == 0
    for name in kept:
        (tmp_path / name).unlink()
    outcome = sparkgen("import", "out/pair-qwen3-235b", "-o", "lab.yaml", cwd=tmp_path)
    assert outcome.code == 0
    assert {path.name: path.read_text() for path in tmp_path.glob("*.yaml")} == kept
    assert sparkgen("check", "lab.yaml", cwd=tmp_path).code == 0
    (tmp_path / "out/pair-qwen3-235b/spark1/etc/nccl.conf").write_text("NCCL_DEBUG=INFO\n")
    changed = sparkgen("import", "out/pair-qwen3-235b", cwd=tmp_path)
    assert "changed since: SG803: out/pair-qwen3-235b/spark1/etc/nccl.conf" in changed.err


@pytest.mark.parametrize("name", ["direct-files", "jobs-groups"])
def test_own_files_come_back_from_nodes(name: str, sparkgen: Command, tmp_path: Path) -> None:
    site = GOLDEN / name / "site.yaml"
    archives = [node.capture(tmp_path) for node in clean(valid_file(site))]
    outcome = sparkgen("import", *archives, "-o", "site.yaml", cwd=tmp_path)
    assert "nothing has changed" in outcome.out
    assert of_ones_own(tmp_path) == of_ones_own(site.parent)


def test_own_files_are_taken_only_if_asked_for(sparkgen: Command, tmp_path: Path) -> None:
    """Any text can hold a key in a form that nobody knows."""
    first, *others = clean(valid_file(GOLDEN / "direct-files/site.yaml"))
    done = replace(first, options=()).run(tmp_path)
    assert "not taken without --files: opt/sparkgen/files/chat.jinja\n" in done.stdout
    archives = [tmp_path / f"{first.name}.tar.gz"]
    archives += [replace(node, options=()).capture(tmp_path) for node in others]
    assert not any("files/opt" in path for one in archives for path in texts_of(one))
    outcome = sparkgen("import", *archives, "-o", "site.yaml", cwd=tmp_path)
    assert (tmp_path / "site.yaml").read_text() == (GOLDEN / "direct-files/site.yaml").read_text()
    assert "SG691" in outcome.err


def test_site_text_with_a_key_is_named(sparkgen: Command, tmp_path: Path) -> None:
    text = PATH.read_text().replace("\nname:", "\n# the token: see the vault\nname:")
    (tmp_path / "site.yaml").write_text(text)
    archives = [node.capture(tmp_path) for node in clean(valid_file(tmp_path / "site.yaml"))]
    outcome = sparkgen("import", *archives, cwd=tmp_path)
    assert outcome.err.startswith("spark1: its site was not taken: a key is in it\nspark2: its")


def test_a_base_is_no_other_file(sparkgen: Command, tmp_path: Path) -> None:
    """What is not there is not read from it; nor has a file of another ending a lock."""
    (tmp_path / "base.yaml").write_bytes(b"\xef\xbb\xbfuser: ops\r\n")
    (tmp_path / "site.yaml").write_text("'extends' : \"base.yaml\"\n" + PATH.read_text())
    archives = [node.capture(tmp_path) for node in clean(valid_file(tmp_path / "site.yaml"))]
    outcome = sparkgen("import", *archives, "-o", "again/site.yml", cwd=tmp_path)
    assert "nothing has changed" in outcome.out
    for name, again in (("base.yaml", "base.yaml"), ("site.yaml", "site.yml")):
        assert (tmp_path / "again" / again).read_bytes() == (tmp_path / name).read_bytes()


def texts_of(archive: Path) -> Iterable[str]:
    return read(archive.name, archive.read_bytes()).texts


def test_own_files_with_odd_names_come_back(sparkgen: Command, tmp_path: Path) -> None:
    """An empty one too, and two that differ by their folders alone."""
    files = {"a@b+c.jinja": "{{ x }}\r\n", "empty.txt": "", "a/b/c.txt": "1\n", "b/c.txt": "2\n"}
    for name, text in files.items():
        (tmp_path / "files" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "files" / name).write_bytes(text.encode())
    sources = ", ".join(f"{{source: files/{name}, target: /o/{name}}}" for name in files)
    text = PATH.read_text().replace("\nengine:\n", f"\nengine:\n  files: [{sources}]\n")
    (tmp_path / "site.yaml").write_text(text)
    archives = [node.capture(tmp_path) for node in clean(valid_file(tmp_path / "site.yaml"))]
    outcome = sparkgen("import", *archives, "-o", "again/site.yaml", cwd=tmp_path)
    assert "nothing has changed" in outcome.out
    assert of_ones_own(tmp_path / "again") == of_ones_own(tmp_path)


def test_own_files_come_back_from_a_bundle(sparkgen: Command, tmp_path: Path) -> None:
    """Those of an image are in its folder alone."""
    site = GOLDEN / "direct-image/site.yaml"
    assert sparkgen("build", site, "--out", tmp_path, cwd=tmp_path).code == 0
    outcome = sparkgen("import", "direct-image", "-o", "own/site.yaml", cwd=tmp_path)
    assert "nothing has changed" in outcome.out
    assert of_ones_own(tmp_path / "own") == of_ones_own(site.parent)


def of_ones_own(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """The site file and what is beside it: bytes, and whether they are executable."""
    beside = [path for name in ("files", "mods") for path in (folder / name).rglob("*")]
    return {
        str(path.relative_to(folder)): (path.read_bytes(), os.access(path, os.X_OK))
        for path in (folder / "site.yaml", *beside)
        if path.is_file()
    }


LOCKED = f"  - {{source: Qwen/Qwen3-235B-A22B-GPTQ-Int4, revision: main, commit: {'e5' * 20}}}\n"


@pytest.mark.parametrize("bundle", BUNDLES, ids=str)
def test_every_installed_file_is_compared(bundle: Bundle) -> None:
    """Whichever was edited is named; nccl.conf is compared line by line instead."""
    captures, expected = [], set()
    for node in bundle.site.nodes:
        sums = (bundle.folder / node.name / "SHA256SUMS").read_text()
        listed = {line.split("  ", 1)[1] for line in sums.splitlines()}
        installed = sorted(path for path in listed if path.startswith(("etc/", "opt/")))
        assert listed - {*installed} <= NOT_INSTALLED
        expected |= {f"{node.name}: /{path}" for path in installed} - {
            f"{node.name}: /etc/nccl.conf"
        }
        edited = "".join(f"edited {path} 644 0\n" for path in installed)
        texts = {f"{OWN}SHA256SUMS": sums, "commands/installed.txt": edited}
        captures.append(Capture(node.name, "x.tar.gz", texts))
    found = [
        remark
        for remark in drift(bundle.site, captures, None).differences
        if remark.rule == "SG891"
    ]
    assert {remark.message.partition(" is edited")[0] for remark in found} == expected


@pytest.mark.parametrize("damage", ["gone", "half", "other text"])
def test_damaged_capture_is_never_called_fine(damage: str, tmp_path: Path) -> None:
    """Whatever a comparison reads from is either there, or named as not captured."""
    valid = valid_file(PATH)
    archive = nodes()[0].capture(tmp_path)
    capture = read(archive.name, archive.read_bytes())
    fine = set()
    for path, text in capture.texts.items():
        texts = {**capture.texts, path: text[: len(text) // 2] if damage == "half" else "%\n"}
        if damage == "gone":
            del texts[path]
        found = drift(valid.site, [changed(capture, texts=texts)], None)
        if not found.differences and not found.uncaptured:
            fine.add(path)
    assert {path for path in fine if not path.startswith(NOT_READ)} == set()


# Compared with other nodes alone, by their checksums, or only looked for.
NOT_READ = (
    *("capture.txt", "commands/dgx-release", "commands/docker-info", "commands/ethtool-"),
    *(
        "commands/gpu.txt",
        "commands/groups",
        "commands/kernel-options",
        "commands/uname",
        "images/",
    ),
    *("files/etc/netplan/", "files/etc/sparkgen/", "files/etc/systemd/"),
)


# These stay in the folder that was copied.
NOT_INSTALLED = {"conditions.sh", "install.sh", "owners.py", "verify.py"}


def test_what_a_user_cannot_read_is_not_called_fine(tmp_path: Path) -> None:
    """Without root, ufw and netplan's files say nothing; nor does a Docker that refuses."""
    valid = valid_file(SERVICES)
    node = clean(valid)[0]
    printed = {line: t for line, t in node.printed.items() if line.split()[0] not in UNASKED}
    archive = replace(node, printed=printed, containers=()).capture(tmp_path)
    capture = read(archive.name, archive.read_bytes())
    texts = {path: text for path, text in capture.texts.items() if path not in UNREAD}
    path = "commands/installed.txt"
    texts[path] = re.sub(r"same (etc/netplan/\S+) .*", r"unreadable \1", texts[path])
    found = drift(valid.site, [changed(capture, texts=texts)], None)
    assert found.uncaptured == {
        "spark1": [
            "/etc/netplan/40-cx7.yaml, which only root can read",
            "the firewall",
            "what computes on the GPU",
            "the state of its units",
            "containers",
        ]
    }


def test_each_node_has_to_be_captured(second: Path, sparkgen: Command, tmp_path: Path) -> None:
    outcome = sparkgen("check", PATH, "--live", second, cwd=tmp_path)
    assert outcome.code == 1
    assert outcome.err.splitlines()[0] == "spark1 is not captured"
    assert outcome.out == "spark2: as the site says\n"


def test_what_is_locked(second: Path, sparkgen: Command, tmp_path: Path) -> None:
    site = tmp_path / PATH.name
    site.write_bytes(PATH.read_bytes())
    lock = tmp_path / "pair-qwen3-235b.lock.yaml"
    lock.write_text(
        "version: 1\nimages:\n  - image: registry.lan/vllm-ray:0.33.0\n"
        f"    layers: sha256:{'0' * 64}\nmodels:\n"
        f"  - {{source: Qwen/Qwen3-235B-A22B-GPTQ-Int4, revision: main, commit: {'e5' * 20}}}\n"
    )
    outcome = sparkgen("check", site, "--live", second, "--format", "json", cwd=tmp_path)
    data = json.loads(outcome.out)
    assert (outcome.code, data["missing"]) == (1, ["spark1"])
    assert [finding["rule"] for finding in data["findings"]] == ["SG863", "SG864"]
    assert data["findings"][1]["message"].startswith("spark2: Qwen/Qwen3-235B-A22B-GPTQ-Int4 is at")


def test_lock_made_before_installing_is_no_drift(sparkgen: Command, tmp_path: Path) -> None:
    """What is locked from nodes without a bundle is what the bundle then installs and they run."""
    site = tmp_path / PATH.name
    site.write_bytes(PATH.read_bytes())
    bare = [replace(node, files=models_of(node), modes={}) for node in nodes()]
    (tmp_path / "bare").mkdir()
    archives = [node.capture(tmp_path / "bare") for node in bare]
    locked = sparkgen("lock", site, *archives, cwd=tmp_path)
    assert (locked.code, site.with_name("pair-qwen3-235b.lock.yaml").exists()) == (0, True)
    assert sparkgen("build", site, cwd=tmp_path).code == 0
    assert sparkgen("lock", site, "--check", cwd=tmp_path).code == 0
    installed = [node.capture(tmp_path) for node in clean(valid_file(site))]
    outcome = sparkgen("check", site, "--live", *installed, cwd=tmp_path)
    assert outcome.out.splitlines() == [f"spark{n}: as the site says" for n in (1, 2)]
    assert outcome.code == 0


def models_of(node: Machine) -> dict[str, str]:
    """What a node has besides what is installed."""
    return {path: text for path, text in node.files.items() if not path.startswith(("etc", "opt"))}


def test_node_of_another_site(second: Path, sparkgen: Command, tmp_path: Path) -> None:
    outcome = sparkgen("check", ROOT / "sites/single.yaml", "--live", second, cwd=tmp_path)
    assert outcome.code == 1
    assert outcome.out.startswith("SG860: spark2 is not a node of single; its nodes are spark")


def test_two_captures_of_one_node(second: Path, sparkgen: Command, tmp_path: Path) -> None:
    outcome = sparkgen("check", PATH, "--live", second, second, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith("error[SG830]: there are two captures of spark2\n")


@pytest.mark.parametrize("words", [[PATH], ["a.yaml", "b.yaml", "c.tar.gz"], ["c.tar.gz"]])
def test_wrong_usage(words: list[object], sparkgen: Command, tmp_path: Path) -> None:
    assert sparkgen("check", *words, "--live", cwd=tmp_path).code == 2
