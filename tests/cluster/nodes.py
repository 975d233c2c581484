"""A node that keeps what is written on it, and is really configured by netplan.

Its systemd is the first process of its own namespaces, with D-Bus and networkd as units. The node's
/etc, /opt, /usr/bin and /var are mounted over this machine's; what is written there is lost when
the node is turned off, unless it was saved. udev is a stand-in: interfaces already have their
names.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cluster.control_groups import BIND
from cluster.machines import Machine
from cluster.machines import booted as booted_with

PROGRAMS = ("dbus-daemon", "netplan", "networkctl", "nsenter", "rsync", "systemd-run", "unshare")
# The folders that a node writes to, as one.
_WRITTEN = "/mnt/written"

# /sys belongs to the node's network and is read-only, so networkd does not wait for udev.
_BOOT = f"""\
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
for folder in etc opt usr/bin var; do
  mkdir -p "{_WRITTEN}/$folder" "/mnt/scratch/$folder"
  layers="lowerdir=$0/$folder:/$folder,upperdir={_WRITTEN}/$folder,workdir=/mnt/scratch/$folder"
  mount -t overlay overlay -o "$layers" "/$folder"
done
mount -t proc proc /proc
mkdir /mnt/cgroup
mount --rbind /sys/fs/cgroup /mnt/cgroup
mount -t sysfs sysfs /sys
mount --rbind /mnt/cgroup /sys/fs/cgroup
{BIND}mount -o remount,bind,ro /sys
mount -t tmpfs tmpfs /run
mkdir /run/lock /run/stand-in
ip link set lo up
export container=test
export SYSTEMD_UNIT_PATH=/etc/systemd/system:/run/systemd/transient:/run/systemd/system:/opt/units
exec /lib/systemd/systemd --system --unit=boot.target --log-target=null --show-status=no
"""

_TARGETS = (
    "basic.target",
    "multi-user.target",
    "network.target",
    "network-online.target",
    "network-pre.target",
    "shutdown.target",
    "sockets.target",
    "sysinit.target",
    "timers.target",
)
_ALONE = "[Unit]\nDefaultDependencies=no\n"
_STARTED = "timers.target multi-user.target systemd-networkd.service"
_UNITS = {
    **dict.fromkeys(_TARGETS, _ALONE),
    "boot.target": f"[Unit]\nWants={_STARTED}\nAfter={_STARTED}\n",
    "dbus.socket": f"{_ALONE}[Socket]\nListenStream=/run/dbus/system_bus_socket\n",
    "dbus.service": f"{_ALONE}Requires=dbus.socket\n[Service]\nType=notify\nExecStart=dbus-daemon "
    "--system --address=systemd: --nofork --nopidfile --systemd-activation\n",
}
# Its sandbox is not under test, and would need more than these namespaces allow.
_KEPT = ("Ambient", "BusName", "Exec", "FileDesc", "Restart", "RuntimeDir", "Type", "User")
_NETWORKD = Path("/lib/systemd/system/systemd-networkd.service")


def prepared(tree: Path) -> Path:
    """A node's tree with the units and programs that it boots with."""
    for folder in ("etc/systemd/system", "opt/units", "usr/bin", "var"):
        (tree / folder).mkdir(parents=True, exist_ok=True)
    for name, text in _UNITS.items():
        (tree / "opt/units" / name).write_text(text)
    original = _NETWORKD.read_text().splitlines()
    lines = [
        line for line in original if line.startswith(_KEPT) and not line.startswith("RestartK")
    ]
    unit = f"{_ALONE}Requires=dbus.service\nAfter=dbus.service\n[Service]\n"
    (tree / "opt/units" / _NETWORKD.name).write_text(unit + "\n".join(lines) + "\n")
    for name in ("udevadm", "ovs-vsctl"):
        (tree / "usr/bin" / name).write_text("#!/bin/sh\n")
        (tree / "usr/bin" / name).chmod(0o755)
    return tree


@contextmanager
def booted(tree: Path, within: Sequence[str]) -> Iterator[Machine]:
    """Boot a prepared tree in a network; leaving the context pulls its plug."""
    with booted_with(tree, within, _BOOT) as machine:
        yield machine


def save(machine: Machine, tree: Path) -> None:
    """Save what was written for the next boot of the tree."""
    done = machine.run("rsync", "--archive", "--force", f"{_WRITTEN}/", str(tree))
    assert done.returncode == 0, done.stderr
