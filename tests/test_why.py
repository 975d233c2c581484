"""`show --why`: every line of a bundle has an origin, and a key that changes a line is named."""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from bundles import BUNDLES, Bundle
from conftest import Command
from draws import MANY
from valid_sites import valid

from generator.bundle.access import Forward, Login
from generator.bundle.diagram.shapes import Drawing
from generator.bundle.payload import original
from generator.bundle.plan import payload
from generator.bundle.render import render
from generator.bundle.runbook import Download
from generator.bundle.tree import Tree
from generator.diagnostics import path_text
from generator.fit.table import MemoryPage
from generator.origin import declared, origin_of
from generator.pipeline import Reading
from generator.records import Record
from generator.resources import ROOT
from generator.services import SERVICES
from generator.site import Site
from generator.site.job import Job
from generator.site.service import Service
from generator.sitefile.disk import beside
from generator.why import why
from generator.why.lines import Because
from generator.why.origins import UNKNOWN, variable_origins

LAB_MESH = ROOT / "sites/lab-mesh.yaml"
NETPLAN = "spark1/etc/netplan/40-cx7.yaml"
NETPLAN2 = "spark2/etc/netplan/40-cx7.yaml"
NETPLAN3 = "spark3/etc/netplan/40-cx7.yaml"
COMPOSE = "spark1/opt/sparkgen/compose.yaml"
LAUNCH = "spark3/opt/sparkgen/compose.yaml"
NCCL = "spark1/etc/nccl.conf"
ENV = "spark1/etc/sparkgen/engine.env"
ENV2 = "spark2/etc/sparkgen/engine.env"


def read(text: str, name: str = "site.yaml") -> tuple[Reading, Tree]:
    found = valid(text, name, beside(Path(name)))
    return found.reading, render(found.site, found.reading.sha256)


def explained(reading: Reading, tree: Tree, path: str) -> list[Because]:
    assert reading.site
    return why(reading.site, reading.document, tree, path)


def records_in(annotation: Any) -> Iterator[type[Record]]:
    """The records in an annotation, such as two in `tuple[Node, ...] | Peer`."""
    if isinstance(annotation, type) and issubclass(annotation, Record):
        yield annotation
    for part in get_args(annotation):
        yield from records_in(part)


def reachable(kind: type[Record], known: set[type[Record]]) -> set[type[Record]]:
    """The record and all records in it."""
    if kind not in known:
        known.add(kind)
        hints = get_type_hints(kind, localns={"Service": Service, "Job": Job})
        for field in kind.__match_args__:
            for part in records_in(hints[field]):
                reachable(part, known)
    return known


PRINTED = (Site, Forward, Login, Drawing, MemoryPage, Download, *SERVICES.values())
KINDS = sorted(set().union(*(reachable(kind, set()) for kind in PRINTED)), key=str)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_declares_where_it_comes_from(kind: type[Record]) -> None:
    for field in kind.__match_args__:
        assert origin_of(kind, field), f"{kind.__name__}.{field} has no origin"


@pytest.mark.parametrize("name", sorted(name for name in declared() if not name.isupper()))
def test_every_origin_is_of_a_record_or_its_field(name: str) -> None:
    module, _, last = f"generator.{name}".rpartition(".")
    if not last[0].isupper():
        module, _, kind = module.rpartition(".")
        assert hasattr(getattr(import_module(module), kind), last)
    else:
        assert hasattr(import_module(module), last)


@pytest.mark.parametrize("bundle", BUNDLES, ids=str)
def test_every_variable_declares_where_it_comes_from(bundle: Bundle) -> None:
    """Those of the engine's own group are the engine's, those of the site file's the user's."""
    for site in bundle.site.parts:
        others = {"set in the site file", site.engine.title}
        for node in site.nodes:
            for group in node.environment:
                if group.title not in others:
                    assert group.values.keys() <= variable_origins(site).keys()


EXPLAINED: set[tuple[object, ...]] = set()


def kind(bundle: Bundle, path: str, text: str) -> tuple[object, ...]:
    """A copy of the payload is the same wherever it lies.

    A file that two nodes have with as many lines comes from the same parts of its template.
    """
    name = original(path)
    if name in payload():
        return (name,)
    return (bundle.name, name, text.count("\n")) if MANY == 1 else (bundle.name, path)


@pytest.mark.drawn
@pytest.mark.parametrize("bundle", BUNDLES, ids=str)
def test_no_line_without_an_origin(bundle: Bundle) -> None:
    reading, tree = read(bundle.file.read_text(), str(bundle.file))
    length = len(reading.document.text.split("\n"))
    for path, file in tree.items():
        if (known := kind(bundle, path, file.text)) in EXPLAINED:
            continue
        EXPLAINED.add(known)
        lines = explained(reading, tree, path)
        # A carried file may lack the last line end.
        ended = file.text if file.text.endswith("\n") else f"{file.text}\n"
        assert "".join(f"{line.text}\n" for line in lines) == ended, path
        assert [line.number for line in lines] == list(range(1, len(lines) + 1))
        for line in lines:
            assert line.printed_by, (path, line)
            for place in line.printed_by:
                assert stands_in_templates(place, line.text), (path, line)
            assert UNKNOWN.how not in [value.how for value in line.values], (path, line)
            for source in (source for value in line.values for source in value.sources):
                assert source.path
                assert source.line is None or 0 < source.line <= length


@cache
def template_lines(name: str) -> list[str]:
    """The lines of a template, read once."""
    return (ROOT / name).read_text().split("\n")


def stands_in_templates(place: str, text: str) -> bool:
    """Whether there is such a line, with all of its literal parts in the text."""
    name, _, number = place.partition(":")
    if not number:
        return (ROOT / name).is_file()
    template = template_lines(name)[int(number) - 1]
    first, *rest = re.split(r"{{.*?}}|{%.*?%}", template)
    # Text after an expression may be left out by a condition, or belong to the next line.
    return first.strip() in text or not first.strip() or bool(rest)


# A change of a site file, the key that it changes, and a file in which something changes then.
CHANGES = [
    ("mtu: 9000", "mtu: 1500", "topology.mtu", NETPLAN),
    ("mtu: 9000", "mtu: 1500", "topology.mtu", "spark2/etc/sparkgen/node.env"),
    ("192.168.177.0/24", "192.168.170.0/24", "cabling[0].subnets", NETPLAN),
    ("192.168.187.0/24", "192.168.170.0/24", "cabling[2].subnets", NETPLAN3),
    ("10.0.0.11/24", "10.0.0.9/24", "nodes[0].management.address", ENV),
    ("10.0.0.12/24", "10.0.0.9/24", "nodes[1].management.address", ENV2),
    ("10.0.0.12/24", "10.0.0.9/24", "nodes[1].management.address", "spark1/etc/sparkgen/hosts"),
    ("interface: enP7s7", "interface: eth0", "nodes[0].management.interface", NCCL),
    ("name: spark2", "name: spark2\n    host: 99", "nodes[1].host", NETPLAN2),
    ("262144", "131072", "model.context_length", COMPOSE),
    ("max_sequences: 10", "max_sequences: 8", "model.max_sequences", LAUNCH),
    ("kv_cache_dtype: fp8\n", "kv_cache_dtype: auto\n", "model.kv_cache_dtype", LAUNCH),
    ("16384", "8192", "engine.args.max-num-batched-tokens", COMPOSE),
    ("ATOMIC_ADD: 1", "ATOMIC_ADD: 0", "engine.env", ENV),
    ("-tf5:latest", "-tf5:v1", "engine.image", COMPOSE),
    ("utilization: 0.7", "utilization: 0.6", "engine.memory_utilization", COMPOSE),
    ("launcher: native", "launcher: native\n  port: 9000", "engine.port", COMPOSE),
    ("launcher: native", "launcher: native\n  bind: all", "engine.bind", COMPOSE),
    ("name: lab-mesh", "name: lab", "name", "spark1/etc/profile.d/sparkgen.sh"),
    ("name: lab-mesh", "name: lab-mesh\nuser: someone", "user", ENV),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "key", "path"), CHANGES)
def test_key_that_changes_a_line_is_named(old: str, new: str, key: str, path: str) -> None:
    text = LAB_MESH.read_text()
    changed, tree = read(text.replace(old, new, 1))
    lines = explained(changed, tree, path)
    before = read(text)[1][path].text.splitlines()
    differing = [line for line in lines if line.text not in before]
    assert differing
    for line in differing:
        sources = {path_text(each.path) for value in line.values for each in value.sources}
        assert any(related(key, source) for source in sources), (line, key)


def related(key: str, source: str) -> bool:
    """Whether one of two keys equals or contains the other."""
    a, b = sorted((key, source), key=len)
    return b == a or b.startswith((f"{a}.", f"{a}["))


def test_line(tmp_path: Path, sparkgen: Command) -> None:
    for name in (NETPLAN, f"lab-mesh/{NETPLAN}", f"out/lab-mesh/{NETPLAN}"):
        outcome = sparkgen("show", "sites/lab-mesh.yaml", "--why", f"{name}:10", cwd=ROOT)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out == WHY


WHY = """\
        - 192.168.177.11/24
  printed by templates/node/etc/netplan/40-cx7.yaml.j2:14
  FabricInterface.address: a cable's half takes its own subnet, or the pool's next; \
a node its host number on it
    sites/lab-mesh.yaml:20: subnets: [192.168.177.0/24, 192.168.178.0/24] (cabling[0].subnets)
    nodes[0].host is not written: its default
"""


def test_file(sparkgen: Command) -> None:
    outcome = sparkgen("show", LAB_MESH, "--why", "spark1/etc/nccl.conf", cwd=ROOT)
    assert outcome.out.splitlines()[-2:] == [
        "9 | NCCL_IB_SUBNET_AWARE_ROUTING=1",
        "  = templates/node/etc/nccl.conf.j2:10, cabling (line 19)",
    ]


def test_line_of_a_file_that_no_template_prints(sparkgen: Command) -> None:
    outcome = sparkgen("show", LAB_MESH, "--why", "spark1/SHA256SUMS:1", cwd=ROOT)
    assert outcome.out.endswith(
        "  printed by generator/bundle/manifest.py\n"
        "  SHA256SUMS: the checksums of the node's files\n"
    )


def test_line_that_is_in_every_bundle(sparkgen: Command) -> None:
    outcome = sparkgen("show", LAB_MESH, "--why", f"{NETPLAN}:4", cwd=ROOT)
    assert outcome.out.splitlines()[-1] == "  the same in every bundle"


def test_data(sparkgen: Command) -> None:
    outcome = sparkgen("show", LAB_MESH, "--why", f"{NETPLAN}:11", "--format", "json", cwd=ROOT)
    assert json.loads(outcome.out) == {
        "file": NETPLAN,
        "lines": [
            {
                "line": 11,
                "text": "      mtu: 9000",
                "printedBy": ["templates/node/etc/netplan/40-cx7.yaml.j2:15"],
                "values": [
                    {
                        "name": "FabricInterface.mtu",
                        "how": "9000, but 1500 on a switch",
                        "from": [{"path": "topology.mtu", "line": 28}],
                    }
                ],
            }
        ],
    }


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (
            "spark1/etc/nccl.cnf",
            "no file spark1/etc/nccl.cnf; did you mean 'spark1/etc/nccl.conf'?",
        ),
        ("spark1/etc/nccl.conf:10", "spark1/etc/nccl.conf has 9 lines"),
        ("spark1/etc/nccl.conf:0", "spark1/etc/nccl.conf has 9 lines"),
        ("", "the bundle has no file ; such as MANIFEST.json"),
    ],
)
def test_missing_place(place: str, message: str, sparkgen: Command) -> None:
    outcome = sparkgen("show", LAB_MESH, "--why", place, cwd=ROOT)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


def test_node_and_why_exclude_each_other(sparkgen: Command) -> None:
    outcome = sparkgen("show", LAB_MESH, "--why", NETPLAN, "--node", "spark1", cwd=ROOT)
    assert outcome.code == 2
