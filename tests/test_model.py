"""`sparkgen describe-model` turns a Hugging Face config.json into a section of a site file."""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command
from declared import a_model, an_engine, some_nodes
from hypothesis import given, settings
from hypothesis import strategies as st

from generator import catalogs
from generator.fit.assessment import assess
from generator.models.architecture import known_shape, shape
from generator.models.huggingface import NoModelError, section
from generator.pipeline import read_site
from generator.resources import ROOT
from generator.sitefile.declaration import Parallel

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"
NANO = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"

QWEN3_5: dict[str, Any] = {
    "model_type": "qwen3_5_moe",
    "vision_config": {"depth": 27},
    "text_config": {
        "model_type": "qwen3_5_moe_text",
        "num_hidden_layers": 48,
        "hidden_size": 3072,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "vocab_size": 248320,
        "max_position_embeddings": 262144,
        "full_attention_interval": 4,
        "layer_types": [LINEAR, LINEAR, LINEAR, FULL] * 12,
        "linear_num_key_heads": 16,
        "linear_key_head_dim": 128,
        "linear_num_value_heads": 64,
        "linear_value_head_dim": 128,
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 1024,
        "shared_expert_intermediate_size": 1024,
        "mtp_num_hidden_layers": 1,
        "attn_output_gate": True,
    },
    "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
}

# By catalog name: the model's config.json, reduced to what matters here.
CONFIGS: dict[str, dict[str, Any]] = {
    "llama-3.1-70b-instruct-fp8": {
        "model_type": "llama",
        "num_hidden_layers": 80,
        "hidden_size": 8192,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "intermediate_size": 28672,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"},
    },
    "qwen2.5-72b-instruct-awq": {
        "model_type": "qwen2",
        "num_hidden_layers": 80,
        "hidden_size": 8192,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "intermediate_size": 29568,
        "vocab_size": 152064,
        "max_position_embeddings": 32768,
        "sliding_window": 131072,
        "use_sliding_window": False,
        "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128},
    },
    "qwen3-235b-a22b-gptq-int4": {
        "model_type": "qwen3_moe",
        "num_hidden_layers": 94,
        "hidden_size": 4096,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": 12288,
        "moe_intermediate_size": 1536,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "sliding_window": None,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128},
    },
    "qwen3-coder-next-fp8": {
        "model_type": "qwen3_next",
        "num_hidden_layers": 48,
        "hidden_size": 2048,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "intermediate_size": 5120,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_key_head_dim": 128,
        "linear_num_value_heads": 32,
        "linear_value_head_dim": 128,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "vocab_size": 151936,
        "max_position_embeddings": 262144,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    },
    "gpt-oss-120b": {
        "model_type": "gpt_oss",
        "num_hidden_layers": 36,
        "hidden_size": 2880,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "intermediate_size": 2880,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
        "experts_per_token": 4,
        "sliding_window": 128,
        "layer_types": [SLIDING, FULL] * 18,
        "vocab_size": 201088,
        "max_position_embeddings": 131072,
        "quantization_config": {"quant_method": "mxfp4"},
    },
    "deepseek-v3": {
        "model_type": "deepseek_v3",
        "num_hidden_layers": 61,
        "hidden_size": 7168,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "intermediate_size": 18432,
        "first_k_dense_replace": 3,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "num_nextn_predict_layers": 1,
        "vocab_size": 129280,
        "max_position_embeddings": 163840,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    },
    "minimax-m2.7": {
        "model_type": "minimax_m2",
        "num_hidden_layers": 62,
        "hidden_size": 3072,
        "num_attention_heads": 48,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 1536,
        "num_local_experts": 256,
        "num_experts_per_tok": 8,
        "shared_intermediate_size": 0,
        "attn_type_list": [1] * 62,
        "vocab_size": 200064,
        "max_position_embeddings": 204800,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    },
    "glm-4.5-air": {
        "model_type": "glm4_moe",
        "num_hidden_layers": 46,
        "hidden_size": 4096,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 10944,
        "first_k_dense_replace": 1,
        "n_routed_experts": 128,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 1408,
        "vocab_size": 151552,
        "max_position_embeddings": 131072,
    },
    "nvidia-nemotron-3-nano-30b-a3b-nvfp4": {
        "model_type": "nemotron_h",
        "hybrid_override_pattern": NANO,
        "num_hidden_layers": 52,
        "hidden_size": 2688,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "intermediate_size": 1856,
        "mamba_num_heads": 64,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 8,
        "n_routed_experts": 128,
        "n_shared_experts": 1,
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 1856,
        "moe_shared_expert_intermediate_size": 3712,
        "vocab_size": 131072,
        "max_position_embeddings": 262144,
        "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
    },
    "devstral-small-2-24b-instruct-2512": {
        "model_type": "mistral3",
        "text_config": {
            "model_type": "ministral3",
            "num_hidden_layers": 40,
            "hidden_size": 5120,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 32768,
            "sliding_window": None,
            "vocab_size": 131072,
            "max_position_embeddings": 393216,
        },
        "vision_config": {"hidden_size": 1024},
        "quantization_config": {"quant_method": "fp8"},
    },
    "nvidia/qwen3.5-122b-a10b-nvfp4": QWEN3_5,
    "inkling-small-nvfp4": {
        "model_type": "inkling_mm_model",
        "mtp_config": {"num_nextn_predict_layers": 8, "local_layer_ids": [0, 1]},
        "audio_config": {"decoder_dmodel": 4096},
        "text_config": {
            "model_type": "inkling_model",
            "vocab_size": 201024,
            "unpadded_vocab_size": 200058,
            "hidden_size": 4096,
            "intermediate_size": 2048,
            "dense_intermediate_size": 16384,
            "dense_mlp_idx": 2,
            "num_hidden_layers": 42,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "swa_num_attention_heads": 32,
            "swa_num_key_value_heads": 8,
            "swa_head_dim": 128,
            "sliding_window_size": 512,
            "local_layer_ids": [layer for layer in range(42) if (layer + 1) % 6],
            "d_rel": 16,
            "rel_extent": 1024,
            "use_sconv": True,
            "sconv_kernel_size": 4,
            "n_routed_experts": 256,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "shared_expert_sink": True,
            "model_max_length": 1048576,
        },
        "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
    },
    "solar-open2-250b": {
        "model_type": "solar_open2",
        "vocab_size": 196608,
        "hidden_size": 4096,
        "num_hidden_layers": 48,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 1048576,
        "gqa_interval": 3,
        "gqa_layers": list(range(0, 48, 4)),
        "use_gqa_gate": True,
        "moe_intermediate_size": 1280,
        "n_routed_experts": 320,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "linear_attn_config": {"head_dim": 128, "num_heads": 64, "num_kv_heads": None},
    },
    "command-a-plus-05-2026-bf16": {
        "model_type": "cohere2_vision",
        "vision_config": {"hidden_size": 1152},
        "tie_word_embeddings": True,
        "text_config": {
            "model_type": "cohere2_moe",
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 128,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 262144,
            "intermediate_size": 4096,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "num_shared_experts": 4,
            "sliding_window": 4096,
            "sliding_window_pattern": 4,
            "layer_types": [SLIDING, SLIDING, SLIDING, FULL] * 8,
            "max_position_embeddings": 200000,
        },
    },
    "mimo-v2.6-flash-rl": {
        "model_type": "mimo_v2",
        "hidden_size": 4096,
        "num_hidden_layers": 48,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "head_dim": 192,
        "v_head_dim": 128,
        "swa_num_attention_heads": 64,
        "swa_num_key_value_heads": 8,
        "swa_head_dim": 192,
        "swa_v_head_dim": 128,
        "sliding_window_size": 128,
        "hybrid_layer_pattern": [0] + [1, 1, 1, 1, 1, 0] * 7 + [1, 1, 1, 1, 0],
        "moe_layer_freq": [0] + [1] * 47,
        "vocab_size": 152576,
        "intermediate_size": 16384,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 256,
        "num_experts_per_tok": 8,
        "max_position_embeddings": 1048576,
        "quantization_config": {
            "quant_method": "fp8",
            "weight_block_size": [128, 128],
            "store_dtype": "mxfp4",
        },
    },
}
SPLITS = (Parallel(), Parallel(tensor=2), Parallel(pipeline=3), Parallel(tensor=2, pipeline=2))


def total_size(name: str) -> int:
    """The bytes that the catalog gives for a checkpoint, without multi-token prediction layers."""
    checkpoint = catalogs.checkpoint(name)
    assert checkpoint
    assert checkpoint.weight_gb
    return int((checkpoint.weight_gb + checkpoint.vision_gb - checkpoint.mtp_gb) * 1e9)


@pytest.mark.parametrize("name", CONFIGS)
def test_shape_is_that_of_the_catalog(name: str) -> None:
    checkpoint = catalogs.checkpoint(name)
    assert checkpoint
    found = section(CONFIGS[name], total_size(name))
    derived = shape(a_model(source="x/y", architecture=dict(found.architecture)))
    known = known_shape(checkpoint)
    yarn = known.max_context_yarn
    assert derived
    assert (derived, yarn) == (derived, derived.max_context_yarn or yarn)
    assert derived.layers == known.layers
    for field in known.__match_args__:
        # How large an image may be stands in a file beside config.json.
        if field not in ("max_context_yarn", "tower"):
            assert getattr(derived, field) == getattr(known, field), field
    form = found.architecture["format"]
    assert str(form).split("-")[0] == checkpoint.format.split("-")[0]


@pytest.mark.parametrize("name", CONFIGS)
def test_a_pasted_section_fits_like_the_catalogs_entry(
    name: str, sparkgen: Command, tmp_path: Path
) -> None:
    config, index = tmp_path / "config.json", tmp_path / "model.safetensors.index.json"
    config.write_text(json.dumps(CONFIGS[name]), encoding="utf-8")
    index.write_text(json.dumps({"metadata": {"total_size": total_size(name)}}), encoding="utf-8")
    outcome = sparkgen("model", config, "--source", "example/model", cwd=tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    site = (ROOT / "sites/single.yaml").read_text(encoding="utf-8")
    before, _, rest = site.partition("model:\n")
    pasted = f"{before}{outcome.out}  context_length: 8192\nengine:{rest.partition('engine:')[2]}"
    reading = read_site("site.yaml", pasted.encode())
    rules = {finding.rule for finding in reading.findings}
    assert not {rule for rule in rules if rule < "SG5"}, reading.findings
    assert reading.declaration
    model = reading.declaration.model
    checkpoint = catalogs.checkpoint(name)
    assert checkpoint
    vision = checkpoint.vision_gb
    for sizes in SPLITS:
        nodes, engine = some_nodes(sizes.ranks), an_engine(parallel=sizes)
        here = assess(nodes, model, engine)
        there = assess(nodes, a_model(name=name, context_length=8192), engine)
        assert here
        assert there
        assert here.state == there.state
        for mine, theirs in zip(here.nodes, there.nodes, strict=True):
            # There, a vision tower is on the first node; here it is counted among the layers.
            assert mine.weights_gib == pytest.approx(theirs.weights_gib, abs=0.02 + vision)
            assert mine.kv_one_gib == theirs.kv_one_gib


GEMMA_3: dict[str, Any] = {
    "model_type": "gemma3_text",
    "num_hidden_layers": 62,
    "hidden_size": 5376,
    "num_attention_heads": 32,
    "num_key_value_heads": 16,
    "head_dim": 128,
    "intermediate_size": 21504,
    "sliding_window": 1024,
    "sliding_window_pattern": 6,
    "vocab_size": 262208,
    "max_position_embeddings": 131072,
}


def test_gemma_has_windows_and_one_table_for_embedding_and_head() -> None:
    found = section(GEMMA_3).architecture
    assert found["sliding_layers"] == 52
    assert found["sliding_window"] == 1024
    assert found["tied_embeddings"] is True
    assert (
        section(GEMMA_3 | {"tie_word_embeddings": False}).architecture.get("tied_embeddings")
        is None
    )
    derived = shape(a_model(source="x/y", architecture=dict(found) | {"weight_gb": 54.0}))
    assert derived
    assert (derived.attention_layers, derived.sliding_layers) == (10, 52)


def test_mistral_of_old_has_a_window_in_every_layer() -> None:
    config = {
        "model_type": "mistral",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "sliding_window": 4096,
    }
    found = section(config)
    assert found.architecture["sliding_layers"] == 32
    assert any(remark.startswith("vocab_size") for remark in found.remarks)


SIZES: dict[str, Any] = {
    "num_hidden_layers": 8,
    "hidden_size": 1024,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "intermediate_size": 4096,
    "vocab_size": 32000,
    "max_position_embeddings": 8192,
}
MAMBA_SIZES = {"mamba_n_heads": 24, "mamba_d_head": 128, "mamba_d_state": 256, "mamba_n_groups": 1}


@pytest.mark.parametrize(
    ("config", "kinds"),
    [
        (
            {"model_type": "falcon_h1", **MAMBA_SIZES},
            {"attention_layers": 8, "mamba_layers": 8, "state_dtype_bytes": 2},
        ),
        (
            {"layers_block_type": ["mamba", "moe", "mamba", "attention"] * 2, "n_routed_experts": 4}
            | MAMBA_SIZES,
            {"attention_layers": 2, "mamba_layers": 4, "expert_layers": 2},
        ),
        (
            {"layer_types": ["mamba"] * 7 + ["attention"], **MAMBA_SIZES},
            {"attention_layers": 1, "mamba_layers": 7},
        ),
        ({"attn_layer_indices": [3], **MAMBA_SIZES}, {"attention_layers": 1, "mamba_layers": 7}),
        (
            {
                "linear_attn_config": {
                    "full_attn_layers": [4, 8],
                    "kda_layers": [1, 2, 3, 5, 6, 7],
                    "num_heads": 32,
                    "head_dim": 128,
                },
                "kv_lora_rank": 512,
                "qk_rope_head_dim": 64,
            },
            {"linear_layers": 6, "kda_heads": 32, "kda_head_dim": 128},
        ),
        (
            {
                "model_type": "llama4_text",
                "attention_chunk_size": 8192,
                "num_local_experts": 16,
                "interleave_moe_layer_step": 2,
                "intermediate_size_mlp": 16384,
            },
            {
                "sliding_layers": 6,
                "sliding_window": 8192,
                "dense_layers": 4,
                "intermediate_size": 16384,
                "expert_intermediate_size": 4096,
            },
        ),
        (
            {
                "layer_types": [SLIDING] * 7 + [FULL],
                "sliding_window": 1024,
                "global_head_dim": 512,
                "num_global_key_value_heads": 2,
                "attention_k_eq_v": True,
            },
            {"sliding_layers": 7, "global_head_dim": 512, "global_kv_heads": 2, "kv_heads": 4},
        ),
        (
            {
                "hybrid_layer_pattern": [0, 1, 1, 1, 0, 1, 1, 1],
                "sliding_window": 128,
                "swa_num_key_value_heads": 8,
                "v_head_dim": 32,
            },
            {"sliding_layers": 6, "kv_heads": 8, "global_kv_heads": 4, "value_head_dim": 32},
        ),
        (
            {
                "block_configs": [{"attention": {"n_heads_in_group": 8}}] * 3
                + [{"attention": {"n_heads_in_group": None, "no_op": True}}] * 5
            },
            {"kv_heads": 2, "kv_elements_per_token": 2 * 64 * 6},
        ),
        (
            {
                "compress_ratios": [0, 4, 128, 4, 128, 4, 128, 4, 0],
                "sliding_window": 128,
                "qk_rope_head_dim": 64,
                "q_lora_rank": 1024,
                "o_lora_rank": 1024,
                "o_groups": 8,
                "index_head_dim": 128,
            },
            {"layers_by_4": 4, "layers_by_128": 3},
        ),
        (
            {
                "compress_ratios": [0, 2, 2, 2, 1, 1, 1, 1, 0, 0],
                "kv_source_layer_ids": [1, 3, 4],
                "sliding_window": 128,
                "qk_rope_head_dim": 64,
                "q_lora_rank": 1280,
                "o_lora_rank": 1024,
                "o_groups": 8,
                "index_head_dim": 128,
            },
            {"sources_by_1": 1, "sources_by_2": 2},
        ),
        (
            {"layer_types": ["deepseek_sparse_attention"] * 8, "indexer_types": ["full", "shared"]}
            | {"kv_lora_rank": 512, "index_head_dim": 128, "index_n_heads": 4},
            {"index_layers": 1, "index_head_dim": 128},
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_kinds_of_layers_are_read_and_add_up(config: Any, kinds: Any) -> None:
    found = section(SIZES | config, 10**9).architecture
    assert {key: found.get(key) for key in kinds} == kinds
    derived = shape(a_model(source="x/y", architecture=dict(found)))
    assert derived
    assert (derived.adds_up, derived.lacks) == (True, ())
    assert "not_modelled" not in found


@pytest.mark.parametrize(
    "config",
    [
        {"layer_types": ["conv", "full_attention"] * 4},
        {"attn_type_list": [0, 0, 0, 1] * 2},
        {"num_kv_shared_layers": 4},
        {"compress_ratios": [0, 2, 4, 8]},
        {"mamba_dt_rank": 256, "mamba_d_state": 16},
        {"engram_config": {"layers": [1, 4]}},
    ],
)
def test_unmodelled_layers_are_unknown(config: Any) -> None:
    found = section(SIZES | config, 10**9)
    assert any("whether it fits is unknown" in remark for remark in found.remarks)
    model = a_model(source="x/y", architecture=dict(found.architecture), context_length=4096)
    fit = assess(some_nodes(1), model, an_engine())
    assert fit
    assert fit.state == "unknown"
    assert "not modelled" in " ".join(fit.missing)


@pytest.mark.parametrize(
    ("engine", "flag"),
    [
        ("{name: vllm, version: 0.33.0, image: vllm/vllm-openai:v0.33.0}", "--max-model-len=auto"),
        (
            "{name: vllm, version: 0.13.0, image: vllm/vllm-openai:v0.13.0}",
            r"--max-model-len=\d+",
        ),
        (
            "{name: sglang, version: 0.5.23, image: lmsysorg/sglang:v0.5.23}",
            r"--context-length=\d+",
        ),
    ],
)
def test_context_is_left_to_an_engine_that_can_determine_it(engine: str, flag: str) -> None:
    text = (
        "version: 1\nname: lab\nnodes: [{name: spark, management: {address: 10.0.0.11/24}}]\n"
        f"model: {{name: gpt-oss-20b, context_length: auto}}\nengine: {engine}\n"
    )
    site = read_site("lab.yaml", text.encode()).site
    assert site
    words = (word for words in site.parts[0].head.container.command for word in words)
    assert any(re.fullmatch(flag, word) for word in words)


def test_unread_key_is_reported() -> None:
    remarks = section(SIZES | {"num_memory_banks": 64, "rope_theta": 5e5, "hc_mult": 4}).remarks
    assert [remark for remark in remarks if "not read" in remark] == [
        "num_memory_banks: it is not read; if it adds weights or cache, the fit is too good"
    ]


def test_the_file_of_nvidias_quantization_counts(sparkgen: Command, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SIZES), encoding="utf-8")
    quantized = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(quantized), encoding="utf-8")
    assert "format: nvfp4\n" in sparkgen("model", "config.json", cwd=tmp_path).out


def compressed(*weights: dict[str, Any]) -> dict[str, Any]:
    """A config of compressed-tensors with groups of layers."""
    groups = {f"group_{number}": {"weights": each} for number, each in enumerate(weights)}
    return {"quant_method": "compressed-tensors", "config_groups": groups}


@pytest.mark.parametrize(
    ("quantized", "form"),
    [
        (None, "bf16"),
        # deepseek-ai/DeepSeek-V3, MiniMaxAI/MiniMax-M3-MXFP8, meta-llama's FP8
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block128"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "mxfp8"}, "mxfp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        # XiaomiMiMo/MiMo-V2.6-Flash-RL
        ({"quant_method": "fp8", "store_dtype": "mxfp4"}, "fp4-fp8"),
        # Qwen's GPTQ, TheBloke's AWQ, Intel's AutoRound
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq-int4"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "gptq", "bits": 3}, "mixed"),
        ({"quant_method": "awq", "w_bit": 4}, "awq-int4"),
        ({"quant_method": "auto-round", "bits": 4}, "int4-autoround"),
        ({"quant_method": "intel/auto-round", "bits": 4}, "int4-autoround"),
        ({"quant_method": "auto-round", "bits": 4, "data_type": "mx_fp"}, "mxfp4"),
        ({"quant_method": "auto-round", "bits": 4, "data_type": "nv_fp"}, "nvfp4"),
        # nvidia's own
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "nvfp4-mixed"),
        ({"quant_method": "modelopt_fp4", "quant_algo": "W4A16_NVFP4"}, "nvfp4"),
        # RedHatAI, cyankiwi, PrismaQuant
        ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, "nvfp4"),
        ({"quant_method": "compressed-tensors", "format": "nvfp4_e2m1_ue8m0"}, "nvfp4"),
        ({"quant_method": "compressed-tensors", "format": "float-quantized"}, "fp8"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "int4"),
        ({"quant_method": "compressed-tensors", "format": "int-quantized"}, "int8"),
        (compressed({"num_bits": 8, "type": "int", "group_size": 32}), "int8"),
        (compressed({"num_bits": 8, "type": "float", "strategy": "block"}), "fp8-block128"),
        (compressed({"num_bits": 4, "type": "float", "group_size": 32}), "mxfp4"),
        (
            compressed({"num_bits": 4, "type": "float"}, {"num_bits": 8, "type": "float"}),
            "nvfp4-mixed",
        ),
        (compressed({"num_bits": 4, "type": "int"}, {"num_bits": 8, "type": "float"}), "mixed"),
        # EmbeddedLLM's Quark, EXL3, bitsandbytes
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}}, "mxfp4"),
        ({"quant_method": "exl3", "bits": 2.9, "codebook": "mcg"}, "mixed"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "mixed"),
    ],
)
def test_a_format_is_known_by_the_words_of_its_maker(quantized: Any, form: str) -> None:
    found = section(GEMMA_3 | {"quantization_config": quantized})
    assert found.architecture["format"] == form
    assert not any(remark.startswith("format") for remark in found.remarks)


@pytest.mark.parametrize(
    "quantized",
    [
        {"quant_method": "humming"},
        {"bits": 4},
        {"quant_method": "compressed-tensors"},
        {"quant_method": "modelopt", "quant_algo": "NVINT3"},
    ],
)
def test_unknown_format_is_reported(quantized: Any) -> None:
    found = section(GEMMA_3 | {"quantization_config": quantized})
    assert found.architecture["format"] == "mixed"
    assert any(remark.startswith("format") for remark in found.remarks)


def test_missing_facts_are_reported(sparkgen: Command, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(QWEN3_5), encoding="utf-8")
    outcome = sparkgen("model", config, cwd=tmp_path)
    assert outcome.code == 0
    for word in ("source: write", "weight_gb:", "gated:", "sees or hears", "predict further"):
        assert word in outcome.out
    assert set(yaml.safe_load(outcome.out)) == {"model"}


def test_id_follows_from_the_cache_folder(sparkgen: Command, tmp_path: Path) -> None:
    folder = tmp_path / "models--example--Some-Model-8B" / "snapshots" / "0123"
    folder.mkdir(parents=True)
    config = folder / "config.json"
    config.write_text(json.dumps(GEMMA_3), encoding="utf-8")
    assert "source: example/Some-Model-8B\n" in sparkgen("model", config, cwd=tmp_path).out


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1]", "it holds no object"),
        ("{}", "'num_hidden_layers' is missing"),
        ('{"num_hidden_layers": 2}', "'num_attention_heads' is missing"),
        ('{"num_hidden_layers": "2"}', "'num_hidden_layers' is not a whole number"),
        ('{"num_hidden_layers": NaN}', "'num_hidden_layers' is not a whole number"),
        ('{"num_hidden_layers": true}', "'num_hidden_layers' is not a whole number"),
        (
            '{"num_hidden_layers": 9999, "num_attention_heads": 8, "hidden_size": 64}',
            "'layers: 9999' is out of range: 1 to 1000 (layers)",
        ),
    ],
)
def test_a_bad_file_is_refused_in_one_line(
    text: str, why: str, sparkgen: Command, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text(text, encoding="utf-8")
    outcome = sparkgen("model", config, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.count("\n") == 1
    assert f"config.json: {why}" in outcome.err


@pytest.mark.parametrize(
    ("index", "why"),
    [("{}", "metadata.total_size"), ('{"metadata": {"total_size": "1"}}', "number of bytes")],
)
def test_a_bad_index_is_refused_in_one_line(
    index: str, why: str, sparkgen: Command, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(GEMMA_3), encoding="utf-8")
    (tmp_path / "index.json").write_text(index, encoding="utf-8")
    outcome = sparkgen("model", "config.json", "--index", "index.json", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert why in outcome.err


def test_a_file_that_is_not_there_is_the_environments_fault(
    sparkgen: Command, tmp_path: Path
) -> None:
    assert sparkgen("model", "config.json", cwd=tmp_path).code == 4


KEYS = sorted({key for config in CONFIGS.values() for key in config} | {"text_config"})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=20,
)


@settings(deadline=None, database=None)
@given(st.sampled_from(sorted(CONFIGS)), st.dictionaries(st.sampled_from(KEYS), JSON), JSON)
def test_no_config_whatever_is_in_it_ends_in_a_traceback(
    name: str, changes: dict[str, Any], total: Any
) -> None:
    with suppress(NoModelError):
        assert section(CONFIGS[name] | changes, total).architecture["layers"]


def test_an_encoder_is_recognized_by_its_kind() -> None:
    """bge-m3's config.json; as a decoder it would seem to cache 96 KiB a token."""
    config = {
        "model_type": "xlm-roberta",
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "max_position_embeddings": 8194,
        "vocab_size": 250002,
    }
    assert section(config).architecture["encoder"] is True
    assert "encoder" not in section(config | {"is_decoder": True}).architecture
    assert "encoder" not in section(config | {"model_type": "qwen3"}).architecture


def test_a_size_that_is_listed_for_each_layer_is_that_of_all() -> None:
    """Hunyuan-A13B's config.json lists a value per layer, all of them equal."""
    config = {
        "model_type": "hunyuan_v1_moe",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 3072,
        "vocab_size": 128167,
        "num_experts": 64,
        "moe_intermediate_size": [3072] * 32,
        "moe_topk": [8] * 32,
        "num_shared_expert": [1] * 32,
    }
    sizes = section(config).architecture
    assert (sizes["expert_intermediate_size"], sizes["experts_per_token"]) == (3072, 8)
    assert sizes["shared_experts"] == 1
    with pytest.raises(NoModelError, match="'moe_intermediate_size' is not a whole number"):
        section(config | {"moe_intermediate_size": [3072, 1536] * 16})


PLAIN: dict[str, Any] = {
    "num_hidden_layers": 4,
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 1024,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
}


@pytest.mark.parametrize(
    ("config", "read"),
    [
        # MiniMaxAI/MiniMax-M3
        (
            {
                "sparse_attention_config": {
                    "use_sparse_attention": True,
                    "sparse_attention_freq": [0, 1, 1, 1],
                    "sparse_index_dim": 128,
                    "sparse_num_index_heads": 4,
                }
            },
            {"index_head_dim": 128, "index_heads": 4, "index_layers": 3, "index_wide": True},
        ),
        # Qwen/Qwen3.8-Flash-Next
        (
            {"indexer_head_dim": 128, "indexer_n_heads": 4, "indexer_compress_ratio": 4},
            {"index_head_dim": 128, "index_heads": 4, "index_kpool": 4, "index_wide": True},
        ),
        # Gemma 4, as transformers 5 writes it
        (
            {
                "layer_types": [SLIDING, SLIDING, SLIDING, FULL],
                "sliding_window": 512,
                "per_layer_config": {"3": {"head_dim": 128, "num_key_value_heads": 1}},
            },
            {"sliding_layers": 3, "global_head_dim": 128, "global_kv_heads": 1},
        ),
        ({"per_layer_config": {"3": {"head_dim": 128}}}, {"not_modelled": "per_layer_config"}),
        # Granite 4, as transformers 5 writes it
        (
            {
                "layer_types": [LINEAR, LINEAR, LINEAR, FULL],
                "mamba_n_heads": 8,
                "mamba_d_head": 64,
                "mamba_d_state": 128,
                "mamba_n_groups": 1,
            },
            {"mamba_layers": 3, "attention_layers": 1, "mamba_num_heads": 8},
        ),
        ({"mamba_n_heads": 8, "mamba_d_head": 64}, {"not_modelled": "mamba_n_heads"}),
        ({"layer_types": ["indexed_attention"] * 4}, {"kv_heads": 2}),
        # tiiuae/falcon-7b
        ({"num_key_value_heads": None, "multi_query": True}, {"kv_heads": 1}),
        # baidu/ERNIE-4.5-21B-A3B
        (
            {
                "moe_num_experts": 64,
                "moe_k": 6,
                "moe_num_shared_experts": 2,
                "moe_intermediate_size": 128,
                "moe_layer_start_index": 1,
            },
            {"experts": 64, "experts_per_token": 6, "shared_experts": 2, "dense_layers": 1},
        ),
        # zai-org/glm-4-9b-chat
        (
            {
                "num_key_value_heads": None,
                "multi_query_attention": True,
                "multi_query_group_num": 2,
                "intermediate_size": None,
                "ffn_hidden_size": 13696,
                "max_position_embeddings": None,
                "seq_length": 131072,
            },
            {"kv_heads": 2, "intermediate_size": 13696, "max_context": 131072},
        ),
        # stepfun-ai/Step-3.5-Flash
        (
            {
                "num_key_value_heads": None,
                "num_attention_groups": 2,
                "moe_num_experts": 288,
                "moe_top_k": 8,
                "moe_intermediate_size": 1280,
                "moe_layers_enum": "2,3",
            },
            {"kv_heads": 2, "experts_per_token": 8, "dense_layers": 2},
        ),
        # PowerInfer/SmallThinker-21BA3B-Instruct
        (
            {
                "moe_num_primary_experts": 64,
                "moe_num_active_primary_experts": 6,
                "moe_ffn_hidden_size": 768,
                "sliding_window_size": 4096,
                "sliding_window_layout": [0, 1, 1, 1],
            },
            {"experts": 64, "experts_per_token": 6, "sliding_layers": 3, "sliding_window": 4096},
        ),
        # LGAI-EXAONE/K-EXAONE-236B-A23B and arcee-ai/Trinity-Large
        (
            {"num_experts": 128, "num_experts_per_tok": 8, "is_moe_layer": [False, *[True] * 3]},
            {"experts": 128, "dense_layers": 1},
        ),
        (
            {"num_experts": 256, "num_experts_per_tok": 4, "num_dense_layers": 2},
            {"experts": 256, "dense_layers": 2},
        ),
        # tencent/Hunyuan-A13B-Instruct, and what shares a cache
        ({"use_cla": False, "cla_share_factor": 2}, {"kv_heads": 2}),
        ({"use_cla": True, "cla_share_factor": 2}, {"not_modelled": "cla_share_factor"}),
        # CohereLabs/North-Mini-Code-1.0: what begins with a dense layer, whose pattern is its own
        (
            {
                "model_type": "cohere2_moe",
                "first_k_dense_replace": 1,
                "prefix_dense_intermediate_size": 3072,
                "prefix_dense_sliding_window_pattern": 1,
                "intermediate_size": 768,
                "num_experts": 128,
                "num_experts_per_tok": 8,
                "sliding_window": 4096,
                "tie_word_embeddings": None,
            },
            {"sliding_layers": 3, "dense_layers": 1, "expert_intermediate_size": 768}
            | {"intermediate_size": 3072, "tied_embeddings": True},
        ),
        # upstage/Solar-Open2-250B without the list of its layers
        (
            {"gqa_interval": 1, "linear_attn_config": {"head_dim": 64, "num_heads": 8}},
            {"linear_layers": 2, "kda_heads": 8, "kda_head_dim": 64},
        ),
        # Kimi-Linear-48B-A3B-Instruct and MiniMax-M3, as transformers 5 writes them
        (
            {"layer_types": [LINEAR, LINEAR, LINEAR, FULL]}
            | {"linear_num_heads": 8, "linear_head_dim": 64, "linear_conv_kernel_dim": 4},
            {"linear_layers": 3, "kda_heads": 8, "kda_head_dim": 64},
        ),
        (
            {"layer_types": [FULL, *["minimax_m3_sparse"] * 3]}
            | {"index_n_heads": 4, "index_head_dim": 128, "index_block_size": 128},
            {"index_layers": 3, "index_heads": 4, "index_head_dim": 128, "index_wide": True},
        ),
        # meta-models/Muse-Spark: features that are present and switched off
        ({"gated_delta_net": {"enable": False, "conv_size": 4}}, {"linear_layers": None}),
        # What other families mean by known keys
        ({"model_type": "zaya", "layer_types": ["hybrid"] * 4}, {"not_modelled": "layer_types"}),
        ({"mixer_types": ["minicpm4", "lightning-attn"] * 2}, {"not_modelled": "mixer_types"}),
        ({"num_loops": 2}, {"not_modelled": "num_loops"}),
        # Heads of sliding-window layers with another size than the others'
        (
            {
                "hybrid_layer_pattern": [0, 1, 1, 1],
                "sliding_window_size": 128,
                "swa_head_dim": 32,
            },
            {"head_dim": 32, "global_head_dim": 64, "sliding_layers": 3},
        ),
        # microsoft/Phi-4-mini-flash-reasoning
        ({"mb_per_layer": 2, "mamba_d_state": 16}, {"not_modelled": "mb_per_layer"}),
        ({"zero_expert_num": 256}, {"not_modelled": "zero_expert_num"}),
        ({"ple_layer_ids": [0, 2]}, {"not_modelled": "ple_layer_ids"}),
    ],
)
def test_words_of_further_families(config: Any, read: Any) -> None:
    found = section(PLAIN | config)
    assert {key: found.architecture.get(key) for key in read} == read
    remarks = " ".join(found.remarks)
    assert "not read" not in remarks
    assert ("is unknown" in remarks) == ("not_modelled" in read)


@pytest.mark.parametrize(
    ("config", "start"),
    [
        ({"layer_types": [LINEAR, FULL] * 2}, "linear_key_heads: the file does not say it"),
        ({"memory_config": {"slots": 64}}, "memory_config: it is not read"),
    ],
)
def test_section_lists_what_a_fit_would_lack(config: Any, start: str) -> None:
    assert any(remark.startswith(start) for remark in section(PLAIN | config).remarks)


def test_groups_of_linear_layers_are_not_taken_for_attention() -> None:
    """Ling's hybrids: one attention layer after a group of others."""
    config = {
        "model_type": "bailing_hybrid",
        "hidden_size": 4096,
        "num_hidden_layers": 42,
        "num_attention_heads": 32,
        "vocab_size": 157184,
        "layer_group_size": 6,
    }
    assert section(config).architecture["not_modelled"] == "layer_group_size"


def test_a_folder_or_an_index_stands_for_its_config(sparkgen: Command, tmp_path: Path) -> None:
    """32 bits are loaded as 16, and the parameters are told: of Qwen3-30B-A3B."""
    index = tmp_path / "model.safetensors.index.json"
    config = {
        "model_type": "qwen3_moe",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "vocab_size": 151936,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "torch_dtype": "float32",
    }
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    index.write_text('{"metadata": {"total_size": 122000000000}}', encoding="utf-8")
    folder, file = (sparkgen("describe-model", path, cwd=tmp_path) for path in (tmp_path, index))
    assert folder.out == file.out
    assert "weight_gb: 61.0" in folder.out
    assert "# 30.5e9 parameters, of which a token uses 3.04e9" in folder.out
