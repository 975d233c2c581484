"""Output of programs on real nodes: captured, imported, audited, and compared with the bundle.

The texts in `transcripts/` are as published; their README names the sources. A stand-in prints
them; for nodes of which only a table of addresses is known, `ip -j address` prints the same.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from captured_nodes import Container, Machine, address

from generator.adoption import adopt
from generator.adoption.reading import Input, read
from generator.audit.findings import audit
from generator.capture.archive import read as read_archive
from generator.drift import drift
from generator.reports.text import text as report

FOLDER = Path(__file__).parent / "transcripts"


def text(name: str) -> str:
    return (FOLDER / name).read_text()


def value(data: Any, path: str) -> Any:
    """The value at a path of a site file, if there is one."""
    for part in path.split("."):
        data = data[int(part)] if part.isdigit() else data.get(part)
        if data is None:
            return None
    return data


def from_table(name: str, mtu: int = 1500, more: dict[str, str] | None = None) -> str:
    """`ip -br address`, or `ip -br link`, as `ip -j address` prints the same."""
    links = []
    for line in text(name).splitlines():
        interface, state, *rest = line.split()
        addresses = [part for part in rest if re.fullmatch(r"[\d.]+/\d+", part)]
        addresses += [more[interface]] if more and interface in more else []
        links.append(address(interface, *addresses, up=state == "UP", mtu=mtu))
    return json.dumps(links)


def lines(name: str) -> list[str]:
    return text(name).splitlines()


def unit() -> str:
    """A unit made from the published template."""
    filled = text("sglang.service")
    for name, value in {
        "HOME": "/home/spark",
        "HF_CACHE": "/home/spark/.cache/huggingface",
        "IMAGE": "sglang-own:1",
        "PORT": "30000",
        "USER": "spark",
        "GROUP": "spark",
        "DRAFT2_REV": "main",
    }.items():
        filled = filled.replace(f"__{name}__", value)
    return filled


@dataclass(frozen=True)
class Case:
    """A node, the site made from it, and the findings about its files and against its bundle.

    `drifted` is None if the site needs corrections before it can be built.
    """

    node: Machine
    expected: dict[str, Any]
    audited: list[str]
    drifted: list[str] | None


# The variables of a container that its owner sets; all others come from the image.
SET = r"(GLOO|HF|NCCL)_"
# A unit's API key, which its shell reads from a file.
KEY_FILE = '"$(cat /home/spark/.config/qwen38/api-key)"'
NETPLAN = "etc/netplan/40-cx7.yaml"
CASES = {
    "a cable, and nothing set up": Case(
        Machine("spark1", {}, {"ip -j address": from_table("unconfigured.ip-br-address.txt")}),
        {
            "topology.kind": "direct",
            "cabling.0.endpoints": ["spark1:p1", "spark2:p1"],
            "topology.halves": "first",
        },
        ["SG841"],
        [],
    ),
    "no cable": Case(
        Machine("spark1", {}, {"ip -j address": from_table("without-cable.ip-br-address.txt")}),
        {"topology.kind": "single", "nodes.0.management.address": "192.168.1.20/24"},
        [],
        [],
    ),
    "a node of a pair": Case(
        Machine(
            "spark1",
            {
                NETPLAN: text("pair.40-cx7.yaml"),
                "etc/dgx-release": text("asus.dgx-release.txt"),
                "proc/meminfo": text("asus.meminfo.txt"),
            },
            {"ibdev2netdev": text("pair.ibdev2netdev.txt")},
        ),
        {
            "topology.kind": "direct",
            "defaults.os": "7.6.0",
            "nodes.0.visible_gib": 121.6,
            "cabling.0.endpoints": ["spark1:p0", "spark2:p0"],
            "cabling.0.addresses.1.0": "192.168.200.18/24",
        },
        ["SG229"],
        [],
    ),
    "a name that no other node has": Case(
        Machine(
            "spark1",
            {NETPLAN: text("pair.40-cx7.yaml"), "etc/dgx-release": text("hp.dgx-release.txt")},
            {"ibdev2netdev": text("head.ibdev2netdev.txt")},
        ),
        {
            "topology.kind": "direct",
            "defaults.os": "7.5.0",
            "cabling.0.endpoints": ["spark1:p0", "spark2:p0"],
        },
        [],
        [],
    ),
    "both halves in one subnet": Case(
        Machine(
            "spark1",
            {},
            {
                "rdma link": text("one-subnet.rdma-link.txt"),
                "ip -j address": json.dumps(
                    [
                        address("enP7s7", "10.0.0.11/24"),
                        address("enp1s0f0np0", "192.168.100.10/24", up=True),
                        address("enP2p1s0f0np0", "192.168.100.14/24", up=True),
                    ]
                ),
            },
        ),
        {
            "cabling.0.addresses.0.0": "192.168.100.10/24",
            "cabling.0.addresses.1.0": "192.168.100.14/24",
        },
        ["SG301"],
        None,
    ),
    "two owners of the same ports": Case(
        Machine(
            "spark1",
            {
                NETPLAN: text("two-owners.40-cx7.yaml"),
                "etc/netplan/99-nvidia-sync-cluster.yaml": text(
                    "two-owners.99-nvidia-sync-cluster.yaml"
                ),
            },
            {
                "ip -j address": text("two-owners.ip-j-address.json"),
                "ip -j route": text("two-owners.ip-j-route.json"),
            },
        ),
        {
            "nodes.0.management.address": "192.168.1.182/24",
            "cabling.0.addresses.0.0": "192.168.100.10/24",
            "topology.mtu": None,
        },
        ["SG847", "SG847"],
        ["SG894"],
    ),
    "a ring with the way out over Wi-Fi": Case(
        Machine(
            "spark1",
            {},
            {
                "ip -j address": from_table(
                    "triangle.ip-br-link.txt", 9000, {"wlP9s9": "192.168.1.30/24"}
                ),
                "ip -j route": '[{"dst":"default","dev":"wlP9s9","metric":600}]',
            },
        ),
        {"nodes.0.management.interface": "wlP9s9", "topology.kind": "single"},
        [],
        [],
    ),
    "a container that sleeps": Case(
        Machine(
            "spark1",
            {},
            {"ip -j address": json.dumps([address("enP7s7", "10.0.0.11/24")])},
            [
                Container(
                    "vllm_node",
                    "vllm-node",
                    ["infinity"],
                    ["sleep"],
                    lines("sleeping.env"),
                    devices=["/dev/infiniband"],
                )
            ],
        ),
        {"engine.env": {"NCCL_IGNORE_CPU_AFFINITY": "1"}},
        ["SG609"],
        [],
    ),
    "rank 1 of an engine whose head is elsewhere": Case(
        Machine(
            "spark2",
            {},
            {"ip -j address": json.dumps([address("enP7s7", "172.16.1.22/24")])},
            [Container("rank1", "vllm-own:1", lines("rank1.arguments.txt")[1:], ["vllm"])],
        ),
        {
            "nodes.0.name": "spark1",
            "nodes.0.management.address": "172.16.1.148/24",
            "nodes.1.name": "spark2",
            "model.served_name": "deepseek-v4-flash-dspark",
            "model.speculative": {"method": "dspark", "tokens": 5},
            "engine.ports": {"master": 40060},
            "engine.parallel": {"tensor": 2},
        },
        [],
        ["SG861"],
    ),
    "variables of a container of NGC": Case(
        Machine(
            "spark1",
            {},
            {"ip -j address": json.dumps([address("enP7s7", "10.0.0.11/24")])},
            [
                Container(
                    "vllm",
                    "nvcr.io/nvidia/vllm:25.11-py3",
                    ["serve", "openai/gpt-oss-20b"],
                    ["vllm"],
                    lines("ngc.env"),
                    image_env=[line for line in lines("ngc.env") if not re.match(SET, line)],
                )
            ],
        ),
        {
            "engine.env": {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"},
            "engine.secrets": ["HF_TOKEN"],
        },
        ["SG701"],
        [],
    ),
    "a unit with docker run": Case(
        Machine(
            "spark1",
            {"etc/systemd/system/qwen-sglang.service": unit()},
            {"ip -j address": json.dumps([address("enP7s7", "10.0.0.11/24")])},
        ),
        {
            "model.served_name": "qwen3.8-27b",
            "model.speculative.method": "dflash",
            "engine.port": 30000,
            "engine.secrets": ["SGLANG_API_KEY"],
            "engine.files": [{"path": "/home/spark/.config/qwen38", "target": "/out"}],
        },
        ["SG882"],
        [],
    ),
    "the same unit with a key in it": Case(
        Machine(
            "spark1",
            {"etc/systemd/system/qwen-sglang.service": unit().replace(KEY_FILE, "a-key-of-ours")},
            {"ip -j address": json.dumps([address("enP7s7", "10.0.0.11/24")])},
        ),
        {"engine.secrets": ["SGLANG_API_KEY"]},
        ["SG845", "SG882"],
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_transcripts(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    archive = case.node.capture(tmp_path)
    raw = archive.read_bytes()
    adopted = adopt(read([Input("", archive.name, raw)]), "mine", "mine.yaml")
    data = yaml.safe_load(adopted.text)
    assert {path: value(data, path) for path in case.expected} == case.expected
    assert [remark.rule for remark in audit(adopted)] == case.audited
    site = adopted.assumed.site
    assert (site is None) == (case.drifted is None), report(
        adopted.assumed.document, adopted.assumed.findings
    )
    if site:
        found = {
            remark.rule
            for remark in drift(site, [read_archive(archive.name, raw)], None).differences
        }
        # None of these nodes has a bundle: neither its nccl.conf nor its units.
        assert found >= {"SG865", "SG866"}
        assert sorted(found - {"SG865", "SG866"}) == case.drifted


# What is known of a cluster without a capture.
TEXTS: dict[str, dict[str, Any]] = {
    "unconfigured.ip-br-address.txt": {"cabling.0.endpoints": ["spark1:p1", "spark2:p1"]},
    "without-cable.ip-br-address.txt": {"topology.kind": "single"},
    "pair.ibdev2netdev.txt": {"cabling.0.endpoints": ["spark1:p0", "spark2:p0"]},
    "pair.40-cx7.yaml": {"cabling.0.addresses.0.0": "192.168.100.12/24"},
    "head.ip-o-address.txt": {"cabling.0.addresses.1.0": "192.168.101.10/24"},
    "head.ibdev2netdev.txt": {"cabling.0.endpoints": ["spark1:p0", "spark2:p0"]},
    "playbook.ibdev2netdev.txt": {"cabling.0.endpoints": ["spark1:p1", "spark2:p1"]},
    "playbook.ip-address.txt": {"cabling.0.addresses.0.0": "192.168.1.1/24"},
    "two-owners.99-nvidia-sync-cluster.yaml": {"cabling.0.addresses.1.0": "10.100.33.1/24"},
}


@pytest.mark.parametrize("name", TEXTS)
def test_single_texts(name: str) -> None:
    # A link does not show what is at its other end: both nodes print the same.
    nodes = ["spark1", "spark2"] if "ibdev2netdev" in name else ["spark1"]
    inputs = [Input(node, name, text(name).encode()) for node in nodes]
    adopted = adopt(read(inputs), "mine", "mine.yaml")
    data = yaml.safe_load(adopted.text)
    assert {path: value(data, path) for path in TEXTS[name]} == TEXTS[name]
