"""The same site file gives the same bytes, whatever the process, folder, locale or umask.

Every build runs in a process of its own, because hash seeds and locales are set per process.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Bundle, Command

from generator.resources import ROOT

SITE = ROOT / "sites/lab-mesh.yaml"

Files = dict[str, tuple[int, bytes]]


@pytest.fixture(scope="module")
def expected(bundle: Bundle) -> Files:
    """The bundle as rendered in this process."""
    return {path: (file.mode, file.data) for path, file in bundle(SITE).items()}


def files(folder: Path) -> Files:
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mode & 0o777, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


SURROUNDINGS: dict[str, dict[str, Any]] = {
    "seed 0": {"env": {"PYTHONHASHSEED": "0"}},
    "seed 1": {"env": {"PYTHONHASHSEED": "1"}},
    "random seed": {"env": {"PYTHONHASHSEED": "random"}},
    "plain locale": {"env": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}},
    "turkish": {"env": {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"}},
    "narrow umask": {"umask": 0o077},
    "wide umask": {"umask": 0o000},
    "no assertions": {"env": {"PYTHONOPTIMIZE": "1"}},
}


@pytest.mark.parametrize("surroundings", SURROUNDINGS.values(), ids=SURROUNDINGS)
def test_bytes_and_modes_are_the_same(
    surroundings: dict[str, Any], expected: Files, tmp_path: Path, process: Command
) -> None:
    outcome = process("build", SITE, "--out", tmp_path / "out", cwd=tmp_path, **surroundings)
    assert (outcome.code, outcome.err) == (0, "")
    folder = tmp_path / "out/lab-mesh"
    recorded = {f"spark{n}/site.yaml": (0o644, SITE.read_bytes()) for n in (1, 2, 3)}
    assert files(folder) == expected | recorded
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o755}


def test_folder_of_the_site_file_does_not_matter(
    expected: Files, tmp_path: Path, bundle: Bundle
) -> None:
    copy = tmp_path / SITE.name
    copy.write_bytes(SITE.read_bytes())
    assert {path: (file.mode, file.data) for path, file in bundle(copy).items()} == expected


def test_only_the_manifest_names_the_site_file(
    expected: Files, tmp_path: Path, bundle: Bundle
) -> None:
    copy = tmp_path / "renamed.yaml"
    copy.write_bytes(SITE.read_bytes())
    files = {path: (file.mode, file.data) for path, file in bundle(copy).items()}
    assert {path for path in files if files[path] != expected[path]} == {"MANIFEST.json"}


@pytest.mark.parametrize(
    "site", sorted((ROOT / "sites").rglob("*.yaml")), ids=lambda site: site.stem
)
def test_order_of_keys_does_not_matter(site: Path, tmp_path: Path, bundle: Bundle) -> None:
    """Only the checksum of the site file in the manifest changes."""
    turned = tmp_path / site.name
    data = yaml.load(site.read_text(), Loader=yaml.BaseLoader)
    turned.write_text(as_written(reverse(data)))
    there, back = bundle(site), bundle(turned)
    manifest, other = (
        json.loads(there["MANIFEST.json"].text),
        json.loads(back["MANIFEST.json"].text),
    )
    assert manifest.pop("site")["sha256"] != other.pop("site")["sha256"]
    assert manifest == other
    assert [path for path in there if there[path].text != back[path].text] == ["MANIFEST.json"]


def reverse(data: Any) -> Any:
    """The same data with the keys of every mapping in reverse order."""
    if isinstance(data, dict):
        return {key: reverse(data[key]) for key in reversed(data)}
    return [reverse(item) for item in data] if isinstance(data, list) else data


def as_written(data: Any) -> str:
    """YAML with quotes only where scalars need them: `true` stays a boolean."""
    return yaml.dump(data, Dumper=_PlainDumper, sort_keys=False, width=1_000)


class _PlainDumper(yaml.SafeDumper):
    yaml_implicit_resolvers = {}  # noqa: RUF012 (PyYAML's own class attribute)
