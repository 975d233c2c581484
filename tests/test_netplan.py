"""Netplan itself merges the fabric's file with the files that a node already has."""

import subprocess
from pathlib import Path

import pytest
from conftest import Bundle
from programs import require
from waiting import PATIENCE

from generator.resources import ROOT

SITE = (ROOT / "sites/lab-mesh.yaml").read_text()
OURS = "etc/netplan/40-cx7.yaml"
INTERFACES = ("enp1s0f0np0", "enP2p1s0f0np0", "enp1s0f1np1", "enP2p1s0f1np1")

# DGX OS leaves everything to NetworkManager, whose connection profiles are netplan files too.
DGX_OS = {
    "01-network-manager-all.yaml": "network:\n  version: 2\n  renderer: NetworkManager\n",
    "90-NM-0a1b2c3d.yaml": """\
network:
  version: 2
  ethernets:
    NM-0a1b2c3d:
      renderer: NetworkManager
      match: {name: enP7s7}
      dhcp4: true
      networkmanager: {uuid: 0a1b2c3d-0000-4000-8000-000000000000, name: wired}
""",
}
UNNAMED = {"01-network-manager-all.yaml": DGX_OS["01-network-manager-all.yaml"]}
NETWORKD = {
    "50-cloud-init.yaml": """\
network:
  version: 2
  renderer: networkd
  ethernets:
    enP7s7:
      addresses: [10.0.0.11/24]
      routes: [{to: default, via: 10.0.0.1}]
"""
}
# Netplan writes it, empty, as soon as NetworkManager manages one interface: it overrides
# NetworkManager's own rule, by which it does not manage wired interfaces.
ALL_MANAGED = "run/NetworkManager/conf.d/10-globally-managed-devices.conf"


@pytest.mark.parametrize("renderer", [None, "networkd", "NetworkManager"])
@pytest.mark.parametrize(
    "existing", [DGX_OS, UNNAMED, NETWORKD], ids=["dgx", "unnamed", "networkd"]
)
def test_all_other_interfaces_stay_as_they_were(
    existing: dict[str, str], renderer: str | None, tmp_path: Path, bundle: Bundle
) -> None:
    before = generate(tmp_path / "before", existing)
    after = generate(tmp_path / "after", existing, netplan_file(tmp_path, bundle, renderer))
    if existing is NETWORKD and renderer == "NetworkManager":
        assert after.pop(ALL_MANAGED) == ""
    assert others(after) == before
    assert len(after) > len(others(after))


@pytest.mark.parametrize(
    ("renderer", "existing", "pattern"),
    [
        ("networkd", DGX_OS, "run/systemd/network/10-netplan-{}.network"),
        (None, NETWORKD, "run/systemd/network/10-netplan-{}.network"),
        (
            "NetworkManager",
            NETWORKD,
            "run/NetworkManager/system-connections/netplan-{}.nmconnection",
        ),
        (None, DGX_OS, "run/NetworkManager/system-connections/netplan-{}.nmconnection"),
    ],
)
def test_fabric_has_the_renderer_of_the_site_else_that_of_the_node(
    renderer: str | None, existing: dict[str, str], pattern: str, tmp_path: Path, bundle: Bundle
) -> None:
    files = generate(tmp_path / "node", existing, netplan_file(tmp_path, bundle, renderer))
    assert {pattern.format(interface) for interface in INTERFACES} <= files.keys()


def netplan_file(folder: Path, bundle: Bundle, renderer: str | None) -> str:
    """The file of a ring's first node, with this `topology.renderer`."""
    site = folder / "site.yaml"
    line = f"topology:\n  renderer: {renderer}\n" if renderer else "topology:\n"
    site.write_text(SITE.replace("topology:\n", line))
    return bundle(site)[f"spark1/{OURS}"].text


def generate(root: Path, existing: dict[str, str], ours: str | None = None) -> dict[str, str]:
    """What netplan writes for a node's files: text by path."""
    require("netplan")
    files = {f"etc/netplan/{name}": text for name, text in existing.items()}
    for path, text in (files | ({OURS: ours} if ours else {})).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        (root / path).chmod(0o600)
    command = ("netplan", "generate", "--root-dir", str(root))
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    written = (path for path in (root / "run").rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text() for path in written}


def others(files: dict[str, str]) -> dict[str, str]:
    """What is not about the fabric: whole files, and lines about all interfaces in the others."""
    left = {
        path: "".join(line for line in text.splitlines(keepends=True) if not _ours(line))
        for path, text in files.items()
        if not _ours(path)
    }
    return {path: text for path, text in left.items() if text or not files[path]}


def _ours(text: str) -> bool:
    return any(interface in text for interface in INTERFACES)
