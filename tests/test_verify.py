"""verify.py tells a healthy node from a faulty one: one line for each fault, with its remedy.

The node is a separate file system and host name, with stand-ins for everything that is not a file.
Links, addresses and pings are the kernel's own in the network of the last part.
"""

import json
import os
import re
import shlex
import shutil
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from bundles import BUILT, BUNDLES, IDLE, IN_GROUPS, NODES, NodeFolder, covering, links
from cluster import cables
from node_programs import loaded
from programs import require, require_root
from recabling import set_mtu, unplug
from waiting import PATIENCE, until

from generator.bundle.payload import FOLDER
from generator.catalogs.vocabularies import VARIABLE
from generator.fabric.addressing import FabricInterface
from generator.resources import TEMPLATES
from generator.verify.namespaces import PROGRAMS, VirtualFabric, VirtualLink, fabric

BUNDLE = "home/nvidia/sparkgen-bundle"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
IMAGE_ID = "sha256:1a2b3c"
# Of '["sha256:1"]', the layers that the stand-in for Docker prints.
LAYERS = "3a9ad0fab1ed"
CONTAINER = "c0ffee"

# A root of its own for one process, mounted from a table.
_ROOT = """\
set -e
echo "$2" >/proc/sys/kernel/hostname
mount --all --fstab "$1"
shift 2
exec chroot /mnt "$@"
"""

Answers = dict[str, dict[str, str]]


CLOCK = "--query-gpu=clocks.current.graphics*"
THROTTLING = "--query-gpu=clocks_event_reasons.active*"


@dataclass
class Machine:
    """A node: its files below `tree`, and its programs' answers, by program and arguments.

    A program that has no answer for its arguments fails.
    """

    folder: NodeFolder
    tree: Path
    answers: Answers = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)

    def write(self, path: str, text: str, mode: int = 0o644) -> Path:
        """Write a file of the node."""
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def edit(self, path: str, old: str, new: str) -> None:
        """Change a file of the node."""
        file = self.tree / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def hca(self, interface: FabricInterface) -> str:
        """The folder of an HCA, below the tree."""
        return f"sys-class/infiniband/{interface.hca}"

    def mounts(self) -> str:
        """The table of what is mounted: the node's files over those of this machine."""
        tree = self.tree
        pairs = [(f"/{folder}", f"/mnt/{folder}") for folder in ("proc", "sys", "dev", "tmp")]
        if (tree / "cmdline").exists():
            pairs.append((f"{tree}/cmdline", "/mnt/proc/cmdline"))
        if (tree / "sys-net").exists():
            pairs.append(("/sys/class/net", f"{tree}/sys-class/net"))
        else:
            pairs.append((f"{tree}/proc-conf", "/mnt/proc/sys/net/ipv4/conf"))
        # What is mounted as an overlay can't be written.
        pairs += [(f"{tree}/var", "/mnt/var")]
        pairs += [(f"{tree}/sys-class", "/mnt/sys/class"), (f"{tree}/meminfo", "/mnt/proc/meminfo")]
        binds = (f"{source} {target} none rbind 0 0\n" for source, target in pairs)
        return f"overlay /mnt overlay lowerdir={tree}:/ 0 0\n" + "".join(binds)

    def command(self, *options: str, user: str = "", folder: str = BUNDLE) -> list[str]:
        """Run verify.py of the copied folder, or the installed one."""
        for program, answers in self.answers.items():
            self.write(f"stand-ins/{program}", stand_in(answers), 0o755)
        table = self.tree.parent / f"{self.folder.name}.mounts"
        table.write_text(self.mounts())
        path = "/stand-ins:/usr/sbin:/usr/bin:/sbin:/bin"
        env = {"PATH": path, "HOME": "/home/nvidia", "TMPDIR": "/tmp", **self.env}
        env["PYTHONPYCACHEPREFIX"] = str(compiled())
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if user else []
        start = ["unshare", "--mount", "--uts", "sh", "-c", _ROOT, "sh", str(table)]
        shell = ["env", "-i", *(f"{name}={value}" for name, value in env.items())]
        return [*start, self.folder.name, *drop, *shell, f"/{folder}/verify.py", *options]

    def run(
        self, *options: str, user: str = "", folder: str = BUNDLE
    ) -> subprocess.CompletedProcess[str]:
        """Run verify.py to its end."""
        command = self.command(*options, user=user, folder=folder)
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    def lines(self, *options: str, user: str = "", folder: str = BUNDLE) -> dict[str, str]:
        """The results of verify.py by check; its last line and exit status must match."""
        done = self.run(*options, user=user, folder=folder)
        assert done.stderr == ""
        return parsed(done)


# Python reads these only for modules of the same text, wherever a test changes one.
_COMPILE = """\
import importlib.util, py_compile, sys
from pathlib import Path
sys.pycache_prefix, modules, *places = sys.argv[1:]
for file in Path(modules).glob("*.py"):
    for place in places:
        path = f"{place}/{file.name}"
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        cache = importlib.util.cache_from_source(path)
        py_compile.compile(file, cache, path, doraise=True, invalidation_mode=mode)
"""


@cache
def compiled() -> Path:
    """The modules of verify.py, compiled for where they are on a node: it never writes them."""
    folder = Path(os.environ[BUILT]) / f"compiled-{os.getpid()}"
    modules = str(TEMPLATES / FOLDER / "node/opt/sparkgen")
    places = (f"/{BUNDLE}/opt/sparkgen", "/opt/sparkgen")
    subprocess.run(["/usr/bin/python3", "-c", _COMPILE, str(folder), modules, *places], check=True)
    return folder


def sound(host: Machine, state: str = "idle") -> dict[str, str]:
    """The results on a node without a fault in this state, which are the same each time.

    Only the first of all tests, in whichever worker, runs verify.py for them.
    """
    known = Path(os.environ[BUILT]) / f"{host.folder}-{state}.json".replace("/", "-")
    if not known.exists():
        with TemporaryDirectory(dir=known.parent) as work:
            found = Path(work) / known.name
            found.write_text(json.dumps(host.lines()))
            found.rename(known)
    results: dict[str, str] = json.loads(known.read_text())
    return results


def parsed(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Status and text of each check; the summary and the exit status must match."""
    *body, summary = done.stdout.splitlines()
    found = {}
    for line in body:
        matched = re.fullmatch(r"(OK|FAIL|SKIP) +(.{17}\S*) (.*)", line)
        assert matched, line
        status, check, text = matched.groups()
        assert check.strip() not in found
        found[check.strip()] = f"{status} {text}"
    counts = [sum(text.startswith(status) for text in found.values()) for status in STATUSES]
    assert summary.partition(": ")[2] == "{} OK, {} FAIL, {} SKIP".format(*counts)
    assert done.returncode == (1 if counts[1] else 0)
    return found


STATUSES = ("OK ", "FAIL ", "SKIP ")


def stand_in(answers: Mapping[str, str]) -> str:
    """A program that prints the answer for its arguments, each a pattern; otherwise it fails."""
    patterns = sorted(answers, key="*".__eq__)
    cases = "".join(
        f"  {pattern}) printf '%b' {quoted(answers[pattern])} ;;\n" for pattern in patterns
    )
    return f"#!/bin/sh\ncase $* in\n{cases}  *) exit 1 ;;\nesac\n"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def machine(folder: NodeFolder, work: Path) -> Machine:
    """A healthy node whose engine does not run yet."""
    require_root()
    require("hostname", "mount", "unshare", "setpriv", "awk", "sha256sum")
    work.mkdir(exist_ok=True)
    work.chmod(0o755)
    node = folder.node
    tree = folder.copy(work / "tree")
    host = Machine(folder, tree)
    # On a node the folder belongs to the user who copied it, with the modes that git gives.
    shutil.copytree(folder.path, tree / BUNDLE)
    for copied in (tree / BUNDLE / "etc/netplan").glob("*.yaml"):
        copied.chmod(0o644)
    for name in ("verify.py", "SHA256SUMS"):
        (tree / name).unlink()
    host.write("etc/dgx-release", DGX_RELEASE)
    host.write("etc/hostname", f"{node.name}\n")
    loopback = f"127.0.0.1 localhost\n127.0.1.1 {node.name}\n"
    fabric_hosts = tree / "etc/sparkgen/hosts"
    host.write("etc/hosts", loopback + (fabric_hosts.read_text() if fabric_hosts.exists() else ""))
    for path in ("etc/netplan", "var"):
        (tree / path).mkdir(exist_ok=True)
    host.write("meminfo", MEMORY)
    if folder.secrets:
        (tree / "etc/sparkgen/secrets.env").chmod(0o600)
    if folder not in IDLE:
        place_engine(host)
    (tree / "sys-class/net").mkdir(parents=True)
    (tree / "sys-class/infiniband").mkdir()
    (tree / "proc-conf").mkdir()
    for index, interface in enumerate(node.interfaces):
        place_half(host, interface, index)
    build = None if folder in IDLE else folder.part.image_build
    built = build.inputs if build else ""
    host.answers = {
        "docker": {
            "'info --format {{.ServerVersion}}'": "28.3.3\\n",
            "'info --format {{.DockerRootDir}}'": "/var\\n",
            "'info --format {{json .Runtimes}}'": '{"nvidia":{},"runc":{}}\\n',
            "'compose version --short'": "2.39.1\\n",
            "'image inspect --format {{.Architecture}} {{.Id}} '*": f"arm64 {IMAGE_ID}\\n",
            "'image inspect --format {{json .RootFS.Layers}} '*": '["sha256:1"]\\n',
            "'image inspect --format {{index .Config.Labels'*": built + "\\n",
        },
        "nvidia-smi": {
            "*": "NVIDIA GB10, 580.142\\n",
            CLOCK: "208\\n",
            THROTTLING: "0x0000000000000001, 0, 208\\n",
        },
        "srun": {"--mpi=list": "MPI plugin types are...\\n\\tpmix\\n", "--help": SRUN_HELP},
        "squeue": {"*": ""},
        "timedatectl": {"*": "yes\\n"},
        "systemctl": {
            "*": unit("inactive", "enabled"),
            "'is-enabled ufw'": "enabled\\n",
            "'is-active fail2ban'": "active\\n",
        },
        "ufw": {"'show added'": rules(host)},
        "iptables": {"-S": in_kernel(UFW_RULES)},
        "ip6tables": {"-S": in_kernel(UFW_RULES_6)},
        "nft": {"'list ruleset'": CHAINS},
        "fail2ban-client": {"'status sshd'": "Status for the jail: sshd\\n"},
        "lldpcli": {"'-f keyvalue show neighbors'": neighbours(host)},
        "journalctl": {"*": KERNEL_LOG},
        "df": {"*": "Avail\\n 900G\\n"},
        "ss": {"*": ""},
        "ping": {"*": "", "'-n -q -c 40 '*": "40 packets transmitted, 40 received\\n"},
        "prlimit": {"*": "unlimited\\n"},
        "uname": {"-n": f"{node.name}\\n", "-r": "6.17.0-1014-nvidia\\n"},
        "ethtool": {"*": "Settings for it:\\n\\tSpeed: 200000Mb/s\\n"},
        "ip": {"*": addresses(host)},
    }
    host.write("etc/ufw/ufw.conf", "ENABLED=yes\nLOGLEVEL=low\n")
    host.write("etc/ufw/user.rules", UFW_RULES)
    host.write("etc/ufw/user6.rules", UFW_RULES_6)
    host.write("etc/default/ufw", 'IPV6=yes\nDEFAULT_INPUT_POLICY="DROP"\n')
    users = Path("/etc/passwd").read_text()
    host.write("etc/passwd", f"{users}{node.user}:x:1000:1000::/home/{node.user}:/bin/bash\n")
    place_sshd(host)
    host.write("run/cdi/nvidia.yaml", CDI)
    return host


def place_engine(host: Machine) -> None:
    """The files that an engine reads on the node, and that its container gets."""
    folder = host.folder
    place_model(host)
    place_vocabularies(host)
    for key in folder.member.container.keys:
        host.write(key[1:], "a key\n", 0o600)
    if folder.part.engine.is_slurm_job:
        host.write(str(folder.part.engine.squashfs)[1:], "an image\n")
        host.write("etc/enroot/hooks.d/50-slurm-pmi.sh", "#!/usr/bin/env bash\n", 0o755)


# As ufw writes them, and as iptables shows them.
UFW_RULES = """\
-A ufw-user-input -p tcp --dport 22 -s 10.0.0.0/24 -j ACCEPT
-A ufw-user-input -i enp1s0f0np0 -j ACCEPT
-A ufw-user-limit -j REJECT
"""
UFW_RULES_6 = "-A ufw6-user-input -p tcp --dport 22 -s fd00::/64 -j ACCEPT\n"
# One table of iptables, and one of fail2ban.
CHAINS = """\
table ip filter {
\tchain INPUT {
\t\ttype filter hook input priority filter; policy drop;
\t}
}
table inet f2b-table {
\tchain f2b-chain {
\t\ttype filter hook input priority filter - 1; policy accept;
\t}
}
"""


def in_kernel(text: str) -> str:
    """The kernel's rules where ufw has given it those of its file."""
    base = "-P INPUT DROP\n-A INPUT -j ufw-before-input\n-A ufw-before-input -j ufw-user-input\n"
    base = base.replace("ufw-", "ufw6-") if "ufw6-" in text else base
    return base + text.replace("-p tcp --dport", "-p tcp -m tcp --dport")


MEMORY = """\
MemTotal:       127000000 kB
MemAvailable:   120000000 kB
SwapTotal:       16777212 kB
SwapFree:        16777212 kB
"""


def rules(host: Machine) -> str:
    """The rules of the bundle, as ufw shows them."""
    file = host.folder.path / "etc/sparkgen/firewall.rules"
    lines = file.read_text().splitlines() if file.exists() else []
    own = (f"ufw {line} comment \\'sparkgen\\'\\n" for line in lines if not line.startswith("#"))
    return "Added user rules:\\n" + "".join(own).replace("\\'", "'")


def addresses(host: Machine) -> str:
    """The addresses of the fabric, and that of the network that sparkgen does not configure."""
    node = host.folder.node
    assigned = {interface.name: str(interface.address) for interface in node.interfaces}
    if node.management:
        assigned["enP7s7"] = str(node.management.address)
    return "".join(f"2: {name}    inet {assigned[name]} brd x scope global\\n" for name in assigned)


def moves(old: str, new: str) -> Callable[[Machine], object]:
    """Give an interface another address."""

    def move(m: Machine) -> None:
        shown = m.answers["ip"]["*"]
        assert old in shown
        m.answers["ip"]["*"] = shown.replace(old, new)

    return move


def neighbours(host: Machine, moved: Mapping[str, tuple[str, str]] = MappingProxyType({})) -> str:
    """The output of lldpcli for nodes cabled right, or for other nodes where cables were moved."""
    lines = []
    for interface in host.folder.node.interfaces:
        known = {
            str(i.address.ip): (other.name, i.name)
            for other in host.folder.site.nodes
            for i in other.interfaces
        }
        peer = next(iter(interface.peers), None)
        seen = known[str(peer.address)] if peer and not host.folder.site.switches else ("rack", "7")
        name, port = moved.get(interface.name, seen)
        lines += [
            f"lldp.{interface.name}.{key}"
            for key in (
                "via=LLDP",
                "rid=1",
                "age=0 day, 00:00:02",
                f"chassis.name={name}.lan",
                "chassis.descr=Ubuntu 24.04.3 LTS Linux 6.17.0=1",
                "port.mac=4c:bb:47:2e:00:01",
                f"port.descr={port}",
                "port.ttl=120",
            )
        ]
    return "".join(f"{line}\\n" for line in lines)


def place_sshd(host: Machine) -> None:
    """The daemon's configuration as Ubuntu has it, where the bundle has settings of it."""
    if not (host.tree / SSHD).exists():
        return
    require("sshd", "ssh-keygen")
    host.write("etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n")
    host.write("run/sshd/empty", "")
    (host.tree / "run/sshd/empty").unlink()
    key = host.tree / "etc/ssh/ssh_host_ed25519_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)


SSHD = "etc/ssh/sshd_config.d/40-sparkgen.conf"

# The part of it that verify.py reads.
CDI = """\
kind: nvidia.com/gpu
containerEdits:
  mounts:
    - hostPath: /usr/lib/aarch64-linux-gnu/libcuda.so.580.142
"""
SRUN_HELP = "Options provided by plugins:\\n  --container-image=[USER@]IMAGE\\n"

DGX_RELEASE = """\
DGX_NAME="DGX Spark"
DGX_PRETTY_NAME="NVIDIA DGX Spark"
DGX_SWBUILD_DATE="2025-09-10-13-50-03"
DGX_SWBUILD_VERSION="7.2.3"
DGX_OTA_VERSION="7.5.0"
DGX_OTA_DATE="Wed Jul 15 09:06:56 AM PDT 2026"
"""

KERNEL_LOG = (
    "mlx5_core 0000:01:00.0: firmware version: 28.45.4028\\n"
    "mlx5_core 0000:01:00.0: Detected insufficient power on the PCIe slot (27W).\\n"
)


def unit(
    active: str,
    file: str,
    load: str = "loaded",
    reload: str = "no",
    sub: str = "running",
    entered: int = 0,
    restarts: int = 0,
) -> str:
    """The output of systemctl for the unit, which became active at a time relative to now, in s.

    One that is not started has not been since boot.
    """
    # A machine of the tests may have been up for less than that.
    since = 0 if active == "inactive" else max(1, int((time.monotonic() + entered) * 1e6))
    return (
        f"LoadState={load}\\nActiveState={active}\\nSubState={sub}\\nUnitFileState={file}\\n"
        f"NeedDaemonReload={reload}\\nNRestarts={restarts}\\nResult=exit-code\\n"
        f"ActiveEnterTimestampMonotonic={since}\\nStateChangeTimestampMonotonic={since}\\n"
    )


def place_half(host: Machine, interface: FabricInterface, index: int) -> None:
    net = f"sys-class/net/{interface.name}"
    host.write(f"{net}/carrier", "1\n")
    host.write(f"{net}/mtu", f"{interface.mtu}\n")
    hca = host.hca(interface)
    device = f"sys-class/pci/0000:01:00.{index}"
    host.write(f"{device}/current_link_speed", "32.0 GT/s PCIe\n")
    host.write(f"{device}/current_link_width", "4\n")
    host.write(f"{device}/net/{interface.name}/carrier", "1\n")
    host.write(f"{hca}/fw_ver", "28.45.4028\n")
    host.write(f"{hca}/ports/1/state", "4: ACTIVE\n")
    (host.tree / hca / "device").symlink_to(f"../../pci/0000:01:00.{index}")
    octets = interface.address.ip.packed
    mapped = f"0000:0000:0000:0000:0000:ffff:{octets[:2].hex()}:{octets[2:].hex()}\n"
    for number, kind in ((2, "IB/RoCE v1"), (3, "RoCE v2")):
        host.write(f"{hca}/ports/1/gids/{number}", mapped)
        host.write(f"{hca}/ports/1/gid_attrs/types/{number}", f"{kind}\n")
    host.write(f"proc-conf/{interface.name}/arp_ignore", "1\n")
    host.write(f"proc-conf/{interface.name}/forwarding", "1\n")
    host.write(f"proc-conf/{interface.name}/arp_announce", "2\n")
    host.write(f"proc-conf/{interface.name}/forwarding", "1\n")


def place_model(host: Machine) -> None:
    """Two shards as huggingface_hub keeps them, and folders of the site's own."""
    model = host.folder.site.parts[0].model
    for file in model.files if host.folder.node.is_head else ():
        host.write(file[1:], "").write_bytes(gguf())
    for folder in model.folders:
        for name in ("config.json", "tokenizer.json"):
            host.write(f"{folder[1:]}/{name}", "{}\n")
        (host.tree / folder[1:] / "model.safetensors").write_bytes(safetensors("a"))
    for source in model.downloads:
        revision = model.revision if source == model.source else None
        cache = f"{host.folder.member.env['HF_HUB_CACHE'][1:]}/models--{source.replace('/', '--')}"
        host.write(f"{cache}/refs/{revision or 'main'}", COMMIT)
        snapshot = host.tree / cache / "snapshots" / COMMIT
        snapshot.mkdir(parents=True)
        for name, data in MODEL_FILES.items():
            host.write(f"{cache}/blobs/{name}.blob", "").write_bytes(data)
            (snapshot / name).symlink_to(f"../../blobs/{name}.blob")


def place_vocabularies(host: Machine) -> None:
    """Short files, and their checksums in the facts of the node."""
    facts = host.tree / BUNDLE / "etc/sparkgen/node.env"
    original, text = facts.read_bytes(), facts.read_text()
    for known in host.folder.part.model.vocabularies:
        path = f"{host.folder.member.env[VARIABLE][1:]}/{known.file}"
        host.write(path, f"{known.file}\n")
        text = text.replace(known.sha256, sha256(f"{known.file}\n".encode()).hexdigest())
    # Likewise the files that the site expects on its nodes.
    for line in re.findall(r"^FILE=.*$", text, re.MULTILINE):
        checksum, path = line.removeprefix("FILE=").split()
        if checksum == "-":
            host.write(f"{path[1:]}/one", "1\n")
            continue
        host.write(path[1:], "a file\n")
        text = text.replace(line, f"FILE={sha256(b'a file' + bytes([10])).hexdigest()} {path}")
    sums = host.tree / BUNDLE / "SHA256SUMS"
    was, new = (sha256(raw).hexdigest() for raw in (original, text.encode()))
    for copied in (facts, host.tree / "etc/sparkgen/node.env"):
        copied.write_text(text)
    sums.write_text(sums.read_text().replace(was, new))


def safetensors(*names: str, data: bytes = b"weights\n") -> bytes:
    """A file with a tensor of 8 bytes for each name."""
    header = {
        name: {"dtype": "U8", "shape": [8], "data_offsets": [8 * index, 8 * index + 8]}
        for index, name in enumerate(names)
    }
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data * len(names)


def gguf(*, tokens: int = 3, data: bytes = b"w" * 288) -> bytes:
    """A file with a list of strings, and two tensors of 64 values in Q8_0 and F16."""

    def text(word: str) -> bytes:
        return struct.pack("<Q", len(word)) + word.encode()

    pairs = text("general.alignment") + struct.pack("<II", 4, 64)
    pairs += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, tokens)
    pairs += b"".join(text(f"t{index}") for index in range(tokens))
    tensors = text("a") + struct.pack("<IQIQ", 1, 64, 8, 0)
    tensors += text("b") + struct.pack("<IQQIQ", 2, 32, 2, 1, 128)
    head = b"GGUF" + struct.pack("<IQQ", 3, 2, 2) + pairs + tensors
    return head + bytes(-len(head) % 64) + data[: 128 + 128]


ONE = safetensors("a")
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
MODEL_FILES = {
    "config.json": b"{}\n",
    "tokenizer.json": b'{"version": "1.0"}\n',
    "model.safetensors.index.json": json.dumps(
        {
            "metadata": {"total_size": 16},
            "weight_map": dict(zip(("a", "b"), SHARDS, strict=True)),
        }
    ).encode(),
    **{shard: safetensors(name) for name, shard in zip(("a", "b"), SHARDS, strict=True)},
}


def folder_of(bundle: str, node: str) -> NodeFolder:
    return next(f for f in NODES if (f.bundle.name, f.name) == (bundle, node))


MESH = folder_of("lab-mesh", "spark1")
FIRST = MESH.node.interfaces[0]
PINNED = folder_of("golden-single-model-folder", "spark")
OWN_MODEL = PINNED.part.model.source
GGUF = folder_of("pair-llamacpp", "spark1")
SERVICES = folder_of("golden-switch-services", "spark1")
MPI, SLURM = folder_of("golden-trtllm-mpi-direct", "spark1"), folder_of("slurm-trtllm", "spark1")
(SECRET,) = MPI.secrets
SNAPSHOT = (
    f"{MESH.member.env['HF_HUB_CACHE'][1:]}/models--{MESH.part.model.source.replace('/', '--')}"
    f"/snapshots/{COMMIT}"
)


def test_files_of_the_site_on_the_node(memory: Path) -> None:
    host = machine(folder_of("golden-direct-files", "spark2"), memory)
    library, tables = (file.path[1:] for file in host.folder.member.placed)
    (host.tree / library).unlink()
    shutil.rmtree(host.tree / tables)
    missing = host.lines()["files-of-site"]
    assert missing.startswith(f"FAIL /{library} is missing, /{tables} is missing. To do: ")
    host.write(library, "a file\n")
    host.write(f"{tables}/one", "1\n")
    assert host.lines()["files-of-site"] == "OK 2 in place"
    host.write(library, "another build\n")
    assert f"/{library} does not have the checksum" in host.lines()["files-of-site"]


def test_vocabularies_of_harmony(memory: Path) -> None:
    host = machine(folder_of("single", "spark"), memory)
    folder = host.folder.member.env[VARIABLE]
    assert sound(host)["vocabularies"] == f"OK 2 in {folder}"
    host.write(f"{folder[1:]}/o200k_base.tiktoken", "half\n")
    assert "not right: o200k_base.tiktoken" in host.lines()["vocabularies"]


def test_secrets_may_belong_to_the_user_whose_job_reads_them(memory: Path) -> None:
    host = machine(MPI, memory)
    host.write("etc/passwd", f"root:x:0:0::/root:/bin/sh\n{MPI.node.user}:x:1000:1000::/:/bin/sh\n")
    os.chown(host.tree / "etc/sparkgen/secrets.env", 1000, 0)
    assert host.lines()["secrets"].startswith("OK ")
    os.chown(host.tree / "etc/sparkgen/secrets.env", 1001, 0)
    assert host.lines()["secrets"].startswith("FAIL others than root and ")


@pytest.fixture
def mesh(memory: Path) -> Machine:
    return machine(MESH, memory)


def running(host: Machine, health: str = "healthy", **changed: object) -> None:
    """Let the engine be running, as its Compose file describes it but for what is changed."""
    host.answers["systemctl"]["*"] = unit("active", "enabled")
    container = described(host, health)
    container["Mounts"] = [
        m for m in container["Mounts"] if m["Destination"] != changed.get("lost")
    ]
    for place, value in changed.items():
        section, _, name = place.partition("_")
        if name:
            container[section][name] = value
        elif section in container:
            container[section] = value
    docker = host.answers["docker"]
    docker["'inspect sparkgen-engine'"] = json.dumps([container]).replace("\\", "\\\\")
    docker["'image inspect sha256:'*"] = json.dumps([{"Config": {"Env": ["PATH=/usr/bin"]}}])
    docker["'ps --no-trunc --quiet --filter name=^sparkgen-'"] = f"{CONTAINER}\\n"
    host.answers["curl"] = {"*": ""}


def described(host: Machine, health: str) -> dict[str, Any]:
    """The engine's container, as `docker inspect` shows it."""
    text = (host.tree / "opt/sparkgen/compose.yaml").read_text().replace("$$", "$")
    service = yaml.safe_load(text)["services"]["engine"]
    variables = ["PATH=/usr/bin"]
    for file in service["env_file"]:
        lines = (host.tree / file[1:]).read_text().splitlines()
        variables += [line for line in lines if line and not line.startswith("#")]
    variables += [f"{name}={value}" for name, value in service.get("environment", {}).items()]
    return {
        "Id": CONTAINER,
        "Image": IMAGE_ID,
        "State": {
            "Running": True,
            "StartedAt": datetime.now(UTC).isoformat().replace("+00:00", "123Z"),
            "Health": {"Status": health} if health else None,
        },
        "Config": {
            "Image": service["image"],
            "Entrypoint": service["entrypoint"],
            "Cmd": service["command"],
            "Env": variables,
        },
        "HostConfig": {
            "ShmSize": int(service["shm_size"].removesuffix("gb")) << 30,
            "NetworkMode": service["network_mode"],
            "IpcMode": service["ipc"],
            "CapAdd": [f"CAP_{name}" for name in service["cap_add"]],
            "SecurityOpt": service["security_opt"],
            "Ulimits": [
                {"Name": name, "Soft": limit["soft"], "Hard": limit["hard"]}
                for name, limit in service["ulimits"].items()
            ],
        },
        "Mounts": [
            {
                "Type": "bind",
                "Source": mount["source"],
                "Destination": mount["target"],
                "RW": not mount.get("read_only", False),
            }
            for mount in service["volumes"]
        ],
    }


# All is well


def parts(folder: NodeFolder) -> set[object]:
    """What verify.py looks at: files, the engine, the topology, and which node it is."""
    site, node = folder.site, folder.node
    paths = {path for path, _ in folder.planned}
    return {*paths, site.engine.title, (site.kind, len(node.interfaces), node.is_head)}


@pytest.mark.parametrize("folder", covering(NODES, parts), ids=str)
def test_healthy_node(folder: NodeFolder, memory: Path) -> None:
    lines = sound(machine(folder, memory))
    skipped = {check for check, text in lines.items() if not text.startswith("OK ")}
    units = (folder.path / "etc/systemd/system").glob("*.service")
    # A unit without a target is started by a timer.
    wanted = {unit.stem for unit in units if "[Install]" in unit.read_text()}
    expected = {f"unit {unit.removeprefix('sparkgen-')}" for unit in wanted}
    assert ("unit engine" in expected) != folder.part.engine.is_slurm_job
    expected |= {"api"} if folder.node.is_head else set()
    # The machine has no virtual environment, and no process of its engine.
    expected |= {"venv", "running"} if folder.part.engine.venv else set()
    assert ("ports" in lines) == bool(folder.site.listeners(folder.node))
    assert skipped == expected | ({"alike"} if folder.site.workers else set()), lines
    halves = [str(interface.half) for interface in folder.node.interfaces]
    of_halves = {f"{check} {half}" for check in PER_HALF for half in halves}
    assert {check for check in lines if check.split()[0] in PER_HALF} == of_halves


PER_HALF = ("pcie", "link", "hca", "gid", "peers")


def network_parts(folder: NodeFolder) -> set[object]:
    paths = {path for path, _ in folder.planned}
    return {*paths, (folder.site.kind, len(folder.node.interfaces))}


@pytest.mark.parametrize("folder", covering(IDLE, network_parts), ids=str)
def test_healthy_node_without_an_engine(folder: NodeFolder, memory: Path) -> None:
    lines = sound(machine(folder, memory))
    skipped = {check for check, text in lines.items() if not text.startswith("OK ")}
    units = (folder.path / "etc/systemd/system").glob("*.service")
    wanted = {unit.stem for unit in units if "[Install]" in unit.read_text()}
    expected = {f"unit {unit.removeprefix('sparkgen-')}" for unit in wanted}
    assert skipped == expected | ({"alike"} if len(folder.site.nodes) > 1 else set()), lines
    halves = [str(interface.half) for interface in folder.node.interfaces]
    of_halves = {f"{check} {half}" for check in PER_HALF for half in halves}
    assert {check for check in lines if check.split()[0] in PER_HALF} == of_halves


def test_folder_without_its_facts(mesh: Machine) -> None:
    (mesh.tree / BUNDLE / "etc/sparkgen/node.env").unlink()
    done = mesh.run()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("node.env; copy this node's folder of the bundle here again\n")


def test_running_engine(mesh: Machine) -> None:
    running(mesh)
    mesh.answers["ss"]["*:8000"] = 'LISTEN 0 4096 *:8000 *:* users:(("vllm",pid=1,fd=5))\\n'
    # What the kernel says of process 1 is taken for the container's ID.
    group = Path("/proc/1/cgroup").read_text().partition("\n")[0]
    mesh.answers["docker"]["'ps --no-trunc --quiet --filter name=^sparkgen-'"] = f"{group}\\n"
    lines = mesh.lines()
    assert lines["unit engine"] == "OK active, enabled, 0 restarts"
    assert lines["api"].startswith("OK http://10.0.0.11:8000 ")
    assert lines["ports"].endswith("in use here: 8000")
    assert lines["memory"].endswith("beside the engine")


def test_healthy_soon_after_a_restart(mesh: Machine) -> None:
    running(mesh)
    mesh.answers["systemctl"]["*"] = unit("active", "enabled")
    assert mesh.lines()["unit engine"] == "OK active, enabled, 0 restarts"


@pytest.mark.long
def test_program_that_does_not_end(mesh: Machine) -> None:
    del mesh.answers["timedatectl"]
    hangs = "#!/bin/bash\ntrap '' TERM\nwhile true; do sleep 1; done\n"
    mesh.write("stand-ins/timedatectl", hangs, 0o755)
    assert mesh.lines()["time"].startswith("FAIL the clock is not synchronized")


def test_release_after_several_updates(mesh: Machine) -> None:
    newer = DGX_RELEASE.replace("7.5.0", "7.6.0")
    mesh.write("etc/dgx-release", DGX_RELEASE + newer[newer.index("DGX_OTA") :])
    assert mesh.lines()["os"] == "OK DGX OS 7.6.0, kernel 6.17.0-1014-nvidia"


def test_results_show_what_was_found(mesh: Machine) -> None:
    lines = sound(mesh)
    assert lines["os"] == "OK DGX OS 7.5.0, kernel 6.17.0-1014-nvidia"
    assert lines["driver"] == "OK NVIDIA GB10, 580.142"
    assert lines["firmware"] == "OK 28.45.4028 on all halves"
    assert lines["image"] == f"OK {IMAGE_ID}, layers {LAYERS}, which must be the same on all nodes"
    assert lines["link p0.h0"] == (
        "OK enp1s0f0np0, 192.168.177.11/24, MTU 9000, 200000 Mb/s, cable 1"
    )
    assert lines["gid p0.h0"] == "OK 192.168.177.11 is RoCE v2 at index 3 of rocep1s0f0"


@pytest.mark.parametrize(
    ("program", "arguments", "version", "line"),
    [
        (
            *("uname", "-r", "7.0.0-1019-nvidia-64k"),
            "FAIL SGA-2026-01: kernel 7.0.0-1019-nvidia-64k takes 9 GiB of memory for kexec "
            "handover, and NCCL can't register any for RDMA (ENOMEM). To do: put kho=off ",
        ),
        (
            *("nvidia-smi", "*", "NVIDIA GB10, 590.44.01"),
            "FAIL SGA-2026-05: driver 590.44.01 can deadlock in CUDA graphs on a GB10. To do: ",
        ),
    ],
    ids=["kernel", "driver"],
)
def test_advisory_about_the_node(
    program: str, arguments: str, version: str, line: str, mesh: Machine
) -> None:
    assert sound(mesh)["advisory"] == "OK none of 2 is about this kernel and driver"
    mesh.answers[program][arguments] = f"{version}\\n"
    assert mesh.lines()["advisory"].startswith(line)


def test_advisory_that_the_command_line_mends(mesh: Machine) -> None:
    mesh.answers["uname"]["-r"] = "7.0.0-1019-nvidia\\n"
    mesh.write("cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=0 kho=off quiet\n")
    assert mesh.lines()["advisory"] == "OK none of 2 is about this kernel and driver"


@pytest.mark.parametrize(
    ("reading", "result"),
    [
        ("2100", "OK 2100 MHz, at most 2100"),
        ("208", "OK 208 MHz, at most 2100"),
        ("2411", "FAIL the GPU runs at 2411 MHz, above its limit of 2100"),
        ("[N/A]", "SKIP nvidia-smi does not say how fast the GPU runs"),
    ],
)
def test_clock_limit(reading: str, result: str, memory: Path) -> None:
    host = machine(folder_of("golden-direct-proxy", "spark2"), memory)
    host.answers["nvidia-smi"][CLOCK] = f"{reading}\n"
    assert host.lines()["clock"].startswith(result)


def test_pinned_image(memory: Path) -> None:
    lines = sound(machine(PINNED, memory))
    assert lines["image"] == f"OK {IMAGE_ID}, by the digest that the site gives"


# One fault each


@dataclass(frozen=True)
class Fault:
    """What is done to a healthy node, and what verify.py then says: the fault and its remedy."""

    check: str
    found: str
    remedy: str
    make: Callable[[Machine], object]
    folder: NodeFolder = MESH
    skipped: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    status: str = "FAIL"

    def __str__(self) -> str:
        return f"{self.check}: {self.found}"

    @property
    def checks(self) -> set[str]:
        """The checks whose lines change."""
        return {self.check, *self.skipped}

    def is_beside(self, other: "Fault") -> bool:
        """Whether a node may have both: each has lines of its own, and what it needs is sound."""
        return self.folder == other.folder and not (
            self.checks & other.checks
            or self.checks & {*other.needs}
            or other.checks & {*self.needs}
        )


def answer(program: str, text: str, arguments: str = "*") -> Callable[[Machine], object]:
    """Make a program answer something else."""
    return lambda m: m.answers[program].update({arguments: text})


def silence(program: str, arguments: str = "*") -> Callable[[Machine], object]:
    """Make a program fail."""
    return lambda m: m.answers[program].pop(arguments)


def writes(path: str, text: str) -> Callable[[Machine], object]:
    return lambda m: m.write(path, text)


def removes(path: str) -> Callable[[Machine], object]:
    def remove(m: Machine) -> None:
        target = m.tree / path
        shutil.rmtree(target) if target.is_dir() else target.unlink()

    return remove


def first(check: str) -> str:
    return f"{check} {FIRST.half}"


NET, HCA = f"sys-class/net/{FIRST.name}", f"sys-class/infiniband/{FIRST.hca}"
PCI = "sys-class/pci/0000:01:00.0"
BEHIND_LINK = (first("hca"), first("gid"), first("peers"))
DOCKER = "docker"
PEER = "192.168.177.12"
FULL, SMALL = f"'-n -q -c 1 -W 2 -M do -s {FIRST.ping_size} '*{PEER}", f"*'-s 56 '*{PEER}"


def silent_peer(m: Machine, *, small: bool) -> None:
    """Pings of the first peer get lost, or only full frames do."""
    patterns = [FULL] if small else [f"*{PEER}"]
    script = "".join(f"  {pattern}) exit 1 ;;\n" for pattern in patterns)
    del m.answers["ping"]
    m.write("stand-ins/ping", f"#!/bin/bash\ncase $* in\n{script}esac\n", 0o755)


def lost(m: Machine, address: str) -> None:
    """Pings to an address of the management network get lost."""
    del m.answers["ping"]
    m.write("stand-ins/ping", f'#!/bin/bash\n[[ "$*" != "-n -q -c 2 "*" {address}" ]]\n', 0o755)


def hears(m: Machine, moved: Mapping[str, tuple[str, str]]) -> None:
    """Both halves of a port are linked to a half of another node's port."""
    there = {
        i.name: (node, f"enp1s0f{far}np{far}")
        for i in m.folder.node.interfaces
        for port, (node, far) in moved.items()
        if i.name.endswith(f"np{port}")
    }
    m.answers["lldpcli"] = {"'-f keyvalue show neighbors'": neighbours(m, there)}


FAULTS = (
    Fault(
        "hostname",
        "this machine is called spark9, and the folder is for spark1",
        f"sudo /{BUNDLE}/install.sh --apply --set-hostname",
        answer("uname", "spark9\\n", "-n"),
    ),
    Fault(
        "bundle",
        "etc/sparkgen/hosts differs",
        "copy the folder spark1 of the bundle here again",
        lambda m: m.edit(f"{BUNDLE}/etc/sparkgen/hosts", "do not edit", "edit"),
    ),
    Fault(
        "bundle",
        "etc/sparkgen/hosts is missing",
        "copy the folder spark1 of the bundle here again",
        removes(f"{BUNDLE}/etc/sparkgen/hosts"),
        skipped=("hosts", "cabling"),
    ),
    Fault(
        "bundle",
        "SHA256SUMS is missing, empty or cut off",
        "copy the folder spark1 of the bundle here again",
        removes(f"{BUNDLE}/SHA256SUMS"),
        skipped=("files",),
    ),
    Fault(
        "bundle",
        "opt/sparkgen/wait-fabric.sh is missing",
        "copy the folder spark1 of the bundle here again",
        removes(f"{BUNDLE}/opt/sparkgen/wait-fabric.sh"),
    ),
    Fault(
        "files",
        "/opt/sparkgen/compose.yaml differs",
        f"sudo /{BUNDLE}/install.sh --check",
        lambda m: m.edit("opt/sparkgen/compose.yaml", 'restart: "no"', "restart: always"),
    ),
    Fault(
        "files",
        "/etc/sparkgen/engine.env is missing",
        f"sudo /{BUNDLE}/install.sh --check",
        removes("etc/sparkgen/engine.env"),
    ),
    Fault(
        "files",
        "/etc/netplan/40-cx7.yaml has the mode 644, not 600",
        f"sudo /{BUNDLE}/install.sh --check",
        lambda m: (m.tree / "etc/netplan/40-cx7.yaml").chmod(0o644),
    ),
    Fault(
        "files",
        "/opt/sparkgen/launch.sh is not executable",
        f"sudo /{BUNDLE}/install.sh --check",
        lambda m: (m.tree / "opt/sparkgen/launch.sh").chmod(0o644),
        needs=("rights",),
    ),
    Fault(
        "os",
        "/etc/dgx-release does not say DGX Spark",
        "run this on a DGX Spark",
        removes("etc/dgx-release"),
        skipped=("alike",),
    ),
    Fault(
        "os",
        "DGX OS 7.3.0, last updated in 2026-03",
        "the release of April 2026",
        lambda m: [
            m.edit("etc/dgx-release", "Jul 15", "Mar 15"),
            m.edit("etc/dgx-release", "7.5.0", "7.3.0"),
        ],
        skipped=("alike",),
    ),
    Fault(
        "cdi",
        "no CDI specification of the GPU",
        "sudo systemctl enable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service",
        removes("run/cdi/nvidia.yaml"),
    ),
    Fault(
        "cdi",
        "/run/cdi/nvidia.yaml is not for the driver 580.142",
        "sudo systemctl restart nvidia-cdi-refresh.service",
        lambda m: m.edit("run/cdi/nvidia.yaml", "580.142", "580.95.05"),
        needs=("driver",),
    ),
    Fault(
        "driver",
        "nvidia-smi shows no driver version, but: Failed to initialize NVML: Unknown Error",
        "reboot",
        answer("nvidia-smi", "Failed to initialize NVML: Unknown Error\\n"),
        skipped=("alike",),
    ),
    Fault(
        "driver",
        "nvidia-smi shows no driver version, but: NVIDIA GB10, [Unknown Error]",
        "reboot",
        answer("nvidia-smi", "NVIDIA GB10, [Unknown Error]\\n"),
        skipped=("alike",),
    ),
    Fault(
        "rights",
        "others than root can change what root runs: /opt/sparkgen/launch.sh is not root's",
        "sudo chown root:root /opt/sparkgen/launch.sh && sudo chmod go-w /opt/sparkgen/launch.sh",
        lambda m: os.chown(m.tree / "opt/sparkgen/launch.sh", 1000, 1000),
        needs=("bundle",),
    ),
    Fault(
        "rights",
        "others than root can change what root runs: /opt/sparkgen/launch.sh has the mode 775",
        "sudo chmod go-w",
        lambda m: (m.tree / "opt/sparkgen/launch.sh").chmod(0o775),
        needs=("bundle",),
    ),
    Fault(
        "rights",
        "others than root can change what root runs: /opt/sparkgen has the mode 777",
        "sudo chmod go-w /opt/sparkgen",
        lambda m: (m.tree / "opt/sparkgen").chmod(0o777),
        needs=("bundle",),
    ),
    Fault(
        "management",
        "no answer from spark2 (10.0.0.12)",
        "connected to the switch of the management network",
        lambda m: lost(m, "10.0.0.12"),
    ),
    Fault(
        "management",
        "this node does not have the address 10.0.0.11",
        "give it that address",
        moves(" 10.0.0.11", " 10.0.0.99"),
    ),
    Fault(
        "cabling",
        "cable 1 leads from p0 to p0 of spark3, not to p1 of spark2, "
        "cable 3 leads from p1 to p1 of spark2, not to p0 of spark3",
        "move the plug in p0 of this node to p1, move the plug in p1 of this node to p0",
        lambda m: hears(m, {"0": ("spark3", "0"), "1": ("spark2", "1")}),
    ),
    Fault(
        "cabling",
        "cable 1 leads from p0 to p0 of spark2, not to p1 of spark2",
        "move its other end from p0 of spark2 to p1 of spark2",
        lambda m: hears(m, {"0": ("spark2", "0")}),
    ),
    Fault(
        "cabling",
        "cable 1 leads from p0 to p1 of spark1, not to p1 of spark2",
        "move its other end from p1 of spark1 to p1 of spark2",
        lambda m: hears(m, {"0": ("spark1", "1")}),
    ),
    Fault(
        "cabling",
        "p0 hears spark-1a2b, p1 hears spark-1a2b, which this site does not name",
        "",
        lambda m: hears(m, {"0": ("spark-1a2b", "0"), "1": ("spark-1a2b", "1")}),
        status="SKIP",
    ),
    Fault(
        "cabling",
        "lldpd hears no neighbor, or does not let root ask",
        "",
        silence("lldpcli", "'-f keyvalue show neighbors'"),
        status="SKIP",
    ),
    Fault(
        "cabling",
        "cable 1 leads from p0 to p0 of spark2, not to the switch",
        "move its other end to the switch",
        lambda m: hears(m, {"0": ("spark2", "0")}),
        SERVICES,
    ),
    Fault(
        "firewall",
        "ufw is off",
        "sudo /opt/sparkgen/firewall.sh",
        writes("etc/ufw/ufw.conf", "ENABLED=no\n"),
        SERVICES,
    ),
    Fault(
        "firewall",
        "ufw is on, but off after a reboot",
        "sudo systemctl enable ufw",
        answer("systemctl", "disabled\\n", "'is-enabled ufw'"),
        SERVICES,
    ),
    Fault(
        "firewall",
        "ufw lets in what no rule names: its default is accept",
        "sudo /opt/sparkgen/firewall.sh",
        writes("etc/default/ufw", 'DEFAULT_INPUT_POLICY="ACCEPT"\n'),
        SERVICES,
    ),
    Fault(
        "firewall",
        "ufw should be on, and the kernel lacks -P INPUT DROP, -A INPUT -j ufw-before-input, ",
        "sudo ufw reload",
        answer("iptables", "-P INPUT ACCEPT\\n", "-S"),
        SERVICES,
    ),
    Fault(
        "firewall",
        "ufw is on without: ",
        "sudo /opt/sparkgen/firewall.sh",
        answer("ufw", "Added user rules:\\nufw allow 22/tcp\\n", "'show added'"),
        SERVICES,
    ),
    Fault(
        "fail2ban",
        "fail2ban is not running",
        "sudo systemctl enable --now fail2ban",
        answer("systemctl", "inactive\\n", "'is-active fail2ban'"),
        SERVICES,
    ),
    Fault(
        "fail2ban",
        "it is running without the jail sshd",
        "sudo systemctl restart fail2ban",
        silence("fail2ban-client", "'status sshd'"),
        SERVICES,
    ),
    Fault(
        "sshd",
        "maxauthtries 20, not 3, x11forwarding yes, not no",
        "remove it from /etc/ssh/sshd_config.d/10-cloud.conf, then: sudo systemctl reload ssh",
        writes("etc/ssh/sshd_config.d/10-cloud.conf", "MaxAuthTries 20\nX11Forwarding yes\n"),
        SERVICES,
    ),
    Fault(
        "sshd",
        "sshd rejects its settings: /etc/ssh/sshd_config.d/99-x.conf",
        "sudo sshd -t",
        writes("etc/ssh/sshd_config.d/99-x.conf", "NoSuchThing yes\n"),
        SERVICES,
    ),
    Fault(
        "user",
        "there is no user nvidia",
        "sudo adduser nvidia",
        lambda m: m.edit("etc/passwd", "nvidia:x:", "other:x:"),
    ),
    Fault(
        "user",
        "nvidia can't log in: its shell is /usr/sbin/nologin",
        "sudo chsh --shell /bin/bash nvidia",
        lambda m: m.edit("etc/passwd", "/home/nvidia:/bin/bash", "/home/nvidia:/usr/sbin/nologin"),
    ),
    Fault(
        "user",
        "nvidia may not use Docker",
        "sudo usermod --append --groups docker nvidia",
        lambda m: os.chown(m.write("run/docker.sock", ""), 0, 999),
    ),
    Fault(
        "user",
        "sshd takes no key of nvidia, since others can write to /home/nvidia/.ssh. To do: ",
        "sudo chmod go-w /home/nvidia/.ssh",
        lambda m: (m.write("home/nvidia/.ssh/config", "").parent).chmod(0o777),
        SERVICES,
    ),
    Fault(
        "hosts",
        "programs don't read /etc/hosts: its mode is 600",
        "sudo chmod 0644 /etc/hosts",
        lambda m: (m.tree / "etc/hosts").chmod(0o600),
    ),
    Fault(
        "hosts",
        "programs don't read /etc/hosts: /etc/nsswitch.conf has only dns",
        "write files into the line hosts of /etc/nsswitch.conf",
        writes("etc/nsswitch.conf", "passwd: files\nhosts: dns\n"),
    ),
    Fault(
        "docker",
        "Docker gives containers other users (userns-remap)",
        "remove userns-remap from /etc/docker/daemon.json",
        answer(DOCKER, '["name=userns"]\\n', "'info --format {{json .SecurityOptions}}'"),
    ),
    Fault(
        "docker",
        "Docker is a snap",
        "sudo snap remove docker",
        answer(DOCKER, "/var/snap/docker/data\\n", "'info --format {{.DockerRootDir}}'"),
    ),
    Fault(
        "disk",
        "900 GiB free in /var, 900 GiB free in /home/nvidia/.cache/huggingface/hub, 0 GiB",
        "free at least 20 GiB",
        answer("df", "Avail\\n  0G\\n", "*' /'"),
    ),
    Fault(
        "kernel-log",
        "a cable or a port that is faulty",
        "mend the cause",
        lambda m: log(
            "mlx5_core 0000:01:00.0: Port module event[error]: module 0, Cable error, Bus stuck"
        )(m),
    ),
    Fault(
        "secrets",
        f"in /etc/sparkgen/secrets.env, the value of {SECRET} ends in white space",
        "sudo sed -i",
        lambda m: m.edit("etc/sparkgen/secrets.env", "\n", "\r\n"),
        MPI,
    ),
    Fault(
        "firewall",
        "ufw should be on, and the kernel lacks 1 of its rules. To do",
        "sudo ufw reload",
        lambda m: m.write("etc/ufw/user.rules", f"{UFW_RULES}-A ufw-user-input -p udp -j DROP\n"),
        SERVICES,
    ),
    Fault(
        "firewall",
        "ufw should be on, and the kernel lacks 1 of its rules for IPv6",
        "sudo ufw reload",
        answer("ip6tables", in_kernel(UFW_RULES_6).replace("fd00::/64", "fd01::/64"), "-S"),
        SERVICES,
    ),
    Fault(
        "ports",
        "taken: 8000 (api) by vllm (process 1), open-webui (process 77)",
        "choose other ports in the site file",
        answer(
            "ss",
            'LISTEN 0 9 *:8000 *:* users:(("vllm",pid=1,fd=5))\\n'
            'LISTEN 0 9 lo:8000 *:* users:(("open-webui",pid=77,fd=5))\\n',
            "*:8000",
        ),
    ),
    Fault("driver", "nvidia-smi shows no GPU", "reboot", silence("nvidia-smi"), skipped=("alike",)),
    Fault(
        "time",
        "the clock is not synchronized",
        "sudo timedatectl set-ntp true",
        answer("timedatectl", "no\\n"),
    ),
    Fault(
        "docker",
        "docker info does not answer root",
        "sudo usermod -aG docker",
        silence(DOCKER, "'info --format {{.ServerVersion}}'"),
        skipped=("nvidia-runtime", "image"),
    ),
    Fault(
        "compose",
        "docker compose is 1.29.2, not version 2",
        "docker-compose-plugin",
        answer(DOCKER, "1.29.2\\n", "'compose version --short'"),
    ),
    Fault(
        "compose",
        "docker compose is missing",
        "docker-compose-plugin",
        silence(DOCKER, "'compose version --short'"),
    ),
    Fault(
        "nvidia-runtime",
        "Docker does not know the runtime nvidia",
        "sudo nvidia-ctk runtime configure",
        answer(DOCKER, '{"runc":{}}\\n', "'info --format {{json .Runtimes}}'"),
    ),
    Fault(
        "image",
        f"{MESH.part.engine.image} is not here",
        f"docker pull {MESH.part.engine.image}",
        silence(DOCKER, "'image inspect --format {{.Architecture}} {{.Id}} '*"),
    ),
    Fault(
        "image",
        f"{MESH.part.engine.image} is for amd64, not for arm64",
        "docker pull --platform linux/arm64",
        answer(
            DOCKER, f"amd64 {IMAGE_ID}\\n", "'image inspect --format {{.Architecture}} {{.Id}} '*"
        ),
    ),
    Fault(
        "model",
        f"refs/main of {MESH.part.model.source} leads to {COMMIT[:12]}, which is not here",
        f"hf download {MESH.part.model.source}",
        removes(SNAPSHOT),
    ),
    Fault(
        "model",
        f"{MESH.part.model.source}, revision main, is not in ",
        f"hf download {MESH.part.model.source}",
        removes(str(Path(SNAPSHOT).parent.parent)),
    ),
    Fault(
        "model",
        f"/{SNAPSHOT}/{SHARDS[1]} is missing",
        "hf download",
        removes(f"{SNAPSHOT}/{SHARDS[1]}"),
    ),
    Fault(
        "model",
        f"/{SNAPSHOT}/{SHARDS[0]} is a dangling link",
        "hf download",
        removes(f"{SNAPSHOT}/../../blobs/{SHARDS[0]}.blob"),
    ),
    Fault(
        "model",
        f"/{SNAPSHOT}/{SHARDS[0]} has {len(ONE) - 1} bytes, and its header says {len(ONE)}",
        "hf download",
        lambda m: (m.tree / SNAPSHOT / SHARDS[0]).resolve().write_bytes(ONE[:-1]),
    ),
    Fault(
        "model",
        f"/{SNAPSHOT}/config.json is missing",
        "hf download",
        removes(f"{SNAPSHOT}/config.json"),
    ),
    Fault(
        "model",
        f"there is no {OWN_MODEL}",
        "copy the model there",
        removes(OWN_MODEL[1:]),
        PINNED,
    ),
    Fault(
        "model",
        f"there are no weights in {OWN_MODEL}",
        f"copy the model into {OWN_MODEL} again",
        removes(f"{OWN_MODEL[1:]}/model.safetensors"),
        PINNED,
    ),
    Fault(
        "model",
        f"not here, or empty: {GGUF.part.model.files[1]}. To do",
        "as README.md says",
        removes(GGUF.part.model.files[1][1:]),
        GGUF,
    ),
    Fault(
        "disk",
        "12 GiB free in /var",
        "docker image prune --all",
        answer("df", "Avail\\n  12G\\n"),
    ),
    Fault(
        "memory",
        f"76.3 GiB available, {MESH.part.engine.memory_utilization} of 119.7 GiB planned",
        "stop what uses memory",
        writes("meminfo", MEMORY.replace("120000000", "80000000")),
    ),
    Fault(
        "files",
        "/etc/nccl.conf can't be read by all users",
        f"sudo /{BUNDLE}/install.sh --check",
        lambda m: (m.tree / "etc/nccl.conf").chmod(0o600),
    ),
    Fault(
        "files",
        "/etc/nccl.conf differs, and turns RDMA off with NCCL_IB_DISABLE=1",
        f"sudo /{BUNDLE}/install.sh --check",
        writes("etc/nccl.conf", "NCCL_IB_DISABLE=1\n"),
    ),
    Fault(
        "files",
        "/etc/nccl.conf differs",
        "--apply fixes it",
        lambda m: m.edit("etc/nccl.conf", "NCCL_NET=IB", "NCCL_NET=Socket"),
    ),
    Fault(
        "nccl-masks",
        "nccl.conf is overridden by NCCL_IB_HCA in the environment",
        "remove these",
        lambda m: m.env.update(NCCL_IB_HCA=""),
    ),
    Fault(
        "nccl-masks",
        "nccl.conf is overridden by NCCL_NET in /home/nvidia/.nccl.conf",
        "remove these",
        writes("home/nvidia/.nccl.conf", "NCCL_NET=Socket\n"),
    ),
    Fault(
        "nccl-masks",
        "nccl.conf is overridden by NCCL_NET in /etc/other.conf",
        "remove these",
        lambda m: [
            m.env.update(NCCL_CONF_FILE="/etc/other.conf"),
            m.write("etc/other.conf", "NCCL_NET=Socket\n"),
        ],
    ),
    Fault(
        "memlock",
        "64 KiB, less than the 1 GiB of nccl-test.sh",
        "/etc/security/limits.d/90-memlock.conf",
        answer("prlimit", "65536\\n"),
    ),
    Fault(
        "owner",
        "/etc/netplan/99-nvidia-sync-cluster.yaml (enp1s0f0np0, by the tool that writes it again) "
        "configures these interfaces too",
        "keep NVIDIA Sync's Cluster Assistant off these ports",
        writes("etc/netplan/99-nvidia-sync-cluster.yaml", "network: {}\n"),
    ),
    Fault(
        "owner",
        "/etc/netplan/50-mine.yaml (enp1s0f0np0, by Name=enp1s0f0np0) configures these interfaces",
        "sudo netplan apply",
        writes("etc/netplan/50-mine.yaml", f"network: {{ethernets: {{{FIRST.name}: {{}}}}}}\n"),
    ),
    Fault(
        "owner",
        "/etc/netplan/90-NM-7.yaml (enp1s0f0np0, by mac-address=4C:BB:47:2E:00:01) configures",
        "narrow its match",
        lambda m: [
            m.write(f"{NET}/address", "4c:bb:47:2e:00:01\n"),
            m.write(
                "etc/netplan/90-NM-7.yaml",
                "network: {ethernets: {a: {renderer: NetworkManager, "
                "match: {macaddress: '4C:BB:47:2E:00:01'}}}}\n",
            ),
        ],
        needs=(first("link"),),
    ),
    Fault(
        "owner",
        "/etc/systemd/network/20-wired.network (enp1s0f0np0, by Type=ether) configures",
        "narrow its match",
        writes("etc/systemd/network/20-wired.network", "[Match]\nType=ether\n"),
    ),
    Fault(
        "owner",
        "/etc/NetworkManager/system-connections/any (enp1s0f0np0, by no match) configures",
        "narrow its match",
        writes("etc/NetworkManager/system-connections/any", "[connection]\ntype=ethernet\n"),
    ),
    Fault(
        "sysctl",
        f"net.ipv4.conf.{FIRST.name}.arp_ignore is 0, not 1",
        "sudo sysctl --system",
        writes(f"proc-conf/{FIRST.name}/arp_ignore", "0\n"),
    ),
    Fault(
        "firmware",
        "the halves differ: 28.43.1014 28.45.4028",
        "sudo fwupdmgr update",
        writes(f"{HCA}/fw_ver", "28.43.1014\n"),
        skipped=("alike",),
    ),
    Fault(
        "hot-plug",
        f"{FIRST.name} was attached to a running system, which caps it at 13 Gb/s",
        "start them with the cables in",
        answer(
            "journalctl",
            KERNEL_LOG
            + "mlx5_core 0000:01:00.0: PCIe slot power capability was not advertised.\\n",
        ),
    ),
    Fault(
        "hot-plug",
        f"{FIRST.name} was attached to a running system",
        "sudo mv /etc/nvidia/cx7-hotplug-enabled /etc/nvidia/cx7-hotplug-enabled.off on all nodes",
        lambda m: [
            m.write("etc/nvidia/cx7-hotplug-enabled", ""),
            answer(
                "journalctl",
                "mlx5_core 0000:01:00.0: PCIe slot power capability was not advertised.\\n",
            )(m),
        ],
    ),
    Fault(
        "hot-plug",
        "root can't read the kernel's log; run this with sudo. Hot-plug is off",
        "",
        answer("journalctl", ""),
        skipped=("kernel-log",),
        status="SKIP",
    ),
    Fault(
        first("pcie"),
        f"{FIRST.hca} has 2 lanes at 32.0 GT/s, not 4 at 32.0 GT/s",
        "unplug the power",
        writes(f"{PCI}/current_link_width", "2\n"),
    ),
    Fault(
        first("pcie"),
        f"{FIRST.hca} has 4 lanes at 2.5 GT/s, not 4 at 32.0 GT/s",
        "unplug the power",
        writes(f"{PCI}/current_link_speed", "2.5 GT/s PCIe\n"),
    ),
    Fault(
        first("link"),
        f"cable 1: there is no interface {FIRST.name}",
        "put cable 1 in",
        removes(NET),
        skipped=BEHIND_LINK,
    ),
    Fault(
        first("link"),
        f"cable 1: no carrier on {FIRST.name}",
        "seat both ends of cable 1",
        writes(f"{NET}/carrier", "0\n"),
        skipped=BEHIND_LINK,
    ),
    Fault(
        first("link"),
        f"cable 1: {FIRST.name} runs at 100000 Mb/s, not 200000",
        "use a cable for 200 Gb/s",
        answer("ethtool", "\\tSpeed: 100000Mb/s\\n", FIRST.name),
        skipped=BEHIND_LINK,
    ),
    Fault(
        first("link"),
        f"cable 1: {FIRST.name} runs at an unknown number of Mb/s",
        "use a cable for 200 Gb/s",
        answer("ethtool", "\\tSpeed: Unknown!\\n", FIRST.name),
        skipped=BEHIND_LINK,
    ),
    Fault(
        first("link"),
        f"cable 1: the MTU of {FIRST.name} is 1500, not 9000",
        "sudo netplan apply",
        writes(f"{NET}/mtu", "1500\n"),
        skipped=BEHIND_LINK,
    ),
    Fault(
        first("link"),
        f"cable 1: {FIRST.name} does not have the address 192.168.177.11/24",
        "sudo netplan apply",
        moves("192.168.177.11/24", "192.168.177.111/24"),
        skipped=BEHIND_LINK,
    ),
    Fault(
        first("hca"),
        f"there is no HCA {FIRST.hca}, but: mlx5_0",
        "NCCL is configured with the name",
        lambda m: (m.tree / HCA).rename(m.tree / "sys-class/infiniband/mlx5_0"),
        skipped=(first("gid"), first("pcie")),
    ),
    Fault(
        first("hca"),
        f"{FIRST.hca} is 1: DOWN, not ACTIVE",
        f"sudo ip link set {FIRST.name} up",
        writes(f"{HCA}/ports/1/state", "1: DOWN\n"),
    ),
    Fault(
        first("hca"),
        f"{FIRST.hca} does not belong to {FIRST.name}",
        "reboot",
        removes(f"{PCI}/net/{FIRST.name}"),
    ),
    Fault(
        first("gid"),
        f"{FIRST.hca} has no RoCE v2 GID for 192.168.177.11",
        "sudo netplan apply",
        writes(f"{HCA}/ports/1/gid_attrs/types/3", "IB/RoCE v1\n"),
    ),
    Fault(
        first("peers"),
        f"cable 1: spark2 ({PEER}) does not answer on {FIRST.name}",
        "compare both ends of the cable with the table in README.md",
        lambda m: silent_peer(m, small=False),
    ),
    Fault(
        first("peers"),
        f"cable 1: spark2 ({PEER}) answers small pings, but not 8972 bytes on {FIRST.name}",
        "set the same MTU at both ends",
        lambda m: silent_peer(m, small=True),
    ),
    Fault(
        "hosts",
        "/etc/hosts: spark2 is 10.0.0.99",
        "remove other lines with these names",
        lambda m: m.edit("etc/hosts", "10.0.0.12 ", "10.0.0.99 "),
    ),
    Fault(
        "hosts",
        "/etc/hosts: spark3.p0.h0 is missing",
        f"sudo /{BUNDLE}/install.sh --apply",
        lambda m: m.edit("etc/hosts", "192.168.187.13 spark3.p0.h0\n", ""),
    ),
    Fault(
        "unit engine",
        "systemd does not know sparkgen-engine.service",
        f"sudo /{BUNDLE}/install.sh --apply",
        answer("systemctl", unit("inactive", "", load="not-found")),
    ),
    Fault(
        "unit engine",
        "the unit has changed since systemd read it",
        "sudo systemctl daemon-reload",
        answer("systemctl", unit("active", "enabled", reload="yes")),
    ),
    Fault(
        "unit engine",
        "it has failed, after 0 restarts",
        "journalctl -u sparkgen-engine",
        answer("systemctl", unit("failed", "enabled")),
    ),
    Fault(
        "unit engine",
        "it exits again and again: 4 restarts, the last exit was exit-code",
        "journalctl -u sparkgen-engine",
        answer("systemctl", unit("activating", "enabled", sub="auto-restart", restarts=4)),
    ),
    Fault(
        "unit engine",
        "it is starting again, after 4 restarts",
        "journalctl -u sparkgen-engine",
        answer("systemctl", unit("activating", "enabled", sub="start-pre", restarts=4)),
    ),
    Fault(
        "unit engine",
        "it is starting (start-pre)",
        "",
        answer("systemctl", unit("activating", "enabled", sub="start-pre", restarts=0)),
        status="SKIP",
    ),
    Fault(
        "unit engine",
        "4 restarts, the last one ",
        "fine if it is still up after 1200 s",
        # Its age counts from when the test runs, not from when it was collected.
        lambda m: answer("systemctl", unit("active", "enabled", entered=-60, restarts=4))(m),
    ),
    Fault(
        "unit engine",
        "active, but disabled: a reboot will not bring it back",
        "sudo systemctl enable sparkgen-engine",
        answer("systemctl", unit("active", "disabled")),
    ),
    Fault(
        "keys",
        f"there is no {MPI.node.container.keys[1]}",
        "create it as README.md says",
        removes(MPI.node.container.keys[1][1:]),
        MPI,
    ),
    Fault(
        "keys",
        f"there is no {MPI.node.container.keys[0]}",
        "create it as README.md says",
        removes(MPI.node.container.keys[0][1:]),
        MPI,
    ),
    Fault(
        "keys",
        f"others than root can read {MPI.node.container.keys[0]}, so ssh does not use it",
        f"sudo chmod 0600 {MPI.node.container.keys[0]}",
        lambda m: (m.tree / MPI.node.container.keys[0][1:]).chmod(0o644),
        MPI,
    ),
    Fault(
        "firewall",
        "ufw should be on, and the kernel lacks 1 of its rules",
        "sudo ufw reload",
        answer("iptables", in_kernel(UFW_RULES.partition("\n")[2]), "-S"),
        SERVICES,
    ),
    Fault(
        "firewall",
        "ufw should be on, and the kernel lacks -A INPUT -j ufw-before-input",
        "sudo ufw reload",
        answer(
            "iptables", in_kernel(UFW_RULES).replace("-A INPUT -j ufw-before-input\n", ""), "-S"
        ),
        SERVICES,
    ),
    Fault(
        "firewall",
        "ufw is right; not looked at: whether inet filter, which also refuse packets, let",
        "",
        answer("nft", CHAINS.replace("ip filter", "inet filter"), "'list ruleset'"),
        SERVICES,
        status="SKIP",
    ),
    Fault(
        "slurm",
        "srun --mpi=list does not name pmix",
        "install Slurm's plugin for PMIx",
        answer("srun", "\\tpmi2\\n", "--mpi=list"),
        SLURM,
    ),
    Fault(
        "slurm",
        "srun has no --container-image",
        "install pyxis",
        answer("srun", "Options\\n", "--help"),
        SLURM,
    ),
    Fault(
        "slurm",
        "enroot has no hook for PMIx",
        "sudo ln -s /usr/share/enroot/hooks.d/50-slurm-pmi.sh /etc/enroot/hooks.d/",
        removes("etc/enroot/hooks.d/50-slurm-pmi.sh"),
        SLURM,
    ),
    Fault(
        "slurm",
        f"there is no {SLURM.part.engine.squashfs}",
        "import the image as README.md says",
        removes(str(SLURM.part.engine.squashfs)[1:]),
        SLURM,
    ),
    Fault(
        "unit guard",
        "it has failed, after 0 restarts",
        "journalctl -u sparkgen-guard",
        answer("systemctl", unit("failed", "enabled"), "*sparkgen-guard"),
        SERVICES,
    ),
    Fault(
        "ports",
        "taken: 8000 (api) by open-webui (process 77)",
        "choose other ports in the site file",
        answer("ss", 'LISTEN 0 9 *:8000 *:* users:(("open-webui",pid=77,fd=5))\\n', "*:8000"),
    ),
    Fault(
        "ports",
        "taken: 50052 (rpc) by rpc-server (process 77)",
        "choose other ports in the site file",
        answer("ss", 'LISTEN 0 9 *:50052 *:* users:(("rpc-server",pid=77,fd=5))\\n', "*:50052"),
        folder_of("pair-llamacpp", "spark2"),
    ),
    Fault(
        "ports",
        "taken: 8000 (api) by a process that only root can see",
        "stop that program",
        answer("ss", "LISTEN 0 9 *:8000 *:* \\n", "*:8000"),
    ),
    Fault(
        "secrets",
        "there is no /etc/sparkgen/secrets.env",
        "the engine does not start without it",
        removes("etc/sparkgen/secrets.env"),
        MPI,
    ),
    Fault(
        "secrets",
        f"others than root and {MPI.node.user} can read /etc/sparkgen/secrets.env",
        "sudo chown root:root",
        lambda m: (m.tree / "etc/sparkgen/secrets.env").chmod(0o644),
        MPI,
    ),
    Fault(
        "secrets",
        f"/etc/sparkgen/secrets.env has no value for {SECRET}",
        "sudoedit",
        lambda m: m.edit("etc/sparkgen/secrets.env", f"={MPI.secrets[SECRET]}", "="),
        MPI,
    ),
)


# Faults of one node that are reported in separate lines.
Faults = tuple[Fault, ...]


def together(faults: Sequence[Fault], most: int = 8) -> Iterator[Faults]:
    """The faults in as few runs as possible."""
    left = list(faults)
    while left:
        run: list[Fault] = []
        for fault in left:
            if len(run) < most and all(fault.is_beside(other) for other in run):
                run.append(fault)
        left = [fault for fault in left if fault not in run]
        yield tuple(run)


def test_each_holder_of_a_port_is_named(memory: Path) -> None:
    host = machine(MESH, memory)
    two = (
        'LISTEN 0 9 127.0.0.1:8000 *:* users:(("open-webui",pid=77,fd=5))\\n'
        "LISTEN 0 9 10.0.0.1:8000 *:*\\n"
    )
    answer("ss", two, "*:8000")(host)
    own = "FAIL taken: 8000 (api) by open-webui (process 77), a process that only root can see"
    assert host.lines()["ports"].startswith(own)


@pytest.mark.parametrize(
    "faults", [*together(FAULTS)], ids=lambda faults: " and ".join(fault.check for fault in faults)
)
def test_faults(faults: Faults, memory: Path) -> None:
    host = machine(faults[0].folder, memory)
    before = sound(host)
    for fault in faults:
        fault.make(host)
    after = host.lines()
    for fault in faults:
        text = after[fault.check]
        assert text.startswith(f"{fault.status} {fault.found}")
        found, _, remedy = text.partition(". To do: ")
        assert fault.remedy in remedy, found
        assert all(after[check].startswith("SKIP ") for check in fault.skipped)
    assert changed(before, after) == {check for fault in faults for check in fault.checks}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    assert before.keys() == after.keys()
    return {check for check in before if before[check] != after[check]}


def test_api(mesh: Machine) -> None:
    running(mesh)
    before = mesh.lines()
    for health, answers, expected in (
        ("starting", {"*": ""}, "SKIP the engine is loading the model"),
        ("unhealthy", {"*": ""}, "FAIL the container is unhealthy. To do: docker inspect"),
        ("", {"*": ""}, "FAIL the container is without a health check"),
        ("healthy", {}, "FAIL http://10.0.0.11:8000/health does not answer, though"),
    ):
        running(mesh, health)
        mesh.answers["curl"] = answers
        after = mesh.lines()
        assert after["api"].startswith(expected)
        assert changed(before, after) == {"api"}


# What runs, and what was not seen before


def container(place: str, value: object) -> Callable[[Machine], None]:
    """The engine runs with something else than the bundle says."""
    return lambda m: running(m, **{place: value})


def without(m: Machine, place: str, word: str) -> list[str]:
    """A list of the container as it should be, without an entry."""
    section, _, name = place.partition("_")
    return [one for one in described(m, "healthy")[section][name] if not one.startswith(word)]


def replaced(path: str) -> Callable[[Machine], None]:
    """Install a file anew while the engine runs."""

    def replace(m: Machine) -> None:
        text = (m.tree / path).read_text()
        (m.tree / path).unlink()
        m.write(path, text)

    return replace


def log(line: str) -> Callable[[Machine], object]:
    """Let the kernel say something, ten seconds after now."""

    def say(m: Machine) -> None:
        said = f"{KERNEL_LOG}[{time.monotonic() + 10:12.6f}] spark1 kernel: {line}\\n"
        m.answers["journalctl"]["*"] = said

    return say


def counting(*lines: str) -> Callable[[Machine], None]:
    """Metrics that do not move."""

    def count(m: Machine) -> None:
        m.env["SPARKGEN_SAMPLE_SECONDS"] = "0"
        m.answers["curl"]["*/metrics"] = "".join(f"{line}\\n" for line in lines)

    return count


def working(utilization: str, *lines: str) -> Callable[[Machine], None]:
    """A GPU that is busy or not, and metrics that do not move."""

    def work(m: Machine) -> None:
        counting("vllm:generation_tokens_total 7.0", *lines)(m)
        m.answers["nvidia-smi"]["'--query-gpu=utilization.gpu,power.draw '*"] = utilization

    return work


def other_build(m: Machine) -> None:
    """The image's name stands for another image than when the container was created."""
    shown = m.answers["docker"]["'inspect sparkgen-engine'"].replace(IMAGE_ID, "sha256:000")
    earlier = "'image inspect --format {{json .RootFS.Layers}} sha256:000'"
    m.answers["docker"] = {earlier: '["sha256:2"]\\n', **m.answers["docker"]}
    m.answers["docker"]["'inspect sparkgen-engine'"] = shown


STATES: dict[str, tuple[str, str, Callable[[Machine], object]]] = {
    "many restarts": (
        "unit engine",
        "300 restarts, the last one 6",
        lambda m: answer("systemctl", unit("active", "enabled", entered=-600, restarts=300))(m),
    ),
    "stopped": (
        "unit engine",
        "it was stopped, and is not running",
        lambda m: m.answers["systemctl"].update(
            {"*": unit("active", "enabled").replace("ActiveState=active", "ActiveState=inactive")}
        ),
    ),
    "no memory left": (
        "memory",
        "0.3 GiB available beside the engine",
        writes("meminfo", MEMORY.replace("120000000", "314572")),
    ),
    "swap": (
        "swap",
        "4.0 GiB of swap is in use",
        writes("meminfo", MEMORY.replace("SwapFree:        16777212", "SwapFree: 12582908")),
    ),
    "full hub": (
        "disk",
        "900 GiB free in /var, 0 GiB free in /home/nvidia/.cache/huggingface/hub",
        answer("df", "Avail\\n  0G\\n", "*huggingface*"),
    ),
    "other image": (
        "running",
        "applied, not restarted: the engine runs with the image other:1 instead of ",
        container("Config_Image", "other:1"),
    ),
    "older build of the image": (
        "running",
        "applied, not restarted: the engine runs with an older image 000 of ",
        lambda m: other_build(m),
    ),
    "other argument": (
        "running",
        "applied, not restarted: the engine runs with the argument (none) instead of --max-",
        lambda m: container("Config_Cmd", without(m, "Config_Cmd", "--max-model-len"))(m),
    ),
    "variable that is gone": (
        "running",
        "applied, not restarted: the engine runs with OLD in its environment",
        lambda m: container("Config_Env", [*without(m, "Config_Env", "-"), "OLD=1"])(m),
    ),
    "variable that is new": (
        "running",
        "applied, not restarted: the engine runs with NCCL_IB_HCA in its environment",
        lambda m: container("Config_Env", without(m, "Config_Env", "NCCL_IB_HCA"))(m),
    ),
    "mount": (
        "running",
        "applied, not restarted: the engine runs with /var/cache/sparkgen from nowhere instead of ",
        container("lost", "/var/cache/sparkgen"),
    ),
    "file that is mounted": (
        "running",
        "applied, not restarted: the engine runs with /opt/sparkgen/health.py as it was before",
        replaced("opt/sparkgen/health.py"),
    ),
    "Xid 79": (
        "kernel-log",
        "Xid 79 of the GPU",
        log("NVRM: Xid (PCI:000f:01:00): 79, GPU has fallen off the bus."),
    ),
    "Xid 48": (
        "kernel-log",
        "Xid 48 of the GPU",
        log("NVRM: Xid (PCI:000f:01:00): 48, pid=1, DBE"),
    ),
    "Xid of the engine": (
        "kernel-log",
        "Xid 31 of the GPU",
        log("NVRM: Xid (PCI:000f:01:00): 31, pid=1, name=python3, MMU Fault"),
    ),
    "killed": (
        "kernel-log",
        "a process killed for want of memory",
        log("Out of memory: Killed process 4711 (python3) total-vm:1kB"),
    ),
    "throttled": (
        "throttling",
        "the GPU is slowed down by the hardware, heat (0x48)",
        answer("nvidia-smi", "0x48, 99, 1200\\n", THROTTLING),
    ),
    "slow under load": (
        "throttling",
        "the GPU is busy at 850 MHz",
        answer("nvidia-smi", "0x0, 99, 850\\n", THROTTLING),
    ),
    "old firmware": (
        "firmware",
        "28.43.1014 on all halves, older than 28.45.4028",
        lambda m: [
            m.write(f"{m.hca(interface)}/fw_ver", "28.43.1014\n")
            for interface in m.folder.node.interfaces
        ],
    ),
    "rest of a download": (
        "model",
        "1234.incomplete is the rest of a download",
        lambda m: m.write(f"{Path(SNAPSHOT).parents[1]}/blobs/1234.incomplete", ""),
    ),
    "hang at 38 W": (
        "progress",
        "the engine hangs: the GPU is busy at 38 W",
        working("96, 38.00\\n"),
    ),
    "hang of an idle GPU": (
        "progress",
        "the engine hangs: the GPU is idle at 4.5 W, and for a while no token has been generated "
        "for 3 requests",
        working("0, 4.50\\n", 'vllm:num_requests_running{engine="0"} 3.0'),
    ),
}


def other_ulimit(m: Machine) -> None:
    limits = described(m, "healthy")["HostConfig"]["Ulimits"]
    container("HostConfig_Ulimits", [{**one, "Soft": 65536, "Hard": 65536} for one in limits])(m)


def other_mount(m: Machine) -> None:
    mounts = [{**one, "RW": True} for one in described(m, "healthy")["Mounts"]]
    running(m, Mounts=mounts)


def unit_with(name: str, value: str) -> Callable[[Machine], object]:
    """Let systemd say something else of each unit."""
    return lambda m: answer("systemctl", f"{unit('active', 'enabled')}{name}={value}\\n")(m)


def lost_links(m: Machine) -> None:
    """A cable that loses its link, again and again, while the engine runs."""
    stamp = time.monotonic() + 1
    lines = (
        f"[{stamp + n:12.6f}] spark1 kernel: mlx5_core 0000:01:00.0 a: Link down" for n in range(9)
    )
    m.answers["journalctl"]["*"] = KERNEL_LOG + "".join(f"{line}\\n" for line in lines)


def older_secret(m: Machine) -> None:
    m.write("run/sparkgen-engine/secrets", "API_KEY=one\n")
    m.write("etc/sparkgen/secrets.env", "API_KEY=two\n", 0o600)


MODULE = "kernel/nvidia-580-open/nvidia.ko.zst:"


def next_kernel(modules: str) -> Callable[[Machine], object]:
    """A kernel that the next boot starts, with these modules."""

    def install(m: Machine) -> None:
        kernel = "6.17.0-1029-nvidia"
        m.write(f"boot/vmlinuz-{kernel}", "")
        (m.tree / "boot/vmlinuz").symlink_to(f"vmlinuz-{kernel}")
        m.write(f"usr/lib/modules/{kernel}/modules.dep", f"kernel/fs/ext4.ko.zst: a\n{modules}")

    return install


HUB_REF = f"{Path(SNAPSHOT).parents[1]}/refs/main"
LOST = "applied, not restarted: the engine runs with "
STATES |= {
    "drop-in of a unit": (
        "unit engine",
        "/etc/systemd/system/sparkgen-engine.service.d/override.conf changes it",
        unit_with("DropInPaths", "/etc/systemd/system/sparkgen-engine.service.d/override.conf"),
    ),
    "unit from elsewhere": (
        "unit engine",
        "/run/systemd/system/sparkgen-engine.service changes it",
        unit_with("FragmentPath", "/run/systemd/system/sparkgen-engine.service"),
    ),
    "masked unit": (
        "unit engine",
        "it is masked: nothing starts it",
        lambda m: answer("systemctl", unit("active", "masked", load="masked"), "*-engine")(m),
    ),
    "masked unit that others need": (
        "unit systemd-networkd.service",
        "it is masked: nothing starts it. To do: sudo systemctl unmask systemd-networkd.service",
        lambda m: answer("systemctl", unit("active", "", load="masked"), "*systemd-networkd*")(m),
    ),
    "unit of an earlier bundle": (
        "unit engine-old.service",
        "it is a unit of an earlier bundle",
        writes("etc/systemd/system/sparkgen-engine-old.service", "[Service]\n"),
    ),
    "kernel without the driver": (
        "driver",
        "the kernel that the next boot starts, 6.17.0-1029-nvidia, has no module of the driver",
        next_kernel(""),
    ),
    "GPU that has to be reset": (
        "driver",
        "nvidia-smi shows [GPU requires reset]",
        answer("nvidia-smi", "[GPU requires reset]\\n", "--query-gpu=compute_mode*"),
    ),
    "container that has lost the GPU": (
        "running",
        "the container has lost the GPU, as a daemon-reload without a CDI specification does: sh: ",
        answer(
            "docker",
            "sh: 1: cannot open /dev/nvidiactl: Operation not permitted\\n",
            "'exec sparkgen-engine sh -c : <>/dev/nvidiactl'",
        ),
    ),
    "paused container": (
        "running",
        "the container is paused, and answers nothing",
        container("State_Status", "paused"),
    ),
    "container of an earlier bundle": (
        "containers",
        "sparkgen-engine-old runs, and is not of this bundle",
        answer(
            "docker",
            "sparkgen-engine\\nsparkgen-engine-old\\n",
            "'ps --format {{.Names}} --filter name=^sparkgen-engine'",
        ),
    ),
    "no rights for RDMA": (
        "running",
        f"{LOST}cap_add none instead of ['IPC_LOCK']",
        container("HostConfig_CapAdd", None),
    ),
    "no GPU": (
        "running",
        f"{LOST}deploy none instead of a GPU",
        container("HostConfig_DeviceRequests", None),
    ),
    "limits of memory": ("running", f"{LOST}ulimits ", other_ulimit),
    "container of another user": (
        "running",
        f"{LOST}the user 1000:1000, which the bundle does not set",
        container("Config_User", "1000:1000"),
    ),
    "mount that can be written": (
        "running",
        f"{LOST}/home/nvidia/.cache/huggingface ",
        other_mount,
    ),
    "earlier secret": ("running", f"{LOST}an older API_KEY", older_secret),
    "model that was replaced": ("running", f"{LOST}/{HUB_REF} as it was", replaced(HUB_REF)),
    "other program on the GPU": (
        "gpu",
        "python3 (1, 61440 MiB) also computes on the GPU",
        answer("nvidia-smi", "1, /usr/bin/python3, 61440 MiB\\n", "'--query-compute-apps=pid'*"),
    ),
    "GPU that takes no programs": (
        "driver",
        "the GPU's compute mode is Prohibited",
        answer("nvidia-smi", "Prohibited\\n", "--query-gpu=compute_mode*"),
    ),
    "InfiniBand": (
        first("hca"),
        f"{FIRST.hca} is an InfiniBand port, not Ethernet",
        lambda m: m.write(f"{m.hca(FIRST)}/ports/1/link_layer", "InfiniBand\n"),
    ),
    "route to a peer over another interface": (
        first("peers"),
        f"the kernel sends {PEER} over enP7s7 instead of {FIRST.name}",
        answer("ip", f"{PEER} dev enP7s7 src 10.0.0.11 uid 0 \\n", "'-4 -force -batch -'"),
    ),
    "address of someone else": (
        first("link"),
        f"cable 1: {FIRST.name} also has 169.254.7.7/16",
        lambda m: m.answers["ip"].update(
            {"*": m.answers["ip"]["*"] + f"2: {FIRST.name}    inet 169.254.7.7/16 scope link\\n"}
        ),
    ),
    **{
        f"limit of 'docker update': {key}": (
            "running",
            f"{LOST}{key} {value}, which the bundle does not set",
            container(f"HostConfig_{name}", value),
        )
        for name, key, value in (
            ("Memory", "mem_limit", 1 << 30),
            ("NanoCpus", "cpus", 2_000_000_000),
            ("CpuQuota", "cpu_quota", 50000),
            ("ReadonlyRootfs", "read_only", True),
            ("CpusetCpus", "cpuset", "0-1"),
        )
    },
    **{
        f"default route over the fabric, IPv{kind}": (
            first("link"),
            f"cable 1: the default route leads over {FIRST.name}, which does not lead to the ",
            answer(
                "ip",
                f"default via 192.168.177.12 dev {FIRST.name} proto static metric 50\\n",
                f"'-{kind} route show'",
            ),
        )
        for kind in (4, 6)
    },
    "no inodes": (
        "disk",
        "100% of the inodes in /var",
        answer("df", "Avail IUse%\\n 900G  100%\\n"),
    ),
    "file system that became read-only": (
        "kernel-log",
        "a file system that became read-only",
        log("EXT4-fs (nvme0n1p2): Remounting filesystem read-only"),
    ),
    "disk that is gone": (
        "kernel-log",
        "a fault of a disk",
        log("nvme nvme0: controller is down; will reset: CSTS=0xffffffff"),
    ),
    "fault of the memory": (
        "kernel-log",
        "a hardware fault",
        log("{1}[Hardware Error]: event severity: fatal"),
    ),
    "fatal fault of PCIe": (
        "kernel-log",
        "a fatal fault of PCIe",
        log("mlx5_core 0000:01:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Inacc"),
    ),
    "NIC that the kernel resets after one": (
        "kernel-log",
        "a fatal fault of PCIe",
        log("mlx5_core 0000:01:00.0: mlx5_pci_slot_reset Device state = 2 pci_status: 0. Enter"),
    ),
    "fault of the NIC": (
        "kernel-log",
        "a fault of the NIC",
        log("mlx5_core 0000:01:00.0: poll_health:825: device's health compromised - reached miss"),
    ),
    "fault of the kernel": (
        "kernel-log",
        "a fault of the kernel",
        log("Internal error: Oops: 0000000096000004 [#1] SMP"),
    ),
    "link that is lost again and again": (
        "kernel-log",
        "a link that was lost, 9 times",
        lost_links,
    ),
}


def test_every_setting_of_a_container_is_compared() -> None:
    """Whatever a Compose file of any bundle says is compared with the container."""
    verify, running = loaded("node/verify.py"), loaded("node/opt/sparkgen/running.py")
    known = {*running.SETTINGS, *running.ELSEWHERE}
    for bundle in BUNDLES:
        for node in bundle.site.nodes:
            folder = NodeFolder(bundle, node.name).path
            found = verify.Node(folder, verify.Options())
            assert {*found.files()} == {
                path
                for file in folder.rglob("*")
                if file.is_file()
                for path in [file.relative_to(folder).as_posix()]
                if path.startswith(("etc/", "opt/"))
            }
            for file in folder.glob("opt/sparkgen/**/*.yaml"):
                text = re.sub(r"(?<!\$)\$\{\w+:-([^}]*)\}", r"\1", file.read_text())
                described = yaml.safe_load(text.replace("$$", "$"))
                if isinstance(described, dict) and "services" in described:
                    path = file.relative_to(folder).as_posix()
                    composed = running.composed(file.read_text())
                    services = {
                        about["container_name"]: about for about in described["services"].values()
                    }
                    assert composed.keys() == services.keys()
                    for name, about in services.items():
                        deeper = {f"healthcheck.{key}" for key in about.get("healthcheck", ())}
                        assert {*about, *deeper} - {"healthcheck"} <= known, path
                        assert plain(composed[name]) == plain(about), path


def plain(value: object) -> object:
    """A value of YAML in words."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


# What each installed file sets is compared with what is in force


def answering(answers: Mapping[str, str]) -> Callable[..., Any]:
    """Programs that give these answers, by their whole command, and otherwise fail."""
    node = loaded("node/opt/sparkgen/node.py")

    def run(*words: str, **_: object) -> Any:
        said = answers.get(" ".join(words))
        is_bad = said is None or said.startswith("!")
        return node.Answer(not is_bad, "" if is_bad else said, (said or "")[1:] if is_bad else "")

    return run


# Of each line that sets something: the command that tells, what it says then, and otherwise.
Shown = tuple[str, str, str]


def shown_by_fail2ban(text: str) -> Iterator[Shown]:
    for name, value in re.findall(r"(?m)^(\w+) = (.*)$", text):
        rows = value.split()
        sound, other = {
            "ignoreip": (
                "These IP addresses/networks are ignored:\n|- " + "\n|- ".join(rows),
                "`- ::1",
            ),
            "banaction": (f"The jail sshd has the following actions:\n{value}", "iptables"),
            "backend": (
                "Current match filter:\n_SYSTEMD_UNIT=ssh.service",
                "No journal match filter",
            ),
        }.get(name, (value, f"{value}1"))
        asked = {"banaction": "actions", "backend": "journalmatch"}.get(name, name)
        # Without the jail there is no answer at all, which the check of its status tells.
        if name != "enabled":
            yield f"fail2ban-client get sshd {asked}", sound, other


def shown_by_systemd(unit: str, text: str) -> Iterator[Shown]:
    for name, value in re.findall(r"(?m)^(\w+)=(.*)$", text):
        number = str(int(value[:-1]) << 20) if value.endswith("M") else value
        command = f"systemctl show --property={name},MainPID,LoadState {unit}"
        rest = "MainPID=0\nLoadState=loaded"
        yield command, f"{name}={number}\n{rest}", f"{name}=7\n{rest}"


def shown_by_programs(text: str) -> Iterator[Shown]:
    orders = re.findall(r"(?m)^ExecStart=(.*)$", text) if "RemainAfterExit=yes" in text else []
    orders += re.findall(r"(?m)^ExecStartPre=\+(/usr/sbin/iptables .* -I .*)$", text)
    for order in orders:
        path, *words = order.split()
        match path, words:
            case "/usr/sbin/dcb", [what, _, *about, last]:
                about = [word for word in about if ":" not in word]
                command = f"dcb -N {what} show {' '.join(about)}"
                others = "0:off 1:off" if what == "pfc" else "10:1"
                yield command, f"{about[-1]} {others} {last} ", f"{about[-1]} {others} "
                # Nothing is printed of an empty table.
                yield command, f"{about[-1]} {others} {last} ", ""
            case "/usr/sbin/iptables", ["--wait", "10", "-I", *rule]:
                command = f"iptables --wait 10 -C {' '.join(rule)}"
                yield (
                    command,
                    "",
                    "!iptables: Bad rule (does a matching rule exist in that chain?).",
                )
            case _:
                # The check of the clock tells what this has set.
                assert order.startswith("/usr/bin/nvidia-smi --lock-gpu-clocks="), order


def test_every_file_is_looked_at() -> None:
    """Each file has a row of its own, each row a file, and rows name the checks that see it."""
    verify, running = loaded("node/verify.py"), loaded("node/opt/sparkgen/running.py")
    seen = {row: set[str]() for row in verify.EFFECTS}
    folders = [*NODES, *IN_GROUPS, *IDLE]
    for folder in covering(folders, lambda folder: {*folder.planned}):
        looked = [*seen_by_checks(running, folder)]
        for path in (path for path, _ in folder.planned if path.startswith(("etc/", "opt/"))):
            assert verify.has_row(path), path
            bare = re.sub(r"/(groups|jobs)/[^/]+/", "/", path)
            (row,) = (row for row in seen if fnmatchcase(bare, row))
            seen[row].add("of a file")
            seen[row] |= {check for check, top in looked if f"/{path}/".startswith(f"{top}/")}
    for row, checks in verify.EFFECTS.items():
        named = {*checks} & {"unit", "running", "containers"}
        assert seen[row] == named | {"of a file"}, row
    assert not verify.has_row("opt/sparkgen/new.sh")


def seen_by_checks(running: Any, folder: NodeFolder) -> Iterator[tuple[str, str]]:
    """The checks that tell that a file, or one in a folder, has changed."""
    for file in (file for file in folder.path.glob("[eo]*/**/*") if file.is_file()):
        text, path = file.read_text(errors="replace"), f"/{file.relative_to(folder.path)}"
        if file.suffix == ".yaml" and path.startswith("/opt/"):
            check = "running" if file.name == "compose.yaml" else "containers"
            for want in running.composed(text).values():
                own = [*running.mounted(want), *want.get("env_file", [])]
                yield from ((check, top) for top in [path, *own])
        elif file.name == "engine.sh":
            yield from (("running", top) for top in [path, *running.named(text)])
        elif path.startswith("/etc/systemd/"):
            # What a timer starts is at an end when it has run.
            starts = re.findall(r"(?m)^ExecStart=.*?(/opt/sparkgen/\S+)", text)
            yield from (("unit", top) for top in [path, *(starts if "[Install]" in text else [])])


def verified(folder: NodeFolder, root: Path, entered: float) -> Any:
    """The node below a root, whose units became active at a time relative to now, in seconds."""
    said = unit("active", "enabled", entered=int(entered)).replace("\\n", "\n")
    tree = folder.copy(root)
    node = loaded("node/opt/sparkgen/node.py")

    def run(*words: str, **_: object) -> Any:
        shown = {"MainPID": "77"}.get(words[2].partition("=")[2], said)
        return node.Answer(words[0] == "systemctl", shown if words[0] == "systemctl" else "")

    verify = loaded("node/verify.py")
    return verify.Node(folder.path, verify.Options(), tree, run)


@pytest.mark.parametrize(("entered", "is_told"), [(-3600, True), (60, False)])
def test_files_in_mounted_folders(entered: int, is_told: bool, tmp_path: Path) -> None:
    """The proxy reads its folder again at a reload, and an engine its own only at a start."""
    proxy = next(f for f in NODES if f.bundle.name == "golden-direct-proxy" and f.node.is_head)
    node = verified(proxy, tmp_path, entered)
    running = sys.modules["running"]
    (want,) = running.composed((proxy.path / "opt/sparkgen/proxy.yaml").read_text()).values()
    have = {"State": {"StartedAt": datetime.now(UTC).isoformat()}}
    files = sorted((proxy.path / "opt/sparkgen/proxy").iterdir())
    told = [f"/opt/sparkgen/proxy/{file.name} as it was before it changed" for file in files]
    assert node.of_service("sparkgen-proxy", want, have) == (told if is_told else [])

    engine = folder_of("golden-direct-files", "spark1")
    node = verified(engine, tmp_path / "engine", entered)
    (want,) = running.composed((engine.path / "opt/sparkgen/compose.yaml").read_text()).values()
    have["State"]["StartedAt"] = (datetime.now(UTC) + timedelta(seconds=entered)).isoformat()
    found = running.container_faults(node, want, have, running.mounted(want))
    last = "/opt/sparkgen/files/mods/parsers/tools.py as it was before it changed"
    assert (last in found) == is_told == bool(found)


def test_engine_without_a_container(tmp_path: Path) -> None:
    """Its arguments, its environment, and the files that it read at its start."""
    folder = folder_of("golden-direct-venv", "spark1")
    node = verified(folder, tmp_path, 60)
    script = (folder.path / "opt/sparkgen/engine.sh").read_text()
    words = shlex.split(script.partition("arguments=(")[2].rpartition(")")[0])
    values = [*running_variables(folder), "VLLM_API_KEY=x"]
    process = node.at("/proc/77")
    process.mkdir(parents=True)
    for name, given in (("cmdline", ["/usr/bin/bash", *words]), ("environ", values)):
        (process / name).write_text("".join(f"{one}\0" for one in given))
    assert found_by(node) == ""
    node = verified(folder, tmp_path, -3600)
    changed = ("/etc/nccl.conf", "/opt/sparkgen/secrets.sh", "/opt/sparkgen/ray.sh")
    as_before = ", ".join(f"{path} as it was before it changed" for path in changed)
    assert found_by(node) == f"{as_before}, and 1 more"


def running_variables(folder: NodeFolder) -> list[str]:
    """The environment of an engine without a container."""
    lines = (folder.path / "etc/sparkgen/engine.env").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def found_by(node: Any) -> str:
    """How the engine of a node differs from the bundle."""
    found = node._running(node.engines[0])
    return str(found.about["faults"])


def test_every_setting_of_a_file_is_compared() -> None:
    """Each line that sets something is told from another value, and from nothing else."""
    require_root()
    verify = loaded("node/verify.py")
    checks = {row.name for row in verify.CHECKS}
    assert {check for found in verify.EFFECTS.values() for check in found} <= checks
    seen = set[str]()
    for folder in covering([*NODES, *IDLE], lambda folder: {*folder.modes}):
        for path, found in settings_of(folder):
            sound = {command: good for command, good, _ in found}
            node = verify.Node(folder.path, verify.Options(), Path("/nowhere"), answering(sound))
            assert faults_of(node, path) == [], path
            for command, _, bad in found:
                one = answering({**sound, command: bad})
                node = verify.Node(folder.path, verify.Options(), Path("/nowhere"), one)
                assert len(faults_of(node, path)) == 1, (path, command)
                seen.add(command.split()[0])
    assert seen == {"fail2ban-client", "systemctl", "dcb", "iptables"}


def settings_of(folder: NodeFolder) -> Iterator[tuple[str, list[Shown]]]:
    """The files of a node that set what a program shows, each with what it sets."""
    for path in folder.modes:
        text = (folder.path / path).read_text() if path.startswith("etc/") else ""
        if path.startswith("etc/fail2ban/"):
            yield path, [*shown_by_fail2ban(text)]
        elif path.startswith("etc/systemd/system/") and ".d/" in path:
            yield path, [*shown_by_systemd(Path(path).parent.name.removesuffix(".d"), text)]
        elif path.startswith("etc/systemd/system/"):
            yield path, [*shown_by_programs(text)]
        elif path.startswith("etc/sysctl.d/"):
            lines = [line for line in text.splitlines() if line and not line.startswith("#")]
            network = loaded("node/opt/sparkgen/network.py")
            assert len(lines) == len(re.findall(network.SETTING, text))
        elif path.startswith("etc/netplan/"):
            for about in yaml.safe_load(text)["network"]["ethernets"].values():
                assert {*about} <= {*COMPARED_BY_LINK, *ONLY_AT_BOOT}


# The keys of netplan: what they set is compared with addresses, routes and settings of the kernel.
COMPARED_BY_LINK = ("addresses", "mtu", "routes", "dhcp4", "dhcp6", "accept-ra")
# Whether the boot waits for a link, and who configures it; the engines use no link-local address.
ONLY_AT_BOOT = ("optional", "renderer", "link-local")


def faults_of(node: Any, path: str) -> list[str]:
    """How what a file sets differs from what is in force."""
    text = node.own(path)
    if path.startswith("etc/fail2ban/"):
        return [*node.of_jail()]
    if ".d/" in path:
        return [*node.of_drop_in(Path(path).parent.name.removesuffix(".d"), text)]
    return list(node.undone(text))


@pytest.mark.parametrize("state", STATES)
def test_states_of_a_running_engine(state: str, mesh: Machine) -> None:
    check, found, make = STATES[state]
    running(mesh)
    before = sound(mesh, "running")
    assert before["running"].startswith("OK "), before["running"]
    assert {name for name, text in before.items() if text.startswith("FAIL ")} <= {"ports"}
    make(mesh)
    after = mesh.lines()
    assert after[check].startswith(f"FAIL {found}"), after.get(check)
    assert ". To do: " in after[check]
    worse = {name for name in after if after[name].startswith("FAIL ")} - {"ports", "alike"}
    assert worse == {check}


def only(name: str, **about: Any) -> Callable[[Machine], object]:
    """Let one unit be active."""

    def activate(m: Machine) -> None:
        said = unit("active", "enabled", **about)
        m.answers["systemctl"] = {f"*' {name}'": said, **m.answers["systemctl"]}

    return activate


def older(name: str, path: str) -> Callable[[Machine], object]:
    """A unit that is active since before a file changed."""

    def make(m: Machine) -> None:
        only(name)(m)
        # The clock of files moves in steps.
        time.sleep(0.05)
        replaced(path)(m)

    return make


SERVICE_STATES: dict[str, tuple[str, str, Callable[[Machine], object]]] = {
    "values of the jail": (
        "fail2ban",
        "FAIL its jail sshd has maxretry 500, not 5. ",
        answer("fail2ban-client", "500\\n", "'get sshd maxretry'"),
    ),
    "settings of ssh": (
        "ssh",
        "FAIL port 2222, not 22, user nobody, not nvidia. To do: remove it from /etc/ssh/ssh_conf",
        writes("etc/ssh/ssh_config.d/10-x.conf", "Host *\n  User nobody\n  Port 2222\n"),
    ),
    "settings that sshd has not read": (
        "sshd",
        f"FAIL it has read its settings before they changed: /{SSHD}. To do: ",
        older("ssh", SSHD),
    ),
    "flow control": (
        "unit qos",
        "FAIL what it has set is set no longer: /usr/sbin/dcb pfc set dev ",
        lambda m: (only("sparkgen-qos")(m), m.answers.update(dcb={"*pfc*": "prio-pfc 3:off\\n"})),
    ),
    "program that has changed": (
        "unit guard",
        "FAIL applied, not restarted: it runs /opt/sparkgen/guard.py as it was",
        older("sparkgen-guard", "opt/sparkgen/guard.py"),
    ),
    "unit of a timer": (
        "unit verify",
        "FAIL it has failed, after 0 restarts. ",
        lambda m: m.answers.update(
            systemctl={"*' sparkgen-verify'": unit("failed", "static"), **m.answers["systemctl"]}
        ),
    ),
    "containers that are gone": (
        "containers",
        "FAIL not running, though its unit is active: sparkgen-node-exporter of sparkgen-monit",
        only("sparkgen-monitoring"),
    ),
    "change that is not confirmed": (
        "unit undo-boot.timer",
        "SKIP the last change is not confirmed yet, and will be reverted; over a new conn",
        writes("etc/systemd/system/sparkgen-undo-boot.timer", "[Timer]\n"),
    ),
    "file that is a link": (
        "files",
        "FAIL /opt/sparkgen/guard.py is a link. To do: ",
        lambda m: (
            (m.tree / "opt/sparkgen/guard.py").rename(m.tree / "opt/sparkgen/other"),
            (m.tree / "opt/sparkgen/guard.py").symlink_to("other"),
        ),
    ),
    "address of IPv6 for a peer": (
        "hosts",
        "SKIP /etc/hosts also has addresses that this site does not name: spark2 is fd00::99",
        lambda m: m.edit("etc/hosts", "127.0.0.1 localhost", "fd00::99 spark2"),
    ),
}


@pytest.mark.parametrize("state", SERVICE_STATES)
def test_states_of_services(state: str, memory: Path) -> None:
    check, found, make = SERVICE_STATES[state]
    host = machine(SERVICES, memory)
    before = sound(host)
    # Nothing is started yet.
    failing = {name for name in before if before[name].startswith("FAIL ")}
    assert all(name.startswith("unit ") for name in failing - {"api"})
    make(host)
    after = host.lines()
    assert after[check].startswith(found), after.get(check)
    new = {name for name in after if after[name].startswith("FAIL ")} - failing
    worse = new | ({check} if check in failing and after[check] != before[check] else set())
    assert worse == ({check} if found.startswith("FAIL ") else set())
    if "applied, not restarted" in found or "set no longer" in found:
        # What is to be restarted later is no reason to stop an installation.
        assert host.lines("--before-start")[check].startswith(
            found.replace("FAIL ", "SKIP not yet: ")
        )


HUNG = "96, 12.34\\n"
METRICS = """\
#!/bin/bash
[[ $* == */metrics ]] || exit 0
read -r tokens <"$COUNT"
echo $((tokens + STEP)) >"$COUNT"
echo '# TYPE vllm:generation_tokens_total counter'
echo "vllm:prompt_tokens_total{engine=\\"0\\"} 7.0"
echo "vllm:generation_tokens_total{engine=\\"0\\"} $tokens.0"
"""


NCCL = "/usr/lib/libnccl.so.2"


@pytest.mark.parametrize(
    ("power", "step", "progress", "loaded", "nccl"),
    [
        (HUNG, 0, "FAIL the engine hangs: the GPU is busy at 12.34 W, and for a while ", "", ""),
        (
            *(HUNG, 5, "OK the GPU is busy at 12.34 W, and tokens are generated"),
            *(f"2.30.7 {NCCL}\\n", f"OK NCCL 2.30.7 from {NCCL}"),
        ),
        (
            *("96, 61.00\\n", 0, ""),
            f"2.28.3 {NCCL}\\n",
            f"FAIL the engine has loaded NCCL 2.28.3 from {NCCL}, and the site ",
        ),
        ("0, 4.51\\n", 0, "", "", ""),
        ("[N/A], [N/A]\\n", 0, "", "", ""),
    ],
)
def test_engine_that_runs(
    power: str, step: int, progress: str, loaded: str, nccl: str, mesh: Machine, memory: Path
) -> None:
    """Whether it hangs, and the NCCL that it has loaded."""
    running(mesh)
    assert MESH.part.engine.nccl == "2.30.7"
    count = memory / "count"
    count.write_text("100\n")
    mesh.env |= {"SPARKGEN_SAMPLE_SECONDS": "0", "COUNT": str(count), "STEP": str(step)}
    mesh.answers["nvidia-smi"]["'--query-gpu=utilization.gpu,power.draw '*"] = power
    mesh.answers["docker"]["'exec sparkgen-engine python3 '*"] = loaded
    del mesh.answers["curl"]
    mesh.write("stand-ins/curl", METRICS, 0o755)
    lines = mesh.lines()
    for check, expected in (("progress", progress), ("nccl-version", nccl)):
        found = lines.get(check, "")
        assert found.startswith(expected)
        assert bool(found) == bool(expected)


def test_worker_that_may_hang(memory: Path) -> None:
    host = machine(folder_of("lab-mesh", "spark2"), memory)
    running(host)
    host.env["SPARKGEN_SAMPLE_SECONDS"] = "0"
    host.answers["nvidia-smi"]["'--query-gpu=utilization.gpu,power.draw '*"] = HUNG
    assert host.lines()["progress"].endswith("see progress in ./verify.py on spark1")


# Without root


def test_as_a_user(mesh: Machine) -> None:
    before = sound(mesh)
    (mesh.tree / "home/nvidia/.cache").chmod(0o700)
    mesh.write("etc/netplan/01-network-manager-all.yaml", "network: {}\n", 0o600)
    mesh.answers["journalctl"]["*"] = ""
    after = mesh.lines(user="nobody")
    skipped = {check for check in changed(before, after) if after[check].startswith("SKIP ")}
    assert skipped == {"files", "owner", "hot-plug", "kernel-log", "model"}
    assert after["files"].startswith("SKIP only root can read /etc/netplan/40-cx7.yaml")
    assert not [text for text in after.values() if re.match("FAIL (?!it is not started)", text)]


# Other nodes


def test_nodes_that_differ(mesh: Machine) -> None:
    facts = "DGX OS 7.5.0; kernel 6.17.0-1014-nvidia; driver NVIDIA GB10, 580.142; "
    firmware = "firmware 28.45.4028; "
    mesh.answers["ssh"] = {
        "*nvidia@10.0.0.12*": f"{facts}{firmware}image layers 000000000000\\n",
    }
    lines = mesh.lines("--peers")
    assert "alike" not in lines
    assert lines["alike spark2"] == (
        "FAIL spark2 has image layers 000000000000. "
        "To do: update this node or spark2: all nodes must be alike"
    )
    assert lines["alike spark3"] == "SKIP ssh nvidia@10.0.0.13 needs a key and a known host"
    mesh.answers["ssh"]["*nvidia@10.0.0.12*"] = f"{facts}{firmware}image layers {LAYERS}\\n"
    assert mesh.lines("--peers")["alike spark2"].startswith("OK DGX OS 7.5.0; kernel ")


def test_peers_run_the_same_commands(mesh: Machine) -> None:
    """Commands given to ssh run locally: here the other node is this one."""
    mesh.write("stand-ins/ssh", '#!/bin/bash\nexec sh -c "${@: -1}"\n', 0o755)
    lines = mesh.lines("--peers")
    assert lines["alike spark2"].startswith("OK ")
    assert lines["alike spark3"].startswith("OK ")


# JSON


def test_json(mesh: Machine) -> None:
    lines = sound(mesh)
    done = mesh.run("--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["site"], report["node"]) == (1, "lab-mesh", "spark1")
    remedies = {check["check"]: check["do"] for check in report["checks"]}
    assert {check: remedy for check, remedy in remedies.items() if remedy} == {
        "unit engine": "sudo systemctl enable --now sparkgen-engine"
    }
    results = {
        check["check"]: f"{check['status']} {check['found']}"
        + (f". To do: {check['do']}" if check["do"] else "")
        for check in report["checks"]
    }
    assert results == lines
    assert [check["check"] for check in report["checks"] if check["later"]] == ["unit engine"]
    assert report["fail"] == 1
    assert report["ok"] + report["fail"] + report["skip"] == len(lines)


def test_metrics(mesh: Machine) -> None:
    """A file for the node exporter, with each passed or failed check once; stdout stays."""
    lines = sound(mesh)
    file = mesh.tree.parent / "verify.prom"
    done = mesh.run("--before-start", "--metrics", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(lines) + 1
    output = file.read_text().splitlines()
    assert output[1] == "# TYPE sparkgen_check_failed gauge"
    passed = {name for name, line in lines.items() if line.startswith("OK")}
    assert output[2:] == sorted(f'sparkgen_check_failed{{check="{name}"}} 0' for name in passed)
    assert file.stat().st_mode & 0o777 == 0o644
    mesh.answers["nvidia-smi"]["*"] = "nothing"
    assert mesh.run("--metrics", str(file)).returncode == 1
    assert 'sparkgen_check_failed{check="driver"} 1' in file.read_text().splitlines()
    assert mesh.run("--metrics").returncode == 2


def test_installed_script(memory: Path) -> None:
    """The timer's run needs no folder, and does not check other services' units."""
    host = machine(next(f for f in NODES if "monitoring" in f.site.services), memory)
    host.write("etc/systemd/system/other.service", "[Install]\nWantedBy=multi-user.target\n")
    of_folder = sound(host)
    host.answers["prlimit"]["*"] = "8388608\n"
    sums = (host.tree / BUNDLE / "SHA256SUMS").read_text()
    host.write("etc/sparkgen/bundle/SHA256SUMS", sums)
    shutil.rmtree(host.tree / BUNDLE)
    for name in ("install.sh", "owners.py"):
        (host.tree / name).unlink()
    installed = host.lines(folder="opt/sparkgen")
    assert of_folder.keys() - installed.keys() == {"bundle", "memlock", "owner"}
    assert installed.items() <= of_folder.items()
    host.edit("opt/sparkgen/launch.sh", "set -euo pipefail", "set -eu")
    assert host.lines(folder="opt/sparkgen")["files"].startswith(
        "FAIL /opt/sparkgen/launch.sh differs. To do: sudo ./install.sh --check"
    )
    host.answers["systemctl"]["*"] = unit("inactive", "", load="not-found")
    unknown = host.lines(folder="opt/sparkgen")["unit monitoring"]
    assert unknown.endswith("To do: sudo ./install.sh --apply")


def test_json_of_odd_text(mesh: Machine) -> None:
    odd = 'a "quoted" \\\\ back & slash\\033[31m red \\tand \\377 bytes'
    mesh.answers["nvidia-smi"]["*"] = odd
    mesh.answers["uname"]["-n"] = "spark\\\\\\\\9\\n"
    done = mesh.run("--json")
    checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert checks["driver"]["found"].endswith(': a "quoted" \\ back & slash?[31m red ?and ? bytes')
    assert checks["hostname"]["found"].startswith("this machine is called spark")
    assert "To do" not in checks["hostname"]["found"]
    assert "--set-hostname" in checks["hostname"]["do"]
    assert "\033" not in mesh.run().stdout


# How it is called


def test_usage(mesh: Machine) -> None:
    for option in ("--help", "--jsn", "spark2"):
        done = mesh.run(option)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines() == [
            "usage: ./verify.py [--json] [--metrics FILE] [--peers] [--bandwidth] [--deep]",
            "usage: ./verify.py --before-start [--alone] [--json]",
            "usage: ./verify.py --bandwidth-server",
            "usage: ./verify.py --ready GROUP | --serves GROUP",
            "usage: ./verify.py --list",
        ]


def test_options_of_several_nodes_on_one(memory: Path) -> None:
    single = machine(folder_of("single", "spark"), memory)
    assert single.lines("--peers", "--bandwidth") == sound(single)
    done = single.run("--bandwidth-server")
    assert (done.returncode, done.stderr) == (1, "spark has no fabric\n")


# In a network


def in_network(host: Machine) -> Machine:
    """Interfaces, addresses and pings are the namespace's own; only ethtool's speed is not."""
    shutil.rmtree(host.tree / "sys-class/net")
    (host.tree / "sys-class/net").mkdir()
    host.write("sys-net", "the kernel's own\n")
    for program in ("ip", "ping"):
        del host.answers[program]
    return host


@dataclass(frozen=True)
class Network:
    """Nodes that are cabled, and what verify.py reports on their links and peers."""

    fabric: VirtualFabric
    machines: Mapping[str, Machine]

    def faults(self, node: str) -> dict[str, str]:
        """The checks of a node's links, pings and kernel settings that are not OK."""
        command = self.fabric.command(node, *self.machines[node].command())
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert done.stderr == ""
        kinds = ("link", "peers", "sysctl", "gid", "hca", "routes")
        return {
            check: text
            for check, text in parsed(done).items()
            if check.split()[0] in kinds and not text.startswith("OK ")
        }


def network(
    bundle_name: str, work: Path, cabling: list[VirtualLink] | None = None
) -> Iterator[Network]:
    require_root()
    require(*PROGRAMS)
    bundle = next(bundle for bundle in BUNDLES if bundle.name == bundle_name)
    work.chmod(0o755)
    trees = bundle.copy(work / "trees")
    machines = {
        node: in_network(machine(folder_of(bundle_name, node), work / node)) for node in trees
    }
    with fabric(trees, cabling or links(bundle.site.cables), work) as nodes:
        yield Network(nodes, machines)


@pytest.fixture
def ring(memory: Path) -> Iterator[Network]:
    yield from network("lab-mesh", memory)


NEAR, FAR = "enp1s0f0np0", "enp1s0f1np1"


def test_cables_of_a_ring(ring: Network) -> None:
    """A healthy ring, and then a fault of each cable: both of its ends tell."""
    assert {node: ring.faults(node) for node in ring.machines} == {
        "spark1": {},
        "spark2": {},
        "spark3": {},
    }
    unplug(ring.fabric, "spark1", NEAR)
    set_mtu(ring.fabric, "spark3", FAR, 1500)
    ring.fabric.run("spark1", "ip", "address", "flush", "dev", FAR)
    found = ring.faults("spark1")
    assert found.pop("link p0.h0").startswith(f"FAIL cable 1: no carrier on {NEAR}. To do: ")
    assert found == {
        "link p1.h0": f"FAIL cable 3: {FAR} does not have the address 192.168.187.11/24. "
        "To do: sudo netplan apply",
        **behind("p0.h0"),
        **behind("p1.h0"),
    }
    second = ring.faults("spark2")
    assert second.pop("link p1.h0").startswith(f"FAIL cable 1: no carrier on {FAR}. To do: ")
    assert second == {
        "peers p0.h0": "FAIL cable 2: spark3 (192.168.197.13) answers small pings, but not 8972 "
        f"bytes on {NEAR}. To do: set the same MTU at both ends",
        **behind("p1.h0"),
    }
    third = ring.faults("spark3")
    assert third.pop("peers p0.h0").startswith("FAIL cable 3: spark1 (192.168.187.11) does not ")
    assert third == {
        "link p1.h0": f"FAIL cable 2: the MTU of {FAR} is 1500, not 9000. "
        "To do: sudo netplan apply",
        **behind("p1.h0"),
    }


def behind(half: str) -> dict[str, str]:
    """What is not checked after a fault of the link."""
    return {f"{check} {half}": f"SKIP link {half} fails" for check in ("hca", "gid", "peers")}


@pytest.mark.long
def test_lossy_half(ring: Network) -> None:
    # Each end already knows the other's address: otherwise all its ARP requests may be lost.
    assert ring.faults("spark1") == {}
    with cables.bad(ring.fabric, "spark1", [NEAR], cables.Fault(loss=0.1)):
        faults = ring.faults("spark1")
    assert re.fullmatch(
        rf"FAIL cable 1: spark2 \({PEER}\) answers \d+ of 40 full frames on {NEAR}\. To do: "
        "clean and reseat both ends of the cable; if it persists, replace the cable",
        faults.pop("peers p0.h0"),
    )
    assert faults == {}


@pytest.fixture
def routed(memory: Path) -> Iterator[Network]:
    yield from network("golden-ring-five-routes", memory)


def test_routes_across_a_ring(routed: Network) -> None:
    assert routed.faults("spark1") == {}
    for half in ("enp1s0f0np0", "enp1s0f1np1"):
        routed.fabric.run("spark2", "sysctl", "-w", f"net.ipv4.conf.{half}.forwarding=0")
    assert routed.faults("spark1") == {
        "routes": "FAIL spark3 (10.100.2.13) does not answer through 10.100.0.12, "
        "spark3 (10.100.4.13) does not answer through 10.100.0.12. To do: fix what fails under "
        "peers on all nodes; then sudo systemctl restart sparkgen-routes on the nodes in between"
    }


@pytest.mark.long
def test_swapped_cables(memory: Path) -> None:
    """Somebody confused spark1's ports: both of its cables are named, at all ends."""
    site = MESH.site
    swapped = [
        VirtualLink(
            *((node, 1 - port) if node == "spark1" else (node, port) for node, port in ends)
        )
        for ends in ((link.a, link.b) for link in links(site.cables) if link.b)
    ]
    for wrong in network("lab-mesh", memory, swapped):
        # Each waits long for its peers.
        with ThreadPoolExecutor() as at_once:
            found, *others = at_once.map(wrong.faults, ("spark1", "spark2", "spark3"))
        assert set(found) == {f"peers {interface.half}" for interface in MESH.node.interfaces}
        assert found["peers p0.h0"].startswith(f"FAIL cable 1: spark2 ({PEER}) does not answer on ")
        assert "compare both ends of the cable" in found["peers p0.h0"]
        firsts = [{text[:12] for text in other.values()} for other in others]
        assert firsts == [{"FAIL cable 1"}, {"FAIL cable 3"}]


@pytest.mark.long
def test_unplugged_from_the_switch(memory: Path) -> None:
    for rack in network("rack-switch", memory):
        unplug(rack.fabric, "spark3", NEAR)
        assert rack.faults("spark3")["link p0.h0"].startswith(f"FAIL cable 3: no carrier on {NEAR}")
        (found,) = rack.faults("spark1").values()
        assert found.startswith("FAIL cable 1 or 3: spark3 (")
        assert "and on every port" not in found


# Bandwidth

# Answers where a server has been started for the half, with what the half carries.
IB_WRITE_BW = r"""#!/bin/bash
for word; do
  case $word in --port=*) port=${word#*=} ;; --gid-index=3) gid=1 ;; esac
done
printf '%s
' "$*" >>"$CALLS/ib_write_bw"
[[ $gid ]] || exit 2
case ${word} in
  [0-9]*.*)
    [[ -e $CALLS/$port ]] || exit 1
    echo ' #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]'
    echo " 65536      1000             99.99              $(<"$CALLS/$port")               0.17"
    ;;
  *)
    echo "$port" >>"$CALLS/served"
    sleep 60
    ;;
esac
"""


@pytest.fixture
def measuring(mesh: Machine, memory: Path) -> Machine:
    """A node with perftest, whose two peers serve each half."""
    calls = memory / "calls"
    calls.mkdir()
    mesh.env["CALLS"] = str(calls)
    mesh.write("stand-ins/ib_write_bw", IB_WRITE_BW, 0o755)
    # The peers' halves: spark2 has p1 at the end of cable 1, spark3 p0 at that of cable 3.
    for port, carried in {12002: 96.5, 12003: 95.0, 12000: 97.0, 12001: 87.0}.items():
        (calls / str(port)).write_text(str(carried))
        (calls / str(port + 4)).write_text("213.1")
    return mesh


def bandwidth(host: Machine, user: str = "") -> dict[str, str]:
    lines = host.lines("--bandwidth", user=user)
    return {check: text for check, text in lines.items() if check.startswith("bandwidth")}


def test_bandwidth(measuring: Machine) -> None:
    assert bandwidth(measuring) == {
        "bandwidth p0": "OK 191.5 Gb/s to spark2, 184 expected; per half: 96.5 95.0",
        "bandwidth p1": "OK 184.0 Gb/s to spark3, 184 expected; per half: 97.0 87.0",
        **{
            f"bandwidth {half}": f"OK 213.1 Gb/s both ways to {name}, 190 expected"
            for port, name in {"p0": "spark2", "p1": "spark3"}.items()
            for half in (f"{port}.h0", f"{port}.h1")
        },
        "bandwidth nccl": "SKIP mpirun refuses root: run this as nvidia",
    }


def test_degraded_cable(measuring: Machine) -> None:
    """It carries the expected bandwidth one way, and no counter moves."""
    (Path(measuring.env["CALLS"]) / "12007").write_text("119.2")
    found = bandwidth(measuring)
    assert found["bandwidth p0"].startswith("OK ")
    assert found["bandwidth p0.h0"].startswith("OK ")
    assert found["bandwidth p0.h1"] == (
        "FAIL 119.2 Gb/s both ways to spark2, 190 expected. To do: reboot this node and spark2 "
        "with the cable in; if it persists, replace the cable"
    )


def test_too_little_bandwidth(measuring: Machine) -> None:
    calls = Path(measuring.env["CALLS"])
    (calls / "12003").write_text("87.4")
    (calls / "12000").unlink()
    (calls / "12001").unlink()
    found = bandwidth(measuring)
    assert found["bandwidth p0"].startswith(
        "FAIL 183.9 Gb/s to spark2, 184 expected; per half: 96.5 87.4. To do: see hot-plug, "
    )
    assert found["bandwidth p1"].startswith(
        "FAIL spark3 does not answer. To do: run ./verify.py --bandwidth-server on spark3"
    )


def test_perftest_knows_the_options(measuring: Machine) -> None:
    require("ib_write_bw")
    bandwidth(measuring)
    calls = (Path(measuring.env["CALLS"]) / "ib_write_bw").read_text().splitlines()
    assert len(calls) == 8
    done = subprocess.run(["ib_write_bw", *calls[0].split()], capture_output=True, text=True)
    output = done.stdout + done.stderr
    # There is no HCA here, which the program notices after it has parsed the options.
    assert "Infiniband/RoCE device" in output
    assert "Invalid" not in output


def test_bandwidth_beside_the_engine(measuring: Machine) -> None:
    running(measuring)
    (found,) = bandwidth(measuring).values()
    assert found.startswith("SKIP the engine is running")


def test_bandwidth_without_perftest(mesh: Machine) -> None:
    (mesh.tree / "usr/bin").mkdir(parents=True)
    # What an overlay takes for a file that is gone, should this machine have one.
    os.mknod(mesh.tree / "usr/bin/ib_write_bw", stat.S_IFCHR, os.makedev(0, 0))
    assert bandwidth(mesh)["bandwidth"].startswith("SKIP ib_write_bw is missing")


@pytest.mark.parametrize(
    ("status", "last", "expected"),
    [
        (0, "OK: 10.4 GB/s of bus bandwidth", "OK 10.4 GB/s of bus bandwidth"),
        (1, "FAIL: 2.8 GB/s of bus bandwidth", "FAIL 2.8 GB/s of bus bandwidth. To do: run /opt"),
        (2, "there is no all_reduce_perf", "SKIP there is no all_reduce_perf"),
    ],
)
def test_nccl(status: int, last: str, expected: str, mesh: Machine) -> None:
    mesh.write("stand-ins/ib_write_bw", "#!/bin/sh\nexit 1\n", 0o755)
    test = f"#!/bin/sh\necho NET/IB\necho '{last}'\nexit {status}\n"
    mesh.write("opt/sparkgen/nccl-test.sh", test, 0o755)
    assert bandwidth(mesh, user="nobody")["bandwidth nccl"].startswith(expected)


def test_bandwidth_server(measuring: Machine) -> None:
    """Two servers for each half; none is left when the script is told to stop."""
    served = Path(measuring.env["CALLS"]) / "served"
    with subprocess.Popen(
        measuring.command("--bandwidth-server"), stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout
        line = server.stdout.readline()
        assert line == "spark1 answers ./verify.py --bandwidth of its peers until Ctrl-C\n"
        until(lambda: served.exists() and len(served.read_text().split()) == 8)
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        server.terminate()
        status = server.wait(PATIENCE)
    assert status == 130
    # The servers, and now and then a pause.
    assert len(children) in (8, 9)
    assert sorted(served.read_text().split()) == [str(12000 + n) for n in range(8)]
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


# MPI and Slurm


def test_key_of_a_worker_is_missing(memory: Path) -> None:
    host = machine(folder_of("golden-trtllm-mpi-direct", "spark2"), memory)
    (host.tree / "etc/sparkgen/mpi/key").unlink()
    assert host.lines()["keys"].startswith("FAIL there is no /etc/sparkgen/mpi/key. To do:")


def test_job_runs(memory: Path) -> None:
    """Its port is ours, its health is checked, and no bandwidth is measured meanwhile."""
    host = machine(folder_of("slurm-trtllm", "spark1"), memory)
    host.answers["squeue"] = {"'--noheader --states=RUNNING --name=slurm-trtllm'": "7 batch\\n"}
    assert host.lines()["api"].startswith("SKIP the job is loading the model: port 8000 is not ")
    host.answers["ss"]["*:8000"] = 'LISTEN 0 9 *:8000 *:* users:(("trtllm-serve",pid=1,fd=5))\\n'
    host.answers["curl"] = {"*": ""}
    lines = host.lines("--bandwidth")
    assert lines["ports"] == "OK free: none; in use here: 8000"
    assert lines["api"] == "OK http://10.0.0.11:8000/health answers"
    assert lines["bandwidth"].startswith("SKIP the job slurm-trtllm is running, ")
    assert lines["bandwidth"].endswith("scancel --name=slurm-trtllm")
    assert "bandwidth nccl" not in lines
    host.answers["curl"] = {}
    assert host.lines()["api"].startswith("FAIL http://10.0.0.11:8000/health does not answer, ")


def test_nccl_is_measured_on_the_head_of_a_job(memory: Path) -> None:
    host = machine(folder_of("slurm-trtllm", "spark1"), memory)
    assert "bandwidth nccl" in host.lines("--bandwidth")


def test_gateway(mesh: Machine) -> None:
    """Whether clients are answered, and for root by which engine for each name."""
    served = ("assistant chat", "embed embedding", "code chat")
    facts = ["GATEWAY=http://10.0.0.11:8088", *(f"SERVED={one}" for one in served)]
    file = mesh.tree / BUNDLE / "etc/sparkgen/node.env"
    file.write_text(file.read_text() + "\n".join(facts) + "\n")
    module = "opt/sparkgen/services.py"
    shutil.copy(SERVICES.path / module, mesh.tree / BUNDLE / module)
    assert mesh.lines()["gateway"] == "SKIP sparkgen-proxy is not running"
    mesh.answers["systemctl"]["'is-active sparkgen-proxy'"] = "active\\n"
    mesh.answers["curl"] = {}
    assert mesh.lines()["gateway"].startswith("FAIL http://10.0.0.11:8088/health does not answer")
    answer = "HTTP/1.1 200 OK\\r\\nX-Served-By: %s\\r\\n\\r\\n{}"
    mesh.answers["curl"] = {
        "*completions": answer % "chat",
        "*embeddings": "HTTP/1.1 503 \\r\\n\\r\\nis not loaded",
        "*health": "",
    }
    assert mesh.lines()["gateway"].startswith("SKIP http://10.0.0.11:8088 answers; only root")
    mesh.write("run/sparkgen-proxy/verify.key", "sk-made\n", 0o600)
    found = "OK http://10.0.0.11:8088 answers: chat as assistant, chat as code"
    assert mesh.lines()["gateway"] == found
    mesh.answers["curl"]["*completions"] = "HTTP/1.1 502 Bad Gateway\\r\\n\\r\\n{}"
    message = "FAIL http://10.0.0.11:8088 has no answer for assistant, code"
    assert mesh.lines()["gateway"].startswith(message)
