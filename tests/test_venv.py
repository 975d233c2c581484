"""An engine without a container: its unit, its start, verify.py's checks, and what is refused."""

import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest
from bundles import NODES, NodeFolder, on_node
from node_programs import loaded
from programs import require
from stand_ins import StandIns

from generator.pipeline import read_site
from generator.verify.checks import on_a_machine
from generator.verify.programs import run

FOLDERS = [folder for folder in NODES if folder.part.engine.venv]
UNIT = "etc/systemd/system/sparkgen-engine.service"
SITE = """\
version: 1
name: lab
nodes: [{name: spark1}]
topology: {kind: single}
model: {name: gpt-oss-20b}
engine: {name: vllm, version: 0.33.0, venv: /opt/vllm}
"""


def rules(text: str) -> list[str]:
    return [finding.rule for finding in read_site("lab.yaml", text.encode()).findings]


def verifier() -> tuple[ModuleType, ModuleType]:
    """verify.py, and the module of what programs answer, without what other tests have loaded."""
    for name in ("node", "running", "services", "network", "weights"):
        sys.modules.pop(name, None)
    return loaded("node/verify.py"), sys.modules["node"]


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_unit_is_hardened_and_leaves_the_devices(folder: NodeFolder, tmp_path: Path) -> None:
    require("systemd-analyze")
    tree = folder.copy(tmp_path)
    if not (tree / UNIT).exists():
        assert (tree / "opt/sparkgen/serve.sbatch").exists()
        return
    on_a_machine(tree)
    done = run("systemd-analyze", "verify", f"--root={tree}", "--man=no", Path(UNIT).name)
    assert (done.returncode, done.stderr) == (0, "")
    options = ("--offline=true", "--no-pager", "--threshold=40")
    assert run("systemd-analyze", "security", *options, str(tree / UNIT)).returncode == 0
    unit = (tree / UNIT).read_text()
    # Each of these implies a list of devices without the GPU and RDMA (systemd.exec(5)).
    assert not re.search(r"^(PrivateDevices|ProtectClock|DevicePolicy|DeviceAllow)=", unit, re.M)
    assert "LimitMEMLOCK=infinity\n" in unit
    assert "docker" not in unit
    assert not (tree / "opt/sparkgen/compose.yaml").exists()


def test_login_gets_what_only_root_may_read(tmp_path: Path) -> None:
    """As systemd starts it: credentials in their own folder, and caches that persist."""
    folder = next(folder for folder in FOLDERS if folder.node.is_head)
    stand_ins = StandIns(tmp_path)
    program = folder.member.container.entrypoint
    first, *rest = stand_ins.add(program).read_text().splitlines()
    # The real secrets.sh hands over the secrets.
    handed = '[[ $1 != */secrets.sh ]] || exec /bin/bash "$@"'
    stand_ins.add(program, "\n".join([first, handed, *rest, ""]))
    tree = folder.copy(tmp_path / "node")
    secrets = tree / "etc/sparkgen/secrets.env"
    credentials = tree / "etc/sparkgen/credentials"
    credentials.mkdir()
    secrets.rename(credentials / "secrets.env")
    stand_ins.env |= {
        "CREDENTIALS_DIRECTORY": "/etc/sparkgen/credentials",
        "CACHE_DIRECTORY": "/var/cache/sparkgen",
    }
    arguments = stand_ins.replaced(program, *on_node(tree, "/bin/bash", "/opt/sparkgen/launch.sh"))
    assert ["/opt/sparkgen/secrets.sh", program, *arguments] == folder.command
    seen = stand_ins.environment(program)
    venv = folder.part.engine.venv
    assert seen["PATH"] == f"{venv}/bin:{stand_ins.env['PATH']}"
    assert seen["VIRTUAL_ENV"] == venv
    assert folder.secrets.items() <= seen.items()
    assert seen["VLLM_CACHE_ROOT"] == "/var/cache/sparkgen/vllm"


@pytest.mark.parametrize(
    ("installed", "line"),
    [
        ("0.33.0+cu130", "ok venv vllm 0.33.0+cu130 in VENV"),
        ("0.32.0", "fail venv VENV has vllm 0.32.0, and the site expects 0.33.0"),
        ("", "fail venv VENV has no vllm"),
    ],
)
def test_verify_compares_the_release(installed: str, line: str, tmp_path: Path) -> None:
    verify, answers = verifier()
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/vllm").touch(0o755)
    node = verify.Node(FOLDERS[0].path, verify.Options(), run=lambda *words: answer)
    answer = answers.Answer(bool(installed), installed)
    (engine,) = node.engines
    engine.venv, engine.release = f"{tmp_path}/venv", "0.33.0"
    (found,) = node.check_all(["venv"])
    assert f"{found.status.lower()} venv {found.found}" == line.replace("VENV", engine.venv)


RIGHT = "OK image, arguments, environment, mounts and files are those of the bundle"
OTHER = "FAIL applied, not restarted: the engine runs with "


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("", "", RIGHT),
        ("--port=8000", "--port=9000", f"{OTHER}the argument --port=9000 instead of --port=8000"),
        ("HF_HUB_CACHE=", "HF_HUB_CACHE=/tmp", f"{OTHER}HF_HUB_CACHE in its environment"),
    ],
)
def test_process_is_compared_with_the_bundle(
    old: str, new: str, found: str, tmp_path: Path
) -> None:
    verify, answers = verifier()
    folder = next(folder for folder in FOLDERS if folder.node.is_head).path
    node = verify.Node(
        folder, verify.Options(), tmp_path, run=lambda *words: answers.Answer(True, "77")
    )
    (engine,) = node.engines
    assert [one.status for one in node.check_all(["running"])] == ["SKIP"]
    program = re.search(r"^arguments=\(\n(.*?)^\)$", node.own(engine.script) + "\n", re.M | re.S)
    assert program
    words = ["/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", *shlex.split(program[1])]
    process = tmp_path / "proc/77"
    process.mkdir(parents=True)
    given = {"cmdline": words, "environ": node.own("etc/sparkgen/engine.env").split("\n")}
    for name, texts in given.items():
        text = "".join(f"{text}\0" for text in texts)
        assert name == "cmdline" or "HF_HUB_CACHE=" in text
        (process / name).write_text(text.replace(old, new) if old else text)
    (result,) = node.check_all(["running"])
    assert f"{result.status} {result.found}" == found
    assert ("systemctl restart sparkgen-engine" in result.do) is (found != RIGHT)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", []),
        (", args: {chat-template: /srv/chat.jinja}", []),
        (", container: {memory: 100g, ulimits: {nofile: 4096}}", []),
        (", image: example.org/e:1", ["SG614"]),
        (", container: {shm: 32g}", ["SG615"]),
        (", container: {hardened: true}", ["SG615"]),
        (", files: [{path: /srv/a, target: /srv/b}]", ["SG615"]),
        (", files: [{path: /srv/a}]", []),
    ],
)
def test_settings_beside_a_virtual_environment(more: str, expected: list[str]) -> None:
    assert rules(SITE.replace("/opt/vllm}", f"/opt/vllm{more}}}")) == expected


def test_image_or_environment_is_needed() -> None:
    assert rules(SITE.replace(", venv: /opt/vllm", "")) == ["SG102"]
    assert rules(SITE.replace("name: vllm, version: 0.33.0", "name: sglang, version: 0.5.23")) == []
