"""`audit`: findings in users' own files, on captures modelled on public deployments.

Each capture is what the owner published about a node's network, container and units, with addresses
and names changed. It must get the findings that it deserves, and no others.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from captured_nodes import Container, Machine, address
from conftest import Command

from generator.adoption import adopt
from generator.adoption.reading import Input, read
from generator.audit.findings import audit
from generator.capture import CaptureError
from generator.reports import located

FOLDER = Path(__file__).parent / "adopted"
LEFT, RIGHT = ("enp1s0f0np0", "enP2p1s0f0np0"), ("enp1s0f1np1", "enP2p1s0f1np1")
MANAGED = "enP7s7"


def netplan(addresses: dict[str, Sequence[str]], mtu: int = 9000) -> str:
    """A netplan file with these interfaces."""
    lines = ["network:", "  version: 2", "  ethernets:"]
    for name, assigned in addresses.items():
        lines += [f"    {name}:", "      dhcp4: no", f"      mtu: {mtu}"]
        lines += [f"      addresses: [{', '.join(assigned)}]"] if assigned else []
    return "\n".join(lines) + "\n"


def node(
    number: int,
    fabric: dict[str, Sequence[str]],
    containers: Sequence[Container] = (),
    files: dict[str, str] | None = None,
    managed: str = MANAGED,
    mtu: int = 9000,
) -> Machine:
    """A node whose netplan file and links agree."""
    links = [address(name, *assigned, mtu=mtu) for name, assigned in fabric.items()]
    links.append(address(managed, f"10.0.7.{number}/24"))
    netplan_file = {"etc/netplan/40-cx7.yaml": netplan(fabric, mtu)} if fabric else {}
    printed = {"ip -j address": json.dumps(links)}
    return Machine(f"spark{number}", {**netplan_file, **(files or {})}, printed, containers)


def halves(names: Sequence[str], number: int, first: int = 100, length: int = 24) -> dict[str, Any]:
    """An address for each half of a port, each in its own subnet."""
    return {name: [f"192.168.{first + i}.{number}/{length}"] for i, name in enumerate(names)}


def serve(
    *words: str, env: Sequence[str] = (), image: str = "vllm/vllm-openai:v0.33.0", **more: Any
) -> Container:
    """A container that serves, with the kind of name that people use."""
    given = {"devices": ["/dev/infiniband"], **more}
    return Container("vllm_node", image, words, ("vllm", "serve"), env, **given)


def rank(number: int, *words: str) -> tuple[str, ...]:
    """The command of a rank on two nodes."""
    more = ("--headless",) if number else ("--host", "10.0.7.1")
    shared = ("--tensor-parallel-size", "2", "--nnodes", "2", "--node-rank", str(number))
    return (*words, *shared, "--gpu-memory-utilization", "0.8", *more)


USUAL = ("--gpu-memory-utilization", "0.8", "--host", "10.0.7.1")
OSS = ("openai/gpt-oss-120b", "--max-model-len", "65536", "--max-num-seqs", "4")
M2 = ("nvidia/MiniMax-M2.7-NVFP4", "--max-model-len", "65536")
LEFT_ENV = ("NCCL_IB_HCA=rocep1s0f0,roceP2p1s0f0", "NCCL_SOCKET_IFNAME=enp1s0f0np0")
RIGHT_ENV = ("NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1", "NCCL_SOCKET_IFNAME=enp1s0f1np1")


def pair(
    names: Sequence[str],
    env: Sequence[str],
    *words: str,
    files: dict[str, str] | None = None,
    **more: Any,
) -> list[Machine]:
    """Two nodes joined by one cable, and what they serve."""
    return [
        node(n, halves(names, n), [serve(*rank(n - 1, *words), env=env, **more)], files)
        for n in (1, 2)
    ]


UNIT_PATH = "etc/systemd/system/vllm.service"
UNIT = "[Service]\nExecStart=/usr/bin/docker start -a vllm_node\nRestart=always\n"
CASES: dict[str, tuple[list[Machine], list[str]]] = {
    # Two nodes, native vLLM, exact devices, no GID: no findings.
    "bytebunker": (pair(RIGHT, RIGHT_ENV, *OSS), []),
    # The same through a switch, as NVIDIA's playbook writes it.
    "nvidia-switch": (
        [
            node(n, halves(LEFT, n), [serve(*rank(n - 1, *OSS), env=LEFT_ENV)], mtu=1500)
            for n in (1, 2)
        ],
        [],
    ),
    # Both halves in one subnet.
    "one-subnet": (
        [
            node(n, {LEFT[0]: [f"192.168.100.{n}/24"], LEFT[1]: [f"192.168.100.{n + 4}/24"]})
            for n in (1, 2)
        ],
        ["SG301"],
    ),
    # A launch record with a link-local address on only one half.
    "guardkit": (
        [
            node(
                n,
                {RIGHT[0]: [f"169.254.207.{n}/24"], RIGHT[1]: []},
                [
                    serve(
                        *rank(n - 1, *M2, "--max-num-seqs", "2"),
                        env=("NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1",),
                    )
                ],
            )
            for n in (1, 2)
        ],
        ["SG841", "SG841"],
    ),
    # The device of another machine.
    "argent": (
        pair(LEFT, ("NCCL_IB_HCA=mlx5_0", "NCCL_SOCKET_IFNAME=enp1s0f0np0"), *OSS),
        ["SG414"],
    ),
    # Variables defined as empty in Compose, with nccl.conf beside them.
    "mia": (
        pair(
            LEFT,
            (*LEFT_ENV, "NCCL_DEBUG="),
            *OSS,
            files={"etc/nccl.conf": "NCCL_DEBUG=WARN\n"},
        ),
        ["SG413"],
    ),
    # NCCL_IB_DISABLE=1 in a file that the system left behind.
    "left-by-dgx-os": (
        pair(LEFT, (), *OSS, files={"etc/nccl.conf": "NCCL_IB_DISABLE=1\n"}),
        ["SG416"],
    ),
    "spaces": (
        pair(LEFT, (), *OSS, files={"etc/nccl.conf": "NCCL_DEBUG = WARN\n"}),
        ["SG842", "SG842"],
    ),
    # A service in addition to Docker's own restart policy.
    "two-owners": (
        pair(LEFT, LEFT_ENV, *OSS, restart="always", files={UNIT_PATH: UNIT}),
        ["SG882", "SG844", "SG882", "SG844"],
    ),
    "privileged": (pair(LEFT, LEFT_ENV, *OSS, privileged=True), ["SG713", "SG713"]),
    # All of the memory, on every address.
    "idzik": (
        [
            node(
                1,
                {},
                [serve(*OSS, "--gpu-memory-utilization", "0.95", "--host", "0.0.0.0")],
            )
        ],
        ["SG524", "SG701"],
    ),
    "gid": (pair(LEFT, (*LEFT_ENV, "NCCL_IB_GID_INDEX=3"), *OSS), ["SG419"]),
    # A key on the command line.
    "key": (
        [
            node(
                1,
                {},
                [
                    serve(
                        *OSS,
                        "--gpu-memory-utilization",
                        "0.8",
                        "--host",
                        "10.0.7.1",
                        "--api-key",
                        "mine",
                    )
                ],
            )
        ],
        ["SG845"],
    ),
    # A flag that this version does not have, and a model that does not fit.
    "flag": (pair(LEFT, LEFT_ENV, *OSS, "--max-modl-len", "4096"), ["SG632"]),
    "does-not-fit": (
        [
            node(
                1,
                {},
                [
                    serve(
                        *("Qwen/Qwen3-235B-A22B-GPTQ-Int4", *USUAL),
                        *("--max-model-len", "32768"),
                    )
                ],
            )
        ],
        ["SG520"],
    ),
    # Control traffic over Wi-Fi.
    "wifi": (
        [
            node(
                n,
                halves(LEFT, n),
                [serve(*rank(n - 1, *OSS), env=(LEFT_ENV[0], "NCCL_SOCKET_IFNAME=wlP9s9"))],
                managed="wlP9s9",
            )
            for n in (1, 2)
        ],
        ["SG310"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_findings_of_deployments(name: str, sparkgen: Command, tmp_path: Path) -> None:
    machines, rules = CASES[name]
    archives = [machine.capture(tmp_path).name for machine in machines]
    outcome = sparkgen("audit", *archives, "--format", "json", cwd=tmp_path)
    found = json.loads(outcome.out)["findings"]
    assert [finding["rule"] for finding in found] == rules, json.dumps(found, indent=1)
    assert all(finding["line"] and finding["file"].startswith("spark") for finding in found)
    imported = sparkgen("import", *archives, cwd=tmp_path)
    assert imported.out.startswith("# yaml-language-server")


def test_deployments_are_fifteen() -> None:
    assert len(CASES) >= 15


PRINTED = """\
error[SG414]: DGX OS has no 'mlx5_0'
 --> nccl.conf:1:13
  |
1 | NCCL_IB_HCA=mlx5_0
  |             ^^^^^^
  = help: its devices are rocep1s0f0, roceP2p1s0f0, rocep1s0f1 and roceP2p1s0f1; remove it: \
sparkgen derives it for each node; run 'sparkgen explain SG414'

error[SG842]: NCCL does not trim this line: NCCL_SOCKET_IFNAME is not set to what it looks like
 --> nccl.conf:2:21
  |
2 | NCCL_SOCKET_IFNAME = enp1s0f0np0
  |                     ^^^^^^^^^^^^
  = help: write NCCL_SOCKET_IFNAME=enp1s0f0np0, without spaces, quotes and 'export'; \
run 'sparkgen explain SG842'

error[SG416]: 'NCCL_IB_DISABLE: 1' keeps NCCL off the fabric, on slow sockets
 --> nccl.conf:3:17
  |
3 | NCCL_IB_DISABLE=1
  |                 ^
  = help: remove it: sparkgen sets it to 0; run 'sparkgen explain SG416'

3 errors in nccl.conf
"""


def test_finding_shows_line_and_caret(sparkgen: Command) -> None:
    outcome = sparkgen("audit", "spark1=40-cx7.yaml", "spark1=nccl.conf", cwd=FOLDER)
    assert (outcome.code, outcome.out, outcome.err) == (1, "", PRINTED)


def test_no_key_is_shown(sparkgen: Command) -> None:
    outcome = sparkgen("audit", "run.sh", cwd=FOLDER)
    assert "the value of HF_TOKEN is written in the file" in outcome.err
    assert "hf_abc" not in outcome.err
    assert "HF_TOKEN=****" in outcome.err


def test_sparse_files_have_no_finding(sparkgen: Command) -> None:
    for name in ("cluster.json", "40-cx7.yaml", "solo.yaml"):
        outcome = sparkgen("audit", name, cwd=FOLDER)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out == "nothing is wrong, as far as these files say\n"


ALONE = {
    "enp1s0f0np0: [192.168.100.10/24]\nenP2p1s0f0np0: [192.168.100.11/24]": ["SG301"],
    "enp1s0f0np0: [192.168.100.10/24]\nenP2p1s0f0np0: [192.168.101.11/24]": [],
    "enp1s0f0np0: [192.168.100.10/24]\nenP2p1s0f0np0: []": ["SG841"],
    "enp1s0f0np0: [10.0.0.0/31]\nenP2p1s0f0np0: [10.0.0.2/31]": [],
    "enp1s0f0np0: [999.0.0.1/24]\nenP2p1s0f0np0: [x]": [],
}


@pytest.mark.parametrize("lines", ALONE)
def test_netplan_of_one_node_only(lines: str, sparkgen: Command, tmp_path: Path) -> None:
    """Guesses about its peer have no findings."""
    written = dict(line.split(": ") for line in lines.splitlines())
    addresses = {
        name: [text for text in [listed.strip("[]")] if text] for name, listed in written.items()
    }
    (tmp_path / "40-cx7.yaml").write_text(netplan(addresses))
    outcome = sparkgen("audit", "40-cx7.yaml", "--format", "json", cwd=tmp_path)
    assert [finding["rule"] for finding in json.loads(outcome.out)["findings"]] == ALONE[lines]


def test_empty_value_in_nccl_conf(sparkgen: Command, tmp_path: Path) -> None:
    (tmp_path / "nccl.conf").write_text("NCCL_IB_HCA=\n")
    outcome = sparkgen("audit", "nccl.conf", cwd=tmp_path)
    assert outcome.err.startswith(
        "error[SG413]: NCCL_IB_HCA is empty: NCCL takes that for its value\n --> nccl.conf:1:1\n"
    )


UNKNOWN = """\
docker run --gpus all --network host vllm/vllm-openai:v0.33.0 --model $1 --host 127.0.0.1 \\
  --gpu-memory-utilization 0.8 --tensor-parallel-size 1 {flags}
"""


@pytest.mark.parametrize(
    "flags",
    [
        "--max-model-len 262144 --max-num-seqs 256",
        "--quantization modelopt_fp4",
        "--enable-auto-tool-choice --tool-call-parser hermes --reasoning-parser qwen3",
    ],
)
def test_unknown_model_is_not_judged(flags: str) -> None:
    """What is true of one model alone is not said of a model that only the shell knows."""
    script = UNKNOWN.format(flags=flags).encode()
    adopted = adopt(read([Input("", "serve.sh", script)]), "mine", "mine.yaml")
    assert [finding.rule for finding in adopted.findings] == ["SG880"]
    assert audit(adopted) == []


def test_fault_of_any_model_is_told_of_an_unknown_one() -> None:
    script = UNKNOWN.format(flags="").replace("0.8", "0.95").encode()
    adopted = adopt(read([Input("", "serve.sh", script)]), "mine", "mine.yaml")
    assert [finding.rule for finding in adopted.findings] == ["SG880", "SG524"]
    assert [remark.rule for remark in audit(adopted)] == ["SG524"]


def test_help_has_no_derived_address() -> None:
    """Audited nodes need not have the addresses that sparkgen would give them."""
    adopted = adopt(read([Input("", "nccl.conf", b"NCCL_IB_GID_INDEX=3\n")]), "mine", "mine.yaml")
    ((rule, advice),) = [(remark.rule, remark.help) for remark in audit(adopted)]
    (finding,) = [found for found in adopted.assumed.findings if found.rule == rule]
    assert (rule, advice) == ("SG419", "remove it")
    assert finding.help == f"{advice}{finding.derived_help}"
    assert "NCCL_IB_ADDR_RANGE: 10.100.0.0/23" in finding.derived_help


SCRIPT = """\
sudo tee /etc/netplan/40-cx7.yaml <<EOF
network:
  version: 2
  ethernets:
    enp1s0f0np0: {addresses: [192.168.100.10/24]}
    enP2p1s0f0np0: {addresses: [192.168.100.11/24]}
EOF
docker run --network host -v ./models:/models -v __HOME__/own:/own vllm/vllm-openai:latest \\
  --model openai/gpt-oss-120b --host 10.0.0.11 --gpu-memory-utilization 0.8 --max-model-len 32768 \\
  --chat-template /models/t.jinja --tool-parser-plugin /own/p.py \\
  --reasoning-parser-plugin /gone/p.py
"""
TEMPLATE = """\
model: openai/gpt-oss-120b
container: vllm/vllm-openai:v0.33.0
defaults: {host: 10.0.0.11, gpu_memory_utilization: 0.8, max_model_len: 32768}
env: {LD_PRELOAD: /cache/huggingface/libnccl.so.2}
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("setup.sh", SCRIPT, [(6, "SG301"), (8, "SG609"), (11, "SG695")]),
        # A launcher may mount anything.
        ("recipe.yaml", TEMPLATE, []),
        (
            "train.sh",
            "NCCL_DEBUG=INFO NCCL_IB_HCA=mlx5_0 torchrun --nnodes=2 own.py\n",
            [(1, "SG414")],
        ),
        ("nccl.conf", "NCCL_DEBUG=INFO\n NCCL_IB_TIMEOUT=22\n", [(2, "SG842")]),
        (
            "40-cx7.yaml",
            "network:\n  bonds:\n    bond0:\n      interfaces: [enp1s0f0np0, enP2p1s0f0np0]\n"
            "      addresses: [10.10.10.1/30]\n",
            [(4, "SG846")],
        ),
    ],
)
def test_places_of_findings(name: str, text: str, expected: list[tuple[int, str]]) -> None:
    """By line and rule; mounted files exist, and lines that a shell reads are not NCCL's."""
    adopted = adopt(read([Input("", name, text.encode())]), "mine", "mine.yaml")
    found = [(r.place.span.line + 1, r.rule) for r in audit(adopted) if r.place.span]
    assert found == expected


EXPERT: dict[str, tuple[str, str, list[tuple[int, str]]]] = {
    "two ports in one subnet": (
        "40-cx7.yaml",
        netplan({"enp1s0f0np0": ["10.1.0.1/24"], "enp1s0f1np1": ["10.1.0.2/24"]}),
        [(5, "SG841"), (9, "SG841"), (11, "SG881")],
    ),
    "a port in the management's subnet": (
        "spark1.txt",
        "enP7s7 UP 192.168.0.110/24\nenp1s0f1np1 UP 192.168.0.188/24\nenP2p1s0f1np1 UP\n",
        [(2, "SG841"), (2, "SG302")],
    ),
    "one address of the node": (
        "start.sh",
        "docker run -p 100.105.4.92:18012:8000 vllm/vllm-openai:v0.33.0 --model openai/gpt-oss-20b"
        " --gpu-memory-utilization 0.7 --max-model-len 8192 --host 0.0.0.0\n",
        [],
    ),
    "all addresses": (
        "start.sh",
        "docker run -p 8000:8000 vllm/vllm-openai:v0.33.0 --model openai/gpt-oss-20b"
        " --gpu-memory-utilization 0.7 --max-model-len 8192\n",
        [(1, "SG701")],
    ),
    "what else is passed": ("serve.sh", 'exec vllm serve "$@"\n', []),
    "a Quadlet that starts an engine without end": (
        "vllm.container",
        "[Container]\nImage=docker.io/vllm/vllm-openai:v0.33.0\n"
        "Exec=--model openai/gpt-oss-20b --gpu-memory-utilization 0.7 --host 10.0.0.11\n"
        "[Service]\nRestart=always\n",
        [(5, "SG882")],
    ),
    "keys that are none": (
        "compose.yaml",
        "services:\n  vllm:\n    image: vllm/vllm-openai:v0.33.0\n    command: openai/gpt-oss-20b"
        " --host 10.0.0.11 --gpu-memory-utilization 0.7 --max-model-len 8192\n    environment:\n"
        "      OPENAI_API_KEY: sk-no-key-required\n      API_KEY: EMPTY\n      MY_TOKEN: none\n",
        [],
    ),
    "restarts, processes and root": (
        "compose.yaml",
        "services:\n  vllm:\n    image: vllm/vllm-openai:v0.33.0\n    command: openai/gpt-oss-20b"
        " --host 10.0.0.11 --gpu-memory-utilization 0.7 --max-model-len 8192\n"
        "    restart: always\n    pid: host\n    user: root\n",
        [(5, "SG882"), (6, "SG883"), (7, "SG883")],
    ),
    "two engines": (
        "compose.yaml",
        "services:\n"
        "  one:\n    image: vllm/vllm-openai:v0.33.0\n    ports: ['127.0.0.1:8001:8000']\n"
        "    command: openai/gpt-oss-20b --gpu-memory-utilization 0.3 --max-model-len 8192\n"
        "  two:\n    image: vllm/vllm-openai:latest\n    ports: ['8001:8000']\n"
        "    command: openai/gpt-oss-20b --gpu-memory-utilization 0.9 --max-model-len 8192\n"
        "    environment: {OPENAI_API_KEY: vllm}\n",
        [(7, "SG609"), (9, "SG701"), (9, "SG524")],
    ),
    "what a Quadlet gives to podman": (
        "vllm.container",
        "[Container]\nImage=docker.io/vllm/vllm-openai:v0.33.0\nUser=0\n"
        "PodmanArgs=--privileged --pid=host\n"
        "Exec=--model openai/gpt-oss-20b --gpu-memory-utilization 0.7 --host 10.0.0.11\n",
        [(3, "SG883"), (4, "SG713"), (4, "SG883")],
    ),
    "pages and APIs that ask for no login": (
        "compose.yaml",
        "services:\n"
        "  chat:\n    image: ghcr.io/open-webui/open-webui:main\n    ports: ['3000:8080']\n"
        "    environment: [WEBUI_AUTH=False]\n"
        "  figures:\n    image: grafana/grafana:13.0.1\n    network_mode: host\n"
        "    environment: {GF_AUTH_ANONYMOUS_ENABLED: 'true'}\n"
        "  series:\n    image: prom/prometheus\n    ports: ['0.0.0.0:9090:9090']\n"
        "    pid: host\n"
        "  models:\n    image: ollama/ollama:0.12.3\n    ports: ['${PORT:-11434}:11434']\n",
        [(3, "SG609"), (5, "SG885"), (9, "SG885"), (11, "SG609"), (12, "SG885"), (16, "SG885")],
    ),
    "pages with a login, or of this node alone": (
        "compose.yaml",
        "services:\n"
        "  chat:\n    image: ghcr.io/open-webui/open-webui:v0.12.4\n    ports: ['3000:8080']\n"
        "  more:\n    image: ghcr.io/open-webui/open-webui:v0.12.4\n"
        "    ports: ['127.0.0.1:3001:8080']\n    environment: [WEBUI_AUTH=False]\n"
        "  figures:\n    image: grafana/grafana@sha256:" + "a" * 64 + "\n    ports: ['3002:3000']\n"
        "  series:\n    image: prom/prometheus:v3.12.0\n    network_mode: host\n"
        "    command: [--web.config.file=/etc/web.yml]\n"
        "  inside:\n    image: ollama/ollama:0.12.3\n    build: .\n",
        [],
    ),
    "RDMA without its devices": (
        "compose.yaml",
        "x-all: &all\n  image: vllm/vllm-openai:v0.33.0\n  network_mode: host\n"
        "  environment: {NCCL_IB_HCA: 'rocep1s0f0,roceP2p1s0f0'}\n"
        "services:\n  one:\n    <<: *all\n    command: openai/gpt-oss-120b --host 10.0.0.1"
        " --tensor-parallel-size 2 --nnodes 2 --node-rank 0 --gpu-memory-utilization 0.8"
        " --max-model-len 65536\n",
        [(4, "SG886")],
    ),
    "RDMA that is off, or of one node": (
        "start.sh",
        "docker run --network host -e NCCL_IB_HCA=rocep1s0f0 -e NCCL_IB_DISABLE=1 own:1 sleep 9\n"
        "docker run -p 127.0.0.1:8000:8000 -e NCCL_IB_DISABLE=0 vllm/vllm-openai:v0.33.0"
        " --model openai/gpt-oss-20b --gpu-memory-utilization 0.7 --max-model-len 8192\n"
        "docker run --network host $DEVICES -e NCCL_IB_DISABLE=0 own:1 sleep 9\n",
        [],
    ),
    "variables that the script takes away again": (
        "compose.yaml",
        "services:\n  vllm:\n    image: vllm/vllm-openai:v0.33.0\n    entrypoint: [bash, -c]\n"
        "    environment: {NCCL_PROTO: '', NCCL_ALGO: ''}\n    command:\n"
        "      - unset NCCL_ALGO; exec vllm serve openai/gpt-oss-20b"
        " --host 10.0.0.11 --gpu-memory-utilization 0.7 --max-model-len 8192\n",
        [(5, "SG413")],
    ),
    "a unit that gives up, as root": (
        "vllm.service",
        "[Unit]\nStartLimitIntervalSec=600\nStartLimitBurst=3\n[Service]\nRestart=always\nUser=root\n"
        "ExecStart=/opt/venv/bin/vllm serve openai/gpt-oss-20b --host 10.0.0.11"
        " --gpu-memory-utilization 0.7 --max-model-len 8192\n",
        [(6, "SG883")],
    ),
}


@pytest.mark.parametrize("case", EXPERT)
def test_what_an_expert_sees(case: str) -> None:
    name, text, expected = EXPERT[case]
    found = read([Input("", name, text.encode())], serving=False)
    adopted = adopt(found, "mine", "mine.yaml")
    lines = [(r.place.span.line + 1, r.rule) for r in audit(adopted) if r.place.span]
    assert lines == expected


def test_files_that_cannot_be_read(sparkgen: Command, tmp_path: Path) -> None:
    """A capture's netplan file that is no YAML, and output that is no JSON."""
    broken = "network:\n  ethernets:\n    enp1s0f0np0: {addresses: [10.0.0.1/24\n"
    files = {"etc/netplan/40-cx7.yaml": broken}
    Machine("spark1", files, {"ip -j address": "[{"}).capture(tmp_path)
    outcome = sparkgen("audit", "spark1.tar.gz", "--format", "json", cwd=tmp_path)
    found = [(one["rule"], one["file"]) for one in json.loads(outcome.out)["findings"]]
    assert found == [
        ("SG884", "spark1.tar.gz:/etc/netplan/40-cx7.yaml"),
        ("SG884", "spark1.tar.gz:commands/ip-addr.json"),
    ]


def test_merged_netplan_files() -> None:
    """The effective value is given for addresses, DHCP and MTUs; files that only add are fine."""
    first = netplan({"enp1s0f0np0": ["10.1.0.1/24"], "enP2p1s0f0np0": ["10.2.0.1/24"]})
    later = (
        "network:\n  ethernets:\n    enp1s0f0np0: {dhcp4: true}\n"
        "    enP2p1s0f0np0: {optional: true}\n"
    )
    files = [("99-later.yaml", later), ("40-cx7.yaml", first)]
    found = read([Input("spark1", name, text.encode()) for name, text in files])
    (remark,) = audit(adopt(found, "mine", "mine.yaml"))
    assert (remark.rule, remark.place.file) == ("SG847", "99-later.yaml")
    assert remark.message == "enp1s0f0np0 is set up otherwise in 40-cx7.yaml"
    assert remark.help.startswith("netplan takes 10.1.0.1/24, 'dhcp4: true'")


ODD = (
    b"999.1.1.1/24",
    b"",
    b"-1",
    b"null",
    b"[]",
    b"{}",
    b'"',
    b"$X",
    b"\\\n",
    b"/33",
    b"--x",
    b"\xc3",
)


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_damaged_file_is_read_or_refused(name: str) -> None:
    """A file damaged at any place is either read or refused in one line."""
    raw = (FOLDER / name).read_bytes()
    for number, at in enumerate(range(0, len(raw), 23)):
        damaged = raw[:at] + ODD[number % len(ODD)] + raw[at + number % 9 :]
        with suppress(CaptureError):
            found = read([Input("", name, damaged)])
            located.text(audit(adopt(found, "mine", "mine.yaml")), found.texts)


def test_values_that_no_engine_takes_are_told(tmp_path: Path, sparkgen: Command) -> None:
    """A value of another form, an unknown flag, and layers that are left to the CPU."""
    words = "-m /models/gpt-oss-120b.gguf -ngl 0 --ctx-size 1e5 --frobnicate 3 --host 127.0.0.1"
    compose = {"image": "ghcr.io/ggml-org/llama.cpp:server-cuda-b11434", "command": words}
    (tmp_path / "compose.yaml").write_text(json.dumps({"services": {"llama": compose}}))
    outcome = sparkgen("audit", "compose.yaml", "--format", "json", cwd=tmp_path)
    rules = {finding["rule"] for finding in json.loads(outcome.out)["findings"]}
    assert {"SG103", "SG632", "SG675"} <= rules
