"""Files that a site names: how they are read, copied byte for byte, and kept within limits."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from bundles import PROJECT
from conftest import Command

from generator.sitefile.beside import MAX_BYTES, MAX_FILE_BYTES, MAX_FILES, MAX_NAME, Source
from generator.sitefile.disk import beside

CASE = PROJECT / "tests/golden/direct-files"
ALL_BYTES = bytes(range(256))


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A folder with a site and its files, for tests to change."""
    shutil.copytree(CASE, tmp_path / "lab", ignore=shutil.ignore_patterns("expected"))
    return tmp_path / "lab"


def test_files_are_carried_byte_by_byte(lab: Path, sparkgen: Command) -> None:
    (lab / "files/chat.jinja").write_bytes(ALL_BYTES)
    assert sparkgen("build", "site.yaml", cwd=lab).code == 0
    for node in ("spark1", "spark2"):
        folder = lab / "out/direct-files" / node / "opt/sparkgen/files"
        assert (folder / "chat.jinja").read_bytes() == ALL_BYTES
        run = folder / "mods/run"
        assert (run.read_bytes(), os.access(run, os.X_OK)) == (ALL_BYTES, True)
        assert not os.access(folder / "mods/patch", os.X_OK)
    assert sparkgen("verify", "out/direct-files", cwd=lab).code == 0


def test_bundle_is_a_function_of_the_site_and_its_files(lab: Path, sparkgen: Command) -> None:
    other = lab.parent / "elsewhere"
    shutil.copytree(lab, other)
    for folder in (lab, other):
        assert sparkgen("build", "site.yaml", "--out", "made", cwd=folder).code == 0
    assert contents(lab / "made") == contents(other / "made")


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mode)
        for path in files
    }


def test_change_of_a_file_is_drift_and_restarts_the_engine(lab: Path, sparkgen: Command) -> None:
    assert sparkgen("build", "site.yaml", cwd=lab).code == 0
    assert sparkgen("check", "site.yaml", cwd=lab).code == 0
    (lab / "files/mods/run").write_bytes(ALL_BYTES[::-1])
    outcome = sparkgen("check", "site.yaml", cwd=lab)
    assert outcome.code == 1
    assert "spark1/opt/sparkgen/files/mods/run: stale" in outcome.out
    changes = sparkgen("diff", "site.yaml", cwd=lab)
    assert changes.code == 0
    assert "restart" in changes.out
    assert "\udc80" not in changes.out


def test_removed_file_leaves_the_bundle(lab: Path, sparkgen: Command) -> None:
    assert sparkgen("build", "site.yaml", cwd=lab).code == 0
    (lab / "files/mods/patch").unlink()
    assert sparkgen("build", "site.yaml", cwd=lab).code == 0
    assert not (lab / "out/direct-files/spark1/opt/sparkgen/files/mods/patch").exists()


def test_diff_reads_the_files_of_the_commit(lab: Path, sparkgen: Command) -> None:
    def git(*words: str) -> None:
        options = ("-c", "user.name=lab", "-c", "user.email=lab@example.org")
        subprocess.run(["git", *options, *words], cwd=lab, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "--message=site")
    (lab / "files/chat.jinja").write_text("new\n")
    outcome = sparkgen("diff", "--against", "HEAD", "site.yaml", cwd=lab)
    assert outcome.code == 0, outcome.err
    assert "-{# Größe, no last line end #}" in outcome.out
    assert "+new" in outcome.out


# Files that can't be read


def link_out(folder: Path) -> None:
    (folder.parent / "secret").write_text("secret")
    (folder / "files/link").symlink_to("../../secret")


def link_to_the_root(folder: Path) -> None:
    (folder / "files/link").symlink_to("/")


def link_to_itself(folder: Path) -> None:
    (folder / "files/link").symlink_to("link")


def link_to_a_folder(folder: Path) -> None:
    (folder / "files/link").symlink_to("mods")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "files/pipe")


def large(folder: Path) -> None:
    with (folder / "files/large").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)


def endless(folder: Path) -> None:
    (folder / "files/zero").symlink_to("/dev/zero")


def many(folder: Path) -> None:
    for number in range(MAX_FILES + 1):
        (folder / f"files/{number}").touch()


def much(folder: Path) -> None:
    for number in range(MAX_BYTES // MAX_FILE_BYTES + 1):
        with (folder / f"files/{number}").open("wb") as file:
            file.truncate(MAX_FILE_BYTES)


def odd_name(folder: Path) -> None:
    (folder / "files/two words").touch()


def long_name(folder: Path) -> None:
    (folder / "files" / ("n" * (MAX_NAME + 1))).touch()


def unix_socket(folder: Path) -> None:
    os.mknod(folder / "files/socket", stat.S_IFSOCK | 0o600)


def empty(folder: Path) -> None:
    shutil.rmtree(folder / "files")
    (folder / "files").mkdir()


REFUSED = {
    link_out: "is a link out of",
    link_to_the_root: "is a link to a folder",
    link_to_itself: "can't be read",
    link_to_a_folder: "is a link to a folder",
    pipe: "is not a regular file",
    large: "has more than 1 MiB",
    endless: "is a link out of",
    many: f"more than {MAX_FILES} files",
    much: "have more than 16 MiB",
    odd_name: "'two words' in files has a name not of letters",
    long_name: f"has a name of more than {MAX_NAME} letters",
    unix_socket: "is not a regular file",
    empty: "is a folder without files",
}


def folder_of_files(lab: Path) -> Source:
    return beside(lab / "site.yaml")("files")


@pytest.mark.parametrize(("spoil", "message"), REFUSED.items())
def test_what_cannot_be_carried_is_refused(
    spoil: Callable[[Path], None], message: str, lab: Path
) -> None:
    assert not folder_of_files(lab).fault
    spoil(lab)
    assert message in folder_of_files(lab).fault


def test_link_inside_the_folder_is_followed(lab: Path) -> None:
    (lab / "files/link").symlink_to("chat.jinja")
    files = {file.path: file.data for file in folder_of_files(lab).files}
    assert files["link"] == files["chat.jinja"]


def test_refusal_is_a_finding_at_its_source(lab: Path, sparkgen: Command) -> None:
    pipe(lab)
    site = (lab / "site.yaml").read_text().replace("source: files/mods", "source: files/pipe")
    (lab / "site.yaml").write_text(site)
    outcome = sparkgen("build", "site.yaml", cwd=lab)
    assert outcome.code == 3
    assert "SG691" in outcome.err
    assert "files/pipe is not a regular file" in outcome.err
