"""How soon a dead rank ends a job, with PyTorch's own torchrun and gloo, Open MPI and Slurm.

By hand: `pytest -n0 -m cluster`.

`SPARKGEN_TORCH` names a virtual environment with PyTorch, such as one with torch 2.13.0.
"""

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from cluster.results import record
from test_jobs import Cluster, running

pytestmark = pytest.mark.cluster

LONG = 45
TORCH = os.environ.get("SPARKGEN_TORCH", "")
# Trains a tiny model on data of its own, with the gradients of both; then goes on until it is told.
TRAINING = """\
#!/usr/bin/python3
import os, sys, time
import torch, torch.distributed as world
from torch.nn import Embedding, Flatten, Linear, Sequential
world.init_process_group("gloo")
ranks = torch.ones(1)
world.all_reduce(ranks)
torch.manual_seed(0)
model = Sequential(Embedding(64, 16), Flatten(), Linear(64, 64))
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), 0.01)
torch.manual_seed(world.get_rank() + 1)
for step in range(60):
    tokens = torch.randint(0, 64, (64, 4))
    loss = torch.nn.functional.cross_entropy(model(tokens), tokens[:, 0])
    first = loss.item() if step == 0 else first
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weights = sum(each.sum() for each in model.parameters()).detach().reshape(1)
total = weights.clone()
world.all_reduce(total)
print(ranks.item() == 2, loss.item() < first, abs(total - 2 * weights).item() < 0.001, flush=True)
while not os.path.exists("/run/stand-in/end"):
    world.all_reduce(ranks)
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if not TORCH:
        pytest.skip("SPARKGEN_TORCH is not set")
    torchrun = f'#!/bin/sh\nexec {TORCH}/bin/torchrun "$@"\n'
    with running(tmp_path_factory.mktemp("jobs"), torchrun, TRAINING) as started:
        yield started


def trains(cluster: Cluster) -> bool:
    return all("True True True" in text for text in cluster.printed("train"))


def release(*command: str) -> str:
    """The version that a program prints of itself or of PyTorch."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"\d+\.\d+\.\d+", done.stdout)
    assert found, done.stdout
    return found[0]


def killed(
    cluster: Cluster, job: str, begun: Callable[[], bool], started_by: str, after: str = ""
) -> str:
    """What start.sh prints after a rank has been killed; how soon it ends is recorded."""
    status, output, seconds = cluster.kill_rank(job, begun)
    assert status, output
    record(started_by, f"rank 1 of 2 is killed{after}", "start.sh has ended the job", seconds)
    cluster.is_clear()
    return output


def test_training(cluster: Cluster) -> None:
    torch = release(f"{TORCH}/bin/python", "-c", "import torch; print(torch.__version__)")
    output = killed(cluster, "train", lambda: trains(cluster), f"torchrun {torch}")
    assert "== the rank on spark2 has ended with exit-code 1" in output


@pytest.mark.parametrize(
    ("job", "launcher", "program"),
    [("environment-reduce", "mpirun", "mpirun"), ("batch", "srun", "slurmd")],
)
def test_dead_rank(job: str, launcher: str, program: str, cluster: Cluster) -> None:
    expected = cluster.joined(job) + 2

    def joined_long_ago() -> bool:
        """As in a training: sbatch asks more and more rarely whether its job has ended."""
        joined = cluster.joined(job) == expected
        time.sleep(LONG if joined else 0)
        return joined

    started_by = f"{launcher} {release(program, '-V')}"
    output = killed(cluster, job, joined_long_ago, started_by, f" after {LONG} s")
    assert "== the rank on spark1 has ended with exit-code 137" in output
