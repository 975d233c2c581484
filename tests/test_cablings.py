"""Cablings in one table: the kind that they form and what NCCL is told, or why they are refused.

The nodes have a management network, and no engine but where a row has one. The variables follow
from NCCL 2.30.7, src/transport/net_ib. Whatever is not refused is tried with frames.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from bundles import links
from programs import require, require_root

from generator.bundle.render import render
from generator.diagnostics import Severity
from generator.pipeline import Reading, read_site
from generator.site import Site
from generator.verify.namespaces import PROGRAMS, fabric
from generator.verify.network import complaints

RING = "1:p0 2:p1, 2:p0 3:p1, 3:p0 4:p1, 4:p0 1:p1"
ANOTHER = "5:p0 6:p1, 6:p0 7:p1, 7:p0 8:p1, 8:p0 5:p1"
ROUTED = {"NCCL_IB_SUBNET_AWARE_ROUTING": "1"}
APART = ROUTED | {"NCCL_ALGO": "Ring"}
UNMERGED = ROUTED | {"NCCL_IB_MERGE_NICS": "0"}


@dataclass(frozen=True)
class Cabling:
    """Cables between numbered nodes and switches, and what becomes of them.

    `told` has the variables of the first node that are about the cables. `split` is how an engine
    on all nodes splits its model, and `groups` are the nodes of engines. `refused` are the rules
    with an error, none if the bundle is built.
    """

    name: str
    nodes: int
    cables: str
    kind: str = ""
    told: Mapping[str, str] = field(default_factory=dict)
    split: str = ""
    groups: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def text(self) -> bytes:
        """The site file."""
        site = {
            "version": 1,
            "name": "lab",
            "nodes": [
                {"name": f"spark{n}", "management": {"address": f"10.0.0.{n}/24"}}
                for n in range(1, self.nodes + 1)
            ],
        }
        ends = [cable.split() for cable in self.cables.split(", ") if cable]
        if ends:
            site["cabling"] = [{"endpoints": [_end(end) for end in pair]} for pair in ends]
        if self.split:
            site |= {"model": MODEL, "engine": ENGINE | {"parallel": {self.split: self.nodes}}}
        if self.groups:
            site["groups"] = [_group(number, own) for number, own in enumerate(self.groups)]
        return yaml.safe_dump(site, sort_keys=False).encode()


MODEL = {"name": "gpt-oss-120b"}
ENGINE = {
    "name": "vllm",
    "version": "0.33.0",
    "image": "vllm/vllm-openai:v0.33.0",
    "nccl": "2.30.7",
}


def _end(text: str) -> str:
    return f"spark{text}" if text[0].isdigit() else text


def _group(number: int, nodes: str) -> dict[str, object]:
    names = [f"spark{node}" for node in nodes]
    engine = ENGINE | {"parallel": {"pipeline" if len(names) % 2 else "tensor": len(names)}}
    return {"name": f"group-{number}", "nodes": names, "model": MODEL, "engine": engine}


TABLE = (
    Cabling("single", 1, "", "single"),
    Cabling("pair", 2, "1:p0 2:p0", "direct"),
    Cabling("pair at different ports", 2, "1:p0 2:p1", "direct"),
    Cabling("pair with two cables", 2, "1:p0 2:p0, 1:p1 2:p1", "direct"),
    Cabling("crossed pair", 2, "1:p0 2:p1, 1:p1 2:p0", "direct", told=UNMERGED),
    Cabling(
        "crossed pair that serves",
        2,
        "1:p0 2:p1, 1:p1 2:p0",
        "direct",
        told=UNMERGED,
        split="tensor",
    ),
    Cabling("two pairs", 4, "1:p0 2:p0, 3:p0 4:p0", "pairs"),
    Cabling("pair and a node", 3, "1:p0 2:p0", "pairs"),
    Cabling("ring of three", 3, "1:p0 2:p1, 2:p0 3:p1, 3:p0 1:p1", "ring", told=ROUTED),
    Cabling(
        "ring of three, any ports",
        3,
        "1:p0 2:p0, 2:p1 3:p1, 3:p0 1:p1",
        "ring",
        told=ROUTED,
        split="pipeline",
    ),
    Cabling("ring of four", 4, RING, "ring", told=APART, split="tensor"),
    Cabling(
        "ring of four, same ports",
        4,
        "1:p0 2:p0, 2:p1 3:p1, 3:p0 4:p0, 4:p1 1:p1",
        "ring",
        told=APART,
        split="tensor",
    ),
    Cabling("two rings of four", 8, f"{RING}, {ANOTHER}", "mixed", told=APART),
    Cabling(
        "two rings that serve",
        8,
        f"{RING}, {ANOTHER}",
        "mixed",
        told=APART,
        groups=("1234", "5678"),
    ),
    Cabling(
        "ring, pair and a node",
        7,
        f"{RING}, 5:p0 6:p0",
        "mixed",
        told=APART,
        groups=("1234", "56", "7"),
    ),
    Cabling("ring and an idle node", 5, RING, "ring", told=APART, groups=("1234",)),
    Cabling("halves of a ring", 4, RING, "ring", groups=("12", "34")),
    Cabling("opposite nodes of a ring", 4, RING, groups=("13",), refused=("SG244",)),
    Cabling("three of a ring of four", 4, RING, groups=("123",), refused=("SG219",)),
    Cabling("chain", 3, "1:p0 2:p0, 2:p1 3:p0", "mixed", told=APART),
    Cabling("chain that serves in pairs", 3, "1:p0 2:p0, 2:p1 3:p0", "mixed", groups=("12",)),
    Cabling("chain that serves", 3, "1:p0 2:p0, 2:p1 3:p0", split="pipeline", refused=("SG219",)),
    Cabling("switch", 3, "1:p0 s:1, 2:p0 s:2, 3:p0 s:3", "switch", split="pipeline"),
    Cabling("node whose cable leads to another machine", 1, "1:p0 workstation:1", "switch"),
    Cabling("switch, other ports", 3, "1:p0 s:1, 2:p1 s:2, 3:p0 s:3", "switch"),
    Cabling("switch, both ports", 2, "1:p0 s:1, 1:p1 s:2, 2:p0 s:3, 2:p1 s:4", "switch"),
    Cabling("switch, one port more", 2, "1:p0 s:1, 1:p1 s:2, 2:p0 s:3", "switch", told=ROUTED),
    Cabling("two switches, a port each", 2, "1:p0 a:1, 1:p1 b:1, 2:p0 a:2, 2:p1 b:2", "switch"),
    Cabling("two separate switches", 4, "1:p0 a:1, 2:p0 a:2, 3:p0 b:1, 4:p0 b:2", "mixed"),
    Cabling(
        "switch and a cable", 4, "1:p0 s:1, 2:p0 s:2, 3:p0 s:3, 3:p1 4:p0", "mixed", told=APART
    ),
    Cabling("no cables", 2, "", refused=("SG209",)),
    Cabling("port used twice", 3, "1:p0 2:p0, 1:p0 3:p0", refused=("SG204",)),
    Cabling("cable to itself", 1, "1:p0 1:p1", refused=("SG205",)),
)


@pytest.mark.parametrize("cabling", TABLE, ids=lambda cabling: cabling.name)
def test_cabling(cabling: Cabling) -> None:
    reading = read_site("site.yaml", cabling.text)
    assert _errors(reading) == sorted(cabling.refused)
    if cabling.refused:
        return
    assert reading.site
    assert reading.site.kind == cabling.kind
    nccl = reading.site.nodes[0].nccl
    about = {*APART, *UNMERGED}
    assert {name: nccl[name] for name in nccl if name in about} == cabling.told


# Why a cabling can't work at all, or not for a group: ports, and whom NCCL's ranks reach.
REASONS = {"SG204", "SG205", "SG209", "SG219", "SG244"}


def drawn(seed: int) -> Cabling:
    """Rings, pairs, chains, switches and single nodes in one site, some of which serve."""
    chance, count = random.Random(seed), 0
    cables: list[str] = []
    groups: list[str] = []
    for _ in range(chance.randint(1, 3)):
        kind = chance.choice(("ring", "ring", "pair", "double", "single", "chain", "switch"))
        size = {"pair": 2, "double": 2, "single": 1}.get(kind, chance.randint(3, 4))
        names = [str(count + n) for n in range(1, size + 1)]
        if count + size > 9:
            break
        count += size
        free = {name: chance.sample(("p0", "p1"), 2) for name in names}
        pairs = list(pairwise(names)) * (2 if kind == "double" else 1)
        if kind == "switch":
            cables += [f"{name}:{free[name].pop()} s{count}:{name}" for name in names]
        elif kind != "single":
            pairs += [(names[-1], names[0])] if kind == "ring" else []
            cables += [f"{a}:{free[a].pop()} {b}:{free[b].pop()}" for a, b in pairs]
        if chance.random() < 0.4:
            some = chance.sample(names, chance.randint(1, size))
            groups.append("".join(chance.choice((names, names, some))))
    if cables and chance.random() < 0.1:
        cables.append(chance.choice(cables))
    return Cabling(f"drawn-{seed}", count, ", ".join(cables), groups=tuple(groups))


def test_drawn_cablings_are_accepted_or_refused_by_a_rule_of_ports_or_nccl() -> None:
    refused = [_errors(read_site("site.yaml", drawn(seed).text)) for seed in range(60)]
    assert {rule for rules in refused for rule in rules} <= REASONS
    assert sum(map(bool, refused)) < len(refused) / 2


# The others are tried by hand: `pytest -n0 -m cluster tests/test_cablings.py`.
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 4 else pytest.mark.cluster) for n in range(200)]
)
def test_drawn_cabling_works_in_namespaces(seed: int, tmp_path: Path) -> None:
    require(*PROGRAMS)
    require_root()
    site = read_site("site.yaml", drawn(seed).text).site
    assert site is None or complaints_of(site, tmp_path) == []


def _errors(reading: Reading) -> list[str]:
    return sorted({f.rule for f in reading.findings if f.severity is Severity.ERROR})


@pytest.mark.long
@pytest.mark.parametrize(
    "cabling", [c for c in TABLE if c.cables and not c.refused], ids=lambda cabling: cabling.name
)
def test_cabling_works_in_namespaces(cabling: Cabling, tmp_path: Path) -> None:
    """Every half of every cable carries full frames, and each address answers for itself alone."""
    require(*PROGRAMS)
    require_root()
    site = read_site("site.yaml", cabling.text).site
    assert site
    assert complaints_of(site, tmp_path) == []


def complaints_of(site: Site, tmp_path: Path) -> list[str]:
    """What is wrong when each node of a bundle sends frames to its neighbors."""
    for path, file in render(site, "").items():
        if "/etc/" in path or path.endswith("wait-fabric.sh"):
            target = tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(file.text)
    trees = {node.name: tmp_path / node.name for node in site.nodes if node.interfaces}
    with fabric(trees, links(site.cables), tmp_path) as nodes:
        return list(complaints(nodes))
