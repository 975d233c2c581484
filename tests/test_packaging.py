"""The wheel and the sdist, installed cleanly on every Python, generate the checkout's bytes."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from package_index import index_of_pip
from repositories import commit, git
from waiting import PATIENCE

from generator import __version__

ROOT = Path(__file__).parents[1]


def run(*argv: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, where the wheel is built from the sdist."""
    out = tmp_path_factory.mktemp("dist")
    build = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ".", cwd=ROOT)
    assert build.returncode == 0, build.stdout + build.stderr
    return out


def uv(*arguments: str | Path, cwd: Path) -> None:
    """Run uv, which finds packages where pip does."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, **index_of_pip(), "PATH": path}
    done = subprocess.run(("uv", *arguments), cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def interpreter(version: str) -> str:
    """A Python of that version; a machine may lack some, but always has the running one."""
    name = f"python{version}"
    with contextlib.suppress(FileNotFoundError):
        if run(name, "--version", cwd=ROOT).returncode == 0:
            return name
    assert version != f"{sys.version_info.major}.{sys.version_info.minor}"
    pytest.skip(f"no Python {version} here")


@pytest.mark.parametrize(
    ("version", "kind"),
    [("3.11", "*.whl"), ("3.12", "*.tar.gz"), ("3.13", "*.whl")],
)
def test_an_installed_package_builds_what_the_checkout_builds(
    distributions: Path, tmp_path: Path, version: str, kind: str
) -> None:
    (archive,) = distributions.glob(kind)
    programs = tmp_path / "venv" / "bin"
    # Pip itself is tested below, and takes ten times as long for this.
    uv("venv", "--quiet", "--python", interpreter(version), programs.parent, cwd=tmp_path)
    uv("pip", "install", "--quiet", "--python", programs / "python", archive, cwd=tmp_path)

    site = tmp_path / "lab-mesh.yaml"
    site.write_bytes((ROOT / "sites" / "lab-mesh.yaml").read_bytes())
    built = run(programs / "sparkgen", "build", "lab-mesh.yaml", cwd=tmp_path)

    assert built.returncode == 0, built.stderr
    assert contents(tmp_path / "out" / "lab-mesh") == contents(ROOT / "out" / "lab-mesh")


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


# Builds a site, and prints how many templates were compiled, which schemas were parsed, and which
# of the engines were imported.
COUNTED = """
import sys
import zipfile
from jinja2 import Environment
from generator import precompiled
from generator.cli import main
from generator.engines import ENGINES
compiled = []
Environment.compile = lambda self, source, name=None, *more, **named: compiled.append(name)
precompiled._parsed = compiled.append
try:
    main(["build", "lab-mesh.yaml"])
except SystemExit as done:
    assert not done.code, done.code
print(sys.modules["generator"].__file__)
print("compiled", *compiled)
own = {name: name.translate({ord("-"): "_", ord("."): "_"}) for name in ENGINES}
print("imported", *(n for n in ENGINES if f"generator.engines.{own[n]}" in sys.modules))
"""


def test_an_installed_package_starts_without_compiling(distributions: Path, tmp_path: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    (tmp_path / "lab-mesh.yaml").write_bytes((ROOT / "sites" / "lab-mesh.yaml").read_bytes())

    built = subprocess.run(
        [sys.executable, "-c", COUNTED],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": "installed", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert built.returncode == 0, built.stderr
    *_, package, compiled, imported = built.stdout.splitlines()
    assert "installed" in package
    assert compiled == "compiled"
    assert imported == "imported vllm"
    assert contents(tmp_path / "out" / "lab-mesh") == contents(ROOT / "out" / "lab-mesh")


# The installation methods of the README


def ways() -> dict[str, list[str]]:
    """The documented commands to install, upgrade and uninstall with each program."""
    rows = re.findall(r"^\| (\w+) \| (`\w+.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    return {name: re.findall(r"`([^`]+)`", cells) for name, cells in rows}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with what is installed."""
    folder = tmp_path_factory.mktemp("repository") / "sparkgen"
    folder.mkdir()
    for name in ("generator", "schemas", "templates"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, folder / name)
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


@pytest.mark.long
@pytest.mark.parametrize("name", ways())
def test_documented_way_to_install(name: str, repository: Path, tmp_path: Path) -> None:
    """Installed, upgraded and uninstalled, in a separate home."""
    home = tmp_path / "home"
    home.mkdir()
    path = f"{home}/.local/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    if name == "pip":
        # Python's own module takes ten times as long.
        uv("venv", "--quiet", "--seed", "--python", sys.executable, home / ".local", cwd=tmp_path)
    env = {**os.environ, **index_of_pip(), "HOME": str(home), "PATH": path}
    sparkgen = home / ".local/bin/sparkgen"
    install, upgrade, uninstall = ways()[name]
    for command in (install, upgrade):
        done = shell(command, repository, env)
        assert done.returncode == 0, done.stderr
        printed = run(sparkgen, "--version", cwd=tmp_path)
        assert printed.stdout == f"sparkgen {__version__}\n"
    assert shell(uninstall, repository, env).returncode == 0
    assert not sparkgen.exists()


def test_install_from_a_repository(repository: Path, tmp_path: Path) -> None:
    assert "`git+` and the URL of the repository" in (ROOT / "README.md").read_text()
    # Its dependencies are here, and the methods above install them along with it.
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--target", tmp_path / "installed")
    pip = (sys.executable, "-m", "pip", "install", *options)
    done = run(*pip, f"git+file://{repository}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    built = subprocess.run(
        [tmp_path / "installed/bin/sparkgen", "build", ROOT / "sites/single.yaml"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": "installed"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert built.returncode == 0, built.stderr
    assert contents(tmp_path / "out/single") == contents(ROOT / "out/single")


def test_changelog_has_this_version() -> None:
    text = (ROOT / "generator/CHANGELOG.md").read_text()
    titles = re.findall(r"^## (\S+)$", text, re.MULTILINE)
    # What a version in development changes is not released yet.
    assert titles[0] == ("Unreleased" if ".dev" in __version__ else __version__)
    assert "Unreleased" not in titles[1:]


def test_changelog_is_short_and_begins_with_what_breaks() -> None:
    text = re.sub(r"<!--.*?-->", "", (ROOT / "generator/CHANGELOG.md").read_text(), flags=re.DOTALL)
    for edition in text.split("\n## ")[1:]:
        entries = edition.split("\n- ")[1:]
        breaking = [entry.startswith("**Breaking:**") for entry in entries]
        assert breaking == sorted(breaking, reverse=True)
        assert len(entries) <= 10
        assert all(len(entry.split()) <= 55 for entry in entries)


def shell(command: str, cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    words = ("bash", "-c", command)
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=PATIENCE)
