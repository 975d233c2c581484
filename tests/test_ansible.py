"""The playbook, run by ansible-core over real ssh; each node has its own namespaces and sshd."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from bundles import BUNDLES
from programs import require, require_root
from waiting import PATIENCE, until

from generator.verify.namespaces import networks

BUNDLE = next(bundle for bundle in BUNDLES if bundle.name == "golden-direct-proxy")
_serial = itertools.count()
NODES = {node.name: str(node.address) for node in BUNDLE.site.start_order}
# Ansible's programs lie beside the Python that runs the tests.
PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"

_NODE = """\
set -e
mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /root
mount --bind "$1/systemctl" /usr/bin/systemctl
mkdir -p /run/sshd /root/www && touch /root/www/health
echo "$0" >/root/name
ip link set lo up
until ip link set eth0 up 2>/dev/null; do sleep 0.05; done
ip address add "$2/24" dev eth0
exec /usr/sbin/sshd -D -e -f "$1/sshd_config"
"""

# All of them write their calls to one log, which shows the order across all nodes.
_RECORD = '#!/bin/bash\necho "$(cat /root/name) {name} $*" >>{log}\n'
_INSTALL = """\
case $1 in
  --check) [[ -e /root/installed ]] || { echo "/etc/nccl.conf: nothing becomes a file"; exit 1; } ;;
  --apply) touch /root/installed ;;
  --confirm) echo "the change stays" ;;
esac
"""
_VERIFY = """\
faults=$(cat "FOLDER/faults-$(cat /root/name)" 2>/dev/null)
[[ $* != *--alone || $faults != peers* ]] || faults=''
if [[ $faults ]]; then echo "FAIL  $faults" && exit 1; fi
"""
_SYSTEMCTL = """\
state=/root/state-${!#}
case $* in
  *show*)
    printf 'LoadState=loaded\\nActiveState=%s\\n' "$(cat "$state" 2>/dev/null || echo active)"
    ;;
  *stop*) echo inactive >"$state" ;;
  *start*)
    echo active >"$state"
    if [[ $(cat /root/name) == spark1 ]]; then
      cd /root/www
      load="sleep $(cat FOLDER/loading)"
      setsid sh -c "$load; exec python3 -m http.server --bind 127.0.0.1 8000" \\
        >/dev/null 2>&1 </dev/null &
    fi
    ;;
esac
"""


@dataclass(frozen=True)
class Operator:
    """The operator's machine, from which the nodes are reached, and the bundle there."""

    enter: tuple[str, ...]
    folder: Path
    bundle: Path
    sockets: str

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the playbook."""
        folder = self.bundle / "operator/ansible"
        argv = (str(PLAYBOOK), "-i", str(folder / "inventory.yaml"), str(folder / "playbook.yaml"))
        return subprocess.run(
            (*self.enter, *argv, *options),
            env={
                "HOME": str(self.folder),
                "PATH": "/usr/bin:/bin",
                "LC_ALL": "C.UTF-8",
                "ANSIBLE_SSH_CONTROL_PATH_DIR": self.sockets,
                # Modules go over ssh's input, without a copy of each on the node.
                "ANSIBLE_PIPELINING": "1",
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def on_node(self, name: str, command: str) -> str:
        """What a command prints on a node, over ssh."""
        config = str(self.bundle / "operator/ssh_config")
        ssh = (*self.enter, "ssh", "-F", config, name)
        return subprocess.run([*ssh, command], capture_output=True, text=True, check=True).stdout

    def calls(self, *programs: str) -> list[str]:
        """The calls of these programs on all nodes since the last time this was called."""
        log = self.folder / "log"
        lines = log.read_text().splitlines()
        log.write_text("")
        return [line for line in lines if line.split()[1] in programs]

    def fault(self, node: str, check: str) -> None:
        """Set the fault that the node's verify.py finds from now on."""
        (self.folder / f"faults-{node}").write_text(check)


def script(path: Path, name: str, folder: Path, text: str) -> None:
    content = _RECORD.format(name=name, log=folder / "log") + text.replace("FOLDER", str(folder))
    path.write_text(content)
    path.chmod(0o755)


def prepared(folder: Path) -> Path:
    """The bundle, with stand-ins for the two scripts that change and inspect a machine."""
    bundle = folder / "bundle"
    shutil.copytree(BUNDLE.folder, bundle)
    for node in NODES:
        script(bundle / node / "install.sh", "install", folder, _INSTALL)
        script(bundle / node / "verify.py", "verify", folder, _VERIFY)
    script(folder / "systemctl", "systemctl", folder, _SYSTEMCTL)
    for name in ("host", "own"):
        argv = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        subprocess.run(argv, check=True)
    (folder / "sshd_config").write_text(
        f"HostKey {folder}/host\nPidFile none\nStrictModes no\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/own.pub\nPermitRootLogin yes\n"
        "Subsystem sftp internal-sftp\n"
    )
    # The site's login does not exist on this machine.
    inventory = bundle / "operator/ansible/inventory.yaml"
    inventory.write_text(inventory.read_text().replace('"nvidia"', "root"))
    ssh = bundle / "operator/ssh_config"
    options = f"IdentityFile {folder}/own\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
    ssh.write_text(options + ssh.read_text().replace("User nvidia", "User root"))
    (folder / "log").touch()
    # Seconds; the playbook asks again after ten.
    (folder / "loading").write_text("0")
    return bundle


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    require("ip", "mount", "nsenter", "rsync", "ssh", "ssh-keygen", "unshare")
    require_root()
    if not PLAYBOOK.exists():
        require("ansible-playbook")
    bundle = prepared(tmp_path)
    with ExitStack() as stack:
        # A socket's path is limited to 107 characters, and pytest's folder may be deep already.
        sockets = stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp"))

        names = [f"ansible-{os.getpid()}-{next(_serial)}" for _ in range(1 + len(NODES))]
        stack.enter_context(networks(names))
        desk, *others = (("nsenter", f"--net=/run/netns/{name}") for name in names)

        def ip(*argv: str) -> None:
            subprocess.run((*desk, "ip", *argv), check=True)

        ip("link", "add", "lan", "type", "bridge")
        ip("address", "add", "10.0.0.1/24", "dev", "lan")
        ip("link", "set", "lan", "up")
        for space, enter, (name, address) in zip(names[1:], others, NODES.items(), strict=True):
            argv = (*enter, "unshare", "--mount", "bash", "-c", _NODE, name, str(tmp_path), address)
            node = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(node.wait)
            stack.callback(node.kill)
            ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("link", "set", name, "master", "lan", "up")
        for address in NODES.values():
            seen = (*desk, "bash", "-c", f"exec 3<>/dev/tcp/{address}/22")
            until(lambda argv=seen: subprocess.run(argv, capture_output=True).returncode == 0)  # type: ignore[misc]
        yield Operator(desk, tmp_path, bundle, sockets)


APPLIED = [
    *("spark2 install --apply", "spark2 install --confirm", "spark2 verify --before-start --alone"),
    *("spark1 install --apply", "spark1 install --confirm", "spark1 verify --before-start --alone"),
]


def changes(output: str) -> dict[str, int]:
    """The number of tasks that changed each node."""
    return {name: int(n) for name, n in re.findall(r"^(\w+) .*changed=(\d+)", output, re.MULTILINE)}


@pytest.mark.long
def test_rollout(operator: Operator) -> None:
    """Workers go first, one at a time; a check finds nothing installed before, nothing to do after.

    Files of an earlier bundle are removed, in check mode too; scripts stay executable.
    """
    folder = "/root/sparkgen-bundle"
    left = f"mkdir -p {folder}/etc/old && touch {folder}/etc/old/left '{folder}/etc/two words'"
    operator.on_node("spark2", left)
    tried = operator.run("--check")
    assert tried.returncode == 0, tried.stdout
    assert changes(tried.stdout)["spark2"] == 2, tried.stdout
    assert {*operator.calls("install", "verify")} == {f"{name} install --check" for name in NODES}
    assert "/etc/nccl.conf: nothing becomes a file" in tried.stdout
    sent = operator.bundle / "spark2"
    files = sorted(str(path.relative_to(sent)) for path in sent.rglob("*") if path.is_file())
    listed = f"cd {folder} && find . -type f -printf '%P\\n' | LC_ALL=C sort"
    assert operator.on_node("spark2", listed).split() == files
    assert (
        operator.on_node("spark2", f"stat --format=%a {folder}/opt/sparkgen/launch.sh") == "755\n"
    )

    done = operator.run()
    assert done.returncode == 0, done.stdout
    calls = operator.calls("install", "verify")
    assert {*calls[:2]} == {f"{name} install --check" for name in NODES}
    assert calls[2:8] == APPLIED
    assert {*calls[8:]} == {f"{name} verify --before-start" for name in NODES}
    again = operator.run()
    assert again.returncode == 0, again.stdout
    assert changes(again.stdout) == dict.fromkeys(NODES, 0)
    assert not [line for line in operator.calls("install") if "--apply" in line]


def test_fault_of_the_first_node_stops_it(operator: Operator) -> None:
    operator.fault("spark2", "driver")
    done = operator.run()
    assert done.returncode != 0
    assert operator.calls("install", "verify")[2:] == APPLIED[:3]
    assert "FAIL  driver" in done.stdout
    # It has its files now, and still its fault: the next node waits.
    assert operator.run().returncode != 0
    assert operator.calls("install", "verify")[2:] == ["spark2 verify --before-start --alone"]


def test_silent_peer_is_a_fault_once_all_are_installed(operator: Operator) -> None:
    operator.fault("spark2", "peers p0.0")
    done = operator.run()
    assert done.returncode != 0
    assert operator.calls("install", "verify")[2:8] == APPLIED


@pytest.mark.long
def test_restart_waits_until_the_engine_answers(operator: Operator) -> None:
    """The head stops first and starts last, and the rollout ends once it serves."""
    (operator.folder / "loading").write_text("2")
    done = operator.run("-e", "restart=true")
    assert done.returncode == 0, done.stdout
    calls = operator.calls("systemctl")
    steps = [line for line in calls if re.search(r" (stop|start) ", f"{line} ")]
    names = [(line.split()[0], "stop" if " stop " in f"{line} " else "start") for line in steps]
    assert names == [
        *(("spark1", "stop"), ("spark2", "stop")),
        *(("spark2", "start"), ("spark1", "start")),
    ]


@pytest.mark.long
def test_groups_restart_with_their_own_units(operator: Operator) -> None:
    """On each node, units stop in the reverse order of their start.

    Another test has the whole rollout before a restart; this one begins with it.
    """
    file = operator.bundle / "operator/ansible/inventory.yaml"
    inventory = yaml.safe_load(file.read_text())
    head, worker = (inventory["all"]["hosts"][name] for name in ("spark1", "spark2"))
    head |= {"units": ["sparkgen-engine-chat", "sparkgen-engine-embed"]}
    head |= {"health_urls": [head.pop("health_url")]}
    worker |= {"units": ["sparkgen-engine-chat"]}
    file.write_text(yaml.safe_dump(inventory, sort_keys=False))
    done = operator.run("-e", "restart=true", "--start-at-task", "Stop the engine")
    assert done.returncode == 0, done.stdout
    calls = "\n".join(operator.calls("systemctl"))
    steps = re.findall(r"^(\S+) .*\b(stop|start) sparkgen-engine-(\w+)", calls, re.MULTILINE)
    assert steps == [
        *(("spark1", "stop", "embed"), ("spark1", "stop", "chat"), ("spark2", "stop", "chat")),
        *(("spark2", "start", "chat"), ("spark1", "start", "chat"), ("spark1", "start", "embed")),
    ]


def test_playbook_needs_only_ansible_core() -> None:
    plays = yaml.safe_load((BUNDLE.folder / "operator/ansible/playbook.yaml").read_text())
    words = {key for play in plays for task in play["tasks"] for key in task if "." in key}
    assert words
    assert all(word.startswith("ansible.builtin.") for word in words)
