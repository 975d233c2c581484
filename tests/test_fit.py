"""Memory fit: against published figures, by its own invariants, and as the command prints it."""

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command
from declared import a_model, an_engine, some_nodes
from error_cases import CASES
from evidence import starts
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from published import (
    FIGURES,
    RUNS,
    UNKNOWN,
    Figure,
    Unknown,
    fit_of,
    paged_cache,
)
from tables import of_each
from valid_sites import EXAMPLES

from generator import catalogs
from generator.catalogs import Checkpoint
from generator.catalogs.engines import ENGINE_TRAITS
from generator.engines import logged_memory
from generator.fit import automatic, calibration, formulas
from generator.fit.alternatives import Deployment, alternatives, holds
from generator.fit.assessment import TIGHT, Fit, assess
from generator.fit.choices import siblings
from generator.fit.complete import complete
from generator.fit.demand import Layout, Weights, _Split
from generator.fit.formulas import GIB, PACKED, WIDE
from generator.fit.measured import Measured, measured
from generator.fit.requested import requested, share_bytes, step
from generator.fit.table import BAR_WIDTH, bar, figures, rows, table, verdict
from generator.models.architecture import Experts, known_shape, tensor_sizes
from generator.pipeline import read_site
from generator.records import replace
from generator.resources import ROOT
from generator.sitefile.beside import Source, SourceFile
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, Parallel

SITES = sorted((ROOT / "sites").rglob("*.yaml"))
NAMES = catalogs.checkpoint_names()
steady = settings(
    deadline=None, derandomize=bool(os.environ.get("CI")), database=None, max_examples=50
)


@of_each(FIGURES, lambda figure: figure.what)
def test_formulas_agree_with_published_figures(figure: Figure) -> None:
    assert abs(figure.difference) <= figure.tolerance, figure.ours()


def test_no_recipe_of_the_registry_is_refused() -> None:
    """Three in four fit without a finding; none is refused, and none is unknown."""
    verdicts = {run.recipe: "tight" if run.fit.tight else run.fit.state for run in RUNS}
    assert set(verdicts.values()) <= {"fits", "tight", "fits newer", "can't tell"}, verdicts
    assert sum(verdict == "fits" for verdict in verdicts.values()) >= 0.75 * len(RUNS), verdicts


@of_each(UNKNOWN, lambda unknown: unknown.what)
def test_incomputable_sizes_are_unknown(unknown: Unknown) -> None:
    assert unknown.missing


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


def test_kv_heads_are_replicated_over_more_ranks() -> None:
    cached = [formulas.grouped_cache_elements(4, 128, tensor) for tensor in (1, 2, 4, 8, 16)]
    assert cached == [1024, 512, 256, 256, 256]


@pytest.mark.parametrize(
    ("name", "experts", "others"),
    [
        # NVIDIA quantizes only the experts of MiniMax and DeepSeek, but all of Llama's layers.
        ("minimax-m2.5-nvfp4", PACKED["nvfp4"], WIDE),
        ("deepseek-v3-fp4", PACKED["nvfp4"], WIDE),
        ("gpt-oss-120b", PACKED["mxfp4"], WIDE),
        ("qwen3-235b-a22b-gptq-int4", PACKED["gptq-int4"], PACKED["gptq-int4"]),
        ("qwen3-235b-a22b-nvfp4", PACKED["nvfp4"], PACKED["nvfp4"]),
        ("qwen3-235b-a22b-fp8", 1.0, 1.0),
        ("qwen3-235b-a22b", WIDE, WIDE),
    ],
)
def test_quantized_layers_follow_from_the_checkpoints_size(
    name: str, experts: float, others: float
) -> None:
    checkpoint = found(name)
    assert checkpoint.weight_gb
    weights = Weights(checkpoint.weight_gb * formulas.GB, 0, checkpoint.format)
    shape = complete(known_shape(checkpoint))
    assert shape
    split = _Split(shape, weights, Layout(1, (1,), 1, 1, whole_experts=False))
    assert split.expert == pytest.approx(experts, rel=0.01)
    assert split.linear == pytest.approx(others, rel=0.01)


@of_each(NAMES)
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
        if known.tied_embeddings and stages > 1:
            # The last stage holds the embedding table again, as its output head.
            assert known.vocab_size
            assert known.hidden_size
            held -= WIDE * known.vocab_size * known.hidden_size / formulas.GB
        if checkpoint.format in formulas.TILED:
            # Kernels pad its experts.
            assert 0.997 < held / checkpoint.weight_gb < 1.1
            continue
        whole = checkpoint.weight_gb + checkpoint.vision_gb - checkpoint.mtp_gb
        assert held == pytest.approx(whole, rel=0.003, abs=0.02)
        assert sum(node.layers for node in fit.nodes) == known.layers


@of_each(NAMES)
def test_cache_of_the_catalog_follows_from_the_formulas(name: str) -> None:
    shape, facts = known_shape(found(name)), found(name).architecture.facts
    listed = facts.get("kv_elements_per_token")
    if listed is None:
        return
    if shape.mla:
        elements = formulas.latent_cache_elements(shape.mla.kv_rank, shape.mla.rope)
    else:
        assert shape.head_dim
        elements = formulas.grouped_cache_elements(shape.kv_heads, shape.head_dim, 1)
    assert shape.attention_layers * elements == listed
    if (recurrent := shape.recurrent) and "state_bytes" in facts["attention"]:
        assert recurrent.layers * recurrent.state * 4 == facts["attention"]["state_bytes"]


def found(name: str) -> Checkpoint:
    checkpoint = catalogs.checkpoint(name)
    assert checkpoint
    return checkpoint


@cache
def known() -> list[str]:
    """The models whose need is known: computing all needs takes longer than most chosen tests."""
    return [name for name in NAMES if fit_of(name, context_length=1024).state != "unknown"]


KNOWN = st.deferred(lambda: st.sampled_from(known()))
# For smaller models, the buffers of another group of ranks take more than the split saves.
LARGE = st.deferred(
    lambda: st.sampled_from([name for name in known() if (found(name).weight_gb or 0) > 5])
)


def need(fit: Fit) -> float:
    """The memory that the fullest node needs for one sequence."""
    return max(node.weights_gib + node.reserve_gib + node.kv_one_gib for node in fit.nodes)


@steady
@given(
    LARGE,
    st.integers(1, 8),
    st.integers(0, 7),
    st.sampled_from([1024, 32768, 131072]),
    st.booleans(),
)
def test_more_nodes_never_need_more_memory_per_node(
    name: str, pipeline: int, tensor: int, context: int, expert: bool
) -> None:
    legal = tensor_sizes(known_shape(found(name)), 8)
    size = legal[tensor % len(legal)]
    now = fit_of(name, Parallel(size, pipeline, expert=expert), context_length=context)
    stages = fit_of(name, Parallel(size, pipeline + 1, expert=expert), context_length=context)
    # One more batch is under way, whose tokens sliding windows keep: 0.08 GiB for Gemma 4.
    assert need(stages) <= need(now) + 0.1
    for larger in (other for other in legal if other > size):
        ranks = fit_of(name, Parallel(larger, pipeline, expert=expert), context_length=context)
        assert need(ranks) <= need(now) + 0.02


@steady
@given(
    KNOWN,
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
@given(KNOWN, st.integers(1, 8), st.integers(1, 64))
def test_the_longest_context_fits_and_a_longer_one_does_not(
    name: str, pipeline: int, sequences: int
) -> None:
    sizes = Parallel(pipeline=pipeline)
    fit = fit_of(name, sizes, context_length=1024, max_sequences=sequences)
    assume(fit.longest_context)
    assert fit.longest_context
    limits = {"max_sequences": sequences}
    longest = fit_of(name, sizes, context_length=fit.longest_context, **limits)
    assert longest.state in ("fits", "can't tell")
    assert (longest.most_sequences or 0) >= sequences
    bound = known_shape(found(name)).max_context_yarn or found(name).max_context or 0
    if fit.longest_context < bound:
        longer = fit_of(name, sizes, context_length=fit.longest_context + 1, **limits)
        assert (longer.most_sequences or 0) < sequences


def test_unmeasured_node_is_checked_with_both_memory_sizes() -> None:
    """MemTotal is 119.7 GiB on early releases of DGX OS and 121.6 on newer ones."""
    model_settings = {"name": "qwen3.5-122b-a10b-gptq-int4", "context_length": 131072}
    shares = [hundredth / 1000 for hundredth in range(500, 900, 2)]
    model = a_model(**model_settings)
    for share in shares:
        engine = an_engine(memory_utilization=share)
        unmeasured = [replace(node, measured=False) for node in some_nodes(1)]
        fit = assess(unmeasured, model, engine)
        assert fit
        if fit.state == "fits newer":
            break
    else:
        pytest.fail("there is a share at which the counts differ")
    assert verdict(fit)[0].startswith("fits newer releases of DGX OS alone: ")
    assert any("'visible_gib'" in line for line in verdict(fit))
    measured = assess(some_nodes(1), model, engine)
    assert measured
    assert measured.state == "can't tell"
    more = [replace(node, visible_gib=121.6) for node in some_nodes(1)]
    newer = assess(more, model, engine)
    assert newer
    assert newer.state != "does not fit"


SITE = """version: 1
name: lab
topology: {{kind: {topology}}}
nodes:
{nodes}
{cabling}model: {{name: {name}, context_length: {context}}}
engine:
  name: {engine}
  version: {version}
  image: {image}
  parallel: {{tensor: {tensor}}}
  memory_utilization: {share}
"""
CABLING = """cabling:
  - endpoints: ["spark1:p0", "spark2:p0"]
    subnets: [192.168.100.0/24, 192.168.101.0/24]
"""
# The rule that each verdict of a fit triggers; other findings are about other things.
RULE_OF_STATE = {
    "does not fit": {"SG520"},
    "can't tell": {"SG538"},
    "fits newer": {"SG537"},
    "fits shorter": {"SG556"},
    "tight": {"SG522"},
    "fits": set(),
}
ABOUT_MEMORY = {"SG520", "SG522", "SG537", "SG538", "SG556"}
ABOUT_SHARES = {"SG523", "SG524", "SG525"}
# The verdict where newer releases have room and earlier ones don't.
ONLY_NEWER = {"fits": "fits newer", "fits shorter": "can't tell"}


def site_of(visible: float | None, tensor: int, engine: str, **values: Any) -> str:
    """A site of one or two nodes, whose memory may have been measured."""
    seen = f", visible_gib: {visible}" if visible else ""
    nodes = "\n".join(
        f"  - {{name: spark{n}, management: {{address: 10.0.0.{n}/24}}{seen}}}"
        for n in range(1, tensor + 1)
    )
    start = ENGINE_TRAITS[engine].start
    assert start
    two = {"topology": "direct", "cabling": CABLING}
    joined = two if tensor > 1 else {"topology": "single", "cabling": ""}
    how = {"engine": engine, "version": start.version, "image": start.image, "tensor": tensor}
    return SITE.format(nodes=nodes, **how, **joined, **values)


def assessed(text: str) -> tuple[Deployment, set[str]]:
    """A site's group, and the ids of its findings about memory."""
    reading = read_site("lab.yaml", text.encode())
    declared = reading.declaration
    assert declared
    assert declared.model
    assert declared.engine
    rules = {finding.rule for finding in reading.findings}
    return Deployment(declared.nodes, declared.model, declared.engine), rules


LIMITED = """\
version: 1
name: lab
nodes: [{{name: spark, management: {{address: 10.0.0.1/24}}}}]
topology: {{kind: single}}
model: {{name: {model}, context_length: 32768}}
engine:
  name: sglang
  version: 0.5.23
  image: lmsysorg/sglang:v0.5.23-cu130
  memory_utilization: 0.75
  args: {{{args}}}
"""


# A cache of tokens alone, one with windows, and one with states, which a limit leaves as they are.
@pytest.mark.parametrize("model", ["qwen3-8b", "gpt-oss-120b", "qwen3.6-35b-a3b-fp8"])
def test_limit_in_tokens_is_part_of_the_room(model: str) -> None:
    free = assessed(LIMITED.format(model=model, args=""))[0].assess()
    assert free
    assert free.most_sequences
    for tokens, sequences in ((32768, 1), (65536, 2), (10**9, free.most_sequences)):
        args = f"max-total-tokens: {tokens}"
        group, rules = assessed(LIMITED.format(model=model, args=args))
        fit = group.assess()
        assert fit
        assert (fit.state, fit.tight, fit.most_sequences) == ("fits", False, sequences)
        assert fit.worst.system_gib >= free.worst.system_gib
        assert not rules
    group, rules = assessed(LIMITED.format(model=model, args="max-total-tokens: 16Ki"))
    fit = group.assess()
    assert fit
    assert fit.state == "fits shorter"
    assert 0.7 * 16384 <= (fit.one_context or 0) <= 16384
    assert rules == {"SG556"}


@pytest.mark.parametrize("model", ["qwen3-8b", "gpt-oss-120b", "qwen3.6-35b-a3b-fp8"])
@pytest.mark.parametrize("sequences", [3, 8])
def test_limit_in_tokens_of_so_many_sequences_holds_them_all(model: str, sequences: int) -> None:
    requested = f"context_length: 32768, max_sequences: {sequences}"
    text = LIMITED.replace("context_length: 32768", requested)
    args = f"max-total-tokens: {32768 * sequences}"
    group, rules = assessed(text.format(model=model, args=args))
    fit = group.assess()
    assert fit
    assert fit.most_sequences == sequences
    assert not rules


def test_limit_of_no_token_holds_no_request() -> None:
    _, rules = assessed(LIMITED.format(model="gpt-oss-120b", args="max-total-tokens: 0"))
    assert rules == {"SG520"}


def test_limit_in_tokens_is_named_and_raised() -> None:
    text = LIMITED.format(model="qwen3-8b", args="max-total-tokens: 16384")
    (finding,) = read_site("lab.yaml", text.encode()).findings
    assert finding.path == ("engine", "args", "max-total-tokens")
    assert "'max-total-tokens: 32768'" in str(finding.help)
    text = LIMITED.format(model="qwen3-8b", args="max-total-tokens: 0")
    (finding,) = read_site("lab.yaml", text.encode()).findings
    assert finding.message.endswith("one sequence needs 4.5 GiB, the limit in tokens leaves 0.0")


@settings(parent=steady, max_examples=15)
@example("qwen3.6-35b-a3b", "vllm", 1, 131072, 62, None, None)
@example("qwen3-235b-a22b-instruct-2507-nvfp4", "sglang", 2, 131072, 58, None, None)
@example("qwen3-235b-a22b-instruct-2507-nvfp4", "sglang", 2, 131072, 59, None, None)
@given(
    KNOWN,
    st.sampled_from(("vllm", "sglang")),
    st.integers(1, 2),
    st.sampled_from((8192, 32768, 131072)),
    st.integers(50, 85),
    st.sampled_from((None, 119.7, 121.6)),
    st.none() | st.floats(-5, 2),
)
def test_fit_rules_comparison_and_auto_give_one_verdict(
    name: str,
    engine: str,
    tensor: int,
    context: int,
    hundredths: int,
    visible: float | None,
    headroom: float | None,
) -> None:
    values: dict[str, Any] = {"name": name, "share": hundredths / 100}
    group, rules = assessed(site_of(visible, tensor, engine, context=context, **values))
    fit = group.assess()
    if headroom is not None and fit and fit.nodes:
        # As near to the limit as this.
        worst = fit.worst
        share = values["share"] + (headroom - worst.headroom_gib) / worst.visible_gib
        values["share"] = round(min(max(share, 0.1), 0.95), 4)
        group, rules = assessed(site_of(visible, tensor, engine, context=context, **values))
        fit = group.assess()
    assume(fit and not rules & {"SG502", "SG503", "SG504", "SG506", "SG507", "SG510", "SG532"})
    assert fit
    assert rules & ABOUT_MEMORY == RULE_OF_STATE["tight" if fit.tight else fit.state]
    table_of = alternatives(group.nodes, group.model, group.engine)
    assert [item.fit for item in table_of if item.own] == [fit]
    measured = [
        replace(group, nodes=tuple(replace(n, visible_gib=gib, measured=True) for n in group.nodes))
        for gib in ((119.7, 121.6) if visible is None else (visible, visible))
    ]
    states = [each and each.state for each in (group.assess() for group in measured)]
    earlier, newer = states
    assert fit.state == (newer if earlier == newer else ONLY_NEWER.get(str(newer), newer))
    newest = measured[1].assess()
    assert newest
    # Two starts of a site differ by so much.
    differs = formulas.STARTS_DIFFER_BYTES / GIB
    left = min(node.headroom_gib - min(node.less_gib, differs) for node in newest.nodes)
    at_best = min(node.headroom_gib + node.doubt_gib for node in newest.nodes)
    # Figures are rounded to two places.
    if min(abs(left), abs(at_best)) > 0.02:
        doubted = {"can't tell"} if at_best > 0 else {"does not fit"}
        if ENGINE_TRAITS[engine].starts_short and at_best <= 0:
            taken = max(node.kv_one_gib for node in newest.nodes) * newest.needed
            if at_best + taken > 0:
                doubted |= {"can't tell", "fits shorter"}
        assert newest.state in ({"fits"} if left > 0 else doubted)
    automatic, auto_rules = assessed(site_of(visible, tensor, engine, context="auto", **values))
    if not auto_rules & {"SG520", "SG537", "SG538"} and automatic.model.context_length:
        longest = automatic.model.context_length
        _, again = assessed(site_of(visible, tensor, engine, context=longest, **values))
        assert again & ABOUT_MEMORY == auto_rules & {"SG522"}


# Sites with too large a share or cache, beside other programs or not.
@settings(parent=steady, max_examples=12)
@given(
    KNOWN,
    st.sampled_from(("vllm", "sglang", "tensorrt-llm")),
    st.sampled_from((8192, 131072)),
    st.integers(30, 97),
    st.sampled_from((None, 96.0, 121.6)),
    st.sampled_from((0, 4, 30)),
    st.sampled_from((None, 0.5, 8, 60)),
)
def test_advice_about_memory_holds_when_it_is_followed(
    name: str,
    engine: str,
    context: int,
    hundredths: int,
    visible: float | None,
    other: float,
    pinned: float | None,
) -> None:
    text = site_of(visible, 1, engine, name=name, context=context, share=hundredths / 100)
    site = yaml.safe_load(text)
    if other:
        site["nodes"][0]["other"] = [{"name": "speech", "gib": other}]
    if pinned:
        site["model"]["kv_cache_gib"] = pinned
    findings = read_site("lab.yaml", yaml.safe_dump(site).encode()).findings
    rules = {finding.rule for finding in findings}
    for finding in findings:
        needs = re.search(r"needs (\S+) GiB and the engine has (\S+) ", finding.message)
        if needs and finding.rule == "SG537" and "two starts differ" not in finding.message:
            assert float(needs[1]) > float(needs[2])
        sizes = re.search(r"write (\d+) to (\d+)", finding.help)
        advised = [(("model", "kv_cache_gib"), int(n)) for n in (sizes.groups() if sizes else ())]
        if finding.rule in {*ABOUT_MEMORY, *ABOUT_SHARES}:
            advised += [(edit.path, edit.value) for edits in finding.proposals for edit in edits]
        for (section, key), value in advised:
            followed = site | {section: site[section] | {key: value}}
            after = {
                f.rule for f in read_site("lab.yaml", yaml.safe_dump(followed).encode()).findings
            }
            assert finding.rule not in after
            assert not after & {*ABOUT_MEMORY, *ABOUT_SHARES} - rules - {"SG522"} or pinned


@pytest.mark.parametrize(("most", "count"), [(1, 1), (16, 5), (256, 35), (512, 51)])
def test_graphs_are_of_the_sizes_that_vllm_captures(most: int, count: int) -> None:
    """As in its logs: PIECEWISE=51 (largest=512), FULL=35 (largest=256)."""
    assert formulas.captured_sizes(most) == count


@pytest.mark.parametrize(
    ("share", "visible", "state"),
    [
        (0.78, 119.7, "does not fit"),
        (0.8, 121.63, "can't tell"),
        (0.85, 119.7, "fits"),
        (0.85, 121.63, "fits"),
    ],
)
def test_minimax_fits_at_the_share_that_worked(share: float, visible: float, state: str) -> None:
    """At 0.8, 22.5 GiB were available where 23.25 are needed (eugr/spark-vllm-docker issue 396)."""
    sizes = Parallel(tensor=2)
    engine = an_engine(version="0.29.1", parallel=sizes, memory_utilization=share)
    model = a_model(name="minimax-m2.7-nvfp4", context_length=196608)
    fit = assess(some_nodes(2, visible), model, engine)
    assert fit
    assert fit.state == state


def test_no_published_room_of_a_release_is_beyond_the_table() -> None:
    """The interval is that of the starts it was fitted to: none of them is refused by it."""
    for start in starts():
        room = next((figure for figure in start.figures if figure.kind == "room"), None)
        if room is None or start.is_held_out or not start.is_known or room.ours is None:
            continue
        fit = start.fit
        assert fit
        node = min(fit.nodes, key=lambda node: node.kv_room_gib)
        assert -node.less_gib - 0.1 <= room.value - room.ours <= node.doubt_gib + 0.1, start.path


@pytest.mark.parametrize(
    ("version", "correction", "doubt"),
    [
        ("0.29.1", None, 4.8),
        ("0.29.1", 0.0, 1.0),
        ("0.29.1", -9.0, 1.0),
        ("0.29.1+own", None, 12.89),
        ("0.29.1+own", 0.0, 1.0),
    ],
)
def test_less_is_in_doubt_once_it_was_measured(
    version: str, correction: float | None, doubt: float
) -> None:
    sizes = Parallel(tensor=2)
    engine = an_engine(version=version, parallel=sizes)
    model = a_model(name="minimax-m2.7-nvfp4", context_length=196608, correction_gib=correction)
    fit = assess(some_nodes(2, 121.63), model, engine)
    assert fit
    assert fit.worst.doubt_gib == doubt
    assert fit.is_own_build == (doubt > 10)


@pytest.mark.parametrize(
    ("engine", "tensor", "correction", "excess"),
    [
        ("sglang", 1, None, 1.4),
        ("sglang", 2, None, 11.0),
        ("sglang", 4, None, 11.0),
        ("sglang", 2, 0.0, 0.0),
        ("sglang", 2, 2.5, 0.0),
        ("vllm", 2, None, 0.0),
    ],
)
def test_memory_seen_at_other_starts_is_reserved_unless_measured(
    engine: str, tensor: int, correction: float | None, excess: float
) -> None:
    where = an_engine(
        name=engine,
        version="0.5.23" if engine == "sglang" else "0.33.0",
        parallel=Parallel(tensor=tensor),
    )
    model = a_model(
        name="qwen3.8-flash-next-fp8",
        context_length=4096,
        tables="disk" if tensor == 1 else "memory",
        correction_gib=correction,
    )
    fit = assess(some_nodes(tensor, 121.63), model, where)
    assert fit
    assert fit.excess_gib == excess
    assert fit.worst.correction_gib == (correction or excess)
    assert fit.worst.doubt_gib >= excess + 1
    assert any("starts of this model" in line for line in verdict(fit)) == bool(excess)


def test_weights_above_the_share_are_refused_for_any_build() -> None:
    for version in ("0.33.0", "0.33.0+own"):
        engine = an_engine(version=version, parallel=Parallel(tensor=2))
        fit = assess(some_nodes(2), a_model(name="glm-5.2-nvfp4", context_length=8192), engine)
        assert fit
        assert fit.state == "does not fit"


def test_doubtful_fit_shows_both_figures_and_a_remedy() -> None:
    model = a_model(name="llama-3.3-70b-instruct-fp8", context_length=65536)
    for version, why in (("0.33.0", "to 4.8 GiB more"), ("0.33.0+own", "may need another")):
        engine = an_engine(version=version, memory_utilization=0.77)
        fit = assess(some_nodes(1, 121.6), model, engine)
        assert fit
        assert verdict(fit)[0].startswith("can't tell: ")
        assert " too little on spark1 beside one sequence of 65536 tokens" in verdict(fit)[0]
        assert why in verdict(fit)[1]
        assert "fit --measured" in verdict(fit)[1]
        assert figures(fit)[0] == "can't tell"
        assert not fit.has_margin


@pytest.mark.parametrize(
    ("args", "graphs"),
    [
        ({}, (51, 35)),
        ({"compilation-config": {"cudagraph_mode": "PIECEWISE"}}, (51, 0)),
        ({"compilation-config": '{"cudagraph_mode": "FULL_DECODE_ONLY"}'}, (0, 35)),
        ({"compilation-config.cudagraph_mode": "none"}, (0, 0)),
        ({"optimization-level": 0}, (0, 0)),
        ({"optimization-level": 1}, (51, 0)),
        ({"compilation-config": {"cudagraph_capture_sizes": [1, 2, 400]}}, (3, 2)),
        ({"compilation-config": {"max_cudagraph_capture_size": 4}}, (3, 3)),
        ({"cudagraph-capture-sizes": "6"}, (1, 1)),
        ({"compilation-config": "{no JSON"}, (51, 35)),
    ],
)
def test_graphs_are_those_of_the_settings(args: dict[str, Any], graphs: tuple[int, int]) -> None:
    wanted = requested(
        a_model(name="gpt-oss-120b", max_sequences=256), an_engine(args=args), 8192, WIDE
    )
    assert wanted.graphs == graphs
    assert wanted.eager == (graphs == (0, 0))


def test_graphs_come_out_of_the_share_since_vllm_0_20() -> None:
    model = a_model(name="qwen3.6-27b-fp8", context_length=8192)
    rooms, reserves = [], []
    for version, env in (
        ("0.19.1", {}),
        ("0.20.0", {}),
        ("0.20.0", {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "0"}),
    ):
        fit = assess(some_nodes(1), model, an_engine(version=version, env=env))
        assert fit
        rooms.append(fit.nodes[0].kv_room_gib)
        reserves.append(fit.nodes[0].graphs_gib)
    assert rooms[0] - rooms[1] == pytest.approx(reserves[1], abs=0.02)
    assert rooms[0] == rooms[2]


def test_llama_405b_in_nvfp4_does_not_fit_two_nodes_and_does_three() -> None:
    two = fit_of("llama-3.1-405b-instruct-fp4", Parallel(tensor=2), context_length=8192)
    three = fit_of("llama-3.1-405b-instruct-fp4", Parallel(pipeline=3), context_length=8192)
    assert (two.state, three.state) == ("does not fit", "fits")
    assert two.worst.headroom_gib < -10


def test_what_people_run_fits() -> None:
    """Layouts that were reported to run, and one that according to NVIDIA has no headroom."""
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


def test_memory_fraction_of_each_engine() -> None:
    visible = 100.0 * GIB
    assert share_bytes(visible, 0.8, shares_free=False) == 80 * GIB
    assert share_bytes(visible, 0.8, shares_free=True) == pytest.approx(0.8 * 88.3 * GIB)
    model = a_model(name="gpt-oss-120b", context_length=8192)
    fits = [assess(some_nodes(1), model, an_engine(name=name)) for name in ("vllm", "sglang")]
    inside, outside = (fit.nodes[0] for fit in fits if fit)
    # What SGLang needs besides weights and cache comes out of the memory outside its fraction.
    more = inside.reserve_gib + inside.weights_gib - outside.weights_gib
    less = 0.8 * 11.7
    assert outside.kv_room_gib - inside.kv_room_gib == pytest.approx(more - less, abs=0.1)
    left = outside.reserve_gib - less
    assert inside.system_gib - outside.system_gib == pytest.approx(left, abs=0.1)


def test_cache_of_a_fixed_size() -> None:
    model = a_model(name="gpt-oss-120b", context_length=131072)
    fixed = an_engine(args={"kv-cache-memory-bytes": "8G"})
    fit = assess(some_nodes(1), model, fixed)
    assert fit
    assert fit.nodes[0].kv_room_gib == 8
    too_much = assess(some_nodes(1), model, an_engine(args={"kv-cache-memory-bytes": "50G"}))
    assert too_much
    assert too_much.state == "does not fit"


@pytest.mark.parametrize(
    ("model_settings", "missing"),
    [
        ({"source": "example/x", "architecture": {"layers": 8, "heads": 8, "kv_heads": 8}}, 5),
        ({"source": "example/x", "like": "minimax-m2.7"}, 1),
        ({"name": "nvidia/qwen3.8-flash-next-nvfp4"}, 1),
        ({"name": "gpt-oss-120b", "kv_cache_dtype": "turbo3"}, 1),
        ({"name": "gpt-oss-120b", "speculative": {"method": "eagle3", "tokens": 3}}, 1),
    ],
)
def test_unknown_sizes_are_named(model_settings: dict[str, Any], missing: int) -> None:
    fit = assess(some_nodes(1), a_model(**model_settings), an_engine())
    assert fit
    assert fit.state == "unknown"
    assert len(fit.missing) == missing, fit.missing
    assert all(name in verdict(fit)[0] for name in fit.missing)


def test_site_may_give_a_size_that_the_catalog_lacks() -> None:
    model_settings = {"name": "minimax-m2.7-awq-4bit", "context_length": 8192}
    sized = fit_of(**model_settings, parallel=Parallel(tensor=2), weight_gb=134.4)
    known = fit_of("minimax-m2.7-nvfp4", Parallel(tensor=2), context_length=8192)
    assert sized.nodes[0].weights_gib == pytest.approx(known.nodes[0].weights_gib, rel=0.02)


def test_facts_about_own_files_apply_to_no_other_checkpoint() -> None:
    sizes = Parallel(tensor=2)
    engine = an_engine(parallel=sizes)
    for model in (
        a_model(source="example/x", like="minimax-m2.7", weight_gb=20.0, context_length=8192),
        a_model(name="minimax-m2.7-awq-4bit", weight_gb=20.0, context_length=8192),
    ):
        group = Deployment(some_nodes(2), model, engine)
        fits = {known.name: fit for known, fit in siblings(group)}
        nvfp4 = fits["minimax-m2.7-nvfp4"]
        assert nvfp4
        assert nvfp4.nodes[0].weights_gib == pytest.approx(62.6, abs=0.1)


@pytest.mark.parametrize(
    ("source", "form", "weight_gb"),
    [
        # From public recipes for Sparks, and similar sizes.
        ("Sehyo/Qwen3.5-122B-A10B-NVFP4", "nvfp4", 76.5),
        ("bleysg/Qwen3.5-122B-A10B-int4-fp8-hybrid", "mixed", 66.0),
        ("unsloth/Qwen3.8-27B-NVFP4", "nvfp4", 22.0),
        ("rdtand/Qwen3.6-27B-PrismaQuant-5.5bit-vllm", "nvfp4-mixed", 19.5),
        ("turboderp/Qwen3.6-27B-exl3", "mixed", 14.0),
        ("cyankiwi/GLM-4.7-Flash-AWQ-4bit", "int4", 18.0),
        ("cyankiwi/gemma-4-26B-A4B-it-AWQ-4bit", "int4", 17.0),
        ("Intel/Qwen3.6-35B-A3B-int4-mixed-AutoRound", "int4-autoround", 21.0),
        ("jarrelscy/GLM-5.2-NVFP4-AQLM-hybrid", "mixed", 380.0),
        ("lukealonso/MiMo-V2.5-NVFP4", "nvfp4", 185.0),
        ("EmbeddedLLM/Inkling-Small-MXFP4", "mxfp4", 160.0),
        ("Qwen/Qwen3-235B-A22B-GPTQ-Int8", "int8", 240.0),
        ("poolside/Laguna-S-2.1-NVFP4", "nvfp4", 71.0),
        ("olka-fi/MiniMax-M2.7-MXFP4", "mxfp4", 123.0),
        ("saricles/MiniMax-M2.7-NVFP4-GB10-AC", "nvfp4", 141.0),
        ("huihui-ai/Huihui-DeepSeek-V4-Flash-0731-abliterated", "fp4-fp8", 167.0),
    ],
)
def test_quantizations_of_others_are_recognized_by_name(
    source: str, form: str, weight_gb: float
) -> None:
    alike = catalogs.named_after(source)
    assert alike
    sizes = Parallel(tensor=2)
    engine = an_engine(parallel=sizes)
    model = a_model(
        source=source, like=alike, format=form, weight_gb=weight_gb, context_length=8192
    )
    fit = assess(some_nodes(2), model, engine)
    assert fit
    assert not fit.missing
    held = sum(node.weights_gib for node in fit.nodes) * GIB / 1e9
    # Weights that are not split over ranks are on both.
    padded = 1.1 if form in formulas.TILED else 1.06
    assert 0.995 < held / weight_gb < padded


@pytest.mark.parametrize(
    "source",
    [
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
        "lukealonso/MiniMax-M2.5-REAP-139B-A10B-NVFP4",
        "deepseek-ai/DeepSeek-V3.1",
        "zai-org/GLM-4.6V",
        "incoai/Qwen3.8-27B-DFlash2",
        "nvidia/NVIDIA-Nemotron-Labs-3-Puzzle-75B-A9B-NVFP4",
        "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B",
        "0xSero/GLM-5.1-555B-NVFP4",
        "somebody/merged-qwen3.6-27b-llama-3.3-70b",
    ],
)
def test_another_model_is_not_taken_for_one_of_the_catalog(source: str) -> None:
    assert catalogs.named_after(source) is None


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("nvidia-nemotron-3-nano-30b-a3b-bf16", {"0.27.1": 1, "0.31.0": 2, "0.32.0": 3}),
        ("qwen3.6-27b", {"0.25.1": 1, "0.27.1": 1, "0.28.0": 2, "0.33.0": 3}),
    ],
)
def test_prefixes_and_checkpoints_of_states_by_release(name: str, states: dict[str, int]) -> None:
    for version, count in states.items():
        kept = {pages.blocks for pages in paged_cache(name, version).pages if pages.kind == "state"}
        assert kept == {count}, version


def test_layers_that_cache_for_others_share_a_block() -> None:
    """DeepSeek-V4.1: 5131 blocks of 1,048,576 tokens in steps of 8192, as planned by hand.

    2.71 GiB of room were 1,290,154 such tokens on two A100, in October 2026. Releases before 0.28
    would pad pages to one another: 9267 blocks of four pages of each size.
    """
    model = {"name": "deepseek-v4.1-flash", "context_length": 1048576, "tables": "disk"}
    engine = {"parallel": Parallel(tensor=4), "args": {"max-num-batched-tokens": 8192}}

    def fit(version: str, name: str = "vllm") -> Fit:
        found = assess(
            some_nodes(4), a_model(**model), an_engine(name=name, version=version, **engine)
        )
        assert found
        return found

    block = 3 * (74880 + 17280) + 149760 + 33984
    assert fit("0.31.0").nodes[0].kv_one_gib == pytest.approx(5131 * block / GIB, abs=0.01)
    own = fit("0.31.0+own")
    assert (own.layouts, own.state) == ((9.52, 2.2), "can't tell")
    assert [fit("0.29.0").state, fit("0.5.23", "sglang").state] == ["unknown", "unknown"]


def test_layers_of_a_draft_model_are_grouped_with_the_models_own() -> None:
    """71.59 GiB were 7.353 sequences in a log of May 2026: 578 blocks of 8 pages each."""
    drafts = {"method": "dflash", "source": "z-lab/Qwen3.6-35B-A3B-DFlash", "tokens": 6}
    model = a_model(name="qwen3.6-35b-a3b", context_length=200000, speculative=drafts)
    engine = an_engine(version="0.21.1", args={"enable-prefix-caching": True})
    found = assess(some_nodes(1), model, engine)
    assert found
    assert found.nodes[0].kv_one_gib == pytest.approx(71.59 / 7.353, abs=0.01)


@pytest.mark.parametrize(
    ("name", "version", "kept"),
    [("vllm", "0.24.0", 5), ("vllm", "0.26.0", 1), ("sglang", "0.5.23", 5)],
)
def test_windows_of_a_draft_count_where_the_engine_has_them(
    name: str, version: str, kept: int
) -> None:
    """Four of its five layers have a window of 2048 tokens, with 2048 elements for each."""
    drafts = {"method": "dflash", "source": "z-lab/gemma-4-31B-it-DFlash", "tokens": 8}
    model = {"source": "google/gemma-4-31B-it", "context_length": 131072}
    args = {"max-num-batched-tokens": 2048} if name == "vllm" else {}
    engine = an_engine(name=name, version=version, args=args)
    fits = [
        assess(some_nodes(1), a_model(**model, **drafted), engine)
        for drafted in ({}, {"speculative": drafts})
    ]
    alone, with_drafts = (fit.nodes[0].kv_one_gib for fit in fits if fit)
    more = (with_drafts - alone) * GIB / (2048 * 2 * 131072)
    assert kept - 0.1 <= more < kept + 0.5


def test_cache_of_a_draft_model_is_known_or_requested() -> None:
    model_settings = {"name": "llama-3.1-8b-instruct", "context_length": 131072}
    drafts = {"source": "example/draft", "tokens": 4, "weight_gb": 1.0}
    alone = fit_of(**model_settings).nodes[0].kv_one_gib
    eagle = fit_of(**model_settings, speculative=drafts | {"method": "eagle3"}).nodes[0].kv_one_gib
    assert eagle == pytest.approx(alone * 33 / 32, abs=0.01)
    unknown = fit_of(**model_settings, speculative=drafts | {"method": "dflash"})
    assert unknown.missing == ("model.speculative.kv_elements_per_token",)
    speculative = drafts | {"method": "dflash", "kv_elements_per_token": 10240}
    more = fit_of(**model_settings, speculative=speculative).nodes[0].kv_one_gib - alone
    assert more == pytest.approx(10240 * 2 * 131072 / GIB, abs=0.01)


def test_an_encoder_caches_nothing() -> None:
    fit = fit_of("bge-m3", context_length=8192)
    assert fit.nodes[0].kv_one_gib == 0
    assert (fit.state, fit.longest_context, fit.most_sequences) == ("fits", 8192, 256)


def test_tables_are_in_memory_or_on_disk() -> None:
    """47.68 GiB of n-grams in 8 bits, sliced over tensor ranks (vLLM pull request 54129)."""
    name = "nvidia/qwen3.8-flash-next-nvfp4"
    held = [
        fit_of(name, sizes, context_length=8192, tables=place).nodes[0].weights_gib
        for sizes in (Parallel(), Parallel(tensor=2))
        for place in ("memory", "disk")
    ]
    assert held[0] - held[1] == pytest.approx(47.68, abs=0.02)
    assert held[2] - held[3] == pytest.approx(23.84, abs=0.02)
    architecture = {"layers": 8, "heads": 8, "kv_heads": 8, "weight_gb": 10.0, "tables_gb": 4.0}
    fit = assess(some_nodes(1), a_model(source="example/x", architecture=architecture), an_engine())
    assert fit
    assert "model.tables, in memory or on disk" in fit.missing


def test_own_model_fits_like_that_of_the_catalog() -> None:
    architecture = {
        "layers": 94, "heads": 64, "kv_heads": 4, "head_dim": 128, "hidden_size": 4096,
        "vocab_size": 151936, "experts": 128, "experts_per_token": 8,
        "expert_intermediate_size": 1536, "max_context": 40960, "weight_gb": 124.1,
        "format": "gptq-int4",
    }  # fmt: skip
    model = a_model(source="Qwen/Qwen3-235B-A22B-GPTQ-Int4", architecture=architecture)
    sizes = Parallel(tensor=2, expert=True)
    assert assess(some_nodes(2), model, an_engine(parallel=sizes)) == fit_of(
        "qwen3-235b-a22b-gptq-int4", sizes
    )


def test_a_source_is_like_a_model_of_the_catalog() -> None:
    model = a_model(
        source="example/Qwen3-235B-A22B-int4",
        like="qwen3-235b-a22b",
        weight_gb=124.1,
        format="gptq-int4",
        context_length=8192,
    )
    sizes = Parallel(tensor=2, expert=True)
    like = assess(some_nodes(2), model, an_engine(parallel=sizes))
    known = fit_of("qwen3-235b-a22b-gptq-int4", sizes, context_length=8192)
    assert like
    assert like == known
    unsized = assess(some_nodes(2), replace(model, weight_gb=None), an_engine(parallel=sizes))
    assert unsized
    assert unsized.missing == ("model.weight_gb",)


def test_cache_of_an_explicit_size_goes_with_the_share(sparkgen: Command, tmp_path: Path) -> None:
    text = (ROOT / "sites/single.yaml").read_text(encoding="utf-8")
    site = tmp_path / "single.yaml"
    text = text.replace("name: gpt-oss-120b", "name: gpt-oss-120b\n  kv_cache_gib: 12")
    site.write_text(text, encoding="utf-8")
    assert sparkgen("build", site, cwd=tmp_path).code == 0
    printed = (tmp_path / "out/single/spark/opt/sparkgen/compose.yaml").read_text()
    assert f"--kv-cache-memory-bytes={12 * GIB}" in printed
    assert "--gpu-memory-utilization=" in printed
    plain = json.loads(sparkgen("fit", site, "--format", "json", cwd=tmp_path).out)
    assert plain["memory"]["nodes"][0]["kv_room_gib"] == 12


VLLM_LOG = """
(EngineCore pid=1) INFO 10-01 08:00:00 [gpu_model_runner.py:6100] Model loading took 65.96 GiB memory
(EngineCore pid=1) INFO 10-01 08:00:01 [gpu_model_runner.py:6365] Estimated CUDA graph memory: 0.64 GiB total
(EngineCore pid=1) INFO 10-01 08:00:02 [gpu_worker.py:466] Available KV cache memory: {room} GiB
(EngineCore pid=1) INFO 10-01 08:00:02 [kv_cache_utils.py:1734] Maximum concurrency for 65,536 tokens per request: 9.05x
"""  # noqa: E501
# As printed in vLLM's issue 50722 (v0.27) and noonghunna/club-3090's issue 1087 (v0.28).
WHOLE_LOG = """
(Worker_TP1 pid=12025) INFO 08-14 09:28:01 [gpu_worker.py:857] Free memory on device (77.78/79.33 GiB) on startup. Desired GPU memory utilization is (0.85, 67.43 GiB). Actual usage is 16.92 GiB for weight, 5.66 GiB for peak activation, 0.13 GiB for non-torch memory, and 1.34 GiB for CUDAGraph memory. Current kv cache memory in use is 43.4 GiB.
(Worker_TP0 pid=223) INFO 08-22 04:42:13 [gpu_worker.py:789] Free memory on device (30.27/31.4 GiB) on startup. Actual usage is 15.03 GiB for consumed memory (weights + non-torch), 1.59 GiB for peak activation, and 0.09 GiB for CUDAGraph memory.
(EngineCore pid=1) ValueError: Free memory on device cuda:0 (38.74/121.63 GiB) on startup is less than desired GPU memory utilization (0.35, 42.57 GiB).
"""  # noqa: E501
LLAMA_LOG = """
load_tensors:        CUDA0 model buffer size = 61000.00 MiB
load_tensors:   CPU_Mapped model buffer size =  1104.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =  9216.00 MiB
llama_kv_cache:      CUDA0 RS buffer size =    64.00 MiB
"""
SGLANG_LOG = """
[2026-10-01 08:00:00 TP0] Load weight end. type=Qwen3MoeForCausalLM, avail mem=20.1 GB, mem usage=57.64 GB.
[2026-10-01 08:00:01 TP0] KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB
[2026-10-01 08:00:02 TP0] Capture cuda graph end. Time elapsed: 9.1 s. mem usage=1.20 GB. avail mem=3.0 GB.
"""  # noqa: E501


# Pools of states, of a draft, of windows and of latents, as SGLang logs them.
STATES_LOG = """
[2026-10-02 00:39:40] Mamba Cache is allocated. max_mamba_cache_size: 64, conv_state size: 0.07GB, ssm_state size: 3.05GB intermediate_ssm_state_cache size: 38.79GB intermediate_conv_window_cache size: 0.43GB
[2026-10-02 00:39:41] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 295950, K size: 4.52 GB, V size: 4.52 GB
[2026-10-02 00:39:42] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 295950, K size: 1.71 GB, V size: 1.71 GB
"""  # noqa: E501
POOLS_LOG = """
sglang-1 | [2025-08-18 09:00:00 TP0] server_args=ServerArgs(model_path='openai/gpt-oss-120b')
sglang-1 | [2025-08-18 09:00:01 TP0] KV Cache is allocated. #tokens: 655360, K size: 7.03 GB, V size: 7.03 GB
sglang-1 | [2025-08-18 09:00:01 TP1] KV Cache is allocated. #tokens: 655360, K size: 7.05 GB, V size: 7.05 GB
sglang-1 | [2025-08-18 09:00:01 TP0] KV Cache is allocated. #tokens: 81920, K size: 0.955 GB, V size: 0.955 GB
sglang-1 | [2025-08-18 09:00:01 TP1] KV Cache is allocated. #tokens: 81920, K size: 0.955 GB, V size: 0.955 GB
"""  # noqa: E501
LATENT_LOG = """
[2025-11-08 12:00:00 TP3 EP3] Load weight end. elapsed=36.9 s, type=DeepseekV3ForCausalLM, avail mem=20.1 GB, mem usage=89.58 GB.
[2025-11-08 12:00:01 TP3 EP3] KV Cache is allocated. #tokens: 524288, KV size: 17.16 GB
"""  # noqa: E501
# llama.cpp's two kinds of caches, twice; and a log from before its buffers were named.
WINDOWS_LOG = (
    2
    * """build: 7090 (9b17d74ab) with cc (Ubuntu) 13.3.0
load_tensors:        CUDA0 model buffer size = 60000.00 MiB
llama_kv_cache_iswa: creating non-SWA KV cache, size = 131072 cells
llama_kv_cache:      CUDA0 KV buffer size =  9216.00 MiB
llama_kv_cache_iswa: creating     SWA KV cache, size = 1280 cells
llama_kv_cache:      CUDA0 KV buffer size =    90.00 MiB
llama_context:      CUDA0 compute buffer size =   368.01 MiB
"""
)
# What llama.cpp prints at log level 4 on a second start, with half on another node.
RPC_LOG = (
    2
    * """0.00.100.000 I cmn  common_param: common_params_print_info: build 11434 (0c1e57098)
device_info:
  - CUDA0   : NVIDIA GB10 (122502 MiB, 117000 MiB free)
load_tensors:        CUDA0 model buffer size = 67900.00 MiB
load_tensors: RPC0[10.100.0.12:50052] model buffer size = 67890.00 MiB
load_tensors:   CPU_Mapped model buffer size =   590.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =  6348.80 MiB
llama_kv_cache: RPC0[10.100.0.12:50052] KV buffer size =  6320.00 MiB
sched_reserve:      CUDA0 compute buffer size =   368.01 MiB
sched_reserve: RPC0[10.100.0.12:50052] compute buffer size =   360.00 MiB
sched_reserve:  CUDA_Host compute buffer size =   900.00 MiB
"""
)
EARLY_LOG = """
llm_load_tensors:      CUDA0 buffer size =  8509.23 MiB
llm_load_tensors:      CUDA1 buffer size =  8213.14 MiB
llm_load_tensors:        CPU buffer size =   417.66 MiB
llama_kv_cache_init:      CUDA0 KV buffer size =  1600.00 MiB
llama_kv_cache_init:      CUDA1 KV buffer size =  1472.00 MiB
llama_new_context_with_model:      CUDA0 compute buffer size =   368.01 MiB
"""
OLD_LOG = """
INFO 07-14 worker.py:267] model weights take 15.27GiB; non_torch_memory takes 0.06GiB; PyTorch activation peak memory takes 1.40GiB; the rest of the memory reserved for KV Cache is 5.33GiB.
"""  # noqa: E501
# As worded by vLLM 0.7, by a vLLM that gives up, and by one that fits its context length.
EARLIER_LOG = """
INFO 02-14 worker.py:266] Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=18.20GiB peak_torch_memory=18.31GiB memory_usage_post_profile=18.21GiB non_torch_memory=0.09GiB kv_cache_size=3.81GiB gpu_memory_utilization=0.95
"""  # noqa: E501
TOO_LONG_LOG = """
(EngineCore pid=1) DEBUG 11-20 [gpu_worker.py:755] Total non KV cache memory: 18.1GiB; weights memory: 16.92GiB.
(EngineCore pid=1) ValueError: To serve at least one request with the model's max seq len (262144), (8.0 GiB KV cache is needed, which is larger than the available KV cache memory (5.0 GiB). Based on the available memory, the estimated maximum model length is 163840.
"""  # noqa: E501
ACTUAL_LOG = """
(Worker pid=9) INFO 11-20 [kv_cache_planning.py:1404] Auto-fit max_model_len: reduced from 262144 to 98304 to fit in available KV cache memory (21.5 GiB)
(Worker pid=9) INFO 11-20 [gpu_worker.py:1003] CUDA graph pool memory: 0.71 GiB (actual), 0.9 GiB (estimated), difference: 0.19 GiB (26.8%).
"""  # noqa: E501
# Today's SGLang names its graphs, and a rank holds all of them at once.
GRAPHS_LOG = """
[2026-11-20 08:00:01 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB
[2026-11-20 08:00:02 TP0] Capture target decode CUDA graph end. bs=[1, 2, 4], elapsed=9.10 s, mem usage=1.20 GB, avail mem=3.00 GB.
[2026-11-20 08:00:03 TP0] Capture target prefill CUDA graph end. elapsed=9.10 s, mem usage=0.35 GB, avail mem=2.65 GB.
"""  # noqa: E501
# TensorRT-LLM's figures for gpt-oss-120b on a Spark; it uses the first cache to measure itself.
TENSORRT_LOG = """
[TRT-LLM] [I] Use 0.90 of free memory, device total memory 119.70 GiB
[TensorRT-LLM][INFO] Allocated 0.56 GiB for max tokens in paged KV cache (8224).
[TRT-LLM] [I] Memory used after loading model weights (inside torch) in memory usage profiling: 63.52 GiB
[TRT-LLM] [I] Memory used after loading model weights (outside torch) in memory usage profiling: 1.44 GiB
[TRT-LLM] [I] Memory dynamically allocated during inference (inside torch) in memory usage profiling: 0.85 GiB
[TensorRT-LLM][INFO] Allocated 5.95 GiB for max tokens in paged KV cache (86560).
"""  # noqa: E501


@pytest.mark.parametrize(
    ("log", "found"),
    [
        (EARLIER_LOG, Measured(None, 3.81, None, None, None, None, 23.58)),
        (TOO_LONG_LOG, Measured(16.92, 5.0, None, 262144, 0.625)),
        (TOO_LONG_LOG.replace("8.0", "0.0"), Measured(16.92, 5.0, None, None, None)),
        (ACTUAL_LOG, Measured(None, 21.5, 0.71, None, None)),
        (GRAPHS_LOG, Measured(None, 16.46, 1.55, None, None)),
        (TENSORRT_LOG, Measured(63.52, 5.95, None, None, None, 0.85, 119.7)),
        (VLLM_LOG.format(room="25.00"), Measured(65.96, 25.0, 0.64, 65536, 9.05)),
        (LLAMA_LOG, Measured(61000 / 1024, *[None] * 4, allocated=9280 / 1024)),
        (RPC_LOG, Measured(66.31, *[None] * 4, 0.36, 119.63, allocated=6.2)),
        (SGLANG_LOG, Measured(57.64, 16.46, 1.2, None, None)),
        (WHOLE_LOG, Measured(16.92, 43.4, None, None, None, 5.66, 31.4)),
        (STATES_LOG, Measured(None, 12.46, None, None, None, states=42.34)),
        (POOLS_LOG, Measured(None, 15.97, None, None, None)),
        (LATENT_LOG, Measured(89.58, 17.16, None, None, None)),
        (WINDOWS_LOG, Measured(60000 / 1024, *[None] * 4, 0.36, allocated=9306 / 1024)),
        (EARLY_LOG, Measured(16722.37 / 1024, *[None] * 4, 0.36, allocated=3.0)),
        (OLD_LOG, Measured(15.27, 5.33, None, None, None, 1.4)),
        ("Current kv cache memory in use is 9232221491 bytes.", Measured(None, 8.6, *[None] * 3)),
        (
            "GiB, reserved 8.0 GiB memory for KV Cache as specified by",
            Measured(None, 8, *[None] * 3),
        ),
        ("INFO started", Measured(None, None, None, None, None)),
    ],
)
def test_logs_are_read(log: str, found: Measured) -> None:
    seen = measured(logged_memory(log))
    for name in Measured.__match_args__:
        assert getattr(seen, name) == pytest.approx(getattr(found, name), abs=0.005), name


def test_log_is_compared_with_the_prediction(sparkgen: Command, tmp_path: Path) -> None:
    site, log = ROOT / "sites/single.yaml", tmp_path / "log"
    room = json.loads(sparkgen("fit", site, "--format", "json", cwd=ROOT).out)
    log.write_text(VLLM_LOG.format(room=room["memory"]["nodes"][0]["kv_room_gib"]))
    outcome = sparkgen("fit", site, "--measured", log, cwd=ROOT)
    lines = {
        line[:25].strip(): line.split()[-1] for line in outcome.out.split("\n\n")[0].splitlines()
    }
    assert lines["weights of a rank, GiB"] == "-0.2%"
    assert lines["KV cache memory, GiB"] == "+0.0%"
    log.write_text(VLLM_LOG.format(room="20.0") + "Free memory on device (110.1/121.63 GiB)")
    outcome = sparkgen("fit", site, "--measured", log, cwd=ROOT)
    assert "write 'visible_gib: 121.63'" in outcome.out
    log.write_text(VLLM_LOG.format(room="2.5"))
    assert sparkgen("fit", site, "--measured", log, cwd=ROOT).code == 1
    log.write_text("nothing\n")
    outcome = sparkgen("fit", site, "--measured", log, cwd=ROOT)
    assert (outcome.code, outcome.out) == (3, "")
    assert "no line of it says" in outcome.err
    assert sparkgen("fit", site, "--measured", tmp_path / "none", cwd=ROOT).code == 4


def test_line_of_a_log_that_is_too_long_says_nothing(sparkgen: Command, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"Model loading took {'9' * 16_000} GiB\n")
    outcome = sparkgen("fit", ROOT / "sites/single.yaml", "--measured", log, cwd=tmp_path)
    assert outcome.code == 3
    assert "no line of it says what an engine's memory holds" in outcome.err


def test_measured_cache_is_compared_for_all_sequences(sparkgen: Command, tmp_path: Path) -> None:
    site, log = ROOT / "sites/more/pair-llamacpp.yaml", tmp_path / "log"
    log.write_text(RPC_LOG)
    outcome = sparkgen("fit", site, "--measured", log, cwd=ROOT)
    lines = {line[:31].strip(): line.split()[-1] for line in outcome.out.splitlines()}
    assert lines["weights of a rank, GiB"] == "-0.1%"
    assert lines["KV cache of all sequences, GiB"] == "+0.6%"
    # Its cache has the requested size, which says nothing about the available room.
    assert (outcome.code, "reserve_gib" in outcome.out) == (0, False)
    log.write_text("model loaded\n")
    outcome = sparkgen("fit", site, "--measured", log, cwd=ROOT)
    assert "prints it with engine.args {log-verbosity: 4}" in outcome.err


SGLANG_LOG = """
[2026-10-08 09:00:00] server_args=ServerArgs(model_path='openai/gpt-oss-120b')
[2026-10-08 09:00:01] KV Cache is allocated. #tokens: 1, K size: 7.50 GB, V size: 7.50 GB
"""


@pytest.mark.parametrize(
    ("engine", "version", "log_of"),
    [("vllm", "0.33.0", VLLM_LOG.format(room="15.00")), ("sglang", "0.5.23", SGLANG_LOG)],
)
def test_calibration_corrects_the_prediction(
    engine: str, version: str, log_of: str, sparkgen: Command, tmp_path: Path
) -> None:
    site, log = tmp_path / "single.yaml", tmp_path / "log"
    text = (ROOT / "sites/single.yaml").read_text(encoding="utf-8")
    start = ENGINE_TRAITS[engine].start
    assert start
    text = text.replace("name: vllm", f"name: {engine}").replace("0.33.0", version)
    text = re.sub(r"image: .*", f"image: {start.image}", text.partition("  args:")[0])
    site.write_text(text)
    log.write_text(log_of)
    outcome = sparkgen("fit", site, "--measured", log, cwd=tmp_path)
    assert outcome.code == 1, outcome.err
    entry = outcome.out.splitlines()[-1]
    assert entry.startswith(
        f"- {{model: gpt-oss-120b, engine: {engine}, version: {version}, reserve_gib: "
    )
    # Further entries are for other releases; of two for the same release, the last counts.
    other = entry.replace(version, "0.32.0")
    first = re.sub(r"gib: .*}", "gib: -9}", entry)
    (tmp_path / "measured.yaml").write_text(f"{first}\n{entry}\n{other}\n")
    site.write_text(text + "fit: {calibration: measured.yaml}\n")
    again = sparkgen("fit", site, "--measured", log, cwd=tmp_path)
    assert again.out.splitlines()[-1] == entry
    difference = float(again.out.split("KV cache memory, GiB")[1].split("%")[0].split()[-1])
    assert abs(difference) <= 0.1


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "it is not a list"),
        (b"{a: [", "it is no YAML"),
        (b"\xff\xfe", "it is no YAML"),
        (b"- gpt-oss-120b", "entry 1 has not the keys"),
        (b"- {model: a, engine: b, version: c, reserve_gib: [1]}", "entry 1 has a value"),
        (b"- {model: a, engine: b, version: c, reserve_gib: x}", "entry 1: reserve_gib is no"),
        (b"- {model: a, engine: b, version: c, reserve_gib: nan}", "entry 1: reserve_gib is not"),
        (b"- {model: a, engine: b, version: c, reserve_gib: 65}", "entry 1: reserve_gib is not"),
    ],
)
def test_faults_of_a_calibration_are_reported(data: bytes, fault: str) -> None:
    source = Source((SourceFile("", data, is_executable=False),))
    assert fault in calibration.read("c.yaml", source).fault


AUTOMATIC = ("context_length", "max_sequences")


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("gpt-oss-120b", {}),
        ("llama-3.3-70b-instruct-fp8", {}),
        ("qwen3.6-27b-fp8", {"args": {"max-num-batched-tokens": 8192}}),
        ("llama-3.3-70b-instruct-fp8", {"name": "sglang", "version": "0.5.23"}),
    ],
)
def test_auto_size_leaves_the_margin_and_is_the_largest(name: str, engine: dict[str, Any]) -> None:
    declared = an_engine(**engine)
    model = found_of(a_model(name=name, automatic=AUTOMATIC), declared)
    fit = assess(some_nodes(1), model, declared)
    assert fit
    assert model.context_length
    assert model.max_sequences
    assert (fit.state, fit.tight) == ("fits", False)
    assert len([line for line in verdict(fit) if "auto' is" in line]) == 2
    longest = known_shape(found(name)).max_context
    if model.context_length != longest:
        assert model.context_length % 1024 == 0
        longer = replace(model, context_length=model.context_length + 1024)
        assert not holds(Deployment(some_nodes(1), replace(longer, max_sequences=None), declared))
    more = assess(some_nodes(1), replace(model, max_sequences=model.max_sequences + 1), declared)
    assert more
    node = more.nodes[0]
    room = node.kv_room_gib - (model.max_sequences + 1) * node.kv_one_gib
    assert room < TIGHT * node.share_gib or model.max_sequences == 256


def test_auto_size_is_written_as_a_number(sparkgen: Command, tmp_path: Path) -> None:
    text = (ROOT / "sites/single.yaml").read_text(encoding="utf-8")
    text = re.sub(r"(context_length|max_sequences): \d+", r"\1: auto", text)
    (tmp_path / "single.yaml").write_text(text, encoding="utf-8")
    assert sparkgen("build", "single.yaml", cwd=tmp_path).code == 0
    printed = (tmp_path / "out/single/spark/opt/sparkgen/compose.yaml").read_text()
    # vLLM has measured its memory, and settles the context itself.
    assert "--max-model-len=auto" in printed
    assert re.search(r"--max-num-seqs=\d+", printed)
    assert sparkgen("check", "single.yaml", cwd=tmp_path).code == 0


def test_auto_size_needs_a_shape() -> None:
    model = a_model(source="example/x", automatic=AUTOMATIC)
    assert found_of(model, an_engine()) == model


def found_of(model: DeclaredModel, engine: DeclaredEngine) -> DeclaredModel:
    return automatic.found(some_nodes(1), model, engine)


def test_without_the_sizes_of_its_parts_a_model_is_split_by_layers() -> None:
    architecture = {
        "layers": 94, "heads": 64, "kv_heads": 4, "head_dim": 128, "hidden_size": 4096,
        "vocab_size": 151936, "experts": 128, "max_context": 40960, "weight_gb": 124.1,
    }  # fmt: skip
    model = a_model(source="Qwen/Qwen3-235B-A22B-GPTQ-Int4", architecture=architecture)
    fit = assess(some_nodes(2), model, an_engine(parallel=Parallel(tensor=2)))
    assert fit
    assert fit.nodes[0].weights_gib == pytest.approx(57.8, abs=0.2)
    assert fit.ceiling_tokens_s is None


def test_a_draft_is_held_beside_the_model() -> None:
    model_settings = {"name": "llama-3.1-70b-instruct-fp8", "context_length": 8192}
    source = {"method": "draft", "source": "nvidia/Llama-3.1-8B-Instruct-FP8", "tokens": 4}
    drafted = fit_of(**model_settings, speculative=source)
    alone = fit_of(**model_settings)
    assert drafted.nodes[0].draft_gib == pytest.approx(9.1 * formulas.GB / GIB, abs=0.01)
    assert drafted.nodes[0].kv_one_gib > alone.nodes[0].kv_one_gib
    sized = fit_of(
        **model_settings, speculative={"method": "eagle3", "tokens": 3, "weight_gb": 2.0}
    )
    assert sized.nodes[0].draft_gib == pytest.approx(2 * formulas.GB / GIB, abs=0.01)


def test_size_of_a_prediction_layer() -> None:
    """5 GB in 16 bits beside Qwen3.5-122B-A10B in NVFP4 (docai.hu/en/blog/qwen35-122b-spark)."""
    fit = fit_of(
        "nvidia/qwen3.5-122b-a10b-nvfp4",
        context_length=8192,
        speculative={"method": "mtp", "tokens": 1},
    )
    assert fit.nodes[0].draft_gib * GIB / formulas.GB == pytest.approx(5, abs=0.2)


def test_explicit_stages_are_used() -> None:
    uneven = an_engine(parallel=Parallel(pipeline=2), env={"VLLM_PP_LAYER_PARTITION": "50,30"})
    model = a_model(name="llama-3.1-70b-instruct-fp8", context_length=8192)
    fit = assess(some_nodes(2), model, uneven)
    assert fit
    assert [node.layers for node in fit.nodes] == [50, 30]
    wrong = an_engine(parallel=uneven.parallel, env={"VLLM_PP_LAYER_PARTITION": "50,31"})
    unknown = assess(some_nodes(2), model, wrong)
    assert unknown
    assert unknown.state == "unknown"


def test_vllm_treats_a_spark_as_a_small_gpu_since_0_33() -> None:
    model = a_model(name="gpt-oss-120b")
    old = requested(model, an_engine(version="0.19.0"), 131072, WIDE)
    new = requested(model, an_engine(), 131072, WIDE)
    assert (old.step, old.measured, old.running) == (2048, 8192, 1024)
    assert (new.step, new.measured, new.running) == (2048, 2048, 256)
    assert step(an_engine(args={"max-num-batched-tokens": "16k"})) == 16000


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
    site = ROOT / "sites/more/ring-405b.yaml"
    output = sparkgen("fit", site, "--compare", cwd=ROOT).out
    lines = [line for line in output.splitlines() if " on a switch " in line]
    assert lines
    assert all(line.split()[0] == "4" for line in lines)
    plain = json.loads(sparkgen("fit", site, "--compare", "--format", "json", cwd=ROOT).out)
    assert {item["nodes"]: item["on_switch"] for item in plain["alternatives"]} == {
        2: False,
        3: False,
        4: True,
    }


def test_a_group_of_one_node_has_no_smaller_one() -> None:
    group = Deployment(some_nodes(1), a_model(name="gpt-oss-120b"), an_engine())
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


def test_every_figure_of_the_table_has_a_column() -> None:
    fit = fit_of("gpt-oss-120b", context_length=8192)
    assert [len(row) for row in rows(fit)] == [8]


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.stem)
def test_fit_of_every_example_site(sparkgen: Command, site: Path) -> None:
    outcome = sparkgen("fit", site, cwd=ROOT)
    assert outcome.code == 0
    assert re.match(rf"{site.stem}(, \w+)?: fits", outcome.out)
    compared = sparkgen("fit", site, "--compare", cwd=ROOT)
    assert "\n*  " in compared.out
    plain = json.loads(sparkgen("fit", site, "--compare", "--format", "json", cwd=ROOT).out)
    same = yaml.safe_load(sparkgen("fit", site, "--compare", "--format", "yaml", cwd=ROOT).out)
    assert plain == same
    shown = json.loads(sparkgen("show", site, "--format", "json", cwd=ROOT).out)
    for fitted, known in zip(plain.get("groups", [plain]), shown["groups"] or [shown], strict=True):
        assert fitted["memory"]["state"] == "fits"
        assert fitted["memory"] == known["memory"]


@pytest.mark.parametrize("name", ["single", "rack-switch"])
def test_fit_takes_a_few_times_as_long_as_importing_its_libraries(name: str) -> None:
    """In CPU time, measured alternately: a busy machine slows both down."""
    fit, imports = [], []
    for _ in range(3):
        fit.append(processor_seconds("-m", "generator", "fit", str(EXAMPLES[name])))
        imports.append(processor_seconds("-c", "import click, jinja2, cerberus, yaml"))
    assert min(fit) < 5 * min(imports)


def processor_seconds(*arguments: str) -> float:
    """The CPU time of one Python process."""
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def test_fit_reports_missing_sections_and_stops_at_other_errors(
    sparkgen: Command, tmp_path: Path
) -> None:
    text = (ROOT / "sites/single.yaml").read_text(encoding="utf-8")
    site = tmp_path / "site.yaml"
    site.write_text(text.replace("name: gpt-oss-120b", "source: example/x"), encoding="utf-8")
    outcome = sparkgen("fit", site, cwd=tmp_path)
    assert outcome.code == 0
    assert outcome.out.startswith(
        "single: unknown, for want of model.architecture, which 'sparkgen"
    )
    site.write_text(text.replace("gpt-oss-120b", "gpt-os-120b"), encoding="utf-8")
    outcome = sparkgen("fit", site, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert "SG501" in outcome.err


def test_llama_cpp_allocates_the_cache_of_all_sequences_at_the_start() -> None:
    model = a_model(name="gpt-oss-120b", context_length=131072, max_sequences=16)
    at_once = assess(some_nodes(1), model, an_engine(name="llama.cpp", version="0.5.0-dev"))
    as_they_grow = assess(some_nodes(1), model, an_engine())
    assert at_once
    assert as_they_grow
    assert (at_once.state, as_they_grow.state) == ("does not fit", "fits")
    assert at_once.nodes[0].nccl_gib == at_once.nodes[0].graphs_gib == 0


def test_fit_shows_by_how_much_a_model_does_not_fit(sparkgen: Command, tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_bytes(CASES["SG520-weights"].site)
    outcome = sparkgen("fit", site, "--compare", cwd=tmp_path)
    assert outcome.code == 3
    assert "error[SG520]" in outcome.err
    assert outcome.out.startswith("lab: does not fit: 23.4 GiB too little on spark1 beside one")
    assert outcome.out.count("does not fit") > 1
    assert " fits " in outcome.out
    plain = json.loads(sparkgen("fit", site, "--format", "json", cwd=tmp_path).out)
    assert plain["memory"]["state"] == "does not fit"
    assert plain["memory"]["nodes"][0]["headroom_gib"] < 0


HYBRID = {"name": "nvidia-nemotron-3-nano-30b-a3b-nvfp4", "context_length": 32768}


@pytest.mark.parametrize(
    ("args", "model", "slots", "held"),
    [
        ({}, {}, 5, None),
        ({"mamba-radix-cache-strategy": "no_buffer"}, {}, 3, None),
        ({"disable-radix-cache": True}, {}, 1, None),
        ({"disable-radix-cache": True}, {"max_sequences": 8}, 1, 9),
        ({"max-mamba-cache-size": 40}, {}, 5, 41),
        ({}, {"speculative": {"method": "mtp", "tokens": 3}}, 9, None),
        (
            {"max-mamba-cache-size": 40},
            {"speculative": {"method": "mtp", "tokens": 3}, "max_sequences": 4},
            9,
            41 + 4 * 5,
        ),
    ],
)
def test_states_of_sglang_have_room_of_their_own(
    args: dict[str, Any], model: dict[str, Any], slots: int, held: int | None
) -> None:
    engine = an_engine(name="sglang", version="0.5.23", args=args)
    division = requested(a_model(**HYBRID, **model), engine, 8192, WIDE).division
    assert division
    assert (division.slots, division.held) == (slots, held)


def test_room_that_sglang_divides_is_reported() -> None:
    def fit(**args: Any) -> Fit:
        engine = an_engine(name="sglang", version="0.5.23", args=args)
        found = assess(some_nodes(1), a_model(**HYBRID), engine)
        assert found
        return found

    whole, fewer = fit(), fit(**{"mamba-full-memory-ratio": "0.1"})
    held = fit(**{"max-mamba-cache-size": 100})
    assert whole.shares == ("53% for full attention", "47% for states")
    assert any("divided at the start: 53% for full" in line for line in verdict(whole))
    assert fewer.shares == ("91% for full attention", "9% for states")
    assert (fewer.most_sequences or 0) < (whole.most_sequences or 0)
    assert held.shares == ()
    assert held.worst.kv_room_gib < whole.worst.kv_room_gib
    assert held.worst.system_gib == pytest.approx(whole.worst.system_gib, abs=0.02)


@pytest.mark.parametrize(
    ("engine", "name", "flag", "tensor"),
    [
        ({"name": "vllm", "version": "0.33.0"}, "kimi-k2.5", "decode-context-parallel-size", 8),
        ({"name": "vllm", "version": "0.33.0"}, "glm-5-fp8", "decode-context-parallel-size", 8),
        ({"name": "vllm", "version": "0.33.0"}, "qwen3-30b-a3b", "decode-context-parallel-size", 8),
        ({"name": "sglang", "version": "0.5.23"}, "kimi-k2.5", "dcp-size", 8),
    ],
)
def test_context_parallel_ranks_share_the_cache(
    engine: dict[str, Any], name: str, flag: str, tensor: int
) -> None:
    def kv_gib(ranks: int) -> float:
        declared = an_engine(**engine, parallel=Parallel(tensor=tensor), args={flag: ranks})
        found = assess(some_nodes(tensor), a_model(name=name, context_length=131072), declared)
        assert found
        assert found.nodes, found.missing
        return found.nodes[0].kv_one_gib

    assert kv_gib(2) == pytest.approx(kv_gib(1) / 2, abs=0.02)
