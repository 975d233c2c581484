"""`check-engine`: what engines said of a site's settings, at its lines and in its lock."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from bundles import BUNDLES, IN_GROUPS, NODES, NodeFolder
from conftest import Command, Outcome
from stand_ins import StandIns
from test_launch import ANSWER, DOCKER, asked

from generator.answers.ranks import ranks
from generator.bundle.render import render
from generator.pipeline import read_site
from generator.resources import ROOT

PAIR = ROOT / "sites/pair-chatbot.yaml"
ACCEPTED = {"stage": "arguments", "status": "accepted"}
END = {"stage": "end", "status": "accepted"}
IMAGE = "vllm/vllm-openai:v0.33.0"


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    shutil.copy(PAIR, tmp_path / "pair-chatbot.yaml")
    return tmp_path


def checksums(site: Path) -> dict[str, str]:
    reading = read_site(str(site), site.read_bytes())
    assert reading.site
    known = ranks(reading.site, render(reading.site, "0" * 64), (), ())
    return {rank.member.name: rank.settings for rank in known}


def say(folder: Path, node: str, *stages: dict[str, Any], image: str = IMAGE) -> None:
    """Write what a node's engine says of the present settings."""
    settings = checksums(folder / "pair-chatbot.yaml")[node]
    start = {"stage": "start", "site": "pair-chatbot", "group": "", "node": node}
    start |= {"image": image, "digest": "sha256:" + "a" * 64, "settings": settings}
    lines = [json.dumps(each) for each in (start, *(stages or (ACCEPTED,)), END)]
    (folder / f"{node}.json").write_text("warning: not JSON\n" + "\n".join(lines) + "\n")


def check(sparkgen: Command, folder: Path, *results: str) -> Outcome:
    return sparkgen("check-engine", "pair-chatbot.yaml", *results, cwd=folder)


def covering_nodes() -> list[NodeFolder]:
    one = {f"{f.part.engine.name} {f.part.engine.launcher}": f for f in (*NODES, *IN_GROUPS)}
    return [f for f in one.values() if not f.part.engine.is_slurm_job]


@pytest.mark.parametrize("folder", covering_nodes(), ids=str)
def test_checksum_is_that_of_launch(folder: NodeFolder, tmp_path: Path) -> None:
    """The node and the site come to the same one, without which no answer would count."""
    stand_ins = StandIns(tmp_path)
    stand_ins.add("docker", DOCKER)
    stand_ins.env |= {"STATUS": "0", "DIGEST": "sha256:1", "ANSWER": ANSWER}
    if folder.part.engine.venv:
        pytest.skip("no container to record")
    _, lines, _ = asked(folder.copy(tmp_path), stand_ins)
    starts = {line["group"]: line["settings"] for line in lines if line["stage"] == "start"}
    known = ranks(folder.site, render(folder.site, "0" * 64), (), ())
    expected = {r.part.group: r.settings for r in known if r.member.name == folder.name}
    assert starts == expected


def test_all_accept(pair: Path, sparkgen: Command) -> None:
    say(pair, "spark1")
    found = {"parameter_bytes": 36_400_000_000, "blocks": 1000}
    say(pair, "spark2", ACCEPTED, {"stage": "plan", "status": "accepted", "found": found})
    outcome = check(sparkgen, pair, "spark1.json", "spark2.json")
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "spark1: accepted",
        "spark2: accepted; weights 33.9 GiB, 33.9 as computed; KV cache of up to 1000 blocks",
    ]


def test_lock_keeps_what_was_said_of_the_same_settings(pair: Path, sparkgen: Command) -> None:
    assert check(sparkgen, pair).code == 1
    say(pair, "spark1")
    say(pair, "spark2")
    check(sparkgen, pair, "spark1.json", "spark2.json")
    by_the_lock = ["spark1: accepted, by the lock", "spark2: accepted, by the lock"]
    outcome = check(sparkgen, pair)
    assert (outcome.code, outcome.out.splitlines()) == (0, by_the_lock)
    assert sparkgen("build", "pair-chatbot.yaml", cwd=pair).code == 0
    assert "SG851" not in sparkgen("check", "pair-chatbot.yaml", cwd=pair).err
    site = pair / "pair-chatbot.yaml"
    text = site.read_text()
    site.write_text(f"# a comment\n{text}")
    assert check(sparkgen, pair).out.splitlines() == by_the_lock
    site.write_text(text.replace("context_length: 16384", "context_length: 20480"))
    asked_anew = check(sparkgen, pair, "spark1.json")
    assert asked_anew.code == 1
    assert asked_anew.out.splitlines() == [
        f"{node}: not asked yet about these settings" for node in ("spark1", "spark2")
    ]
    assert "this answer is about other settings" in asked_anew.err
    # What no longer counts stays until there is a new answer.
    site.write_text(text)
    assert check(sparkgen, pair).out.splitlines() == by_the_lock
    site.write_text(text.replace(f"image: {IMAGE}", "image: example.org/vllm:2"))
    assert "spark1: not asked yet" in check(sparkgen, pair).out


REFUSALS = [
    ("max_num_seqs (32) exceeds the blocks", "", "model.max_sequences"),
    ("argument --enable-prefix-caching: no", "", "engine.args.enable-prefix-caching"),
    ("Invalid: ['kv_cache_dtype not supported']", "", "model.kv_cache_dtype"),
    ("something went wrong", "", "engine"),
    ("VLLM_X: invalid literal", "VLLM_X", "engine"),
]


@pytest.mark.parametrize(("message", "variable", "place"), REFUSALS)
def test_refusal_is_shown_at_its_line(
    message: str, variable: str, place: str, pair: Path, sparkgen: Command
) -> None:
    refusal = {"stage": "configuration", "status": "refused", "message": message, "where": "a.py:1"}
    say(pair, "spark1", ACCEPTED, refusal | ({"variable": variable} if variable else {}))
    outcome = sparkgen(
        *("check-engine", "pair-chatbot.yaml", "spark1.json", "--format", "json"), cwd=pair
    )
    assert outcome.code == 1
    data = json.loads(outcome.out)
    (finding,) = [each for each in data["findings"] if each["rule"] == "SG870"]
    assert (finding["message"], finding["path"]) == (message, place)
    assert "asked on spark1 about its configuration, a.py:1" in finding["help"]
    assert [rank["status"] for rank in data["ranks"]] == ["refused", "not asked yet"]


REHEARSED = {"stage": "rehearsal", "status": "accepted", "seconds": 71}
UNREHEARSED = REHEARSED | {"status": "could not ask", "why": "the GPU is in use by 7, python3"}
OUT_OF_MEMORY = REHEARSED | {"status": "refused", "error": "OutOfMemoryError"}
OUT_OF_MEMORY |= {"message": "CUDA out of memory: reduce max_num_seqs"}
TRIED = "it has answered with random weights: only the checkpoint's files were not tried"


def test_rehearsal_adds_to_what_was_asked(pair: Path, sparkgen: Command) -> None:
    """It keeps the weights that the lock has, and one that was not possible changes nothing."""
    found = {"parameter_bytes": 36_400_000_000}
    for node in ("spark1", "spark2"):
        say(pair, node, {"stage": "layers", "status": "accepted", "found": found})
    assert check(sparkgen, pair, "spark1.json", "spark2.json").code == 0
    say(pair, "spark1", REHEARSED)
    say(pair, "spark2", UNREHEARSED)
    outcome = check(sparkgen, pair, "spark1.json", "spark2.json")
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        f"spark1: accepted; {TRIED}",
        f"spark2: accepted; rehearsal: {UNREHEARSED['why']}",
    ]
    assert check(sparkgen, pair).out.splitlines() == [
        f"spark1: accepted, by the lock; {TRIED}",
        "spark2: accepted, by the lock",
    ]
    assert (pair / "pair-chatbot.lock.yaml").read_text().count("weights: 36400000000") == 2


def test_rehearsal_that_fails_is_a_refusal_of_the_group(pair: Path, sparkgen: Command) -> None:
    say(pair, "spark1", REHEARSED)
    say(pair, "spark2", OUT_OF_MEMORY)
    outcome = check(sparkgen, pair, "spark1.json", "spark2.json", "--format", "json")
    data = json.loads(outcome.out)
    (finding,) = [each for each in data["findings"] if each["rule"] == "SG870"]
    assert (outcome.code, finding["path"]) == (1, "model.max_sequences")
    assert finding["help"] == "it did not start on spark2 with random weights"
    assert [rank["status"] for rank in data["ranks"]] == ["accepted", "refused"]
    assert [rank["rehearsal"] for rank in data["ranks"]] == ["accepted", "refused"]
    # A later one may show that it is mended, for the same settings.
    say(pair, "spark2", REHEARSED)
    assert check(sparkgen, pair, "spark2.json").code == 0


@pytest.mark.parametrize(
    ("asked", "rehearsed", "status"),
    [
        (END, REHEARSED, "accepted"),
        (END, UNREHEARSED, "accepted"),
        (END, OUT_OF_MEMORY, "refused"),
        (END | {"status": "could not ask"}, REHEARSED, "accepted"),
        (END | {"status": "could not ask"}, UNREHEARSED, "could not ask"),
        (END | {"status": "refused"}, REHEARSED, "refused"),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_refusal_without_a_rehearsal_stands(
    asked: dict[str, Any],
    rehearsed: dict[str, Any],
    status: str,
    order: int,
    pair: Path,
    sparkgen: Command,
) -> None:
    """Random weights replace a setting that may be what is refused; both may be in one file."""
    texts = []
    for stage in (asked, rehearsed):
        say(pair, "spark1", stage)
        texts.append((pair / "spark1.json").read_text())
    (pair / "spark1.json").write_text("".join(texts[::order]))
    outcome = check(sparkgen, pair, "spark1.json", "--format", "json")
    assert json.loads(outcome.out)["ranks"][0]["status"] == status


def test_engine_that_could_not_be_asked_is_not_fine(pair: Path, sparkgen: Command) -> None:
    say(pair, "spark1")
    say(pair, "spark2", {"stage": "end", "status": "could not ask", "why": "no image"})
    outcome = check(sparkgen, pair, "spark1.json", "spark2.json")
    assert outcome.code == 1
    assert outcome.out.splitlines()[1] == "spark2: could not ask: end: no image"
    assert "SG870" not in outcome.err


@pytest.mark.parametrize("cut", [0, 20, len(json.dumps(END)) + 1])
def test_answer_that_was_cut_off_accepts_nothing(cut: int, pair: Path, sparkgen: Command) -> None:
    """Over a connection that was lost; only a refusal stands as it is."""
    said = pair / "spark1.json"
    for stage, status in (
        (ACCEPTED, "could not ask"),
        (ACCEPTED | {"status": "refused"}, "refused"),
    ):
        say(pair, "spark1", stage)
        said.write_text(said.read_text()[: -cut or None])
        outcome = check(sparkgen, pair, "spark1.json", "--format", "json")
        expected = status if cut else str(stage["status"])
        assert json.loads(outcome.out)["ranks"][0]["status"] == expected


def test_ranks_that_differ(pair: Path, sparkgen: Command) -> None:
    for node, length, torch in (("spark1", 16384, "2.13"), ("spark2", 8192, "2.12")):
        found = {"max_model_len": length, "versions": {"torch": torch}}
        say(pair, node, {"stage": "configuration", "status": "accepted", "found": found})
    outcome = check(sparkgen, pair, "spark1.json", "spark2.json")
    assert outcome.code == 1
    assert "the ranks differ in max_model_len: 16384 on spark1, 8192 on spark2" in outcome.err
    assert "the ranks differ in torch: 2.13 on spark1, 2.12 on spark2" in outcome.err


def test_weights_that_are_far_off(pair: Path, sparkgen: Command) -> None:
    found = {"parameter_bytes": 50 << 30}
    say(pair, "spark1", {"stage": "layers", "status": "accepted", "found": found})
    error = check(sparkgen, pair, "spark1.json").err
    assert "warning[SG872]: spark1 holds 50.0 GiB of weights by the engine, not 33.9" in error


def test_fit_takes_weights_by_the_engine(pair: Path, sparkgen: Command) -> None:
    """Until a setting changes, and then it says that the engine was not asked about that."""
    found = {"parameter_bytes": 36 << 30}
    say(pair, "spark1", {"stage": "layers", "status": "accepted", "found": found})
    say(pair, "spark2")
    check(sparkgen, pair, "spark1.json", "spark2.json")
    text = sparkgen("fit", "pair-chatbot.yaml", cwd=pair).out
    rows = [line.split() for line in text.splitlines() if line.startswith("spark")]
    assert [row[row.index("layers)") + 1] for row in rows[:2]] == ["36.0", "33.9"]
    assert "weights of spark1 are by the engine's own count" in text
    data = json.loads(sparkgen("fit", "pair-chatbot.yaml", "--format", "json", cwd=pair).out)
    assert data["memory"]["by_the_engine"] == ["spark1"]
    site = pair / "pair-chatbot.yaml"
    site.write_text(site.read_text().replace("context_length: 16384", "context_length: 20480"))
    outcome = sparkgen("fit", "pair-chatbot.yaml", cwd=pair)
    assert "by the engine" not in outcome.out
    assert "not yet about these settings on spark1 and spark2" in outcome.err
    outcome = sparkgen("validate", "--strict", "pair-chatbot.yaml", cwd=pair)
    assert (outcome.code, outcome.err.count("note[SG873]")) == (0, 1)
    assert "note[SG873]" in check(sparkgen, pair).err


def test_accepted_settings_are_not_doubted(pair: Path, sparkgen: Command) -> None:
    """A warning that a build may not start is no news once it was asked."""
    site = pair / "pair-chatbot.yaml"
    text = site.read_text().replace("version: 0.33.0", "version: 0.33.0+own")
    text = text.replace("vllm/vllm-openai:v0.33.0", "example.org/own:1")
    site.write_text(text.replace("  args:\n", "  args:\n    attention-backend: TRITON_MLA\n"))
    assert "SG674" in sparkgen("validate", "pair-chatbot.yaml", cwd=pair).err
    for node in ("spark1", "spark2"):
        say(pair, node, image="example.org/own:1")
    check(sparkgen, pair, "spark1.json", "spark2.json")
    assert "SG674" not in sparkgen("validate", "pair-chatbot.yaml", cwd=pair).err


@pytest.mark.parametrize("text", ["", "words", "[]", '{"stage": "end"}', '{"a": 1}', "null"])
def test_text_that_is_no_answer(text: str, pair: Path, sparkgen: Command) -> None:
    (pair / "said.json").write_text(text)
    outcome = check(sparkgen, pair, "said.json")
    assert outcome.code == 3
    assert "said.json: it is not what 'launch.sh --check-engine' prints" in outcome.err
    assert check(sparkgen, pair, "none.json").code == 4
    assert not (pair / "pair-chatbot.lock.yaml").exists()


def test_nodes_of_another_site(pair: Path, sparkgen: Command) -> None:
    say(pair, "spark1")
    said = (pair / "spark1.json").read_text().replace('"node": "spark1"', '"node": "other"')
    (pair / "spark1.json").write_text(said)
    outcome = check(sparkgen, pair, "spark1.json")
    assert "other: this answer is of a node or group that the site does not have" in outcome.err


def test_all_examples_can_be_asked() -> None:
    """Whatever the engine and the launcher: no rank is forgotten."""
    for bundle in BUNDLES[:12]:
        known = ranks(bundle.site, render(bundle.site, "0" * 64), (), ())
        assert len(known) == sum(
            len(part.nodes) for part in bundle.site.parts if not part.engine.is_slurm_job
        )
