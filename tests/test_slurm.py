"""A real Slurm accepts every job script; one runs its generated launch.sh, and ends."""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from bundles import BUNDLES, Bundle
from cluster.slurm import PROGRAMS, SlurmCluster, slurm_cluster
from programs import program, require, require_library, require_root
from waiting import until

SEVERAL = {bundle.name: bundle for bundle in BUNDLES if bundle.site.workers}
# Each part that Slurm may start, with the bundle that its job is in.
JOBS = {
    f"{bundle}/{part.group}" if part.group else str(bundle): (bundle, part)
    for bundle in BUNDLES
    for part in bundle.site.parts
    if part.workers or part.engine.is_slurm_job
}
LAB_MESH = SEVERAL["lab-mesh"]
SCRIPT = "opt/sparkgen/serve.sbatch"

# Serves until it is stopped by name, or fails where the test requests it, but only once all nodes
# have started: Slurm would silently end a task that has not called Docker yet. It leaves signals to
# the container, as Docker's client does.
DOCKER = """\
#!/bin/bash
trap '' TERM
node=$(hostname)
printf '%s\\0' "$@" >>"$1.$node"
[[ $1 != compose ]] || cp "$3" "container.$node"
if [[ $1 == start ]]; then
  if [[ -e fails.$node ]]; then
    until [[ -e start.spark1 && -e start.spark2 && -e start.spark3 ]]; do sleep 0.1; done
    exit 1
  fi
  until [[ -e stop.$node ]]; do sleep 0.1; done
fi
"""


def run(nodes: Bundle, work: Path) -> Iterator[SlurmCluster]:
    require_root()
    require(*PROGRAMS)
    with slurm_cluster(nodes.copy(work), work / "slurm", {"docker": DOCKER}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    largest = max(SEVERAL.values(), key=lambda bundle: len(bundle.site.nodes))
    yield from run(largest, tmp_path_factory.mktemp("rack"))


@pytest.fixture
def lab_mesh(tmp_path: Path) -> Iterator[SlurmCluster]:
    yield from run(LAB_MESH, tmp_path)


@pytest.mark.parametrize("job", JOBS)
def test_job_script(job: str, rack: SlurmCluster) -> None:
    bundle, part = JOBS[job]
    names = [node.name for node in part.nodes]
    script = bundle.folder / names[0] / part.place(SCRIPT)
    done = rack.run("sbatch", "--test-only", str(script))
    assert done.returncode == 0, done.stderr
    # Slurm writes spark[1-3], in its own order.
    (hosts,) = re.findall(r" on nodes (\S+) ", done.stderr)
    assert rack.run("scontrol", "show", "hostnames", hosts).stdout.split() == sorted(names)


def test_job_for_an_unknown_node(rack: SlurmCluster, tmp_path: Path) -> None:
    script = tmp_path / "serve.sbatch"
    text = (LAB_MESH.folder / "spark1" / SCRIPT).read_text()
    script.write_text(text.replace("spark3", "spark99"))
    done = rack.run("sbatch", "--test-only", str(script))
    assert done.returncode != 0
    assert "Invalid node name specified" in done.stderr


def submit(cluster: SlurmCluster, bundle: Bundle = LAB_MESH) -> str:
    script = bundle.folder / bundle.site.head.name / SCRIPT
    submitted = cluster.run("sbatch", "--parsable", str(script))
    assert submitted.returncode == 0, submitted.stderr
    return submitted.stdout.strip()


def calls(cluster: SlurmCluster, command: str, nodes: Sequence[str]) -> dict[str, list[str]]:
    """The words with which these nodes called a Docker command, once all of them have."""
    files = {node: cluster.work / f"{command}.{node}" for node in nodes}
    until(lambda: all(file.exists() and file.stat().st_size for file in files.values()))
    return {name: file.read_text().rstrip("\0").split("\0") for name, file in files.items()}


def created(cluster: SlurmCluster, node: str) -> dict[str, Any]:
    """The engine in the file from which a node has created its container."""
    service = yaml.safe_load((cluster.work / f"container.{node}").read_text())["services"]["engine"]
    return dict(service)


STOP = ["stop", "-t", "20", "sparkgen-engine"]
ENDED = {"CANCELLED", "COMPLETED", "FAILED"}


def test_job(lab_mesh: SlurmCluster) -> None:
    nodes = {node.name: node for node in LAB_MESH.site.nodes}
    job = submit(lab_mesh)
    attached = ["start", "--attach", "sparkgen-engine"]
    assert calls(lab_mesh, "start", [*nodes]) == dict.fromkeys(nodes, attached)
    for name, node in nodes.items():
        engine = created(lab_mesh, name)
        command = [word for words in node.container.command for word in words]
        assert f"--node-rank={node.rank}" in command
        assert (engine["image"], engine["command"]) == (node.container.image, command)

    lab_mesh.run("scancel", job)
    assert lab_mesh.wait_for(job, ENDED) == "CANCELLED"
    assert calls(lab_mesh, "stop", [*nodes]) == dict.fromkeys(nodes, STOP)
    assert_idle(lab_mesh)


def test_engine_that_fails_on_one_node(lab_mesh: SlurmCluster) -> None:
    (lab_mesh.work / "fails.spark2").touch()
    job = submit(lab_mesh)
    assert lab_mesh.wait_for(job, ENDED) == "FAILED"
    others = ["spark1", "spark3"]
    assert calls(lab_mesh, "stop", others) == dict.fromkeys(others, STOP)
    assert_idle(lab_mesh)


def assert_idle(cluster: SlurmCluster) -> None:
    """The job leaves nothing behind on any node."""
    until(lambda: not cluster.run("squeue", "--noheader").stdout)


# Ranks in containers of pyxis

# Its nodes are in another order than Slurm's.
PYXIS = SEVERAL["golden-trtllm-slurm-switch"]

# Slurm with PMIx but without pyxis, whose options are recorded and left out.
SRUN = """\
#!/bin/bash
printf '%s\\0' "$@" >>srun
own=()
for word; do
  case $word in
    --container-* | --no-container-*) ;;
    *) own+=("$word") ;;
  esac
done
exec /run/srun.real "${own[@]}"
"""
# Like the real one, it splits its words at spaces, and outlives the server of rank 0.
LAUNCHER = """\
#!/bin/bash
env --null >"environment.$SLURM_PROCID"
hostname >"node.$SLURM_PROCID"
task="$*"
((SLURM_PROCID)) || $task &
exec sleep 60
"""
SERVER = """\
#!/bin/bash
printf '%s\\0' "$@" >server
until [[ -e fails ]]; do sleep 0.1; done
exit 3
"""
FABRIC = '#!/bin/bash\necho "$1" >"fabric.$(hostname)"\n'


@pytest.fixture
def pyxis(tmp_path: Path) -> Iterator[SlurmCluster]:
    require_root()
    require(*PROGRAMS)
    # Slurm's PMIx plugin loads it.
    require_library("libpmix.so")
    trees, work = PYXIS.copy(tmp_path), tmp_path / "slurm"
    for tree in trees.values():
        (tree / "opt/sparkgen/wait-fabric.sh").write_text(FABRIC)
    work.mkdir()
    shutil.copy(program("srun"), work / "srun.real")
    programs = {"srun": SRUN, "trtllm-llmapi-launch": LAUNCHER, "trtllm-serve": SERVER}
    with slurm_cluster(trees, work, programs) as cluster:
        yield cluster


def test_job_of_pyxis(pyxis: SlurmCluster) -> None:
    site, work = PYXIS.site, pyxis.work
    job = submit(pyxis, PYXIS)
    await_files(work, ["server", *(f"node.{node.rank}" for node in site.nodes)])
    for node in site.nodes:
        assert (work / f"fabric.{node.name}").read_text() == f"{site.times.fabric}\n"
        assert (work / f"node.{node.rank}").read_text() == f"{node.name}\n"
        lines = (work / f"environment.{node.rank}").read_text().split("\0")[:-1]
        assert node.env.items() <= dict(line.split("=", 1) for line in lines).items()

    container = site.head.container
    words = [word for group in container.command for word in group]
    assert words[:2] == ["trtllm-llmapi-launch", "trtllm-serve"]
    assert (work / "server").read_text().split("\0")[:-1] == words[2:]
    argv = (work / "srun").read_text().split("\0")
    argv = argv[argv.index("--mpi=pmix") : -1]
    assert argv[-len(words) - 1 :] == [container.entrypoint, *words]
    mounts = next(word for word in argv if word.startswith("--container-mounts="))
    for mount in container.mounts:
        option = f"{mount.path}:{mount.inside}{':ro' if mount.read_only else ''}"
        assert option in mounts.partition("=")[2].split(",")

    pyxis.run("scancel", job)
    assert pyxis.wait_for(job, ENDED) == "CANCELLED"
    assert_idle(pyxis)


def test_job_of_pyxis_whose_server_fails(pyxis: SlurmCluster) -> None:
    job = submit(pyxis, PYXIS)
    await_files(pyxis.work, ["server", *(f"node.{node.rank}" for node in PYXIS.site.nodes)])
    (pyxis.work / "fails").touch()
    assert pyxis.wait_for(job, ENDED) == "FAILED"
    log = (pyxis.work / f"{PYXIS.site.name}-{job}.log").read_text()
    assert "the server has ended with status 3, and so does its rank" in log
    assert_idle(pyxis)


def await_files(folder: Path, names: Sequence[str]) -> None:
    files = [folder / name for name in names]
    until(lambda: all(file.exists() and file.stat().st_size for file in files))


# Engines that start by launch.sh

VLLM, SGLANG = SEVERAL["golden-vllm-slurm"], SEVERAL["golden-sglang-slurm"]
# Rank 0 opens the port at which the others find it.
ENGINE = """\
#!/bin/bash
printf '%s\\0' "$@" >"engine.$(hostname)"
if [[ " $* " == *' --node-rank=0 '* ]]; then exec python3 -m http.server 20000; fi
exec sleep 60
"""


@contextmanager
def of_engine(bundle: Bundle, folder: Path, programs: Mapping[str, str]) -> Iterator[SlurmCluster]:
    require_root()
    require(*PROGRAMS)
    trees = bundle.copy(folder)
    for tree in trees.values():
        (tree / "opt/sparkgen/wait-fabric.sh").write_text(FABRIC)
        (tree / "etc/sparkgen/secrets.env").write_text("VLLM_API_KEY=key\n")
    with slurm_cluster(trees, folder / "slurm", programs) as cluster:
        yield cluster


def test_vllm(tmp_path: Path) -> None:
    """In Docker's containers, each with its own node's rank, in the site's order."""
    names = [node.name for node in VLLM.site.nodes]
    with of_engine(VLLM, tmp_path, {"docker": DOCKER}) as cluster:
        job = submit(cluster, VLLM)
        calls(cluster, "start", names)
        for rank, name in enumerate(names):
            assert f"--node-rank={rank}" in created(cluster, name)["command"]
            waited = (cluster.work / f"fabric.{name}").read_text()
            assert waited == f"{VLLM.site.times.fabric}\n"
        cluster.run("scancel", job)
        assert cluster.wait_for(job, ENDED) == "CANCELLED"
        assert calls(cluster, "stop", names) == dict.fromkeys(names, STOP)
        assert_idle(cluster)


def test_sglang(tmp_path: Path) -> None:
    """From a virtual environment; when a rank dies, all do."""
    names = [node.name for node in SGLANG.site.nodes]
    with of_engine(SGLANG, tmp_path, {"sglang": ENGINE}) as cluster:
        head = SGLANG.site.head.control.address
        assert cluster.run("ip", "address", "add", f"{head}/32", "dev", "lo").returncode == 0
        job = submit(cluster, SGLANG)
        for rank, words in enumerate(calls(cluster, "engine", names).values()):
            assert f"--node-rank={rank}" in words
        cluster.run("sh", "-c", "kill $(pgrep -f 'sleep 60')")
        assert cluster.wait_for(job, ENDED) == "FAILED"
        assert_idle(cluster)


# Jobs beside an engine

JOBS_NETWORK = SEVERAL["golden-jobs-network"]
RANK_OF_A_JOB = """\
#!/bin/bash
echo "$RANK of $WORLD_SIZE, $MASTER_ADDR:$MASTER_PORT" "$@" >"/run/rank.$(hostname)"
echo "from $(hostname)"
if [[ -e /run/fails.$(hostname) ]]; then . "/run/fails.$(hostname)"; fi
[[ ! -e /run/fails.spark1 ]] || sleep 60
"""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[SlurmCluster]:
    require_root()
    require(*PROGRAMS)
    programs = {"python": RANK_OF_A_JOB, "systemd-cat": "#!/bin/sh\ncat >/run/printed\n"}
    trees = JOBS_NETWORK.copy(tmp_path)
    with slurm_cluster(trees, tmp_path / "slurm", programs) as cluster:
        yield cluster


def submit_job(cluster: SlurmCluster) -> int:
    """The exit status of a job whose first node is not the first one in Slurm's order."""
    script = JOBS_NETWORK.folder / "spark2/opt/sparkgen/jobs/batch/job.sbatch"
    return cluster.run("sbatch", "--wait", str(script)).returncode


def test_job_beside_an_engine(pair: SlurmCluster) -> None:
    assert submit_job(pair) == 0
    for rank, node in enumerate(("spark2", "spark1")):
        text = (pair.work / f"rank.{node}").read_text()
        assert text == f"{rank} of 2, 10.100.0.12:29602 train.py\n"
    printed = (pair.work / "printed").read_text().splitlines()
    assert sorted(printed) == ["0: from spark2", "1: from spark1"]
    assert_idle(pair)


def test_job_with_a_rank_that_fails(pair: SlurmCluster) -> None:
    for fault, status in (("exit 5", 5), ("kill -KILL $$", 137), ("kill -SEGV $$", 139)):
        (pair.work / "fails.spark1").write_text(fault)
        assert submit_job(pair) == status, fault
        assert_idle(pair)
