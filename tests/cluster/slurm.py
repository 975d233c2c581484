"""A real Slurm cluster on this machine, whose nodes see their own generated folders.

It runs in its own namespaces, so its ports, host names, mounts and processes end with it.
"""

import re
import secrets
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from waiting import PATIENCE

from cluster.spaces import entering, first_process

PROGRAMS = (
    "bash",
    "hostname",
    "ip",
    "mount",
    "munged",
    "nsenter",
    "sbatch",
    "scancel",
    "scontrol",
    "sinfo",
    "slurmctld",
    "slurmd",
    "srun",
    "unshare",
)

STOP_TIMEOUT = 10.0
POLL_INTERVAL = 0.1

FIRST_NODE_PORT = 7001

ENVIRONMENT = {
    "HOME": "/root",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
    "SLURM_CONF": "/run/slurm.conf",
}

# A node has the size of a DGX Spark, whatever this machine has.
CONFIGURATION = """\
ClusterName=test
SlurmctldHost=localhost
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge.socket
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
SlurmdSpoolDir=/run/spool.%n
StateSaveLocation=/run/state
TmpFS=/run/tmp
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SchedulerParameters=batch_sched_delay=0
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=DEFAULT CPUs=20 RealMemory=120000 Gres=gpu:1
{nodes}
PartitionName=test Nodes=ALL Default=YES
"""

# No cgroup is created: unlike the plugin found by default, this one starts without systemd.
CGROUP_CONFIGURATION = "CgroupPlugin=cgroup/v1\n"

# The work folder becomes /run: paths of sockets below a test's own folder are too long for the
# kernel, and nothing can write to the machine's own /run.
MACHINE = r"""
set -eu
work=$1; shift
exec 3<&0
mount --bind "$work" /run
hostname localhost
ip link set lo up
# Slurm resolves names only while some address other than 127.0.0.1 is there.
ip address add 127.0.0.2/8 dev lo
munged --force --key-file=/run/munge.key --socket=/run/munge.socket --log-file=/run/munged.log \
    --pid-file=/run/munged.pid --seed-file=/run/munge.seed
slurmctld -D >/run/slurmctld.log 2>&1 &
while (($#)); do
    unshare --mount --uts bash /run/node.sh "$1" "$2" >"/run/slurmd.$1.log" 2>&1 &
    shift 2
done
cat <&3 >/dev/null &
wait -n
"""

# An overlay provides mount points that the machine lacks, without touching the machine.
NODE = r"""
set -eu
node=$1 tree=$2
hostname "$node"
mount -t proc proc /proc
# Each its own: PMIx makes a folder there that it calls after the job alone.
mount -t tmpfs tmpfs /run/tmp
for folder in ${PATH//:/ }; do
    mount -t overlay overlay -o "lowerdir=/run/programs:$folder" "$folder"
done
for folder in etc opt; do
    mount -t overlay overlay -o "lowerdir=/run/mountpoints/$folder:/$folder" "/$folder"
    mount --bind "$tree/$folder/sparkgen" "/$folder/sparkgen"
done
exec slurmd -D
"""


@dataclass(frozen=True)
class SlurmCluster:
    """A running cluster; ``work`` is where its commands and jobs start and its logs are."""

    pid: int
    work: Path

    def run(self, *argv: str, patience: float = PATIENCE) -> subprocess.CompletedProcess[str]:
        """Run a client command, such as sbatch, next to the controller."""
        enter = entering(self.pid, "mount", "net", "uts")
        return subprocess.run(
            (*enter, "env", f"--chdir={self.work}", *argv),
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience,
            check=False,
        )

    def wait_for(self, job_id: str, states: Collection[str]) -> str:
        """Wait until the job is in one of the states, and return which."""
        deadline = time.monotonic() + PATIENCE
        while True:
            shown = self.run("scontrol", "--oneliner", "show", "job", job_id)
            state = re.search(r"\bJobState=(\w+)", shown.stdout)
            if state and state[1] in states:
                return state[1]
            if time.monotonic() > deadline:
                raise TimeoutError(f"job {job_id} is not {states}: {shown.stdout}{shown.stderr}")
            time.sleep(POLL_INTERVAL)


@contextmanager
def slurm_cluster(
    nodes: Mapping[str, Path], work: Path, programs: Mapping[str, str]
) -> Iterator[SlurmCluster]:
    """Run a cluster of these nodes, each with its root tree, while the context lasts.

    On a node, /etc/sparkgen and /opt/sparkgen come from its tree, and the programs replace the
    machine's in every folder of the search path.
    """
    _write_files(nodes, work, programs)
    trees = [text for name, tree in nodes.items() for text in (name, str(tree))]
    # It ends when its input closes, so also when the test process is killed.
    with (
        (work / "machine.log").open("w") as log,
        first_process(
            ("mount", "net", "uts"),
            MACHINE,
            "machine",
            str(work),
            *trees,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as machine,
    ):
        try:
            cluster = SlurmCluster(machine.pid, work)
            _wait_until_idle(machine, cluster, len(nodes))
            yield cluster
        finally:
            _stop(machine)


def _write_files(nodes: Mapping[str, Path], work: Path, programs: Mapping[str, str]) -> None:
    for folder in (
        "state",
        "tmp",
        "programs",
        "mountpoints/etc/sparkgen",
        "mountpoints/opt/sparkgen",
    ):
        (work / folder).mkdir(parents=True)
    for name, text in programs.items():
        program = work / "programs" / name
        program.write_text(text)
        program.chmod(0o755)
    key = work / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(64))
    lines = (
        f"NodeName={name} NodeAddr=127.0.0.1 Port={port}"
        for port, name in enumerate(nodes, start=FIRST_NODE_PORT)
    )
    configuration = CONFIGURATION.format(nodes="\n".join(lines))
    (work / "slurm.conf").write_text(configuration)
    (work / "cgroup.conf").write_text(CGROUP_CONFIGURATION)
    (work / "gres.conf").write_text("Name=gpu File=/dev/null\n")
    (work / "node.sh").write_text(NODE)


def _wait_until_idle(
    machine: subprocess.Popen[bytes], cluster: SlurmCluster, node_count: int
) -> None:
    deadline = time.monotonic() + PATIENCE
    while machine.poll() is None and time.monotonic() < deadline:
        # Before the socket exists, commands could run outside the namespaces.
        if (cluster.work / "munge.socket").exists():
            sinfo = cluster.run("sinfo", "--noheader", "--Node", "--format=%T")
            if sinfo.stdout.split() == ["idle"] * node_count:
                return
        time.sleep(POLL_INTERVAL)
    logs = (f"{log.name}:\n{log.read_text()}" for log in sorted(cluster.work.glob("*.log")))
    raise RuntimeError("\n".join(("the Slurm cluster did not start", *logs)))


def _stop(machine: subprocess.Popen[bytes]) -> None:
    assert machine.stdin is not None
    machine.stdin.close()
    try:
        machine.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        machine.kill()
