"""Every generated file is accepted by the program that reads it, and interpreted as intended."""

import re
import subprocess
from pathlib import Path

import pytest
from bundles import (
    BUNDLES,
    COMPOSED,
    IDLE,
    IN_GROUPS,
    NODES,
    Bundle,
    NodeFolder,
    composed_service,
    on_node,
)
from programs import require, require_root
from waiting import PATIENCE
from yamllint import linter
from yamllint.config import YamlLintConfig

from generator.bundle.payload import original
from generator.bundle.plan import CARRIED, is_context, payload
from generator.bundle.render import recipe
from generator.bundle.templates import printed
from generator.services.web_ui import WebUi
from generator.verify.checks import LINT, on_a_machine, unit_files

each_bundle = pytest.mark.parametrize("bundle", BUNDLES, ids=str)
each_node = pytest.mark.parametrize("folder", NODES, ids=str)
each_composed = pytest.mark.parametrize("folder", COMPOSED, ids=str)
CABLED = [folder for folder in NODES if folder.site.has_fabric]
NETPLAN = "etc/netplan/40-cx7.yaml"


def network(folder: NodeFolder) -> tuple[object, ...]:
    """A node's netplan file and the interfaces expected from it; some bundles share them."""
    found = recipe(folder.site, f"{folder.name}/{NETPLAN}")
    assert found
    lines = printed(found[0], **found[1]).splitlines()
    return folder.node.interfaces, *(line for line in lines if not line.startswith("#"))


NETWORKS = {network(folder): folder for folder in CABLED}.values()


def run(*argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE)


def assert_silent(*argv: str, cwd: Path | None = None) -> None:
    done = run(*argv, cwd=cwd)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Text


def test_files_are_known_before_the_build() -> None:
    for folder in (*NODES, *IN_GROUPS, *IDLE):
        assert folder.planned == {*folder.modes.items()}, folder


@each_node
def test_checksums(folder: NodeFolder) -> None:
    assert_silent("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS", cwd=folder.path)


def test_yaml() -> None:
    paths = (bundle.folder / path for bundle in BUNDLES for path in bundle.modes)
    files = {path.read_bytes(): path for path in paths if path.suffix in (".yaml", ".yml")}
    assert files
    config = YamlLintConfig(LINT)
    problems = [
        f"{path}:{problem}"
        for text, path in files.items()
        for problem in linter.run(text, config, str(path))
    ]
    assert problems == []


@each_bundle
def test_scripts(bundle: Bundle) -> None:
    require("shellcheck")
    generated = [path for path in bundle.modes if CARRIED not in path and not is_context(path)]
    texts = {path: (bundle.folder / path).read_bytes() for path in generated}
    scripts = {path for path, text in texts.items() if text.startswith(b"#!")}
    assert scripts == {path for path in generated if bundle.modes[path] & 0o111}
    read = {path for path in texts if path.endswith(".sh")} - scripts
    # Nodes share scripts: each is checked only once, and the payload has its own tests.
    checked = {path for path in scripts | read if original(path) not in payload()}
    files = {texts[path]: path for path in sorted(checked)}.values()
    assert_silent("shellcheck", "--severity=style", *files, cwd=bundle.folder)
    for path in files:
        is_login = "/etc/profile.d/" in path
        assert_silent("sh" if is_login else "bash", "-n", path, cwd=bundle.folder)


@each_node
def test_login(folder: NodeFolder) -> None:
    expected = {"SPARKGEN_SITE": folder.site.name, "SPARKGEN_RANK": str(folder.node.rank)}
    show = '. "$0/etc/profile.d/sparkgen.sh" && exec env --unset=PWD'
    done = run("env", "--ignore-environment", "sh", "-eu", "-c", show, str(folder.path))
    shown = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert (done.stderr, shown) == ("", expected | dict(folder.node.login))


# Network


def netplan(tree: Path) -> Path:
    """What netplan generates from a node's tree, as it does at boot, without any message."""
    require("netplan")
    assert_silent("netplan", "generate", "--root-dir", str(tree))
    return tree / "run"


def assert_files(pattern: str, root: Path, wanted: dict[str, set[str]]) -> None:
    """Netplan wrote a file for each of these interfaces, with at least these lines."""
    folder, name = (root / pattern).parent, Path(pattern).name
    assert {file.name for file in folder.glob(name.format("*"))} == set(map(name.format, wanted))
    for interface, lines in wanted.items():
        found = set((folder / name.format(interface)).read_text().splitlines())
        assert lines <= found
        other = found - lines
        assert not [line for line in other if re.match("DHCP|DNS|Gateway|Domains|dns", line)]


@pytest.mark.parametrize("folder", NETWORKS, ids=str)
def test_netplan(folder: NodeFolder, tmp_path: Path) -> None:
    wanted = {
        interface.name: {
            f"Name={interface.name}",
            f"MTUBytes={interface.mtu}",
            f"Address={interface.address}",
            "IPv6AcceptRA=no",
            "LinkLocalAddressing=no",
            "RequiredForOnline=no",
            *(f"Destination={route.to}/32" for route in folder.node.routes_from(interface)),
            *(f"Gateway={route.via}" for route in folder.node.routes_from(interface)),
        }
        for interface in folder.node.interfaces
    }
    assert_files("systemd/network/10-netplan-{}.network", netplan(folder.copy(tmp_path)), wanted)


def test_network_manager(tmp_path: Path) -> None:
    folder = CABLED[0]
    tree = folder.copy(tmp_path)
    file = tree / NETPLAN
    rendered = r"\1      renderer: NetworkManager\n"
    file.write_text(re.sub(r"(^    en\w+:\n)", rendered, file.read_text(), flags=re.MULTILINE))
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
    """A node's tree, with the machine's units and programs on which its own units depend."""
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
    # systemd-analyze checks only the first program of each kind.
    for unit in unit_files(tree):
        for path in re.findall(r"^Exec\w+=[-@:+!]*/(\S+)", unit.read_text(), re.MULTILINE):
            assert (tree / path).stat().st_mode & 0o111, path


# The texts of units that have been looked at: many nodes have the same ones.
HARDENED: set[str] = set()


@each_composed
def test_units_are_hardened(folder: NodeFolder, tmp_path: Path) -> None:
    """An exposure of at most 4.0 of 10, where 10 is a service with all of root's permissions."""
    require("systemd-analyze")
    options = ("--offline=true", "--no-pager", "--threshold=40")
    # A timer runs nothing itself.
    services = [unit for unit in unit_files(folder.copy(tmp_path)) if unit.suffix == ".service"]
    for unit in services:
        if (text := unit.read_text()) in HARDENED:
            continue
        HARDENED.add(text)
        done = run("systemd-analyze", "security", *options, str(unit))
        assert done.returncode == 0, done.stdout.splitlines()[-1]


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


# The web page


PAGES = [folder for folder in NODES if "web_ui" in folder.site.services and folder.node.is_head]


@pytest.mark.parametrize("folder", PAGES, ids=str)
def test_web_ui(folder: NodeFolder, tmp_path: Path) -> None:
    tree = folder.copy(tmp_path)
    unit = (tree / "etc/systemd/system/sparkgen-web-ui.service").read_text()
    (options,) = re.findall(
        r"^ExecStartPre=\S+ compose --file (.*) up --no-start$", unit, re.MULTILINE
    )
    service = composed_service(tree, "sparkgen-web-ui", "web-ui", *options.split())
    page, health = WebUi.of(folder.site), folder.member.container.health
    assert page
    assert health
    assert service["image"] == page.image
    assert service["network_mode"] == "host"
    assert "ports" not in service
    assert service["restart"] == "no"
    environment = service["environment"]
    assert environment["OPENAI_API_BASE_URL"] == f"{health.url}/v1"
    key = folder.part.engine.key
    # Secrets are not in the container's own environment, which `docker inspect` would show.
    assert environment.get("OPENAI_API_KEY") == (None if key else "none")
    assert not environment.keys() & {"VLLM_API_KEY", "HF_TOKEN"}
    assert (environment["HOST"], environment["PORT"]) == (page.listen, str(page.port))
    assert environment["WEBUI_AUTH"] == "true"
    assert not environment.keys() & {"WEBUI_ADMIN_EMAIL", "WEBUI_ADMIN_PASSWORD"}
    # Nobody becomes administrator just by being the first to sign up.
    assert environment["ENABLE_SIGNUP"] == "false"
    assert (service["cap_drop"], service["read_only"]) == (["ALL"], True)
    assert service["healthcheck"]["test"][-1] == f"{page.url}/health"
    script, secrets, volume = service["volumes"]
    assert service["entrypoint"] == ["bash", script["target"]]
    assert (secrets["source"], secrets["read_only"]) == ("/run/sparkgen-web-ui", True)
    # Docker initializes a new named volume from the image, but never a bind-mounted folder.
    assert (volume["type"], volume["target"]) == ("volume", "/app/backend/data")
    assert environment["WEBUI_SECRET_KEY_FILE"].startswith(volume["target"])


_PAGE = """\
mount -t tmpfs tmpfs /run && mkdir /run/sparkgen-web-ui
{script} --prepare || exit
stat -c %a /run/sparkgen-web-ui/env
cd /run && echo 'env' >start.sh && exec env -i PATH="$PATH" bash {script}
"""


@pytest.mark.parametrize("folder", PAGES, ids=str)
def test_web_ui_gets_its_secrets(folder: NodeFolder, tmp_path: Path) -> None:
    tree = folder.copy(tmp_path)
    with (tree / "etc/sparkgen/secrets.env").open("a") as file:
        file.write("WEBUI_ADMIN_PASSWORD=a $word=`of` \\ many\n")
    script = _PAGE.format(script="/opt/sparkgen/web-ui.sh")
    done = run(*on_node(tree, "sh", "-c", script))
    assert (done.returncode, done.stderr) == (0, "")
    mode, *lines = done.stdout.splitlines()
    env = dict(line.partition("=")[::2] for line in lines)
    assert mode == "600"
    assert env["WEBUI_ADMIN_PASSWORD"] == "a $word=`of` \\ many"
    assert env["WEBUI_ADMIN_EMAIL"] == folder.secrets["WEBUI_ADMIN_EMAIL"]
    key = folder.part.engine.key
    assert env.get("OPENAI_API_KEY") == (folder.secrets[key] if key else None)
    assert not env.keys() & {"HF_TOKEN", "VLLM_API_KEY"}
    (tree / "etc/sparkgen/secrets.env").write_text("WEBUI_ADMIN_EMAIL=a@example.org\n")
    missing = run(*on_node(tree, "sh", "-c", script))
    assert missing.returncode == 1
    assert "no value for" in missing.stderr
