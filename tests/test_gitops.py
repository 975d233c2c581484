"""What users' repositories use, run for real: hooks, the action, the documented CI jobs."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from documents import block, text_of
from programs import require
from racks import site_text
from waiting import PATIENCE

from generator.resources import ROOT

ACTION = yaml.load((ROOT / "action.yml").read_text(), yaml.CSafeLoader)
# The document that describes them.
REPOSITORY = "sites/reviews.md"
PACKAGE = ("generator", "schemas", "templates", "pyproject.toml", "README.md", "LICENSE")


def run(*argv: object, cwd: Path, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    done = subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout + done.stderr


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=Someone", "-c", "user.email=someone@example.org")
    code, output = run("git", *identity, *words, cwd=folder)
    assert code == 0, output
    return output.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=A change of the cluster")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the command, as an installation puts it on the search path."""
    folder = tmp_path_factory.mktemp("bin")
    script = f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m generator "$@"\n'
    (folder / "sparkgen").write_text(script)
    (folder / "sparkgen").chmod(0o755)
    return folder


@pytest.fixture
def repository(tmp_path: Path, programs: Path) -> Path:
    """The repository of a user's cluster, with the bundle of its only site."""
    folder = tmp_path / "cluster"
    (folder / "sites").mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "sites/lab.yaml").write_text(site_text())
    assert run(programs / "sparkgen", "build", "sites/lab.yaml", cwd=folder)[0] == 0
    commit(folder)
    return folder


# pre-commit


@pytest.mark.long
def test_hooks(repository: Path, tmp_path: Path) -> None:
    pre_commit = Path(sys.executable).with_name("pre-commit")
    assert pre_commit.exists()
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in (*PACKAGE, ".pre-commit-hooks.yaml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        copy(ROOT / name, hooks / name)  # type: ignore[operator]
    git(hooks, "init", "--quiet")
    config = block(REPOSITORY, "yaml", "sparkgen-validate")
    config = config.replace("https://git.example.org/ops/sparkgen", str(hooks))
    (repository / ".pre-commit-config.yaml").write_text(config.replace("COMMIT", commit(hooks)))
    commit(repository)
    env = {"PRE_COMMIT_HOME": str(tmp_path / "home"), "PRE_COMMIT_COLOR": "never"}

    def checked() -> tuple[int, str]:
        return run(pre_commit, "run", "--all-files", cwd=repository, env=env)

    code, output = checked()
    assert code == 0, output
    assert re.findall(r"^(sparkgen \w+)\.+Passed$", output, re.MULTILINE) == [
        "sparkgen validate",
        "sparkgen check",
    ]

    site = repository / "sites/lab.yaml"
    site.write_text(site_text(image="v0.33.0-aarch64"))
    code, output = checked()
    assert code == 1
    assert "SG802: out/lab/spark1/opt/sparkgen/compose.yaml: stale" in output

    site.write_text(site_text().replace("kind: switch", "kind: swich"))
    code, output = checked()
    assert code == 1
    assert "error[SG104]" in output


# The action


def step(name: str) -> dict[str, Any]:
    (found,) = [step for step in ACTION["runs"]["steps"] if step.get("name") == name]
    return dict(found)


def test_action_has_the_inputs_that_it_uses() -> None:
    text = (ROOT / "action.yml").read_text()
    assert set(re.findall(r"inputs\.(\w+)", text)) == set(ACTION["inputs"])
    for found in ACTION["runs"]["steps"]:
        # An expression's value would become shell code, so it is passed through the environment.
        assert "${{" not in found.get("run", "")


def test_steps_are_valid_scripts(tmp_path: Path) -> None:
    require("shellcheck")
    for number, found in enumerate(s for s in ACTION["runs"]["steps"] if "run" in s):
        script = tmp_path / f"{number}.sh"
        script.write_text(f"#!/usr/bin/env bash\n{found['run']}")
        code, output = run("shellcheck", script, cwd=tmp_path)
        assert code == 0, output


class Runner:
    """Runs the steps of the action like GitHub's runner, which stops at the first failure."""

    def __init__(self, repository: Path, programs: Path, base: str) -> None:
        self.cwd, self.base = repository, base
        self.temp = repository.parent / "temp"
        self.bin = self.temp / "bin"
        self.bin.mkdir(parents=True)
        self.path = f"{self.bin}:{programs}:{os.environ['PATH']}"
        self.inputs = {name: str(entry["default"]) for name, entry in ACTION["inputs"].items()}

    def __call__(self, name: str) -> tuple[int, str]:
        script = self.temp / "step.sh"
        script.write_text(step(name)["run"])
        files = {
            f: str(self.temp / f) for f in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITHUB_PATH")
        }
        variables = {key: self._expanded(value) for key, value in step(name).get("env", {}).items()}
        env = files | variables | {"RUNNER_TEMP": str(self.temp), "PATH": self.path}
        bash = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail")
        return run(*bash, script, cwd=self.cwd, env=env)

    def _expanded(self, value: str) -> str:
        known = {f"inputs.{name}": entry for name, entry in self.inputs.items()} | {
            "github.event.pull_request.base.sha": self.base,
            "github.event.pull_request.number": "7",
            "github.repository": "someone/cluster",
            "steps.diff.outputs.file": str(self.temp / "sparkgen-diff.md"),
        }
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], value)


@pytest.fixture
def runner(repository: Path, programs: Path) -> Runner:
    return Runner(repository, programs, git(repository, "rev-parse", "HEAD"))


def test_action_on_a_valid_change(runner: Runner, programs: Path) -> None:
    (runner.cwd / "sites/lab.yaml").write_text(site_text(image="v0.33.0-aarch64"))
    assert run(programs / "sparkgen", "build", "sites/lab.yaml", cwd=runner.cwd)[0] == 0
    commit(runner.cwd)
    assert runner("Validate") == (0, "")
    assert runner("Say what the change does")[0] == 0
    body = (runner.temp / "sparkgen-diff.md").read_text()
    assert "| spark1, spark2 | engine restart |" in body
    assert (runner.temp / "GITHUB_STEP_SUMMARY").read_text() == body
    assert (runner.temp / "GITHUB_OUTPUT").read_text() == f"file={runner.temp}/sparkgen-diff.md\n"
    assert runner("Check")[0] == 0


def test_action_on_a_mistake(runner: Runner) -> None:
    (runner.cwd / "sites/lab.yaml").write_text(site_text().replace("switch}", "swich}"))
    code, output = runner("Validate")
    assert code == 3
    assert "::error file=sites/lab.yaml,line=" in output


def test_action_where_warnings_fail(runner: Runner) -> None:
    (runner.cwd / "sites/lab.yaml").write_text(site_text(image="latest"))
    assert runner("Validate")[0] == 0
    runner.inputs["strict"] = "true"
    assert runner("Validate")[0] == 3


def test_action_on_a_stale_bundle(runner: Runner) -> None:
    (runner.cwd / "sites/lab.yaml").write_text(site_text(image="v0.33.0-aarch64"))
    code, output = runner("Check")
    assert code == 1
    assert "::error file=out/lab/spark1/opt/sparkgen/compose.yaml,title=SG802::" in output


def test_action_fetches_the_base_that_a_checkout_lacks(runner: Runner, tmp_path: Path) -> None:
    (runner.cwd / "sites/lab.yaml").write_text(site_text(image="v0.33.0-aarch64"))
    commit(runner.cwd)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{runner.cwd}", str(shallow))
    runner.cwd = shallow
    code, output = runner("Say what the change does")
    assert code == 0, output
    assert "engine restart" in (runner.temp / "sparkgen-diff.md").read_text()


@pytest.mark.parametrize(
    ("there", "written"),
    [
        ([], ["POST", "repos/someone/cluster/issues/7/comments"]),
        ([41, 42], ["PATCH", "repos/someone/cluster/issues/comments/41"]),
    ],
)
def test_comment_is_updated_in_place(there: list[int], written: list[str], runner: Runner) -> None:
    """With a stand-in for GitHub's command, which lists the existing comments."""
    log = runner.temp / "log"
    lines = "\n".join(map(str, there))
    gh = f"""#!/bin/bash
case "$*" in *--paginate*) printf '{lines}\\n' | sed '/^$/d' ;; *) echo "$@" >>{log} ;; esac
"""
    (runner.bin / "gh").write_text(gh)
    (runner.bin / "gh").chmod(0o755)
    assert runner("Write the comment") == (0, "")
    words = log.read_text().split()
    assert words[:4] == ["api", "--silent", "--method", written[0]]
    assert words[4] == written[1]
    assert words[5:] == ["--field", f"body=@{runner.temp}/sparkgen-diff.md"]


@pytest.mark.parametrize("refused", ["--paginate", "POST"])
def test_comment_that_a_fork_may_not_write(refused: str, runner: Runner) -> None:
    """The action continues with its check, and says where to find the comment."""
    gh = f'#!/bin/bash\ncase "$*" in *{refused}*) echo "HTTP 403" >&2; exit 1 ;; esac\n'
    (runner.bin / "gh").write_text(gh)
    (runner.bin / "gh").chmod(0o755)
    code, output = runner("Write the comment")
    assert code == 0
    assert "::warning::this token may not write the comment" in output


@pytest.mark.long
def test_action_installs_the_command(runner: Runner, tmp_path: Path) -> None:
    script = step("Install")["run"]
    env = {
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_PATH": str(tmp_path / "path"),
    }
    code, output = run("bash", "-euo", "pipefail", "-c", script, cwd=tmp_path, env=env)
    assert code == 0, output
    folder = Path((tmp_path / "path").read_text().strip())
    assert run(folder / "sparkgen", "validate", "sites/lab.yaml", cwd=runner.cwd)[0] == 0


# GitLab


def test_job_of_gitlab(runner: Runner, tmp_path: Path) -> None:
    """The job's script as documented, with stand-ins for commands that use the network."""
    job = yaml.safe_load(block(REPOSITORY, "yaml", "merge_request_event"))["sparkgen"]
    log = tmp_path / "log"
    for name in ("pip", "curl"):
        (runner.bin / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{log}\n')
        (runner.bin / name).chmod(0o755)
    env = {
        "PATH": runner.path,
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": runner.base,
        "CI_API_V4_URL": "https://gitlab.example.org/api/v4",
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
        "SPARKGEN_TOKEN": "token",
        "SPARKGEN": "git+https://git.example.org/ops/sparkgen@COMMIT",
    }
    script = "\n".join(job["script"])
    code, output = run("bash", "-eo", "pipefail", "-c", script, cwd=runner.cwd, env=env)
    assert code == 0, output
    assert (runner.cwd / "diff.md").read_text().endswith("Nothing differs: lab\n")
    note = "https://gitlab.example.org/api/v4/projects/3/merge_requests/7/notes"
    assert log.read_text().splitlines()[1].endswith(f"--data-urlencode body@diff.md {note}")


# Documentation


def test_attributes_are_those_of_the_documentation(tmp_path: Path) -> None:
    advice = block(REPOSITORY, "", "linguist-generated")
    assert (ROOT / ".gitattributes").read_text().endswith(advice)
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".gitattributes").write_text(advice)
    files = ("out/lab/spark1/etc/nccl.conf", "out/lab/spark1/SHA256SUMS", "sites/lab.yaml")
    output = git(tmp_path, "check-attr", "linguist-generated", *files)
    assert [line.rpartition(" ")[2] for line in output.splitlines()] == [
        "unset",
        "set",
        "unspecified",
    ]


def test_json_of_the_diff_has_the_documented_keys(runner: Runner, programs: Path) -> None:
    words = ("diff", "--format", "json", "sites/lab.yaml")
    (site,) = json.loads(run(programs / "sparkgen", *words, cwd=runner.cwd)[1])["sites"]
    text = text_of("generator/commands/README.md")
    for key in (*site, *site["nodes"][0]):
        assert f"`{key}`" in text or f"`{key}[]`" in text


def test_comment_on_a_site_that_is_not_valid(repository: Path, runner: Runner) -> None:
    """It replaces the comment that was written before, which is not true any more."""
    site = repository / "sites/lab.yaml"
    site.write_text(site_text().replace("kind: switch", "kind: swich"))
    code, output = runner("Say what the change does")
    assert (code, "error[SG104]" in output) == (3, True)
    comment = (runner.temp / "sparkgen-diff.md").read_text()
    assert comment.startswith("<!-- sparkgen diff -->\n\n**Nothing could be compared**")
    assert "\n     --> sites/lab.yaml:" in comment
    assert (runner.temp / "GITHUB_STEP_SUMMARY").read_text().endswith(comment)
    for name in ("Say what the change does", "Write the comment"):
        assert step(name)["if"].startswith("${{ !cancelled() && ")
