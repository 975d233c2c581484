"""What `sparkgen failures` says: against namespaces, against measured failures, and by itself.

[failures.md](failures.md) has the table of four examples, and how each row was checked.
"""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path

import pytest
import yaml
from bundles import BUNDLES, BY_NAME, Bundle, links
from cluster.results import MEASURED
from conftest import Command
from draws import MANY
from node_programs import loaded
from programs import require, require_root
from racks import ring_text, site_text
from recabling import plug_in, pull
from tables import of_each
from valid_sites import EXAMPLES, valid, valid_file

from generator.bundle.render import render
from generator.failures.analysis import KINDS, Analysis, Failure, FailureMode, analysis
from generator.failures.files import netplan
from generator.failures.network import Network, network
from generator.failures.table import rows
from generator.resources import ROOT
from generator.site import Site
from generator.verify.namespaces import MANAGEMENT, PROGRAMS, VirtualFabric, fabric, halves

TABLES = Path(__file__).parent / "failures.md"
OF_EACH_KIND = ("lab-mesh", "pair-llamacpp", "rack-switch", "three-models")
GATEWAY = ROOT / "tests/golden/groups-gateway/site.yaml"


def files_of(site: Site) -> dict[str, str]:
    return {path: file.text for path, file in render(site, "").items()}


def analyzed(site: Site, files: Mapping[str, str] | None = None) -> dict[str, Failure]:
    """The failures of a site by what fails."""
    found = analysis(site, files_of(site) if files is None else files)
    return {failure.fault.what: failure for failure in found.failures()}


def example(name: str) -> Site:
    return valid_file(EXAMPLES[name]).site


# In namespaces


@pytest.fixture(params=[*OF_EACH_KIND, "golden-ring-five-routes"])
def bundle(request: pytest.FixtureRequest) -> Bundle:
    return BY_NAME[request.param]


@pytest.mark.drawn
@pytest.mark.long
def test_reachability_in_namespaces(bundle: Bundle, tmp_path: Path) -> None:
    """After each fault, each node reaches exactly the addresses that the analysis says it does."""
    require(*PROGRAMS)
    require_root()
    site, files = bundle.site, files_of(bundle.site)
    net = network(tuple(node.name for node in site.nodes), files)
    faults = [f for f in analysis(site, files).faults if f.kind in CHECKED_BY_PULLING]
    # A port that fails is as if its cable did. Where many nodes are alike, the first of each kind.
    key = attrgetter("kind" if len(site.nodes) > 3 and MANY == 1 else "lost")
    pulled = {key(fault): fault for fault in reversed(faults)}
    trees = bundle.copy(tmp_path)
    for tree in trees.values():
        (tree / "etc/netplan").mkdir(exist_ok=True)
        if not any((tree / "etc/netplan").iterdir()):
            (tree / "etc/netplan/90-none.yaml").write_text(NO_FABRIC)
    management = {node.name: str(node.management.address) for node in site.nodes if node.management}
    with fabric(trees, links(site.cables), tmp_path, management) as nodes:
        assert _lost(nodes, net, frozenset()) == []
        for fault in pulled.values():
            with _carried_out(nodes, site, fault):
                assert _lost(nodes, net, fault.lost) == [], fault.what
                assert _waiting(nodes, site, fault) == _told_waiting(site, files, fault), fault.what


CHECKED_BY_PULLING = ("cable", "half", "port", "switch", "node", "management")
NO_FABRIC = "network: {version: 2, ethernets: {enp1s0f0np0: {link-local: []}}}\n"


@contextmanager
def _carried_out(nodes: VirtualFabric, site: Site, fault: FailureMode) -> Iterator[None]:
    """Take the carrier from all that a fault loses; a node that is off has none anywhere."""
    pulled = []
    for kind, *about in sorted(fault.lost):
        if kind == "half":
            number, half = about
            cable = next(cable for cable in site.cables if str(cable.number) == number)
            port = cable.ports[0]
            pulled.append((port.node, halves(port.port)[int(half)]))
        elif kind == "management":
            pulled.append((about[0], MANAGEMENT))
    for node, interface in pulled:
        pull(nodes, node, interface)
    try:
        yield
    finally:
        for node, interface in pulled:
            plug_in(nodes, node, interface)
        nodes._await_bridges()
        for node in nodes.trees:
            nodes.run(node, "ip", "neigh", "flush", "all")


def _lost(nodes: VirtualFabric, net: Network, lost: frozenset[tuple[str, ...]]) -> list[str]:
    """Where pings and the analysis disagree."""
    off = {name for kind, name, *_ in lost if kind == "node"}
    asking = [node for node in nodes.trees if node not in off]
    with ThreadPoolExecutor() as pool:
        answering = dict(
            zip(asking, pool.map(lambda node: _answering(nodes, net, node), asking), strict=True)
        )
    return [
        f"{node} to {address}: told {told}"
        for node in asking
        for address in _addresses(net, node)
        for way in [net.way(node, address)]
        for told in [way is not None and not way & lost]
        if told is not (address in answering[node])
    ]


def _addresses(net: Network, node: str) -> list[str]:
    """All addresses of other nodes."""
    return [a for a in (*net.by_address, *net.nodes_managed) if net.owner(a) != node]


_PING = 'for a; do ping -n -q -c 1 -W 1 "$a" >/dev/null 2>&1 && echo "$a" & done; wait'


def _answering(nodes: VirtualFabric, net: Network, node: str) -> set[str]:
    command = ("ip", "netns", "exec", nodes.namespace(node), "sh", "-c", _PING, "ping")
    done = subprocess.run([*command, *_addresses(net, node)], capture_output=True, text=True)
    return {*done.stdout.split()}


def _waiting(nodes: VirtualFabric, site: Site, fault: FailureMode) -> set[str]:
    """The groups of which a rank's wait-fabric.sh is not ready."""
    off = {name for kind, name, *_ in fault.lost if kind == "node"}
    asked = [
        (part.group, node.name)
        for part in site.parts
        for node in part.nodes
        if node.name not in off and node.interfaces
    ]

    def waits(group: str, node: str) -> bool:
        program = str(nodes.trees[node] / "opt/sparkgen/wait-fabric.sh")
        words = ("--group", group, "0") if group else ("0",)
        return bool(nodes.run(node, program, *words).returncode)

    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda pair: waits(*pair), asked)
    return {group for (group, _), waiting in zip(asked, found, strict=True) if waiting}


def _told_waiting(site: Site, files: Mapping[str, str], fault: FailureMode) -> set[str]:
    """The groups that can't start, of those that a cable or another node is needed for."""
    if fault.kind == "management":
        return set()
    found = analysis(site, files)
    off = {name for kind, name, *_ in fault.lost if kind == "node"}
    return {
        engine.group
        for engine in found._engines
        if engine.starts & fault.lost
        if any(node.name not in off and node.interfaces for node in _part(site, engine.group).nodes)
    }


def _part(site: Site, group: str) -> Site:
    return next(part for part in site.parts if part.group == group)


def test_netplan_is_read_as_yaml(bundle: Bundle) -> None:
    for path, text in files_of(bundle.site).items():
        if path.endswith("40-cx7.yaml"):
            found = yaml.safe_load(text)["network"]["ethernets"]
            told = list(netplan(text))
            addresses = [(name, a) for name, about in found.items() for a in about["addresses"]]
            ways = [
                (name, route["to"].removesuffix("/32"), route["via"])
                for name, about in found.items()
                for route in about.get("routes", ())
            ]
            assert [(name, address) for name, address, _, _ in told if address] == addresses
            assert [(name, to, via) for name, _, to, via in told if to] == ways


# What was measured on simulated nodes

# Rows of the table in cluster/measured.md, and what fails in the example for it.
CARRIED_OUT = {
    "the cable is put back": "cable 1",
    "the half of the cable with the control plane is put back": "half 0 of cable 1",
    "the worker has power again": "spark2",
    "the head has power again": "spark1",
    "the worker's engine is killed": "sparkgen-engine on spark2",
    "the head's engine is killed": "sparkgen-engine on spark1",
    "the worker's container is killed": "sparkgen-engine on spark2",
    "the head's container is killed": "sparkgen-engine on spark1",
    "sparkgen-proxy is killed": "sparkgen-proxy on spark5",
}


def measured() -> Iterator[tuple[str, str, float]]:
    """What happened, what was seen, and after how many seconds, under llama.cpp in Docker."""
    for line in MEASURED.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 6 and cells[0].startswith("llama.cpp") and cells[0].endswith("in Docker"):
            yield cells[1], cells[2], float(cells[3].removesuffix(" s"))


def test_measured_recoveries_are_within_what_is_told() -> None:
    told = analyzed(example("pair-llamacpp"))
    told |= analyzed(valid_file(GATEWAY).site)
    told |= analyzed(example("pair-llamacpp"))
    seen = {what: s for what, found, s in measured() if re.search("again|answer again", found)}
    assert {*CARRIED_OUT} <= {*seen}
    for what, fails in CARRIED_OUT.items():
        within = told[fails].within
        assert within is not None
        assert seen[what] <= within, what


def test_measured_effects_are_those_told() -> None:
    told = analyzed(example("pair-llamacpp"))
    seen = {(what, found) for what, found, _ in measured()}
    cut = "the half of the cable without the control plane is cut"
    assert (cut, "it goes on serving") in seen
    assert told["half 1 of cable 1"].lost == ()
    assert (cut, 'verify.py: "no carrier on" that half') in seen
    assert told["half 1 of cable 1"].fault.told_by == (("link", ("spark1", "spark2")),)
    for what in ("cable 1", "half 0 of cable 1", "spark1", "spark2"):
        assert told[what].lost == ("qwen3-235b",)


# By the files, not by the site


def test_what_a_file_says_decides() -> None:
    site = example("three-models")
    files = files_of(site)
    unrouted = {
        path: text.replace("10.0.0.11:8000", "10.0.0.99:8000") if "spark3/" in path else text
        for path, text in files.items()
    }
    assert "chat" not in {one.name for one in analyzed(site, unrouted)["cable 1"].answers}

    one_half = {
        path: text.replace("=rocep1s0f0:1,roceP2p1s0f0:1", "=rocep1s0f0:1")
        for path, text in files.items()
    }
    assert analyzed(site, files)["half 1 of cable 1"].lost == ("chat",)
    assert analyzed(site, one_half)["half 1 of cable 1"].lost == ()
    assert analyzed(site, one_half)["half 1 of cable 1"].waiting == ("chat",)

    sockets = {path: text.replace("NCCL_NET=IB", "NCCL_NET=Socket") for path, text in files.items()}
    assert analyzed(site, sockets)["half 1 of cable 1"].lost == ()
    assert analyzed(site, sockets)["half 0 of cable 1"].lost == ("chat",)

    once = {path: text.replace("Restart=always", "Restart=no") for path, text in files.items()}
    failed = analyzed(site, once)["sparkgen-engine-quick on spark3"]
    assert (failed.heals, failed.within) == (False, None)
    assert rows([failed])[0].to_do == "start it again"


def test_engines_that_start_in_turn_take_the_sum() -> None:
    found = analyzed(example("three-models"))
    alone = found["sparkgen-engine-quick on spark3"].within
    assert alone is not None
    assert found["spark3"].within == 2 * alone


def test_slurm_job_is_started_by_a_person() -> None:
    found = analyzed(example("slurm-trtllm"))
    assert found["cable 1"].within is None
    (row,) = rows([found["cable 1"]])
    assert row.again == "when it is started again"
    assert row.to_do.endswith("replace it; then start the engine again")
    (row,) = rows([found["spark2"]])
    assert row.to_do == "switch it on; then start the engine again"
    # Slurm hears of both nodes over this network.
    worker = found["the management link of spark2"]
    assert (worker.within, worker.lost) == (None, found["cable 1"].lost)
    job = next(failure for what, failure in found.items() if " of Slurm on spark2" in what)
    assert rows([job])[0].to_do == "start it again"


def test_relays_of_a_ring() -> None:
    found = analyzed(valid(ring_text(4, "{kind: ring, routes: true}")).site)
    assert {*found["cable 1"].cut} >= {"spark1 to spark3"}
    assert found["the management link of spark1"].cut == ()


@of_each(BUNDLES)
def test_every_site(bundle: Bundle) -> None:
    """Each fault of each golden site: what it takes is lost by what it contains, too."""
    found = analysis(bundle.site, files_of(bundle.site))
    failures = {failure.fault: failure for failure in found.failures()}
    assert len({fault.what for fault in failures}) == len(failures)
    checks = {row.name for row in loaded("node/verify.py").CHECKS}
    units = {path.rpartition("/")[2] for path in files_of(bundle.site) if path.endswith(".service")}
    for fault, failure in failures.items():
        for check, nodes in fault.told_by:
            kind, _, name = check.partition(" ")
            assert kind in checks
            assert not name or f"sparkgen-{name}.service" in units
            assert {*nodes} <= {node.name for node in bundle.site.nodes}
        for other in failures.values():
            if fault.lost < other.fault.lost:
                assert {*failure.lost} <= {*other.lost}
    _check_pairs(found, {*failures.values()})


@of_each(BUNDLES)
def test_every_part_of_the_files_has_a_row(bundle: Bundle) -> None:
    """Units, jobs, nodes, their links and disks, read from the files; nothing else has one."""
    found = analysis(bundle.site, files_of(bundle.site))
    of_site = ("cable", "switch")
    assert {f.what for f in found.faults if f.kind not in of_site} == {*_parts(bundle)}
    assert {f.what for f in found.faults if f.kind in of_site} == {
        *(f"cable {cable.number}" for cable in bundle.site.cables),
        *bundle.site.switches,
    }


def _parts(bundle: Bundle) -> Iterator[str]:
    """What a node's files name that can fail, without alternatives that wait for their turn."""
    texts = files_of(bundle.site)
    for node in (path.partition("/")[0] for path in texts if path.endswith("/install.sh")):
        yield node
        for path in (path for path in texts if path.startswith(f"{node}/")):
            named = re.search(
                r"(?:system/(sparkgen-.*)\.service|/sparkgen/jobs/([^.]*)\.env)$", path
            )
            if named and named[1] not in _waiting_units(texts, node):
                yield f"{named[1] or f'the job {named[2]}'} on {node}"
            if re.search(r"/etc/sparkgen/(groups/.*\.)?node\.env$", path):
                yield from _facts_about(texts[path], node)


def _waiting_units(texts: Mapping[str, str], node: str) -> set[str]:
    turns = re.findall(r"^ALTERNATIVES=\S+ (.*)$", texts[f"{node}/etc/sparkgen/node.env"], re.M)
    return {f"sparkgen-engine-{group}" for groups in turns for group in groups.split()}


def _facts_about(facts: str, node: str) -> Iterator[str]:
    for port, half, cable in re.findall(r"^HALF=(p\d)\.h(\d) .* (\d+)$", facts, re.MULTILINE):
        yield f"{node}:{port}"
        yield f"half {half} of cable {cable}"
    yield from (f"the management link of {node}" for _ in re.findall("^MANAGEMENT=", facts, re.M))
    yield from (f"the models on {node}" for _ in re.findall("^MODEL(?:_FILE)?=", facts, re.M))
    for job in re.findall(r"^JOB=(.*)$", facts, re.MULTILINE):
        yield f"the job {job} of Slurm on {node}"


def _check_pairs(found: Analysis, single: set[Failure]) -> None:
    alone = {failure.fault: {*failure.lost} for failure in single}
    for pair in found.pairs():
        for fault in (*pair.one, *pair.other):
            assert not alone[fault] & {*pair.lost}


# The command and the policy


def test_addresses_that_still_answer() -> None:
    """Without a gateway, people have to know where the other replica and the other names are."""
    site = valid_file(ROOT / "tests/golden/groups-pairs/site.yaml").site
    found = {row.faults[0]: row.answers for row in rows(analyzed(site).values())}
    assert found["spark1"].endswith("gpt-oss-120b by 1 of 2 replicas at http://10.0.0.13:8000")
    both = "gpt-oss-120b at http://10.0.0.11:8000 and http://10.0.0.13:8000"
    assert found["spark5"] == both
    gateway = [row.answers for row in rows(analyzed(valid_file(GATEWAY).site).values())]
    assert not any("http" in answers for answers in gateway)


def test_json(sparkgen: Command) -> None:
    outcome = sparkgen("failures", GATEWAY, "--format", "json", cwd=ROOT)
    found = {one["what"]: one for one in json.loads(outcome.out)["failures"]}
    assert {one["kind"] for one in found.values()} == {*KINDS} - {"switch", "job"}
    assert found["cable 1"] == {
        "kind": "cable",
        "what": "cable 1",
        "answers": [
            {"name": "assistant", "to": "clients", "replicas": 1, "of": 2, "urls": []},
            {"name": "helper", "to": "clients", "replicas": 1, "of": 2, "urls": []},
            {"name": "qwen3-embedding-8b", "to": "clients", "replicas": 1, "of": 1, "urls": []},
        ],
        "heals": False,
        "within_seconds": 1650,
        "waiting": [],
        "relayed": [],
        "to_do": "plug in both ends until they click, or replace it",
        "verify": [{"check": "link", "nodes": ["spark1", "spark2"]}],
    }
    assert found["spark5"]["verify"][0]["nodes"] == ["spark1", "spark2", "spark3", "spark4"]


def test_pairs(sparkgen: Command) -> None:
    outcome = sparkgen("failures", GATEWAY, "--pairs", "--format", "json", cwd=ROOT)
    pairs = json.loads(outcome.out)["pairs"]
    assert {
        "one_of": ["spark1"],
        "and_one_of": ["spark3"],
        "lost": ["assistant", "helper"],
    } in pairs


def test_no_pairs(sparkgen: Command) -> None:
    outcome = sparkgen("failures", "sites/more/rack-switch.yaml", "--pairs", cwd=ROOT)
    assert (outcome.code, outcome.out) == (
        0,
        "No two faults take a name that neither takes alone.\n",
    )


def test_policy(tmp_path: Path, sparkgen: Command) -> None:
    """A site that depends on one cable is refused by the policy; one with a replica is not."""
    (tmp_path / "sites").mkdir()
    (tmp_path / "policy.yaml").write_text("version: 1\nsurvives: [cable, half]\n")
    site = tmp_path / "sites/lab.yaml"
    site.write_text(site_text())
    outcome = sparkgen("validate", cwd=tmp_path)
    assert outcome.code == 3
    message = "'gpt-oss-120b' answers nobody without cable 1 or any of 5 others, and policy.yaml"
    assert f"error[SG822]: {message} wants it to survive that" in outcome.err
    assert "(model)" in outcome.err
    outcome = sparkgen("failures", "sites/lab.yaml", cwd=tmp_path)
    assert outcome.code == 1
    assert message in outcome.err

    site.write_text(GATEWAY.read_text())
    assert sparkgen("validate", cwd=tmp_path).code == 0
    assert sparkgen("failures", "sites/lab.yaml", cwd=tmp_path).code == 0


def test_faulty_policy(tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites/lab.yaml").write_text(site_text())
    for text, message in {
        "survives: cable": "'survives' is a list",
        "survives: [cabel]": "nothing of the kind 'cabel' can fail",
    }.items():
        (tmp_path / "policy.yaml").write_text(f"version: 1\n{text}\n")
        outcome = sparkgen("validate", cwd=tmp_path)
        assert outcome.code == 3
        assert f"error[SG820]: {message}" in outcome.err


# The tables of the examples

CHECKED = {
    **dict.fromkeys(
        CHECKED_BY_PULLING, "carried out in namespaces: every address pinged, wait-fabric.sh"
    ),
    "engine": "killed on simulated nodes with llama.cpp, vLLM and SGLang",
    "models": "removed from a simulated node: it keeps serving, and verify.py reports it",
}
OF_PROGRAMS = {
    "sparkgen-proxy": "killed on simulated nodes",
    "sparkgen-guard": "killed on simulated nodes",
}


@pytest.mark.golden
def test_tables_of_examples(request: pytest.FixtureRequest) -> None:
    text = "".join(_tables())
    if request.config.getoption("update_golden"):
        TABLES.write_text(text)
    assert TABLES.read_text() == text, "meant? pytest --update-golden tests/test_failures.py"


def _tables() -> Iterator[str]:
    yield (
        "# What still answers in four examples\n\n"
        "`test_failures.py` writes these tables, and tries each fault of a cable, port, switch,\n"
        "node or management link in namespaces. Times are upper limits; measured times are in\n"
        "[cluster/](cluster/measured.md). No engine has run on a Spark.\n"
    )
    for name in OF_EACH_KIND:
        yield f"\n## {name}\n\n"
        yield "| What fails | Still answers | Serves again | Told by verify.py | Checked |\n"
        yield "|---|---|---|---|---|\n"
        failures = analyzed(example(name))
        for row in rows(failures.values()):
            first = failures[row.faults[0]].fault
            checked = CHECKED.get(first.kind) or OF_PROGRAMS.get(first.what.split()[0], "the unit")
            yield f"| {row.what} | {row.answers} | {row.again} | {row.told_by} | {checked} |\n"
