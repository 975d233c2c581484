"""Clusters as people published them: captured, imported, and audited.

Addresses, arguments, variables and images are those of the files that each case names, as the
authors' own scripts produce them. What no file states is left out and must cause no finding.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from captured_nodes import Container, Machine, address
from test_audit import LEFT, RIGHT, netplan
from test_import import value

from generator.adoption import adopt
from generator.adoption.reading import Input, read
from generator.audit.findings import audit


@dataclass(frozen=True)
class Published:
    """A cluster as its files say it is, and what is to be made of it, and found.

    `command` and `env` have `{rank}` and `{own}`, the rank and the first address of a node.
    """

    source: str
    image: str
    command: str
    env: str
    fabric: Sequence[Mapping[str, Sequence[str]]]
    expected: Mapping[str, Any]
    rules: Sequence[str]
    head: str = ""
    worker: str = ""
    entrypoint: Sequence[str] = ("vllm", "serve")
    managed: Sequence[str] = ()
    container: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    mtu: int = 9000
    # The command is run in a container that only sleeps.
    sleeps: bool = False
    program: str = ""

    def machines(self) -> Iterator[Machine]:
        """The nodes."""
        for rank, halves in enumerate(self.fabric):
            first = next((addresses[0] for addresses in halves.values() if addresses), "")
            first = first or self.managed[rank]
            values = {"rank": str(rank), "own": first.partition("/")[0]}
            words = filled(f"{self.command} {self.worker if rank else self.head}", values)
            env = filled(self.env, values)
            links = [address(name, *addresses, mtu=self.mtu) for name, addresses in halves.items()]
            if self.managed:
                links.append(address("enP7s7", self.managed[rank]))
            container = Container(
                "engine",
                self.image,
                ["infinity"] if self.sleeps else words,
                ["sleep"] if self.sleeps else self.entrypoint,
                env,
                **{"devices": ["/dev/infiniband"], **self.container},
            )
            files = {"etc/netplan/40-cx7.yaml": netplan(dict(halves), self.mtu)} | self.files
            running = {41: ([*self.entrypoint, *words], env)}
            yield Machine(
                f"spark{rank + 1}",
                files if any(halves.values()) else self.files,
                {"ip -j address": json.dumps([*links, address("lo")])},
                [container],
                running,
                [self.program] if self.program else [],
            )


def filled(text: str, values: Mapping[str, str]) -> list[str]:
    """The words of a text; one in braces of JSON has no spaces."""
    for name, replacement in values.items():
        text = text.replace(f"{{{name}}}", replacement)
    return text.split()


def pair(names: Sequence[str], subnets: str, length: int = 24) -> list[dict[str, list[str]]]:
    """Two nodes, whose addresses end in .1 and .2 in the subnet of each half."""
    plans = subnets.split()
    return [
        {name: [f"{plan}.{n}/{length}"] for name, plan in zip(names, plans, strict=True)}
        for n in (1, 2)
    ]


def ring(names: Sequence[str], plan: str, count: int) -> list[dict[str, list[str]]]:
    """A ring: the second port of a node and the first of the one before it share a subnet."""
    nodes = []
    for n in range(count):
        interfaces = {}
        for port, link in ((0, n), (1, (n - 1) % count)):
            interfaces[names[port]] = [f"{plan}.{link + 1}.{n + 1}/24"]
        nodes.append(interfaces)
    return nodes


NO_KEY = "SG701"
BARE = "SG841"
ENDLESS = "SG882"
CASES: dict[str, Published] = {
    "bytebunker": Published(
        "github.com/bytebunkerlabs/dgx-spark-serve: .env.example, dsv4.env, launch-cluster.sh",
        "dgx-spark-serve:dev",
        "deepseek-ai/DeepSeek-V4-Flash-0731 --host 0.0.0.0 --port 8888 --served-model-name dsv4"
        " --trust-remote-code --enable-auto-tool-choice --tool-call-parser deepseek_v4"
        " --reasoning-parser deepseek_v4 --tensor-parallel-size 2 --gpu-memory-utilization 0.8"
        " --max-model-len 1048576 --max-num-seqs 4 --kv-cache-dtype fp8 --enable-prefix-caching"
        " --enable-chunked-prefill --async-scheduling --nnodes 2 --node-rank {rank}"
        ' --compilation-config {"cudagraph_mode":"PIECEWISE","custom_ops":["all"]}'
        " --master-addr 192.168.100.1 --master-port 29501",
        "VLLM_HOST_IP={own} NCCL_SOCKET_IFNAME=enp1s0f0np0 GLOO_SOCKET_IFNAME=enp1s0f0np0"
        " TP_SOCKET_IFNAME=enp1s0f0np0 UCX_NET_DEVICES=enp1s0f0np0 NCCL_IB_DISABLE=0"
        " NCCL_IB_HCA=rocep1s0f0,roceP2p1s0f0 NCCL_IGNORE_CPU_AFFINITY=1 HF_HUB_OFFLINE=1"
        " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True VLLM_NO_USAGE_STATS=1",
        pair(LEFT, "192.168.100 192.168.101"),
        {"topology.kind": "direct", "model.served_name": "dsv4", "engine.port": 8888},
        # Its log of August 2026 has 1,294,708 tokens: one sequence, and 1.3 GiB beside it.
        ["SG609", "SG713", "SG522", NO_KEY, "SG521", "SG713"],
        worker="--headless",
        container={"privileged": True},
        sleeps=True,
        program="vllm-0.26.0.dist-info",
    ),
    "oshlabs": Published(
        "github.com/oshlabs/dgx-spark-cluster: SYSTEM.md, TEST-MINIMAX.md",
        "nvcr.io/nvidia/vllm:26.03-py3",
        "lukealonso/MiniMax-M2.7-NVFP4 --trust-remote-code --tensor-parallel-size 2"
        " --distributed-executor-backend ray --dtype auto --quantization modelopt_fp4"
        " --kv-cache-dtype fp8 --attention-backend flashinfer --disable-custom-all-reduce"
        " --max-num-batched-tokens 8192 --gpu-memory-utilization 0.80 --max-model-len 32768"
        " --max-num-seqs 32 --enable-auto-tool-choice --tool-call-parser minimax_m2"
        " --reasoning-parser minimax_m2_append_think --served-model-name MiniMax-M2.7"
        " --host 0.0.0.0 --port 8000",
        "VLLM_NVFP4_GEMM_BACKEND=flashinfer-cutlass VLLM_USE_FLASHINFER_MOE_FP4=1"
        " VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 VLLM_FLASHINFER_MOE_BACKEND=throughput",
        [
            {LEFT[0]: ["172.31.5.1/29"], LEFT[1]: ["172.31.5.9/29"]},
            {LEFT[0]: ["172.31.5.2/29"], LEFT[1]: ["172.31.5.10/29"]},
        ],
        {"topology.kind": "direct", "engine.launcher": "ray", "engine.version": "0.17.1"},
        ["SG527", NO_KEY],
        sleeps=True,
    ),
    "mia": Published(
        "github.com/MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark: .env.dspark.example",
        "ghcr.io/anemll/dspark-vllm-gx10:0.1.1",
        "deepseek-ai/DeepSeek-V4-Flash-0731 --revision 9e165c30e2704aec5d9d593cce3eebd58bbef1cb"
        " --served-model-name deepseek-v4-flash-0731 --host 0.0.0.0 --port 8888 --trust-remote-code"
        " --tensor-parallel-size 2 --pipeline-parallel-size 1 --kv-cache-dtype nvfp4_ds_mla"
        " --block-size 256 --max-model-len 1048576 --max-num-seqs 6 --max-num-batched-tokens 8192"
        " --long-prefill-token-threshold 1024 --max-cudagraph-capture-size 36"
        " --gpu-memory-utilization 0.835 --enable-prefix-caching --async-scheduling"
        ' --speculative-config {"method":"dspark","num_speculative_tokens":5}'
        " --tokenizer-mode deepseek_v4 --nnodes 2 --node-rank {rank} --master-addr 10.0.8.1"
        " --master-port 25000",
        "NCCL_NET=IB NCCL_IB_DISABLE=0 NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1 NCCL_CROSS_NIC=1"
        " NCCL_SOCKET_IFNAME=enp1s0f1np1 TP_SOCKET_IFNAME=enp1s0f1np1 NCCL_CUMEM_ENABLE=0"
        " GLOO_SOCKET_IFNAME=enp1s0f1np1 NCCL_IB_GID_INDEX= NCCL_IB_ADDR_FAMILY=AF_INET"
        " NCCL_IB_ROCE_VERSION_NUM=2 NCCL_IGNORE_CPU_AFFINITY=1 NCCL_DEBUG=WARN NCCL_NVLS_ENABLE=0"
        " NCCL_IB_MERGE_NICS= NCCL_NET_GDR_LEVEL= VLLM_HOST_IP={own} VLLM_USE_B12X_MOE=1",
        pair(RIGHT, "10.0.8 10.0.9"),
        {"model.speculative.method": "dspark", "model.context_length": 1048576},
        [NO_KEY, ENDLESS, ENDLESS],
        worker="--headless",
        container={"restart": "unless-stopped", "ipc": "host"},
    ),
    "guardkit": Published(
        "github.com/guardkit/dgx-spark: launch record of 2026-08-07, RUNBOOK-two-spark-bring-up.md",
        "vllm-node",
        "deepseek-ai/DeepSeek-V4-Flash --port 8080 --host 0.0.0.0 --tensor-parallel-size 2"
        " --gpu-memory-utilization 0.75 --max-model-len 98304 --nnodes 2 --node-rank {rank}"
        " --master-addr 169.254.207.1",
        "VLLM_HOST_IP={own} GLOO_SOCKET_IFNAME=enp1s0f1np1 TP_SOCKET_IFNAME=enp1s0f1np1"
        " NCCL_IGNORE_CPU_AFFINITY=1 NCCL_SOCKET_IFNAME=enp1s0f1np1 NCCL_IB_DISABLE=0"
        " NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1 NCCL_VERSION=2.28.3-1 VLLM_BASE_DIR=/workspace/vllm",
        [{RIGHT[0]: [f"169.254.207.{n}/16"], RIGHT[1]: []} for n in (1, 2)],
        {"engine.version": "0.26.1rc1.dev439+g7b9f2dad8", "engine.port": 8080},
        ["SG841", "SG609", NO_KEY, "SG841"],
        worker="--headless",
        sleeps=True,
        program="vllm-0.26.1rc1.dev439+g7b9f2dad8.dist-info",
    ),
    "gpustack": Published(
        "github.com/gpustack/gpustack, issue 5779: docker inspect of both ranks",
        "vllm/vllm-openai:deepseek",
        "/data/models/DeepSeek-V4-Flash-DSpark --host {own} --port 40018 --nnodes 2"
        " --served-model-name deepseek-v4-flash-dspark --enable-prompt-tokens-details"
        " --disable-access-log-for-endpoints /metrics --node-rank {rank} --master-addr 172.16.1.148"
        " --master-port 40060 --trust-remote-code --distributed-executor-backend mp"
        " --kv-cache-dtype nvfp4_ds_mla --block-size 256 --max-model-len 1048576 --max-num-seqs 6"
        " --max-num-batched-tokens 8192 --gpu-memory-utilization 0.80 --enable-prefix-caching"
        ' --speculative-config {"method":"dspark","num_speculative_tokens":5}'
        " --tensor-parallel-size 2 --tokenizer-mode deepseek_v4 --tool-call-parser deepseek_v4"
        " --enable-auto-tool-choice --reasoning-parser deepseek_v4",
        "",
        [{}, {}],
        {"model.source": "/data/models/DeepSeek-V4-Flash-DSpark", "engine.port": 40018},
        [],
        worker="--headless",
        managed=("172.16.1.148/24", "172.16.1.22/24"),
    ),
    "rhys": Published(
        "github.com/rhys101/DeepSeek-V4.1-Flash-vLLM-DGX-Spark-8: run-node.sh; two of eight",
        "ghcr.io/rhys101/deepseek-v41:1",
        "/models/DeepSeek-V4.1-Flash --served-model-name deepseek-v41-flash"
        " --distributed-executor-backend mp --tensor-parallel-size 8 --pipeline-parallel-size 1"
        " --data-parallel-size 1 --nnodes 8 --node-rank {rank} --master-addr 192.168.200.1"
        " --master-port 29501 --dtype bfloat16 --tool-call-parser deepseek_v41"
        " --enable-auto-tool-choice --reasoning-parser deepseek_v41"
        " --attention-backend FLASHINFER_MLA_SPARSE_DSV41 --kv-cache-dtype fp8_ds_mla"
        " --block-size 128 --max-model-len 8192 --max-num-batched-tokens 1024 --max-num-seqs 1"
        " --gpu-memory-utilization 0.75 --enable-chunked-prefill --disable-custom-all-reduce"
        " --load-format safetensors --safetensors-load-strategy lazy --language-model-only"
        " --enforce-eager --no-enable-prefix-caching",
        "VLLM_HOST_IP={own} NCCL_SOCKET_IFNAME==enp1s0f0np0 GLOO_SOCKET_IFNAME=enp1s0f0np0"
        " NCCL_IB_HCA==rocep1s0f0,roceP2p1s0f0 NCCL_IB_DISABLE=0 NCCL_DEBUG=INFO"
        " NCCL_DEBUG_SUBSYS=INIT,NET CUDA_VISIBLE_DEVICES=0 VLLM_ENGINE_READY_TIMEOUT_S=3600"
        " VLLM_PLUGINS= NCCL_IB_ADDR_FAMILY=AF_INET HF_HUB_OFFLINE=1 HF_HOME=/cache/huggingface",
        pair(LEFT, "192.168.200 192.168.201"),
        {
            "topology.kind": "switch",
            "engine.parallel.tensor": 8,
            "engine.bind": "local",
            "model.source": "/srv/store/DeepSeek-V4.1-Flash",
        },
        [],
        head="--host 127.0.0.1 --port 8000",
        worker="--headless",
        entrypoint=("vllm", "serve"),
        container={"mounts": (("/srv/store", "/models"), ("/srv/run/cache", "/cache"))},
    ),
    "nestu": Published(
        "github.com/NestuFNG/DeepSeek-V4.1-Flash-DGX-Spark-Ring: launch/dsv41-tp4.sh; two of four",
        "vllm-dsv41:overlay1",
        "/models/DeepSeek-V4.1-Flash --served-model-name deepseek-v4.1-flash --host 0.0.0.0"
        " --port 8000 --tensor-parallel-size 4 --gpu-memory-utilization 0.80 --max-model-len 131072"
        ' --max-num-seqs 8 --max-num-batched-tokens 8192 --engram-config {"cpu_offload":false}'
        ' --default-chat-template-kwargs {"thinking":false} --language-model-only --enforce-eager'
        " --distributed-executor-backend mp --nnodes 4 --node-rank {rank}"
        " --master-addr 192.168.192.2 --master-port 29541",
        "VLLM_HOST_IP={own} HF_HOME=/cache/huggingface HF_HUB_OFFLINE=1 NCCL_NET=IB"
        " NCCL_IB_DISABLE=0 NCCL_IB_HCA=rocep1s0f0 NCCL_IB_GID_INDEX=3 NCCL_IB_ROCE_VERSION_NUM=2"
        " NCCL_IB_ADDR_FAMILY=AF_INET NCCL_IB_ADDR_RANGE=192.168.192.0/24"
        " NCCL_SOCKET_IFNAME=enp1s0f0np0 GLOO_SOCKET_IFNAME=enp1s0f0np0 NCCL_NVLS_ENABLE=0"
        " NCCL_CROSS_NIC=0 NCCL_IB_MERGE_NICS=0 NCCL_CUMEM_ENABLE=0 NCCL_DEBUG=WARN",
        [{LEFT[0]: ["192.168.192.2/24"]}, {LEFT[0]: ["192.168.192.4/24"]}],
        {"topology.kind": "switch", "model.source": "/var/tmp/models/DeepSeek-V4.1-Flash"},
        ["SG841", NO_KEY, "SG841"],
        worker="--headless",
        container={
            "ipc": "host",
            "mounts": (("/var/tmp/models/DeepSeek-V4.1-Flash", "/models/DeepSeek-V4.1-Flash"),),
        },
    ),
    "jnardiello": Published(
        "github.com/jnardiello/GLM-5.3-Flash-FP8-4-DGX-Spark-Switchless: cluster.env.example",
        "ghcr.io/fujitsupolycom/sparkring-glm53-sparkcache:r10",
        "/model --served-model-name glm-5.3-flash --host 0.0.0.0 --port 8000 --nnodes 4"
        " --tensor-parallel-size 4 --max-model-len 262144 --max-num-seqs 6"
        " --max-num-batched-tokens 8192 --block-size 2304 --kv-cache-dtype fp8_e4m3"
        " --gpu-memory-utilization 0.85 --node-rank {rank} --master-addr 192.0.2.11"
        " --master-port 29520",
        "NCCL_SOCKET_IFNAME=enP7s7 GLOO_SOCKET_IFNAME=enP7s7 NCCL_IB_HCA=rocep1s0f0,rocep1s0f1"
        " NCCL_IB_ADDR_FAMILY=AF_INET NCCL_IB_ROCE_VERSION_NUM=2 NCCL_IB_GID_INDEX=-1"
        " NCCL_ALGO=Ring NCCL_CUMEM_ENABLE=1 NCCL_RUNTIME_CONNECT=1",
        ring(("enp1s0f0np0", "enp1s0f1np1"), "10.10", 4),
        {
            "topology.kind": "ring",
            "cabling.0.endpoints": ["spark1:p0", "spark2:p1"],
            "cabling.3.endpoints": ["spark4:p0", "spark1:p1"],
            "nodes.0.management.address": "192.0.2.11/24",
        },
        [BARE, BARE, NO_KEY, *[BARE] * 6],
        worker="--headless",
        managed=[f"192.0.2.{n}/24" for n in (11, 12, 13, 14)],
    ),
    "xcvrlv": Published(
        "github.com/xcvrlv/dgx-spark-deployment: sparks.env, recipes/glm-5.3-flash-nvfp4.env",
        "spark-vllm-glm53:sm121-v1",
        "/models/glm-5.3-flash-nvfp4 --served-model-name glm-5.3-flash --port 8000"
        " --tensor-parallel-size 4 --max-model-len 1048576 --max-num-seqs 32"
        " --max-num-batched-tokens 8192 --gpu-memory-utilization 0.80 --block-size 256"
        " --quantization modelopt_mixed --linear-backend flashinfer_b12x"
        " --moe-backend flashinfer_cutlass --load-format instanttensor --enable-chunked-prefill"
        " --enable-prefix-caching --async-scheduling --disable-custom-all-reduce"
        " --kv-cache-dtype fp8 --kv-cache-memory-bytes 8589934592 --enforce-eager --nnodes 4"
        " --node-rank {rank} --master-addr 192.168.0.1 --master-port 29521",
        "NCCL_IB_GID_INDEX=3 NCCL_IB_ADDR_RANGE=192.168.0.0/24 NCCL_DEBUG=WARN"
        " NCCL_SOCKET_IFNAME=enp1s0f0np0 NCCL_IB_HCA=rocep1s0f0 VLLM_HOST_IP={own}",
        [{LEFT[0]: [f"192.168.0.{n}/24"], RIGHT[0]: [f"192.168.1.{n}/24"]} for n in (1, 2, 3, 4)],
        {
            "topology.kind": "switch",
            "nodes.3.management.address": "10.3.10.4/24",
            "model.source": "/var/tmp/glm-5.3-flash-nvfp4",
        },
        [BARE, BARE, NO_KEY, *[BARE] * 6],
        worker="--headless",
        managed=[f"10.3.10.{n}/24" for n in (1, 2, 3, 4)],
        container={"mounts": (("/var/tmp/glm-5.3-flash-nvfp4", "/models/glm-5.3-flash-nvfp4"),)},
    ),
    "ntxf": Published(
        "github.com/ntxf31415/luz-0.1.7-dsv41f-4x-dgx-spark-switchless-ring: .env.tp4.example",
        "lmsysorg/sglang:v0.5.23",
        "--model-path deepseek-ai/DeepSeek-V4.1-Flash --tp-size 4 --ep-size 2 --nnodes 4"
        " --node-rank {rank} --dist-init-addr 10.0.0.11:25000 --context-length 600000"
        " --max-running-requests 16 --chunked-prefill-size 4096 --watchdog-timeout 1800"
        " --host 127.0.0.1 --port 8899 --mem-fraction-static 0.8",
        "NCCL_BUFFSIZE=8388608 NCCL_MIN_NCHANNELS=4 NCCL_IB_TIMEOUT=1000"
        " LD_PRELOAD=/opt/nccl-ringonly/libnccl.so.2 NCCL_ALGO=Ring NCCL_CUMEM_ENABLE=1"
        " NCCL_RUNTIME_CONNECT=1 NCCL_SOCKET_IFNAME=enP7s7",
        [
            {
                LEFT[0]: [f"10.20.{2 * n}.{n + 1}/24"],
                LEFT[1]: [f"10.20.{2 * n + 1}.{n + 1}/24"],
                RIGHT[0]: [f"10.20.{2 * ((n - 1) % 4)}.{n + 1}/24"],
                RIGHT[1]: [f"10.20.{2 * ((n - 1) % 4) + 1}.{n + 1}/24"],
            }
            for n in range(4)
        ],
        {
            "topology.kind": "ring",
            "engine.name": "sglang",
            "engine.bind": "local",
            "engine.ports.dist_init": 25000,
            "engine.files.0.path": "/srv/nccl-ringonly/libnccl.so.2",
        },
        ["SG413"],
        entrypoint=("python3", "-m", "sglang.launch_server"),
        managed=[f"10.0.0.{n}/24" for n in (11, 12, 13, 14)],
        container={
            "mounts": (("/srv/nccl-ringonly/libnccl.so.2", "/opt/nccl-ringonly/libnccl.so.2"),)
        },
    ),
    "colonel-otto": Published(
        "github.com/colonel-otto/3x-dgx-spark-mesh-deepseek-v4-0731-flash: config/tp3.env.example",
        "ghcr.io/anemll/dspark-vllm-gx10:0.1.1",
        "/srv/dsv4/hf-DeepSeek-V4-Flash-0731 --served-model-name deepseek-v4-flash-0731"
        " --tensor-parallel-size 3 --max-model-len 1048576 --max-num-seqs 16 --port 8100"
        " --gpu-memory-utilization 0.80 --kv-cache-dtype nvfp4_ds_mla --nnodes 3"
        " --max-num-batched-tokens 8192 --moe-backend flashinfer_b12x --node-rank {rank}"
        " --master-addr 192.168.8.10 --master-port 25000 --host 192.168.8.10",
        "NCCL_DEBUG=INFO NCCL_NET_PLUGIN=none NCCL_IGNORE_CPU_AFFINITY=1 VLLM_DSV4_TP_PAD=1"
        " NCCL_SOCKET_IFNAME=enP7s7 NCCL_TIMEOUT=1800",
        [
            {
                LEFT[0]: [f"10.20.{2 * n}.{n + 1}/24"],
                LEFT[1]: [f"10.20.{2 * n + 1}.{n + 1}/24"],
                RIGHT[0]: [f"10.20.{2 * ((n - 1) % 3)}.{n + 1}/24"],
                RIGHT[1]: [f"10.20.{2 * ((n - 1) % 3) + 1}.{n + 1}/24"],
            }
            for n in range(3)
        ],
        {"topology.kind": "ring", "engine.parallel.tensor": 3, "engine.ports.master": 25000},
        [],
        worker="--headless",
        managed=[f"192.168.8.{n}/24" for n in (10, 11, 12)],
    ),
    "nvidia-two": Published(
        "github.com/NVIDIA/dgx-spark-playbooks: connect-two-sparks, assets/cx7-netplan.yaml; vllm",
        "nvcr.io/nvidia/vllm:26.05-py3",
        "openai/gpt-oss-120b --tensor-parallel-size 2 --max-model-len 2048"
        " --gpu-memory-utilization 0.8 --distributed-executor-backend ray --host 10.0.7.1",
        "NCCL_SOCKET_IFNAME=enp1s0f1np1 GLOO_SOCKET_IFNAME=enp1s0f1np1 UCX_NET_DEVICES=enp1s0f1np1"
        " VLLM_HOST_IP={own} RAY_memory_monitor_refresh_ms=0 HF_TOKEN=hf_of_the_reader_of_it_0000",
        pair(RIGHT, "192.168.100 192.168.101"),
        {"topology.kind": "direct", "engine.launcher": "ray", "engine.secrets": ["HF_TOKEN"]},
        ["SG607"],
        managed=("10.0.7.1/24", "10.0.7.2/24"),
        sleeps=True,
    ),
    "nvidia-three": Published(
        "github.com/NVIDIA/dgx-spark-playbooks: connect-three-sparks, cx7-netplan-example.yaml",
        "nvcr.io/nvidia/vllm:26.07-py3",
        "nvidia/MiniMax-M2.7-NVFP4 --pipeline-parallel-size 3 --max-model-len 65536 --nnodes 3"
        " --node-rank {rank} --gpu-memory-utilization 0.8 --master-addr 10.0.7.1 --host 10.0.7.1",
        "NCCL_SOCKET_IFNAME=enP7s7",
        # Both halves of a port in one subnet, as the file has it.
        [
            {
                LEFT[0]: ["192.168.0.1/24"],
                LEFT[1]: ["192.168.0.2/24"],
                RIGHT[0]: ["192.168.1.1/24"],
                RIGHT[1]: ["192.168.1.2/24"],
            }
        ],
        {"topology.kind": "ring"},
        ["SG301", "SG301"],
        managed=("10.0.7.1/24",),
        mtu=1500,
    ),
    "hasso": Published(
        "github.com/hasso5703/dgx-spark-qwen38: qwen38-sglang.service.template",
        "lmsysorg/sglang:v0.5.20",
        "--trust-remote-code --model-path RadixArk/Qwen3.8-27B-NVFP4 --tp-size 1"
        " --served-model-name qwen3.8-27b --mem-fraction-static 0.50 --attention-backend flashinfer"
        " --chunked-prefill-size 8192 --speculative-algorithm DFLASH"
        " --speculative-draft-model-path z-lab/Qwen3.8-27B-DFlash2 --speculative-num-draft-tokens 8"
        " --mamba-radix-cache-strategy extra_buffer --max-running-requests 8"
        " --reasoning-parser qwen3 --tool-call-parser qwen3_coder --api-key of-a-file-of-the-host"
        " --host 0.0.0.0 --port 30000",
        "TORCHINDUCTOR_CACHE_DIR=/cache/inductor",
        [{}],
        {
            "topology.kind": "single",
            "engine.memory_utilization": 0.5,
            "engine.secrets": ["SGLANG_API_KEY"],
            "model.speculative.source": "z-lab/Qwen3.8-27B-DFlash2",
        },
        ["SG845"],
        entrypoint=("python3", "-m", "sglang.launch_server"),
        managed=("192.168.1.20/24",),
    ),
    "registry": Published(
        "github.com/spark-arena/recipe-registry: minimax-m2.7-nvfp4-vllm.yaml, started",
        "ghcr.io/spark-arena/dgx-vllm-eugr-nightly:latest",
        "nvidia/MiniMax-M2.7-NVFP4 --trust-remote-code --gpu-memory-utilization 0.85 -tp 2"
        " --max-model-len 196608 --enable-auto-tool-choice --tool-call-parser minimax_m2"
        " --reasoning-parser minimax_m2_append_think --host 0.0.0.0 --port 8000 --nnodes 2"
        " --node-rank {rank} --master-addr 192.168.177.11",
        "VLLM_MARLIN_USE_ATOMIC_ADD=1 NCCL_IB_HCA=rocep1s0f0,roceP2p1s0f0 NCCL_NET=IB"
        " NCCL_SOCKET_IFNAME=enp1s0f0np0 NCCL_IGNORE_CPU_AFFINITY=1",
        [{LEFT[0]: [f"192.168.177.{n}/24"], LEFT[1]: [f"192.168.178.{n}/24"]} for n in (11, 12)],
        {"topology.kind": "direct", "model.context_length": 196608, "engine.bind": "all"},
        ["SG609", NO_KEY, ENDLESS, ENDLESS],
        worker="--headless",
        container={"restart": "unless-stopped", "privileged": False},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_published_cluster(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    archives = [machine.capture(tmp_path) for machine in case.machines()]
    found = read([Input("", archive.name, archive.read_bytes()) for archive in archives])
    adopted = adopt(found, name, f"{name}.yaml")
    data = yaml.safe_load(adopted.text)
    assert {path: value(data, path) for path in case.expected} == case.expected
    remarks = audit(adopted)
    report = "\n".join(f"{r.rule} {r.place.file}: {r.message}" for r in remarks)
    assert [remark.rule for remark in remarks] == list(case.rules), report
    assert all(remark.place.span and remark.place.file.startswith("spark") for remark in remarks)


def test_captures_are_fifteen() -> None:
    assert len(CASES) >= 15
