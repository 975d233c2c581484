"""`import generator`: the interface that programs build on, its types, and its cost."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Command
from documents import block
from racks import site_text
from waiting import PATIENCE

import generator
from generator import library
from generator.resources import ROOT

EXAMPLE = block("generator/README.md", "python", "generator.read")


def python(code: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        (sys.executable, "-c", code),
        cwd=cwd,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_documented_example() -> None:
    output = python(EXAMPLE)
    conf = (ROOT / "out/lab-mesh/spark1/etc/nccl.conf").read_text()
    assert conf in output
    assert "'192.168.177.11/24'" in output
    assert "\nFalse error[" in output
    assert "error[SG101]: unknown key 'modle'" in output


def test_example_is_typed(tmp_path: Path) -> None:
    typed = f"{EXAMPLE}\nreveal_type(generator.read)\nreveal_type(site_file.site)\n"
    (tmp_path / "example.py").write_text(typed)
    mypy = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"))
    done = subprocess.run(
        (*mypy, str(tmp_path / "example.py")),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout
    assert '"def (path: str | os.PathLike[str]) -> generator.library.SiteFile"' in done.stdout
    assert '"generator.site.site.Site | None"' in done.stdout


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    names = "[name for name in sys.modules if name.startswith('generator.')]"
    assert python(f"import sys, generator\nprint(generator.__version__, {names})") == (
        f"{generator.__version__} []\n"
    )
    assert "generator.library" in python(f"import sys, generator\ngenerator.read\nprint({names})")
    # For a valid site, Cerberus is not asked for errors.
    site = f"generator.read({str(ROOT / 'sites/lab-mesh.yaml')!r})"
    assert python(f"import sys, generator\n{site}.tree()\nprint('cerberus' in sys.modules)") == (
        "False\n"
    )


def test_names_are_those_of_the_types() -> None:
    stub = (ROOT / "generator/__init__.pyi").read_text()
    names = set(re.findall(r" as (\w+)\n", stub))
    assert {*dir(generator)} - vars(generator).keys() == names
    assert all(getattr(generator, name) is getattr(library, name) for name in names)
    with pytest.raises(AttributeError, match="no attribute 'nonesuch'"):
        generator.nonesuch  # noqa: B018


def test_what_a_site_file_says(tmp_path: Path, sparkgen: Command) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(site_text(image="latest"))
    found = generator.read(path)
    (finding,) = found.findings
    assert (finding.rule, finding.severity) == ("SG609", generator.Severity.WARNING)
    assert path.read_text().splitlines()[finding.place.line - 1].endswith(":latest")
    assert found.is_valid
    assert found.report() == sparkgen("validate", path, cwd=tmp_path).err
    sparkgen("build", path, cwd=tmp_path)
    folder = tmp_path / "out/lab"
    written = {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
    assert {name: file.data for name, file in found.tree().items()} == written


def test_site_that_is_not_valid() -> None:
    found = generator.parse(site_text().replace("switch}", "swich}"), "mine.yaml")
    assert (found.is_valid, found.site) == (False, None)
    assert {finding.place.file for finding in found.findings} == {"mine.yaml"}
    with pytest.raises(ValueError, match="did you mean 'switch'"):
        found.tree()
    assert not generator.parse(b"\xff").is_valid
    with pytest.raises(FileNotFoundError):
        generator.read("nowhere.yaml")


def test_module_runs_the_command(process: Command, tmp_path: Path) -> None:
    assert process("--version", cwd=tmp_path).out.startswith(f"sparkgen {generator.__version__}")
