"""Jobs on nodes with real systemd, sshd and Open MPI, from start.sh to their exit status."""

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bundles import Bundle
from cluster import docker, logins, nodes, slurm_units, stack
from cluster.logins import add_logins
from cluster.machines import KEEP_CACHES, Machine
from draws import MANY
from programs import require, require_root
from waiting import PATIENCE, until

from generator.verify.namespaces import PROGRAMS

TORCHRUN = Path(__file__).parent / "torchrun.py"
SITE = """\
version: 1
name: jobs
user: root
nodes:
  - {name: spark1, management: {address: 10.0.0.11/24}}
  - {name: spark2, management: {address: 10.0.0.12/24}}
cabling: [{endpoints: [spark1:p0, spark2:p0]}]
groups:
  - name: chat
    nodes: [spark1, spark2]
    model: {name: gpt-oss-120b, context_length: 32768}
    engine: {name: vllm, version: 0.33.0, venv: /opt/serve, parallel: {tensor: 2}}
jobs:
  - name: train
    launcher: torchrun
    venv: /opt/train
    directory: /opt/train
    command: /opt/sparkgen/files/rank.py "it's a $HOME test"
    env: {NOTE: "a b 'c' $d"}
    files: [{source: files/rank.py}]
    stops: true
  - name: reduce
    launcher: mpi
    command: /opt/sparkgen/files/reduce.py
    files: [{source: files/reduce.py}]
    stops: true
  - name: contained-train
    launcher: torchrun
    image: ghcr.io/lab/train:1.0
    directory: /run/stand-in
    command: /opt/sparkgen/files/rank.py "it's a $HOME test"
    env: {NOTE: "a b 'c' $d"}
    files: [{source: files/rank.py}, {path: /run/stand-in}]
    stops: true
  - name: contained-reduce
    launcher: mpi
    image: ghcr.io/lab/train:1.0
    command: /opt/sparkgen/files/reduce.py
    files: [{source: files/reduce.py}, {path: /run/stand-in}]
    stops: true
  - name: batch
    launcher: slurm
    venv: /opt/train
    command: /opt/sparkgen/files/reduce.py
    files: [{source: files/reduce.py}]
    stops: true
  - name: contained-batch
    launcher: slurm
    image: ghcr.io/lab/train:1.0
    command: /opt/sparkgen/files/reduce.py
    files: [{source: files/reduce.py}, {path: /run/stand-in}]
    stops: true
  - name: environment-reduce
    launcher: mpi
    venv: /opt/train
    command: python /opt/sparkgen/files/reduce.py
    files: [{source: files/reduce.py}]
    stops: true
"""
IMAGE = "ghcr.io/lab/train:1.0"
# Ends when its node is told to, with that status.
RANK = """\
#!/usr/bin/python3
import os, sys, time
shown = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "NCCL_IB_HCA", "NOTE")
print(*(os.environ.get(name) for name in shown), *sys.argv[1:], os.getcwd(), sep="|", flush=True)
while not os.path.exists("/run/stand-in/end"):
    time.sleep(0.05)
sys.exit(int(open("/run/stand-in/end").read()))
"""
REDUCE = """\
#!/usr/bin/python3
import ctypes, os, socket, sys, time
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
world, integer, total = (
    ctypes.byref(ctypes.c_char.in_dll(mpi, f"ompi_mpi_{name}"))
    for name in ("comm_world", "int", "op_sum")
)
one, ranks, rank = ctypes.c_int(1), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
print("joined", flush=True)
while os.path.exists("/run/stand-in/hold"):
    time.sleep(0.05)
mpi.MPI_Allreduce(ctypes.byref(one), ctypes.byref(ranks), 1, integer, total, world)
place = f"{os.environ['RANK']} on {socket.gethostname()}, {sys.prefix}"
print(f"{rank.value} of {ranks.value}, {place}", flush=True)
if os.path.exists("/run/stand-in/end"):
    os._exit(int(open("/run/stand-in/end").read()))
mpi.MPI_Finalize()
"""
# Each launcher, with a program of the node or its virtual environment, and with one of an image.
TRAININGS = ("train", "contained-train")
WORLDS = ("reduce", "environment-reduce", "contained-reduce", "batch", "contained-batch")
ENGINE, JOB = "sparkgen-engine-chat", "sparkgen-job-"
# A rank, and not what started it.
PROGRAM = "python[0-9.]* (-u )?/opt/sparkgen/files/"
# Enters a node as ssh would.
SSH = """\
#!/bin/bash
while [[ $1 == -* ]]; do shift 2; done
node=$1
shift
exec $(cat "{folder}/enter.$node") env PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c "$*"
"""


class Cluster:
    """Two nodes, and what the operator runs."""

    def __init__(self, rack: stack.Rack, bundle: Bundle, folder: Path) -> None:
        self.rack, self.folder = rack, folder
        self.head, self.worker = rack.machines["spark1"], rack.machines["spark2"]
        for name in ("jobs", "operator"):
            shutil.copytree(bundle.folder / name, folder / "operated" / name)
        programs = folder / "programs"
        programs.mkdir()
        for name, text in {"ssh": SSH.format(folder=folder)}.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        for name, machine in rack.machines.items():
            enter = f"nsenter --target={machine.process} --mount --pid --net --uts"
            (folder / f"enter.{name}").write_text(enter)
        self.env = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}

    def start(self, job: str, *options: str) -> "subprocess.Popen[str]":
        """Run the job's start.sh."""
        script = self.folder / f"operated/jobs/{job}/start.sh"
        return subprocess.Popen(
            ["bash", script, *options],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, job: str, *options: str) -> tuple[int, str]:
        """The exit status of start.sh, and what it prints."""
        with self.start(job, *options) as process:
            output, _ = process.communicate(timeout=PATIENCE)
            return process.returncode, output

    def kill_rank(self, job: str, begun: Callable[[], bool]) -> tuple[int, str, float]:
        """As run, with the worker's rank killed while the head's waits for it, and how soon."""
        self.worker.set_file("hold")
        with self.start(job) as process:
            until(lambda: begun() or process.poll() is not None)
            killed = time.monotonic()
            self.worker.run("pkill", "-KILL", "-f", PROGRAM)
            output, _ = process.communicate(timeout=PATIENCE)
        self.worker.remove_file("hold")
        return process.returncode, output, time.monotonic() - killed

    @property
    def machines(self) -> tuple[Machine, Machine]:
        return self.head, self.worker

    def end(self, status: int, *machines: Machine) -> None:
        """Have ranks end."""
        for machine in machines:
            machine.run("sh", "-c", f"echo {status} >/run/stand-in/end")

    def printed(self, job: str) -> list[str]:
        """What the ranks have printed on each node."""
        return [
            m.run("journalctl", "-o", "cat", "--no-pager", "-u", f"{JOB}{job}").stdout
            for m in self.machines
        ]

    def logged(self, job: str) -> str:
        """What a batch job of Slurm has printed."""
        words = ("-o", "cat", "--no-pager", "-t", f"{JOB}{job}")
        return self.head.run("journalctl", *words).stdout

    def joined(self, job: str) -> int:
        """How many ranks have ever joined the world of a job."""
        return (self.printed(job)[0] + self.logged(job)).count("joined")

    def runs(self) -> bool:
        return all(machine.run("pgrep", "-f", PROGRAM).stdout for machine in self.machines)

    def serves(self) -> bool:
        return all(machine.state(ENGINE) == "active" for machine in self.machines)

    def is_clear(self) -> None:
        """Nothing of a job is left, and the engine serves again."""
        until(self.serves)
        for machine in self.machines:
            machine.run("rm", "-f", "/run/stand-in/end")
            assert machine.run("pgrep", "-f", PROGRAM).stdout == ""


@contextmanager
def running(folder: Path, torchrun: str, rank: str) -> Iterator[Cluster]:
    """Both nodes with the bundle, whose engine serves; `rank` is what each rank trains."""
    require_root()
    require(
        *PROGRAMS,
        *nodes.PROGRAMS,
        *logins.PROGRAMS,
        *slurm_units.PROGRAMS,
        "journalctl",
        "mpirun",
        "flock",
        "ss",
    )
    (folder / "files").mkdir()
    for name, text in {"rank.py": rank, "reduce.py": REDUCE}.items():
        (folder / "files" / name).write_text(text)
        (folder / "files" / name).chmod(0o755)
    program = folder / "torchrun"
    program.write_text(torchrun)
    (folder / "jobs.yaml").write_text(SITE)
    bundle = Bundle(f"jobs-{folder.name}", folder / "jobs.yaml")
    trees = {node.name: stack.prepared(bundle, node, folder) for node in bundle.site.nodes}
    for tree in trees.values():
        _equip(tree, torchrun)
    add_logins(trees.values(), folder)
    addresses = {n.name: str(n.management.address.ip) for n in bundle.site.nodes if n.management}
    slurm_units.equip(trees, addresses)
    with stack.cabled(bundle, folder) as network, stack.Rack(trees, network) as rack:
        image = docker.image(folder, {"torchrun": program}, True, loaded=_mpi())
        for machine in rack.machines.values():
            stack.install(machine)
            stack.load(machine, IMAGE, image)
            machine.systemctl("start", "--no-block", ENGINE)
        slurm_units.start(rack.machines)
        started = Cluster(rack, bundle, folder)
        until(started.serves)
        yield started


def _mpi() -> Iterator[str]:
    """Open MPI's library, and what it loads by itself."""
    folder = Path("/usr/lib") / f"{platform.machine()}-linux-gnu"
    yield from (str(folder / name) for name in ("libmpi.so.40", "libpmix.so.2"))
    yield from (str(folder / name) for name in ("openmpi/lib/openmpi3", "pmix2/lib/pmix"))


def _equip(tree: Path, torchrun: str) -> None:
    """A virtual environment for the job, another one whose engine only waits, and sudo."""
    programs = {
        "opt/train/bin/torchrun": torchrun,
        "opt/train/pyvenv.cfg": "home = /usr/bin\n",
        # The worker watches the port at which ranks meet.
        "opt/serve/bin/vllm": "#!/bin/sh\nexec python3 -m http.server 29501\n",
        "usr/bin/sudo": '#!/bin/sh\nif [ "$1" = -S ]; then shift 3; else shift; fi\nexec "$@"\n',
    }
    for path, text in programs.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
        (tree / path).chmod(0o755)
    (tree / "opt/train/bin/python").symlink_to("/usr/bin/python3")
    allowed = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    for unit, text in (
        (ENGINE, KEEP_CACHES),
        *((f"{JOB}{job}", f"Environment={allowed}\n") for job in WORLDS[:3]),
    ):
        drop_in = tree / f"opt/units/{unit}.service.d/test.conf"
        drop_in.parent.mkdir()
        drop_in.write_text(f"[Service]\n{text}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("jobs"), TORCHRUN.read_text(), RANK) as started:
        yield started


@pytest.mark.long
@pytest.mark.parametrize("job", TRAININGS)
def test_job_between_two_servings(job: str, cluster: Cluster) -> None:
    with cluster.start(job) as process:
        until(lambda: all("|" in text for text in cluster.printed(job)) or process.poll())
        assert [machine.state(ENGINE) for machine in cluster.machines] == ["inactive"] * 2
        cluster.end(0, *cluster.machines)
        output, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output) == (0, f"== {job} has ended well\n")
    port = 29600 + 2 * TRAININGS.index(job)
    place = ("/opt/train", "/run/stand-in")[TRAININGS.index(job)]
    hcas, rest = "=rocep1s0f0:1,roceP2p1s0f0:1", f"a b 'c' $d|it's a $HOME test|{place}"
    for rank, text in enumerate(cluster.printed(job)):
        assert f"{rank}|2|10.100.0.11|{port}|{hcas}|{rest}" in text.splitlines()
    cluster.is_clear()


@pytest.mark.parametrize("job", [*TRAININGS, "environment-reduce", "batch"])
def test_dead_rank_ends_all(job: str, cluster: Cluster) -> None:
    expected = cluster.joined(job) + 2
    begun = cluster.runs if job in TRAININGS else lambda: cluster.joined(job) == expected
    status, output, seconds = cluster.kill_rank(job, begun)
    print(f"seen after {seconds:.1f} s")
    if job in TRAININGS:
        assert status == 1, output
        assert "== the rank on spark2 has ended with exit-code 1; journalctl -u" in output
    else:
        # What started both says how the other one ended.
        assert status == 137, output
        assert "== the rank on spark1 has ended with exit-code 137; journalctl -u" in output
    cluster.is_clear()


@pytest.mark.parametrize("job", ["contained-train", "contained-reduce", "contained-batch"])
def test_job_that_is_stopped(job: str, cluster: Cluster) -> None:
    for machine in cluster.machines:
        machine.set_file("hold")
    with cluster.start(job) as process:
        until(lambda: cluster.runs() or process.poll())
        assert cluster.run(job, "--stop")[0] == 0
        output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode, output
    for machine in cluster.machines:
        machine.remove_file("hold")
    cluster.is_clear()


def test_missing_file(cluster: Cluster) -> None:
    cluster.worker.run("mv", "/opt/sparkgen/files/rank.py", "/opt/moved")
    status, output = cluster.run("train")
    cluster.worker.run("mv", "/opt/moved", "/opt/sparkgen/files/rank.py")
    assert status == 3
    assert "there is no /opt/sparkgen/files/rank.py\n== spark2: see above\n" in output
    assert cluster.serves()


def test_missing_image(cluster: Cluster) -> None:
    for words in (("tag", IMAGE, "kept"), ("rmi", IMAGE)):
        assert cluster.worker.run("docker", *words).returncode == 0
    status, output = cluster.run("contained-train")
    cluster.worker.run("docker", "tag", "kept", IMAGE)
    assert status == 3
    assert f"docker has no image {IMAGE}\n== spark2: see above\n" in output
    assert cluster.serves()


@pytest.mark.parametrize("job", WORLDS)
def test_world(job: str, cluster: Cluster) -> None:
    status, output = cluster.run(job)
    assert (status, output) == (0, f"== {job} has ended well\n"), output
    printed = cluster.printed(job)[0] + cluster.logged(job)
    prefix = "/opt/train" if job == "environment-reduce" else "/usr"
    for rank in range(2):
        assert f"{rank} of 2, {rank} on spark{rank + 1}, {prefix}" in printed
    cluster.is_clear()


@pytest.mark.drawn
@pytest.mark.parametrize("job", WORLDS if MANY > 1 else ("contained-reduce", "batch"))
def test_world_with_a_rank_that_fails(job: str, cluster: Cluster) -> None:
    cluster.end(7, cluster.worker)
    status, output = cluster.run(job)
    assert status == 7, output
    assert "== the rank on spark1 has ended with exit-code 7" in output
    cluster.is_clear()
