"""Bundles byte for byte: the cases of `golden/`, the examples of `sites/`, and common invariants.

A case compares the files under its `expected/`; the rest of the bundle only has to build. A case
with a manifest covers its whole bundle: the manifest has the digest of every file, so only files
that are worth reading are kept. Copies of the payload are left out: they are the same everywhere,
and have their own tests.

`pytest --update-golden -k CASE` rewrites the expected files; read the diff before you commit it.
A new case is a site alone. The first update writes the files of its first node that depend on the
site; remove those that the case is not about.
"""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path, PurePosixPath

import pytest
import yaml
from conftest import Bundle, Command
from programs import require
from valid_sites import EXAMPLES, valid_file

from generator import __version__
from generator.bundle.payload import original
from generator.bundle.plan import CARRIED, is_context, payload
from generator.bundle.render import recipe
from generator.bundle.tree import Tree
from generator.resources import ROOT, TEMPLATES

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/site.yaml"))
# Labels and descriptions may contain any letters.
NAMED_BY_PEOPLE = (
    *("README.md", "REFERENCE.md", "index.html"),
    *("cabling.svg", "memory.svg", "operator/cables.txt"),
)
KEPT = sorted((ROOT / "sites").glob("*.yaml"))
SITES = [*EXAMPLES.values(), *(GOLDEN / case / "site.yaml" for case in CASES)]

Files = Mapping[str, tuple[bytes, bool]]


@pytest.mark.golden
@pytest.mark.parametrize("case", CASES)
def test_bundle_is_as_expected(case: str, bundle: Bundle, pytestconfig: pytest.Config) -> None:
    folder = GOLDEN / case / "expected"
    expected = on_disk(folder)
    actual = in_memory(bundle(GOLDEN / case / "site.yaml"))
    if pytestconfig.getoption("update_golden"):
        expected = expected or {path: actual[path] for path in start(actual)}
    actual = {path: file for path, file in actual.items() if path in expected}
    if pytestconfig.getoption("update_golden"):
        write(actual, folder)
        expected = on_disk(folder)
    assert expected
    if report := "\n".join(differences(expected, actual)):
        pytest.fail(f"{report}\n\nmeant? pytest --update-golden -k {case}", pytrace=False)


def start(made: Files) -> list[str]:
    """What a new case is compared with at first: its first node's files, but for the documents."""
    configured = [path for path in made if "/etc/" in path or "/opt/" in path]
    (node, _, _) = min(configured).partition("/")
    return [p for p in configured if p.startswith(f"{node}/") and not is_payload(p)]


def is_payload(path: str) -> bool:
    """Whether a file is the same in all bundles, so that its header names no site."""
    return original(path) in payload()


def in_memory(tree: Tree) -> Files:
    return {path: (file.data, file.executable) for path, file in tree.items()}


def on_disk(folder: Path) -> Files:
    """Every file in a folder: its bytes, and the executable bit that git keeps."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), bool(path.stat().st_mode & 0o100))
        for path in sorted(folder.rglob("*"))
        if not path.is_dir()
    }


def write(files: Files, folder: Path) -> None:
    """Write the files, and remove the expected ones that are no longer made."""
    for path in on_disk(folder).keys() - files.keys():
        (folder / path).unlink()
    for path, (data, executable) in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o755 if executable else 0o644)


def differences(expected: Files, actual: Files) -> Iterator[str]:
    for path in sorted(expected.keys() | actual.keys()):
        before, after = expected.get(path), actual.get(path)
        if before is None or after is None:
            yield f"{path}: {'not expected' if before is None else 'expected, and not made'}"
            continue
        if before[1] != after[1]:
            yield f"{path}: {'no longer' if before[1] else 'now'} executable"
        if before[0] != after[0]:
            old, new = before[0].decode(errors="replace"), after[0].decode(errors="replace")
            yield from unified_diff(
                old.splitlines(), new.splitlines(), f"expected/{path}", f"made/{path}", lineterm=""
            )


def test_every_template_of_a_file_has_a_case() -> None:
    """The rest are pages, which have a case each, and what templates include.

    A manifest has only digests, in which nobody can read what a template says.
    """
    files = ("node", "operator", "jobs", "switches")
    included = "operator/image/engines/"
    templates = {path for folder in files for path in (TEMPLATES / folder).rglob("*.j2")}
    names = {path.relative_to(TEMPLATES).with_suffix("").as_posix() for path in templates}
    made = {template for case in CASES for template in templates_of(case)}
    missing = sorted(name for name in names - made if not name.startswith(included))
    if missing:
        pytest.fail(f"no golden case keeps a file of {', '.join(missing)}", pytrace=False)


def templates_of(case: str) -> Iterator[str]:
    """The templates of the files that a case keeps."""
    site = valid_file(GOLDEN / case / "site.yaml").site
    for path in on_disk(GOLDEN / case / "expected"):
        if "/" in path and (found := recipe(site, path)):
            yield found[0]


def test_committed_bundles_are_fresh(sparkgen: Command) -> None:
    outcome = sparkgen("check", *KEPT, cwd=ROOT)
    assert outcome.code == 0, outcome.out
    assert outcome.out.splitlines() == [
        f"{site.stem}: out/{site.stem} is what the site says" for site in KEPT
    ]


def test_every_committed_bundle_has_its_site() -> None:
    assert {path.name for path in (ROOT / "out").iterdir()} == {site.stem for site in KEPT}


def test_first_node_of_lab_mesh_has_these_addresses_and_nothing_else() -> None:
    file = ROOT / "out/lab-mesh/spark1/etc/netplan/40-cx7.yaml"
    addresses = {
        "enp1s0f0np0": "192.168.177.11/24",
        "enP2p1s0f0np0": "192.168.178.11/24",
        "enp1s0f1np1": "192.168.187.11/24",
        "enP2p1s0f1np1": "192.168.188.11/24",
    }
    assert yaml.safe_load(file.read_text()) == {
        "network": {
            "version": 2,
            "ethernets": {
                interface: {
                    "addresses": [address],
                    "mtu": 9000,
                    "dhcp4": False,
                    "dhcp6": False,
                    "accept-ra": False,
                    "link-local": [],
                    "optional": True,
                }
                for interface, address in addresses.items()
            },
        }
    }


@pytest.fixture(
    params=SITES, ids=lambda path: path.stem if path.stem != "site" else path.parent.name
)
def tree(request: pytest.FixtureRequest, bundle: Bundle) -> Tree:
    """Each bundle in turn."""
    return bundle(request.param)


def of_sparkgen(tree: Tree) -> Tree:
    """The files of a bundle that sparkgen generated, without those copied from the user."""
    return {
        path: file for path, file in tree.items() if CARRIED not in path and not is_context(path)
    }


@pytest.fixture
def generated(tree: Tree) -> Tree:
    return of_sparkgen(tree)


def test_text_is_plain(generated: Tree) -> None:
    for path, file in generated.items():
        assert file.text.strip(), path
        assert file.text.endswith("\n"), path
        assert not file.text.endswith("\n\n"), path
        assert "\r" not in file.text, path
        assert "\t" not in file.text, path
        assert file.text.isascii() or path in NAMED_BY_PEOPLE, path


def test_text_has_no_time_path_or_version(generated: Tree) -> None:
    times = re.compile(r"\b20\d\d-\d\d-\d\d\b|\b\d\d:\d\d:\d\d\b")
    for path, file in generated.items():
        assert str(ROOT) not in file.text, path
        if path != "MANIFEST.json":
            assert not re.search(rf"sparkgen v?{re.escape(__version__)}", file.text), path
            assert not times.search(file.text), path


def test_first_comment_names_generator_and_site(generated: Tree) -> None:
    name = json.loads(generated["MANIFEST.json"].text)["name"]
    header = f"# generated by sparkgen from the site {name}; do not edit"
    for path, file in generated.items():
        lines = file.text.splitlines()
        if path.endswith((".json", "SHA256SUMS")):
            assert header not in lines, path
        elif path.endswith((".md", ".svg")):
            assert lines[0] == f"<!-- {header[2:]} -->", path
        elif path.endswith(".html"):
            assert lines[:2] == ["<!DOCTYPE html>", f"<!-- {header[2:]} -->"]
        elif path.endswith(".js"):
            assert is_payload(path) or lines[0] == f"//{header[1:]}", path
        elif not is_payload(path):
            assert lines[lines[0].startswith("#!")] == header, path


def test_scripts_are_executable(generated: Tree) -> None:
    for path, file in generated.items():
        assert file.executable == file.text.startswith("#!"), path
        assert file.mode == (0o600 if "/netplan/" in path else 0o755 if file.executable else 0o644)


def environments(tree: Tree, node: str = "[^/]+") -> list[str]:
    """The paths of the engines' environment files, for one node or for all."""
    pattern = re.compile(rf"{node}/etc/sparkgen/(engine|groups/[^./]+)\.env")
    return [path for path in tree if pattern.fullmatch(path)]


def test_nccl_conf_agrees_with_the_engines_environment(tree: Tree) -> None:
    for node in nodes(tree):
        variables = [settings(tree[path].text) for path in environments(tree, node)]
        if not variables:
            continue
        nccl = [{k: v for k, v in each.items() if k.startswith("NCCL_")} for each in variables]
        assert settings(tree[f"{node}/etc/nccl.conf"].text) in nccl
        assert all(nccl)


def test_nccl_conf_is_in_the_grammar_of_nccl(tree: Tree) -> None:
    """NCCL does not trim, takes comments only in column 0, and an empty value masks the file."""
    for node in nodes(tree):
        for line in tree[f"{node}/etc/nccl.conf"].text.splitlines():
            if line.startswith("#"):
                assert "=" not in line
            else:
                assert re.fullmatch(r"NCCL_[A-Z0-9_]+=[^\s\"'#]+", line), line


def test_environment_is_one_that_docker_systemd_and_a_shell_read_alike(tree: Tree) -> None:
    for path in environments(tree):
        lines = tree[path].text.splitlines()
        assignments = [line for line in lines if line and not line.startswith("#")]
        names = [line.partition("=")[0] for line in assignments]
        assert len(names) == len(set(names))
        for line in assignments:
            assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*=[^\s\"'`$\\#]+", line), line


def test_manifest_lists_all_other_files(tree: Tree) -> None:
    manifest = json.loads(tree["MANIFEST.json"].text)
    assert manifest["generator"] == f"sparkgen {__version__}"
    assert {
        path: (entry["mode"], entry["sha256"]) for path, entry in manifest["files"].items()
    } == {
        path: (f"{file.mode:04o}", sha256(file.data).hexdigest())
        for path, file in tree.items()
        if path != "MANIFEST.json"
    }


def test_checksums_list_all_other_files_of_the_node(tree: Tree) -> None:
    for node in nodes(tree):
        lines = tree[f"{node}/SHA256SUMS"].text.splitlines()
        listed = {path: checksum for checksum, path in (line.split("  ", 1) for line in lines)}
        assert listed == {
            path.removeprefix(f"{node}/"): sha256(file.data).hexdigest()
            for path, file in tree.items()
            if path.startswith(f"{node}/") and path != f"{node}/SHA256SUMS"
        }


def test_checksums_are_in_the_form_of_sha256sum() -> None:
    require("sha256sum")
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"],
        cwd=ROOT / "out/lab-mesh/spark2",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def nodes(tree: Tree) -> list[str]:
    """The nodes' folders."""
    folders = {PurePosixPath(path).parts[0] for path in tree if "/" in path}
    return sorted(folders - {"jobs", "operator", "switches"})


def settings(text: str) -> dict[str, str]:
    """`NAME=VALUE` lines; the value itself may begin with an equals sign."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: value for name, _, value in (line.partition("=") for line in lines)}
