"""Plans: for random changes, between golden sites, and a table of every kind of change.

A plan is carried out in a model of the cluster as it is made. Here each is taken apart: the model
has to refuse it without any of its steps. [changes.md](changes.md) has one change of each kind,
with what people are told.
"""

import copy
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from draws import sample
from plans import (
    Built,
    Plan,
    address,
    addresses,
    built,
    delays,
    faults,
    golden,
    login,
    node_name,
    planned,
    random_plans,
    swaps,
)
from racks import ring_text, site_text
from random_sites import random_site
from releases import bundles
from ruamel.yaml import YAML

from generator.bundle.committed import bundle_of
from generator.bundle.tree import Tree
from generator.operation.actions import SERVICE_SECONDS
from generator.operation.answers import View
from generator.operation.state import Cluster, Desired
from generator.records import replace
from generator.resources import ROOT
from generator.review.impact import Review, review
from generator.review.nodes import node_reviews
from generator.sitefile.disk import beside

TABLE = Path(__file__).with_name("changes.md")
SOME = 12


@pytest.mark.drawn
@pytest.mark.parametrize("seed", range(sample(4)))
def test_random_changes(seed: int) -> None:
    """As `python tests/plans.py` does for thousands."""
    refused = 0
    for what, before, after in random_plans(1000 + seed, SOME):
        found = planned(before, after)
        assert not list(faults(found)), what
        assert not list(contradictions(found)), what
        refused += swaps(found)[1]
    assert refused, "no two steps ever depend on each other"


def contradictions(found: Plan) -> Iterator[str]:
    """Where the table of nodes and the steps differ."""
    both = (found.change.before, found.change.after)
    names = dict.fromkeys((name for bundle in both for name in bundle.folders), ())
    for node in node_reviews(found.change, names):
        own = [step.text for step in found.outcome.steps if node.name in step.nodes]
        kept = node.state not in ("new", "removed")
        run = {text for text in own if re.match(r"systemctl|/opt/sparkgen/(?!proxy)", text)}
        told = {word for word in node.done if re.match(r"systemctl|/opt/sparkgen/", word)}
        if kept and run != told:
            yield f"{node.name}: {run} are done, {told} are told"
        stops, starts = (
            any(t.startswith(f"{w} the engine") for t in own) for w in ("stop", "start")
        )
        engine = " ".join(word for word in node.done if word.startswith("engine "))
        if not found.outcome.switched and (stops, starts) != (node.stops, node.starts):
            yield f"{node.name}: {own}, but {engine}"


@pytest.mark.drawn
@pytest.mark.parametrize("seed", range(sample(2)))
def test_what_groups_are_called_makes_no_difference(seed: int) -> None:
    """They restart under other names, and behind a gateway their replicas answer meanwhile."""
    rng = random.Random(2000 + seed)
    drained = 0
    for _ in range(SOME):
        data = random_site(rng)
        names = [group["name"] for group in data["groups"]]
        new = dict(
            zip(names, rng.choice((names[1:] + names[:1], [f"{n}x" for n in names])), strict=True)
        )
        before, after = built(json.dumps(data)), built(json.dumps(called(data, new)))
        assert before
        assert after
        found = planned(before, after)
        assert not [*faults(found), *delays(found)], data
        assert not found.outcome.lost, data
        assert None not in found.outcome.stopped.values(), data
        if "gateway" in data["services"]:
            groups = View(found.change).groups(found.change.now)
            spare = {name for name, behind in groups.items() if len(behind) > 1}
            told = {each.name: each.seconds for each in found.outcome.outages}
            assert all(told.get(name, 0) <= SERVICE_SECONDS for name in spare), data
            drained += sum(" drain " in step.text for step in found.outcome.steps)
    assert drained, "no replica was ever drained"


def called(data: dict[str, Any], new: Mapping[str, str]) -> dict[str, Any]:
    """A site whose groups are called something else."""
    data = copy.deepcopy(data)
    for group in data["groups"]:
        for key in ("name", "same_as", "active"):
            if group.get(key) in new:
                group[key] = new[group[key]]
        for each in group.get("alternatives", ()):
            if each.get("same_as") in new:
                each["same_as"] = new[each["same_as"]]
    return data


def test_what_nodes_are_called_makes_no_difference() -> None:
    """An engine has the same head and address, whatever the files before call its nodes."""
    rng = random.Random(3000)
    for _ in range(SOME):
        data = random_site(rng)
        renamed = copy.deepcopy(data)
        for _ in range(rng.randint(1, 3)):
            node_name(renamed, rng)
        before, after = built(json.dumps(data)), built(json.dumps(renamed))
        assert before
        assert after
        change = planned(before, after).change
        ranks = [[(e.group, e.nodes) for e in d.engines] for d in (change.before, change.after)]
        assert ranks[0] == ranks[1], data
        assert change.before.doors == change.after.doors, data


@pytest.mark.parametrize("seed", range(3))
def test_keys_of_mpi_are_made_once_all_nodes_are_reached(seed: int) -> None:
    """The commands that make them go to the addresses and logins that the nodes will have."""
    rng = random.Random(4000 + seed)
    path = ROOT / "tests" / "golden" / "trtllm-mpi-direct" / "site.yaml"
    data = YAML(typ="safe").load(path)
    made = 0
    for edit in (address, addresses, login):
        edited = copy.deepcopy(data)
        edit(edited, rng)
        before, after = built(json.dumps(data)), built(json.dumps(edited))
        assert before
        assert after
        found = planned(before, after)
        for moment in found.moments:
            if moment.action.title.startswith("make the keys"):
                made += 1
                for name, folder in found.change.after.folders.items():
                    node = moment.before.nodes[name]
                    assert (node.address, node.user) == (folder.address, folder.user), edited
    assert made, "no keys were made"


def test_logins_of_the_head_are_set_up_once_all_nodes_are_reached() -> None:
    """The script goes to every node by its new address."""
    rng = random.Random(6000)
    seen = 0
    for _ in range(SOME):
        data = random_site(rng)
        data["services"]["ssh"] = True
        edited = copy.deepcopy(data)
        rng.choice((address, addresses, login))(edited, rng)
        before, after = built(json.dumps(data)), built(json.dumps(edited))
        if not before or not after:
            continue
        found = planned(before, after)
        for moment in found.moments:
            if moment.action.title.endswith("ssh-keys.sh"):
                seen += 1
                for name, folder in found.change.after.folders.items():
                    node = moment.before.nodes[name]
                    assert (node.address, node.user) == (folder.address, folder.user), edited
    assert seen, "nobody had to set up logins"


def test_a_page_is_sent_on_only_where_a_proxy_listens() -> None:
    """Encryption begins on another node, or on the same one."""
    path = ROOT / "tests" / "golden" / "groups-encrypted" / "site.yaml"
    data = YAML(typ="safe").load(path)
    plain = copy.deepcopy({key: value for key, value in data.items() if key != "access"})
    for node, is_sent_on in (("spark1", True), ("spark2", False)):
        data["services"]["gateway"] = {"node": node}
        before, after = built(json.dumps(plain)), built(json.dumps(data))
        assert before
        assert after
        clients = review(after.site, after.tree, before.before).clients
        said = [line for line in clients if "http://10.0.0.11:3000" in line]
        assert said
        assert [" are sent on to " in line for line in said] == [is_sent_on] * len(said)


@pytest.mark.parametrize("seed", range(6))
def test_cables_are_where_the_words_put_them(seed: int) -> None:
    """Whoever has numbered the cables as before, and follows the steps, gets the new cabling."""
    rng = random.Random(5000 + seed)
    texts = []
    for _ in range(2):
        names = [f"spark{number}" for number in range(1, 6)]
        rng.shuffle(names)
        pairs = zip(names, [*names[1:], names[0]], strict=True)
        cabling = [{"endpoints": [f"{one}:p0", f"{other}:p1"]} for one, other in pairs]
        nodes = [
            {"name": name, "management": {"address": f"10.0.0.1{name[-1]}/24"}} for name in names
        ]
        site = {"version": 1, "name": "ring", "nodes": nodes, "cabling": cabling}
        texts.append(json.dumps(site | {"topology": {"kind": "ring"}}))
    before, after = map(built, texts)
    assert before
    assert after
    found = planned(before, after)
    ends = {f"cable {cable.number}": {*cable.ends} for cable in found.change.before.cables}
    fresh: dict[str, set[str]] = {}
    for step in found.outcome.steps:
        if unplug := re.fullmatch(r"unplug (cable \d+) from (.+)", step.text):
            ends[unplug[1]] -= {*unplug[2].split(" and ")}
        elif plug := re.fullmatch(r"plug (cable \d+)(?: \((.+) until now\))? into (.+)", step.text):
            into = {*plug[3].split(" and ")}
            fresh[plug[1]] = into | (ends[plug[2] or plug[1]] if len(into) == 1 else set())
    for cable in found.change.after.cables:
        where = fresh.get(f"cable {cable.number}")
        assert where in (None, {*cable.ends}), [step.text for step in found.outcome.steps]
    assert fresh or texts[0] == texts[1]


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
@pytest.mark.parametrize("is_behind_gateway", [False, True])
def test_who_answers_to_a_former_name(engine: str, is_behind_gateway: bool) -> None:
    """SGLang answers whatever a request asks for; vLLM and a gateway refuse unknown names."""
    text = groups("a chat n1", "b code n2")
    if engine == "sglang":
        text = re.sub(r"\{name: vllm, version: 0.33.0, image: \S+", f"{{{', '.join(OTHER)},", text)
    text += "services: {gateway: {node: n3}}\n" if is_behind_gateway else ""
    before, after = built(text), built(text.replace("served_name: chat", "served_name: talk"))
    assert before
    assert after
    found = review(after.site, after.tree, before.before)
    said = "requests for chat to http://10.0.0.1:30000 are still answered, by talk: SGLang "
    is_answered = engine == "sglang" and not is_behind_gateway
    assert any(line.startswith(said) for line in found.clients) == is_answered
    is_lost = any(line.startswith("nobody answers to chat any more") for line in found.clients)
    assert is_lost != is_answered


def test_an_engine_that_goes_is_drained_before_the_gateway_forgets_it() -> None:
    """Requests that it still answers end before it stops, since nobody knows them afterwards."""
    replicas = groups("a chat n1", "b chat n2", "c chat n3") + "services: {gateway: {node: n3}}\n"
    without = groups("a chat n1", "c chat n3") + "services: {gateway: {node: n3}}\n"
    before, after = built(replicas), built(without)
    assert before
    assert after
    found = planned(before, after)
    told = [step.text for step in found.outcome.steps]
    own = ["/opt/sparkgen/proxy.sh drain b", "stop the engine of b"]
    at = [told.index(text) for text in (*own, "systemctl reload sparkgen-proxy")]
    assert at == sorted(at), told
    assert not list(faults(found))


def in_order(before: Built | None, after: Built | None, *texts: str) -> Plan:
    """The plan, in which these steps come after each other."""
    assert before
    assert after
    found = planned(before, after)
    told = [str(step) for step in found.outcome.steps]
    at = [next((n for n, step in enumerate(told) if text in step), -1) for text in texts]
    assert -1 not in at, told
    assert at == sorted(at), told
    assert not list(faults(found))
    return found


DOOR = "services: {gateway: {node: n3}}\n"


def test_the_last_engine_of_a_name_is_drained_before_the_gateway_forgets_it() -> None:
    """Nobody answers to the name afterwards, so that nothing is lost by draining it."""
    before = built(groups("a chat n1", "b code n2", "c own n3") + DOOR)
    after = built(groups("a chat n1", "c own n3") + DOOR)
    found = in_order(before, after, "drain b", "stop the engine of b", "reload sparkgen-proxy")
    assert not found.outcome.outages


def test_a_new_replica_serves_before_the_gateway_knows_it() -> None:
    before = built(groups("a chat n1", "c own n3") + DOOR)
    after = built(groups("a chat n1", "b chat n2", "c own n3") + DOOR)
    in_order(before, after, "start the engine of b", "wait until", "reload sparkgen-proxy")


def test_nothing_is_sent_to_an_address_that_the_gateway_does_not_know_yet() -> None:
    """Replicas get other addresses: an engine there gets requests only from a proxy that knows."""
    text = groups("a chat n1", "b chat n2", "c own n3") + DOOR
    before, after = built(text), built(re.sub(r"10\.0\.0\.([12])/", r"10.0.0.4\1/", text))
    texts = ("drain a", "stop the engine of a", "systemctl reload sparkgen-proxy", "undrain a")
    found = in_order(before, after, *texts)
    for moment in found.moments:
        group = moment.action.title.partition(" undrain ")[2]
        doors = [b for b in (found.change.before, found.change.after) if group]
        urls = {b.by_group[group].url for b in doors if is_in_force(b, moment.before)}
        assert urls <= {engine.url for engine in moment.before.serving.values()}


def is_in_force(bundle: Desired, now: Cluster) -> bool:
    """Whether the proxy runs as a bundle has it."""
    running = now.nodes["n3"].running["sparkgen-proxy"]
    return running == bundle.folders["n3"].programs["sparkgen-proxy"]


def test_a_node_is_given_up_once_the_replica_serves_that_was_on_it() -> None:
    text = groups("a chat n1", "b chat n2", "c own n3") + DOOR
    before, after = built(text), built(text.replace("n2", "n9").replace("10.0.0.2/", "10.0.0.9/"))
    in_order(before, after, "start the engine of b", "wait until", "uninstall: n2")


def test_clients_hear_of_the_ports_that_a_new_firewall_closes() -> None:
    """They have used engines beside the gateway; a firewall lets the gateway in alone."""
    text = groups("a chat n1", "b code n2", "c own n3") + DOOR
    firewall = text.replace("{gateway", "{firewall: true, gateway")
    before, after = built(text), built(firewall)
    assert before
    assert after
    said = review(after.site, after.tree, before.before).clients
    closed = ("http://10.0.0.1:8000", "http://10.0.0.2:8000")
    assert any(all(url in line for url in closed) and "firewall closes" in line for line in said)
    back = review(before.site, before.tree, after.before).clients
    assert not any("the firewall closes" in line for line in back)


def test_a_name_that_nobody_answers_to_does_not_wait_for_an_engine_that_goes() -> None:
    """The replicas of one name get new heads; the gateway has to reload before it finds them."""
    old = ("a talk n1 n2", "b talk n3 n4", "c chat n5", "d chat n6", "e own n7")
    new = ("a talk n2 n1", "b talk n4 n3", "d chat n6", "e own n7")
    before, after = (
        built(groups(*named, count=7) + "services: {gateway: {node: n7}}\n") for named in (old, new)
    )
    assert before
    assert after
    found = planned(before, after)
    told = [step.text for step in found.outcome.steps]
    assert told.index("systemctl reload sparkgen-proxy") < told.index("stop the engine of c")
    # Installing and reloading, and no start of an engine.
    assert [(one.name, one.seconds) for one in found.outcome.outages] == [("talk", 190)]
    assert not list(faults(found))


def test_a_restart_of_the_gateway_ends_drains() -> None:
    """Nobody undrains an engine of a gateway that is about to restart with the chat page."""
    data = YAML(typ="safe").load(CLEAR)
    encrypted = YAML(typ="safe").load(ENCRYPTED)
    for group in encrypted["groups"]:
        if "model" in group:
            group["model"]["context_length"] //= 2
    before, after = built(json.dumps(data)), built(json.dumps(encrypted))
    assert before
    assert after
    found = planned(before, after)
    told = [step.text for step in found.outcome.steps]
    restart = told.index("systemctl restart sparkgen-proxy")
    assert any(" drain " in text for text in told), told
    assert not any(" undrain " in text for text in told[:restart]), told
    assert not list(faults(found))


def test_an_engine_is_awaited_after_the_one_before_it_stopped() -> None:
    """It stops for its links, and starts as it was but with other engines to take turns with."""
    turns = "    alternatives: [{name: z, model: {name: gpt-oss-20b, served_name: z, "
    turns += "context_length: 4096}, engine: {name: vllm, version: 0.33.0, "
    turns += "image: 'vllm/vllm-openai:v0.33.0'}}]\n"
    gateway, text = "services: {gateway: {node: n3}}\n", groups("a chat n1", "b chat n2")
    before = built(text + turns + gateway)
    after = built(text.replace("{kind: switch}", "{kind: switch, mtu: 9000}") + gateway)
    assert before
    assert after
    assert not list(faults(planned(before, after)))


def test_from_one_golden_site_to_another() -> None:
    """Sites that have nothing in common but the names of nodes; `--pairs` takes all of them."""
    sites = list(golden())
    for index, (name, before) in enumerate(sites):
        other, after = sites[(index * 7 + 3) % len(sites)]
        if name != other:
            assert not list(faults(planned(before, after))), f"{name} to {other}"


# Every kind of change


def replaced(*pairs: tuple[str, str]) -> Callable[[str], str]:
    """An edit of a site file."""

    def edit(text: str) -> str:
        for old, new in pairs:
            assert old in text, old
            text = text.replace(old, new)
        return text

    return edit


def case(name: str) -> str:
    return (ROOT / f"tests/golden/{name}/site.yaml").read_text()


def services(text: str) -> tuple[str, str]:
    """Services of a site that has none."""
    return "engine:\n", f"services: {{{text}}}\nengine:\n"


def groups(*declared: str, count: int = 3) -> str:
    """Nodes on a switch with groups, each with the name that it serves and its nodes."""
    numbers = range(1, count + 1)
    nodes = "".join(
        f"  - {{name: n{n}, management: {{address: 10.0.0.{n}/24}}}}\n" for n in numbers
    )
    cables = "".join(f"  - endpoints: [n{n}:p0, rack:{n}]\n" for n in numbers)
    listed = "".join(map(group, declared))
    return (
        f"version: 1\nname: lab\nnodes:\n{nodes}cabling:\n{cables}"
        f"topology: {{kind: switch}}\ngroups:\n{listed}"
    )


def group(declared: str) -> str:
    name, served, *nodes = declared.split()
    return (
        f"  - name: {name}\n    nodes: [{', '.join(nodes)}]\n"
        f"    model: {{name: gpt-oss-20b, context_length: 8192, served_name: {served}}}\n"
        "    engine: {name: vllm, version: 0.33.0, image: 'vllm/vllm-openai:v0.33.0', "
        f"parallel: {{pipeline: {len(nodes)}}}}}\n"
    )


def released(tree: Tree) -> Tree:
    """The bundle that 0.2.0 made of its example."""
    return bundle_of(bundles("0.2.0")["three-models"][0], tree).tree


class Kind(NamedTuple):
    """A change: a site file, and how it is edited or, for an upgrade, what was built before."""

    base: str
    edit: Callable[[str], str] = str
    was: Callable[[Tree], Tree] | None = None


PAIR, RING = site_text(), ring_text(3)
GATEWAY, TURNS = case("groups-gateway"), case("groups-alternatives")
SLURM, ENCRYPTED = case("vllm-slurm"), case("groups-encrypted")
CLEAR = re.sub(r"access:(\n  .*)+\n", "", ENCRYPTED)
VENV = case("direct-venv").replace("    - source: files/chat.jinja\n", "")
DRAFTS = (
    "    alternatives: [{name: draft, model: {name: gpt-oss-20b, context_length: 8192}, engine: "
    "{name: vllm, version: 0.33.0, image: 'vllm/vllm-openai:v0.33.0'}}]\nservices:"
)
JOB = "jobs: [{name: train, launcher: torchrun, image: 'nvcr.io/nvidia/pytorch:26.04-py3', "
TRAIN = f"{JOB}command: train.py, files: [{{path: /srv/data, target: /data}}]}}]\n"
CHECKED = (
    "  files: [{path: /srv/chat.jinja, target: /opt/chat.jinja, sha256: HASH}]\n"
    "  args: {chat-template: /opt/chat.jinja}\n  parallel"
)
VLLM = "  name: vllm\n  version: 0.33.0\n  image: vllm/vllm-openai:v0.33.0\n"
SGLANG = "  name: sglang\n  version: 0.5.23\n  image: lmsysorg/sglang:v0.5.23-cu130\n"
OTHER = [line.strip() for line in SGLANG.splitlines()]
KINDS: Mapping[str, Kind] = {
    "a service is added": Kind(PAIR, replaced(services("web_ui: true, guard: true"))),
    "a service is removed": Kind(
        replaced(services("web_ui: true, guard: true"))(PAIR), lambda text: PAIR
    ),
    "the gateway is added": Kind(
        re.sub(r"  (gateway|web_ui): .*\n", "", GATEWAY), lambda text: GATEWAY
    ),
    "the gateway moves": Kind(GATEWAY, replaced(("{node: spark5}", "{node: spark1}"))),
    "the gateway is removed": Kind(
        GATEWAY, lambda text: re.sub(r"  (gateway|web_ui): .*\n", "", text)
    ),
    "a proxy is added": Kind(
        PAIR,
        replaced(services("proxy: true"), ("  parallel", "  secrets: [VLLM_API_KEY]\n  parallel")),
    ),
    "a node is added": Kind(PAIR, lambda text: site_text(3)),
    "a node is removed": Kind(site_text(3), lambda text: PAIR),
    "a node is renamed": Kind(PAIR, replaced(("spark2", "anna"))),
    "a node is replaced": Kind(
        PAIR, replaced(("spark2", "spark9"), ("10.0.0.2/16", "10.0.0.9/16"))
    ),
    "a ring grows": Kind(RING, lambda text: ring_text(4)),
    "a ring shrinks": Kind(ring_text(4), lambda text: RING),
    "the head is swapped": Kind(
        groups("a chat n1 n2", "b code n3"), replaced(("nodes: [n1, n2]", "nodes: [n2, n1]"))
    ),
    "a cable moves": Kind(PAIR, replaced(("rack:2.0", "rack:7.0"))),
    "a ring is turned": Kind(RING, replaced(("p0,", "X"), ("p1]", "p0]"), ("X", "p1,"))),
    "the pool of subnets": Kind(
        PAIR, replaced(("{kind: switch}", "{kind: switch, subnet_pool: 10.77.0.0/16}"))
    ),
    "the MTU": Kind(PAIR, replaced(("{kind: switch}", "{kind: switch, mtu: 9000}"))),
    "a management address": Kind(RING, replaced(("10.0.0.2/24", "10.0.0.42/24"))),
    "the login": Kind(PAIR, replaced(("name: lab\n", "name: lab\nuser: ops\n"))),
    "the site is renamed": Kind(PAIR, replaced(("name: lab\n", "name: rack\n"))),
    "a site with a gateway is renamed": Kind(GATEWAY, replaced(("groups-gateway\n", "rack\n"))),
    "the served name": Kind(
        PAIR, replaced(("context_length", "served_name: assistant, context_length"))
    ),
    "the model": Kind(PAIR, replaced(("gpt-oss-120b", "gpt-oss-20b"))),
    "the context": Kind(PAIR, replaced(("8192", "16384"))),
    "the engine's version": Kind(PAIR, replaced(("0.33.0", "0.32.0"))),
    "another engine": Kind(PAIR, replaced((VLLM, SGLANG))),
    "a group is split": Kind(
        groups("a chat n1 n2", "b code n3"),
        lambda text: groups("a chat n1", "c chat n2", "b code n3"),
    ),
    "groups are merged": Kind(
        groups("a chat n1", "c chat n2", "b code n3"),
        lambda text: groups("a chat n1 n2", "b code n3"),
    ),
    "one of two replicas": Kind(
        groups("a chat n1", "c chat n2", "b code n3"),
        replaced(
            (
                "n2]\n    model: {name: gpt-oss-20b, context_length: 8192",
                "n2]\n    model: {name: gpt-oss-20b, context_length: 4096",
            )
        ),
    ),
    "two replicas trade nodes": Kind(
        GATEWAY,
        replaced(
            ("[spark1, spark2]", "X"),
            ("[spark3, spark4]", "[spark1, spark2]"),
            ("X", "[spark3, spark4]"),
        ),
    ),
    "a name moves to another model": Kind(
        GATEWAY,
        replaced(
            ("served_name: assistant, aliases: [helper]", "served_name: writer"),
            ("qwen3-embedding-8b,", "qwen3-embedding-8b, served_name: assistant,"),
        ),
    ),
    "a group is removed with its alternative": Kind(
        GATEWAY, lambda text: re.sub(r"  - name: embed\n(    .*\n)+", "", text)
    ),
    "one of two replicas takes another name": Kind(
        groups("a chat n1", "c chat n2", "b code n3"),
        lambda text: groups("a chat n1", "c code n2", "b code n3"),
    ),
    "a group moves to a free node": Kind(
        groups("a chat n1", "b code n3"), replaced(("nodes: [n1]", "nodes: [n2]"))
    ),
    "another alternative": Kind(
        TURNS, replaced(("  - name: chat\n", "  - name: chat\n    active: coder\n"))
    ),
    "another alternative of one node": Kind(
        replaced(("services:", DRAFTS))(TURNS),
        replaced(("  - name: embed\n", "  - name: embed\n    active: draft\n")),
    ),
    "secrets are added": Kind(PAIR, replaced(("  parallel", "  secrets: [HF_TOKEN]\n  parallel"))),
    "a firewall is added": Kind(PAIR, replaced(services("firewall: true"))),
    "a firewall is removed": Kind(replaced(services("firewall: true"))(PAIR), lambda text: PAIR),
    "files of one's own": Kind(
        PAIR,
        replaced(
            (
                "  parallel",
                "  files: [{path: /srv/chat.jinja, target: /opt/chat.jinja}]\n"
                "  args: {chat-template: /opt/chat.jinja}\n  parallel",
            )
        ),
    ),
    "another content of such a file": Kind(
        replaced(("  parallel", CHECKED), ("HASH", "a" * 64))(PAIR), replaced(("a" * 64, "b" * 64))
    ),
    "a job of Slurm": Kind(SLURM, replaced(("32768", "16384"))),
    "the release in an environment": Kind(VENV, replaced(("version: 0.33.0", "version: 0.32.0"))),
    "the processors of an environment's engine": Kind(VENV, replaced(("5-9,", "0-9,"))),
    "a training is added": Kind(PAIR, lambda text: text + TRAIN),
    "the engines' key": Kind(
        re.sub(r", secrets: \[VLLM_API_KEY\]", "", GATEWAY), lambda text: GATEWAY
    ),
    "encryption is added": Kind(CLEAR, lambda text: ENCRYPTED),
    "encryption is removed": Kind(ENCRYPTED, lambda text: CLEAR),
    "another certificate": Kind(
        ENCRYPTED,
        replaced(("{authority: site}", "{certificate: /etc/ssl/a.pem, key: /etc/ssl/a.key}")),
    ),
    "an upgrade of sparkgen": Kind(bundles("0.2.0")["three-models"][1], str, released),
}


def sides(kind: Kind) -> tuple[Built, Built]:
    """The bundle before and after a change."""
    before, after = built(kind.base), built(kind.edit(kind.base))
    assert before
    assert after
    return Built(before.site, kind.was(before.tree)) if kind.was else before, after


def simulated(found: Plan) -> dict[str, int]:
    """How long nobody answers to each name that is answered before and after, step by step.

    Each step takes its limit, and what people do takes no time. A name that goes is called what the
    same engine answers to then.
    """
    view, seconds = View(found.change), dict[str, int]()
    last = view.answers(found.moments[-1].after) if found.moments else {}
    title, worst = "", 0
    for moment in found.moments:
        is_new, title = moment.action.title != title, moment.action.title
        limit = moment.action.seconds or 0
        more = limit if is_new else max(0, limit - worst)
        worst = limit if is_new else max(worst, limit)
        for name, found_now in view.answers(moment.during).items():
            if not found_now and last[name] and view.answers(found.change.now, [name])[name]:
                seconds[name] = seconds.get(name, 0) + more
    called = {name: view.successors.get(name, name) for name in seconds}
    return {called[name]: time for name, time in seconds.items()}


def shown(name: str, found: Review, times: Mapping[str, int]) -> Iterator[str]:
    """A change as a person reads it."""
    yield f"## {name[0].upper()}{name[1:]}\n"
    yield f"Told: {found.downtime}.\n"
    if times:
        yield "Simulated: " + ", ".join(f"{n} {s} s" for n, s in times.items()) + ".\n"
    yield from (f"- Clients: {told}" for told in found.clients)
    yield from ([""] if found.clients else [])
    if found.upgrade:
        yield f"{found.upgrade}.\n"
        yield from (f"- {e.version}: {e.text[:60]}... {e.files}" for e in found.upgrade.entries[:2])
        yield ""
    for number, step in enumerate(found.outcome.steps, 1):
        down = f" (down: {', '.join(step.down)})" if step.down else ""
        yield f"{number}. {step}{down}"
    yield ""


@pytest.fixture(scope="module")
def changes() -> dict[str, tuple[Review, Plan]]:
    """The review of each kind of change, and its plan."""
    made = {}
    for name, kind in KINDS.items():
        before, after = sides(kind)
        bundle = replace(before.before.bundle, generator="sparkgen 0.2.0" if kind.was else "")
        old = replace(before.before, bundle=bundle, rebuilt=after.tree)
        made[name] = review(after.site, after.tree, old), planned(before, after)
    return made


@pytest.mark.golden
def test_every_kind_of_change(
    changes: dict[str, tuple[Review, Plan]], request: pytest.FixtureRequest
) -> None:
    lines = ["# Changes, and what `sparkgen diff` says of them\n"]
    for name, (found, plan) in changes.items():
        lines += shown(name, found, simulated(plan))
    text = "\n".join(lines)
    if request.config.getoption("update_golden"):
        TABLE.write_text(text)
    assert TABLE.read_text() == text, "meant? pytest --update-golden tests/test_plans.py"


def test_nobody_waits_longer_than_is_told(changes: dict[str, tuple[Review, Plan]]) -> None:
    for name, (found, plan) in changes.items():
        assert not [*faults(plan), *delays(plan)], name
        for served, seconds in simulated(plan).items():
            told = [outage.seconds for outage in found.outcome.outages if outage.name == served]
            assert seconds <= sum(told), (name, served)


def test_other_ranks_restart_only_where_there_are_some(
    changes: dict[str, tuple[Review, Plan]],
) -> None:
    for name, (found, plan) in changes.items():
        ranks = {node for e in plan.change.active if len(e.nodes) > 1 for node in e.nodes}
        told = {node.name for node in found.nodes if "the other ranks" in node.title}
        assert told <= ranks, name


def test_each_step_runs_what_its_node_has() -> None:
    """A script that a step names has been copied or installed by then."""
    for name, kind in KINDS.items():
        before, after = sides(kind)
        newly: dict[str, set[str]] = {"copied": set(), "installed": set()}
        found = planned(before, after)
        for moment in found.moments:
            title, node = moment.action.title, moment.action.node
            host = found.change.hosts.get(node, node)
            for root, path in re.findall(r"(~/sparkgen-bundle)?/(opt/sparkgen/[\w.-]+)", title):
                is_new = node in newly["copied" if root else "installed"]
                has = f"{node}/{path}" in after.tree if is_new else f"{host}/{path}" in before.tree
                assert has, f"{name}: {title}: {node}"
            if title.startswith("copy the folder"):
                newly["copied"].add(node)
            elif title.startswith("install.sh"):
                newly["installed"].add(node)


def test_an_idle_node_stays_off_until_its_old_cables_are_out() -> None:
    """A ring with nodes that run nothing is plugged into a switch: theirs wait for the others."""
    sites = (ROOT / "tests/golden/jobs-groups/site.yaml", ROOT / "sites/more/rack-switch.yaml")
    before, after = (built(path.read_text(), beside(path)) for path in sites)
    in_order(before, after, "unplug cable 2 from spark3:p1", "start the node again")
