"""A training on two nodes with PyTorch's own torchrun and gloo: `pytest -n0 -m cluster`, by hand.

`SPARKGEN_TORCH` names a virtual environment with PyTorch, such as one with torch 2.13.0.
"""

import os
import subprocess
import time
from collections.abc import Iterator

import pytest
from cluster.results import record
from test_jobs import PROGRAM, Cluster, running
from waiting import PATIENCE, until

pytestmark = pytest.mark.cluster

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


def test_training(cluster: Cluster) -> None:
    with cluster.start("train") as process:
        until(lambda: trains(cluster))
        killed = time.monotonic()
        cluster.worker.run("pkill", "-KILL", "-f", PROGRAM)
        output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "== the rank on spark2 has ended with exit-code 1" in output
    seconds = time.monotonic() - killed
    version = subprocess.run(
        [f"{TORCH}/bin/python", "-c", "import torch; print(torch.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.partition("+")[0]
    record(
        f"torchrun {version.strip()}",
        "rank 1 of 2 is killed",
        "start.sh has ended the job",
        seconds,
    )
    cluster.is_clear()
