"""Every byte that a site requests of a node is counted once, also beside the engine's share."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from generator.catalogs.flag_files import catalogs, versions
from generator.cli import main
from generator.fit.assessment import Fit
from generator.fit.beside import table
from generator.pipeline import read_site
from generator.resources import SCHEMAS

# Words in names of what takes an amount of memory, and of what is measured in an amount of it.
_AMOUNT = re.compile(
    r"(^|[-_.])([kmg]i?b|bytes?|memory|mem|ram|swap|space|arena|heap|workspace|[a-z]*buffer|buf)"
    r"([-_.]|$)"
    r"|(cache|pool|buffer|chunk|arena|offload[a-z]*|storage|shm|object|segment|heap|workspace)s?"
    r"[-_]?(max[-_]?)?(size|ratio|fraction|limit|capacity|space|len)|max[-_]cache|host[-_]cache",
    re.IGNORECASE,
)
ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "ray")


def settings_of(engine: str) -> Iterator[str]:
    """Each flag that takes a value, each key of one, and each variable of an engine's catalogs."""
    for version in versions(engine):
        for catalog in catalogs(engine, version):
            for flag in catalog.flags():
                name = flag.names[0].lstrip("-")
                if flag.type != "switch" and not flag.choices:
                    yield name
                    yield from (f"{name}.{key}" for key in flag.fields)
            of_flags = {flag.variable for flag in catalog.flags()}
            yield from (f"${name}" for name in catalog.variables if name not in of_flags)
    if engine == "tensorrt-llm":
        lines = (SCHEMAS / "tensorrt-llm-settings.tsv").read_text().splitlines()
        for line in lines:
            key, kind, *_ = (*line.split("\t"), "", "")
            if kind.startswith(("int", "float")):
                yield key


@pytest.mark.parametrize("engine", ENGINES)
def test_every_amount_of_memory_is_classified(engine: str) -> None:
    rows = {row.setting for row in table() if row.engine == engine}
    amounts = {name for name in settings_of(engine) if _AMOUNT.search(name)}
    assert sorted(amounts - rows) == []


def test_the_table_names_what_exists_and_where_it_is_known_from() -> None:
    names = {engine: set(settings_of(engine)) for engine in ENGINES}
    for row in table():
        assert row.source, row
        assert row.taken in ("pinned", "filled", "moved", "inside", "disk", "none"), row
        is_elsewhere = "*" in row.setting or row.setting.startswith("$LMCACHE_")
        assert is_elsewhere or row.setting in names[row.engine], row


SITE = """\
version: 1
name: lab
nodes: [{{name: spark1, visible_gib: 121.6}}]
topology: {{kind: single}}
model: {model}
engine:
  name: {engine}
  version: {version}
  image: registry.lan/engine:1
  {settings}
"""
GGUF = (
    "{source: a/b, file: /srv/m.gguf, architecture: {layers: 36, hidden_size: 2880, heads: 64, "
    "kv_heads: 8, head_dim: 64, vocab_size: 201088, max_context: 8192, weight_gb: 65}}"
)
TEXT = "{name: gpt-oss-20b, context_length: 8192}"
SEES = "{name: qwen3-vl-30b-a3b-instruct, context_length: 8192}"
CONNECTOR = "args: {{kv-transfer-config: {{kv_role: kv_both, kv_connector: {}}}}}"
SIMPLE = "SimpleCPUOffloadConnector"
# Model, engine and settings; what is pinned, and what fills while it serves, in GiB.
TAKEN = [
    (TEXT, "vllm", "args: {kv-offloading-size: 9}", 9, 0),
    (TEXT, "vllm", "args: {kv-offloading-size: 9, kv-offloading-backend: lmcache}", 0, 0),
    (TEXT, "vllm", CONNECTOR.format(SIMPLE), 8, 0),
    (
        TEXT,
        "vllm",
        CONNECTOR.format(f"{SIMPLE}, kv_connector_extra_config: {{cpu_bytes_to_use: 1073741824}}"),
        1,
        0,
    ),
    (
        TEXT,
        "vllm",
        CONNECTOR.format(
            f"{SIMPLE}, kv_connector_extra_config: {{cpu_bytes_to_use_per_rank: 3221225472}}"
        ),
        3,
        0,
    ),
    (
        TEXT,
        "vllm",
        CONNECTOR.format(
            "MultiConnector, kv_connector_extra_config: {connectors: [{kv_connector: "
            "OffloadingConnector, kv_connector_extra_config: {cpu_bytes_to_use: 2147483648}}]}"
        ),
        2,
        0,
    ),
    (TEXT, "vllm", CONNECTOR.format("LMCacheConnectorV1"), 5, 0),
    (
        TEXT,
        "vllm",
        CONNECTOR.format("LMCacheConnectorV1") + "\n  env: {LMCACHE_MAX_LOCAL_CPU_SIZE: 7}",
        7,
        0,
    ),
    (TEXT, "vllm", "args: {mm-processor-cache-gb: 6}", 0, 0),
    (SEES, "vllm", "args: {}", 0, 8),
    (SEES, "vllm", "args: {mm_processor_cache_gb: 6, api-server-count: 2}", 0, 18),
    (TEXT, "vllm", "env: {VLLM_XGRAMMAR_CACHE_MB: 1024}", 0, 1),
    (TEXT, "sglang", "args: {enable-hierarchical-cache: true, hicache-size: 10}", 9.31, 0),
    (TEXT, "sglang", "args: {hicache-size: 10}", 0, 0),
    (TEXT, "sglang", "args: {mm-preprocess-cache-size-mb: 2048}", 0, 2),
    (SEES, "sglang", "env: {SGLANG_VLM_CACHE_SIZE_MB: 3072}", 0, 3),
    (SEES, "sglang", "env: {SGLANG_MM_BUFFER_SIZE_MB: 1024}", 1, 0),
    (SEES, "sglang", "env: {SGLANG_MM_FEATURE_CACHE_MB: 2048}", 0, 2),
    (
        TEXT,
        "tensorrt-llm",
        "args: {config: {kv_cache_config: {host_cache_size: 4294967296}}}",
        4,
        0,
    ),
    (
        TEXT,
        "tensorrt-llm",
        "args: {config: {peft_cache_config: {host_cache_size: 4294967296}}}",
        4,
        0,
    ),
    (GGUF, "llama.cpp", "args: {}", 0, 8),
    (GGUF, "llama.cpp", "args: {cram: 2048}", 0, 2),
    (GGUF, "llama.cpp", "args: {cache_ram: 0}", 0, 0),
    (GGUF, "llama.cpp", "args: {cache-ram: -1}", 0, 128),
]
VERSIONS = {
    "vllm": "0.33.0",
    "sglang": "0.5.23",
    "tensorrt-llm": "1.3.0rc29",
    "llama.cpp": "0.5.0-dev",
}


def site(model: str, engine: str, settings: str) -> str:
    """A site of one node with these settings of the engine."""
    return SITE.format(model=model, engine=engine, version=VERSIONS[engine], settings=settings)


def fit_of(text: str) -> Fit:
    """How the model of a site fits."""
    declared = read_site("lab.yaml", text.encode()).declaration
    assert declared
    fit = declared.parts[0].memory
    assert fit
    assert fit.nodes
    return fit


@pytest.mark.parametrize(("model", "engine", "settings", "pinned", "filled"), TAKEN)
def test_what_an_engine_takes_beside_its_share(
    model: str, engine: str, settings: str, pinned: float, filled: float
) -> None:
    fit = fit_of(site(model, engine, settings))
    plain = fit_of(site(model, engine, "args: {}"))
    node, without = fit.nodes[0], plain.nodes[0]
    assert (node.beside_gib, node.filled_gib) == (pinned, filled)
    assert node.system_gib == pytest.approx(without.system_gib - pinned, abs=0.02)
    assert node.kv_room_gib == without.kv_room_gib
    held = node.weights_gib + node.draft_gib + node.reserve_gib + node.kv_room_gib
    total = held + node.system_gib + node.beside_gib
    assert total == pytest.approx(node.visible_gib, abs=0.05)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_weights_outside_the_share_leave_room_in_it(engine: str) -> None:
    plain, moved = (
        fit_of(site(TEXT, engine, settings)).nodes[0]
        for settings in ("args: {}", "args: {cpu-offload-gb: 6}")
    )
    assert moved.kv_room_gib == pytest.approx(plain.kv_room_gib + 6, abs=0.02)
    assert moved.system_gib == pytest.approx(plain.system_gib - 6, abs=0.02)


def test_a_cache_of_twice_the_room() -> None:
    args = "args: {{enable-hierarchical-cache: true{}}}\n  memory_utilization: 0.3"
    ratio, plain = (
        fit_of(site(TEXT, "sglang", args.format(more))).nodes[0]
        for more in (", hicache-ratio: 2", "")
    )
    assert ratio.beside_gib == pytest.approx(2 * ratio.kv_room_gib, abs=0.02)
    # This release makes the cache as large as there is free memory if it is told no size.
    assert plain.beside_gib == 0
    old = fit_of(site(TEXT, "sglang", args.format("")).replace("0.5.23", "0.5.14")).nodes[0]
    assert old.beside_gib == pytest.approx(2 * old.kv_room_gib, abs=0.02)


def test_ranks_share_the_buffer_of_a_replica() -> None:
    text = site(TEXT, "vllm", "args: {kv-offloading-size: 8}\n  parallel: {tensor: 2}")
    pair = text.replace(
        "nodes: [{name: spark1, visible_gib: 121.6}]\ntopology: {kind: single}",
        "nodes: [{name: spark1, management: {address: 10.0.0.11/24}}, "
        "{name: spark2, management: {address: 10.0.0.12/24}}]\n"
        "cabling: [{endpoints: [spark1:p0, spark2:p0]}]\ntopology: {kind: direct}",
    )
    assert [node.beside_gib for node in fit_of(pair).nodes] == [4, 4]


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ("args: {kv-offloading-size: 15, language-model-only: true}", ""),
        ("args: {kv-offloading-size: 15}", "SG539"),
        ("args: {kv-offloading-size: 17}", "SG688"),
        ("args: {kv_offloading_size: 17}", "SG688"),
        ("args: {cpu-offload-gb: 17}", "SG688"),
        ("args: {kv-offloading-size: 6, cpu-offload-gb: 11}", "SG688"),
        ("args: {mm-processor-cache-gb: 8}", ""),
        ("args: {mm-processor-cache-gb: 9}", "SG539"),
        ("args: {mm-processor-cache-gb: 5, kv-offloading-size: 8}", "SG539"),
    ],
)
def test_the_sum_decides(settings: str, rule: str) -> None:
    text = site(SEES, "vllm", settings)
    found = [finding.rule for finding in read_site("lab.yaml", text.encode()).findings]
    assert [each for each in found if each in ("SG688", "SG539", "SG520")] == [rule][: len(rule)]


def test_memory_beside_the_share_of_an_unknown_model() -> None:
    text = site("{source: a/b}", "vllm", "args: {kv-offloading-size: 40}")
    found = [finding.rule for finding in read_site("lab.yaml", text.encode()).findings]
    assert "SG688" in found


@pytest.mark.parametrize("key", ["kv_cache_gib: 60", "kv-cache-memory-bytes: 60G"])
def test_a_cache_of_a_given_size_decides_and_not_the_share(tmp_path: Path, key: str) -> None:
    """The share is too small for weights and cache, but the cache has a size of its own."""
    of_model = key.startswith("kv_cache")
    model = f"{{name: qwen3-8b, {key}}}" if of_model else "{name: qwen3-8b}"
    args = "{}" if of_model else f"{{{key}}}"
    text = site(model, "vllm", f"args: {args}\n  memory_utilization: 0.1")
    fit = fit_of(text)
    assert fit.state == "fits"
    assert fit.nodes[0].kv_room_gib == 60
    file = tmp_path / "lab.yaml"
    file.write_text(text.replace("60", "99"))
    said = CliRunner().invoke(main, ["fit", str(file)])
    assert said.exit_code == 3
    assert "does not fit" in said.output
    assert "SG520" in said.output
    assert "left on" not in said.output
