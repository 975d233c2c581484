"""Writing a bundle: whole or not at all, pruning only its own files, never overwriting an edit."""

import errno
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from conftest import Bundle, Command
from draws import MANY, sample
from waiting import PATIENCE

from generator import __version__
from generator.bundle.journal import stage
from generator.bundle.output import OutputError, compare
from generator.bundle.tree import Tree
from generator.bundle.writing import write

ONE_DIFFERS = "lab: 1 file differs; run 'sparkgen build' and commit what it writes\n"

Snapshot = dict[str, tuple[int, bytes]]


def site_text(name: str = "lab", nodes: int = 3, context: int = 8192) -> str:
    """A site on a switch, which may have any number of nodes."""
    members = "".join(f"  - name: spark{number}\n" for number in range(1, nodes + 1))
    cables = "".join(
        f"  - endpoints: [spark{number}:p0, rack:{number}]\n" for number in range(1, nodes + 1)
    )
    return f"""\
version: 1
name: {name}
nodes:
{members}cabling:
{cables}topology: {{kind: switch}}
model: {{name: gpt-oss-120b, context_length: {context}}}
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
  parallel: {{pipeline: {nodes}}}
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site file whose bundle is in `out/lab`."""
    path = tmp_path / "lab.yaml"
    path.write_text(site_text())
    return path


@pytest.fixture
def built(site: Path, tmp_path: Path, sparkgen: Command) -> Path:
    """The folder of the site's bundle, built once."""
    assert sparkgen("build", site, cwd=tmp_path).code == 0
    return tmp_path / "out/lab"


def snapshot(folder: Path) -> Snapshot:
    """Everything below a folder: modes and bytes, with folders included."""
    return {
        path.relative_to(folder).as_posix(): (
            path.stat().st_mode,
            b"" if path.is_dir() else path.read_bytes(),
        )
        for path in sorted(folder.rglob("*"))
    }


def identities(folder: Path) -> dict[str, tuple[int, int]]:
    """What changes in a file when it is written again, even with the same bytes."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_first_build_is_new_and_the_second_touches_nothing(
    site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    first = sparkgen("build", site, cwd=tmp_path)
    files = identities(tmp_path / "out/lab")
    assert first.out == f"lab: {len(files)} files for 3 nodes in out/lab (new)\n"
    second = sparkgen("build", site, cwd=tmp_path)
    assert second.out == f"lab: {len(files)} files for 3 nodes in out/lab (no change)\n"
    assert identities(tmp_path / "out/lab") == files
    assert (first.code, first.err, second.code, second.err) == (0, "", 0, "")


def test_site_that_was_only_reworded(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    sparkgen("build", site, cwd=tmp_path)
    site.write_text(f"# Downstairs.\n{site.read_text()}")
    outcome = sparkgen("build", site, cwd=tmp_path)
    assert outcome.out.endswith("in out/lab (only the site's text written)\n")


def test_out_says_where(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    assert sparkgen("build", site, "--out", "deep/er", cwd=tmp_path).code == 0
    assert [path.name for path in tmp_path.iterdir() if path != site] == ["deep"]
    assert (tmp_path / "deep/er/lab/MANIFEST.json").is_file()
    assert sparkgen("check", site, "--out", "deep/er", cwd=tmp_path).code == 0


def test_only_files_that_change_are_written(
    site: Path, built: Path, tmp_path: Path, sparkgen: Command
) -> None:
    before, files = snapshot(built), identities(built)
    site.write_text(site_text(context=4096))
    outcome = sparkgen("build", site, cwd=tmp_path)
    after = snapshot(built)
    changed = {path for path in after if before[path] != after[path]}
    touched = {path for path, identity in identities(built).items() if files[path] != identity}
    assert touched == changed
    assert "spark3/opt/sparkgen/compose.yaml" in changed
    assert "spark3/etc/netplan/40-cx7.yaml" not in changed
    assert outcome.out.endswith(f"({len(changed)} written)\n")


def test_script_that_lost_its_mode_is_stale(
    site: Path, built: Path, tmp_path: Path, sparkgen: Command
) -> None:
    script = built / "spark1/opt/sparkgen/launch.sh"
    script.chmod(0o644)
    stale = "SG802: out/lab/spark1/opt/sparkgen/launch.sh: stale, mode 0644 in place of 0755\n"
    assert sparkgen("check", site, cwd=tmp_path).out == stale + ONE_DIFFERS
    assert sparkgen("build", site, cwd=tmp_path).out.endswith("(1 written)\n")
    assert script.stat().st_mode & 0o777 == 0o755


def test_removed_node_is_removed_whole(
    site: Path, built: Path, tmp_path: Path, sparkgen: Command
) -> None:
    node = [path for path in identities(built) if path.startswith("spark3/")]
    site.write_text(site_text(nodes=2))
    outcome = sparkgen("build", site, cwd=tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.endswith(f", {len(node)} removed)\n")
    assert sorted(path.name for path in built.iterdir()) == [
        "MANIFEST.json",
        "README.md",
        "REFERENCE.md",
        "cabling.svg",
        "index.html",
        "memory.svg",
        "operator",
        "spark1",
        "spark2",
    ]


def test_foreign_file_stays_and_is_reported(
    site: Path, built: Path, tmp_path: Path, sparkgen: Command
) -> None:
    (built / "spark3/notes.txt").write_text("mine\n")
    site.write_text(site_text(nodes=2))
    outcome = sparkgen("build", site, cwd=tmp_path)
    assert outcome.code == 0
    assert outcome.err == "SG805: out/lab/spark3/notes.txt is not of the bundle; left alone\n"
    assert [path.name for path in (built / "spark3").iterdir()] == ["notes.txt"]
    assert sparkgen("check", site, cwd=tmp_path).code == 0


@pytest.mark.parametrize("edited", ["spark1/etc/nccl.conf", "spark3/etc/nccl.conf"])
def test_edited_file_stops_everything_until_it_is_forced(
    edited: str, site: Path, built: Path, tmp_path: Path, sparkgen: Command
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(site_text("other"))
    # spark1's file would be replaced, spark3's would be removed.
    site.write_text(site_text(nodes=2))
    with (built / edited).open("a") as file:
        file.write("NCCL_DEBUG=INFO\n")
    before = snapshot(tmp_path)

    refused = sparkgen("build", other, site, cwd=tmp_path)
    assert refused.code == 1
    assert refused.err.splitlines() == [
        f"SG803: out/lab/{edited} was edited by hand",
        "nothing was written; --force overwrites them",
    ]
    assert refused.out == ""
    assert snapshot(tmp_path) == before

    forced = sparkgen("build", other, site, "--force", cwd=tmp_path)
    assert forced.code == 0
    assert forced.err == f"overwritten: out/lab/{edited} was edited by hand\n"
    assert sparkgen("check", other, site, cwd=tmp_path).code == 0
    assert not (built / "spark3").exists()


def test_edit_that_is_what_the_site_says_now_is_no_edit(
    site: Path, built: Path, tmp_path: Path, sparkgen: Command
) -> None:
    compose = built / "spark2/opt/sparkgen/compose.yaml"
    compose.write_text(compose.read_text().replace("max-model-len=8192", "max-model-len=4096"))
    site.write_text(site_text(context=4096))
    assert sparkgen("build", site, cwd=tmp_path).code == 0
    assert sparkgen("check", site, cwd=tmp_path).code == 0


BROKEN_MANIFESTS = {
    "empty": b"",
    "cut": b'{"generator": "spark',
    "list": b"[]",
    "null": b"null",
    "latin": b'{"generator": "\xff"}',
    "deep": b"[" * 100_000,
    "wrong": b'{"files": ["README.md"]}',
    "entries": b'{"files": {"README.md": 3, "spark1/SHA256SUMS": {"sha256": null}}}',
}


@pytest.mark.parametrize("data", BROKEN_MANIFESTS.values(), ids=BROKEN_MANIFESTS)
def test_broken_manifest_is_stale_and_trusted_with_nothing(
    data: bytes, site: Path, built: Path, tmp_path: Path, sparkgen: Command
) -> None:
    (built / "MANIFEST.json").write_bytes(data)
    stale = "SG802: out/lab/MANIFEST.json: stale\n"
    assert sparkgen("check", site, cwd=tmp_path).out == stale + ONE_DIFFERS

    # Without a manifest, nothing tells whether a file that differs was edited.
    site.write_text(site_text(context=4096))
    before = snapshot(built)
    assert sparkgen("build", site, cwd=tmp_path).code == 1
    assert snapshot(built) == before

    site.write_text(site_text())
    assert sparkgen("build", site, cwd=tmp_path).out.endswith("(1 written)\n")
    assert sparkgen("check", site, cwd=tmp_path).code == 0


@pytest.mark.parametrize(
    ("key", "value", "note"),
    [
        ("generator", "sparkgen 0.0.1", f"made by sparkgen 0.0.1, and this is {__version__}"),
        ("site", {}, "the site file was reworded"),
    ],
)
def test_manifest_of_another_version_or_wording_is_a_note(
    key: str, value: object, note: str, site: Path, built: Path, tmp_path: Path, sparkgen: Command
) -> None:
    manifest = built / "MANIFEST.json"
    written = manifest.read_text()
    manifest.write_text(json.dumps(json.loads(written) | {key: value}, indent=2) + "\n")
    outcome = sparkgen("check", site, cwd=tmp_path)
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        f"note: out/lab: {note}",
        "lab: out/lab is what the site says",
    ]
    assert sparkgen("build", site, cwd=tmp_path).code == 0
    assert manifest.read_text() == written


def test_check_names_what_differs_and_writes_nothing(
    site: Path, built: Path, tmp_path: Path, sparkgen: Command
) -> None:
    (built / "spark1/etc/nccl.conf").unlink()
    (built / "spark2/etc/nccl.conf").write_text("")
    (built / "notes.txt").write_text("")
    site.write_text(site_text(nodes=2, context=8192))
    before = snapshot(tmp_path)
    outcome = sparkgen("check", site, cwd=tmp_path)
    lines = outcome.out.splitlines()
    assert (outcome.code, outcome.err) == (1, "")
    assert lines == sorted(lines)
    assert "SG801: out/lab/spark1/etc/nccl.conf: missing" in lines
    assert "SG802: out/lab/spark1/opt/sparkgen/compose.yaml: stale" in lines
    assert "SG803: out/lab/spark2/etc/nccl.conf: edited by hand" in lines
    assert "SG804: out/lab/spark3/etc/nccl.conf: left over" in lines
    assert "SG805: out/lab/notes.txt: not of the bundle (note)" in lines
    count = len(lines) - 2
    assert lines[-1] == (
        f"lab: {count} files differ; say it in the site file if it is to stay, and run "
        "'sparkgen build --force'"
    )
    assert snapshot(tmp_path) == before


def test_check_of_a_bundle_that_was_never_built(
    site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen("check", site, cwd=tmp_path)
    assert outcome.code == 1
    assert outcome.out == (
        "SG801: out/lab: not built yet\n"
        "lab: run 'sparkgen build', or say with '--out DIR' where the bundles are\n"
    )
    (finding,) = json.loads(sparkgen("check", "--format", "json", site, cwd=tmp_path).out)[
        "findings"
    ]
    assert (finding["message"], finding["file"]) == ("out/lab is not built yet", "out/lab")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("link", ["out/lab", "out/lab/spark1", "out/lab/spark1/etc/nccl.conf"])
@pytest.mark.parametrize("command", ["build", "check"])
def test_symbolic_link_is_refused(
    link: str, command: str, site: Path, built: Path, tmp_path: Path, sparkgen: Command
) -> None:
    real = tmp_path / "elsewhere"
    (tmp_path / link).rename(real)
    (tmp_path / link).symlink_to(real)
    other = tmp_path / "other.yaml"
    other.write_text(site_text("other"))
    site.write_text(site_text(context=4096))
    before = snapshot(tmp_path)
    outcome = sparkgen(command, site, other, cwd=tmp_path)
    message = f"sparkgen: {link} is a symbolic link; a bundle is a folder of plain files\n"
    assert (outcome.code, outcome.out, outcome.err) == (4, "", message)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("file", ["out", "out/lab"])
def test_file_where_the_folder_should_be_is_one_line(
    file: str, site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("mine\n")
    before = snapshot(tmp_path)
    outcome = sparkgen("build", site, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err.startswith(f"sparkgen: {file}: ")
    assert outcome.err.count("\n") == 1
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("blocked", ["file", "folder"])
def test_foreign_entry_where_a_file_should_be_is_left_alone(
    blocked: str, site: Path, built: Path, tmp_path: Path, sparkgen: Command
) -> None:
    if blocked == "file":
        (built / "spark4").write_text("mine\n")
    else:
        (built / "spark4/etc/nccl.conf").mkdir(parents=True)
        (built / "spark4/etc/nccl.conf/mine").write_text("mine\n")
    other = tmp_path / "other.yaml"
    other.write_text(site_text("other"))
    site.write_text(site_text(nodes=4))
    before = snapshot(tmp_path)
    outcome = sparkgen("build", other, site, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err.count("\n") == 1
    assert snapshot(tmp_path) == before


@pytest.fixture
def before_and_after(tmp_path: Path, bundle: Bundle) -> tuple[Path, Tree]:
    """A bundle on disk, and the tree that replaces it: files change, disappear and are added."""
    old, new = tmp_path / "old/lab.yaml", tmp_path / "new/lab.yaml"
    for path in (old, new):
        path.parent.mkdir()
    old.write_text(site_text(nodes=2))
    new.write_text(site_text(nodes=2, context=4096).replace("spark2", "spark4"))
    folder = tmp_path / "out/lab"
    write(bundle(old), folder, compare(bundle(old), folder))
    (folder / "notes.txt").write_text("mine\n")
    return folder, bundle(new)


@pytest.mark.drawn
@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_failure_at_any_move_leaves_the_folder_as_it_was(
    error: BaseException, before_and_after: tuple[Path, Tree], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, tree = before_and_after
    before = snapshot(folder.parent)
    comparison = compare(tree, folder)
    # Each file that exists moves to the stage, and each new one comes from it.
    moves = 2 * len(comparison.stale) + len(comparison.missing) + len(comparison.left_over)
    rename = Path.rename
    # In a short run, an interrupt comes at each third.
    step = 3 if MANY == 1 and isinstance(error, KeyboardInterrupt) else 1
    for number in range(0, moves, step):
        monkeypatch.setattr(Path, "rename", failing(rename, number, error))
        with pytest.raises((OutputError, KeyboardInterrupt)):
            write(tree, folder, comparison)
        assert snapshot(folder.parent) == before, f"move {number}"
    monkeypatch.setattr(Path, "rename", rename)
    write(tree, folder, comparison)
    assert not compare(tree, folder).drifted
    assert [path.name for path in folder.parent.iterdir()] == ["lab"]


def failing(
    call: Callable[..., object], number: int, error: BaseException
) -> Callable[..., object]:
    """The call, which raises once, on that invocation; counts from 0."""
    calls = iter(range(1_000))

    def wrapped(*arguments: object) -> object:
        if next(calls) == number:
            raise error.with_traceback(None)
        return call(*arguments)

    return wrapped


def test_file_that_cannot_be_staged_leaves_the_folder_as_it_was(
    before_and_after: tuple[Path, Tree],
) -> None:
    folder, tree = before_and_after
    before = snapshot(folder.parent)
    with pytest.raises(OutputError, match="File too large; nothing was changed"), small_disk():
        write(tree, folder, compare(tree, folder))
    assert snapshot(folder.parent) == before


@contextmanager
def small_disk() -> Iterator[None]:
    """No file may grow beyond a few kilobytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.long
@pytest.mark.drawn
@pytest.mark.parametrize(
    "mode", [("random", str(sample(5)), "1"), ("each", "21")], ids=lambda mode: mode[0]
)
def test_build_after_one_that_was_cut_off_makes_the_bundle_whole(mode: tuple[str, ...]) -> None:
    script = Path(__file__).with_name("killed_builds.py")
    done = subprocess.run(
        [sys.executable, script, *mode],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "half written" in done.stdout or "random" in mode


@pytest.fixture
def half_written(
    before_and_after: tuple[Path, Tree], monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Tree]:
    """A bundle as a kill between two moves leaves it, and the tree that was being written."""
    folder, tree = before_and_after
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", failing(Path.rename, 20, KeyboardInterrupt()))
        patch.setattr("generator.bundle.writing._Moves.undo", _cut_off)
        with pytest.raises(OutputError, match="Input/output error; run it again"):
            write(tree, folder, compare(tree, folder))
    return folder, tree


def _cut_off(_: object) -> NoReturn:
    raise OSError(errno.EIO, "Input/output error")


def test_half_written_bundle_is_reported_by_all_that_read_it(
    half_written: tuple[Path, Tree], tmp_path: Path, sparkgen: Command
) -> None:
    before = snapshot(tmp_path)
    line = "SG807: out/lab: half written by an interrupted build"
    checked = sparkgen("check", "new/lab.yaml", cwd=tmp_path)
    assert (checked.code, checked.out.splitlines()[0]) == (1, line)
    assert "SG803" not in checked.out
    assert checked.out.splitlines()[-1] == "lab: run 'sparkgen build'"
    report = sparkgen("check", "new/lab.yaml", "--format", "json", cwd=tmp_path)
    assert json.loads(report.out)["findings"][0]["rule"] == "SG807"
    for command in (("diff", "new/lab.yaml"), ("verify", "out/lab")):
        outcome = sparkgen(*command, cwd=tmp_path)
        assert (outcome.code, outcome.out) == (1, "")
        assert outcome.err == f"{line}; run 'sparkgen build'\n"
    assert snapshot(tmp_path) == before


def test_build_finishes_a_half_written_bundle_and_says_so(
    half_written: tuple[Path, Tree], tmp_path: Path, sparkgen: Command
) -> None:
    built = sparkgen("build", "new/lab.yaml", cwd=tmp_path)
    assert built.code == 0
    assert "out/lab: finished what an interrupted build began\n" in built.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["lab"]
    assert sparkgen("check", "new/lab.yaml", cwd=tmp_path).code == 0


def test_edit_of_a_half_written_bundle_is_still_an_edit(
    half_written: tuple[Path, Tree], tmp_path: Path, sparkgen: Command
) -> None:
    (tmp_path / "out/lab/spark1/etc/nccl.conf").write_text("mine\n")
    built = sparkgen("build", "new/lab.yaml", cwd=tmp_path)
    assert built.code == 1
    assert built.err.startswith("SG803: out/lab/spark1/etc/nccl.conf was edited by hand\n")
    assert sparkgen("build", "new/lab.yaml", "--force", cwd=tmp_path).code == 0
    assert sparkgen("check", "new/lab.yaml", cwd=tmp_path).code == 0


def test_failure_over_a_half_written_bundle_leaves_it_to_the_next_build(
    half_written: tuple[Path, Tree], tmp_path: Path
) -> None:
    folder, tree = half_written
    before = snapshot(folder)
    with pytest.raises(OutputError, match="nothing was changed"), small_disk():
        write(tree, folder, compare(tree, folder))
    assert snapshot(folder) == before
    assert compare(tree, folder).interrupted
    write(tree, folder, compare(tree, folder))
    assert not compare(tree, folder).drifted


def test_second_build_of_a_bundle_at_the_same_time_is_refused(
    before_and_after: tuple[Path, Tree],
) -> None:
    folder, tree = before_and_after
    before = snapshot(folder)
    with stage(folder), pytest.raises(OutputError, match="is being written by another process"):
        write(tree, folder, compare(tree, folder))
    assert snapshot(folder) == before
    write(tree, folder, compare(tree, folder))
    assert not compare(tree, folder).drifted


def test_failure_of_a_first_build_leaves_nothing(
    site: Path, tmp_path: Path, sparkgen: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "rename", refuse)
    outcome = sparkgen("build", site, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err == "sparkgen: out/lab: Input/output error; nothing was changed\n"
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())


def test_two_sites_of_one_name_are_refused(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "twin.yaml").write_text(site_text())
    outcome = sparkgen("build", site.name, "twin.yaml", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err == "SG806: lab.yaml and twin.yaml are both called 'lab'\n"
    assert not (tmp_path / "out").exists()


def test_invalid_site_among_several_stops_all(
    site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    (tmp_path / "bad.yaml").write_text(site_text("bad").replace("kind: switch", "kind: star"))
    outcome = sparkgen("build", site, "bad.yaml", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith("error[SG104]: 'kind: star' is not allowed\n")
    assert not (tmp_path / "out").exists()
