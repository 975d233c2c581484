"""`init`: its sites validate without findings, whatever was requested or detected."""

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from waiting import PATIENCE

from generator.fabric.topologies import SWITCH, TOPOLOGIES
from generator.pipeline import read_site
from generator.resources import ROOT
from generator.scaffold.scaffold import ENGINES
from generator.site import Site

NO_OUTPUT = "no output of ip, ibdev2netdev, rdma link, ibv_devinfo or show_gids"
NO_PORT = "no QSFP interface of a DGX Spark in it, such as enp1s0f0np0"


def site_of(text: str) -> Site:
    reading = read_site("site.yaml", text.encode())
    # Whether to encrypt is for a person to decide: it needs a certificate.
    assert {finding.rule for finding in reading.findings} <= {"SG271"}
    assert reading.site
    return reading.site


def written(sparkgen: Command, cwd: Path, *words: object) -> Site:
    """The site that is printed, which must also pass strict validation."""
    outcome = sparkgen("init", *words, cwd=cwd)
    assert outcome.code == 0
    assert outcome.err.count(": fits: ") + outcome.err.count(": unknown, for want of") == 1
    guesses = outcome.err.splitlines()[1:]
    assert all(line.startswith("guessed: ") for line in guesses), outcome.err
    (cwd / "made.yaml").write_text(outcome.out)
    validation = sparkgen("validate", "--strict", "made.yaml", cwd=cwd)
    assert (validation.code, validation.err) == (0, "")
    return site_of(outcome.out)


def devices(*linked: int) -> str:
    """The output of ibdev2netdev on a node with cables in these ports."""
    return "".join(
        f"roce{domain}p1s0f{port} port 1 ==> en{domain}p1s0f{port}np{port} "
        f"({'Up' if port in linked else 'Down'})\n"
        for domain in ("", "P2")
        for port in (0, 1)
    )


def addresses(*linked: int, management: str = "192.168.7.5/24", name: str = "enP7s7") -> str:
    """The output of ip -j addr on such a node."""
    ip, _, prefix = management.partition("/")
    ipv4 = {"family": "inet", "local": ip, "prefixlen": int(prefix), "scope": "global"}
    local = {"family": "inet", "local": "127.0.0.1", "prefixlen": 8, "scope": "host"}
    docker = {"family": "inet", "local": "172.17.0.1", "prefixlen": 16, "scope": "global"}
    six = {"family": "inet6", "local": "fe80::1", "prefixlen": 64, "scope": "link"}
    links: list[dict[str, Any]] = [
        {"ifname": "lo", "flags": ["LOOPBACK", "UP", "LOWER_UP"], "addr_info": [local]},
        {"ifname": "docker0", "flags": ["UP"], "addr_info": [docker]},
        {"ifname": name, "flags": ["UP", "LOWER_UP"], "addr_info": [six, ipv4]},
        {
            "ifname": "wlP9s9",
            "flags": ["UP", "LOWER_UP"],
            "addr_info": [ipv4 | {"local": "10.9.9.9"}],
        },
        {},
    ]
    for port in (0, 1):
        for domain in ("", "P2"):
            flags = ["UP", "LOWER_UP"] if port in linked else ["NO-CARRIER", "UP"]
            links.append({"ifname": f"en{domain}p1s0f{port}np{port}", "flags": flags})
    return json.dumps(links)


# Warnings that every such site has, and that somebody has to accept.
WARNED = {("switch", "llama.cpp"): "SG657", ("ring", "tensorrt-llm"): "SG220"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("kind", "nodes"),
    [
        ("single", 1),
        ("direct", 2),
        *(("ring", n) for n in (3, 4, 8)),
        *(("switch", n) for n in (2, 5, 15)),
    ],
)
def test_every_kind(kind: str, nodes: int, engine: str, tmp_path: Path, sparkgen: Command) -> None:
    words = ("--kind", kind, "--nodes", nodes, "--engine", engine, "--name", "lab")
    warned = WARNED.get((kind, engine)) if nodes > 3 or kind == "switch" else None
    if warned:
        outcome = sparkgen("init", *words, cwd=tmp_path)
        reading = read_site("site.yaml", outcome.out.encode())
        assert [finding.rule for finding in reading.findings] == [warned]
        assert outcome.err.startswith(f"warning[{warned}]")
        assert reading.site
        return
    site = written(sparkgen, tmp_path, *words)
    assert (site.kind, len(site.nodes), site.engine.name, site.name) == (kind, nodes, engine, "lab")
    assert site.engine.parallel.ranks == nodes


@pytest.mark.parametrize(
    ("kind", "ports", "subnets", "comment"),
    [
        ("ring", (0, 1), 6, "half of each cable"),
        ("switch", (0,), 2, "half of a port that the nodes use"),
        ("switch", (0, 1), 4, "half of a port that the nodes use"),
    ],
)
def test_comments_say_where_the_subnets_are(
    kind: str, ports: tuple[int, ...], subnets: int, comment: str, tmp_path: Path, sparkgen: Command
) -> None:
    words: list[object] = ["--kind", kind, "--nodes", 3]
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(devices(*ports))
        words += ["--from", f"{name}.txt"]
    assert len(written(sparkgen, tmp_path, *words).subnets) == subnets
    text = (tmp_path / "made.yaml").read_text()
    assert comment in text
    assert ("in the order of the cables" in text) is (kind == "ring")
    assert ("which all nodes share" in text) is (kind == "switch")


def test_largest_switch(tmp_path: Path, sparkgen: Command) -> None:
    assert len(written(sparkgen, tmp_path, "--nodes", TOPOLOGIES[SWITCH].most).nodes) == 244


@pytest.mark.parametrize(
    ("nodes", "kind"), [(1, "single"), (2, "direct"), (3, "ring"), (4, "switch")]
)
def test_kind_follows_from_the_number(
    nodes: int, kind: str, tmp_path: Path, sparkgen: Command
) -> None:
    assert written(sparkgen, tmp_path, "--nodes", nodes).kind == kind


def test_model(tmp_path: Path, sparkgen: Command) -> None:
    words = ("--kind", "direct", "--model", "llama-3.3-70b-instruct-nvfp4")
    assert written(sparkgen, tmp_path, *words).model.served_name == "llama-3.3-70b-instruct-nvfp4"


def test_file(tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("init", "--kind", "ring", "mine.yaml", cwd=tmp_path)
    written, fits, after = outcome.out.splitlines()
    assert (outcome.code, written) == (0, "mine.yaml is written")
    assert re.fullmatch(r"gpt-oss-120b: fits: \d+\.\d GiB left on spark\d beside .+", fits)
    assert after == "next: correct what was guessed, then sparkgen build mine.yaml"
    assert outcome.err.splitlines() == [
        "guessed: engine vllm, model gpt-oss-120b and user nvidia, since nothing said otherwise",
        "guessed: the management addresses of spark1, spark2 and spark3, which are examples",
        "guessed: the ports that are cabled on spark1, spark2 and spark3",
        "guessed: which node is next to which, and at which end of a cable p0 is",
    ]
    text = (tmp_path / "mine.yaml").read_text()
    assert site_of(text).name == "mine"
    assert text.count("\n# ") + text.count("\n  # ") > 8
    assert sparkgen("build", "mine.yaml", cwd=tmp_path).code == 0


def test_never_overwrites(tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "mine.yaml").write_text("precious\n")
    outcome = sparkgen("init", "--kind", "ring", "mine.yaml", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (4, "")
    assert (
        outcome.err == "sparkgen: mine.yaml is there already; init never overwrites a site file\n"
    )
    assert (tmp_path / "mine.yaml").read_text() == "precious\n"


def test_dash_is_standard_output(tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("init", "--nodes", "1", "-", cwd=tmp_path)
    assert (outcome.code, site_of(outcome.out).name) == (0, "lab")
    assert list(tmp_path.iterdir()) == []


def test_folder_is_made_with_the_schema(tmp_path: Path, sparkgen: Command) -> None:
    assert sparkgen("init", "--kind", "ring", "new/er/mine.yaml", cwd=tmp_path).code == 0
    folder = tmp_path / "new/er"
    first, *_ = (folder / "mine.yaml").read_text().splitlines()
    assert first == "# yaml-language-server: $schema=site.schema.json"
    schema = (folder / "site.schema.json").read_text()
    assert schema == sparkgen("schema", cwd=tmp_path).out
    (folder / "site.schema.json").write_text("{}")
    assert sparkgen("init", "--kind", "ring", "new/er/other.yaml", cwd=tmp_path).code == 0
    assert (folder / "site.schema.json").read_text() == "{}"


def test_schema_of_the_repository(tmp_path: Path, sparkgen: Command) -> None:
    for name in ("sites", "schemas"):
        (tmp_path / name).mkdir()
    (tmp_path / "schemas/site.schema.json").write_text("{}")
    assert sparkgen("init", "--kind", "single", "sites/one.yaml", cwd=tmp_path).code == 0
    text = (tmp_path / "sites/one.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=../schemas/site.schema.json\n")
    assert [path.name for path in (tmp_path / "sites").iterdir()] == ["one.yaml"]


def test_folder_that_cannot_be_made(tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "no").touch()
    outcome = sparkgen("init", "--kind", "ring", "no/mine.yaml", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err.startswith("sparkgen: no: ")


def test_model_that_does_not_fit(tmp_path: Path, sparkgen: Command) -> None:
    """The findings are those of `validate`, with what would fit; nothing is written."""
    words = ("init", "--kind", "direct", "--model", "qwen3-235b-a22b", "sites/pair.yaml")
    outcome = sparkgen(*words, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith("error[SG520]: the model does not fit: ")
    assert " --> sites/pair.yaml:" in outcome.err
    help_line = next(line for line in outcome.err.splitlines() if "= help: " in line)
    assert "'name: qwen3-235b-a22b-" in help_line
    assert "nodes" in help_line
    assert outcome.err.endswith("\nnothing was written\n")
    assert not (tmp_path / "sites").exists()


def test_site_as_data(tmp_path: Path, sparkgen: Command) -> None:
    words = ("init", "--kind", "single", "--user", "lab", "--format", "json")
    outcome = sparkgen(*words, "one.yaml", cwd=tmp_path)
    data = json.loads(outcome.out)
    assert (outcome.code, outcome.err, data["version"]) == (0, "", 1)
    assert (data["written"], data["file"]) == (True, "one.yaml")
    assert data["text"] == (tmp_path / "one.yaml").read_text()
    assert data["fit"].startswith("fits: ")
    assert data["guesses"][1] == "the management addresses of spark1, which are examples"
    assert data["findings"] == []
    refused = sparkgen(*words, "--model", "deepseek-v3", "two.yaml", cwd=tmp_path)
    data = json.loads(refused.out)
    assert (refused.code, refused.err, data["written"]) == (3, "", False)
    assert data["findings"][0]["rule"] == "SG520"
    assert not (tmp_path / "two.yaml").exists()


def test_login_and_port(tmp_path: Path, sparkgen: Command) -> None:
    words = ("--kind", "switch", "--nodes", 2, "--user", "lab", "--port", "both")
    site = written(sparkgen, tmp_path, *words)
    assert [node.user for node in site.nodes] == ["lab", "lab"]
    assert [str(cable.a) for cable in site.cables] == [
        *("spark1:p0", "spark1:p1", "spark2:p0", "spark2:p1"),
    ]
    direct = written(sparkgen, tmp_path, "--kind", "direct", "--port", "p1")
    assert [str(cable.a) for cable in direct.cables] == ["spark1:p1"]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("between", ["", "\n", "[nvidia@spark1 ~]$ ip -j addr\n"])
def test_both_outputs_in_one_file(
    between: str, order: int, tmp_path: Path, sparkgen: Command
) -> None:
    """In any order; the last line of ibdev2netdev may lack a newline, and prompts are ignored."""
    for number in (1, 2):
        both = [devices(1).rstrip("\n"), addresses(1, management=f"192.168.7.{number}/24")]
        (tmp_path / f"spark{number}.txt").write_text(between.join(both[::order]))
    words = ("--from", "spark1.txt", "--from", "spark2.txt", "--user", "lab")
    outcome = sparkgen("init", *words, cwd=tmp_path)
    site = site_of(outcome.out)
    assert [str(node.address) for node in site.nodes] == ["192.168.7.1", "192.168.7.2"]
    assert [(str(cable.a), str(cable.b)) for cable in site.cables] == [("spark1:p1", "spark2:p1")]
    # Everything that matters is known.
    assert "ports" not in outcome.err
    assert "addresses" not in outcome.err


def test_ports_with_their_states(tmp_path: Path, sparkgen: Command) -> None:
    """As `ibdev2netdev -v` prints them."""
    lines = devices(1).splitlines()
    verbose = [
        line.replace(" port 1 ", " (MT4129 - P3740) fw 28.45.4028 port 1 (ACTIVE) ")
        for line in lines
    ]
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("\n".join(verbose))
    site = written(sparkgen, tmp_path, "--from", "a.txt", "--from", "b.txt")
    assert [(str(cable.a), str(cable.b)) for cable in site.cables] == [("a:p1", "b:p1")]


def test_ring_from_both_programs(tmp_path: Path, sparkgen: Command) -> None:
    words: list[object] = []
    for number, name in enumerate(("alpha", "beta", "gamma"), 1):
        (tmp_path / f"{name}.txt").write_text(devices(0, 1))
        (tmp_path / f"{name}.json").write_text(addresses(1, management=f"192.168.7.{number}/24"))
        words += ["--from", f"{name}.txt", "--from", f"{name}.json"]
    site = written(sparkgen, tmp_path, *words)
    assert site.kind == "ring"
    assert {node.name: str(node.address) for node in site.nodes} == {
        "alpha": "192.168.7.1",
        "beta": "192.168.7.2",
        "gamma": "192.168.7.3",
    }
    text = (tmp_path / "made.yaml").read_text()
    assert "write this node's own" not in text
    # ip -j addr takes precedence, and reports that p0 has no cable.
    assert "  - endpoints: [alpha:p0, beta:p1]  # alpha:p0 had no link\n" in text


@pytest.mark.parametrize(
    "output", [devices, lambda port: addresses(port, management="10.0.0.12/24")]
)
def test_direct_takes_the_port_with_a_link(output: Any, tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "a.txt").write_text(devices(1))
    (tmp_path / "b.txt").write_text(output(1))
    site = written(sparkgen, tmp_path, "--from", "one=a.txt", "--from", "two=b.txt")
    assert [(str(cable.a), str(cable.b)) for cable in site.cables] == [("one:p1", "two:p1")]


def test_switch_takes_the_ports_that_all_have(tmp_path: Path, sparkgen: Command) -> None:
    for name, linked in (("a", (0, 1)), ("b", (1,)), ("c", (0, 1)), ("d", (1,))):
        (tmp_path / f"{name}.txt").write_text(devices(*linked))
    words = [word for name in "abcd" for word in ("--from", f"{name}.txt")]
    site = written(sparkgen, tmp_path, *words)
    assert [str(cable.a) for cable in site.cables] == ["a:p1", "b:p1", "c:p1", "d:p1"]


def test_pool_keeps_clear_of_the_management_network(tmp_path: Path, sparkgen: Command) -> None:
    for name, last in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.json").write_text(addresses(0, management=f"10.100.0.{last}/16"))
    site = written(sparkgen, tmp_path, "--from", "a.json", "--from", "b.json")
    assert str(site.subnets[0]) == "172.28.0.0/24"


def test_more_nodes_than_captured(tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "spark2.txt").write_text(devices(0, 1))
    site = written(sparkgen, tmp_path, "--from", "spark2.txt", "--kind", "ring")
    assert [node.name for node in site.nodes] == ["spark2", "spark1", "spark3"]


@pytest.mark.parametrize(
    ("management", "expected"),
    [
        ("192.168.5.20/24", ["192.168.5.20", "192.168.5.12", "192.168.5.13"]),
        ("192.168.5.12/24", ["192.168.5.12", "192.168.5.1", "192.168.5.13"]),
        ("192.168.5.2/29", ["192.168.5.2", "192.168.5.1", "192.168.5.3"]),
    ],
)
def test_made_up_nodes_are_in_the_network_of_the_found_one(
    management: str, expected: list[str], tmp_path: Path, sparkgen: Command
) -> None:
    (tmp_path / "a.json").write_text(addresses(0, 1, management=management))
    site = written(sparkgen, tmp_path, "--kind", "ring", "--from", "a.json")
    assert [node.name for node in site.nodes] == ["a", "spark2", "spark3"]
    assert [str(node.address) for node in site.nodes] == expected
    assert (tmp_path / "made.yaml").read_text().count("write this node's own") == 2


def test_made_up_node_is_plugged_like_the_found_one(tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "s1.json").write_text(addresses(1))
    site = written(sparkgen, tmp_path, "--nodes", 2, "--from", "s1.json")
    assert [(str(cable.a), str(cable.b)) for cable in site.cables] == [("s1:p1", "spark2:p1")]


def test_network_without_room_for_a_made_up_node(tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "a.json").write_text(addresses(0, 1, management="192.168.5.0/31"))
    outcome = sparkgen("init", "--kind", "ring", "--from", "a.json", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (2, "")
    assert "192.168.5.0/31 has no address for spark3: give --from for it too" in outcome.err


def test_rj45_before_wifi_and_wifi_before_nothing(tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "a.json").write_text(addresses(0, name="zz0"))
    text = sparkgen("init", "--from", "a.json", cwd=tmp_path).out
    assert "{interface: zz0, address: 192.168.7.5/24}" in text
    (tmp_path / "a.json").write_text(addresses(0, name="veth0"))
    text = sparkgen("init", "--from", "a.json", cwd=tmp_path).out
    assert "{interface: wlP9s9, address: 10.9.9.9/24}" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", NO_OUTPUT),
        ("mlx5_0 port 1 ==> ens3f0 (Up)\n", NO_PORT),
        ("[]", NO_OUTPUT),
        ('[{"ifname": 3}]', NO_OUTPUT),
        ("[{", NO_OUTPUT),
        ('[{"a": 1}]', NO_OUTPUT),
        ("[" * 100_000, NO_OUTPUT),
        ('["a"]', NO_OUTPUT),
    ],
)  # fmt: skip
def test_output_of_another_program(
    text: str, message: str, tmp_path: Path, sparkgen: Command
) -> None:
    (tmp_path / "a.txt").write_text(text)
    outcome = sparkgen("init", "--from", "a.txt", cwd=tmp_path)
    assert (outcome.code, outcome.out, outcome.err) == (4, "", f"sparkgen: a.txt: {message}\n")


def test_output_that_cannot_be_read(tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("init", "--from", "a.txt", cwd=tmp_path)
    assert (outcome.code, outcome.err) == (4, "sparkgen: a.txt: No such file or directory\n")
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe")
    outcome = sparkgen("init", "--from", "a.txt", cwd=tmp_path)
    assert (outcome.code, outcome.err) == (4, "sparkgen: a.txt: not text\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "say --kind or --nodes, or give --from; on a terminal it asks"),
        (("--kind", "ring", "--nodes", "9"), "ring takes 3 to 8 nodes, not 9"),
        (("--kind", "single", "--nodes", "2"), "single takes 1 node, not 2"),
        (("--kind", "ring", "--model", "gpt-os-120b"), "did you mean 'gpt-oss-120b'?"),
        (("--kind", "ring", "My Lab.yaml"), "call the file otherwise, or add --name"),
        (("--kind", "switch", "--nodes", "1"), "switch takes 2 to 244 nodes, not 1"),
        (("--kind", "triangle"), "'triangle' is not one of"),
        (("--kind", "ring", "--model", "nonesuch"), "no model of the catalog is called 'nonesuch'"),
        (("--kind", "ring", "--name", "a b"), "'a b' can't be the name of a site"),
        (("--kind", "ring", "--name", "a # b"), "'a # b' can't be the name of a site"),
        (("--from", "Spark 1.txt"), "'Spark 1' does not name a node: NODE=Spark 1.txt"),
    ],
)
def test_wrong_usage(
    words: tuple[str, ...], message: str, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen("init", *words, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


def test_fewer_nodes_than_captured(tmp_path: Path, sparkgen: Command) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(devices(0))
    outcome = sparkgen("init", "--from", "a.txt", "--from", "b.txt", "--nodes", 1, cwd=tmp_path)
    assert outcome.code == 2
    assert "--from names 2 nodes" in outcome.err


def test_questions_on_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    out = tmp_path / "made.yaml"
    with out.open("w") as stdout:
        running = subprocess.Popen(
            [sys.executable, "-m", "generator", "init"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=theirs,
            stdout=stdout,
            stderr=theirs,
        )
    os.close(theirs)
    os.write(ours, b"lattice\nswitch\n1\n4\nboth\nrack\nlab\n\n\n")
    dialog = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal, suppress(OSError):
        while read := terminal.read(65_536):
            dialog += read
    assert running.wait(PATIENCE) == 0
    assert b"'lattice' is not one of" in dialog
    assert b"What is the site called [lab]" in dialog
    site = site_of(out.read_text())
    assert (site.name, site.kind, len(site.nodes)) == ("rack", "switch", 4)
    assert (site.nodes[0].user, len(site.cables)) == ("lab", 8)
    assert site.model.served_name == "gpt-oss-120b"
    # Answers of the user are not guesses.
    assert b"nothing said otherwise" not in dialog


@pytest.mark.parametrize(
    ("words", "kind", "cables", "sizes"),
    [
        (("--kind", "pairs"), "pairs", 1, [2]),
        (("--kind", "pairs", "--nodes", 5, "--port", "p1"), "pairs", 2, [2, 2, 1]),
        (("--groups", "1,2,2"), "pairs", 2, [1, 2, 2]),
        (("--groups", "4, 4"), "switch", 8, [4, 4]),
        (("--groups", "2,1", "--engine", "llama.cpp"), "pairs", 1, [2, 1]),
        (("--groups", "2,2", "--engine", "sglang"), "pairs", 2, [2, 2]),
        (("--groups", "2,1", "--engine", "tensorrt-llm"), "pairs", 1, [2, 1]),
    ],
)
def test_groups(
    words: tuple[object, ...],
    kind: str,
    cables: int,
    sizes: list[int],
    tmp_path: Path,
    sparkgen: Command,
) -> None:
    outcome = sparkgen("init", *words, cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    assert outcome.err.count(": fits: ") + outcome.err.count(": unknown, for want") == len(sizes)
    site = site_of(outcome.out)
    assert (site.kind, len(site.cables)) == (kind, cables)
    names = [f"spark{number}" for number in range(1, sum(sizes) + 1)]
    assert [node.name for part in site.groups for node in part.nodes] == names
    assert [len(part.nodes) for part in site.groups] == sizes
    assert outcome.out.count("    same_as: chat") == len(sizes) - len({*sizes})
    # A name that several engines serve has one address of its own.
    assert bool(site.address) == (len(sizes) > 1)


def test_new_sglang_sleeps_while_idle(tmp_path: Path, sparkgen: Command) -> None:
    """Its scheduler would poll a core of each node otherwise."""
    outcome = sparkgen("init", "--nodes", 2, "--engine", "sglang", cwd=tmp_path)
    assert "sleep-on-idle: true" in outcome.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--groups", "2,x"), "'2,x' is not a list of sizes"),
        (("--groups", ""), "'' is not a list of sizes"),
        (("--groups", "3", "--kind", "ring"), "groups are joined by pairs or a switch"),
        (("--groups", "3,1", "--kind", "pairs"), "pairs join two nodes each, not 3"),
        (("--groups", "2,1", "--nodes", "4"), "the groups have 3 nodes, and there are 4"),
        (("--kind", "pairs", "--nodes", "1"), "pairs takes 2 to 244 nodes, not 1"),
    ],
)
def test_impossible_groups(
    words: tuple[str, ...], message: str, tmp_path: Path, sparkgen: Command
) -> None:
    outcome = sparkgen("init", *words, cwd=tmp_path)
    assert outcome.code == 2
    assert message in outcome.err
