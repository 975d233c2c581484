"""The published starts: what their files hold, and which of them nothing may be fitted to."""

from pathlib import Path

from evidence import FOLDER, SPARK, Start, starts
from evidence_report import is_inside, rooms, speed_of, speeds

from generator.fit.formulas import CACHED
from generator.services.gateway import PART_OF_LEAST_SPEED, SLOWEST_PROMPT_TOKENS_A_SECOND

STARTS = starts()
_KEYS = {
    *("source", "date", "note", "gpu", "system", "nodes", "visible_gib", "model", "engine"),
    "figures",
}
_KINDS = {
    *("weights", "room", "sequence", "sequences", "cache_tokens", "cache", "graphs", "activations"),
    *("block_tokens", "states", "decode", "prefill", "served"),
}


def test_there_are_many_of_several_engines_and_sizes() -> None:
    figures = [figure for start in STARTS for figure in start.figures]
    assert len(STARTS) >= 80
    assert len(figures) >= 200
    assert sum(figure.kind in ("decode", "prefill") for figure in figures) >= 50
    assert {start.data["nodes"] for start in STARTS} >= {1, 2, 3, 4}
    assert {start.data["engine"]["name"] for start in STARTS} >= {"vllm", "sglang", "llama.cpp"}


def test_each_names_its_source_and_prints_known_kinds() -> None:
    for start in STARTS:
        assert set(start.data) <= _KEYS, start.path
        assert start.source, start.path
        assert start.data["date"] >= "2024", start.path
        assert {figure.kind for figure in start.figures} <= _KINDS, start.path
        kept = start.data["model"].get("kv_cache_dtype", "auto")
        assert kept in CACHED, start.path


def test_the_split_depends_on_the_source_alone() -> None:
    one = Start(FOLDER / "a.yaml", {"source": "https://example.org/thread/1"})
    other = Start(FOLDER / "b.yaml", {"source": "https://example.org/thread/1#second"})
    assert one.is_held_out == other.is_held_out
    held = sum(start.is_held_out for start in STARTS)
    assert 0.3 < held / len(STARTS) < 0.5


def test_the_split_is_pinned() -> None:
    """A start that changes sides has been looked at while something was fitted to it."""
    held = {start.path.stem for start in STARTS if start.is_held_out}
    pinned = Path(__file__).with_name("held_out.txt").read_text(encoding="utf-8").split()
    assert sorted(held) == pinned


def test_the_program_never_reads_them() -> None:
    package = FOLDER.parents[1] / "generator"
    readers = [
        path for path in package.rglob("*.py") if '"evidence"' in path.read_text(encoding="utf-8")
    ]
    assert not readers


def test_what_did_not_run_on_sparks_says_so() -> None:
    assert all(start.data.get("gpu") != SPARK for start in STARTS)


def test_gateway_waits_for_every_published_prompt() -> None:
    """Its limit until a first token is for prompts that are read more slowly than any of them."""
    prompts = [
        (figure.value, speed_of(figure))
        for start in STARTS
        if start.on_sparks
        for figure in start.figures
        if figure.kind == "prefill"
    ]
    assert sum(speed is not None for _, speed in prompts) >= 50
    for value, speed in prompts:
        rate = speed.least * PART_OF_LEAST_SPEED if speed else SLOWEST_PROMPT_TOKENS_A_SECOND
        assert value > 2 * rate


def test_ranges_are_narrow_and_hold_four_in_five_of_the_speeds_held_out() -> None:
    told = [(figure, speed) for figure, speed in speeds() if speed]
    assert len(told) > 40
    assert all(speed.most <= 2 * speed.least for _, speed in told)
    assert sum(is_inside(*each) for each in told) >= 0.8 * len(told)


def test_intervals_hold_nine_in_ten_of_the_rooms_held_out() -> None:
    held = rooms()
    assert held
    assert sum(held) >= 0.9 * len(held)
