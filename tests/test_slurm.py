"""Every job script is taken by a real Slurm; one runs, and ends, with its generated launch.sh."""

import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from bundles import BUNDLES, Bundle
from programs import require, require_root
from slurm_cluster import PROGRAMS, SlurmCluster, slurm_cluster

SEVERAL = {bundle.name: bundle for bundle in BUNDLES if bundle.site.workers}
LAB_MESH = SEVERAL["lab-mesh"]
SCRIPT = "opt/sparkgen/serve.sbatch"

# Serves until it is stopped by name, or fails where the test says so: once all nodes have started,
# for Slurm would end a task that has not started Docker without a word to it. It leaves a signal to
# the container, as Docker's client does.
DOCKER = """\
#!/bin/bash
trap '' TERM
node=$(hostname)
printf '%s\\0' "$@" >>"$1.$node"
if [[ $1 == run ]]; then
  if [[ -e fails.$node ]]; then
    until [[ -e run.spark1 && -e run.spark2 && -e run.spark3 ]]; do sleep 0.1; done
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
    yield from run(SEVERAL["rack-switch"], tmp_path_factory.mktemp("rack"))


@pytest.fixture
def lab_mesh(tmp_path: Path) -> Iterator[SlurmCluster]:
    yield from run(LAB_MESH, tmp_path)


@pytest.mark.parametrize("bundle", SEVERAL.values(), ids=str)
def test_job_script(bundle: Bundle, rack: SlurmCluster) -> None:
    names = [node.name for node in bundle.site.nodes]
    script = bundle.folder / names[0] / SCRIPT
    done = rack.run("sbatch", "--test-only", str(script))
    assert done.returncode == 0, done.stderr
    # Slurm writes spark[1-3].
    (hosts,) = re.findall(r" on nodes (\S+) ", done.stderr)
    assert rack.run("scontrol", "show", "hostnames", hosts).stdout.split() == names


def test_job_for_an_unknown_node(rack: SlurmCluster, tmp_path: Path) -> None:
    script = tmp_path / "serve.sbatch"
    text = (LAB_MESH.folder / "spark1" / SCRIPT).read_text()
    script.write_text(text.replace("spark3", "spark9"))
    done = rack.run("sbatch", "--test-only", str(script))
    assert done.returncode != 0
    assert "Invalid node name specified" in done.stderr


def submit(cluster: SlurmCluster) -> str:
    script = LAB_MESH.folder / "spark1" / SCRIPT
    submitted = cluster.run("sbatch", "--parsable", str(script))
    assert submitted.returncode == 0, submitted.stderr
    return submitted.stdout.strip()


def calls(cluster: SlurmCluster, command: str, nodes: Sequence[str]) -> dict[str, list[str]]:
    """How these nodes called Docker with a command, as soon as all have."""
    files = {node: cluster.work / f"{command}.{node}" for node in nodes}
    deadline = time.monotonic() + 60
    while not all(file.exists() and file.stat().st_size for file in files.values()):
        assert time.monotonic() < deadline, f"not all called docker {command}"
        time.sleep(0.1)
    return {name: file.read_text().rstrip("\0").split("\0") for name, file in files.items()}


STOP = ["stop", "-t", "20", "sparkgen-engine"]
ENDED = {"CANCELLED", "COMPLETED", "FAILED"}


def test_job(lab_mesh: SlurmCluster) -> None:
    nodes = {node.name: node for node in LAB_MESH.site.nodes}
    job = submit(lab_mesh)
    for name, started in calls(lab_mesh, "run", [*nodes]).items():
        container = nodes[name].container
        own = [container.image, *(word for words in container.command for word in words)]
        assert f"--node-rank={nodes[name].rank}" in own
        assert started[-len(own) :] == own
        assert started.count("run") == 1

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
    deadline = time.monotonic() + 60
    while cluster.run("squeue", "--noheader").stdout:
        assert time.monotonic() < deadline
        time.sleep(0.1)
