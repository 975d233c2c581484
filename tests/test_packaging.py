"""The wheel and the sdist, in clean environments of every Python, give the checkout's bytes."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*argv: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, the wheel built from the sdist."""
    out = tmp_path_factory.mktemp("dist")
    build = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ".", cwd=ROOT)
    assert build.returncode == 0, build.stdout + build.stderr
    return out


def interpreter(version: str) -> str:
    """A Python of that version; a machine need not have them all, but the running one is there."""
    name = f"python{version}"
    with contextlib.suppress(FileNotFoundError):
        if run(name, "--version", cwd=ROOT).returncode == 0:
            return name
    assert version != f"{sys.version_info.major}.{sys.version_info.minor}"
    pytest.skip(f"no Python {version} here")


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_an_installed_package_builds_what_the_checkout_builds(
    distributions: Path, tmp_path: Path, version: str, kind: str
) -> None:
    (archive,) = distributions.glob(kind)
    made = run(interpreter(version), "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    programs = tmp_path / "venv" / "bin"
    installed = run(programs / "pip", "install", "--quiet", archive, cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr

    site = tmp_path / "lab-mesh.yaml"
    site.write_bytes((ROOT / "sites" / "lab-mesh.yaml").read_bytes())
    built = run(programs / "sparkgen", "build", "lab-mesh.yaml", cwd=tmp_path)

    assert built.returncode == 0, built.stderr
    assert contents(tmp_path / "out" / "lab-mesh") == contents(ROOT / "out" / "lab-mesh")


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
