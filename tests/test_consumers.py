"""Every generated file is taken by the program that it is for, and understood as it was meant."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bundles import (
    BUNDLES,
    COMPOSED,
    NODES,
    Bundle,
    NodeFolder,
    composed,
    composed_service,
    on_node,
)
from programs import require, require_root

from generator.site import Container
from generator.verify.checks import LINT, on_a_machine, unit_files

each_bundle = pytest.mark.parametrize("bundle", BUNDLES, ids=str)
each_node = pytest.mark.parametrize("folder", NODES, ids=str)
each_composed = pytest.mark.parametrize("folder", COMPOSED, ids=str)
CABLED = [folder for folder in NODES if folder.site.has_fabric]


def run(*argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=60)


def assert_silent(*argv: str, cwd: Path | None = None) -> None:
    done = run(*argv, cwd=cwd)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Text


@each_node
def test_checksums(folder: NodeFolder) -> None:
    assert_silent("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS", cwd=folder.path)


@each_bundle
def test_yaml(bundle: Bundle) -> None:
    files = [str(bundle.folder / path) for path in bundle.modes if path.endswith((".yaml", ".yml"))]
    assert_silent(sys.executable, "-m", "yamllint", "--strict", "-d", LINT, *files)


@each_bundle
def test_scripts(bundle: Bundle) -> None:
    require("shellcheck")
    texts = {path: (bundle.folder / path).read_bytes() for path in bundle.modes}
    scripts = {path for path, text in texts.items() if text.startswith(b"#!")}
    assert scripts == {path for path, mode in bundle.modes.items() if mode & 0o111}
    read = {path for path in texts if "/etc/profile.d/" in path}
    # Nodes have scripts in common: each is looked at once.
    files = {texts[path]: path for path in sorted(scripts | read)}.values()
    assert_silent("shellcheck", "--severity=style", *files, cwd=bundle.folder)
    for path in files:
        assert_silent("sh" if path in read else "bash", "-n", path, cwd=bundle.folder)


@each_node
def test_login(folder: NodeFolder) -> None:
    given = {"SPARKGEN_SITE": folder.site.name, "SPARKGEN_RANK": str(folder.node.rank)}
    show = '. "$0/etc/profile.d/sparkgen.sh" && exec env --unset=PWD'
    done = run("env", "--ignore-environment", "sh", "-eu", "-c", show, str(folder.path))
    shown = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert (done.stderr, shown) == ("", given | dict(folder.node.login))


# Network


def netplan(tree: Path) -> Path:
    """What netplan makes of a node's tree, as it does at boot, and without a word."""
    require("netplan")
    assert_silent("netplan", "generate", "--root-dir", str(tree))
    return tree / "run"


def assert_files(pattern: str, made: Path, wanted: dict[str, set[str]]) -> None:
    """Netplan wrote a file for each of these interfaces, with these lines at least."""
    folder, name = (made / pattern).parent, Path(pattern).name
    assert {file.name for file in folder.glob(name.format("*"))} == set(map(name.format, wanted))
    for interface, lines in wanted.items():
        found = set((folder / name.format(interface)).read_text().splitlines())
        assert lines <= found
        assert not [line for line in found if re.match("DHCP|DNS|Gateway|Domains|dns", line)]


@pytest.mark.parametrize("folder", CABLED, ids=str)
def test_netplan(folder: NodeFolder, tmp_path: Path) -> None:
    wanted = {
        interface.name: {
            f"Name={interface.name}",
            f"MTUBytes={interface.mtu}",
            f"Address={interface.address}",
            "IPv6AcceptRA=no",
            "LinkLocalAddressing=no",
            "RequiredForOnline=no",
        }
        for interface in folder.node.interfaces
    }
    assert_files("systemd/network/10-netplan-{}.network", netplan(folder.copy(tmp_path)), wanted)


def test_network_manager(tmp_path: Path) -> None:
    folder = CABLED[0]
    tree = folder.copy(tmp_path)
    file = tree / "etc/netplan/40-cx7.yaml"
    version = "  version: 2\n"
    rendered = f"{version}  renderer: NetworkManager\n"
    file.write_text(file.read_text().replace(version, rendered))
    wanted = {
        interface.name: {
            f"interface-name={interface.name}",
            f"mtu={interface.mtu}",
            f"address1={interface.address}",
            "method=manual",
            "method=ignore",
        }
        for interface in folder.node.interfaces
    }
    files = "NetworkManager/system-connections/netplan-{}.nmconnection"
    assert_files(files, netplan(tree), wanted)


@pytest.mark.parametrize("folder", [node for node in NODES if node.site.workers], ids=str)
def test_hosts(folder: NodeFolder, tmp_path: Path) -> None:
    require_root()
    tree = folder.copy(tmp_path)
    (tree / "etc/sparkgen/hosts").rename(tree / "etc/hosts")
    names = [name for _, name in folder.node.hosts]
    done = run(*on_node(tree, "getent", "--service=files", "ahostsv4", *names))
    found = re.findall(r"^(\S+) +STREAM (\S+)$", done.stdout, re.MULTILINE)
    assert found == [(str(address), name) for address, name in folder.node.hosts]


# systemd


def machine(folder: NodeFolder, target: Path) -> Path:
    """A node's tree, with the units and programs of the machine that its own units need."""
    tree = folder.copy(target)
    on_a_machine(tree)
    return tree


def verify(tree: Path) -> subprocess.CompletedProcess[str]:
    require("systemd-analyze")
    options = (f"--root={tree}", "--man=no", "--recursive-errors=yes")
    return run("systemd-analyze", "verify", *options, *(unit.name for unit in unit_files(tree)))


@each_composed
def test_units(folder: NodeFolder, tmp_path: Path) -> None:
    tree = machine(folder, tmp_path)
    done = verify(tree)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # systemd-analyze looks for the first program of each kind only.
    for unit in unit_files(tree):
        for path in re.findall(r"^Exec\w+=[-@:+!]*/(\S+)", unit.read_text(), re.MULTILINE):
            assert (tree / path).stat().st_mode & 0o111, path


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("KillMode=", "KillMod=", "Unknown key 'KillMod' in section [Service]"),
        ("RestartSec=30", "RestartSec=soon", "Failed to parse sec value"),
        ("Requires=docker.service", "Requires=dock.service", "Unit dock.service not found"),
        ("ExecStart=/usr", "ExecStart=/opt", "Command /opt/bin/docker is not executable"),
    ],
)
def test_faulty_unit(right: str, wrong: str, complaint: str, tmp_path: Path) -> None:
    tree = machine(NODES[0], tmp_path)
    unit = tree / "etc/systemd/system/sparkgen-engine.service"
    unit.write_text(unit.read_text().replace(right, wrong))
    done = verify(tree)
    assert done.returncode != 0
    assert complaint in done.stderr


# Compose


@each_composed
def test_compose(folder: NodeFolder, tmp_path: Path) -> None:
    container = folder.node.container
    assert composed(folder.copy(tmp_path)) == {
        "container_name": "sparkgen-engine",
        "image": container.image,
        "entrypoint": [container.entrypoint],
        "command": folder.command,
        "environment": folder.node.env | folder.secrets,
        "volumes": [
            {"type": "bind", "source": mount.path, "target": mount.path}
            | ({"read_only": True} if mount.read_only else {})
            | {"bind": {"create_host_path": True}}
            for mount in container.mounts
        ],
        "network_mode": "host",
        "ipc": "private",
        "shm_size": str(container.shm_size_gib << 30),
        "cap_add": ["IPC_LOCK"],
        "security_opt": ["no-new-privileges:true"],
        "deploy": {"resources": {"reservations": {"devices": [GPU]}}, "placement": {}},
        "ulimits": {
            "memlock": {"soft": -1, "hard": -1},
            "nofile": {"soft": 1 << 20, "hard": 1 << 20},
            "stack": {"soft": 64 << 20, "hard": 64 << 20},
        },
        "init": True,
        "restart": "no",
        "stop_grace_period": duration(container.stop_seconds),
        "healthcheck": healthcheck(container),
        "logging": {"driver": "local", "options": {"max-size": "50m", "max-file": "5"}},
    } | devices(container)


PAGES = [folder for folder in NODES if folder.site.web_ui and folder.node.is_head]


@pytest.mark.parametrize("folder", PAGES, ids=str)
def test_web_ui(folder: NodeFolder, tmp_path: Path) -> None:
    tree = folder.copy(tmp_path)
    unit = (tree / "etc/systemd/system/sparkgen-web-ui.service").read_text()
    (started,) = re.findall(r"^ExecStart=\S+ compose --file (.*) up ", unit, re.MULTILINE)
    service = composed_service(tree, "sparkgen-web-ui", "web-ui", *started.split())
    page, health = folder.site.web_ui, folder.node.container.health
    assert page
    assert health
    assert service["image"] == page.image
    assert service["network_mode"] == "host"
    assert "ports" not in service
    assert service["restart"] == "no"
    environment = service["environment"]
    assert environment["OPENAI_API_BASE_URL"] == f"{health.url}/v1"
    key = folder.site.engine.key
    assert environment["OPENAI_API_KEY"] == (folder.secrets[key] if key else "none")
    assert not environment.keys() & {"VLLM_API_KEY", "HF_TOKEN"}
    assert (environment["HOST"], environment["PORT"]) == (page.listen, str(page.port))
    assert environment["WEBUI_AUTH"] == "true"
    assert service["healthcheck"]["test"][-1] == f"{page.url}/health"
    (volume,) = service["volumes"]
    # Docker fills a new named volume from the image, and never a folder.
    assert (volume["type"], volume["target"]) == ("volume", "/app/backend/data")
    assert environment["WEBUI_SECRET_KEY_FILE"].startswith(volume["target"])


GPU = {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}


def devices(container: Container) -> dict[str, Any]:
    """Without a device, Compose leaves the key out."""
    paths = container.devices
    device = [{"source": path, "target": path, "permissions": "rwm"} for path in paths]
    return {"devices": device} if device else {}


def healthcheck(container: Container) -> dict[str, Any]:
    health = container.health
    if health is None:
        return {"disable": True}
    return {
        "test": list(health.test),
        "start_period": duration(health.start_seconds),
        "interval": duration(health.interval_seconds),
        "timeout": duration(health.timeout_seconds),
        "retries": health.retries,
    }


def duration(seconds: int) -> str:
    """Seconds as Compose prints them."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
