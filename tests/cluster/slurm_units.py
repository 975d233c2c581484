"""A real Slurm as units of booted nodes, whose first one has the controller."""

import secrets
from collections.abc import Mapping
from pathlib import Path

from cluster.machines import Machine
from cluster.slurm import CGROUP_CONFIGURATION, CONFIGURATION

PROGRAMS = ("munged", "sbatch", "scancel", "slurmctld", "slurmd", "srun")
_SERVICE = "[Unit]\nDefaultDependencies=no\n[Service]\n"
_MUNGE = "--key-file=/etc/munge.key --socket=/run/munge.socket --log-file=/run/munged.log"
_FILES = "--pid-file=/run/munged.pid --seed-file=/run/munge.seed"
_CONTROLLER = "slurmctld"


def equip(trees: Mapping[str, Path], addresses: Mapping[str, str]) -> None:
    """Give prepared nodes Slurm's daemons, which do not start by themselves."""
    key, head = secrets.token_bytes(64), next(iter(trees))
    lines = (f"NodeName={name} NodeAddr={address}" for name, address in addresses.items())
    text = CONFIGURATION.format(nodes="\n".join(lines))
    text = text.replace("Host=localhost", f"Host={head}({addresses[head]})")
    for name, tree in trees.items():
        files = {
            "slurm/slurm.conf": text,
            "slurm/cgroup.conf": CGROUP_CONFIGURATION,
            "slurm/gres.conf": "Name=gpu File=/dev/null\n",
        }
        for path, content in files.items():
            (tree / "etc" / path).parent.mkdir(exist_ok=True)
            (tree / "etc" / path).write_text(content)
        (tree / "etc/munge.key").touch(mode=0o600)
        (tree / "etc/munge.key").write_bytes(key)
        for unit, start in {
            "munge": f"munged --force --foreground {_MUNGE} {_FILES}",
            "slurmd": f"slurmd -D -N {name}",
            _CONTROLLER: f"{_CONTROLLER} -D",
        }.items():
            (tree / f"opt/units/{unit}.service").write_text(f"{_SERVICE}ExecStart={start}\n")


def start(machines: Mapping[str, Machine]) -> None:
    """Start the daemons of all nodes."""
    for index, machine in enumerate(machines.values()):
        machine.run("mkdir", "-p", "/run/tmp", "/run/state")
        machine.systemctl("start", "munge")
        machine.systemctl("start", "slurmd", *([] if index else [_CONTROLLER]))
