"""Published networks without an engine of ours, one site of `networks/` each, on simulated nodes.

Cables, and addresses where they are published and can work, are those of the source that each site
names; what runs on them is its owners', or a job.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bundles import Bundle
from cluster import nodes, stack
from cluster.machines import KEEP_CACHES, Machine
from cluster.stack import Rack
from cluster.upgrade import Action, carry_out
from conftest import Command
from programs import require, require_root
from test_cablings import complaints_of
from test_verify import DGX_RELEASE

from generator.bundle.render import render
from generator.pipeline import read_site
from generator.site import Site
from generator.verify.namespaces import PROGRAMS

FILES = {path.stem: path for path in sorted((Path(__file__).parent / "networks").glob("*.yaml"))}
MODEL = """\
model: {name: gpt-oss-20b, context_length: 8192}
engine:
  name: vllm
  version: 0.33.0
  nccl: 2.30.7
"""
IMAGE = "  image: vllm/vllm-openai:v0.33.0\n"
# No model is fetched for a stand-in.
FETCHED: dict[str, Action] = {"fetch the ": lambda *_: None, "install vllm ": lambda *_: None}


def site_of(name: str, more: str = "") -> Site:
    """The site, which has no error and no warning."""
    text = FILES[name].read_text() + more
    reading = read_site(FILES[name].name, text.encode())
    assert [f.message for f in reading.findings if f.severity.name != "NOTE"] == []
    assert reading.site
    return reading.site


def split_of(site: Site) -> str:
    """How an engine on all nodes splits the model."""
    count = len(site.nodes)
    return f"  parallel: {{{'pipeline' if count == 3 else 'tensor'}: {count}}}\n"


@pytest.mark.parametrize("name", FILES)
def test_network_works(name: str, tmp_path: Path) -> None:
    require(*PROGRAMS)
    require_root()
    assert complaints_of(site_of(name), tmp_path) == []


# No model can be served over all of its nodes: NCCL makes a ring, and two have no cable.
STAR = "koyoimai-star"


@pytest.mark.parametrize("name", [name for name in FILES if name != STAR])
def test_model_that_is_added_leaves_the_network_alone(name: str) -> None:
    before = site_of(name)
    after = site_of(name, MODEL + IMAGE + split_of(before))
    old, new = render(before, ""), render(after, "")
    kept = [path for path in old if path.endswith(("40-cx7.yaml", "nccl.conf", "/hosts"))]
    assert kept or len(before.nodes) == 1
    assert [path for path in kept if old[path].text != new[path].text] == []


def test_model_over_a_star_is_refused() -> None:
    text = FILES[STAR].read_text() + MODEL + IMAGE + split_of(site_of(STAR))
    findings = read_site("site.yaml", text.encode()).findings
    assert [f.rule for f in findings if f.severity.name == "ERROR"] == ["SG219"]


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        (6, ""),
        (
            10,
            """\
model: {name: gpt-oss-120b}
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
  parallel: {tensor: 2}
""",
        ),
    ],
    ids=["network", "served"],
)
def test_smallest_sites(lines: int, more: str) -> None:
    """A network of two is six lines at most, and a model on it ten: what a person has to decide."""
    two = "nodes: [{name: spark1}, {name: spark2}]\ncabling: [{endpoints: [spark1:p0, spark2:p0]}]"
    text = f"version: 1\nname: lab\n{two}\n{more}"
    assert text.count("\n") <= lines
    assert read_site("lab.yaml", text.encode()).findings == ()


# What a simulated node has in place of a Spark's own, and the engine that is added.
STAND_INS = {
    "etc/dgx-release": DGX_RELEASE,
    "usr/bin/nvidia-smi": "#!/bin/sh\necho 'NVIDIA GB10, 580.95.05'\n",
    "usr/bin/timedatectl": "#!/bin/sh\necho yes\n",
    "usr/bin/prlimit": "#!/bin/sh\necho unlimited\n",
    "opt/units/sparkgen-engine.service.d/test.conf": f"[Service]\n{KEEP_CACHES}",
    "opt/serve/bin/vllm": "#!/bin/sh\nexec python3 /opt/serve/serve.py\n",
    "opt/serve/serve.py": """\
import http.server
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("", 8000), Healthy).serve_forever()
""",
}
# A network card, a large disk, a GPU for containers, and users: no namespace has them.
LACKING = {"hca", "disk", "nvidia-runtime", "cdi", "user"}


@contextmanager
def installed(site: Path, folder: Path) -> Iterator[Rack]:
    """Simulated nodes with the bundle of the site."""
    require_root()
    require(*PROGRAMS, *nodes.PROGRAMS)
    bundle = Bundle(f"network-{site.stem}", site)
    trees = {node.name: stack.prepared(bundle, node, folder) for node in bundle.site.nodes}
    for tree in trees.values():
        for path, text in STAND_INS.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
            (tree / path).chmod(0o755)
    with stack.cabled(bundle, folder) as network, stack.Rack(trees, network) as rack:
        for machine in rack.machines.values():
            stack.install(machine)
            if bundle.site.jobs and bundle.site.jobs[0].image:
                machine.systemctl("start", "docker")
        yield rack


def faults(machine: Machine) -> list[str]:
    """What verify.py finds, but for what the node lacks."""
    done = machine.run("/var/bundle/verify.py")
    assert re.search(r"\d+ OK, ", done.stdout), done.stderr
    found = re.findall(r"^FAIL  ((\S+).*)", done.stdout, re.MULTILINE)
    return [line for line, check in found if check not in LACKING]


# The others are installed by hand: `pytest -n0 -m cluster`.
OFTEN = ("autoscriptlabs-mesh", "nvidia-nemo")


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in OFTEN else pytest.mark.cluster) for n in FILES]
)
def test_installed(name: str, tmp_path: Path) -> None:
    with installed(FILES[name], tmp_path) as rack:
        found = {node: faults(machine) for node, machine in rack.machines.items()}
    assert found == {node: [] for node in found}


# What verify.py says of the engine that is none.
STOOD_IN = {"model", "running", "unit", "venv", "vocabularies"}
# A site on the switch, one whose cable has one half, and jobs by mpirun and in an image, by hand.
GROWING = ("amittell-openmythos", "genet5-finetune", "graham33-nix", "trevorsquillario-nccl")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("epappas-ansible", marks=pytest.mark.long),
        *(pytest.param(n, marks=pytest.mark.cluster) for n in GROWING),
    ],
)
def test_model_that_is_added_by_the_steps_of_diff(
    name: str, tmp_path: Path, sparkgen: Command
) -> None:
    site, network = tmp_path / f"{name}-grown.yaml", site_of(name)
    # The simulated nodes have no other users.
    site.write_text(
        re.sub(r"^user: .*\n", "", FILES[name].read_text(), flags=re.M) + "user: root\n"
    )
    assert sparkgen("build", site, cwd=tmp_path).code == 0
    with installed(site, tmp_path) as rack:
        more = f"{MODEL}  venv: /opt/serve\n{split_of(network)}"
        site.write_text(site.read_text() + more)
        told = sparkgen("diff", site, "--format", "json", cwd=tmp_path).out
        (review,) = json.loads(told)["sites"]
        assert sparkgen("build", site, cwd=tmp_path).code == 0
        before = [machine.run("ip", "-o", "address").stdout for machine in rack.machines.values()]
        carry_out(rack.machines, review, tmp_path / "out" / network.name, FETCHED)
        assert {machine.state() for machine in rack.machines.values()} == {"active"}
        after = [machine.run("ip", "-o", "address").stdout for machine in rack.machines.values()]
        assert before == after
        left = {fault.split()[0] for each in rack.machines.values() for fault in faults(each)}
    assert left <= STOOD_IN
