"""`verify`: every check passes on a valid bundle, and fails on one with a fault of its kind."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from bundles import BUNDLES, Bundle
from conftest import Command
from programs import program, require, require_root

from generator.resources import ROOT
from generator.verify.bundle import opened
from generator.verify.checks import CHECKS
from generator.verify.namespaces import PROGRAMS
from generator.verify.network import NETWORK
from generator.verify.programs import PACKAGES

LAB_MESH = next(bundle for bundle in BUNDLES if bundle.name == "lab-mesh")
UNPACKED = Path(__file__).parent / ".programs/usr/bin"
ALWAYS = ("manifest", "sha256sum", "yamllint", "documents", "bash")
NEEDS = {
    "shellcheck": "shellcheck",
    "netplan": "netplan",
    "systemd": "systemd-analyze",
    "compose": "docker-compose",
    "mpirun": "mpirun",
    "sshd": "sshd",
    "ssh": "ssh",
    "promtool": "promtool",
}

# One of each kind and engine: the tests of consumers look at all of them.
SHOWN = ("single", "lab-mesh", "pair-sglang", "pair-llamacpp", "golden-direct-services")
# A ring, halves of ports, and a node without a cable.
NETWORKS = ("lab-mesh", "golden-direct-first-half", "golden-groups-pairs")

Lines = dict[str, list[str]]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The ring's bundle, to be damaged."""
    return Path(shutil.copytree(LAB_MESH.folder, tmp_path / "lab-mesh"))


def test_site_file_is_no_bundle(sparkgen: Command) -> None:
    outcome = sparkgen("verify", "sites/lab-mesh.yaml", cwd=ROOT)
    message = "sites/lab-mesh.yaml is a file; a bundle is a folder, such as out/lab-mesh"
    assert (outcome.code, outcome.out, outcome.err) == (4, "", f"sparkgen: {message}\n")


@pytest.fixture
def verify(
    sparkgen: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, Lines]]:
    """Run the command; return its lines by the name of the check, each with its state."""
    monkeypatch.setenv("PATH", f"{UNPACKED}:{os.environ['PATH']}")

    def run(*words: object) -> tuple[int, Lines]:
        outcome = sparkgen("verify", *words, cwd=tmp_path)
        assert outcome.err == ""
        lines: Lines = {}
        for line in outcome.out.splitlines():
            state, name, rest = re.fullmatch(r"(\S+) +([\w-]+): (.*)", line).groups()  # type: ignore[union-attr]
            lines.setdefault(name, []).append(f"{state} {rest}")
        return outcome.code, lines

    return run


Verify = Callable[..., tuple[int, Lines]]
Complaints = Callable[[str, Path], list[str]]


@pytest.fixture
def complaints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Complaints:
    """Run one check on a folder; return its complaints."""
    monkeypatch.setenv("PATH", f"{UNPACKED}:{os.environ['PATH']}")
    by_name = {check.name: check for check in (*CHECKS, NETWORK)}

    def run(name: str, folder: Path) -> list[str]:
        work = tmp_path / f"work{len(list(tmp_path.iterdir()))}"
        work.mkdir()
        return list(by_name[name].run(opened(folder), work))

    return run


@pytest.mark.parametrize("bundle", [b for b in BUNDLES if b.name in SHOWN], ids=str)
def test_valid_bundle(bundle: Bundle, verify: Verify) -> None:
    code, lines = verify(bundle.folder)
    assert list(lines) == [check.name for check in CHECKS]
    assert code == 0, lines
    assert all(line[0].startswith("ok ") for name, line in lines.items() if name in ALWAYS)
    states = {line.partition(" ")[0] for found in lines.values() for line in found}
    assert states <= {"ok", "-", "missing"}


LAUNCH = "spark1/opt/sparkgen/launch.sh"
UNIT = "spark1/etc/systemd/system/sparkgen-engine.service"
COMPOSE = "spark2/opt/sparkgen/compose.yaml"
HOSTFILE = "spark1/opt/sparkgen/hostfile"

# A check, a file, what is changed in it, and the complaint.
FAULTS = [
    ("manifest", "spark1/etc/nccl.conf", "IB\n", "no\n", "nccl.conf is not what the manifest says"),
    ("sha256sum", "spark2/etc/nccl.conf", "IB\n", "Socket\n", "spark2: etc/nccl.conf: FAILED"),
    ("yamllint", COMPOSE, "restart:", "restart: :", "compose.yaml:"),
    ("documents", "cabling.svg", "</svg>", "", "cabling.svg: "),
    ("documents", "spark1/opt/sparkgen/health.py", "import", "imp ort", "health.py: "),
    ("bash", LAUNCH, "esac", "", "spark1/opt/sparkgen/launch.sh: "),
    ("shellcheck", LAUNCH, '"${arguments[@]}"', "${arguments[@]}", "launch.sh:"),
    ("netplan", "spark3/etc/netplan/40-cx7.yaml", "mtu: 9000", "mtu: huge", "spark3: "),
    ("systemd", UNIT, "KillMode", "KillMod", "spark1: "),
    ("systemd", UNIT, "wait-fabric.sh", "wait.sh", "/opt/sparkgen/wait.sh is not of"),
    ("compose", COMPOSE, "    image:", "    imag:", "compose.yaml: "),
    ("mpirun", HOSTFILE, "slots=1 # spark3", "slots=0 #", "hostfile: "),
]  # fmt: skip


@pytest.mark.parametrize(("name", "path", "old", "new", "complaint"), FAULTS)
def test_fault_in_a_file(
    name: str, path: str, old: str, new: str, complaint: str, copy: Path, complaints: Complaints
) -> None:
    if name in NEEDS:
        program(NEEDS[name])
    file = copy / path
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))
    assert any(complaint in line for line in complaints(name, copy))


def test_program_that_fails(copy: Path, verify: Verify) -> None:
    (copy / "spark1/etc/nccl.conf").write_text("NCCL_NET=Socket\n")
    code, lines = verify(copy)
    assert code == 1
    assert lines["manifest"] == ["FAIL spark1/etc/nccl.conf is not what the manifest says"]
    assert lines["sha256sum"][0] == "FAIL spark1: etc/nccl.conf: FAILED"


def test_file_that_is_missing_and_one_without_its_mode(copy: Path, complaints: Complaints) -> None:
    (copy / "spark1/etc/nccl.conf").unlink()
    (copy / "spark2/opt/sparkgen/launch.sh").chmod(0o644)
    assert complaints("manifest", copy) == [
        "spark1/etc/nccl.conf is missing",
        "spark2/opt/sparkgen/launch.sh has the wrong mode",
    ]


# Files that no bundle contains yet are checked too.
OTHERS = [
    ("sshd", "spark1/etc/ssh/sshd_config.d/50-x.conf", "PermitRootLogin no\n", "PermitRoot no\n"),
    ("ssh", "operator/ssh_config", "Host spark1\n  User nvidia\n", "Host spark1\n  Usr nvidia\n"),
    ("promtool", "operator/prometheus.yml", "scrape_configs: []\n", "scrape_confs: []\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "path", "good", "bad"), OTHERS)
def test_other_files(
    name: str, path: str, good: str, bad: str, copy: Path, complaints: Complaints
) -> None:
    program(NEEDS.get(name, "sh"))
    if name == "sshd":
        require_root()
        Path("/run/sshd").mkdir(exist_ok=True)
    manifest = copy / "MANIFEST.json"
    entry = f'"{path}": {{"mode": "0644", "sha256": "", "change": "nothing"}},\n    "README.md"'
    manifest.write_text(manifest.read_text().replace('"README.md"', entry, 1))
    (copy / path).parent.mkdir(parents=True, exist_ok=True)
    (copy / path).write_text(good)
    assert complaints(name, copy) == []
    (copy / path).write_text(bad)
    assert complaints(name, copy)


def test_program_that_is_missing(
    tmp_path: Path, sparkgen: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("generator.verify.programs._SYSTEM", str(tmp_path))
    outcome = sparkgen("verify", LAB_MESH.folder, cwd=tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    assert "missing  netplan: apt-get install netplan.io\n" in outcome.out
    assert "missing  compose: apt-get install docker-compose-v2 (Ubuntu) or " in outcome.out
    assert sparkgen("verify", "--strict", LAB_MESH.folder, cwd=tmp_path).code == 1


def test_every_program_has_a_package() -> None:
    assert {*NEEDS.values()} - {"docker-compose"} <= PACKAGES.keys()
    assert set(PROGRAMS) <= PACKAGES.keys()


@pytest.mark.parametrize(
    "manifest",
    [None, "", "[]", "{}", '{"files": {"../x": {}}, "nodes": [], "cables": []}', '{"files": 3}'],
)
def test_folder_that_is_no_bundle(manifest: str | None, tmp_path: Path, sparkgen: Command) -> None:
    if manifest is not None:
        (tmp_path / "MANIFEST.json").write_text(manifest)
    outcome = sparkgen("verify", ".", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (4, "")
    assert re.fullmatch(
        r"sparkgen: MANIFEST.json(: No such file.*| is not the manifest.*)\n", outcome.err
    )


def test_results_as_data(copy: Path, sparkgen: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("generator.commands.test.CHECKS", CHECKS[:2])
    (copy / "spark1/etc/nccl.conf").unlink()
    outcome = sparkgen("verify", copy, "out/single", "--format", "json", cwd=ROOT)
    data = json.loads(outcome.out)
    assert (outcome.code, data["version"], data["valid"]) == (1, 1, False)
    broken, sound = data["bundles"]
    assert [broken["bundle"], sound["bundle"]] == [str(copy), "out/single"]
    assert {check["check"]: check["status"] for check in broken["checks"]} == {
        "manifest": "failed",
        "sha256sum": "failed",
    }
    assert any("spark1/etc/nccl.conf" in line for line in broken["checks"][0]["complaints"])
    assert {check["status"] for check in sound["checks"]} == {"ok"}


def test_quiet_says_what_fails(
    copy: Path, sparkgen: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("generator.commands.test.CHECKS", CHECKS[:2])
    assert sparkgen("verify", "-q", copy, cwd=ROOT).out == ""
    (copy / "spark1/etc/nccl.conf").unlink()
    outcome = sparkgen("verify", "-q", copy, cwd=ROOT)
    assert {line.split(" ")[0] for line in outcome.out.splitlines()} == {"FAIL"}


def test_several_bundles(sparkgen: Command) -> None:
    cwd = LAB_MESH.folder.parents[1]
    outcome = sparkgen("verify", "out/single", "out/pair-chatbot", cwd=cwd)
    assert re.findall(r"^\S+:$", outcome.out, re.MULTILINE) == ["out/single:", "out/pair-chatbot:"]


# The network


@pytest.fixture
def namespaces() -> None:
    require(*PROGRAMS)
    require_root()


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("bundle", [b for b in BUNDLES if b.name in NETWORKS], ids=str)
def test_network(bundle: Bundle, complaints: Complaints) -> None:
    assert complaints("network", bundle.folder) == []


@pytest.mark.usefixtures("namespaces")
def test_network_without_a_fabric(verify: Verify) -> None:
    single = next(bundle for bundle in BUNDLES if bundle.name == "single")
    assert verify(single.folder, "--network")[1]["network"] == ["- no such files"]


@pytest.mark.usefixtures("namespaces")
def test_network_names_the_cable_that_would_fail(copy: Path, verify: Verify) -> None:
    """An address that somebody changed on one side of cable 2."""
    file = copy / "spark3/etc/netplan/40-cx7.yaml"
    assert "192.168.197.13/24" in file.read_text()
    file.write_text(file.read_text().replace("192.168.197.13/24", "192.168.197.99/24"))
    code, lines = verify(copy, "--network")
    assert code == 1
    cables = {re.search(r"cable \d", line)[0] for line in lines["network"]}  # type: ignore[index]
    assert cables == {"cable 2"}
    head = "FAIL spark2: cable 2: spark3 (192.168.197.13) does not answer"
    assert any(line.startswith(head) for line in lines["network"])


def test_network_is_for_root(
    tmp_path: Path, sparkgen: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(*PROGRAMS)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    outcome = sparkgen("verify", "--network", LAB_MESH.folder, cwd=tmp_path)
    assert (outcome.code, outcome.err) == (4, "sparkgen: the network is tried by root alone\n")
