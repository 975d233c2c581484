"""Published networks without an engine of ours: trainings, tests, k3s, one site each.

Cables, and addresses where they are published and can work, are those of the source; what runs on
them is their owners', or a job.
"""

from pathlib import Path

import pytest
from programs import require, require_root
from test_cablings import complaints_of

from generator.bundle.render import render
from generator.pipeline import read_site
from generator.site import Site
from generator.verify.namespaces import PROGRAMS

TWO = "nodes: [{name: spark1}, {name: spark2}]\n"
THREE = """\
nodes:
  - {name: spark1, management: {address: 192.168.0.31/24}}
  - {name: spark2, management: {address: 192.168.0.134/24}}
  - {name: spark3, management: {address: 192.168.0.167/24}}
"""
TRIANGLE = """\
cabling:
  - endpoints: [spark1:p0, spark2:p1]
  - endpoints: [spark2:p0, spark3:p1]
  - endpoints: [spark3:p0, spark1:p1]
"""
MANAGED = """\
nodes:
  - {name: spark1, management: {address: 192.168.0.194/24}}
  - {name: spark2, management: {address: 192.168.0.221/24}}
"""
NETWORKS = {
    # Two nodes for anything distributed: the right ports, addresses left to the machine.
    "https://github.com/NVIDIA/dgx-spark-playbooks/tree/main/nvidia/connect-two-sparks": TWO
    + "cabling: [{endpoints: [spark1:p1, spark2:p1]}]\n",
    # NCCL's own test between two nodes.
    "https://github.com/NVIDIA/dgx-spark-playbooks/tree/main/nvidia/nccl": TWO
    + "cabling: [{endpoints: [spark1:p1, spark2:p1]}]\n"
    "jobs:\n  - {name: bandwidth, launcher: mpi, "
    "command: /home/nvidia/nccl-tests/build/all_gather_perf -b 16G -e 16G -f 2}\n",
    # Ansible for a backbone of two nodes; a bond there, both halves here.
    "https://github.com/rmkraus/spark-cluster": MANAGED
    + "cabling:\n  - endpoints: [spark1:p0, spark2:p0]\n"
    "    addresses: [[172.16.0.1/30, 172.16.0.2/30], [172.16.0.5/30, 172.16.0.6/30]]\n",
    # Training by torchrun; the other port of each node is a link to the house.
    "https://github.com/ArgentAIOS/dgx-spark-cluster": MANAGED
    + "cabling: [{endpoints: [spark1:p0, spark2:p0]}]\n"
    "topology: {uplinks: [spark1:p1, spark2:p1]}\n"
    "jobs:\n  - {name: train, launcher: torchrun, venv: /home/nvidia/train, command: train.py}\n",
    # Training by sbatch on three nodes, each joined to both others.
    "https://github.com/autoscriptlabs/nccl-mesh-plugin": THREE
    + TRIANGLE
    + "jobs:\n  - {name: train, launcher: slurm, venv: /opt/train, command: python train.py}\n",
    # Three nodes for anything, with overlays beside.
    "https://skillmds.dev/skill/plurigrid-asi-skills-gx10-cluster-skill-md": THREE + TRIANGLE,
    # Two workers of a k3s cluster that exists.
    "https://github.com/toxicoder/inkorporated": MANAGED
    + "cabling: [{endpoints: [spark1:p0, spark2:p0]}]\n",
}
MODEL = """\
model: {name: gpt-oss-20b, context_length: 8192}
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
  nccl: 2.30.7
"""


def site_of(network: str, more: str = "") -> Site:
    """The site, which has no error and no warning."""
    reading = read_site("lab.yaml", f"version: 1\nname: lab\n{network}{more}".encode())
    assert [f.message for f in reading.findings if f.severity.name != "NOTE"] == []
    assert reading.site
    return reading.site


@pytest.mark.parametrize("source", NETWORKS)
def test_network_works(source: str, tmp_path: Path) -> None:
    require(*PROGRAMS)
    require_root()
    assert complaints_of(site_of(NETWORKS[source]), tmp_path) == []


@pytest.mark.parametrize("source", NETWORKS)
def test_model_that_is_added_leaves_the_network_alone(source: str) -> None:
    before = site_of(NETWORKS[source])
    size = "pipeline: 3" if len(before.nodes) == 3 else "tensor: 2"
    after = site_of(NETWORKS[source], f"{MODEL}  parallel: {{{size}}}\n")
    old, new = render(before, ""), render(after, "")
    kept = [path for path in old if path.endswith(("40-cx7.yaml", "nccl.conf", "/hosts"))]
    assert kept
    assert [path for path in kept if old[path].text != new[path].text] == []


def test_smallest_sites() -> None:
    """A network of two is six lines, as many as a person has to decide."""
    text = f"version: 1\nname: lab\n{TWO}cabling: [{{endpoints: [spark1:p0, spark2:p0]}}]\n"
    assert text.count("\n") <= 6
    assert read_site("lab.yaml", text.encode()).findings == ()
