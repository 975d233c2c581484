"""Speculative decoding: what each method of each engine becomes on the command line."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from generator.catalogs.speculation import METHODS
from generator.pipeline import read_site

SITE = """\
version: 1
name: lab
nodes: [{{name: spark1}}]
topology: {{kind: single}}
model:
  name: {model}
  context_length: 8192
  max_sequences: 2
  speculative: {speculative}
{file}engine:
  name: {engine}
  version: {version}
  image: example.org/engine:1
"""
MODELS = {"llama.cpp": "gpt-oss-20b"}
VERSIONS = {"vllm": "0.33.0", "sglang": "0.5.23", "tensorrt-llm": "1.3.0rc29", "llama.cpp": "0.1"}
PREDICTING = "qwen3.6-27b"
D = "example/draft"

# Engine, version, what the site says, and what the engine is told.
TOLD: list[tuple[str, str, str, object]] = [
    ("vllm", "0.33.0", "{method: mtp, tokens: 2}", {"method": "mtp", "num_speculative_tokens": 2}),
    (
        "vllm",
        "0.33.0",
        "{method: eagle, source: example/draft, tokens: 3}",
        {"method": "eagle", "num_speculative_tokens": 3, "model": D},
    ),
    (
        "vllm",
        "0.33.0",
        "{method: eagle3, source: example/draft, tokens: 3, config: {quantization: fp8}}",
        {"method": "eagle3", "num_speculative_tokens": 3, "model": D, "quantization": "fp8"},
    ),
    (
        "vllm",
        "0.33.0",
        "{method: draft_model, source: example/draft, tokens: 3}",
        {"method": "draft_model", "num_speculative_tokens": 3, "model": D},
    ),
    (
        "vllm",
        "0.33.0",
        "{method: ngram, tokens: 4, config: {prompt_lookup_max: 4, prompt_lookup_min: 2}}",
        {
            "method": "ngram",
            "num_speculative_tokens": 4,
            "prompt_lookup_max": 4,
            "prompt_lookup_min": 2,
        },
    ),
    (
        "vllm",
        "0.33.0",
        "{method: ngram_gpu, tokens: 4}",
        {"method": "ngram_gpu", "num_speculative_tokens": 4},
    ),
    (
        "vllm",
        "0.33.0",
        "{method: suffix, config: {suffix_decoding_min_token_prob: 0.1}}",
        {"method": "suffix", "suffix_decoding_min_token_prob": 0.1},
    ),
    (
        "vllm",
        "0.33.0",
        "{method: dflash, source: example/draft, tokens: 15}",
        {"method": "dflash", "num_speculative_tokens": 15, "model": D},
    ),
    (
        "vllm",
        "0.33.0",
        "{method: dspark, source: example/draft, tokens: 5, "
        "config: {draft_sample_method: probabilistic, enable_adaptive_verification: true}}",
        {
            "method": "dspark",
            "num_speculative_tokens": 5,
            "model": D,
            "draft_sample_method": "probabilistic",
            "enable_adaptive_verification": True,
        },
    ),
    (
        "vllm",
        "0.33.0",
        "{method: custom_class, source: drafts.Drafter, tokens: 5}",
        {"method": "custom_class", "model": "drafts.Drafter", "num_speculative_tokens": 5},
    ),
    (
        "vllm",
        "0.33.0",
        "{method: extract_hidden_states, tokens: 1}",
        {"method": "extract_hidden_states", "num_speculative_tokens": 1},
    ),
    (
        "vllm",
        "0.19.0",
        "{method: medusa, source: example/draft, tokens: 3}",
        {"method": "medusa", "num_speculative_tokens": 3, "model": D},
    ),
    (
        "vllm",
        "0.19.0",
        "{method: mlp_speculator, source: example/draft, tokens: 3}",
        {"method": "mlp_speculator", "num_speculative_tokens": 3, "model": D},
    ),
    ("sglang", "0.5.23", "{method: NEXTN, tokens: 3}", "EAGLE num-steps=3 eagle-topk=1 draft=4"),
    (
        "sglang",
        "0.5.23",
        "{method: eagle, source: example/draft, tokens: 64, topk: 8, steps: 5}",
        "EAGLE path num-steps=5 eagle-topk=8 draft=64",
    ),
    (
        "sglang",
        "0.5.23",
        "{method: EAGLE3, source: example/draft, tokens: 3, steps: 3, topk: 1}",
        "EAGLE3 path num-steps=3 eagle-topk=1 draft=4",
    ),
    (
        "sglang",
        "0.5.23",
        "{method: STANDALONE, source: example/draft, tokens: 5, steps: 4}",
        "STANDALONE path num-steps=4 eagle-topk=1 draft=5",
    ),
    (
        "sglang",
        "0.5.23",
        "{method: ngram, tokens: 11, config: {ngram-max-bfs-breadth: 1}}",
        "NGRAM draft=12 ngram-max-bfs-breadth=1",
    ),
    (
        "sglang",
        "0.5.23",
        "{method: DFLASH, source: example/draft, tokens: 7, config: {draft-model-revision: abc}}",
        "DFLASH path draft=8 draft-model-revision=abc",
    ),
    ("sglang", "0.5.23", "{method: dspark, source: example/draft}", "DSPARK path"),
    (
        "sglang",
        "0.5.23",
        "{method: frozen_kv_mtp, source: example/draft, tokens: 2}",
        "FROZEN_KV_MTP path num-steps=2 eagle-topk=1 draft=3",
    ),
    (
        "tensorrt-llm",
        "1.3.0rc29",
        "{method: MTP, tokens: 2}",
        {"decoding_type": "MTP", "max_draft_len": 2},
    ),
    (
        "tensorrt-llm",
        "1.3.0rc29",
        "{method: eagle, source: example/draft, tokens: 2}",
        {"decoding_type": "Eagle", "max_draft_len": 2, "speculative_model_dir": D},
    ),
    (
        "tensorrt-llm",
        "1.2.1",
        "{method: eagle3, source: example/draft, tokens: 2}",
        {"decoding_type": "Eagle", "max_draft_len": 2, "speculative_model_dir": D},
    ),
    (
        "tensorrt-llm",
        "1.3.0rc29",
        "{method: Eagle3, source: example/draft, tokens: 2, config: {eagle3_one_model: true}}",
        {
            "decoding_type": "Eagle3",
            "max_draft_len": 2,
            "speculative_model_dir": D,
            "eagle3_one_model": True,
        },
    ),
    (
        "tensorrt-llm",
        "1.3.0rc29",
        "{method: Draft_Target, source: example/draft, tokens: 2}",
        {"decoding_type": "Draft_Target", "max_draft_len": 2, "speculative_model_dir": D},
    ),
    (
        "tensorrt-llm",
        "1.3.0rc29",
        "{method: NGram, tokens: 3, config: {max_matching_ngram_size: 2}}",
        {"decoding_type": "NGram", "max_draft_len": 3, "max_matching_ngram_size": 2},
    ),
    (
        "tensorrt-llm",
        "1.3.0rc29",
        "{method: pard, source: example/draft, tokens: 2}",
        {"decoding_type": "PARD", "max_draft_len": 2, "speculative_model_dir": D},
    ),
    ("tensorrt-llm", "1.3.0rc29", "{method: auto}", {"decoding_type": "AUTO"}),
    (
        "tensorrt-llm",
        "1.3.0rc29",
        "{method: save_hidden_states, config: {output_directory: /var/cache/sparkgen/states}}",
        {"decoding_type": "SaveState", "output_directory": "/var/cache/sparkgen/states"},
    ),
    ("llama.cpp", "0.1", "{method: mtp, tokens: 2}", "draft-mtp draft-n-max=2"),
    (
        "llama.cpp",
        "0.1",
        "{method: eagle3, source: /srv/models/d.gguf, tokens: 2}",
        "draft-eagle3 path draft-n-max=2",
    ),
    (
        "llama.cpp",
        "0.1",
        "{method: draft-simple, source: /srv/models/d.gguf, tokens: 2, config: {draft-p-min: 0.7}}",
        "draft-simple path draft-n-max=2 draft-p-min=0.7",
    ),
    (
        "llama.cpp",
        "0.1",
        "{method: dflash, source: /srv/models/d.gguf, tokens: 7}",
        "draft-dflash path draft-n-max=7",
    ),
    (
        "llama.cpp",
        "0.1",
        "{method: dspark, source: /srv/models/d.gguf, tokens: 5}",
        "draft-dspark path draft-n-max=5",
    ),
    ("llama.cpp", "0.1", "{method: ngram, tokens: 8}", "ngram-simple ngram-simple-size-m=8"),
    ("llama.cpp", "0.1", "{method: ngram-simple}", "ngram-simple"),
    ("llama.cpp", "0.1", "{method: ngram-map-k, tokens: 8}", "ngram-map-k ngram-map-k-size-m=8"),
    (
        "llama.cpp",
        "0.1",
        "{method: ngram-map-k4v, tokens: 8}",
        "ngram-map-k4v ngram-map-k4v-size-m=8",
    ),
    ("llama.cpp", "0.1", "{method: ngram-mod, tokens: 16}", "ngram-mod ngram-mod-n-max=16"),
    ("llama.cpp", "0.1", "{method: ngram-cache, tokens: 4}", "ngram-cache draft-n-max=4"),
]


@pytest.mark.parametrize(("engine", "version", "said", "told"), TOLD)
def test_engine_is_told(engine: str, version: str, said: str, told: object) -> None:
    assert speculation(engine, version, said) == told


def test_every_method_is_told() -> None:
    for engine, methods in METHODS.items():
        spelled = {known.spelled.lower() for known in methods.values()}
        shown = " ".join(str(told).lower() for name, _, _, told in TOLD if name == engine)
        assert not [word for word in spelled if word not in shown]


def speculation(engine: str, version: str, said: str) -> object:
    """What a site tells its engine, in the form that the table has it."""
    file = "  file: /srv/models/m.gguf\n" if engine == "llama.cpp" else ""
    model = (
        PREDICTING if "mtp" in said.lower() or "nextn" in said.lower() else "llama-3.1-8b-instruct"
    )
    text = SITE.format(model=model, speculative=said, file=file, engine=engine, version=version)
    reading = read_site("site.yaml", text.encode())
    assert reading.site, reading.findings
    container = reading.site.head.container
    if engine == "tensorrt-llm":
        options: Mapping[str, Any] = container.options["speculative_config"]
        return dict(options)
    words = [word for words in container.command for word in ["=".join(words)] if "spec" in word]
    if engine == "vllm":
        (config,) = words
        return json.loads(config.partition("=")[2])
    return " ".join(map(short, words))


def short(word: str) -> str:
    """A flag of speculation without what they all begin with."""
    for prefix in ("--speculative-algorithm=", "--spec-type=", "--speculative-", "--spec-"):
        if word.startswith(prefix):
            rest = word.removeprefix(prefix)
            break
    if "draft-model=" in rest or "draft-model-path=" in rest:
        return "path"
    return rest.replace("num-draft-tokens=", "draft=")
