"""A node that boots: systemd is the first process of its own namespaces.

It sees the node's /etc, /opt and /usr/bin mounted over this machine's, but only the tree's own
units. Docker is a stand-in, in which a container lives as long as a file exists.
"""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from waiting import PATIENCE, until

from cluster.control_groups import BIND, separate_group
from cluster.spaces import entering, first_process

_BOOT = f"""\
set -e
mount --make-rprivate /
for folder in etc opt usr/bin; do
  mount -t overlay overlay -o "lowerdir=$0/$folder:/$folder" "/$folder"
done
{BIND}mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mkdir /run/stand-in
touch /run/drop_caches
export container=test SYSTEMD_UNIT_PATH=/opt/units
exec /lib/systemd/systemd --system --unit=boot.target --log-target=null --show-status=no
"""

_DOCKER = """\
#!/bin/bash
# docker compose --file FILE VERB ..., docker start --attach NAME
verb=$1
if [[ $1 == compose ]]; then verb=$4; fi
if [[ $verb == info ]]; then exit; fi
[[ $verb != start || -e /run/stand-in/fault ]] || touch /run/stand-in/container
echo "docker $verb" >>/run/stand-in/calls
case $verb in
  start)
    if [[ -e /run/stand-in/fault ]]; then exit "$(cat /run/stand-in/fault)"; fi
    trap 'exit 130' TERM INT
    while [[ -e /run/stand-in/container ]]; do sleep 0.05; done
    exit "$(cat /run/stand-in/status 2>/dev/null || echo 0)"
    ;;
  stop | down) rm -f /run/stand-in/container ;;
esac
"""

_UNITS = {
    "boot.target": "[Unit]\nWants=multi-user.target\nAfter=multi-user.target\n",
    "docker.service": "[Service]\nType=oneshot\nRemainAfterExit=yes\n"
    "ExecStart=/bin/sh -c 'echo docker.service >>/run/stand-in/calls'\n",
} | dict.fromkeys(
    (
        "basic.target",
        "multi-user.target",
        "network-online.target",
        "shutdown.target",
        "sysinit.target",
    ),
    "[Unit]\nDefaultDependencies=no\n",
)
# The stand-in logs its calls; the real client would only talk to Docker. Restarts are immediate;
# the unit's own limit on their number applies. This machine's own client is never called.
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# A unit that drops the node's caches would drop those of this whole machine.
KEEP_CACHES = "BindPaths=/run/drop_caches:/proc/sys/vm/drop_caches\n"
_TEST = (
    "[Service]\nReadWritePaths=/run/stand-in\nRestartSec=100ms\n"
    f"Environment=PATH={_PATH}\n{KEEP_CACHES}"
)


@dataclass(frozen=True)
class Machine:
    """A booted node."""

    process: int

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a program on it and wait for it, whatever its exit status."""
        enter = entering(self.process, "mount", "pid", "net", "uts")
        return subprocess.run([*enter, *argv], capture_output=True, text=True, timeout=PATIENCE)

    def systemctl(self, *argv: str) -> str:
        """The output of systemctl."""
        return self.run("systemctl", *argv).stdout.strip()

    def state(self, unit: str = "sparkgen-engine") -> str:
        """The state of a unit, such as active or failed."""
        return self.systemctl("show", "--property=ActiveState", "--value", unit)

    def result(self, unit: str = "sparkgen-engine") -> str:
        """Why a unit is in its state."""
        return self.systemctl("show", "--property=Result", "--value", unit)

    def set_file(self, name: str, text: str = "") -> None:
        """Write a file that a stand-in reads."""
        self.run("sh", "-c", f"echo '{text}' >/run/stand-in/{name}")

    def remove_file(self, name: str) -> None:
        """Remove a file."""
        self.run("rm", "-f", f"/run/stand-in/{name}")

    @property
    def calls(self) -> list[str]:
        """The calls, in order."""
        return self.run("cat", "/run/stand-in/calls").stdout.splitlines()

    def wait(self, state: str, unit: str = "sparkgen-engine", patience: float = PATIENCE) -> None:
        """Wait until a unit is in a state."""
        until(lambda: self.state(unit) == state, patience)


def prepared(tree: Path) -> Path:
    """A node's tree with the machine's parts: units, Docker, and folders for the tests."""
    units = tree / "opt/units"
    shutil.copytree(tree / "etc/systemd/system", units, symlinks=True)
    for name, text in _UNITS.items():
        (units / name).write_text(text)
    for unit in units.glob("sparkgen-*.service"):
        drop_in = units / f"{unit.name}.d"
        drop_in.mkdir()
        (drop_in / "test.conf").write_text(_TEST)
    docker = tree / "usr/bin/docker"
    docker.parent.mkdir(parents=True)
    docker.write_text(_DOCKER)
    docker.chmod(0o755)
    return tree


@contextmanager
def booted(
    tree: Path,
    within: Sequence[str] = (),
    script: str = _BOOT,
    group: str = "",
    patience: float = PATIENCE,
) -> Iterator[Machine]:
    """Boot a prepared tree in the network that the prefix `within` enters.

    Its systemd runs in the control group of this name, or in a new one.
    """
    spaces = ["mount", "ipc", "cgroup", *([] if within else ["net", "uts"])]
    with (
        separate_group(group or f"sparkgen-tests-{uuid4().hex}") as grouped,
        first_process(
            spaces, script, str(tree), within=[*grouped, *within], stderr=subprocess.PIPE
        ) as process,
    ):
        try:
            until(lambda: _is_up(process) or process.poll() is not None, patience)
            assert process.poll() is None, process.communicate()[1].decode()
            machine = Machine(_last(process.pid))
            yield machine
        finally:
            process.kill()


def _is_up(process: "subprocess.Popen[bytes]") -> bool:
    """Looked up anew each time: the processes before systemd may have children of their own."""
    return Machine(_last(process.pid)).systemctl("is-active", "boot.target") == "active"


def _children(pid: int) -> list[int]:
    file = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in file.read_text().split()] if file.exists() else []


def _last(pid: int) -> int:
    """The last process in a chain of only children: the prefixes replace themselves."""
    children = _children(pid)
    return children[0] if children else pid
