"""Public deployments that need files, mods or settings of their own are built as they run.

Each site of `deployments/open` names its source; the words, variables and mounts below are those
of the deployment itself; where a file lies on the nodes is each owner's own.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from generator.diagnostics import Severity
from generator.pipeline import read_site
from generator.site import Node

FOLDER = Path(__file__).parent / "deployments/open"


class Run(NamedTuple):
    """What a node of a deployment runs: words of its command, variables, mounts, and limits."""

    node: int = 0
    words: tuple[str, ...] = ()
    env: Mapping[str, str] = MappingProxyType({})
    mounts: tuple[str, ...] = ()
    memory: int | None = None
    shm: int = 16


DSPARK = '"method": "dspark", "num_speculative_tokens": 5'
RUNS = {
    "mia-dspark-pair": Run(
        words=(DSPARK, '"draft_sample_method": "probabilistic"', "--block-size=256"),
        mounts=("/srv/dspark/patches:/opt/patches", "/srv/dspark/hotfix.py:/opt/hotfix.py"),
    ),
    "jnardiello-ring-of-four": Run(
        words=(
            '"method": "dflash", "num_speculative_tokens": 7, '
            '"model": "incoai/GLM-5.3-Flash-DFlash2"',
            "--tensor-parallel-size=4",
        ),
        env={
            "LD_PRELOAD": "/opt/nccl/libnccl.so.2",
            "VLLM_NCCL_SO_PATH": "/opt/nccl/libnccl.so.2",
            "NCCL_ALGO": "Ring",
            "NCCL_SKIP_TREE_CONNECT": "1",
        },
        mounts=("/srv/nccl/libnccl.so.2:/opt/nccl/libnccl.so.2",),
    ),
    "nestu-switched-four": Run(
        node=2,
        words=("/srv/models/DeepSeek-V4.1-Flash", DSPARK),
        env={"DSV41_ENGRAM_DISK": "1"},
        mounts=("/mnt/nfs/DeepSeek-V4.1-Flash:/srv/models/DeepSeek-V4.1-Flash",),
        memory=112,
    ),
    "ntxf-sglang-ring": Run(
        node=1,
        words=(
            "--ep-size=2",
            "--tp-size=4",
            "--context-length=600000",
            "--max-running-requests=16",
            "--chunked-prefill-size=4096",
            "--speculative-algorithm=DSPARK",
        ),
        env={
            "PEER_HCA": "0=rocep1s0f1,roceP2p1s0f1;2=rocep1s0f0,roceP2p1s0f0",
            "LD_PRELOAD": "/opt/nccl-ringonly/libnccl.so.2",
            "NCCL_ALGO": "Ring",
        },
        mounts=("/srv/nccl-ringonly/libnccl.so.2:/opt/nccl-ringonly/libnccl.so.2",),
    ),
    "rhys-switch-of-eight": Run(
        node=7,
        words=(
            "/models/DeepSeek-V4.1-Flash",
            "--served-model-name=deepseek-v41-flash",
            "--tensor-parallel-size=8",
            "--nnodes=8",
            "--node-rank=7",
            "--kv-cache-dtype=fp8_ds_mla",
            "--max-num-seqs=1",
            DSPARK,
            '"draft_sample_method": "probabilistic"',
            '"rejection_sample_method": "block"',
            "--attention-backend=FLASHINFER_MLA_SPARSE_DSV41",
            "--enforce-eager",
            "--no-enable-prefix-caching",
            "--headless",
        ),
        env={
            "VLLM_PLUGINS": "",
            "NCCL_IB_HCA": "=rocep1s0f0:1,roceP2p1s0f0:1",
            "NCCL_SOCKET_IFNAME": "=enp1s0f0np0",
            "NCCL_IB_ADDR_FAMILY": "AF_INET",
        },
        mounts=("/models/DeepSeek-V4.1-Flash:/models/DeepSeek-V4.1-Flash",),
    ),
    "xcvrlv-switch-of-four": Run(
        words=(
            "--max-model-len=1048576",
            "--max-num-seqs=32",
            "--max-num-batched-tokens=8192",
            "--gpu-memory-utilization=0.8",
            "--kv-cache-memory-bytes=8589934592",
            "--master-port=29521",
        ),
        env={"NCCL_IB_HCA": "=rocep1s0f0:1"},
        memory=112,
        shm=32,
    ),
    "colonel-otto-ring-of-three": Run(
        node=1,
        words=(
            "--served-model-name=deepseek-v4-flash-0731",
            "--max-model-len=1048576",
            "--max-num-seqs=16",
            "--max-num-batched-tokens=8192",
            "--kv-cache-dtype=nvfp4_ds_mla",
            '"method": "mtp", "num_speculative_tokens": 5',
            "--moe-backend=flashinfer_b12x",
            "--tensor-parallel-size=3",
            "--master-port=25000",
        ),
        env={
            "NCCL_IB_HCA": "=rocep1s0f0:1,roceP2p1s0f0:1,rocep1s0f1:1,roceP2p1s0f1:1",
            "NCCL_NET": "IB",
            "NCCL_NET_PLUGIN": "none",
            "NCCL_IB_SUBNET_AWARE_ROUTING": "1",
            "VLLM_DSV4_TP_PAD": "1",
        },
        mounts=("/opt/dsv4-tp3-src:/opt/dsv4-tp3",),
    ),
    "alexellis-same-ports": Run(
        words=(
            "--served-model-name=glm-5.3-flash",
            "--max-model-len=262144",
            "--max-num-seqs=6",
            "--gpu-memory-utilization=0.82",
            "--block-size=2304",
            "--moe-backend=marlin",
            '--limit-mm-per-prompt={"image": 16}',
            '"method": "dflash", "num_speculative_tokens": 7',
            "--tool-call-parser=glm47",
            "--chat-template=/opt/glm53/chat_template.jinja",
            "--master-port=29520",
        ),
        env={
            "LD_PRELOAD": "/opt/patched-nccl/libnccl.so.2",
            "VLLM_NCCL_SO_PATH": "/opt/patched-nccl/libnccl.so.2",
            "NCCL_SKIP_TREE_CONNECT": "1",
            "NCCL_SWITCHLESS_RING_ONLY": "1",
            "NCCL_SOCKET_IFNAME": "=enP7s7",
            "NCCL_IB_SUBNET_AWARE_ROUTING": "1",
            "NCCL_ALGO": "Ring",
        },
        mounts=(
            "/srv/nccl-patched:/opt/patched-nccl",
            "/srv/glm53/chat_template.jinja:/opt/glm53/chat_template.jinja",
        ),
        shm=32,
    ),
}
# What is said of them that is no note, and right.
TOLD = {"xcvrlv-switch-of-four": {"SG522"}, "colonel-otto-ring-of-three": {"SG533"}}


@pytest.mark.parametrize("name", RUNS)
def test_deployment_runs_what_it_ran(name: str) -> None:
    run, node = RUNS[name], built(name)
    container = node.container
    command = " ".join(word for words in container.command for word in words)
    assert [word for word in run.words if word not in command] == []
    assert run.env.items() <= node.env.items()
    mounts = {f"{mount.path}:{mount.inside}" for mount in container.mounts}
    assert set(run.mounts) <= mounts
    assert (container.memory_gib, container.shm_size_gib) == (run.memory, run.shm)


def built(name: str) -> Node:
    """The node of a deployment that is looked at; nothing false is said of its site."""
    file = FOLDER / f"{name}.yaml"
    reading = read_site(file.name, file.read_bytes())
    told = {f.rule for f in reading.findings if f.severity is not Severity.NOTE}
    assert told == TOLD.get(name, set())
    assert reading.site
    return reading.site.nodes[RUNS[name].node]


def test_every_deployment_is_looked_at() -> None:
    assert {file.stem for file in FOLDER.glob("*.yaml")} == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_source_is_named(name: str) -> None:
    first = (FOLDER / f"{name}.yaml").read_text().partition("\n")[0]
    assert first.startswith("# Source: https://")
