"""Entries of `engine.args` become the arguments that each engine's parser expects."""

from typing import Any

import pytest

from generator.engines.arguments import arguments
from generator.settings.flags import EngineSettings
from generator.site import Words

VLLM, SGLANG, TENSORRT, LLAMA = (
    ("vllm", "0.33.0"),
    ("sglang", "0.5.23"),
    ("tensorrt-llm", "1.3.0rc29"),
    ("llama.cpp", "0.5.0-dev"),
)


@pytest.mark.parametrize(
    ("engine", "name", "value", "expected"),
    [
        # One value
        (VLLM, "max-num-batched-tokens", "16384", [("--max-num-batched-tokens=16384",)]),
        (VLLM, "max_num_batched_tokens", "16k", [("--max-num-batched-tokens=16000",)]),
        (VLLM, "chat-template", "-leading dash", [("--chat-template=-leading dash",)]),
        (TENSORRT, "max_batch_size", "8", [("--max_batch_size=8",)]),
        (LLAMA, "batch-size", "512", [("--batch-size", "512")]),
        # Switches
        (VLLM, "enable-prefix-caching", True, [("--enable-prefix-caching",)]),
        (VLLM, "enable-prefix-caching", False, [("--no-enable-prefix-caching",)]),
        (VLLM, "enable_prefix_caching", False, [("--no-enable-prefix-caching",)]),
        (VLLM, "no-enable-prefix-caching", True, [("--no-enable-prefix-caching",)]),
        (VLLM, "disable-log-requests", True, [("--no-enable-log-requests",)]),
        (SGLANG, "enable-metrics", True, [("--enable-metrics",)]),
        (TENSORRT, "telemetry", False, [("--no-telemetry",)]),
        (LLAMA, "mmap-all", False, [("--no-mmap-all",)]),
        (LLAMA, "flash-attn", True, [("--flash-attn", "on")]),
        (LLAMA, "flash-attn", False, [("--flash-attn", "off")]),
        (LLAMA, "flash-attn", "auto", [("--flash-attn", "auto")]),
        # Several values
        (VLLM, "lora-modules", ["a=/x", "b"], [("--lora-modules", "a=/x", "b")]),
        (VLLM, "lora-modules", ["a=/x"], [("--lora-modules=a=/x",)]),
        (VLLM, "middleware", ["a", "b"], [("--middleware=a",), ("--middleware=b",)]),
        (VLLM, "device-ids", ["0", "1"], [("--device-ids=0,1",)]),
        (SGLANG, "cuda-graph-bs-decode", ["1", "2"], [("--cuda-graph-bs-decode", "1", "2")]),
        (LLAMA, "tensor-split", ["3", "1"], [("--tensor-split", "3,1")]),
        (
            LLAMA,
            "control-vector-layer-range",
            ["1", "9"],
            [("--control-vector-layer-range", "1", "9")],
        ),
        # JSON
        (VLLM, "hf-overrides", {"b": 1, "a": [True]}, [('--hf-overrides={"a": [true], "b": 1}',)]),
        (VLLM, "allowed-origins", ["*"], [('--allowed-origins=["*"]',)]),
        (
            VLLM,
            "attention-config.backend",
            "FLASHINFER",
            [('--attention-config={"backend": "FLASHINFER"}',)],
        ),
        (VLLM, "attention-config.use_x", True, [('--attention-config={"use_x": true}',)]),
        (VLLM, "attention-config.use_x", False, [('--attention-config={"use_x": false}',)]),
        (VLLM, "attention-config.a.b", "1", [('--attention-config={"a": {"b": 1}}',)]),
        # Flags that are in no catalog
        (VLLM, "of-tomorrow", True, [("--of-tomorrow",)]),
        (VLLM, "of-tomorrow", False, [("--no-of-tomorrow",)]),
        (VLLM, "of-tomorrow", ["a", True], [("--of-tomorrow", "a", "true")]),
        (VLLM, "of-tomorrow", {"a": 1}, [('--of-tomorrow={"a": 1}',)]),
    ],
)
def test_words_of_each_kind_of_value(
    engine: tuple[str, str], name: str, value: Any, expected: list[Words]
) -> None:
    assert list(arguments(EngineSettings(*engine, {name: value}))) == expected


def test_words_without_a_catalog() -> None:
    assert list(arguments(EngineSettings("another", "1.0", {"flag": "1"}))) == [("--flag=1",)]


def test_entries_are_sorted_by_name() -> None:
    args = {"seed": "1", "block-size": "16"}
    settings = EngineSettings(*VLLM, args)
    assert list(arguments(settings)) == [("--block-size=16",), ("--seed=1",)]
    assert list(arguments(EngineSettings(*VLLM))) == []
