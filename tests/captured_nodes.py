"""Nodes as `capture.sh` finds them: a root tree, and stand-ins for the programs that it runs.

A stand-in prints what the program prints on a DGX Spark; for `docker inspect`, only the lines that
the script's format selects.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from waiting import PATIENCE

from generator.resources import TEMPLATES

SCRIPT = TEMPLATES / "capture.sh"
# Programs that describe a node, which this machine's own must not.
DESCRIBING = ("nvidia-smi", "systemctl", "lldpcli", "ethtool", "ip", "ibdev2netdev", "rdma")
PACKAGES = "usr/local/lib/python3.12/dist-packages"
IMAGE_ID = "sha256:9de570dfcdfca4effabe006779215326faf1f812c1d522652c5010801b8e6d78"


@dataclass
class Container:
    """What `docker inspect` reports about a container, as far as the script reads it."""

    name: str
    image: str
    command: Sequence[str] = ()
    entrypoint: Sequence[str] = ()
    env: Sequence[str] = ()
    restart: str = "no"
    privileged: bool = False
    network: str = "host"
    ipc: str = "private"
    shm: int = 16 << 30
    # Each may say whether the container can write to it.
    mounts: Sequence[tuple[str, str] | tuple[str, str, bool]] = ()
    memory: int = 0
    cpus: str = ""
    pid: str = ""
    user: str = ""
    init: bool | None = False
    capabilities: Sequence[str] = ()
    dropped: Sequence[str] = ()
    devices: Sequence[str] = ()
    ulimits: Mapping[str, int] = field(default_factory=dict)
    image_env: Sequence[str] = ()
    security: Sequence[str] = ()
    read_only: bool = False
    most_processes: int | None = None
    image_entrypoint: Sequence[str] = ()
    image_command: Sequence[str] = ()
    image_user: str = ""
    digests: Sequence[str] = ()
    layers: Sequence[str] = ("sha256:" + "1" * 64,)
    image_id: str = IMAGE_ID
    build: str = ""
    # Later than any file that a test has just written.
    started: str = "2099-01-01T00:00:00.5Z"

    @property
    def id(self) -> str:
        """What Docker calls it."""
        return sha256(self.name.encode()).hexdigest()

    def inspected(self) -> str:
        """The lines of the script's format."""
        lines = [
            *_lines("name", f"/{self.name}"),
            *_lines("image", self.image),
            *_lines("image-id", self.image_id),
            *_lines("id", self.id),
            *_lines("started", "running"),
            *_lines("started-at", self.started),
            *_lines("user", self.user),
            *(line for word in self.entrypoint for line in _lines("entrypoint", word)),
            *(line for word in self.command for line in _lines("cmd", word)),
            *(line for text in self.env for line in _lines("env", text)),
            *_lines("restart", self.restart),
            *_lines("privileged", self.privileged),
            *_lines("network", self.network),
            *_lines("ipc", self.ipc),
            *_lines("pid", self.pid),
            *_lines("shm-size", self.shm),
            *_lines("memory", self.memory),
            *_lines("cpus", self.cpus),
            *_lines("init", self.init),
            *(line for name in self.capabilities for line in _lines("cap-add", name)),
            *(line for name in self.dropped for line in _lines("cap-drop", name)),
            *(line for path in self.devices for line in _lines("device", path)),
            *(line for name, hard in self.ulimits.items() for line in _lines("ulimit", name, hard)),
            *(line for text in self.security for line in _lines("security-opt", text)),
            *_lines("read-only", self.read_only),
            *_lines("pids-limit", self.most_processes),
            *(
                line
                for mount in self.mounts
                for line in _lines("mount", *mount[:2], *(mount[2:] or (True,)))
            ),
        ]
        return "\n".join(lines) + "\n"

    def image_inspected(self) -> str:
        """The lines of the script's format for its image."""
        lines = [
            *_lines("image-id", self.image_id),
            *_lines("image-tag", self.image),
            *(line for text in self.digests for line in _lines("image-digest", text)),
            *(_lines("image-build", self.build) if self.build else []),
            *(line for text in self.layers for line in _lines("image-layer", text)),
            *(line for text in self.image_env for line in _lines("image-env", text)),
            *(line for text in self.image_entrypoint for line in _lines("image-entrypoint", text)),
            *(line for text in self.image_command for line in _lines("image-cmd", text)),
            *_lines("image-user", self.image_user),
            *_lines("image-architecture", "arm64"),
        ]
        return "\n".join(lines) + "\n"


def _lines(label: str, *values: Any) -> list[str]:
    return [" ".join([label, *(_go_json(value) for value in values)])]


def _go_json(value: Any) -> str:
    """JSON formatted like the output of Go's encoder."""
    text = json.dumps(value, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@dataclass
class Machine:
    """A node: its files, what its programs print, and its containers.

    The key `ufw *` is for a program that prints the same whatever it is asked.
    """

    name: str
    files: Mapping[str, str] = field(default_factory=dict)
    printed: Mapping[str, str] = field(default_factory=dict)
    containers: Sequence[Container] = ()
    processes: Mapping[int, tuple[Sequence[str], Sequence[str]]] = field(default_factory=dict)
    programs: Sequence[str] = ()
    # A folder with all other programs: those that describe a node and print nothing are not there.
    # Without it, they fail.
    others: Path | None = None
    modes: Mapping[str, int] = field(default_factory=dict)
    options: Sequence[str] = ("--whole-files",)

    def capture(self, folder: Path) -> Path:
        """Run the script on the node; returns the archive."""
        self.run(folder)
        return folder / f"{self.name}.tar.gz"

    def run(self, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run the script on the node, in a folder."""
        root, programs = folder / f"{self.name}.root", folder / f"{self.name}.programs"
        for path, text in self.files.items():
            write(root / path, text)
            if path.startswith(("etc/", "opt/")):
                is_script = text.startswith("#!")
                (root / path).chmod(0o600 if "/40-cx7" in path else 0o755 if is_script else 0o644)
        for path in self.modes.keys() & self.files.keys():
            (root / path).chmod(self.modes[path])
        for number, (words, env) in self.processes.items():
            write(root / f"proc/{number}/cmdline", "".join(f"{word}\0" for word in words))
            write(root / f"proc/{number}/environ", "".join(f"{text}\0" for text in env))
            for program in self.programs:
                write(root / f"proc/{number}/root" / PACKAGES / program / "METADATA", "")
        programs.mkdir(parents=True)
        self._stand_ins(programs)
        path = f"{programs}:{self.others or os.environ['PATH']}"
        env = {"PATH": path, "CAPTURE_ROOT": str(root)}
        argv = ["/bin/sh", SCRIPT, *self.options, self.name]
        return subprocess.run(
            argv, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE, check=True
        )

    def _stand_ins(self, programs: Path) -> None:
        for line, output in self.printed.items():
            name = line.split()[0]
            write(programs / f"{line.replace(' ', '_')}.txt", output)
            if line.endswith(" *"):
                stand_in(programs / name, f'cat "{programs}/{name}_*.txt"')
                continue
            stand_in(programs / name, f'cat "{programs}/$(echo "{name} $*" | tr " " _).txt"')
        folder = programs / "containers"
        for container in self.containers:
            number = f"{len(list(folder.glob('*.txt'))):064x}"
            write(folder / f"{number}.txt", container.inspected())
            write(programs / "images" / f"{container.image_id}.txt", container.image_inspected())
        stand_in(
            programs / "docker",
            f"""case "$1 $2" in
              'info --format') echo '"29.2.1" "overlay2"' ;;
              'ps --quiet') ls "{folder}" | sed 's/.txt//' ;;
              'inspect --format') cat "{folder}/$4.txt" ;;
              'image inspect') cat "{programs}/images/$5.txt" ;;
            esac""",
        )
        for name in DESCRIBING:
            if not self.others and not (programs / name).exists():
                stand_in(programs / name, "exit 1")


def write(path: Path, text: str) -> None:
    """Write a file and create its parent folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, errors="surrogateescape")


def stand_in(path: Path, script: str) -> None:
    """Write a stand-in for a program."""
    write(path, f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def address(name: str, *addresses: str, up: bool = True, mtu: int = 1500) -> dict[str, Any]:
    """One interface as `ip -j address` prints it."""
    flags = ["BROADCAST", "MULTICAST", "UP", *(["LOWER_UP"] if up else [])]
    addr_info = [
        {
            "family": "inet",
            "local": text.partition("/")[0],
            "prefixlen": int(text.partition("/")[2]),
            "scope": "global",
            "label": name,
        }
        for text in addresses
    ]
    return {
        "ifname": name,
        "flags": flags if up else ["NO-CARRIER", *flags],
        "mtu": mtu,
        "operstate": "UP" if up else "DOWN",
        "link_type": "ether",
        "address": "4c:bb:47:2f:91:12",
        "addr_info": addr_info,
    }
