"""A disk that is really full: one line of output, status 4, and nothing that was there changes."""

import subprocess
import sys
from pathlib import Path

import pytest
from programs import require, require_root
from waiting import PATIENCE

from generator.resources import ROOT

# A separate disk for one process and its children. The script runs on it, and can list everything
# on it with checksums.
DISK = r"""
set -eu
disk=$1 size=$2 sparkgen="$3 -m generator"
mount -t tmpfs -o "size=$size" none "$disk"
cp "$4" "$disk/site.yaml"
cd "$disk"
listed() { find . ! -path . -printf '%y %p\n' | sort; find . -type f -exec sha256sum {} + | sort; }
filled() { cat /dev/zero >"$disk/ballast" 2>/dev/null || true; }
"""


def on_a_disk(tmp_path: Path, size: str, site: Path, script: str) -> list[str]:
    """A script's output, part by part; it can use `listed`, and `$sparkgen` with its status."""
    require_root()
    require("bash", "find", "mount", "sha256sum", "unshare")
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", DISK + script, "-", disk, size, sys.executable, site],
        env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "PYTHONPATH": str(ROOT), "TMPDIR": "/tmp"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("----\n")


def test_first_build(tmp_path: Path) -> None:
    output, left = on_a_disk(
        tmp_path,
        "64k",
        ROOT / "sites/lab-mesh.yaml",
        "$sparkgen build site.yaml 2>&1 || echo $?; echo ----; listed",
    )
    message, status = output.splitlines()
    assert status == "4"
    assert message.startswith("sparkgen: ")
    assert message.endswith(": No space left on device; nothing was changed")
    assert "site.yaml" in left
    assert "spark1" not in left


def test_build_over_a_bundle(tmp_path: Path) -> None:
    output, before, after = on_a_disk(
        tmp_path,
        "2m",
        ROOT / "sites/lab-mesh.yaml",
        """
        $sparkgen build site.yaml >/dev/null
        sed -i 's/mtu: 9000/mtu: 1500/' site.yaml
        filled
        listed >/dev/null
        before=$(listed)
        $sparkgen build site.yaml 2>&1 || echo $?
        echo ----; echo "$before"; echo ----; listed
        """,
    )
    message, status = output.splitlines()
    assert status == "4"
    assert message.endswith(": No space left on device; nothing was changed")
    assert "spark3/etc/netplan/40-cx7.yaml" in before
    assert after == before


@pytest.mark.parametrize("size", ["8k", "64k"])
def test_fix(size: str, tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text((ROOT / "sites/lab-mesh.yaml").read_text().replace("kind: ring", "kind: rign"))
    output, before, after = on_a_disk(
        tmp_path,
        size,
        site,
        """
        filled
        before=$(listed)
        $sparkgen fix --write site.yaml 2>&1 >/dev/null || echo $?
        echo ----; echo "$before"; echo ----; listed
        """,
    )
    assert output.splitlines() == [
        "sparkgen: site.yaml: No space left on device; nothing was changed",
        "4",
    ]
    assert after == before
