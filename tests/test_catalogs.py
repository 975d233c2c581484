"""Catalogs: every name resolves to one checkpoint, shapes add up, and facts have sources."""

import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from math import isclose
from typing import Any

import pytest
import yaml
from tables import of_each

from generator import catalogs
from generator.catalogs import Architecture, Checkpoint, Image
from generator.fit.formulas import CACHED
from generator.resources import ROOT, SCHEMAS

MODELS: dict[str, Any] = yaml.load((SCHEMAS / "models.yaml").read_bytes(), yaml.CSafeLoader)
IMAGES: list[dict[str, Any]] = [
    row
    for path in sorted((SCHEMAS / "images").iterdir())
    for row in yaml.load(path.read_bytes(), yaml.CSafeLoader)
]
HF_IDS = [item["id"] for entry in MODELS.values() for item in entry["checkpoints"]]
SOURCES = {"aic", "recipes", "registry", "playbooks", "transformers", "card", "github", "web"}
KEYS = {
    "hf_id",
    "vision_tower",
    "like",
    "gated",
    "parameters_b",
    "parameters_without_mtp_b",
    "active_parameters_b",
    "layers",
    "hidden_size",
    "heads",
    "kv_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "tied_embeddings",
    "max_context",
    "max_context_yarn",
    "kv_elements_per_token",
    "vision_gb",
    "ngram_tables",
    "excess",
    "engram_tables",
    "pipeline_parallel",
    "attention",
    "model_type",
    "moe",
    "advised",
    "checkpoints",
    "sources",
    "unverified",
}
NAMES = catalogs.checkpoint_names()


def found(name: str) -> Checkpoint:
    checkpoint = catalogs.checkpoint(name)
    assert checkpoint, f"{name} is not in the catalog"
    return checkpoint


@cache
def architectures() -> Mapping[str, Architecture]:
    """Every architecture by its name; reading all takes longer than most chosen tests."""
    return {c.architecture.name: c.architecture for c in map(found, NAMES)}


each_architecture = of_each(MODELS)


def test_every_checkpoint_has_a_unique_name() -> None:
    assert [found(name).name for name in NAMES] == list(NAMES) == sorted(set(NAMES))
    assert sorted(found(name).hf_id for name in NAMES) == sorted(set(HF_IDS))
    assert len(HF_IDS) == len(set(HF_IDS))


@of_each(HF_IDS)
def test_id_finds_its_checkpoint_in_any_case(hf_id: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9][A-Za-z0-9._-]*", hf_id)
    assert found(hf_id).hf_id == found(hf_id.lower()).hf_id == hf_id


@pytest.mark.parametrize(
    ("name", "hf_id"),
    [
        ("qwen3.5-397b-a17b-int4-autoround", "Intel/Qwen3.5-397B-A17B-int4-AutoRound"),
        ("qwen3-235b-a22b-gptq-int4", "Qwen/Qwen3-235B-A22B-GPTQ-Int4"),
        ("llama-3.1-405b-instruct", "meta-llama/Llama-3.1-405B-Instruct"),
        ("llama-3.1-70b-instruct-fp8", "nvidia/Llama-3.1-70B-Instruct-FP8"),
        ("gpt-oss-120b", "openai/gpt-oss-120b"),
        ("qwen3-coder-next-fp8", "Qwen/Qwen3-Coder-Next-FP8"),
    ],
)
def test_aliases_find_their_checkpoint(name: str, hf_id: str) -> None:
    assert found(name).hf_id == hf_id


def test_ambiguous_name_needs_its_owner() -> None:
    assert catalogs.checkpoint("qwen3.5-397b-a17b-nvfp4") is None
    first = found("nvidia/qwen3.5-397b-a17b-nvfp4")
    other = found("lukealonso/Qwen3.5-397B-A17B-NVFP4")
    assert (first.hf_id, first.weight_gb) == ("nvidia/Qwen3.5-397B-A17B-NVFP4", 237.0)
    assert (other.name, other.weight_gb) == ("lukealonso/qwen3.5-397b-a17b-nvfp4", 233.0)
    assert first.architecture is other.architecture


@pytest.mark.parametrize("name", ["", "/", "gpt-oss", "someone/gpt-oss-120b", "qwen3.5-397b-a17b/"])
def test_unknown_name_has_no_checkpoint(name: str) -> None:
    assert catalogs.checkpoint(name) is None


@each_architecture
def test_architecture_is_published_under_its_own_id(name: str) -> None:
    assert MODELS[name]["hf_id"] in [item["id"] for item in MODELS[name]["checkpoints"]]


@each_architecture
def test_entry_has_known_keys_and_extends_a_complete_one(name: str) -> None:
    entry = MODELS[name]
    assert set(entry) <= KEYS
    assert "like" not in entry or "like" not in MODELS[entry["like"]]


@each_architecture
def test_shapes_are_complete(name: str) -> None:
    shape = architectures()[name]
    attention = shape.facts["attention"]
    assert shape.layers
    assert shape.hidden_size
    assert shape.heads
    assert shape.kv_heads
    assert shape.max_context
    assert shape.head_dim or "kv_lora_rank" in attention
    assert shape.heads % shape.kv_heads == 0 or "kv_lora_rank" in attention
    assert attention.get("kv_layers", 0) + attention.get("linear_layers", 0) <= shape.layers
    assert shape.experts is None or shape.experts > shape.facts["moe"]["top_k"]
    # Models that only embed or rank texts do not chat.
    answers = "runner" not in shape.advised.get("vllm", {}).get("flags", {})
    assert bool(shape.tool_call_parser) is answers


@each_architecture
def test_caches_follow_from_the_shape(name: str) -> None:
    shape = architectures()[name]
    attention = shape.facts["attention"]
    if elements := shape.facts.get("kv_elements_per_token"):
        if "kv_lora_rank" in attention:
            per_layer = attention["kv_lora_rank"] + attention["qk_rope_head_dim"]
        else:
            assert shape.head_dim
            per_layer = 2 * shape.kv_heads * shape.head_dim
        assert elements == attention["kv_layers"] * per_layer
        if window := attention.get("window_elements"):
            assert window == attention["sliding_layers"] * attention["sliding_window"] * per_layer
    if attention["kind"] == "hybrid_gdn":
        keys = attention["linear_key_heads"] * attention["linear_key_dim"]
        values = attention["linear_value_heads"] * attention["linear_value_dim"]
        layers = attention["linear_layers"]
        assert attention["state_bytes"] == layers * values * attention["linear_key_dim"] * 4
        assert attention["conv_state_bytes"] == layers * (2 * keys + values) * 3 * 2


@of_each(NAMES)
def test_weights_are_plausible(name: str) -> None:
    checkpoint = found(name)
    if checkpoint.weight_gb is None:
        return
    bytes_each = checkpoint.weight_gb / checkpoint.architecture.facts["parameters_b"]
    if checkpoint.format == "bf16":
        assert isclose(bytes_each, 2, rel_tol=0.05)
    assert 0.5 < bytes_each < 2.1


@each_architecture
def test_entry_names_its_sources(name: str) -> None:
    entry = MODELS[name]
    assert entry["sources"]
    assert {source.partition("/")[0] for source in entry["sources"]} <= SOURCES
    bases = {item["basis"] for item in entry["checkpoints"]}
    assert bases <= {"computed", "observed", "stated"}


def test_entry_has_only_what_differs_from_its_base() -> None:
    older, newer = architectures()["glm-5"], architectures()["glm-5.2"]
    assert (older.max_context, newer.max_context) == (202752, 1048576)
    assert newer.facts["attention"] == {**older.facts["attention"], "index_layers": 21}
    assert architectures()["qwen3-235b-a22b"].reasoning_parser == "qwen3"
    assert architectures()["qwen3-235b-a22b-instruct-2507"].reasoning_parser is None
    assert "unverified" not in architectures()["deepseek-r1"].facts


def test_copy_of_a_gated_model_is_open() -> None:
    assert found("llama-3.3-70b-instruct").gated
    assert not found("llama-3.3-70b-instruct-nvfp4").gated
    assert not found("gpt-oss-120b").gated


def test_checkpoint_may_have_a_shorter_context_than_its_model() -> None:
    assert found("minimax-m2.7").max_context == 204800
    assert found("minimax-m2.7-nvfp4").max_context == 196608


@pytest.mark.parametrize(
    ("reference", "held"),
    [
        ("nvcr.io/nvidia/vllm:26.05-py3", Image("vllm", "0.20.1", None, False)),
        (f"nvcr.io/nvidia/vllm:26.10-py3@sha256:{'0a' * 32}", Image("vllm", "0.31.0", None, None)),
        ("vllm/vllm-openai:v0.19.0", Image("vllm", "0.19.0", None, False)),
        ("vllm/vllm-openai:v0.18.1", Image("vllm", "0.18.1", None, None)),
        ("docker.io/vllm/vllm-openai:v0.20.0-cu130", Image("vllm", "0.20.0", None, False)),
        ("registry.lan:5000/vllm/vllm-openai:v0.33.0", Image("vllm", "0.33.0", None, False)),
        ("lmsysorg/sglang:v0.5.10.post1", Image("sglang", "0.5.10.post1", None, None)),
        (
            "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc13",
            Image("tensorrt-llm", "1.3.0rc13", None, None),
        ),
    ],
)
def test_image_is_found_by_its_tag(reference: str, held: Image) -> None:
    assert catalogs.image(reference) == held


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "nvcr.io/nvidia/vllm",
        "nvcr.io/nvidia/vllm:26.99-py3",
        "nvcr.io/nvidia/vllm:26.05-py3-custom",
        f"nvcr.io/nvidia/vllm@sha256:{'0a' * 32}",
        "vllm/vllm-openai:latest",
        "vllm/vllm-openai:0.19.0",
        "localhost:5000/vllm/vllm-openai",
        "ghcr.io/spark-arena/dgx-vllm-eugr-nightly-tf5:latest",
    ],
)
def test_other_images_are_unknown(reference: str) -> None:
    assert catalogs.image(reference) is None


def test_every_image_has_a_source_and_versions_as_text() -> None:
    for row in IMAGES:
        assert row["source"], row
        assert ("{version}" in row["tag"]) == (row["version"] is None), row
        assert all(isinstance(row[key], str | None) for key in ("tag", "version", "nccl")), row
    assert len({(row["image"], row["tag"]) for row in IMAGES}) == len(IMAGES)


def test_catalogs_are_read_on_demand() -> None:
    program = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, args: event == 'open' and opened.append(str(args[0])))\n"
        "import generator.catalogs\n"
        "sys.exit(any(path.endswith('.yaml') for path in opened))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@each_architecture
def test_copy_is_found_by_the_name_of_its_model(name: str) -> None:
    """A copy is found by its model's name within its own, unless that model is itself pruned."""
    alike = catalogs.named_after(f"someone/{MODELS[name]['hf_id'].partition('/')[2]}-INT4")
    pruned = any(word in name for word in ("reap", "dspark"))
    assert (alike is None) == pruned
    assert alike is None or found(alike).architecture.name == name


# Methods whose layers are in the model's own files.
IN_THE_MODEL = {"mtp", "dspark"}


def test_each_advised_method_has_a_draft() -> None:
    known = {(draft.of, draft.method) for draft in catalogs.drafts()}
    advised = {
        (name, method)
        for name, architecture in architectures().items()
        for own in architecture.advised.values()
        for method in own.get("speculative", ())
    }
    assert not {each for each in advised - known if each[1] not in IN_THE_MODEL}


# Types whose size depends on the heads, or that no published start shows: 'fit' gives no figure.
UNSIZED = {
    "fp8_per_token_head",
    "int4_per_token_head",
    "int8_per_token_head",
    "nvfp4_4over6",
    "octave_k3v3",
    "octave_k3v3_compact",
    "octave_k3v4",
    "turboquant_3bit_nc",
    "turboquant_4bit_nc",
    "turboquant_k3v4_nc",
    "turboquant_k8v4",
    "ultraquant_4bit",
}
TYPE_OF_CACHE = re.compile(
    r"^--(?:kv.cache.dtype|cache-type-k)\s.*(?:choices|known)=(.+?)(?:\t|$)", re.M
)


def test_each_type_of_cache_has_a_size() -> None:
    lists = [path.read_text("utf-8") for path in (SCHEMAS / "engines").glob("*.tsv")]
    taken = {
        choice.partition("@")[0]
        for each in lists
        for choices in TYPE_OF_CACHE.findall(each)
        for choice in choices.split()
    }
    assert len(taken) > len(UNSIZED)
    assert taken - CACHED.keys() == UNSIZED


def test_every_file_of_schemas_says_what_it_holds() -> None:
    """Only published starts don't: the first key of each is where it is from."""
    files = [path for path in SCHEMAS.rglob("*.*") if path.suffix in (".tsv", ".yaml", ".txt")]
    described = [path for path in files if path.parent.name != "evidence"]
    bare = [path.name for path in described if not path.read_text("utf-8").startswith("# ")]
    assert bare == [], "a file of schemas/ starts with a comment"


READ = re.compile(r'\brows\("([\w-]+)"\)')
TABLES = {
    name
    for path in (ROOT / "generator").rglob("*.py")
    for name in READ.findall(path.read_text("utf-8"))
}


# What the first column of a table is called.
FIRST_COLUMNS = {
    *("digit", "engine", "flag", "id", "key", "keys", "kind", "label", "libyaml's message"),
    *("looks", "name", "of", "path", "path with that name", "program", "rule", "setting", "use"),
    "what they are for",
}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_table_names_its_columns(name: str) -> None:
    """The line of names is skipped: without it, the first row would be lost."""
    lines = (SCHEMAS / f"{name}.tsv").read_text("utf-8").splitlines()
    header, *rest = [line.split("\t") for line in lines if not line.startswith("#")]
    assert header[0] in FIRST_COLUMNS, f"schemas/{name}.tsv doesn't begin with its columns' names"
    assert header not in rest
