"""Nodes with everything that a bundle finds on a real one: systemd, netplan, cables and Docker."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bundles import Bundle, links
from recabling import plug_in, pull
from waiting import PATIENCE, until

from cluster import ib_write_bw, nodes
from cluster.control_groups import BIND
from cluster.docker import add_docker, group, tagged
from cluster.machines import Machine, booted
from generator.site import Node
from generator.verify.namespaces import INTERFACES, MANAGEMENT, VirtualFabric, fabric

_CGROUPS = Path("/sys/fs/cgroup")

# A container gets its devices from the node's /dev; the RDMA device is another /dev/null.
_BOOT = f"""\
set -e
mount --make-rprivate /
mount -t tmpfs -o size=2g tmpfs /mnt
for folder in etc opt srv usr/bin usr/libexec var; do
  mkdir -p "$0/$folder" "/mnt/written/$folder" "/mnt/scratch/$folder"
  layers="lowerdir=$0/$folder:/$folder,upperdir=/mnt/written/$folder,workdir=/mnt/scratch/$folder"
  mount -t overlay overlay -o "$layers" "/$folder"
done
mount -t proc proc /proc
mkdir /mnt/groups /mnt/dev /mnt/dev/infiniband /mnt/dev/pts /mnt/dev/shm
mount --rbind {_CGROUPS} /mnt/groups
mount -t sysfs sysfs /sys
mount --rbind /mnt/groups {_CGROUPS}
{BIND}mount -o remount,bind,ro /sys
for device in null zero full random urandom tty; do cp --archive /dev/$device /mnt/dev; done
cp --archive /dev/null /mnt/dev/infiniband/uverbs0
ln -s /proc/self/fd /mnt/dev/fd
mount --rbind /mnt/dev /dev
mount -t tmpfs tmpfs /dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts
ln -s pts/ptmx /dev/ptmx
mount -t tmpfs tmpfs /run
mkdir /run/lock /run/stand-in /mnt/docker
touch /run/drop_caches
mount --bind "$0.docker" /mnt/docker
ip link set lo up
export container=test
export SYSTEMD_UNIT_PATH=/etc/systemd/system:/run/systemd/transient:/run/systemd/system:/opt/units
exec /lib/systemd/systemd --system --unit=boot.target --log-target=null --show-status=no
"""
_HOST = """\
network:
  version: 2
  ethernets:
    {interface}: {{renderer: networkd, addresses: [{address}]}}
"""
_JOURNAL = {
    "systemd-journald.socket": "[Unit]\nDefaultDependencies=no\n[Socket]\n"
    "ListenStream=/run/systemd/journal/stdout\nListenDatagram=/run/systemd/journal/socket\n",
    "systemd-journald.service": "[Unit]\nDefaultDependencies=no\nRequires=systemd-journald.socket\n"
    "[Service]\nType=notify\nSockets=systemd-journald.socket\n"
    "ExecStart=/lib/systemd/systemd-journald\n",
}
# Stand-ins for programs that need a real network card.
_NETWORK_CARD = {
    "ethtool": "#!/bin/sh\necho '\\tSpeed: 200000Mb/s'\n",
    "ib_write_bw": Path(ib_write_bw.__file__).read_text(),
}
# Interfaces that nothing configures.
BLANK = "network:\n  version: 2\n  renderer: networkd\n  ethernets:\n" + "".join(
    f"    {name}: {{}}\n" for name in INTERFACES
)


def prepared(bundle: Bundle, node: Node, folder: Path) -> Path:
    """A node before its first install, with its folder of the bundle."""
    tree = nodes.prepared(folder / node.name)
    equip(tree)
    file = tree / "etc/netplan/01-management.yaml"
    file.parent.mkdir(parents=True)
    if node.management:
        file.write_text(_HOST.format(interface=MANAGEMENT, address=node.management.address))
        file.chmod(0o600)
    (tree / "etc/hostname").write_text(f"{node.name}\n")
    (tree / "etc/hosts").write_text("127.0.0.1 localhost\n")
    shutil.copytree(bundle.folder / node.name, tree / "var/bundle")
    return tree


def equip(tree: Path) -> None:
    """Give a node a Docker engine with its own disk, and a journal."""
    add_docker(tree)
    Path(f"{tree}.docker").mkdir()
    for name, text in _NETWORK_CARD.items():
        (tree / "usr/bin" / name).write_text(text)
        (tree / "usr/bin" / name).chmod(0o755)
    for name, text in _JOURNAL.items():
        (tree / "opt/units" / name).write_text(text)
    wants = tree / "opt/units/boot.target.wants"
    wants.mkdir()
    (wants / "systemd-journald.socket").symlink_to("../systemd-journald.socket")


def limit_disk(tree: Path) -> None:
    """Give a node's Docker engine a disk that a test can fill."""
    mount = ("mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", f"{tree}.docker")
    subprocess.run(mount, check=True)


@contextmanager
def cabled(bundle: Bundle, folder: Path) -> Iterator[VirtualFabric]:
    """The bundle's cables, at interfaces that nothing has configured yet."""
    blank = folder / "blank/etc/netplan/blank.yaml"
    blank.parent.mkdir(parents=True)
    blank.write_text(BLANK)
    trees = {node.name: folder / "blank" for node in bundle.site.nodes}
    addresses = {
        node.name: str(node.management.address) for node in bundle.site.nodes if node.management
    }
    with fabric(trees, links(bundle.site.cables), folder, addresses) as network:
        for name in addresses:
            # The networkd of systemd 252 may mistake an address that is already present for one it
            # has yet to set, and retry until the link counts as failed.
            flush = ("ip", "-n", network.namespace(name), "address", "flush", "dev", MANAGEMENT)
            subprocess.run(flush, check=True)
        yield network


@contextmanager
def powered(tree: Path, network: VirtualFabric) -> Iterator[Machine]:
    """Turn a node on; leaving the context pulls its plug."""
    name = network.namespace(tree.name)
    with equipped(tree, "nsenter", f"--net=/run/netns/{name}", "unshare", "--uts") as machine:
        yield machine


@contextmanager
def equipped(tree: Path, *within: str, patience: float = PATIENCE) -> Iterator[Machine]:
    """Boot a node with a Docker engine in the network that the prefix enters."""
    try:
        with booted(tree, within, _BOOT, group(tree), patience) as machine:
            yield machine
    finally:
        until(lambda: _is_removed(group(tree)))


class Rack:
    """Nodes that can be turned on and off one by one."""

    def __init__(self, trees: Mapping[str, Path], network: VirtualFabric) -> None:
        self.trees, self.network = trees, network
        self.machines: dict[str, Machine] = {}
        self._plugs: dict[str, ExitStack] = {}

    def turn_on(self, name: str) -> Machine:
        """Boot a node, with its cables plugged in."""
        plug = ExitStack()
        self.machines[name] = plug.enter_context(powered(self.trees[name], self.network))
        self._plugs[name] = plug
        plug_in(self.network, name, MANAGEMENT, *INTERFACES)
        return self.machines[name]

    def turn_off(self, name: str) -> None:
        """Cut a node's power: it falls silent at once; what it has written stays."""
        nodes.save(self.machines[name], self.trees[name])
        pull(self.network, name, MANAGEMENT, *INTERFACES)
        self._plugs.pop(name).close()

    def __enter__(self) -> "Rack":
        for name in self.trees:
            self.turn_on(name)
        return self

    def __exit__(self, *_: object) -> None:
        while self._plugs:
            self._plugs.popitem()[1].close()
        for disk in (Path(f"{tree}.docker") for tree in self.trees.values()):
            if disk.is_mount():
                subprocess.run(("umount", str(disk)), check=True)
            shutil.rmtree(disk)


def install(machine: Machine) -> None:
    """Follow the runbook: install the bundle, and keep the change."""
    done = machine.run("/var/bundle/install.sh", "--apply", "--no-confirm")
    assert done.returncode == 0, done.stderr
    # On a busy machine networkd may have given up on a veth while the other end was being set up,
    # and does not try again. A real port has no such other end.
    until(lambda: "configuring" not in _links(machine))
    if "failed" in _links(machine):
        machine.systemctl("restart", "systemd-networkd")


def _links(machine: Machine) -> str:
    return machine.run(
        "networkctl", "--no-legend", "--no-pager", "list", MANAGEMENT, *INTERFACES
    ).stdout


def load(machine: Machine, image: str, archive: Path) -> None:
    """Load an image into a node's Docker engine."""
    machine.systemctl("start", "docker")
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        file = tagged(archive, image, Path(folder))
        done = machine.run("docker", "load", "--input", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


def _is_removed(name: str) -> bool:
    """Whether all control groups are gone; each can only be removed after its last process."""
    for top in _CGROUPS.glob(f"*/{name}"):
        for folder, _, _ in os.walk(top, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()
    return not any(_CGROUPS.glob(f"*/{name}"))
