"""A persistent KV cache on disk: how each engine is configured, and how its size is bounded."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from generator.fit.table import verdict
from generator.pipeline import read_site
from generator.resources import ROOT
from generator.site import Site

SCRIPT = ROOT / "templates/payload/node/opt/sparkgen/kv-cache.sh"
OFFLOAD = "{path: /srv/kv, gib: 400}"
LMCACHE = "{path: /srv/kv, gib: 400, connector: lmcache, buffer_gib: 8}"
TWO = """\
version: 1
name: lab
nodes:
  - {name: spark1, management: {address: 10.0.0.11/24}}
  - {name: spark2, management: {address: 10.0.0.12/24}}
cabling: [{endpoints: [spark1:p0, spark2:p0]}]
topology: {kind: direct}
"""
ONE = "version: 1\nname: lab\nnodes: [{name: spark1}]\ntopology: {kind: single}\n"


def site(
    nodes: str,
    engine: str,
    version: str,
    more: str = "",
    offload: str = OFFLOAD,
    model: str = "gpt-oss-120b",
) -> tuple[Site | None, list[str]]:
    text = f"{nodes}model: {{name: {model}, context_length: 8192, kv_offload: {offload}}}\n"
    text += f"engine: {{name: {engine}, version: {version}, image: example.org/e:1{more}}}\n"
    found = read_site("lab.yaml", text.encode())
    return found.site, [finding.rule for finding in found.findings]


def words(site: Site, rank: int) -> list[str]:
    return [word for group in site.nodes[rank].container.command for word in group]


def test_vllm_has_a_folder_behind_its_buffer() -> None:
    derived, _ = site(ONE, "vllm", "0.33.0")
    assert derived
    flags = words(derived, 0)
    name, _, config = next(w for w in flags if "kv-transfer" in w).partition("=")
    assert name == "--kv-transfer-config"
    assert json.loads(config) == {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {
            "spec_name": "TieringOffloadingSpec",
            "cpu_bytes_to_use": 4 << 30,
            "secondary_tiers": [{"type": "fs", "root_dir": "/srv/kv"}],
        },
    }
    # Registered memory can only grow with this allocator.
    assert "--enable-cumem-allocator" in flags
    node = derived.nodes[0]
    assert node.env["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    assert node.env["PYTHONHASHSEED"] == "0"
    assert node.container.shm_size_gib == 20
    assert ("/srv/kv", False) in [(m.inside, m.read_only) for m in node.container.mounts]


def test_lmcache_keeps_files_that_a_later_start_finds() -> None:
    derived, _ = site(ONE, "vllm", "0.33.0", offload=LMCACHE)
    assert derived
    flags = words(derived, 0)
    config = next(w for w in flags if "kv-transfer" in w).partition("=")[2]
    assert json.loads(config) == {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}
    assert "--enable-cumem-allocator" in flags
    node = derived.nodes[0]
    assert {k: v for k, v in node.env.items() if k.startswith("LMCACHE_")} == {
        "LMCACHE_LOCAL_CPU": "True",
        "LMCACHE_MAX_LOCAL_CPU_SIZE": "8",
        "LMCACHE_REMOTE_URL": "fs://localhost:0/srv/kv",
        "LMCACHE_TRACK_USAGE": "false",
    }
    assert node.env["PYTHONHASHSEED"] == "0"
    assert ("/srv/kv", False) in [(m.inside, m.read_only) for m in node.container.mounts]


@pytest.mark.parametrize(
    ("nodes", "engine", "version", "more", "model"),
    [
        (TWO, "vllm", "0.33.0", ", parallel: {tensor: 2}", "gpt-oss-120b"),
        (ONE, "sglang", "0.5.23", "", "gpt-oss-120b"),
        (ONE, "vllm", "0.21.0", "", "gpt-oss-120b"),
        (ONE, "vllm", "0.33.0", "", "qwen3.6-27b"),
    ],
)
def test_release_without_lmcache_is_refused(
    nodes: str, engine: str, version: str, more: str, model: str
) -> None:
    assert "SG678" in site(nodes, engine, version, more, LMCACHE, model)[1]
    assert "SG678" not in site(ONE, "vllm", "0.33.0", "", LMCACHE)[1]


def test_sglang_keeps_each_ranks_part_on_its_node() -> None:
    derived, _ = site(TWO, "sglang", "0.5.23", ", parallel: {tensor: 2}")
    assert derived
    for rank in (0, 1):
        flags = words(derived, rank)
        assert {w for w in flags if "hicache" in w or "hierarchical" in w} == {
            "--enable-hierarchical-cache",
            "--hicache-storage-backend=file",
            "--hicache-host-memory-mode=buffer_only",
            "--hicache-size=4",
        }
        assert derived.nodes[rank].env["SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR"] == "/srv/kv"
        assert derived.nodes[rank].env["SGLANG_HICACHE_FILE_BACKEND_MAX_SIZE"] == "400Gi"


@pytest.mark.parametrize(
    ("nodes", "engine", "version", "more", "refused"),
    [
        (TWO, "vllm", "0.33.0", ", parallel: {tensor: 2}", True),
        (TWO, "vllm", "0.33.0", ", parallel: {pipeline: 2}", True),
        # Each node's replica is a separate engine.
        (TWO, "vllm", "0.33.0", ", parallel: {data: 2}", False),
        (TWO, "vllm", "0.33.0+slabs", ", parallel: {tensor: 2}", False),
        (ONE, "vllm", "0.22.0", "", False),
        (ONE, "vllm", "0.21.0", "", True),
        (ONE, "sglang", "0.5.18", "", True),
    ],
)
def test_engine_without_offloading_is_refused(
    nodes: str, engine: str, version: str, more: str, refused: bool
) -> None:
    assert ("SG678" in site(nodes, engine, version, more)[1]) is refused


def test_least_recently_read_blocks_are_removed(tmp_path: Path) -> None:
    """2 GiB of sparse files with a bound of 1 GiB: half of them and a tenth more are removed."""
    kept, script = tmp_path / "kv", tmp_path / "opt/sparkgen/kv-cache.sh"
    facts = tmp_path / "etc/sparkgen/node.env"
    for folder in (kept / "model_r0/abc", script.parent, facts.parent):
        folder.mkdir(parents=True)
    script.write_bytes(SCRIPT.read_bytes())
    facts.write_text(f"KV_OFFLOAD=1 {kept}\n")
    # vLLM's blocks end in .bin, LMCache's in .data.
    blocks = [kept / f"model_r0/abc/{n} \n{'.bin' if n % 2 else '.data'}" for n in range(8)]
    for age, block in enumerate(blocks):
        block.touch()
        os.truncate(block, 256 << 20)
        os.utime(block, (1_000_000 + age, 2_000_000 - age))
    config = kept / "config.json"
    config.write_text("{}")
    subprocess.run(["bash", script, "--once"], check=True)
    assert [block.exists() for block in blocks] == [False] * 5 + [True] * 3
    assert config.exists()
    # A cache within its bound is left alone.
    subprocess.run(["bash", script, "--once"], check=True)
    assert sum(block.exists() for block in blocks) == 3


def test_fit_shows_the_buffer() -> None:
    derived, _ = site(ONE, "vllm", "0.33.0", offload=LMCACHE)
    assert derived
    assert derived.memory
    said = "8.0 GiB beside the engine's share from the start: kv_offload.buffer_gib"
    assert said in verdict(derived.memory)
