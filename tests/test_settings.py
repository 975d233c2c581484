"""An engine's settings have one meaning, however they are spelled and wherever they stand."""

from collections.abc import Mapping
from typing import Any

import pytest

from generator.engines.arguments import arguments
from generator.pipeline import read_site
from generator.settings.environment import Environment, OfNode, Written
from generator.settings.flags import EngineSettings
from generator.site import Words

VLLM, SGLANG, TENSORRT, LLAMA = (
    ("vllm", "0.33.0"),
    ("sglang", "0.5.23"),
    ("tensorrt-llm", "1.3.0rc29"),
    ("llama.cpp", "0.5.0-dev"),
)
Args = Mapping[str, Any]


@pytest.mark.parametrize(
    ("engine", "written", "name", "value"),
    [
        # Names
        (VLLM, {"kv_cache_memory_bytes": "80"}, "kv-cache-memory-bytes", "80"),
        (LLAMA, {"load_mode": "mmap"}, "load-mode", "mmap"),
        (SGLANG, {"tensor-parallel-size": "2"}, "tp-size", "2"),
        (SGLANG, {"tp-size": "2"}, "tensor-parallel-size", "2"),
        (VLLM, {"disable-log-requests": True}, "enable-log-requests", False),
        (VLLM, {"no-enable-prefix-caching": True}, "enable-prefix-caching", False),
        (VLLM, {"no_enable_prefix_caching": False}, "enable-prefix-caching", True),
        (VLLM, {"of_tomorrow": "1"}, "of-tomorrow", "1"),
        (TENSORRT, {"of_tomorrow": "1"}, "of_tomorrow", "1"),
        # Numbers
        (VLLM, {"max-num-batched-tokens": "16k"}, "max-num-batched-tokens", "16000"),
        (VLLM, {"max-num-batched-tokens": "16K"}, "max-num-batched-tokens", "16384"),
        (VLLM, {"max-num-batched-tokens": "016384"}, "max-num-batched-tokens", "16384"),
        (VLLM, {"max-num-batched-tokens": "1.5k"}, "max-num-batched-tokens", "1500"),
        (VLLM, {"max-num-batched-tokens": "1.5K"}, "max-num-batched-tokens", "1.5K"),
        (VLLM, {"kv-cache-memory-bytes": "8G"}, "kv-cache-memory-bytes", str(8 << 30)),
        (SGLANG, {"max-total-tokens": "16Ki"}, "max-total-tokens", "16384"),
        (SGLANG, {"max-total-tokens": "1M"}, "max-total-tokens", "1000000"),
        (SGLANG, {"max-total-tokens": "16K"}, "max-total-tokens", "16K"),
        (VLLM, {"block-size": "16k"}, "block-size", "16k"),
        (VLLM, {"cpu-offload-gb": "8.0"}, "cpu-offload-gb", "8"),
        (VLLM, {"cpu-offload-gb": "0.50"}, "cpu-offload-gb", "0.5"),
        (VLLM, {"cpu-offload-gb": "1_0"}, "cpu-offload-gb", "1_0"),
        # Words
        (VLLM, {"attention-backend": "flash_attn"}, "attention-backend", "FLASH_ATTN"),
        (LLAMA, {"flash-attn": True}, "flash-attn", "on"),
        (LLAMA, {"flash-attn": "1"}, "flash-attn", "on"),
        (LLAMA, {"flash-attn": "disabled"}, "flash-attn", "off"),
        (LLAMA, {"flash-attn": "auto"}, "flash-attn", "auto"),
        # Lists
        (VLLM, {"middleware": "a"}, "middleware", ["a"]),
        (VLLM, {"device-ids": ["0", "1"]}, "device-ids", "0,1"),
        (VLLM, {"cudagraph-capture-sizes": ["01", "2"]}, "cudagraph-capture-sizes", ["1", "2"]),
        # JSON
        (VLLM, {"compilation-config": '{"mode": 3}'}, "compilation-config", {"mode": 3}),
        (VLLM, {"compilation-config.mode": "3"}, "compilation-config", {"mode": 3}),
        (VLLM, {"compilation-config.mode": "2k"}, "compilation-config", {"mode": 2000}),
        (
            VLLM,
            {"compilation_config.pass_config.a": True, "compilation-config": {"mode": 3}},
            "compilation-config",
            {"pass_config": {"a": True}, "mode": 3},
        ),
        (VLLM, {"hf-overrides": "some/path.py"}, "hf-overrides", "some/path.py"),
    ],
)
def test_one_name_and_one_value(
    engine: tuple[str, str], written: Args, name: str, value: object
) -> None:
    settings = EngineSettings(*engine, written)
    assert name in settings
    assert settings.value(name) == value


SAME: list[tuple[tuple[str, str], list[Args]]] = [
    (VLLM, [{"load_format": "dummy"}, {"load-format": "dummy"}]),
    (VLLM, [{"compilation-config.mode": "3"}, {"compilation-config": {"mode": 3}}]),
    (VLLM, [{"compilation-config": '{"mode":3}'}, {"compilation-config": {"mode": 3}}]),
    (VLLM, [{"max-num-batched-tokens": "16384"}, {"max_num_batched_tokens": "16K"}]),
    (VLLM, [{"middleware": ["a"]}, {"middleware": "a"}]),
    (SGLANG, [{"ep": "2"}, {"ep-size": "2"}, {"expert-parallel-size": "2"}]),
    (LLAMA, [{"tensor-split": "3,1"}, {"tensor_split": ["3", "1"]}]),
]


@pytest.mark.parametrize(("engine", "spellings"), SAME)
def test_spellings_make_one_command_line(engine: tuple[str, str], spellings: list[Args]) -> None:
    first, *others = [list(arguments(EngineSettings(*engine, args))) for args in spellings]
    assert first
    assert [other for other in others if other != first] == []


@pytest.mark.parametrize(
    ("written", "keys", "path"),
    [
        ({"compilation-config.mode": "3"}, ["mode"], "compilation-config.mode"),
        ({"compilation_config": {"mode": 3}}, ["mode"], "compilation_config/mode"),
        ({"compilation-config": '{"mode": 3}'}, ["mode"], "compilation-config"),
        ({"compilation-config.mode": "3"}, [], "compilation-config.mode"),
        ({"compilation-config.a.b": "3"}, ["a", "b"], "compilation-config.a.b"),
        ({"compilation-config": {"a": {}}}, ["a", "b"], "compilation-config/a/b"),
        ({}, ["mode"], "compilation-config/mode"),
    ],
)
def test_a_setting_has_the_place_where_it_is_written(
    written: Args, keys: list[str], path: str
) -> None:
    settings = EngineSettings(*VLLM, written)
    expected = ("engine", "args", *path.split("/"))
    assert settings.path("compilation-config", *keys) == expected


def test_questions_to_settings() -> None:
    args = {"seed": "1", "enable-eplb": True, "kv-transfer-config": {"kv_role": "both"}}
    settings = EngineSettings(*VLLM, args | {"cudagraph-capture-sizes": ["1", "2"]})
    assert settings.count("seed") == 1
    assert settings.count("block-size", 16) == 16
    assert settings.number("block-size") is None
    assert settings.numbers("cudagraph-capture-sizes") == (1.0, 2.0)
    assert settings.word("kv-transfer-config", "kv_role") == "both"
    assert settings.word("kv-transfer-config") == ""
    assert settings.is_on("enable-eplb")
    assert not settings.is_off("enable-eplb")


NODES = (
    OfNode("spark1", ("nodes", 0), Written({"A": "1", "B": "2"})),
    OfNode("spark2", ("nodes", 1), Written()),
    OfNode("spark3", ("nodes", 2), Written({"A": "1"})),
)


def test_a_node_gets_its_own_variables_before_those_of_all() -> None:
    environment = Environment(Written({"A": "0", "C": "3"}), NODES)
    assert environment.on("spark1") == {"A": "1", "B": "2", "C": "3"}
    assert environment.on("spark2") == {"A": "0", "C": "3"}
    assert environment.first("A") == "1"
    assert environment.first("X", "none") == "none"
    found = {(each.name, each.value): (each.nodes, each.places) for each in environment}
    of_all, own = ("engine", "env"), (("nodes", 0, "env", "A"), ("nodes", 2, "env", "A"))
    assert found == {
        ("A", "0"): (("spark2",), ((*of_all, "A"),)),
        ("A", "1"): (("spark1", "spark3"), own),
        ("B", "2"): (("spark1",), (("nodes", 0, "env", "B"),)),
        ("C", "3"): (("spark1", "spark2", "spark3"), ((*of_all, "C"),)),
    }


def test_variables_that_are_judged_together() -> None:
    environment = Environment(Written({"A": "0", "C": "3"}), NODES)
    found = [
        (values.nodes, values.get("A"), values.get("B"), values.get("C", "-"))
        for values in environment.together(["A", "B", "D"])
    ]
    assert found == [
        (("spark1",), "1", "2", "-"),
        (("spark2",), "0", "", "-"),
        (("spark3",), "1", "", "-"),
    ]
    alike = list(environment.together(["C"]))
    assert [(values.nodes, values.path("C")) for values in alike] == [
        (("spark1", "spark2", "spark3"), ("engine", "env", "C"))
    ]


def test_variables_are_judged_while_the_nodes_are_not_valid() -> None:
    environment = Environment(Written({"A": "0"}))
    assert [(each.name, each.nodes) for each in environment] == [("A", ())]
    assert [values.get("A") for values in environment.together(["A"])] == ["0"]


def test_a_variable_that_no_node_gets_is_not_judged() -> None:
    environment = Environment(Written({"A": "wrong"}), (NODES[0], NODES[2]))
    assert [each.value for each in environment.of("A")] == ["1"]


PAIR = """\
version: 1
name: lab
nodes:
  - name: spark1
    management: {address: 10.0.0.11/24}
  - name: spark2
    management: {address: 10.0.0.12/24}
cabling:
  - endpoints: [spark1:p0, spark2:p0]
topology: {kind: direct}
model: {name: gpt-oss-120b}
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
  nccl: 2.30.7
  parallel: {tensor: 2}
"""
GGUF = """\
version: 1
name: lab
nodes: [{name: spark1}]
topology: {kind: single}
model: {name: gpt-oss-120b, file: /srv/models/model.gguf}
engine:
  name: llama.cpp
  version: 0.5.0-dev
  image: registry.lan/llama.cpp:0c1e570
"""


def said(text: str) -> tuple[list[tuple[str, str, str]], list[object], list[Words]]:
    """The findings of a site, how its model fits, and the words that start its engine."""
    reading = read_site("lab.yaml", text.encode())
    found = [(each.rule, each.message, each.help) for each in reading.findings]
    parts = reading.declaration.parts if reading.declaration else ()
    words = reading.site.head.container.command if reading.site else ()
    return found, [part.memory for part in parts], list(words)


@pytest.mark.parametrize(
    ("site", "name", "value", "rule"),
    [
        (PAIR, "kv-cache-memory-bytes", "120000000000", "SG520"),
        (PAIR, "kv-cache-memory-bytes", "20000000000", ""),
        (PAIR, "attention-backend", "TRITON_MLA", "SG670"),
        (PAIR, "max-model-len", "8192", "SG604"),
        (GGUF, "load-mode", "mmap", ""),
        (GGUF, "ctx-size", "8192", "SG604"),
    ],
)
def test_underscores_change_nothing(site: str, name: str, value: str, rule: str) -> None:
    hyphens, underscores = (
        f"{site}  args: {{{written}: {value}}}\n" for written in (name, name.replace("-", "_"))
    )
    found, fit, words = said(hyphens)
    assert (rule in {each[0] for each in found}) == bool(rule)
    same = [
        (of, message.replace(name.replace("-", "_"), name))
        for of, message, _ in said(underscores)[0]
    ]
    assert same == [(of, message) for of, message, _ in found]
    assert said(underscores)[1:] == (fit, words)
    assert sum(word.startswith(f"--{name}") for group in words for word in group) == (not rule)


@pytest.mark.parametrize(
    ("name", "value", "rules"),
    [
        ("NCCL_IB_HCA", "'=nope0'", {"SG414"}),
        ("NCCL_IB_DISABLE", "1", {"SG416"}),
        ("NCCL_IB_TIMEOUT", "1000", {"SG413"}),
        ("NCCL_IB_TOS", "106", {"SG410"}),
        ("NCCL_NET_GDR_LEVEL", "5", {"SG418"}),
        ("VLLM_LOGING_LEVEL", "DEBUG", {"SG644"}),
        ("CUDA_VISIBLE_DEVICES", "'0,1'", {"SG426"}),
        ("RANK", "0", {"SG427"}),
        ("PYTORCH_CUAD_ALLOC_CONF", "a", {"SG428"}),
        ("VLLM_HOST_IP", "10.0.0.99", {"SG402"}),
        ("LD_PRELOAD", "/srv/own.so", {"SG695"}),
    ],
)
def test_a_variable_is_judged_wherever_it_is_set(name: str, value: str, rules: set[str]) -> None:
    """For the engine, for one node, or for all nodes: one mistake is one finding."""
    own = f"    env: {{{name}: {value}}}\n"
    one = PAIR.replace("cabling:\n", f"{own}cabling:\n")
    both = one.replace("  - name: spark2\n", f"{own}  - name: spark2\n")
    for text in (f"{PAIR}  env: {{{name}: {value}}}\n", one, both):
        found = read_site("lab.yaml", text.encode()).findings
        assert {finding.rule for finding in found} == rules
        assert len(found) == 1
        place = found[0].path
        assert place[-2:] == ("env", name)
        assert len([each for each in found[0].related if each.path[-2:] == ("env", name)]) == (
            text is both
        )
