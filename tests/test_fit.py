"""Memory: against figures that others published, by its own laws, and as the command prints it."""

import json
import os
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command
from declared import a_model, an_engine, some_nodes
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from published import FIGURES, Figure, fit_of, markdown

from generator import catalogs
from generator.architecture import Experts, known_shape, tensor_sizes
from generator.catalogs import Checkpoint
from generator.declaration import Parallel
from generator.fit import formulas
from generator.fit.alternatives import Group, alternatives
from generator.fit.asked import asked, release, share_bytes
from generator.fit.assessment import Fit, assess
from generator.fit.demand import Layout, Weights, _Split
from generator.fit.formulas import GIB, PACKED, WIDE
from generator.fit.table import BAR_WIDTH, bar, rows, table, verdict
from generator.resources import ROOT

SITES = sorted((ROOT / "sites").glob("*.yaml"))
NAMES = catalogs.checkpoint_names()
steady = settings(
    deadline=None, derandomize=bool(os.environ.get("CI")), database=None, max_examples=50
)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.what)
def test_ours_is_what_others_have_published(figure: Figure) -> None:
    assert abs(figure.difference) <= figure.tolerance, figure.ours()


@pytest.mark.parametrize(
    ("stages", "sizes"), [(2, (31, 30)), (4, (15, 15, 16, 15)), (3, (20, 21, 20)), (1, (61,))]
)
def test_layers_are_split_as_vllm_splits_them(stages: int, sizes: tuple[int, ...]) -> None:
    assert formulas.stage_sizes(61, stages) == sizes


def test_layers_of_a_kind_are_spread_evenly_and_none_is_lost() -> None:
    for stages in range(1, 9):
        sizes, first, found = formulas.stage_sizes(60, stages), 0, 0
        for size in sizes:
            found += formulas.layers_between(15, 60, first, first + size)
            first += size
        assert found == 15
    full = [formulas.layers_between(15, 60, layer, layer + 1) for layer in range(60)]
    assert full[:8] == [0, 0, 0, 1, 0, 0, 0, 1]


def test_a_kv_head_is_copied_where_there_are_more_ranks_than_heads() -> None:
    cached = [formulas.grouped_cache_elements(4, 128, tensor) for tensor in (1, 2, 4, 8, 16)]
    assert cached == [1024, 512, 256, 256, 256]


def test_a_window_holds_no_more_than_itself_and_a_step() -> None:
    assert formulas.window_tokens(100, 128, 2048) == 100
    assert formulas.window_tokens(131072, 128, 2048) == 2175


def test_tensorrt_llms_share_of_free_memory_leaves_the_same_room() -> None:
    visible, held = 119.7 * GIB, 65 * GIB
    share = formulas.share_of_free(0.8, visible, held)
    assert isclose(share * (visible - held), 0.8 * visible - held)
    assert formulas.share_of_free(0.5, visible, held) == 0
    assert formulas.share_of_free(0.5, held, held) == 0


@pytest.mark.parametrize(
    ("name", "experts", "others"),
    [
        # NVIDIA packs the experts of MiniMax and DeepSeek alone, and all of Llama's layers.
        ("minimax-m2.5-nvfp4", PACKED["nvfp4"], WIDE),
        ("deepseek-v3-fp4", PACKED["nvfp4"], WIDE),
        ("gpt-oss-120b", PACKED["mxfp4"], WIDE),
        ("qwen3-235b-a22b-gptq-int4", PACKED["gptq-int4"], PACKED["gptq-int4"]),
        ("qwen3-235b-a22b-nvfp4", PACKED["nvfp4"], PACKED["nvfp4"]),
        ("qwen3-235b-a22b-fp8", 1.0, 1.0),
        ("qwen3-235b-a22b", WIDE, WIDE),
    ],
)
def test_what_a_checkpoint_packs_is_told_by_its_size(
    name: str, experts: float, others: float
) -> None:
    checkpoint = found(name)
    assert checkpoint.weight_gb
    weights = Weights(checkpoint.weight_gb * formulas.GB, 0, checkpoint.format)
    split = _Split(known_shape(checkpoint), weights, Layout(1, (1,), 1, 1, whole_experts=False))
    assert split.expert == pytest.approx(experts, rel=0.01)
    assert split.linear == pytest.approx(others, rel=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_weights_of_all_ranks_add_up_to_the_checkpoint(name: str) -> None:
    checkpoint = found(name)
    known = known_shape(checkpoint)
    for stages in (1, 2, 3):
        fit = fit_of(name, Parallel(pipeline=stages), context_length=1024)
        if fit.state == "unknown":
            assert fit.missing
            continue
        held = sum(node.weights_gib for node in fit.nodes) * GIB / formulas.GB
        assert checkpoint.weight_gb
        assert held == pytest.approx(checkpoint.weight_gb + checkpoint.vision_gb, rel=0.003)
        assert sum(node.layers for node in fit.nodes) == known.layers


@pytest.mark.parametrize("name", NAMES)
def test_the_catalogs_cache_is_that_of_the_formulas(name: str) -> None:
    shape, facts = known_shape(found(name)), found(name).architecture.facts
    given, layers = facts.get("kv_elements_per_token"), shape.attention_layers
    if given is None or layers is None or shape.kv_heads is None:
        return
    if shape.mla:
        elements = formulas.latent_cache_elements(shape.mla.kv_rank, shape.mla.rope)
    else:
        assert shape.head_dim
        elements = formulas.grouped_cache_elements(shape.kv_heads, shape.head_dim, 1)
    assert layers * elements == given
    if (recurrent := shape.recurrent) and "state_bytes" in facts["attention"]:
        assert recurrent.layers * recurrent.state * 4 == facts["attention"]["state_bytes"]


def found(name: str) -> Checkpoint:
    checkpoint = catalogs.checkpoint(name)
    assert checkpoint
    return checkpoint


KNOWN = [name for name in NAMES if fit_of(name, context_length=1024).state != "unknown"]


def need(fit: Fit) -> float:
    """What the fullest node needs for one sequence."""
    return max(node.weights_gib + node.reserve_gib + node.kv_one_gib for node in fit.nodes)


@steady
@given(
    st.sampled_from(KNOWN),
    st.integers(1, 8),
    st.integers(0, 7),
    st.sampled_from([1024, 32768, 131072]),
    st.booleans(),
)
def test_more_nodes_never_need_more_memory_a_node(
    name: str, pipeline: int, tensor: int, context: int, expert: bool
) -> None:
    legal = tensor_sizes(known_shape(found(name)), 8)
    size = legal[tensor % len(legal)]
    now = fit_of(name, Parallel(size, pipeline, expert=expert), context_length=context)
    stages = fit_of(name, Parallel(size, pipeline + 1, expert=expert), context_length=context)
    assert need(stages) <= need(now) + 0.02
    for larger in (other for other in legal if other > size):
        ranks = fit_of(name, Parallel(larger, pipeline, expert=expert), context_length=context)
        assert need(ranks) <= need(now) + 0.02


@steady
@given(
    st.sampled_from(KNOWN),
    st.integers(1, 4),
    st.integers(1, 10**6),
    st.integers(0, 10**6),
    st.sampled_from(["auto", "fp8"]),
)
def test_a_longer_context_never_needs_less(
    name: str, pipeline: int, context: int, more: int, dtype: str
) -> None:
    sizes = Parallel(pipeline=pipeline)
    short = fit_of(name, sizes, context_length=context, kv_cache_dtype=dtype)
    long = fit_of(name, sizes, context_length=context + more, kv_cache_dtype=dtype)
    assert need(long) >= need(short)
    assert (long.most_sequences or 0) <= (short.most_sequences or 0)


@steady
@given(st.sampled_from(KNOWN), st.integers(1, 8), st.integers(1, 64))
def test_the_longest_context_fits_and_a_longer_one_does_not(
    name: str, pipeline: int, sequences: int
) -> None:
    sizes = Parallel(pipeline=pipeline)
    fit = fit_of(name, sizes, context_length=1024, max_sequences=sequences)
    assume(fit.longest_context)
    assert fit.longest_context
    asked_for = {"max_sequences": sequences}
    longest = fit_of(name, sizes, context_length=fit.longest_context, **asked_for)
    assert longest.state == "fits"
    assert (longest.most_sequences or 0) >= sequences
    bound = known_shape(found(name)).max_context_yarn or found(name).max_context or 0
    if fit.longest_context < bound:
        longer = fit_of(name, sizes, context_length=fit.longest_context + 1, **asked_for)
        assert (longer.most_sequences or 0) < sequences


def test_llama_405b_in_nvfp4_does_not_fit_two_nodes_and_does_three() -> None:
    two = fit_of("llama-3.1-405b-instruct-fp4", Parallel(tensor=2), context_length=8192)
    three = fit_of("llama-3.1-405b-instruct-fp4", Parallel(pipeline=3), context_length=8192)
    assert (two.state, three.state) == ("does not fit", "fits")
    assert two.worst.headroom_gib < -10


def test_what_people_run_fits() -> None:
    """Layouts that were reported to run, and one that NVIDIA warns has no headroom."""
    runs = {
        "gpt-oss-120b": Parallel(),
        "qwen3-235b-a22b-gptq-int4": Parallel(tensor=2, expert=True),
        "minimax-m2.7-nvfp4": Parallel(tensor=2),
        "minimax-m2.7": Parallel(tensor=4),
        "qwen3.5-397b-a17b-int4-autoround": Parallel(pipeline=3),
        "llama-3.3-70b-instruct": Parallel(tensor=2),
        "nvidia-nemotron-3-super-120b-a12b-nvfp4": Parallel(),
    }
    for name, sizes in runs.items():
        assert fit_of(name, sizes, context_length=32768).state == "fits", name
    tight = fit_of("meta-llama-3.1-405b-instruct-awq-int4", Parallel(tensor=2), context_length=8192)
    assert tight.state == "does not fit"


def test_experts_are_shared_by_replicas_in_vllm_alone() -> None:
    model = a_model(name="deepseek-v3-fp4", context_length=4096)
    sizes = Parallel(data=8, expert=True)
    spread = assess(some_nodes(8), model, an_engine(parallel=sizes))
    whole = assess(some_nodes(8), model, an_engine(name="sglang", parallel=sizes))
    assert spread
    assert whole
    assert spread.nodes[0].weights_gib < 80
    assert whole.nodes[0].weights_gib > 370


def test_each_engine_means_something_else_by_its_fraction() -> None:
    visible = 100.0 * GIB
    assert share_bytes(visible, 0.8) == 80 * GIB
    model = a_model(name="gpt-oss-120b", context_length=8192)
    fits = [assess(some_nodes(1), model, an_engine(name=name)) for name in ("vllm", "sglang")]
    inside, outside = (fit.nodes[0] for fit in fits if fit)
    # What SGLang needs beside weights and cache comes out of what its fraction leaves.
    assert outside.kv_room_gib - inside.kv_room_gib == pytest.approx(inside.reserve_gib, abs=0.1)
    assert inside.system_gib - outside.system_gib == pytest.approx(outside.reserve_gib, abs=0.1)


def test_a_cache_of_a_fixed_size_is_what_it_says() -> None:
    model = a_model(name="gpt-oss-120b", context_length=131072)
    fixed = an_engine(args={"kv-cache-memory-bytes": "8G"})
    fit = assess(some_nodes(1), model, fixed)
    assert fit
    assert fit.nodes[0].kv_room_gib == 8
    too_much = assess(some_nodes(1), model, an_engine(args={"kv-cache-memory-bytes": "50G"}))
    assert too_much
    assert too_much.state == "does not fit"


@pytest.mark.parametrize(
    ("own", "missing"),
    [
        ({"source": "example/x", "architecture": {"layers": 8, "heads": 8, "kv_heads": 8}}, 5),
        ({"name": "qwen3-coder-next-int4-autoround"}, 1),
        ({"name": "nvidia/qwen3.8-flash-next-nvfp4"}, 1),
        ({"name": "gpt-oss-120b", "kv_cache_dtype": "turbo3"}, 1),
        ({"name": "gpt-oss-120b", "speculative": {"method": "eagle3", "tokens": 3}}, 1),
    ],
)
def test_what_is_not_known_is_named(own: dict[str, Any], missing: int) -> None:
    fit = assess(some_nodes(1), a_model(**own), an_engine())
    assert fit
    assert fit.state == "unknown"
    assert len(fit.missing) == missing, fit.missing
    assert all(name in verdict(fit)[0] for name in fit.missing)


def test_a_model_of_ones_own_fits_like_the_catalogs() -> None:
    own = {
        "layers": 94, "heads": 64, "kv_heads": 4, "head_dim": 128, "hidden_size": 4096,
        "vocab_size": 151936, "experts": 128, "experts_per_token": 8,
        "expert_intermediate_size": 1536, "max_context": 40960, "weight_gb": 124.1,
        "format": "gptq-int4",
    }  # fmt: skip
    model = a_model(source="Qwen/Qwen3-235B-A22B-GPTQ-Int4", architecture=own)
    sizes = Parallel(tensor=2, expert=True)
    assert assess(some_nodes(2), model, an_engine(parallel=sizes)) == fit_of(
        "qwen3-235b-a22b-gptq-int4", sizes
    )


def test_without_the_sizes_of_its_parts_a_model_is_split_by_layers() -> None:
    own = {
        "layers": 94, "heads": 64, "kv_heads": 4, "head_dim": 128, "hidden_size": 4096,
        "vocab_size": 151936, "experts": 128, "max_context": 40960, "weight_gb": 124.1,
    }  # fmt: skip
    model = a_model(source="Qwen/Qwen3-235B-A22B-GPTQ-Int4", architecture=own)
    fit = assess(some_nodes(2), model, an_engine(parallel=Parallel(tensor=2)))
    assert fit
    assert fit.nodes[0].weights_gib == pytest.approx(57.8, abs=0.2)
    assert fit.ceiling_tokens_s is None


def test_a_draft_is_held_beside_the_model() -> None:
    own = {"name": "llama-3.1-70b-instruct-fp8", "context_length": 8192}
    source = {"method": "draft", "source": "nvidia/Llama-3.1-8B-Instruct-FP8", "tokens": 4}
    drafted = fit_of(**own, speculative=source)
    alone = fit_of(**own)
    assert drafted.nodes[0].draft_gib == pytest.approx(9.1 * formulas.GB / GIB, abs=0.01)
    assert drafted.nodes[0].kv_one_gib > alone.nodes[0].kv_one_gib
    given = fit_of(**own, speculative={"method": "eagle3", "tokens": 3, "weight_gb": 2.0})
    assert given.nodes[0].draft_gib == pytest.approx(2 * formulas.GB / GIB, abs=0.01)


def test_a_prediction_layer_is_as_large_as_people_found_it() -> None:
    """5 GB in 16 bits beside Qwen3.5-122B-A10B in NVFP4 (docai.hu/en/blog/qwen35-122b-spark)."""
    fit = fit_of(
        "qwen3.5-122b-a10b-nvfp4", context_length=8192, speculative={"method": "mtp", "tokens": 1}
    )
    assert fit.nodes[0].draft_gib * GIB / formulas.GB == pytest.approx(5, abs=0.2)


def test_stages_that_are_given_are_taken() -> None:
    uneven = an_engine(parallel=Parallel(pipeline=2), env={"VLLM_PP_LAYER_PARTITION": "50,30"})
    model = a_model(name="llama-3.1-70b-instruct-fp8", context_length=8192)
    fit = assess(some_nodes(2), model, uneven)
    assert fit
    assert [node.layers for node in fit.nodes] == [50, 30]
    wrong = replace(uneven, env={"VLLM_PP_LAYER_PARTITION": "50,31"})
    unknown = assess(some_nodes(2), model, wrong)
    assert unknown
    assert unknown.state == "unknown"


def test_vllm_takes_a_spark_for_a_small_gpu_from_0_33_on() -> None:
    model = a_model(name="gpt-oss-120b")
    old = asked(model, an_engine(version="0.19.0"), 131072)
    new = asked(model, an_engine(), 131072)
    assert (old.step, old.running, new.step, new.running) == (8192, 1024, 2048, 256)
    assert asked(model, an_engine(args={"max-num-batched-tokens": "16k"}), 1).step == 16000
    assert release("1.3.0rc13") == (1, 3, 0)


def test_experts_of_a_layer_go_to_ranks_whole_where_they_are_spread() -> None:
    assert isinstance(known_shape(found("gpt-oss-120b")).moe, Experts)
    spread = fit_of("minimax-m2.7-nvfp4", Parallel(tensor=8, expert=True), context_length=1024)
    sliced = fit_of("minimax-m2.7-nvfp4", Parallel(tensor=8), context_length=1024)
    assert spread.nodes[0].weights_gib == sliced.nodes[0].weights_gib


def test_alternatives_have_the_sites_own_first_and_each_layout_once() -> None:
    model = a_model(name="meta-llama-3.1-405b-instruct-awq-int4", context_length=32768)
    engine = an_engine(parallel=Parallel(pipeline=3), memory_utilization=0.82)
    others = alternatives(some_nodes(3), model, engine)
    keys = [(item.nodes, item.fit.parallel, item.fit.kv_cache_dtype) for item in others]
    assert others[0].own
    assert sum(item.own for item in others) == 1
    assert len(set(keys)) == len(keys)
    assert {item.nodes for item in others} == {2, 3, 4}
    assert {item.fit.kv_cache_dtype for item in others} == {"auto", "fp8"}
    # Three ranks divide none of its heads.
    assert all(item.fit.parallel.tensor != 3 for item in others)


def test_alternatives_are_splits_that_the_engine_takes() -> None:
    model = a_model(name="qwen3-235b-a22b-instruct-2507", context_length=8192)
    engine = an_engine(name="llama.cpp", version="0.5.0-dev", parallel=Parallel(pipeline=2))
    sizes = {
        (i.fit.parallel.tensor, i.fit.parallel.pipeline)
        for i in alternatives(some_nodes(2), model, engine)
    }
    assert sizes == {(1, 1), (1, 2), (1, 3)}


def test_more_nodes_than_cables_join_are_on_a_switch(sparkgen: Command) -> None:
    site = ROOT / "sites/ring-405b.yaml"
    told = sparkgen("fit", site, "--compare", cwd=ROOT).out
    lines = [line for line in told.splitlines() if " on a switch " in line]
    assert lines
    assert all(line.split()[0] == "4" for line in lines)
    plain = json.loads(sparkgen("fit", site, "--compare", "--format", "json", cwd=ROOT).out)
    assert {item["nodes"]: item["on_switch"] for item in plain["alternatives"]} == {
        2: False,
        3: False,
        4: True,
    }


def test_a_group_of_one_node_has_no_smaller_one() -> None:
    group = Group(some_nodes(1), a_model(name="gpt-oss-120b"), an_engine())
    assert {item.nodes for item in alternatives(*(group.nodes, group.model, group.engine))} == {
        1,
        2,
    }


def test_a_bar_is_as_long_as_the_node_and_shows_what_is_beyond_its_end() -> None:
    fits = fit_of("gpt-oss-120b", context_length=8192).nodes[0]
    over = fit_of("llama-3.3-70b-instruct", context_length=8192).nodes[0]
    for marks in (True, False):
        assert len(bar(fits, marks, color=False)) == BAR_WIDTH + 2
        assert bar(fits, marks, color=False).endswith("|")
        assert bar(over, marks, color=False).endswith(">")
    assert bar(fits, ascii_only=True, color=False).isascii()
    assert "\033[" in bar(fits, ascii_only=True, color=True)
    assert "\033[" not in table("x", fit_of("gpt-oss-120b"), ascii_only=True, color=False)


def test_every_number_of_the_table_has_a_column() -> None:
    fit = fit_of("gpt-oss-120b", context_length=8192)
    assert [len(row) for row in rows(fit)] == [8]


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.stem)
def test_fit_answers_for_every_example_site(sparkgen: Command, site: Path) -> None:
    told = sparkgen("fit", site, cwd=ROOT)
    assert told.code == 0
    assert told.out.startswith(f"{site.stem}: fits")
    compared = sparkgen("fit", site, "--compare", cwd=ROOT)
    assert "\n*  " in compared.out
    plain = json.loads(sparkgen("fit", site, "--compare", "--format", "json", cwd=ROOT).out)
    same = yaml.safe_load(sparkgen("fit", site, "--compare", "--format", "yaml", cwd=ROOT).out)
    assert plain == same
    assert plain["memory"]["state"] == "fits"
    shown = json.loads(sparkgen("show", site, "--format", "json", cwd=ROOT).out)
    assert shown["memory"] == plain["memory"]


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.stem)
def test_fit_takes_less_than_a_third_of_a_second(process: Command, site: Path) -> None:
    """The best of three in time of a processor, and with room for one that is twice as slow."""
    times = []
    for _ in range(3):
        before = os.times()
        assert process("fit", site, cwd=ROOT).code == 0
        after = os.times()
        user = after.children_user - before.children_user
        times.append(user + after.children_system - before.children_system)
    assert min(times) < 2 / 3


def test_fit_says_what_a_site_lacks_and_stops_at_other_errors(
    sparkgen: Command, tmp_path: Path
) -> None:
    text = (ROOT / "sites/single.yaml").read_text(encoding="utf-8")
    site = tmp_path / "site.yaml"
    site.write_text(text.replace("name: gpt-oss-120b", "source: example/x"), encoding="utf-8")
    told = sparkgen("fit", site, cwd=tmp_path)
    assert (told.code, told.out) == (0, "single: unknown, for want of model.architecture\n")
    site.write_text(text.replace("gpt-oss-120b", "gpt-os-120b"), encoding="utf-8")
    told = sparkgen("fit", site, cwd=tmp_path)
    assert (told.code, told.out) == (3, "")
    assert "SG501" in told.err


def test_readme_has_the_figures_and_the_table_of_a_site(sparkgen: Command) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert markdown() in readme, "the table is that of published.markdown()"
    assert sparkgen("fit", "sites/ring-405b.yaml", cwd=ROOT).out in readme


def test_llama_cpp_allocates_the_cache_of_all_sequences_at_the_start() -> None:
    model = a_model(name="gpt-oss-120b", context_length=131072, max_sequences=16)
    at_once = assess(some_nodes(1), model, an_engine(name="llama.cpp", version="0.5.0-dev"))
    as_they_grow = assess(some_nodes(1), model, an_engine())
    assert at_once
    assert as_they_grow
    assert (at_once.state, as_they_grow.state) == ("does not fit", "fits")
    assert at_once.nodes[0].nccl_gib == at_once.nodes[0].graphs_gib == 0


def test_fit_shows_by_how_much_a_model_does_not_fit(sparkgen: Command) -> None:
    site = ROOT / "tests/errors/SG520-weights/site.yaml"
    told = sparkgen("fit", site, "--compare", cwd=ROOT)
    assert told.code == 3
    assert "error[SG520]" in told.err
    assert told.out.startswith("lab: does not fit: 20.5 GiB too little on spark1 beside one")
    assert told.out.count("does not fit") > 1
    assert " fits " in told.out
    plain = json.loads(sparkgen("fit", site, "--format", "json", cwd=ROOT).out)
    assert plain["memory"]["state"] == "does not fit"
    assert plain["memory"]["nodes"][0]["headroom_gib"] < 0
