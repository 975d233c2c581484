"""Changes that people make, each in a real repository: what a review says, and in which order."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Command
from documents import INPUTS, Workplace
from racks import ring_text, site_text
from repositories import commit, data, git, order, todo

COPY = "copy the folder (operator/deploy.sh --run): "
PAIR = "spark2 spark1"
STOP = "stop the engine, the head first: spark1 spark2"
APPLY = f"install.sh --apply: {PAIR}"
CONFIRMED = "install.sh --apply, then install.sh --confirm in a new session within 120 s: "
START = f"start the engine, the head last: {PAIR}"
WAIT = "wait until these serve: spark1"
FABRIC = "check the fabric: wait-fabric.sh 10: spark1 spark2"
RESTART = [f"{COPY}{PAIR}", STOP, APPLY, START, WAIT]
MEASURE = (
    "see that each plugged port is up at 200000Mb/s (operator/cables.txt), and measure the cables "
    "(verify.py --bandwidth): "
)
TIKTOKEN = "https://openaipublic.blob.core.windows.net/encodings"


def vocabularies(hub: str, nodes: str) -> list[str]:
    """The fetches of what gpt-oss reads and writes messages with."""
    return [
        f"fetch the vocabulary first: curl --create-dirs -L -o {hub}/tiktoken/{name}.tiktoken "
        f"{TIKTOKEN}/{name}.tiktoken: {nodes}"
        for name in ("cl100k_base", "o200k_base")
    ]


ENGINE = "engine:\n  name: vllm\n  version: 0.33.0\n  image: vllm/vllm-openai:v0.33.0\n"
SGLANG = "engine:\n  name: sglang\n  version: 0.5.23\n  image: lmsysorg/sglang:v0.5.23-cu130\n"


class Change(NamedTuple):
    """A change of a site file, and the review's statements about it."""

    edit: Callable[[str], str]
    edits: list[str]
    todo: dict[str, str]
    order: list[str]
    down: bool = True
    base: str = site_text()


def replaced(old: str, new: str) -> Callable[[str], str]:
    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return edit


def both(text: str) -> dict[str, str]:
    return {"spark1": text, "spark2": text}


FURTHER = "  - name: spark3\n    management: {interface: enP7s7, address: 10.0.0.3/16}\ncabling:\n"


def added(text: str) -> str:
    """A third node on the switch."""
    return (
        text.replace("cabling:\n", FURTHER)
        .replace("topology:", "  - endpoints: [spark3:p0, rack:3.0]\ntopology:")
        .replace("pipeline: 2", "pipeline: 3")
    )


def swapped(text: str) -> str:
    """The ends of two cables at the switch, swapped."""
    return text.replace("rack:1.0", "X").replace("rack:2.0", "rack:1.0").replace("X", "rack:2.0")


CHANGES = {
    "model": Change(
        replaced("gpt-oss-120b", "gpt-oss-20b"),
        ["model.name: gpt-oss-120b -> gpt-oss-20b"],
        both("engine restart"),
        ["fetch the model first: hf download openai/gpt-oss-20b: spark1 spark2", *RESTART],
    ),
    "context": Change(
        replaced("8192", "16384"),
        ["model.context_length: 8192 -> 16384"],
        both("engine restart"),
        RESTART,
    ),
    "image": Change(
        replaced("openai:v0.33.0", "openai:v0.33.0-aarch64"),
        ["engine.image: vllm/vllm-openai:v0.33.0 -> vllm/vllm-openai:v0.33.0-aarch64"],
        both("engine restart"),
        [
            "fetch the image first: docker pull vllm/vllm-openai:v0.33.0-aarch64: spark1 spark2",
            *RESTART,
        ],
    ),
    "environment": Change(
        replaced("  parallel", "  env: {VLLM_LOGGING_LEVEL: DEBUG}\n  parallel"),
        ["engine.env: {VLLM_LOGGING_LEVEL: DEBUG} is new"],
        both("engine restart"),
        RESTART,
    ),
    "engine": Change(
        replaced(ENGINE, SGLANG),
        [
            "engine.name: vllm -> sglang",
            "engine.version: 0.33.0 -> 0.5.23",
            "engine.image: vllm/vllm-openai:v0.33.0 -> lmsysorg/sglang:v0.5.23-cu130",
        ],
        both("engine restart"),
        [
            "fetch the image first: docker pull lmsysorg/sglang:v0.5.23-cu130: spark1 spark2",
            *RESTART,
        ],
    ),
    "node added": Change(
        added,
        [
            "nodes.spark3: {name: spark3, management: {interface: enP7s7, address: 1... is new",
            "cabling.spark3:p0 - rack:3.0: {endpoints: [spark3:p0, rack:3.0]} is new",
            "engine.parallel.pipeline: 2 -> 3",
        ],
        both("engine restart") | {"spark3": "new: install all, start the engine"},
        [
            "plug cable 3 into spark3:p0 and rack:3.0",
            "start the node and prepare it as README.md says: spark3",
            "fetch the image first: docker pull vllm/vllm-openai:v0.33.0: spark3",
            "fetch the model first: hf download openai/gpt-oss-120b: spark3",
            *vocabularies("/home/nvidia/.cache/huggingface", "spark3"),
            f"{COPY}spark2 spark3 spark1",
            f"{CONFIRMED}spark3",
            "check the fabric: wait-fabric.sh 10: spark1 spark2 spark3",
            f"{MEASURE}spark3",
            STOP,
            APPLY,
            "start the engine, the head last: spark2 spark3 spark1",
            WAIT,
        ],
    ),
    "node removed": Change(
        lambda text: site_text(),
        [
            "nodes.spark3: {name: spark3, management: {interface: enP7s7, address: 1... is gone",
            "cabling.spark3:p0 - rack:3.0: {endpoints: [spark3:p0, rack:3.0]} is gone",
            "engine.parallel.pipeline: 3 -> 2",
        ],
        both("engine restart") | {"spark3": "removed: stop the engine, remove the files"},
        [
            f"{COPY}{PAIR}",
            "stop the engine, the head first: spark1 spark2 spark3",
            APPLY,
            START,
            WAIT,
            "install.sh --uninstall: spark3",
            "unplug cable 3 from spark3:p0 and rack:3.0",
        ],
        base=added(site_text()),
    ),
    "cables swapped": Change(
        swapped,
        [],
        both("another cable (links drop), engine restart"),
        [
            STOP,
            f"shut the node down: {PAIR}",
            "unplug cable 1 from rack:1.0",
            "unplug cable 2 from rack:2.0",
            "plug cable 1 into rack:2.0",
            "plug cable 2 into rack:1.0",
            f"start the node again: {PAIR}",
            "stop the engine, which the boot has started: spark1 spark2",
            FABRIC,
            f"{MEASURE}{PAIR}",
            START,
            WAIT,
        ],
    ),
    "subnets": Change(
        replaced("{kind: switch}", "{kind: switch, subnet_pool: 10.77.0.0/16}"),
        ["topology.subnet_pool: 10.77.0.0/16 is new"],
        both("netplan apply (links drop), engine restart"),
        [f"{COPY}{PAIR}", STOP, f"{CONFIRMED}{PAIR}", FABRIC, START, WAIT],
    ),
    "service": Change(
        replaced("engine:\n", "services: {guard: true}\nengine:\n"),
        ["services: {guard: true} is new"],
        both("systemctl start sparkgen-guard"),
        [f"{COPY}{PAIR}", APPLY, f"systemctl start sparkgen-guard: {PAIR}"],
        down=False,
    ),
    "renamed node": Change(
        replaced("spark2", "anna"),
        ["nodes.spark2: called anna now"],
        {
            "spark1": "engine restart",
            "anna": "taken as the same machine as spark2, renamed: engine restart",
        },
        [
            "copy the folder (operator/deploy.sh --run spark1): spark1",
            "copy the folder (operator/deploy.sh --set-hostname --run anna): anna",
            "stop the engine, the head first: spark1 anna",
            "install.sh --set-hostname --apply: anna",
            "install.sh --apply: spark1",
            "start the engine, the head last: anna spark1",
            WAIT,
        ],
    ),
    "login": Change(
        replaced("name: lab\n", "name: lab\nuser: ops\n"),
        ["user: ops is new"],
        both("engine restart"),
        [
            "see that ops is a login, with sudo and Docker: spark1 spark2",
            "fetch or move the model first, into /home/ops/.cache/huggingface/hub: "
            "hf download openai/gpt-oss-120b: spark1 spark2",
            *vocabularies("/home/ops/.cache/huggingface", "spark1 spark2"),
            *RESTART,
        ],
    ),
    "management address": Change(
        replaced("10.0.0.2/16", "10.0.0.52/16"),
        ["nodes.spark2.management.address: 10.0.0.2/16 -> 10.0.0.52/16"],
        both("files only, nothing restarts"),
        ["change the management address to 10.0.0.52 by hand: spark2", f"{COPY}{PAIR}", APPLY],
        down=False,
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_review_of_a_change(name: str, tmp_path: Path, sparkgen: Command) -> None:
    change = CHANGES[name]
    (tmp_path / "sites").mkdir()
    site = tmp_path / "sites/lab.yaml"
    site.write_text(change.base)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    assert sparkgen("build", site, cwd=tmp_path).code == 0
    commit(tmp_path)
    site.write_text(change.edit(change.base))
    found = data(sparkgen, tmp_path, "--against", "main")
    assert order(found) == change.order
    assert todo(found) == change.todo
    assert change.edits == [edit for edit in found["edits"] if change.edits]
    assert (found["downtimeSeconds"] is not None) is change.down
    comment = comment_on(sparkgen, tmp_path)
    for number, step in enumerate(change.order, 1):
        text, _, nodes = step.rpartition(": ")
        line = f"{number}. {text if nodes else step}"
        assert plain(line) in plain(comment)
    assert ("the API stays up" in comment) is not change.down
    # The build makes exactly what was reviewed: no difference is left.
    sparkgen("build", site, cwd=tmp_path)
    assert data(sparkgen, tmp_path)["changed"] is False


def comment_on(sparkgen: Command, cwd: Path) -> str:
    words = ("diff", "sites/lab.yaml", "--against", "main", "--format", "markdown")
    return str(sparkgen(*words, cwd=cwd).out)


def plain(text: str) -> str:
    """Markdown without its escapes."""
    return re.sub(r"\\(.)", r"\1", text)


def test_ring_that_grows(tmp_path: Path, sparkgen: Command) -> None:
    """A node between two others: one cable moves, one is new, and later numbers change."""
    (tmp_path / "sites").mkdir()
    site = tmp_path / "sites/lab.yaml"
    site.write_text(ring_text(3).replace("name: ring", "name: lab"))
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    assert sparkgen("build", site, cwd=tmp_path).code == 0
    commit(tmp_path)
    site.write_text(ring_text(4).replace("name: ring", "name: lab"))
    words = ("diff", "sites/lab.yaml", "--against", "main", "--format", "json")
    steps = order(json.loads(sparkgen(*words, cwd=tmp_path).out)["sites"][0])
    cables = [step for step in steps if "plug cable" in step]
    assert cables
    first = [words.split()[0] for words in cables]
    assert first == sorted(first, reverse=True), "all are unplugged before one is plugged"
    places = [next(i for i, step in enumerate(steps) if step.startswith(word)) for word in STEPS]
    assert places == sorted(places)


STEPS = (
    "start the node and prepare",
    "fetch the image",
    "copy",
    "shut",
    "stop",
    "unplug",
    "plug",
    "start the node again",
    "install.sh",
    "check the fabric",
    "see that each plugged port",
    "start the engine",
    "wait",
)

# From the output of two nodes to a bundle that can be reviewed.
FIVE = """\
git init --quiet --initial-branch=main .
sparkgen init --from spark1.txt --from spark2.txt --user nvidia sites/pair.yaml
sparkgen build
git add --all && git commit --quiet --message 'Describe the pair'
sparkgen diff --against HEAD --format markdown && sparkgen validate --strict && sparkgen check
"""


def test_from_captures_to_a_bundle_in_five_commands(tmp_path: Path, sparkgen: Command) -> None:
    place = Workplace(tmp_path).empty()
    script = FIVE.splitlines()
    assert len(script) == 5
    done = [place.run(f"set -e; {command}; echo status $?") for command in script]
    assert all(text.endswith("status 0\n") for text in done), done
    assert "gpt-oss-120b: fits: " in done[1]
    assert "guessed: the" not in done[1], "all that matters is in what the nodes printed"
    assert re.match(r"pair: \d+ files for 2 nodes in out/pair \(new\)", done[2])
    assert "Nothing differs: pair\n" in done[4]
    site = (place.cwd / "sites/pair.yaml").read_text()
    for number in (1, 2):
        assert f"address: 192.168.1.18{number + 1}/24}}\n" in site
    netplan = (place.cwd / "out/pair/spark1/etc/netplan/40-cx7.yaml").read_text()
    # p0 is the port with a link, according to both programs.
    assert "enp1s0f0np0" in netplan
    assert "enp1s0f1np1" not in netplan
    assert {path.name for path in INPUTS.iterdir()} == {"spark1.txt", "spark2.txt"}


def test_machine_readable_review_of_a_new_site(tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "sites").mkdir()
    (tmp_path / "other").touch()
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    commit(tmp_path)
    (tmp_path / "sites/lab.yaml").write_text(site_text())
    found: dict[str, Any] = data(sparkgen, tmp_path, "--against", "main")
    assert {node["state"] for node in found["nodes"]} == {"new"}
    steps = order(found)
    starts = ("plug cable 1 into", "plug cable 2 into", "start the node and", "fetch the image")
    assert all(map(str.startswith, steps, starts))
    assert steps[-1].startswith("wait until these serve")
    assert not [step for step in steps if step.startswith("stop")]
