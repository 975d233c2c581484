"""Sites with groups: what each group derives, and the scripts of a node with several engines."""

import json
import random
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import pytest
from bundles import IN_GROUPS, NodeFolder, on_node
from random_sites import random_site
from stand_ins import StandIns
from test_image import DOCKER, SSH
from test_launch import launch
from test_verify import machine

from generator.bundle.committed import Committed
from generator.bundle.render import render
from generator.bundle.tree import Tree
from generator.fabric.subsets import group_kind, of_nodes
from generator.pipeline import read_site
from generator.resources import ROOT
from generator.review.impact import Before, Review, review
from generator.rules.locks import older
from generator.site import Site
from generator.site.places import place
from generator.sitefile.lock import Lock, LockedImage, LockedModel

GOLDEN = ROOT / "tests/golden"


def site_of(case: str) -> Site:
    """The site of a golden case."""
    site = read_site("site.yaml", (GOLDEN / f"groups-{case}/site.yaml").read_bytes()).site
    assert site
    return site


def folder(case: str, name: str) -> NodeFolder:
    """A node's folder of a golden case."""
    return next(f for f in IN_GROUPS if str(f) == f"golden-groups-{case}/{name}")


@pytest.mark.parametrize(
    ("path", "placed"),
    [
        ("/etc/sparkgen/engine.env", "/etc/sparkgen/groups/a.env"),
        ("/etc/sparkgen/engine.raw.env", "/etc/sparkgen/groups/a.raw.env"),
        ("etc/sparkgen/container.env", "etc/sparkgen/groups/a.container.env"),
        ("opt/sparkgen/compose.yaml", "opt/sparkgen/groups/a/compose.yaml"),
        (
            "etc/systemd/system/sparkgen-engine.service",
            "etc/systemd/system/sparkgen-engine-a.service",
        ),
    ],
)
def test_paths_of_a_group(path: str, placed: str) -> None:
    assert place(path, "a") == placed
    assert place(path, "") == path


# Cables of a group


KINDS = {
    "switch": {"chat": "switch", "small": "switch"},
    "pairs": {"chat": "direct", "chat-b": "direct", "small": "single"},
    "ring-and-single": {"large": "ring", "small": "single"},
    "ring-halves": {"east": "pairs", "west": "pairs"},
    "one-node": {"chat": "single", "small": "single"},
}


@pytest.mark.parametrize("case", KINDS)
def test_group_has_only_its_own_cables(case: str) -> None:
    site = site_of(case)
    kinds = {part.group: part.kind for part in site.groups}
    assert KINDS[case].items() <= kinds.items()
    for part in site.groups:
        names = {node.name for node in part.nodes}
        for node in part.nodes:
            assert {peer.node for i in node.interfaces for peer in i.peers} <= names
            hcas = node.env.get("NCCL_IB_HCA", "")
            assert [i.hca for i in node.interfaces] == [
                word.strip("=").removesuffix(":1") for word in hcas.split(",") if word
            ]


def test_part_of_a_ring() -> None:
    reading = read_site("site.yaml", (GOLDEN / "groups-ring-halves/site.yaml").read_bytes())
    assert reading.declaration
    fabric = reading.declaration.fabric
    found = {
        names: group_kind(fabric, names.split())
        for names in (
            "spark1",
            "spark1 spark4",
            "spark1 spark3",
            "spark1 spark2 spark3",
            "spark1 spark2 spark3 spark4",
        )
    }
    assert list(found.values()) == ["single", "pairs", None, "mixed", "ring"]
    assert [cable.number for cable in of_nodes(fabric, ["spark1", "spark4"]).cables] == [4]


SET_UP_ALIKE = """\
version: 1
name: lab
topology: {kind: single}
nodes: [{name: spark1}, {name: spark2}, {name: spark3}, {name: spark4}]
groups:
  - {name: a, nodes: [spark1], model: {name: gpt-oss-120b}, engine: FAULTY}
  - {name: b, nodes: [spark2], model: {name: gpt-oss-120b}, engine: FAULTY}
  - {name: c, nodes: [spark3], same_as: a}
  - {name: d, nodes: [spark4], model: {name: gpt-oss-120b}, engine: VALID}
"""
VALID = "{name: vllm, version: 0.33.0, image: 'vllm/vllm-openai:v0.33.0'}"
FAULTY = VALID.replace("}", ", args: {max-model-lenn: 4096}}")


def test_fault_of_a_shared_section_is_reported_in_each_group() -> None:
    text = SET_UP_ALIKE.replace("FAULTY", FAULTY).replace("VALID", VALID)
    found = read_site("site.yaml", text.encode()).findings
    flag = ("engine", "args", "max-model-lenn")
    assert [(finding.rule, finding.path) for finding in found] == [
        ("SG632", ("groups", 0, *flag)),
        ("SG632", ("groups", 1, *flag)),
    ]


@pytest.mark.parametrize("memory", ["", ", visible_gib: 110"])
def test_each_group_has_the_memory_of_its_nodes(memory: str) -> None:
    text = SET_UP_ALIKE.replace("FAULTY", VALID).replace("VALID", VALID)
    reading = read_site("site.yaml", text.replace("spark3}", f"spark3{memory}}}", 1).encode())
    assert reading.site
    fits = [group.memory for group in reading.site.groups]
    nodes = [node for fit in fits if fit for node in fit.nodes]
    assert [node.node for node in nodes] == ["spark1", "spark2", "spark3", "spark4"]
    other = {node.node for node in nodes if node.visible_gib == 110}
    assert other == ({"spark3"} if memory else set())


# Scripts


def ran(script: Path, *options: str, env: Mapping[str, str] | None = None) -> str:
    """The output of a script, which must succeed."""
    command = ["bash", str(script), *options]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("case", "node", "options", "peers"),
    [
        ("switch", "spark1", ["--group", "chat"], {"spark2"}),
        ("switch", "spark1", [], {f"spark{n}" for n in range(2, 9)}),
        ("ring-halves", "spark2", ["--group", "east"], {"spark1"}),
        ("ring-halves", "spark2", [], {"spark1", "spark3"}),
    ],
)
def test_engine_waits_for_its_groups_fabric(
    case: str, node: str, options: list[str], peers: set[str]
) -> None:
    script = folder(case, node).path / "opt/sparkgen/wait-fabric.sh"
    lines = ran(script, *options, "--peers").splitlines()
    assert {line.split()[3] for line in lines} == peers


def test_verify_checks_each_engine(memory: Path) -> None:
    found = machine(folder("one-node", "spark1"), memory).lines()
    for check in ("image", "model", "ports"):
        assert {f"{check} chat", f"{check} small"} <= found.keys()
    assert {name for name in found if name.startswith("api")} == {"api chat", "api small"}
    assert {"unit engine-chat", "unit engine-small", "unit guard"} <= found.keys()
    failed = {name: text for name, text in found.items() if text.startswith("FAIL")}
    units = {name for name in failed if name.startswith("unit ")}
    assert all("it is not started" in failed[name] for name in units)
    # Their files lie where a site with a single engine has them.
    assert failed.keys() - units <= {"vocabularies chat", "vocabularies small"}


WAITING = """\
#!/bin/sh
echo "$0 $*" >>"{log}"
{answer}
"""


@pytest.mark.parametrize(
    ("state", "serves", "requests"),
    [("active", True, 1), ("inactive", False, 0), ("failed", False, 0)],
)
def test_engine_waits_for_those_before_it(
    state: str, serves: bool, requests: int, tmp_path: Path
) -> None:
    log, programs = tmp_path / "log", tmp_path / "bin"
    programs.mkdir()
    for name, answer in (("systemctl", f"echo {state}"), ("curl", "exit 0" if serves else "false")):
        file = programs / name
        file.write_text(WAITING.format(log=log, answer=answer))
        file.chmod(0o755)
    script = folder("one-node", "spark1").path / "opt/sparkgen/wait-engines.sh"
    ran(script, "chat", env={"PATH": f"{programs}:/usr/bin:/bin"})
    calls = log.read_text()
    assert "sparkgen-engine-chat" in calls
    assert calls.count("/bin/curl ") == requests


def test_launch_of_a_group(tmp_path: Path) -> None:
    stand_ins = StandIns(tmp_path)
    node = folder("one-node", "spark1")
    site = site_of("one-node")
    small = next(part for part in site.groups if part.group == "small")
    container = small.head.container
    stand_ins.add(container.entrypoint)
    tree = node.copy(tmp_path / "tree")
    started = launch(tree, "--group", "small", "--bare")
    arguments = stand_ins.replaced(container.entrypoint, *started)
    assert arguments == [word for words in container.command for word in words]
    assert stand_ins.environment(container.entrypoint)["VLLM_HOST_IP"] == "10.0.0.11"


def test_image_of_a_group_gets_to_its_nodes_only(tmp_path: Path) -> None:
    stand_ins = StandIns(tmp_path)
    stand_ins.add("docker", DOCKER)
    stand_ins.add("ssh", SSH)
    node = folder("built", "spark1")
    image = tmp_path / "image-chat"
    shutil.copytree(node.bundle.folder / "operator/groups/chat/image", image)
    tree = node.copy(tmp_path)
    done = stand_ins.run(*on_node(tree, "bash", str(image / "build.sh")))
    assert done.returncode == 0, done.stderr
    assert "spark2 has it now" in done.stdout
    calls = (stand_ins.calls / "ssh").read_text()
    assert "10.0.0.12" in calls
    assert "10.0.0.13" not in calls
    assert "--tag vllm-own:1 " in (stand_ins.calls / "docker").read_text()


def test_launch_names_the_groups() -> None:
    script = folder("one-node", "spark1").path / "opt/sparkgen/launch.sh"
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.split(": ")[-1].split() == ["chat", "small"]


# Effects of a change


def built(text: str) -> tuple[Site, Tree]:
    """A site and its bundle."""
    site = read_site("site.yaml", text.encode()).site
    assert site
    return site, render(site, "")


def reviewed(before: str, after: str, *, is_known: bool = True) -> Review:
    """The review of the change from one site to the other."""
    old, tree = built(before)
    cables = tuple((str(cable.a), str(cable.b)) for cable in old.cables)
    committed = Committed(tree, tuple(node.name for node in old.nodes), cables)
    return review(*built(after), Before("main", old.name, committed, old if is_known else None))


SWITCH = (GOLDEN / "groups-switch/site.yaml").read_text()
SMALLER = ("context_length: 131072", "context_length: 65536")
OTHER = ("gpt-oss-20b, context_length: 65536", "gpt-oss-20b, context_length: 32768")
LIMIT = "time limit 23 min"


@pytest.mark.parametrize("is_known", [True, False])
def test_one_group_restarts_alone(is_known: bool) -> None:
    change = reviewed(SWITCH, SWITCH.replace(*OTHER), is_known=is_known)
    told = f"small restarts; nobody answers to gpt-oss-20b in steps 2 to 5, {LIMIT}"
    assert change.downtime == told
    assert change.outcome.seconds == 120 + 60 + 1200
    restarted = [node.name for node in change.nodes if node.stops and node.starts]
    assert restarted == ["spark7", "spark8"]
    assert [str(step) for step in change.outcome.steps][1:] == [
        "stop the engine of small, the head first: spark8, spark7",
        "install.sh --apply: spark7, spark8",
        "start the engine of small, the head last: spark7, spark8",
        "wait until these serve: spark8",
    ]


def test_a_name_answers_while_its_replicas_restart() -> None:
    change = reviewed(SWITCH, SWITCH.replace(*SMALLER))
    assert change.downtime.endswith(
        "one engine alone answers to gpt-oss-120b meanwhile, at its own address"
    )
    assert change.outcome.seconds is None
    steps = [str(step).partition(":")[0] for step in change.outcome.steps]
    assert steps[1:] == [
        "stop the engine of chat, the head first",
        "install.sh --apply",
        "start the engine of chat, the head last",
        "wait until these serve",
        "stop the engine of chat-b, the head first",
        "install.sh --apply",
        "start the engine of chat-b, the head last",
        "wait until these serve",
    ]


def test_name_that_a_model_loses() -> None:
    model = "gpt-oss-20b, context_length: 65536"
    named = SWITCH.replace(model, f"{model}, aliases: [assistant, helper]")
    assert named != SWITCH
    change = reviewed(named, named.replace("assistant, helper", "helper"))
    assert change.downtime == (
        "small restarts; nobody answers to assistant any more; "
        f"nobody answers to gpt-oss-20b and helper in steps 2 to 5, {LIMIT}"
    )
    # The same served name, now as its only one.
    first = named.replace("aliases: [assistant, helper]", "served_name: helper")
    assert "nobody answers to gpt-oss-20b and assistant any more" in reviewed(named, first).downtime


def test_address_that_clients_lose() -> None:
    with_gateway = (GOLDEN / "groups-gateway/site.yaml").read_text()
    without = re.sub(r"  (gateway|web_ui): .*\n", "", with_gateway)
    there = "http://10.0.0.15:8088"
    gone, *keys = reviewed(with_gateway, without).clients
    assert gone.startswith(f"nothing answers at {there} any more: assistant and helper at http")
    assert ", qwen3-embedding-8b at http://10.0.0.15:8000" in gone
    assert any(
        told.endswith("need the engine's key now, VLLM_API_KEY in secrets.env") for told in keys
    )
    assert "requests to http://10.0.0.15:8000 need no key any more" in keys
    # Groups on the gateway's node listen only locally now, and the firewall closes the others.
    *gone, key, page = reviewed(without, with_gateway, is_known=False).clients
    assert [told.partition(" any more: ")[0] for told in gone] == [
        f"nothing answers at http://10.0.0.{host}:8000" for host in (11, 13, 15)
    ]
    assert all(told.endswith(f" at {there}") for told in gone)
    assert key == (
        f"requests to {there} need a key of their own now: "
        "sudo /opt/sparkgen/proxy.sh add NAME on spark5 makes one"
    )
    assert page == "web UI is at http://10.0.0.15:3000 now"


def test_what_a_gateway_keeps_moves_with_it() -> None:
    """Keys come before the proxy starts, and chats once the old page has stopped."""
    text = (GOLDEN / "groups-gateway/site.yaml").read_text()
    moved = text.replace("gateway: {node: spark5}", "gateway: {node: spark1}")
    steps = [str(step) for step in reviewed(text, moved).outcome.steps]
    wanted = [
        "copy the clients' keys, /etc/sparkgen/proxy.keys, from spark5: spark1",
        "systemctl start sparkgen-proxy: spark1",
        "stop the engine of embed: spark5",
        "install.sh --apply: spark5",
        "copy the chat page's data, the Docker volume sparkgen-web-ui, from spark5: spark1",
    ]
    assert [step for step in steps if step in wanted] == wanted
    assert not reviewed(text, text + " ").outcome.steps


def test_another_group_on_the_same_nodes() -> None:
    small = SWITCH.index("  - name: small")
    rest = SWITCH.index("services:")
    third = "  - name: chat-c\n    nodes: [spark7, spark8]\n    same_as: chat\n"
    change = reviewed(SWITCH, SWITCH[:small] + third + SWITCH[rest:])
    assert change.downtime == "small is replaced by chat-c; nobody answers to gpt-oss-20b any more"
    steps = [str(step) for step in change.outcome.steps]
    assert "stop the engine of small, the head first: spark8, spark7" in steps
    started = steps.index("start the engine of chat-c, the head last: spark8, spark7")
    assert "wait until these serve: spark7" in steps[started + 1 :]
    later = ("load operator/", "systemctl restart sparkgen-guard", "wait until")
    assert all(step.startswith(later) for step in steps[started + 1 :])
    assert not any("engine of chat," in step or "chat-b" in step for step in steps)


MODEL, OTHER_MODEL = "gpt-oss-120b", "gpt-oss-20b"
# Groups by name: their nodes, model and served name.
Groups = Mapping[str, tuple[Sequence[int], str, str]]


def rack(groups: Groups) -> str:
    """A site of these groups on a switch."""
    nodes = sorted(node for members, _, _ in groups.values() for node in members)
    site = {
        "version": 1,
        "name": "lab",
        "nodes": [
            {"name": f"n{n}", "host": n, "management": {"address": f"10.0.0.{n}/24"}} for n in nodes
        ],
        "cabling": [{"endpoints": [f"n{n}:p0", f"rack:{n}"]} for n in nodes],
        "topology": {"kind": "switch"},
        "groups": [
            {
                "name": name,
                "nodes": [f"n{node}" for node in members],
                "model": {"name": model, "context_length": 8192, "served_name": served_name},
                "engine": {
                    "name": "vllm",
                    "version": "0.33.0",
                    "image": "vllm/vllm-openai:v0.33.0",
                    "parallel": {"pipeline": len(members)},
                },
            }
            for name, (members, model, served_name) in groups.items()
        ],
    }
    return json.dumps(site)


def waves(change: Review) -> list[str]:
    """The stops, starts and waits, in order."""
    steps = (str(step).replace("the engine of ", "") for step in change.outcome.steps)
    words = (re.match(r"(stop|start(?! the node)|wait) (\S+?)[,:]? ", step) for step in steps)
    return [f"{word[1]} {word[2]}".replace(" until", "") for word in words if word]


PAIRS: Groups = {
    "a": ((1, 2), MODEL, "chat"),
    "b": ((3, 4), MODEL, "chat"),
    "c": ((5,), MODEL, "x"),
}
CHANGES: Mapping[str, tuple[Groups, Groups, list[str], str]] = {
    "a node moves from one replica to the other": (
        {"a": ((1, 2), MODEL, "chat"), "b": ((3, 4, 5), MODEL, "chat")},
        {"a": ((1, 2, 5), MODEL, "chat"), "b": ((3, 4), MODEL, "chat")},
        ["stop b", "start b", "wait", "stop a", "start a", "wait"],
        "a and b restart; one engine alone answers to chat meanwhile, at its own address",
    ),
    "and back": (
        {"a": ((1, 2, 5), MODEL, "chat"), "b": ((3, 4), MODEL, "chat")},
        {"a": ((1, 2), MODEL, "chat"), "b": ((3, 4, 5), MODEL, "chat")},
        ["stop a", "start a", "wait", "stop b", "start b", "wait"],
        "a and b restart; one engine alone answers to chat meanwhile, at its own address",
    ),
    "a node moves from another name": (
        PAIRS,
        PAIRS
        | {"a": ((1, 2, 5), MODEL, "chat"), "c": ((3,), MODEL, "x"), "b": ((4,), MODEL, "chat")},
        ["stop b", "start c", "start b", "wait", "stop a", "stop c", "start a", "wait"],
        "a, b and c restart; one engine alone answers to chat meanwhile, at its own address",
    ),
    "replicas trade places": (
        PAIRS,
        PAIRS | {"a": ((3, 4), MODEL, "chat"), "b": ((1, 2), MODEL, "chat")},
        ["stop a", "start b", "wait", "stop b", "start a", "wait"],
        "a and b restart; one engine alone answers to chat meanwhile, at its own address",
    ),
    "a replica more": (
        {name: PAIRS[name] for name in ("a", "c")},
        PAIRS,
        ["start b", "wait"],
        "the API stays up",
    ),
    "another model behind the name of two": (
        PAIRS,
        PAIRS | {"a": ((1, 2), OTHER_MODEL, "chat"), "b": ((3, 4), OTHER_MODEL, "chat")},
        ["stop a", "start a", "wait", "stop b", "start b", "wait"],
        "a and b restart; one engine alone answers to chat meanwhile, at its own address",
    ),
    "another model behind one of two": (
        PAIRS,
        PAIRS | {"b": ((3, 4), OTHER_MODEL, "chat")},
        ["stop b", "start b", "wait"],
        "b restarts; one engine alone answers to chat meanwhile, at its own address",
    ),
    "another model where there is one": (
        PAIRS,
        PAIRS | {"c": ((5,), OTHER_MODEL, "x")},
        ["stop c", "start c", "wait"],
        f"c restarts; nobody answers to x in steps 3 to 6, {LIMIT}",
    ),
    "another name": (
        PAIRS,
        PAIRS | {"c": ((5,), MODEL, "y")},
        ["stop c", "start c", "wait"],
        "c restarts; y is answered in place of x; "
        f"nobody answers to x and y in steps 2 to 5, {LIMIT}",
    ),
    "a group takes the place of a replica": (
        PAIRS,
        {"c": PAIRS["c"], "a": PAIRS["a"], "d": ((3, 4), OTHER_MODEL, "y")},
        ["stop b", "start d", "wait"],
        "b is replaced by d; the API stays up",
    ),
    "what is gone goes on until its successor serves": (
        {name: PAIRS[name] for name in ("a", "c")},
        {"c": PAIRS["c"], "e": ((3, 4), MODEL, "chat")},
        ["start e", "wait", "stop a"],
        "a is replaced by e; the API stays up",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_order_that_keeps_names_answering(name: str) -> None:
    before, after, order, downtime = CHANGES[name]
    change = reviewed(rack(before), rack(after))
    assert (waves(change), change.downtime) == (order, downtime)


def test_a_gateway_answers_while_a_replica_restarts() -> None:
    before, after, _, _ = CHANGES["another model behind one of two"]
    # Without a limit of its own for the first token, another model would restart the proxy too.
    gateway = '{"services": {"gateway": {"first_token": 600}, "proxy": true}, '
    texts = [rack(groups).replace("{", gateway, 1) for groups in (before, after)]
    change = reviewed(*texts)
    assert change.downtime == "b restarts; one engine alone answers to chat meanwhile"
    # A gateway that is new with this change is not yet what clients use.
    change = reviewed(rack(before), texts[1])
    assert change.downtime.endswith(
        "one engine alone answers to chat meanwhile, at its own address"
    )


def some_groups(rng: random.Random) -> Groups:
    """Groups of five nodes, some of which share a served name."""
    nodes = rng.sample(range(1, 6), 5)
    found: dict[str, tuple[Sequence[int], str, str]] = {}
    while nodes:
        size = min(len(nodes), rng.choice((1, 1, 2, 2, 3)))
        name = rng.choice([each for each in "abcde" if each not in found])
        members = tuple(nodes.pop() for _ in range(size))
        found[name] = members, rng.choice((MODEL, OTHER_MODEL)), rng.choice(("chat", "x"))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_random_orders_keep_names_answering(seed: int) -> None:
    """No node ever runs two engines, and every name that should stay up answers at every step."""
    rng = random.Random(seed)
    before, after = some_groups(rng), some_groups(rng)
    change = reviewed(rack(before), rack(after))
    names = {served for _, _, served in before.values()} & {s for _, _, s in after.values()}
    kept = names - {outage.name for outage in change.outcome.outages}
    # A group that moves may run on its new nodes before it stops on the old ones.
    running, started = [*before.items()], list[tuple[str, tuple[Sequence[int], str, str]]]()
    for word, _, group in (step.partition(" ") for step in waves(change)):
        if word == "stop":
            running.remove((group, before[group]))
        elif word == "start":
            started.append((group, after[group]))
        else:
            running, started = running + started, []
        assert kept <= {served for _, (_, _, served) in running}
        nodes = [node for _, (members, _, _) in running + started for node in members]
        assert len(nodes) == len({*nodes})
    assert sorted(running) == sorted(after.items())


def test_lock_covers_all_groups() -> None:
    reading = read_site("site.yaml", SWITCH.encode())
    assert reading.declaration
    assert {name for name, _ in reading.declaration.images} == {
        "vllm/vllm-openai:v0.33.0",
        "lmsysorg/sglang:v0.5.23-cu130",
    }
    lock = Lock(
        (LockedImage("vllm/vllm-openai:v0.33.0", digest=f"sha256:{'a' * 64}"),),
        (LockedModel("openai/gpt-oss-20b", "main", "b" * 40),),
    )
    locked = reading.declaration.locked(lock)
    pinned = {group.group: "@" in group.engine.image for group in locked.groups}
    assert pinned == {"chat": True, "chat-b": True, "code": False, "small": True}
    lacking = {finding.path for finding in older(reading.declaration, lock)}
    assert lacking == {
        ("groups", 0, "model", "name"),
        ("groups", 2, "engine", "image"),
        ("groups", 2, "model", "name"),
        ("services", "monitoring", "image"),
    }


# Sites at random


@pytest.mark.parametrize("seed", range(25))
def test_random_groups_build(seed: int) -> None:
    data = random_site(random.Random(seed))
    reading = read_site("site.yaml", json.dumps(data).encode())
    site = reading.site
    assert site, [(finding.rule, finding.message, finding.path) for finding in reading.findings]
    tree = render(site, "")
    listed = [
        (each["name"], group["nodes"], group["active"])
        for group in data["groups"]
        for each in (group, *group.get("alternatives", ()))
    ]
    assert [part.group for part in site.groups] == [name for name, _, _ in listed]
    for part, (name, nodes, active) in zip(site.groups, listed, strict=True):
        assert [node.name for node in part.nodes] == nodes
        assert part.is_active is (name == active)
        for node in part.nodes:
            environment = f"{node.name}/etc/sparkgen/groups/{part.group}.env"
            assert environment in tree
            compose = tree[f"{node.name}/opt/sparkgen/groups/{part.group}/compose.yaml"].text
            assert f"container_name: sparkgen-engine-{part.group}\n" in compose
            # Every file of the bundle that its container mounts exists.
            for mount in node.container.mounts:
                if mount.path.startswith("/opt/sparkgen/"):
                    assert f"{node.name}{mount.path}" in tree
    for node in site.nodes:
        # Of alternatives only one runs at a time, and everything else that runs has other ports.
        parts = [slot[0] for slot in site.slots_of(node.name)]
        listening = [part.listeners(part.node(node.name)) for part in parts]
        ports = [*site.listeners(node).values(), *chain(*(used.values() for used in listening))]
        assert len(ports) == len({*ports}), node.name
        shares = sum(part.engine.memory_utilization for part in parts)
        assert shares < 0.9, node.name
    if "gateway" in data["services"]:
        host = data["services"]["gateway"]["node"]
        text = tree[f"{host}/opt/sparkgen/proxy/routes.json"].text
        urls = re.findall(r'"url": "([^"]+)"', text)
        heads = {part.head.name: part.engine.api for part in site.groups}
        assert len(urls) == len(site.groups)
        assert heads.keys() - {host} == {
            name for name, api in heads.items() if api.url in urls and name != host
        }
    assert not any("sparkgen-engine.service" in path for path in tree)
    for path, file in tree.items():
        if path.endswith(".service"):
            assert "\nExecStart=" in file.text, path
