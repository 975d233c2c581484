"""install.sh brings a node to the state in its folder, and back again, whatever happens.

It runs in a folder that stands for the node's root, and once for real in its own namespaces, where
only netplan and systemctl are stand-ins.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from bundles import BUILT, IDLE, IN_GROUPS, NODES, NodeFolder, covering
from programs import program, require, require_root
from waiting import PATIENCE

LAB_MESH = next(folder for folder in NODES if str(folder) == "lab-mesh/spark1")
SINGLE = next(folder for folder in NODES if str(folder) == "single/spark")
WITH_SECRETS = next(folder for folder in NODES if folder.part.engine.secrets)
ALTERNATIVES = next(f for f in IN_GROUPS if str(f) == "golden-groups-alternatives/spark1")


def shape(folder: NodeFolder) -> set[object]:
    """What matters to install.sh: paths, modes, and whether there are secrets and a Slurm job."""
    is_job = folder not in IDLE and folder.part.engine.is_slurm_job
    secrets = bool(folder.site.secrets(folder.node))
    return {*folder.planned, ("secrets", secrets), ("job", is_job)}


SHAPES = covering((*NODES, *IDLE), shape)
UNIT_AND_JOB = covering(NODES, lambda folder: {folder.part.engine.is_slurm_job})

HOSTS = "127.0.0.1 localhost\n127.0.1.1 spark-1a2b\n\n::1 ip6-localhost\n"
BACKUPS = "var/backups/sparkgen"
UNIT = "etc/systemd/system/sparkgen-engine.service"
LINK = "etc/systemd/system/multi-user.target.wants/sparkgen-engine.service"
INSTALLED, RECORD = "etc/sparkgen/installed", "etc/sparkgen/bundle/SHA256SUMS"

Snapshot = Mapping[str, tuple[int, str]]


def fresh(root: Path, name: str) -> Path:
    """A node as DGX OS leaves it."""
    files = {
        "etc/hostname": f"{name}\n",
        "etc/hosts": HOSTS,
        "etc/nccl.conf": "NCCL_IB_DISABLE=1\n",
        "etc/netplan/01-network-manager-all.yaml": "network: {renderer: NetworkManager}\n",
        "etc/netplan/90-NM-0a1b.yaml": "network: {ethernets: {NM: {match: {name: enP7s7}}}}\n",
        "etc/sysctl.d/10-map-count.conf": "vm.max_map_count = 1048576\n",
    }
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o600 if "netplan" in path else 0o644)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return fresh(tmp_path / "root", "spark1")


def install(
    folder: NodeFolder | Path, root: Path, *options: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    script = (folder.path if isinstance(folder, NodeFolder) else folder) / "install.sh"
    return subprocess.run(
        [str(script), "--root", str(root), *options],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        start_new_session=True,
    )


def done(result: subprocess.CompletedProcess[str]) -> str:
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def refused(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 2
    return result.stderr


def snapshot(root: Path) -> Snapshot:
    """Every file and link with its mode and content or target, except backups."""
    return {
        path.relative_to(root).as_posix(): (
            path.lstat().st_mode,
            str(path.readlink()) if path.is_symlink() else path.read_text(errors="replace"),
        )
        for path in sorted(root.rglob("*"))
        if (path.is_symlink() or path.is_file()) and not path.is_relative_to(root / BACKUPS)
    }


_EACH_KIND = {
    "etc/netplan/40-cx7.yaml",
    "etc/sparkgen/hosts",
    "etc/sparkgen/node.env",
    UNIT,
    "opt/sparkgen/launch.sh",
}
_PROGRAMS = ("install.sh", "conditions.sh", "owners.py")


@cache
def small_bundle() -> Path:
    """A node's folder with one file of each kind that install.sh treats specially, to read only."""
    tree = Path(tempfile.mkdtemp(dir=os.environ[BUILT])) / LAB_MESH.name
    for path in (*_EACH_KIND, *_PROGRAMS):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(LAB_MESH.path / path, tree / path)
    sums = (LAB_MESH.path / "SHA256SUMS").read_text().splitlines(keepends=True)
    kept = (line for line in sums if line.split()[1] in (*_EACH_KIND, *_PROGRAMS))
    (tree / "SHA256SUMS").write_text("".join(kept))
    return tree


# From the first install to the last


@pytest.mark.parametrize("folder", SHAPES, ids=str)
def test_uninstall_restores_the_first_state(folder: NodeFolder, tmp_path: Path) -> None:
    root = fresh(tmp_path / "root", folder.name)
    before = snapshot(root)
    assert install(folder, root).returncode == 1
    assert snapshot(root) == before
    done(install(folder, root, "--apply"))
    after = snapshot(root)
    assert modes(root, after) == expected_modes(folder)
    assert after["etc/hosts"][1] == HOSTS + marked(folder)
    for path in files_of(folder):
        assert after[path][1] == (folder.path / path).read_text(errors="replace")

    done(install(folder, root, "--uninstall"))
    assert snapshot(root) == before
    assert not list(root.glob("*/sparkgen"))


@pytest.mark.parametrize("folder", UNIT_AND_JOB, ids=str)
def test_apply_mends_and_rollback_restores(folder: NodeFolder, tmp_path: Path) -> None:
    root = fresh(tmp_path / "root", folder.name)
    before = snapshot(root)
    done(install(folder, root, "--apply"))
    after = snapshot(root)
    for again in ("--apply", "--check"):
        assert done(install(folder, root, again)) == "there is nothing to change\n"
        assert snapshot(root) == after
    assert len(list((root / BACKUPS).iterdir())) == 1

    (root / "etc/nccl.conf").write_text("NCCL_TAMPERED=1\n")
    unit = UNIT if UNIT in after else "opt/sparkgen/options.yaml"
    script = "opt/sparkgen/launch.sh" if UNIT in after else "opt/sparkgen/serve.sbatch"
    (root / script).chmod(0o644)
    (root / unit).unlink()
    tampered = snapshot(root)
    shown = install(folder, root)
    assert shown.returncode == 1
    assert "\n-NCCL_TAMPERED=1\n" in shown.stdout
    assert f"/{script}: regular file, mode 0644" in shown.stdout
    assert f"/{unit}: nothing becomes regular file" in shown.stdout
    assert "--- /etc/hosts" not in shown.stdout
    done(install(folder, root, "--apply"))
    assert snapshot(root) == after

    done(install(folder, root, "--rollback"))
    assert snapshot(root) == tampered
    done(install(folder, root, "--rollback"))
    assert snapshot(root) == before
    assert "nothing to put back" in done(install(folder, root, "--rollback"))
    done(install(folder, root, "--apply"))
    done(install(folder, root, "--uninstall"))
    assert snapshot(root) == before
    assert not list(root.glob("*/sparkgen"))


RESTART = "sudo systemctl reset-failed 'sparkgen-*'; sudo systemctl restart"


@pytest.mark.parametrize(
    ("bundle", "path", "last"),
    [
        ("pair-chatbot", "opt/sparkgen/web-ui.yaml", f"{RESTART} sparkgen-web-ui"),
        ("pair-chatbot", "etc/nccl.conf", f"{RESTART} sparkgen-engine"),
        ("slurm-trtllm", "etc/nccl.conf", "sbatch /opt/sparkgen/serve.sbatch on spark1"),
    ],
)
def test_apply_names_the_units_to_restart(bundle: str, path: str, last: str, root: Path) -> None:
    """Start limits that were reached are reset, because a person has dealt with the cause."""
    folder = next(folder for folder in NODES if str(folder) == f"{bundle}/spark1")
    page = " sparkgen-web-ui" if "web_ui" in folder.site.services else ""
    unit = f"{RESTART} sparkgen-engine{page}"
    output = done(install(folder, root, "--apply"))
    first = last if folder.part.engine.is_slurm_job else unit
    assert output.endswith(f"\ndone; once all nodes are: {first}\n")
    (root / path).write_text("tampered\n")
    output = done(install(folder, root, "--apply"))
    assert output == f"/{path}\ndone; once all nodes are: {last}\n"


def files_of(folder: NodeFolder) -> set[str]:
    """The part of a node's folder that is installed: its root tree."""
    return {path for path in folder.modes if path.startswith(("etc/", "opt/"))}


def expected_modes(folder: NodeFolder) -> dict[str, int]:
    """The modes in the manifest, and those of files that install.sh creates itself."""
    of_files = {path: folder.modes[path] for path in files_of(folder)}
    secrets = {"etc/sparkgen/secrets.env": 0o600} if folder.site.secrets(folder.node) else {}
    units = [Path(path) for path in of_files if Path(path).parent == Path(UNIT).parent]
    # Units without [Install] are started by a timer.
    wanted = [unit.name for unit in units if "[Install]" in (folder.path / unit).read_text()]
    links = {str(Path(LINK).with_name(unit)): 0o777 for unit in wanted}
    record = {RECORD: 0o644, str(Path(RECORD).with_name("site.yaml")): 0o644}
    return of_files | secrets | links | {INSTALLED: 0o644, **record}


def modes(root: Path, files: Snapshot) -> dict[str, int]:
    existing = snapshot(fresh(root.with_name("existing"), "any")).keys() - {"etc/nccl.conf"}
    return {path: mode & 0o777 for path, (mode, _) in files.items() if path not in existing}


def marked(folder: NodeFolder) -> str:
    """The lines that are added to /etc/hosts."""
    file = folder.path / "etc/sparkgen/hosts"
    return f"# begin sparkgen\n{file.read_text()}# end sparkgen\n" if file.exists() else ""


def test_secrets_are_made_once(tmp_path: Path) -> None:
    root = fresh(tmp_path / "root", WITH_SECRETS.name)
    secrets = root / "etc/sparkgen/secrets.env"
    done(install(WITH_SECRETS, root, "--apply"))
    assert (secrets.read_text(), secrets.stat().st_mode & 0o777) == ("", 0o600)
    secrets.write_text("HF_TOKEN=abc\n")
    secrets.chmod(0o640)
    assert done(install(WITH_SECRETS, root, "--apply")) == "there is nothing to change\n"
    done(install(WITH_SECRETS, root, "--uninstall"))
    assert (secrets.read_text(), secrets.stat().st_mode & 0o777) == ("HF_TOKEN=abc\n", 0o640)
    assert not [path for path in (root / BACKUPS).rglob("*") if "abc" in text(path)]


def text(path: Path) -> str:
    return path.read_text() if path.is_file() and not path.is_symlink() else ""


def changed_bundle(folder: NodeFolder, target: Path) -> Path:
    """The folder of another version of the site, with one more unit and one script less."""
    tree = target / folder.name
    shutil.copytree(folder.path, tree)
    (tree / "opt/sparkgen/launch.sh").unlink()
    (tree / "opt/sparkgen/old.sh").write_text("#!/bin/sh\ntrue\n")
    unit = (tree / UNIT).read_text().replace("vLLM", "an older vLLM")
    (tree / UNIT).write_text(unit)
    (tree / UNIT.replace("engine", "old")).write_text(unit)
    lines = subprocess.run(
        "sha256sum $(find etc opt -type f) install.sh >SHA256SUMS",
        shell=True,
        cwd=tree,
        check=False,
    )
    assert lines.returncode == 0
    return tree


def test_update_removes_what_is_gone(tmp_path: Path, root: Path) -> None:
    done(install(changed_bundle(LAB_MESH, tmp_path), root, "--apply"))
    old = snapshot(root)
    gone = {"opt/sparkgen/old.sh", UNIT.replace("engine", "old"), LINK.replace("engine", "old")}
    assert gone <= old.keys()
    done(install(LAB_MESH, root, "--apply"))
    new = snapshot(root)
    assert old.keys() - new.keys() == gone
    assert new.keys() - old.keys() == {"opt/sparkgen/launch.sh"}
    done(install(LAB_MESH, root, "--rollback"))
    assert snapshot(root) == old


def test_disabled_unit_stays_disabled(root: Path) -> None:
    done(install(LAB_MESH, root, "--apply"))
    (root / LINK).unlink()
    assert done(install(LAB_MESH, root, "--apply")) == "there is nothing to change\n"


def test_refresh_of_the_gpus_specification_is_enabled_and_undone(root: Path) -> None:
    folder = root / "usr/lib/systemd/system"
    folder.mkdir(parents=True)
    units = ("nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service")
    for unit in units:
        (folder / unit).touch()
    links = [root / LINK.replace(Path(LINK).name, unit) for unit in units]
    links[0].parent.mkdir(parents=True)
    links[0].symlink_to("/lib/systemd/system/nvidia-cdi-refresh.path")  # the administrator's
    before = snapshot(root)
    assert f"/{links[1].relative_to(root)}: nothing becomes" in install(LAB_MESH, root).stdout
    done(install(LAB_MESH, root, "--apply"))
    assert [str(link.readlink()) for link in links] == [
        "/lib/systemd/system/nvidia-cdi-refresh.path",
        "/usr/lib/systemd/system/nvidia-cdi-refresh.service",
    ]
    assert install(LAB_MESH, root).returncode == 0
    links[1].unlink()
    assert install(LAB_MESH, root).returncode == 0, "it is its admin's to disable"
    done(install(LAB_MESH, root, "--uninstall"))
    assert snapshot(root) == before


@pytest.mark.parametrize("action", ["--rollback", "--uninstall"])
def test_link_of_what_was_switched_to_goes_with_its_unit(action: str, root: Path) -> None:
    before = snapshot(root)
    done(install(ALTERNATIVES, root, "--apply"))
    wants = root / Path(LINK).parent
    # What switch.sh makes systemctl do.
    (wants / "sparkgen-engine-chat.service").unlink()
    (wants / "sparkgen-engine-tiny.service").symlink_to(
        "/etc/systemd/system/sparkgen-engine-tiny.service"
    )
    after = snapshot(root)
    assert done(install(ALTERNATIVES, root, "--apply")) == "there is nothing to change\n"
    assert snapshot(root) == after, "it is what was switched to that starts after a boot"
    done(install(ALTERNATIVES, root, action))
    assert snapshot(root) == before


def test_first_state_comes_back(root: Path) -> None:
    netplan = root / "etc/netplan/40-cx7.yaml"
    netplan.write_text("network: {ethernets: {enp1s0f0np0: {dhcp4: true}}}\n")
    (root / "etc/nccl.conf").unlink()
    (root / "etc/nccl.conf").symlink_to("/usr/share/nccl.conf")
    before = snapshot(root)
    done(install(LAB_MESH, root, "--apply"))
    (root / UNIT).write_text("[Unit]\n")
    done(install(LAB_MESH, root, "--apply"))
    done(install(LAB_MESH, root, "--uninstall"))
    assert snapshot(root) == before


# /etc/hosts and the host name


def test_other_lines_of_hosts_are_kept(root: Path) -> None:
    hosts = root / "etc/hosts"
    hosts.write_text(
        "127.0.0.1 localhost\n# begin sparkgen\n1.2.3.4 old\n# end sparkgen\n1.1.1.1 a"
    )
    hosts.chmod(0o664)
    done(install(LAB_MESH, root, "--apply"))
    assert hosts.read_text() == f"127.0.0.1 localhost\n1.1.1.1 a\n{marked(LAB_MESH)}"
    assert hosts.stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize(
    "lines",
    ["# begin sparkgen\n", "# end sparkgen\n# begin sparkgen\n", "# end sparkgen\n"],
)
def test_broken_markers(lines: str, root: Path) -> None:
    (root / "etc/hosts").write_text(HOSTS + lines)
    before = snapshot(root)
    assert "once, in this order, or neither" in refused(install(LAB_MESH, root, "--apply"))
    assert snapshot(root) == before


def test_set_hostname(root: Path) -> None:
    (root / "etc/hostname").write_text("spark-1a2b\n")
    before = snapshot(root)
    done(install(LAB_MESH, root, "--apply", "--set-hostname"))
    after = snapshot(root)
    assert after["etc/hostname"][1] == "spark1\n"
    assert after["etc/hosts"][1].startswith("127.0.1.1 spark1\n127.0.0.1 localhost\n\n::1 ")
    assert done(install(LAB_MESH, root, "--apply", "--set-hostname")).startswith("there is nothing")
    assert done(install(LAB_MESH, root, "--apply")).startswith("there is nothing")
    done(install(LAB_MESH, root, "--rollback"))
    assert snapshot(root) == before


def test_set_hostname_where_it_is_set(root: Path) -> None:
    """The line of the own name is nobody's business then, and none is left at the uninstall."""
    (root / "etc/hostname").write_text("spark1\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n127.0.1.1 spark1.lan spark1\n")
    before = snapshot(root)
    done(install(LAB_MESH, root, "--apply", "--set-hostname"))
    assert "127.0.1.1 spark1.lan spark1\n" in (root / "etc/hosts").read_text()
    done(install(LAB_MESH, root, "--apply"))
    (root / "etc/hosts").write_text((root / "etc/hosts").read_text() + "10.9.8.7 own\n")
    done(install(LAB_MESH, root, "--uninstall"))
    (root / "etc/hosts").write_text((root / "etc/hosts").read_text().replace("10.9.8.7 own\n", ""))
    assert snapshot(root) == before


# Refusals


@pytest.mark.parametrize("name", ["spark2\n", "", "spark10.lan\n"])
def test_wrong_host(name: str, root: Path) -> None:
    (root / "etc/hostname").write_text(name)
    before = snapshot(root)
    for action in ("--check", "--apply"):
        assert f"called '{name.strip()}', not spark1" in refused(
            install(small_bundle(), root, action)
        )
        assert snapshot(root) == before
    done(install(small_bundle(), root, "--apply", "--force-host"))
    assert snapshot(root) != before


def test_own_host_by_its_whole_name(root: Path) -> None:
    (root / "etc/hostname").write_text("spark1.lan\n")
    done(install(LAB_MESH, root, "--apply"))


@pytest.mark.parametrize("action", ["--check", "--apply"])
def test_tampered_bundle(action: str, tmp_path: Path, root: Path) -> None:
    tree = tmp_path / "spark1"
    shutil.copytree(LAB_MESH.path, tree)
    with (tree / "opt/sparkgen/launch.sh").open("a") as file:
        file.write("true\n")
    before = snapshot(root)
    result = install(tree, root, action)
    assert result.stdout == "opt/sparkgen/launch.sh: FAILED\n"
    assert "this is not what was generated: copy it again" in refused(result)
    assert snapshot(root) == before
    assert not list((root / BACKUPS).glob("*"))


NETPLAN = "network:\n  ethernets:\n    {}:\n      dhcp4: true\n"
ANY = "network: {{ethernets: {{any: {{{}, dhcp4: true}}}}}}\n"


def place_owners(root: Path, files: Mapping[str, str]) -> None:
    """A node with ports, and files about one of them that belong to somebody else."""
    require("netplan")
    place_ports(root)
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)


def place_ports(root: Path) -> None:
    """The first port, as it appears in the kernel's file systems."""
    device = root / "sys/devices/pci0000:00/0000:01:00.0"
    device.mkdir(parents=True)
    (device / "driver").symlink_to("../../../bus/pci/drivers/mlx5_core")
    (root / "sys/bus/pci/drivers/mlx5_core").mkdir(parents=True)
    folder = root / "sys/class/net/enp1s0f0np0"
    folder.mkdir(parents=True)
    (folder / "address").write_text("4c:bb:47:2e:00:01\n")
    (folder / "device").symlink_to("../../../devices/pci0000:00/0000:01:00.0")


# netplan's files are read together, those of networkd and NetworkManager each by itself.
CLAIMING_OF_NETPLAN = [
    ("etc/netplan/99-nvidia-sync-cluster.yaml", NETPLAN.format("enp1s0f0np0")),
    ("etc/netplan/98-spark-vllm-docker.yaml", NETPLAN.format('"enP2p1s0f1np1"')),
    ("usr/lib/netplan/99-rdma.yaml", "network: {ethernets: {enp1s0f1np1: {mtu: 9000}}}\n"),
    ("etc/netplan/90-NM-1.yaml", "network: {ethernets: {a: {match: {name: 'enp1s0f?np?'}}}}\n"),
    ("run/netplan/a.yaml", "network: {ethernets: {a: {match: {driver: mlx5_core}}}}\n"),
    ("run/netplan/40-cx7.yaml", NETPLAN.format("enp1s0f0np0")),
    ("etc/netplan/90-NM-2.yaml", ANY.format("match: {macaddress: '4c:bb:47:2e:00:01'}")),
    ("etc/netplan/90-NM-3.yaml", ANY.format("renderer: NetworkManager, match: {}")),
    (
        "etc/netplan/b.yaml",
        "network: {ethernets: {enp1s0f0np0: {}}, bonds: {b: {interfaces: [enp1s0f0np0]}}}\n",
    ),
    ("etc/netplan/c.yaml", "network: {vlans: {v: {id: 7, link: enp1s0f0np0}}}\n"),
    ("etc/netplan/d.yaml", "not netplan: [enp1s0f0np0\n"),
]
CLAIMING = {
    "etc/systemd/network/10-netplan-enp1s0f0np0.network.d/mine.conf": "[Link]\nMTUBytes=1500\n",
    "etc/systemd/network/10-mine.link": "[Match]\nOriginalName=en*\n\n[Link]\nMTUBytes=1500\n",
    "etc/network/interfaces.d/fabric": "auto enp1s0f0np0\niface enp1s0f0np0 inet dhcp\n",
    "etc/systemd/network/a.network": "[Match]\nName=enp1s0f0np0 enp1s0f1np1\n",
    "etc/systemd/network/20-wired.network": "[Match]\nType=ether\n\n[Network]\nDHCP=yes\n",
    "etc/systemd/network/20-mac.network": "[Match]\nMACAddress=4CBB.472E.0001\n",
    "etc/systemd/network/20-all.network": "[Network]\nDHCP=yes\n",
    "run/systemd/network/20-not.network": "[Match]\nName=!enP7s7 wl*\n",
    "etc/systemd/network/20-driver.network": "[Match]\nDriver=r8127 mlx5_*\n",
    "etc/systemd/network/20-path.network": "[Match]\nPath=pci-0000:01:00.*\n",
    "etc/NetworkManager/system-connections/a.nmconnection": (
        "[connection]\ninterface-name=enp1s0f0np0\n"
    ),
    "etc/NetworkManager/system-connections/b.nmconnection": (
        "[connection]\ntype=ethernet\n\n[ethernet]\nmac-address=4C:BB:47:2E:00:01\n"
    ),
    "etc/NetworkManager/system-connections/any": "[connection]\ntype=802-3-ethernet\n",
    "etc/NetworkManager/system-connections/pattern": (
        "[connection]\ntype=ethernet\n\n[match]\ninterface-name=enp1*;!enp1s0f1*;\n"
    ),
    "usr/lib/NetworkManager/system-connections/vlan": (
        "[connection]\ntype=vlan\ninterface-name=v\n\n[vlan]\nid=7\nparent=enp1s0f0np0\n"
    ),
}


@pytest.mark.parametrize(
    "files",
    [CLAIMING, *({path: content} for path, content in CLAIMING_OF_NETPLAN)],
    ids=lambda files: next(iter(files)),
)
def test_other_owner_of_an_interface(files: Mapping[str, str], root: Path) -> None:
    place_owners(root, files)
    before = snapshot(root)
    message = refused(install(small_bundle(), root, "--apply"))
    assert [path for path in files if f"refused: /{path} is about " not in message] == []
    assert snapshot(root) == before


OTHERS_OF_NETPLAN = [
    "# enp1s0f0np0\nnetwork: {version: 2}\n",
    NETPLAN.format("enp1s0f0np01"),
    NETPLAN.format("enP7*"),
    ANY.format("match: {macaddress: '4c:bb:47:2e:00:02'}"),
    ANY.format("match: {driver: r8127}"),
    "network: {bridges: {enp: {addresses: [10.1.0.1/24]}}}\n",
]
OTHERS = {
    "etc/systemd/network/10-netplan-enP7s7.network.d/mine.conf": "[Link]\nMTUBytes=1500\n",
    "etc/systemd/network/10-name.link": "[Match]\nOriginalName=*\n\n[Link]\nWakeOnLan=off\n",
    "etc/network/interfaces": "source /etc/network/interfaces.d/*\niface lo inet loopback\n",
    "etc/systemd/network/20-name.network": "[Match]\nType=ether\nName=enP7s7\n",
    "etc/systemd/network/20-type.network": "[Match]\nType=wlan\n",
    "etc/systemd/network/20-not.network": "[Match]\nName=!en*\n",
    "etc/systemd/network/20-kind.network": "[Match]\nKind=bridge\n",
    "etc/systemd/network/20-reset.network": "[Match]\nName=en*\nName=\nName=wl*\n",
    "etc/systemd/network/20-masked.network": "",
    "etc/NetworkManager/system-connections/wifi": (
        "[connection]\ntype=wifi\n\n[wifi]\nssid=enp1s0f0np0\n"
    ),
    "etc/NetworkManager/system-connections/other": (
        "[connection]\ntype=ethernet\n\n[ethernet]\nmac-address=4C:BB:47:2E:00:02\n"
    ),
    "etc/NetworkManager/system-connections/denied": (
        "[connection]\ntype=ethernet\ninterface-name=enP7s7\n"
    ),
    "etc/NetworkManager/system-connections/pattern": (
        "[connection]\ntype=ethernet\n\n[match]\ninterface-name=en*;!*np0;!*np1;\n"
    ),
    # What NetworkManager creates on its own for a port that is cabled but not configured.
    "run/NetworkManager/system-connections/Wired connection 2.nmconnection": (
        "[connection]\ntype=ethernet\ninterface-name=enp1s0f0np0\n"
    ),
}


@pytest.mark.parametrize(
    "files",
    [OTHERS, *({"etc/netplan/50-other.yaml": content} for content in OTHERS_OF_NETPLAN)],
    ids=lambda files: next(iter(files)),
)
def test_interfaces_without_another_owner(files: Mapping[str, str], root: Path) -> None:
    place_owners(root, files)
    done(install(small_bundle(), root, "--apply"))


def test_owner_that_only_root_can_read(root: Path) -> None:
    connections = root / "etc/NetworkManager/system-connections"
    connections.mkdir(parents=True)
    argv = [str(LAB_MESH.path / "owners.py"), "--root", str(root), "enp1s0f0np0"]
    if os.geteuid() == 0:
        # Root without its capabilities, because other users might not reach the test's folders.
        require("setpriv")
        argv = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", *argv]
    for path in (connections, root / "etc/netplan/90-NM-0a1b.yaml"):
        path.chmod(0)
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "/etc/NetworkManager/system-connections\t\t" in lines
    assert "/etc/netplan/90-NM-0a1b.yaml\t\t" in lines


@pytest.mark.parametrize(
    "options", [["--aply"], ["--root", "/"], ["--root", "/nowhere"], ["--root"]]
)
def test_usage(options: list[str]) -> None:
    script = [str(LAB_MESH.path / "install.sh"), *options]
    assert subprocess.run(script, capture_output=True, check=False).returncode != 0


# Interrupted

# A step fails, or leaves a copy of the node as it would be if install.sh were killed there.
_STEP = """\
#!/bin/sh
PATH=${PATH#*:}
read -r n <"$COUNT"
n=$((n + 1))
echo "$n" >"$COUNT"
[ "$n" != "$FAULT" ] || exit 1
[ -z "$STATES" ] || cp --archive "$NODE" "$STATES/$n"
exec "${0##*/}" "$@"
"""
# All programs that change the node, apart from the backup folder.
_STEPS = ("cp", "mv", "rm", "rmdir", "sync")


class Saboteur:
    """Runs install.sh so that one of its steps fails, or with a copy of the node at each."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.count = folder / "programs", folder / "count"
        self.programs.mkdir()
        for name in _STEPS:
            (self.programs / name).write_text(_STEP)
            (self.programs / name).chmod(0o755)

    def _run(
        self, folder: Path, root: Path, action: str, **env: str
    ) -> subprocess.CompletedProcess[str]:
        self.count.write_text("0\n")
        path = f"{self.programs}:{os.environ['PATH']}"
        variables = {"PATH": path, "COUNT": str(self.count), **env}
        return install(folder, root, action, env=variables)

    def fail(self, step: int, folder: Path, root: Path, action: str) -> int | None:
        """Let a step fail; returns the exit status, None if there is no such step."""
        result = self._run(folder, root, action, FAULT=str(step))
        if int(self.count.read_text()) >= step:
            return result.returncode
        done(result)
        return None

    def states(self, folder: Path, root: Path, action: str) -> list[Path]:
        """Run it to its end; returns the node as it was before each step."""
        states = root.with_name(f"{root.name}-states")
        states.mkdir()
        done(self._run(folder, root, action, NODE=str(root), STATES=str(states)))
        return [states / str(n + 1) for n in range(int(self.count.read_text()))]


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A node with an earlier version: files are replaced, created and removed."""
    start = fresh(tmp_path / "start", LAB_MESH.name)
    (start / "etc/netplan/40-cx7.yaml").write_text("network: {}\n")
    (start / INSTALLED).parent.mkdir()
    (start / INSTALLED).write_text("opt/sparkgen/old.sh\n")
    (start / "opt/sparkgen").mkdir(parents=True)
    (start / "opt/sparkgen/old.sh").touch(0o755)
    return start


@pytest.mark.long
def test_apply_failing_at_every_step(older: Path, tmp_path: Path) -> None:
    saboteur, folder = Saboteur(tmp_path), small_bundle()
    before, root, step, undone = snapshot(older), tmp_path / "root", 1, 0
    shutil.copytree(older, root, symlinks=True)
    while (status := saboteur.fail(step, folder, root, "--apply")) is not None:
        if status != 0:
            assert (status, snapshot(root)) == (2, before)
        undone += snapshot(root) != before
        done(install(folder, root, "--rollback"))
        assert snapshot(root) == before, step
        shutil.rmtree(root)
        shutil.copytree(older, root, symlinks=True)
        step += 1
    assert snapshot(root) != before
    assert step > 20
    assert undone > 0


def test_apply_killed_at_every_step(older: Path, tmp_path: Path) -> None:
    before, undone = snapshot(older), 0
    states = Saboteur(tmp_path).states(small_bundle(), older, "--apply")
    for root in states:
        undone += snapshot(root) != before
        done(install(small_bundle(), root, "--rollback"))
        assert snapshot(root) == before, root.name
    assert len(states) > 20
    assert undone > 10


def test_rollback_killed_at_every_step(tmp_path: Path) -> None:
    old = changed_bundle(SINGLE, tmp_path)
    start = fresh(tmp_path / "start", SINGLE.name)
    done(install(old, start, "--apply"))
    before = snapshot(start)
    done(install(SINGLE, start, "--apply"))
    states = Saboteur(tmp_path).states(SINGLE.path, start, "--rollback")
    for root in states:
        if not list((root / BACKUPS).glob("*.undone")):
            done(install(SINGLE, root, "--rollback"))
        assert snapshot(root) == before, root.name
    assert len(states) > 5


def test_stopped_before_it_touched_anything(root: Path, tmp_path: Path) -> None:
    """The rollback must not undo the previous change instead."""
    done(install(changed_bundle(LAB_MESH, tmp_path), root, "--apply"))
    before = snapshot(root)
    (root / BACKUPS / "new/before").mkdir(parents=True)
    assert "before it touched anything" in done(install(LAB_MESH, root, "--rollback"))
    assert snapshot(root) == before
    (root / BACKUPS / "new/before").mkdir(parents=True)
    done(install(LAB_MESH, root, "--apply"))


def test_unfinished_change_must_be_rolled_back(root: Path) -> None:
    done(install(LAB_MESH, root, "--apply"))
    (backup,) = (root / BACKUPS).iterdir()
    (backup / "unfinished").touch()
    assert "first install.sh --rollback" in refused(install(LAB_MESH, root, "--apply"))


def test_folder_of_somebody_else_among_the_backups(root: Path) -> None:
    before = snapshot(root)
    done(install(LAB_MESH, root, "--apply"))
    (root / BACKUPS / "9999-mine").mkdir()
    result = install(LAB_MESH, root, "--uninstall")
    assert (result.returncode, snapshot(root)) == (0, before)
    assert f"{BACKUPS}/9999-mine is not from install.sh, and is left alone" in result.stderr
    assert (root / BACKUPS / "9999-mine").is_dir()


def test_edits_are_kept_when_their_file_goes(root: Path) -> None:
    """What people have written, into our files or beside them, is never lost."""
    own = root / "etc/nccl.conf.sparkgen"
    own.write_text("mine\n")
    before = snapshot(root)
    done(install(LAB_MESH, root, "--apply"))
    with (root / "etc/nccl.conf").open("a") as file:
        file.write("NCCL_DEBUG=INFO\n")
    edited = (root / "etc/nccl.conf").read_text()
    said = done(install(LAB_MESH, root, "--uninstall"))
    assert snapshot(root) == before
    (kept,) = (root / BACKUPS).glob("*.undone/edited/etc/nccl.conf")
    assert kept.read_text() == edited
    assert f"/etc/nccl.conf was edited after it was installed: kept as {kept}\n" in said
    assert said.count("was edited") == 1


def test_check_begins_with_a_summary(root: Path) -> None:
    lines = install(LAB_MESH, root).stdout.splitlines()
    assert lines[0].startswith("spark1: ")
    assert lines[0].endswith(" files are new, 2 change, 0 go")
    assert lines[1:5] == [
        "started at boot from then on: sparkgen-engine.service",
        "the links of the fabric drop for a moment",
        f"to go back afterwards: sudo {LAB_MESH.path}/install.sh --rollback",
        "",
    ]
    done(install(LAB_MESH, root, "--apply"))
    (root / "etc/nccl.conf").write_text("")
    assert install(LAB_MESH, root).stdout.splitlines()[:2] == [
        "spark1: 0 files are new, 1 change, 0 go",
        "to restart afterwards: sparkgen-engine",
    ]


def test_node_knows_what_is_installed(root: Path) -> None:
    """The checksums of the folder, which alone make no node different."""
    done(install(LAB_MESH, root, "--apply"))
    record = root / "etc/sparkgen/bundle/SHA256SUMS"
    assert record.read_text() == (LAB_MESH.path / "SHA256SUMS").read_text()
    text = (root / "etc/sparkgen/bundle/site.yaml").read_text()
    assert text == LAB_MESH.bundle.file.read_text()
    record.write_text("of another build\n")
    assert done(install(LAB_MESH, root)) == "there is nothing to change\n"
    assert record.read_text() == "of another build\n"
    assert done(install(LAB_MESH, root, "--apply")) == "there is nothing to change\n"
    assert record.read_text() == (LAB_MESH.path / "SHA256SUMS").read_text()


def test_only_one_installer_runs(root: Path) -> None:
    (root / BACKUPS).mkdir(parents=True)
    with subprocess.Popen(["flock", str(root / BACKUPS), "sleep", "60"]) as other:
        try:
            while "another" not in install(LAB_MESH, root, "--apply").stderr:
                shutil.rmtree(root / BACKUPS)
                (root / BACKUPS).mkdir()
            assert snapshot(root) == snapshot(fresh(root.with_name("other"), "spark1"))
        finally:
            other.kill()


# Obstacles


def test_folder_in_the_place_of_a_file(root: Path) -> None:
    (root / "etc/nccl.conf").unlink()
    (root / "etc/nccl.conf").mkdir()
    before = snapshot(root)
    message = refused(install(LAB_MESH, root, "--apply"))
    assert "refused: /etc/nccl.conf is a folder" in message
    assert message.endswith("install.sh: nothing was changed\n")
    assert snapshot(root) == before
    assert not (root / BACKUPS).exists()


def test_rollback_gets_past_what_is_in_its_way(root: Path) -> None:
    """Docker creates an empty folder where a file that it should mount is missing."""
    before = snapshot(root)
    done(install(LAB_MESH, root, "--apply"))
    (root / "etc/nccl.conf").unlink()
    (root / "etc/nccl.conf").mkdir()
    (root / "opt/sparkgen/launch.sh").unlink()
    (root / "opt/sparkgen/launch.sh").mkdir()
    kept = root / "opt/sparkgen/launch.sh/kept"
    kept.touch()
    assert "/opt/sparkgen/launch.sh could not be replaced" in refused(
        install(LAB_MESH, root, "--rollback")
    )
    assert snapshot(root) == before | {
        "opt/sparkgen/launch.sh/kept": snapshot(root)[str(kept.relative_to(root))]
    }
    kept.unlink()
    done(install(LAB_MESH, root, "--rollback"))
    assert snapshot(root) == before


def test_uninstall_says_what_it_could_not_remove(root: Path, tmp_path: Path) -> None:
    before = snapshot(root)
    done(install(LAB_MESH, root, "--apply"))
    (tmp_path / "rm").write_text(
        '#!/bin/sh\n[ $# -gt 9 ] || PATH=${PATH#*:} exec rm "$@"\nexit 1\n'
    )
    (tmp_path / "rm").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    message = refused(install(LAB_MESH, root, "--uninstall", env=env))
    assert "install.sh: not everything could be removed\n" in message
    done(install(LAB_MESH, root, "--uninstall"))
    assert snapshot(root) == before


def test_what_was_put_back_and_what_was_not(root: Path) -> None:
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/nccl.conf").write_text("NCCL_IB_DISABLE=1\n")
    for last in ("", ", but for that"):
        before = snapshot(root)
        done(install(LAB_MESH, root, "--apply"))
        new = f"{len(snapshot(root)) - len(before)} removed that were not there"
        if last:
            kernels = root / "var/cache/sparkgen/triton/a.cubin"
            kernels.parent.mkdir(parents=True)
            kernels.write_text("compiled")
        said = done(install(LAB_MESH, root, "--rollback")).splitlines()
        assert f"put back: 2 files as they were, {new}" in said
        assert ("not put back: /var/cache/sparkgen" in said) is bool(last)
        assert re.fullmatch(rf"all is as it was before 000\d-\S+{last}", said[-1])


def test_link_that_leads_out_of_the_root(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "opt").symlink_to(outside)
    message = refused(install(LAB_MESH, root, "--apply"))
    assert f"/opt/sparkgen/launch.sh would lead out of {root}, to {outside}/sparkgen" in message
    assert not list(outside.iterdir())


def test_hosts_as_a_link(root: Path) -> None:
    (root / "etc/hosts").rename(root / "etc/hosts.other")
    (root / "etc/hosts").symlink_to("hosts.other")
    before = snapshot(root)
    assert "/etc/hosts is a link or the like: make it a file" in refused(
        install(LAB_MESH, root, "--apply")
    )
    assert snapshot(root) == before


def test_lines_that_were_added_to_hosts_stay(root: Path) -> None:
    done(install(LAB_MESH, root, "--apply"))
    hosts = root / "etc/hosts"
    hosts.write_text("10.9.9.9 before\n" + hosts.read_text() + "10.9.9.8 after\n")
    (root / "opt/sparkgen/launch.sh").unlink()
    done(install(LAB_MESH, root, "--apply"))
    done(install(LAB_MESH, root, "--uninstall"))
    assert hosts.read_text() == f"10.9.9.9 before\n{HOSTS}10.9.9.8 after\n"


def test_folders_are_as_they_were(tmp_path: Path) -> None:
    root = fresh(tmp_path / "root", SSH.name)
    (root / "opt/sparkgen").mkdir(parents=True)
    (root / "etc/ssh/sshd_config.d").mkdir(parents=True)
    before = {path for path in root.rglob("*") if path.is_dir()}
    done(install(SSH, root, "--apply"))
    done(install(SSH, root, "--uninstall"))
    after = {path for path in root.rglob("*") if path.is_dir()}
    assert {path for path in after - before if "var" not in path.parts} == set()
    assert before <= after


def test_backups_are_pruned(root: Path) -> None:
    before = snapshot(root)
    states = []
    for number in range(14):
        (root / "etc/netplan/40-cx7.yaml").write_text(f"# {number}\n")
        if number == 3:
            (root / "opt/sparkgen/launch.sh").unlink()
        states.append(snapshot(root))
        done(install(small_bundle(), root, "--apply"))
    backups = [path.name[:4] for path in sorted((root / BACKUPS).iterdir())]
    assert backups == ["0001", *(f"{number:04}" for number in range(5, 15))]
    for number in range(13, 3, -1):
        done(install(small_bundle(), root, "--rollback"))
        assert snapshot(root) == states[number]
    done(install(small_bundle(), root, "--rollback"))
    netplan = "etc/netplan/40-cx7.yaml"
    assert snapshot(root) == before | {netplan: states[0][netplan]}


# On a live machine

_LIVE = """\
set -e
mount -t sysfs sysfs /sys
hostname "$1"
sysctl --quiet net.ipv4.conf.default.arp_ignore=0 net.ipv4.conf.default.arp_announce=0
ip -batch - <<<"$LINKS"
for folder in etc opt run var/backups; do
  mount --bind "$0/$folder" "/$folder"
done
shift
exec bash -c "$*"
"""
_STAND_IN = '#!/bin/sh\necho "${0##*/} $*" >>"$CALLS"\n'
# The real netplan still generates into another root.
_NETPLAN = (
    _STAND_IN
    + '[ "$2" != --root-dir ] || exec "$NETPLAN" "$@"\n'
    + '[ "$1" != "$FAULT" ] || [ ! -e /etc/netplan/40-cx7.yaml ]\n'
)
# Whether a unit is active, and the state of others: a unit that was never started is not stopped.
_SYSTEMCTL = (
    _STAND_IN
    + '[ "$1" != show ] || { echo "${STATE:-active}"; exit; }\n'
    + '[ "$FAULT" != "$1" ] || exit 1\n'
    + '[ "$1" != is-active ] || [ -n "$ACTIVE" ]\n'
)
_SQUEUE = _STAND_IN + 'printf "%s" "$JOBS"\n'
_STAND_INS = {
    "netplan": _NETPLAN,
    "systemctl": _SYSTEMCTL,
    "systemd-run": _STAND_IN,
    "squeue": _SQUEUE,
    "sshd": _STAND_IN + '[ "$FAULT" != sshd ]\n',
}


@pytest.fixture
def machine(root: Path) -> Path:
    """A root whose folders can replace those of this machine."""
    for folder in ("opt", "run", "var/backups"):
        (root / folder).mkdir(parents=True)
    for name in ("passwd", "group", "ld.so.cache", "alternatives"):
        if (path := Path("/etc", name)).is_dir():
            shutil.copytree(path, root / "etc" / name, symlinks=True)
        elif path.exists():
            shutil.copy(path, root / "etc" / name)
    return root


@dataclass(frozen=True)
class Live:
    """The result of install.sh, and the machine's programs that it called."""

    status: int
    err: str
    calls: list[str]
    out: str = ""

    @property
    def taken_over(self) -> list[str]:
        """The calls that change the machine, without queries and trial runs."""
        asks = ("systemctl is-active", "systemctl show", "netplan generate --root-dir")
        return [call for call in self.calls if not call.startswith(asks)]


def live(
    machine: Path,
    *lines: str,
    name: str = "spark1",
    without: str = "",
    fault: str = "",
    active: str = "",
    folder: NodeFolder | None = None,
    jobs: str = "",
) -> Live:
    """Run shell lines, in which $I is install.sh, of the small bundle or a whole one.

    The machine has that name, and all interfaces but one.
    """
    require("flock", "hostname", "ip", "mount", "sysctl", "unshare")
    require_root()
    programs, calls = machine.parent / "live", machine.parent / "calls"
    programs.mkdir(exist_ok=True)
    for stand_in, script in _STAND_INS.items():
        (programs / stand_in).write_text(script)
        (programs / stand_in).chmod(0o755)
    calls.write_text("")
    node = (folder or LAB_MESH).node
    assert node.management
    present = [i.name for i in node.interfaces if i.name != without]
    links = [f"link add {name} type veth peer name x{name}" for name in (*present, "enP7s7")]
    env = {
        "I": str((folder.path if folder else small_bundle()) / "install.sh"),
        "PATH": f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin",
        "CALLS": str(calls),
        "FAULT": fault,
        "ACTIVE": active,
        "JOBS": jobs,
        "NETPLAN": program("netplan"),
        "INTERFACES": " ".join(present),
        "LINKS": "\n".join([*links, f"address add {node.management.address} dev enP7s7"]),
    }
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--uts", "bash", "-c", _LIVE, str(machine), name, *lines],
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return Live(done.returncode, done.stderr, calls.read_text().splitlines(), done.stdout)


ARP = "net.ipv4.conf.enP2p1s0f1np1.arp_ignore"


def test_install_on_the_machine_itself(machine: Path) -> None:
    before = snapshot(machine)
    lines = f"sysctl --values {ARP} | grep -x 1 && $I --confirm && $I --apply"
    done = live(machine, f"$I --apply && {lines}", folder=LAB_MESH)
    assert (done.status, done.err) == (0, "")
    timer, *taken_over = done.taken_over
    assert timer.startswith("systemd-run --quiet --collect --unit=sparkgen-undo --on-active=120 ")
    assert timer.endswith("/install.sh --rollback --force-links --overdue")
    assert taken_over == ["netplan generate", "netplan apply", "systemctl daemon-reload"]
    assert INSTALLED in snapshot(machine)
    (machine / "opt/sparkgen/launch.sh").unlink()
    assert live(machine, "$I --apply", folder=LAB_MESH).taken_over == []
    done = live(machine, "$I --uninstall", folder=LAB_MESH)
    assert done.status == 0
    assert done.taken_over == [
        "systemctl stop sparkgen-*.service",
        "systemctl stop sparkgen-engine.service",
        "netplan generate",
        "netplan apply",
        "systemctl daemon-reload",
    ]
    assert snapshot(machine) == before


# A program that hangs once, at its first call with such arguments; WORD is what else happens then.
HUNG = """\
real=$(type -ap {program} | tail -n 1)
here=$(dirname "$(command -v netplan)")/{program}
[ -e "$here" ] || printf '%s\\n' '#!/bin/sh' "exec $real \\"\\$@\\"" >"$here"
test='[ -e "$CALLS.hung" ] || {{ touch "$CALLS.hung"; sleep 300; }}'
sed -i "2i case \\"\\$*\\" in {arguments}) $test ;; esac" "$here"
chmod +x "$here"
$I --apply >/dev/null 2>&1 &
until [ -e "$CALLS.hung" ]; do sleep 0.1; done
{then}
SECONDS=0
/var/backups/sparkgen/0001-*/install.sh --rollback --force-links --overdue
echo "$SECONDS s"
"""


@pytest.mark.parametrize("then", [":", "kill -KILL $!"], ids=["alive", "killed"])
@pytest.mark.parametrize(
    ("hung", "arguments"),
    [
        ("netplan", "apply"),
        ("cp", "*.sparkgen-part*"),
        ("sync", "*/0001-*"),
        ("systemctl", "daemon-reload"),
    ],
)
def test_change_that_hangs_is_undone_in_time(
    hung: str, arguments: str, then: str, machine: Path
) -> None:
    """The timer ends it: nothing that it has started keeps the lock, or goes on."""
    before = snapshot(machine)
    done = live(machine, HUNG.format(program=hung, arguments=arguments, then=then))
    assert done.status == 0, done.err
    assert "all is as it was before 0001-" in done.out
    # Without the timer it takes 300.
    assert int(done.out.split()[-2]) < 100
    assert snapshot(machine) == before


# A container with a folder of the lock's name, which a process in it holds.
CONTAINER = """
unshare --mount sh -c 'mount -t tmpfs none /var && mkdir -p /var/backups/sparkgen &&
  exec sleep 300 </var/backups/sparkgen' & other=$!
"""


def test_what_holds_another_folder_of_that_name_goes_on(machine: Path) -> None:
    hung = HUNG.format(program="netplan", arguments="apply", then=":")
    done = live(machine, CONTAINER + hung, "kill $other && echo went on")
    assert done.status == 0, done.err
    assert "all is as it was before 0001-" in done.out
    assert done.out.endswith("went on\n")


def test_values_in_force_come_back(machine: Path) -> None:
    lines = f"sysctl --quiet {ARP}=2; $I --apply && $I --rollback && sysctl --values {ARP}"
    done = live(machine, lines, folder=LAB_MESH)
    assert (done.status, done.err) == (0, "")
    *_, put_back, left, last, value = done.out.splitlines()
    assert value == "2"
    assert put_back.endswith(" removed that were not there, the links, the kernel's settings")
    assert left == "not put back: images and models, what runs: restart it"
    assert last.endswith(", but for that")


IN_FORCE = {
    "another address": (
        "ip address flush dev enP7s7 && ip address add 10.0.0.12/24 dev enP7s7",
        "this machine does not have the address 10.0.0.11 of spark1, but 10.0.0.12/24",
    ),
    "own address on a port": (
        "ip address flush dev enP7s7 && ip address add 10.0.0.11/24 dev enp1s0f0np0",
        "enp1s0f0np0 has this node's own address 10.0.0.11, and would lose it",
    ),
    "default route on a port": (
        "ip link set enp1s0f0np0 up && ip address add 10.9.9.9/24 dev enp1s0f0np0 "
        "&& ip route add default via 10.9.9.1",
        "enp1s0f0np0 carries the default route, and would lose it",
    ),
    "login on a port": (
        "ip address add 10.9.9.9/24 dev enp1s0f0np0 "
        "&& export SSH_CONNECTION='10.9.9.8 5555 10.9.9.9 22'",
        "enp1s0f0np0 has the address 10.9.9.9, over which somebody is logged in",
    ),
}


@pytest.mark.parametrize("case", IN_FORCE)
def test_what_is_in_force_is_looked_at(case: str, machine: Path) -> None:
    line, reason = IN_FORCE[case]
    before = snapshot(machine)
    done = live(machine, f"{line} && $I --apply")
    assert f"refused: {reason}" in done.err
    assert (done.status, snapshot(machine)) == (2, before)


def test_links_stay_under_a_job(machine: Path) -> None:
    folder = next(folder for folder in NODES if str(folder) == "slurm-trtllm/spark1")
    before = snapshot(machine)
    done = live(machine, "$I --apply", folder=folder, jobs="7 gpu slurm-trtllm")
    assert done.status == 2
    assert done.err == (
        "install.sh: the links will drop: first scancel --name=slurm-trtllm\n"
        "install.sh: nothing was changed\n"
    )
    assert done.taken_over == ["squeue --noheader --name=slurm-trtllm"]
    assert snapshot(machine) == before
    done = live(machine, "$I --apply", folder=folder)
    assert (done.status, done.err) == (0, "")
    assert "netplan apply" in done.calls


@pytest.mark.parametrize("fault", ["generate", "apply"])
def test_netplan_fails(fault: str, machine: Path) -> None:
    before = snapshot(machine)
    done = live(machine, "$I --apply", fault=fault)
    assert done.status == 2
    assert snapshot(machine) == before
    calls = [call for call in done.taken_over if call.startswith("netplan")]
    tried = ["netplan generate", "netplan apply"]
    assert calls == (tried[:1] if fault == "generate" else tried) + tried


def test_systemd_does_not_read_its_units_again(machine: Path) -> None:
    """Everything is rolled back; new units, which systemd has never read, are not stopped."""
    before = snapshot(machine)
    done = live(machine, "export STATE=inactive; $I --apply", fault="daemon-reload")
    assert done.status == 2
    assert "systemctl daemon-reload failed" in done.err
    assert "Failed to stop" not in done.err
    assert not [call for call in done.calls if call.startswith("systemctl stop sparkgen-engine")]
    assert snapshot(machine) == before
    assert live(machine, "$I --rollback").status == 0
    assert live(machine, "$I --apply").status == 0


def test_links_do_not_drop_under_a_running_engine(machine: Path) -> None:
    before = snapshot(machine)
    done = live(machine, "$I --apply", active="yes")
    assert done.status == 2
    assert "first systemctl stop sparkgen-engine" in done.err
    assert snapshot(machine) == before


def test_missing_interface(machine: Path) -> None:
    done = live(machine, "$I --apply", without="enP2p1s0f0np0")
    reason, nothing = done.err.splitlines()
    assert reason.startswith(
        "refused: there is no interface enP2p1s0f0np0: DGX OS turns the NIC off"
    )
    assert (done.status, nothing, done.out) == (2, "install.sh: nothing was changed", "")


RIGHT = """\
for interface in $INTERFACES; do
  ip link set "x$interface" up && ip link set "$interface" up mtu 9000
done
"""


def right_links(folder: NodeFolder) -> str:
    """Shell lines that configure every interface as netplan would."""
    addresses = (f"ip address add {i.address} dev {i.name}" for i in folder.node.interfaces)
    return RIGHT + "\n".join(addresses) + "\n"


def test_links_that_are_right_are_left_alone(machine: Path) -> None:
    done = live(machine, right_links(LAB_MESH) + "$I --apply", active="yes")
    assert (done.status, done.err) == (0, "")
    assert done.taken_over == ["netplan generate", "systemctl daemon-reload"]
    wrong = right_links(LAB_MESH) + "ip link set enp1s0f0np0 mtu 1500\n"
    live(machine, "$I --uninstall")
    assert "first systemctl stop" in live(machine, wrong + "$I --apply", active="yes").err


def test_change_is_confirmed(machine: Path) -> None:
    done = live(machine, "$I --apply && $I --confirm && $I --confirm")
    assert (done.status, done.err) == (0, "")
    assert "--confirm; else all is put back\n" in done.out
    assert done.out.endswith("the change stays\nthere is nothing to confirm\n")
    live(machine, "$I --uninstall")
    done = live(machine, "$I --apply --no-confirm && $I --confirm")
    assert not [call for call in done.calls if call.startswith("systemd-run")]
    assert done.out.endswith("there is nothing to confirm\n")


def test_rollback_under_a_running_engine(machine: Path) -> None:
    assert live(machine, "$I --apply").status == 0
    installed = snapshot(machine)
    for action in ("--rollback", "--uninstall"):
        done = live(machine, f"$I {action}", active="yes")
        assert done.status == 2
        assert "first systemctl stop sparkgen-engine" in done.err
        assert snapshot(machine) == installed
    assert live(machine, "$I --rollback --force-links", active="yes").status == 0


def test_uninstall_goes_to_the_first_state_at_once(machine: Path) -> None:
    before = snapshot(machine)
    for mtu in (9000, 1500, 4000):
        (machine / "etc/netplan/40-cx7.yaml").unlink(missing_ok=True)
        (machine / "opt/sparkgen/launch.sh").unlink(missing_ok=True)
        assert live(machine, "$I --apply && $I --confirm").status == 0, mtu
    done = live(machine, "$I --uninstall")
    assert (done.status, done.err) == (0, "")
    assert done.calls.count("netplan apply") == 1
    assert snapshot(machine) == before
    assert not list((machine / BACKUPS).glob("*[0-9]"))


def first_change(machine: Path) -> Path:
    """What the first change has kept."""
    return min((machine / BACKUPS).glob("0*"))


def put_in_place(machine: Path, path: str, kind: str) -> None:
    """Something else than the file that was installed."""
    file = machine / path
    file.unlink()
    if kind == "folder":
        file.mkdir()
        (file / "kept").write_text("mine\n")
    else:
        file.symlink_to("/dev/null")


NCCL_CONF, LAUNCH = "etc/nccl.conf", "opt/sparkgen/launch.sh"
# What has happened to a node since the install: what is done to it, what is not as before after the
# uninstall, and what is said about that.
BROKEN: dict[str, tuple[Callable[[Path], object], set[str], str]] = {
    "file edited": (lambda m: (m / LAUNCH).write_text("mine\n"), set(), ""),
    "file gone": (lambda m: (m / "etc/sysctl.d/90-sparkgen.conf").unlink(), set(), ""),
    "unit masked": (lambda m: put_in_place(m, UNIT, "link"), set(), ""),
    "end of the names gone": (
        lambda m: (m / "etc/hosts").write_text(
            (m / "etc/hosts").read_text().replace("# end sparkgen\n", "")
        ),
        set(),
        "",
    ),
    "copy gone": (
        lambda m: (first_change(m) / "before" / NCCL_CONF).unlink(),
        {NCCL_CONF},
        "not put back: /etc/nccl.conf, whose copy in /var/backups/sparkgen is gone or damaged",
    ),
    "copy damaged": (
        lambda m: (first_change(m) / "before" / NCCL_CONF).write_text(""),
        {NCCL_CONF},
        "not put back: /etc/nccl.conf, whose copy in /var/backups/sparkgen is gone or damaged",
    ),
    "all copies gone": (
        lambda m: shutil.rmtree(first_change(m) / "before"),
        {NCCL_CONF},
        "not put back: /etc/nccl.conf, whose copy in /var/backups/sparkgen is gone or damaged",
    ),
    "folder in the place of a file": (
        lambda m: put_in_place(m, LAUNCH, "folder"),
        {f"{LAUNCH}/kept"},
        f"/{LAUNCH} could not be replaced",
    ),
}


@pytest.mark.parametrize("state", BROKEN)
def test_uninstall_of_a_broken_node(state: str, machine: Path) -> None:
    """What is not as before is named, and then the status is not 0."""
    make, differ, said = BROKEN[state]
    before = snapshot(machine)
    assert live(machine, "$I --apply --no-confirm", folder=LAB_MESH).status == 0
    make(machine)
    done = live(machine, "$I --uninstall", folder=LAB_MESH)
    after = snapshot(machine)
    assert {p for p in {*before, *after} if before.get(p) != after.get(p)} == differ
    assert done.status == (2 if differ else 0)
    assert said in done.out + done.err


def test_uninstall_in_another_language(machine: Path) -> None:
    """What programs say of a copy that is gone, and of a file that was edited, is still read."""
    assert live(machine, "$I --apply --no-confirm", folder=LAB_MESH).status == 0
    (first_change(machine) / "before" / NCCL_CONF).unlink()
    (machine / LAUNCH).write_text("mine\n")
    installed = (machine / NCCL_CONF).read_text()
    done = live(machine, "LC_ALL=C.UTF-8 LANGUAGE=de $I --uninstall", folder=LAB_MESH)
    assert done.status == 2
    assert f"/{NCCL_CONF}, whose copy in /{BACKUPS} is gone or damaged" in done.out
    assert f"/{LAUNCH} was edited after it was installed: kept as" in done.out
    assert (machine / NCCL_CONF).read_text() == installed


@pytest.mark.parametrize("lost", ["paths", "all"])
def test_uninstall_without_the_first_change(lost: str, machine: Path) -> None:
    for text in ("", "NCCL_DEBUG=INFO\n"):
        (machine / NCCL_CONF).write_text(text)
        assert live(machine, "$I --apply --no-confirm", folder=LAB_MESH).status == 0
    first = first_change(machine)
    if lost == "all":
        shutil.rmtree(first)
    else:
        (first / lost).unlink()
    done = live(machine, "$I --uninstall", folder=LAB_MESH)
    assert done.status == 2
    assert "what was there before the first change is gone from /var/backups/spark" in done.err
    assert "still installed: the files in /etc/sparkgen/installed\n" in done.err


def test_uninstall_without_an_interface(machine: Path) -> None:
    """All other links are put back."""
    before, (gone, *others) = snapshot(machine), LAB_MESH.node.interfaces
    start = "for link in $INTERFACES; do ip link set $link mtu 1400 up; done; "
    change = "for link in $INTERFACES; do ip link set $link mtu 1500 down; done"
    lines = f"{start} $I --apply --no-confirm && {change}"
    assert live(machine, lines, folder=LAB_MESH).status == 0
    lines = "$I --uninstall; status=$?; ip -o link; exit $status"
    done = live(machine, lines, folder=LAB_MESH, without=gone.name)
    assert done.status == 2
    assert snapshot(machine) == before
    assert "not put back: kernel settings: see /var/backups/sparkgen/0001-" in done.out
    assert "links: see /var/backups/sparkgen/0001-" in done.out
    for link in others:
        assert re.search(rf"(?m)^\d+: {link.name}@.*,UP.* mtu 1400 ", done.out), link


SSH = next(folder for folder in NODES if "ssh" in folder.site.services)


def test_faulty_sshd_is_seen_before_anything_changes(machine: Path) -> None:
    before = snapshot(machine)
    done = live(machine, "$I --apply --force-host", fault="sshd", folder=SSH)
    assert done.status == 2
    assert "refused: sshd -t fails already, before any change" in done.err
    assert snapshot(machine) == before


def test_faulty_sshd_does_not_hold_up_a_rollback(machine: Path) -> None:
    before = snapshot(machine)
    assert live(machine, "$I --apply --force-host", folder=SSH).status == 0
    done = live(machine, "$I --rollback", fault="sshd", folder=SSH)
    assert done.status == 2
    assert "sshd -t failed" in done.err
    assert snapshot(machine) == before
    assert live(machine, "$I --rollback", folder=SSH).status == 0


def test_machine_gets_its_name(machine: Path) -> None:
    (machine / "etc/hostname").write_text("spark-1a2b\n")
    lines = "hostname | grep -x spark1 && $I --check && $I --confirm"
    lines = f"$I --apply --set-hostname && {lines}"
    done = live(machine, lines, name="spark-1a2b")
    assert (done.status, done.err) == (0, "")
    lines = "ip address flush dev enP7s7 && $I --apply --set-hostname"
    done = live(machine, lines, name="spark2")
    assert done.status == 2
    assert "with the address 10.0.0.11, which this one is not" in done.err


def test_name_from_dhcp_comes_back(machine: Path) -> None:
    """No file has it: what was in force is restored."""
    (machine / "etc/hostname").unlink(missing_ok=True)
    before = snapshot(machine)
    lines = "hostname | grep -x spark1 && $I --uninstall && hostname | grep -x spark-1a2b"
    done = live(machine, f"$I --apply --set-hostname && $I --confirm && {lines}", name="spark-1a2b")
    assert (done.status, done.err) == (0, "")
    assert snapshot(machine) == before


def test_check_needs_no_root(machine: Path) -> None:
    require("setpriv")
    (machine / "etc/netplan/40-cx7.yaml").touch(0o600)
    nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups"
    folder = machine / "opt/bundle"
    # On a node, the folder belongs to the user who copied it.
    shutil.copytree(small_bundle(), folder, copy_function=shutil.copyfile)
    for name in _PROGRAMS:
        (folder / name).chmod(0o755)
    done = live(
        machine, f"{nobody} /opt/bundle/install.sh; {nobody} /opt/bundle/install.sh --apply"
    )
    assert done.status == 2
    assert "refused" not in done.err
    assert "not readable, and so not compared: " in done.err
    assert "/etc/netplan/40-cx7.yaml" in done.err
    assert "this needs root: sudo /opt/bundle/install.sh --apply" in done.err
