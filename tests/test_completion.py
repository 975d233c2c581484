"""Tab completion: what each shell offers, through the shell's own script."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest
from click.shell_completion import CompletionItem
from click.testing import CliRunner
from conftest import Command
from documents import text_of
from programs import require
from repositories import commit, git
from waiting import PATIENCE

from generator.cli import COMMANDS, main
from generator.resources import ROOT

SITE = "sites/lab-mesh.yaml"
START = "from generator.cli import main; main(prog_name='sparkgen')"


class Offer(Protocol):
    """The completions that bash gets for the last word."""

    def __call__(self, *words: str, cwd: Path = ROOT) -> list[str]: ...


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Offer:
    def offer(*words: str, cwd: Path = ROOT) -> list[str]:
        monkeypatch.chdir(cwd)
        env = {
            "_SPARKGEN_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("sparkgen", *words)),
            "COMP_CWORD": str(len(words)),
        }
        done = CliRunner().invoke(main, env=env, prog_name="sparkgen")
        assert done.stderr == ""
        return [line.partition(",")[2] for line in done.stdout.splitlines() if line]

    return offer


def test_commands(offered: Offer) -> None:
    assert set(offered("")) == set(COMMANDS)
    assert offered("dia") == ["diagram"]


def test_sites(offered: Offer, tmp_path: Path) -> None:
    (tmp_path / "sites/more").mkdir(parents=True)
    for name in ("a.yaml", "b.yml", "c.txt", ".hidden.yaml"):
        (tmp_path / "sites" / name).touch()
    for command in ("build", "validate", "check", "diff", "show", "diagram"):
        assert offered(command, "", cwd=tmp_path) == ["sites/"]
        found = offered(command, "sites/", cwd=tmp_path)
        assert found == ["sites/a.yaml", "sites/b.yml", "sites/more/"]
        assert offered(command, "sites/a", cwd=tmp_path) == ["sites/a.yaml"]
        assert offered(command, "nowhere/", cwd=tmp_path) == []


def test_sites_come_before_folders(offered: Offer, tmp_path: Path) -> None:
    (tmp_path / "aaa").mkdir()
    for name in ("zzz.yaml", "zzz.lock.yaml"):
        (tmp_path / name).touch()
    assert offered("build", "", cwd=tmp_path) == ["zzz.yaml", "aaa/"]


def test_files_of_a_node(offered: Offer, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name in ("spark1.json", "spark2.txt"):
        (tmp_path / name).touch()
    wanted = ["spark1.json", "spark2.txt", "logs/"]
    assert offered("init", "--from", "", cwd=tmp_path) == wanted
    assert offered("init", "--from", "spark2", cwd=tmp_path) == ["spark2.txt"]


def test_refs(offered: Offer, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    (tmp_path / "a").touch()
    commit(tmp_path)
    git(tmp_path, "branch", "longer-context")
    git(tmp_path, "tag", "v1")
    assert offered("diff", "--against", "", cwd=tmp_path) == ["longer-context", "main", "v1"]
    assert offered("diff", "--against", "lo", cwd=tmp_path) == ["longer-context"]
    (tmp_path / "no").mkdir()
    assert offered("diff", "--against", "no", cwd=tmp_path) == []


def test_several_sites(offered: Offer) -> None:
    assert offered("check", SITE, "sites/si") == ["sites/single.yaml"]
    assert offered("diff", SITE, "--with", "sites/si") == ["sites/single.yaml"]


def test_nodes(offered: Offer) -> None:
    assert offered("show", SITE, "--node", "") == ["spark1", "spark2", "spark3"]
    assert offered("show", SITE, "--node", "spark3") == ["spark3"]
    assert offered("show", "--node", "") == []
    assert offered("show", "nowhere.yaml", "--node", "") == []


def test_nodes_of_an_invalid_site(offered: Offer, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("nodes: [")
    assert offered("show", "site.yaml", "--node", "", cwd=tmp_path) == []


def test_files(offered: Offer) -> None:
    found = offered("show", SITE, "--why", "spark1/etc/n")
    assert found == ["spark1/etc/nccl.conf", "spark1/etc/netplan/40-cx7.yaml"]


def test_files_below_the_folder_of_the_bundle(offered: Offer) -> None:
    wanted = ["spark1/etc/nccl.conf", "spark1/etc/netplan/40-cx7.yaml"]
    for folder in ("out/lab-mesh/", "./out/lab-mesh/", "lab-mesh/", "/srv/bundles/lab-mesh/"):
        found = offered("show", SITE, "--why", f"{folder}spark1/etc/n")
        assert found == [f"{folder}{path}" for path in wanted]
    everything = offered("show", SITE, "--why", "out/lab-mesh/")
    files = [p for p in (ROOT / "out/lab-mesh").rglob("*") if p.is_file()]
    assert len(everything) == len([path for path in files if path.name != "site.yaml"])
    assert offered("show", SITE, "--why", "ou") == everything


def test_bundles(offered: Offer) -> None:
    assert offered("verify", "ou") == ["out/"]
    assert offered("verify", "out/lab") == ["out/lab-mesh"]


def test_rules(offered: Offer) -> None:
    assert offered("explain", "SG204") == ["SG204"]
    assert offered("explain", "sg80")[:2] == ["SG801", "SG802"]


def test_models(offered: Offer) -> None:
    assert offered("init", "--model", "gpt-oss-1") == ["gpt-oss-120b"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_completed(name: str, sparkgen: Command, tmp_path: Path) -> None:
    outcome = sparkgen(name, "--help", cwd=tmp_path)
    assert outcome.code == 0
    assert f"Example: sparkgen {name} " in outcome.out


def test_rules_are_described() -> None:
    from generator.commands.completion import rules

    context = main.make_context("sparkgen", ["explain"], resilient_parsing=True)
    (item,) = rules(context, main.params[0], "SG204")
    assert isinstance(item, CompletionItem)
    assert item.help


# In real shells


@pytest.fixture
def on_path(tmp_path: Path) -> dict[str, str]:
    """An environment in which the command is on the search path."""
    python = f'PYTHONPATH={ROOT} exec {sys.executable} -c "{START}"'
    script = f'#!/bin/sh\n{python} "$@"\n'
    (tmp_path / "sparkgen").write_text(script)
    (tmp_path / "sparkgen").chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}


def documented(shell: str) -> str:
    """The line that the documentation shows for a shell."""
    lines = text_of("generator/commands/README.md").splitlines()
    (line,) = [line for line in lines if f"={shell}_source" in line]
    return line


def answer(env: dict[str, str], *argv: str) -> str:
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_bash(on_path: dict[str, str]) -> None:
    script = f"""
{documented("bash")}
COMP_WORDS=(sparkgen show {SITE} --node '') COMP_CWORD=4
_sparkgen_completion sparkgen
echo "${{COMPREPLY[@]}}"
"""
    assert answer(on_path, "bash", "-c", script) == "spark1 spark2 spark3\n"


def test_zsh(on_path: dict[str, str]) -> None:
    require("zsh")
    script = f"""
autoload -Uz compinit && compinit -D
{documented("zsh")}
compadd() {{ shift $(($# - 1)); eval "printf '%s ' \\"\\${{$1[@]}}\\""; }}
_describe() {{ shift $(($# - 1)); }}
words=(sparkgen show {SITE} --node '') CURRENT=5
_sparkgen_completion
"""
    assert answer(on_path, "zsh", "-f", "-c", script).split() == ["spark1", "spark2", "spark3"]


def test_fish(on_path: dict[str, str]) -> None:
    require("fish")
    script = f'{documented("fish")}\ncomplete --do-complete "sparkgen show {SITE} --node "'
    assert answer(on_path, "fish", "-c", script).split() == ["spark1", "spark2", "spark3"]
