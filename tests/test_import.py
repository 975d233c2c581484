"""`import`: a site file from a running deployment, or from single files that people deploy with."""

import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from bundles import BUILT, BUNDLES, Bundle, representatives
from captured_nodes import DESCRIBING, Container, Machine, address
from conftest import Command
from hypothesis import given
from hypothesis import strategies as st
from test_install import HOSTS, done, fresh, install
from test_network import running
from valid_sites import valid_file

from generator.adoption import Adoption, adopt
from generator.adoption.draft import Draft
from generator.adoption.found import Ended, ItemEnd, Loss, Word
from generator.adoption.reading import Input, read
from generator.audit.findings import audit
from generator.bundle.render import render
from generator.capture import CaptureError
from generator.capture.archive import read as read_archive
from generator.diagnostics import Severity, Span
from generator.drift import drift
from generator.drift.recorded import of_captures
from generator.pipeline import read_site
from generator.reports.text import text
from generator.resources import ROOT
from generator.site import Node, Site
from generator.site.places import place
from generator.site.serving import DEFAULT_REVISION
from generator.sitefile.beside import Source, SourceFile, nothing_beside
from generator.sitefile.disk import beside

SITES = sorted((ROOT / "sites").rglob("*.yaml"))


SYSCTL, TEXTS = "etc/sysctl.d/90-sparkgen.conf", ("site.yaml", "base.yaml", "lock.yaml")


def machine(site: Site, node: Node, tree: dict[str, str]) -> Machine:
    """A node that runs its part of a bundle: the files from install.sh and what then runs."""
    files = {path: text for path, text in tree.items() if path.startswith(("etc/", "opt/"))}
    if sums := tree.get("SHA256SUMS"):
        files |= {"etc/sparkgen/bundle/SHA256SUMS": sums}
        hosts = tree.get("etc/sparkgen/hosts", "")
        files |= {"etc/hosts": f"{HOSTS}# begin sparkgen\n{hosts}# end sparkgen\n"}
        files |= {f"etc/sparkgen/bundle/{name}": tree[name] for name in TEXTS if name in tree}
    for name, value in re.findall(r"(?m)^([a-z]\S*) = (.+)$", tree.get(SYSCTL, "")):
        files[f"proc/sys/{name.replace('.', '/')}"] = f"{value}\n"
    links = [address(i.name, str(i.address), mtu=i.mtu, up=True) for i in node.interfaces] + (
        [address(node.management.interface, str(node.management.address))]
        if node.management
        else []
    )
    routes = [{"dst": str(route.to), "gateway": str(route.via)} for route in node.routes]
    if node.management:
        routes.append({"dst": "default", "dev": node.management.interface, "metric": 100})
    printed = {
        "ip -j address": json.dumps([*links, address("lo")]),
        "ip -j route": json.dumps(routes),
        DISK: "999999999\t/\n",
    }
    compose_files = {p: text for p, text in files.items() if p.endswith("/compose.yaml")}
    running: list[Container] = []
    processes: dict[int, tuple[list[str], list[str]]] = {}
    for engine in (part for part in site.parts if part.is_active):
        secrets = [f"{name}=a-key-of-ours" for name in engine.engine.secrets]
        if compose := compose_files.get(place("opt/sparkgen/compose.yaml", engine.group)):
            running += containers(yaml.safe_load(compose), files, secrets)
            continue
        rank = next((member for member in engine.nodes if member.name == node.name), None)
        if rank and engine.engine.venv:
            processes[4711 + len(processes)] = venv_process(engine, rank, secrets)
        elif rank:
            processes[4711 + len(processes)] = job(site, rank)
    programs = [program(site)] if processes else []
    files = {**files, **dict(models(files))}
    return Machine(node.name, files, printed, running, processes, programs, other_programs())


@cache
def other_programs() -> Path:
    """A folder of this machine's programs, without those that describe a node."""
    folder = Path(tempfile.mkdtemp(dir=os.environ[BUILT]))
    for source in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"):
        for path in Path(source).iterdir():
            if path.name not in DESCRIBING and not (folder / path.name).is_symlink():
                (folder / path.name).symlink_to(path)
    return folder


def venv_process(site: Site, node: Node, secrets: list[str]) -> tuple[list[str], list[str]]:
    """A process that a unit runs from a virtual environment."""
    words, env = job(site, node)
    return [f"{site.parts[0].engine.venv}/bin/python3", *words], [*env[1:], *secrets]


def job(site: Site, node: Node) -> tuple[list[str], list[str]]:
    """What Slurm runs on a node, with its variables."""
    flat = [
        w for item in node.container.command for w in ([item] if isinstance(item, str) else item)
    ]
    env = [f"{name}={value}" for name, value in variables(node).items()]
    count = f"SLURM_NNODES={len(site.nodes)}"
    return [node.container.entrypoint, *flat], [count, *env]


def program(site: Site) -> str:
    """The folder that an engine's Python package leaves."""
    engine = site.parts[0].engine
    return f"{engine.name.replace('-', '_')}-{engine.version}.dist-info"


def containers(
    compose: dict[str, Any], files: dict[str, str], secrets: list[str]
) -> Iterator[Container]:
    for service in compose["services"].values():
        env = [
            line
            for file in service.get("env_file", ())
            for line in files.get(str(file).lstrip("/"), "").splitlines()
            if line and not line.startswith("#")
        ]
        yield Container(
            name=service["container_name"],
            image=service["image"],
            command=service.get("command", ()),
            entrypoint=service.get("entrypoint", ()),
            env=[*env, *map("=".join, service.get("environment", {}).items()), *secrets],
            security=service.get("security_opt", ()),
            read_only=service.get("read_only", False),
            most_processes=service.get("pids_limit"),
            mounts=[ends(mount) for mount in service.get("volumes", ())],
            shm=in_bytes(service.get("shm_size", "64mb")),
            memory=in_bytes(service.get("mem_limit", "0")),
            cpus=service.get("cpuset", ""),
            pid=service.get("pid", ""),
            user=service.get("user", ""),
            init=service.get("init", False),
            # As Docker names them.
            capabilities=[f"CAP_{name}" for name in service.get("cap_add", ())],
            dropped=[f"CAP_{name}" for name in service.get("cap_drop", ())],
            devices=service.get("devices", ()),
            ulimits={name: own["hard"] for name, own in service.get("ulimits", {}).items()},
            network=service.get("network_mode", f"{compose['name']}_default"),
            ipc=service.get("ipc", "private"),
            privileged=service.get("privileged", False),
            restart=service.get("restart", "no"),
        )


def in_bytes(size: str) -> int:
    """A size of a Compose file."""
    number = size.rstrip("bgmk")
    return int(number) << {"": 0, "k": 10, "m": 20, "g": 30}[size[len(number) :].removesuffix("b")]


def ends(mount: dict[str, Any] | str) -> tuple[str, str, bool]:
    """Where a mount of a Compose file comes from and goes, and whether it is writable."""
    if isinstance(mount, dict):
        return mount["source"], mount["target"], not mount.get("read_only")
    source, target, *mode = mount.split(":")
    return source, target, mode != ["ro"]


def models(content: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What models.sh leaves on a node."""
    for path, lines in content.items():
        if not path.endswith("node.env"):
            continue
        for file in re.findall(r"(?m)^MODEL_FILE=/(.*)$", lines):
            yield file, "GGUF"
        for folder in re.findall(r"(?m)^MODEL=\S+ /(\S+)$", lines):
            yield f"{folder}/config.json", "{}"
        for hub in re.findall(r"(?m)^HUB=/(.*)$", lines):
            for source, revision in re.findall(r"(?m)^MODEL=\S+ (\w\S*) (\S+)", lines):
                folder = f"{hub}/models--{source.replace('/', '--')}"
                is_commit = re.fullmatch("[0-9a-f]{40}", revision)
                commit = revision if is_commit else COMMIT
                yield f"{folder}/refs/{DEFAULT_REVISION if is_commit else revision}", commit
                yield f"{folder}/snapshots/{commit}/config.json", "{}"


COMMIT = "d4" * 20
# Prints more than any model has.
DISK = "du *"


def captured(path: Path, folder: Path) -> tuple[Site, Adoption]:
    """A site, and the site that is adopted from captures of its nodes."""
    site = valid_file(path).site
    tree = {p: file.text for p, file in render(site, "0" * 64).items()}
    inputs = []
    for node in site.nodes:
        files = {p.partition("/")[2]: t for p, t in tree.items() if p.startswith(f"{node.name}/")}
        # As an earlier release has installed it, and as somebody else would write it.
        del files["SHA256SUMS"]
        archive = machine(site, node, files).capture(folder)
        inputs.append(Input("", str(archive), archive.read_bytes()))
    return site, adopt(read(inputs), site.name, path.name)


OTHERS = [
    ROOT / "tests/golden" / name / "site.yaml"
    for name in (
        *("direct-uplink", "direct-venv", "direct-web-ui", "direct-ray", "llamacpp-ring"),
        *("ring-six-same-ports", "sglang-direct", "sglang-single", "trtllm-mpi-ring"),
        *("single-without-management", "switch-two-ports", "trtllm-slurm-single"),
        *("groups-pairs", "groups-one-node", "groups-ring-halves", "single-kv-offload"),
        *("groups-built", "groups-alternatives"),
    )
]


def adopted_parts(path: Path) -> set[object]:
    """What import has to recognize, each kind of engine together with how it is started."""
    (bundle,) = (bundle for bundle in BUNDLES if bundle.file == path)
    site = bundle.site
    parts: set[object] = {site.kind, len(site.nodes), *site.services, len(site.groups)}
    for part in site.parts:
        engine = part.engine
        parts |= {
            (engine.name, engine.launcher, bool(engine.venv)),
            (engine.name, len(part.nodes)),
            ("active", part.is_active),
            *engine.secrets,
        }
    return parts | {("management", node.management is None) for node in site.nodes}


@pytest.mark.drawn
@pytest.mark.parametrize(
    "path",
    representatives([*SITES, *OTHERS], adopted_parts),
    ids=lambda p: p.stem if p.stem != "site" else p.parent.name,
)
def test_round_trip(path: Path, tmp_path: Path) -> None:
    """Captured, imported and built, it has the same addresses, command words and variables.

    Nodes do not reveal alternatives that do not run, the name of a process without a container,
    how an image was built, or how much of a disk vLLM may use: those are guessed or left out.
    """
    site, adopted = captured(path, tmp_path)
    again = adopted.assumed.site
    assert again, adopted.text + text(adopted.reading.document, adopted.reading.findings)
    parts = [engine for engine in site.parts if engine.is_active]
    for engine, adopted_engine in zip(parts, again.parts, strict=True):
        assert engine.engine.venv or adopted_engine.group == engine.group
        assert [n.name for n in adopted_engine.nodes] == [n.name for n in engine.nodes]
        assert_alike(engine.nodes, adopted_engine.nodes)
    # The nodes do not drift from the bundle of the imported site, but for units whose names are
    # guessed.
    archives = sorted(tmp_path.glob("*.tar.gz"))
    found = drift(again, [read_archive(a.name, a.read_bytes()) for a in archives], None).differences
    names = {engine.group for engine in parts}
    named = [part.unit for part in again.parts if part.engine.venv and part.group not in names]
    assert not [remark for remark in found if not any(unit in remark.message for unit in named)]
    # The audit has no findings that the site does not have, or waive, too: with its own version, or
    # with the one that import guesses, which needs a different amount of memory.
    guessed = path.read_text("utf-8")
    for engine, adopted_engine in zip(parts, again.parts, strict=True):
        versions = (f"version: {e.engine.version}\n" for e in (engine, adopted_engine))
        guessed = guessed.replace(*versions)
    reported = {
        finding.rule
        for text_of_site in (path.read_text("utf-8"), guessed)
        for finding in read_site(path.name, text_of_site.encode(), beside(path)).findings
    }
    audited = {remark.rule for remark in audit(adopted)}
    assert {rule for rule in audited if rule not in path.read_text()} <= reported


# A node without a cable has no simulated network from which to read its addresses.
EXAMPLES = [
    bundle
    for bundle in BUNDLES
    if bundle.name in {path.stem for path in SITES}
    and all(node.interfaces for node in bundle.site.nodes)
]
# One site per engine: install.sh does the same for the others.
INSTALLED = {
    "lab-mesh": 3,
    "pair-llamacpp": 1,
    "slurm-trtllm": 1,
}


@pytest.mark.parametrize("bundle", EXAMPLES, ids=lambda bundle: bundle.name)
def test_round_trip_of_installed_nodes(bundle: Bundle, tmp_path: Path) -> None:
    """With the files that install.sh leaves on a node, and the interfaces from the kernel."""
    trees = bundle.copy(tmp_path / "bundle")
    interfaces = {}
    with running(bundle, trees, tmp_path) as nodes:
        for node in bundle.site.nodes:
            interfaces[node.name] = json.loads(nodes.run(node.name, "ip", "-j", "address").stdout)
    inputs = []
    for number, node in enumerate(bundle.site.nodes):
        root = trees[node.name]
        if number < INSTALLED.get(bundle.name, 0):
            root = fresh(tmp_path / f"{node.name}.root", node.name)
            done(install(trees[node.name], root, "--apply"))
        tree = dict(texts_in(root))
        described = machine(bundle.site, node, tree)
        managed = json.loads(described.printed["ip -j address"])[len(node.interfaces) :]
        printed = {
            **described.printed,
            "ip -j address": json.dumps([*interfaces[node.name], *managed]),
        }
        archive = replace(described, files={}, printed=printed).capture(tmp_path)
        inputs.append(Input("", archive.name, archive.read_bytes()))
    again = adopt(read(inputs), bundle.name, f"{bundle.name}.yaml").assumed.site
    assert again
    assert_alike(bundle.site.nodes, again.nodes)
    found = of_captures([read_archive(one.name, one.raw) for one in inputs])
    if INSTALLED.get(bundle.name) == len(inputs):
        assert found
        assert found.texts == {"site.yaml": bundle.file.read_text()}


def assert_alike(before: Sequence[Node], after: Sequence[Node]) -> None:
    for old, new in zip(before, after, strict=True):
        assert addresses(new) == addresses(old)
        assert words(new) == words(old)
        assert variables(new) == variables(old)


def texts_in(root: Path) -> Iterator[tuple[str, str]]:
    """The files in a tree, with their paths."""
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield str(path.relative_to(root)), path.read_text(errors="replace")


def addresses(node: Node) -> list[tuple[str, str, int]]:
    found = [(i.name, str(i.address), i.mtu) for i in node.interfaces]
    return found + (
        [(node.management.interface, str(node.management.address), 0)] if node.management else []
    )


def words(node: Node) -> set[str]:
    """The words of the command: each flag together with its values."""
    command = node.container.command
    return {" ".join(item) if isinstance(item, tuple) else str(item) for item in command}


def variables(node: Node) -> dict[str, str]:
    return {name: value for group in node.environment for name, value in group.values.items()}


# Single files, modelled on published ones

FOLDER = Path(__file__).parent / "adopted"
FILES: dict[str, tuple[list[str], dict[str, Any], list[str]]] = {
    "a docker run line": (
        ["run.sh"],
        {
            "topology.kind": "direct",
            "topology.rdma_halves": "first",
            "cabling.0.endpoints": ["spark1:p0", "spark2:p0"],
            "model.name": "gpt-oss-120b",
            "model.context_length": 131072,
            "model.max_sequences": 8,
            "engine.image": "vllm/vllm-openai:v0.33.0",
            "engine.version": "0.33.0",
            "engine.bind": "all",
            "engine.parallel": {"tensor": 2},
            "engine.memory_utilization": 0.9,
            "engine.args": {"enable-auto-tool-choice": True, "tool-call-parser": "openai"},
            "engine.env": {"NCCL_IB_GID_INDEX": "5"},
            "engine.secrets": ["HF_TOKEN"],
        },
        ["SG701", "SG524", "SG419"],
    ),
    "a Compose file with a script": (
        ["compose.yaml"],
        {
            "topology.kind": "direct",
            "model.name": "qwen3-235b-a22b-gptq-int4",
            "model.served_name": "qwen3.8-flash-next",
            "model.cache": "/home/spark/vllm/huggingface",
            "engine.parallel": {"tensor": 2},
            "engine.args": {"compilation-config.mode": 0, "max-modl-len": 4096},
        },
        ["SG701", "SG524", "SG632", "SG419"],
    ),
    "a recipe with its settings": (
        ["recipe.yaml", "cluster.env"],
        {
            "cabling.0.endpoints": ["spark1:p1", "spark2:p1"],
            "cabling.0.addresses": [
                ["192.168.177.11/24", "192.168.177.12/24"],
                ["TODO", "TODO"],
            ],
            "model.name": "minimax-m2.7-nvfp4",
            "model.context_length": 196608,
            "engine.image.from": "vllm-node",
            "engine.image.mods": ["mods/fix-minimax"],
            "engine.env.NCCL_IB_HCA": "rocep1s0f",
            "engine.env.NCCL_DEBUG": "INFO",
        },
        ["SG880", "SG880", "SG677", "SG609", "SG691", "SG701", "SG415"],
    ),
    "a recipe without a command": (
        ["solo.yaml"],
        {
            "topology.kind": "single",
            "engine.name": "sglang",
            "engine.version": "0.5.23",
            "engine.bind": "local",
            "engine.memory_utilization": 0.8,
            "model.context_length": 65536,
        },
        [],
    ),
    "NVIDIA's cluster file": (
        ["cluster.json"],
        {
            "topology.kind": "direct",
            "nodes.0.management.address": "192.168.1.10/24",
            "nodes.1.management.address": "192.168.1.11/24",
        },
        [],
    ),
    "a netplan file": (
        ["40-cx7.yaml"],
        {
            "topology.kind": "direct",
            "cabling.0.endpoints": ["spark1:p0", "spark2:p0"],
            "cabling.0.addresses.0.0": "192.168.100.12/24",
            "cabling.0.addresses.0.1": "TODO",
            "cabling.0.addresses.1.0": "192.168.200.18/24",
            "engine": None,
        },
        ["SG880", "SG880"],
    ),
    "nccl.conf beside a docker run line": (
        ["run.sh", "nccl.conf"],
        {"engine.env": {"NCCL_IB_GID_INDEX": "5"}},
        ["SG701", "SG524", "SG419"],
    ),
    "nccl.conf beside netplan": (
        ["spark1=40-cx7.yaml", "spark1=nccl.conf"],
        {"engine.env": {"NCCL_IB_DISABLE": "1", "NCCL_IB_HCA": "mlx5_0"}, "engine.name": "TODO"},
        ["SG880"] * 6 + ["SG416", "SG414"],
    ),
}


def value(data: Any, path: str) -> Any:
    """The value at a path of a site file."""
    for part in path.split("."):
        data = data[int(part)] if part.isdigit() else (data or {}).get(part)
    return data


@pytest.mark.parametrize("case", FILES)
def test_single_files(case: str, sparkgen: Command, tmp_path: Path) -> None:
    names, expected, rules = FILES[case]
    outcome = sparkgen("import", *names, "-o", tmp_path / "mine.yaml", cwd=FOLDER)
    data = yaml.safe_load((tmp_path / "mine.yaml").read_text())
    assert {path: value(data, path) for path in expected} == expected
    found = [line[line.index("[") + 1 :][:5] for line in outcome.err.splitlines() if "[SG" in line]
    assert found == rules
    assert outcome.code == (3 if "error[" in outcome.err else 0)
    assert "hf_abc" not in outcome.out + outcome.err + (tmp_path / "mine.yaml").read_text()


# Forms of recipes and of `docker run` lines, with the imported values and the findings.
FORMS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "bounds of a container": (
        """\
services:
  vllm:
    image: vllm/vllm-openai:v0.33.0
    network_mode: host
    shm_size: 34359738368
    mem_limit: 100 GB
    cpuset: 5-9,15
    command: openai/gpt-oss-120b --host 10.0.0.11 --gpu-memory-utilization 0.7
""",
        {"engine.container": {"memory": "100g", "shm": "32g", "cpus": "5-9,15"}},
        [],
    ),
    "bounds that are the node's, or no whole GiB": (
        """\
docker run --ipc host --shm-size 64g -m 1500m vllm/vllm-openai:v0.33.0 openai/gpt-oss-120b \\
  --host 10.0.0.11 --gpu-memory-utilization 0.7
""",
        {"engine.memory_utilization": 0.7, "engine.container": None},
        [],
    ),
    "doubled braces": (
        """\
recipe_version: "2"
model: nvidia/MiniMax-M2.7-NVFP4
container: ghcr.io/somebody/nightly:latest
defaults: {tokens: 5, host: 10.0.0.11}
command: |
  vllm serve {model} --host {host} --gpu-memory-utilization 0.8 --max-model-len 65536 \\
    --reasoning-config '{"reasoning_parser":"minimax_m2"}' \\
    --speculative-config '{{"model":"somebody/M2.7-EAGLE3","num_speculative_tokens":{tokens}}}'
""",
        {
            "engine.version": "0.33.0+own",
            "engine.args": {"reasoning-config": {"reasoning_parser": "minimax_m2"}},
            "model.speculative": {
                "source": "somebody/M2.7-EAGLE3",
                "tokens": 5,
                "method": "eagle3",
            },
        },
        ["SG609"],
    ),
    "lists, short names, and a file that a mod brings": (
        """\
recipe_version: "1"
model: openai/gpt-oss-120b
container: somebody/dgx-spark-sglang:0.5.9-t5
mods: [mods/template]
defaults: {tensor_parallel: 2, names: "oss openai/gpt-oss-120b", sizes: 1 2 4}
command: |
  sglang serve --model-path {model} --tp {tensor_parallel} --served-model-name {names} \\
    --cuda-graph-bs {sizes} --speculative-algo NEXTN --speculative-num-steps 3 \\
    --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --chat-template oss.jinja \\
    --host 10.0.0.11
""",
        {
            "engine.version": "0.5.9+own",
            "engine.parallel": {"tensor": 2},
            "model.served_name": "oss",
            "model.speculative.method": "nextn",
            "topology.kind": "direct",
            "engine.args": {"cuda-graph-bs": [1, 2, 4]},
            "engine.image": {
                "name": "dgx-spark-sglang-with-mods:1",
                "from": "somebody/dgx-spark-sglang:0.5.9-t5",
                "mods": ["mods/template"],
            },
        },
        [],
    ),
    "a KV cache on disk": (
        """\
docker run -v /nvme/kv:/kv vllm/vllm-openai:v0.33.0 openai/gpt-oss-120b --max-model-len 32768 \\
  --gpu-memory-utilization 0.8 --host 10.0.0.11 --enable-cumem-allocator --kv-transfer-config \\
  '{"kv_connector":"OffloadingConnector","kv_role":"kv_both","kv_connector_extra_config":{
  "spec_name":"TieringOffloadingSpec","cpu_bytes_to_use":2147483648,"eviction_policy":"lru",
  "secondary_tiers":[{"type":"fs","root_dir":"/kv/a","max_bytes":300647710720}]}}'
""",
        {
            "model.kv_offload": {"path": "/nvme/kv/a", "gib": 280, "buffer_gib": 2},
            "engine.bind": None,
            "engine.args": None,
        },
        [],
    ),
    "a KV cache on disk, by LMCache": (
        """\
docker run -e LMCACHE_LOCAL_DISK=file:///srv/kv/ -e LMCACHE_MAX_LOCAL_DISK_SIZE=200 \\
  -e LMCACHE_MAX_LOCAL_CPU_SIZE=5.5 vllm/vllm-openai:v0.33.0 openai/gpt-oss-120b \\
  --max-model-len 32768 --gpu-memory-utilization 0.8 --host 10.0.0.11 \\
  --kv-transfer-config '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'
""",
        {
            "model.kv_offload.path": "/srv/kv",
            "model.kv_offload.gib": 200,
            "model.kv_offload.buffer_gib": 5,
            "model.kv_offload.connector": "lmcache",
            "engine.env": None,
        },
        [],
    ),
    "a KV cache on disk, with SGLang": (
        """\
docker run --gpus all -e SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR=/srv/kv \\
  lmsysorg/sglang:v0.5.23-cu130 sglang serve --model-path openai/gpt-oss-120b --host 10.0.0.11 \\
  --context-length 32768 --mem-fraction-static 0.8 --enable-hierarchical-cache \\
  --hicache-storage-backend file --hicache-size 7 --hicache-io-backend direct
""",
        {
            "model.kv_offload": {"path": "/srv/kv", "gib": 100, "buffer_gib": 7},
            "engine.args": {"hicache-io-backend": "direct"},
            "engine.env": None,
        },
        [],
    ),
    "an engine's own variable for the node's address": (
        """\
ip addr add 10.0.0.11/24 dev enP7s7
docker run -e SGLANG_HOST_IP=10.0.0.11 lmsysorg/sglang:v0.5.23-cu130 \\
  sglang serve --model-path openai/gpt-oss-120b --tp 2 --nnodes 2 --node-rank 0 --host 10.0.0.11 \\
  --context-length 32768 --mem-fraction-static 0.8
""",
        {"topology": {"kind": "direct", "control_plane": "management"}, "engine.env": None},
        [],
    ),
    "a tag that is no release of the engine": (
        "docker run somebody/vllm-own:0.1.1 vllm serve openai/gpt-oss-120b --host 10.0.0.11"
        " --gpu-memory-utilization 0.8 --max-model-len 32768",
        {"engine.version": "0.33.0+own"},
        [],
    ),
    "weights that llama.cpp fetches": (
        """\
model: Qwen/Qwen3-1.7B-GGUF:Q8_0
runtime: llama-cpp
container: somebody/llama-cpp:b11003
defaults: {host: 10.0.0.11, ctx_size: 8192}
""",
        {
            "model.source": "Qwen/Qwen3-1.7B-GGUF",
            "model.file": "TODO",
            "model.context_length": 8192,
        },
        [],
    ),
    "a recipe for TensorRT-LLM": (
        """\
model: openai/gpt-oss-120b
runtime: trtllm
container: nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc29
defaults: {host: 10.0.0.11, tensor_parallel: 2, max_batch_size: 8, max_model_len: 32768}
""",
        {
            "engine.parallel.tensor": 2,
            "model.context_length": 32768,
            "model.max_sequences": 8,
        },
        ["SG669"],
    ),
    "a model that a variable of the container names, but no secret": (
        """\
docker run -e MODEL=openai/gpt-oss-120b -e VLLM_API_KEY=sk-0123456789 vllm/vllm-openai:v0.33.0 \\
  bash -c 'vllm serve "$MODEL" --gpu-memory-utilization 0.8 --host 10.0.0.11 \\
  --max-model-len 32768 --served-model-name "$VLLM_API_KEY"'
""",
        {"model.name": "gpt-oss-120b", "model.served_name": None, "model.context_length": 32768},
        ["SG845"],
    ),
    "a context with a suffix, as vLLM reads it": (
        "docker run vllm/vllm-openai:v0.33.0 --model openai/gpt-oss-120b --max-model-len 32k"
        " --gpu-memory-utilization .8 --host 10.0.0.11",
        {"model.context_length": 32000, "engine.memory_utilization": 0.8},
        [],
    ),
    "a service beside others": (
        """\
services:
  app:
    image: example/app:1
    environment: {VLLM_BASE_URL: "http://vllm:8000/v1", NCCL_DEBUG: TRACE}
  ranks:
    image: nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc29
    command: /opt/entrypoint.sh
  vllm:
    image: vllm/vllm-openai:v0.33.0
    command: >-
      --model openai/gpt-oss-120b --host 10.0.0.11 --gpu-memory-utilization 0.8
      --max-model-len 32768
""",
        {"engine.name": "vllm", "model": {"name": "gpt-oss-120b", "context_length": 32768}},
        [],
    ),
    "mounts, and keys that stand elsewhere": (
        """\
export HF_TOKEN=<your token>
export NGC_API_KEY=nvapi-abcdefghijklmnopqrst
docker run --network host -v /srv/models:/models:ro -v ~/mine.py:/usr/lib/mine.py \\
  -v /opt/t.jinja:/t/t.jinja:ro --mount type=bind,source=/srv/plug,target=/plug,readonly \\
  -e HF_TOKEN=$HF_TOKEN -e NGC_API_KEY="$NGC_API_KEY" -e NCCL_TUNER_PLUGIN=/plug/tuner.so \\
  vllm/vllm-openai:v0.33.0 /models/own --chat-template /t/t.jinja --max-model-len auto \\
  --served-model-name own assistant lab/own \\
  --host 10.0.0.11 --gpu-memory-utilization 0.8
""",
        {
            "model.source": "/srv/models/own",
            "model.served_name": "own",
            "model.aliases": ["assistant", "lab/own"],
            "engine.files": [
                {"path": "/opt/t.jinja", "target": "/t/t.jinja"},
                {"path": "/srv/plug", "target": "/plug"},
            ],
        },
        ["SG845"],
    ),
    "any tag of vLLM's own image, and a model that the shell knows": (
        """\
docker container run --gpus all -p 8100:8000 -v ~/.cache/huggingface:/root/.cache/huggingface \\
  ${HF_TOKEN:+-e "HF_TOKEN=$HF_TOKEN"} vllm/vllm-openai:cu130-nightly ${MODEL_HANDLE} \\
  --gpu-memory-utilization 0.8 --host 127.0.0.1 --port ${PORT:-8000} > run.log 2>&1
""",
        {
            "engine.image": "vllm/vllm-openai:cu130-nightly",
            "engine.port": 8100,
            "engine.memory_utilization": 0.8,
            "model.name": "TODO",
        },
        ["SG609"],
    ),
    "a shell's options before its script, words in one variable, and lists": (
        """\
EXTRA="--enable-prefix-caching --max-num-seqs 4"
ARGS=(
  # what all models take
  --served-model-name oss
)
ARGS+=(--host 127.0.0.1)
docker run --privileged=false vllm/vllm-openai:v0.33.0-cu130 \\
  bash -c -i "vllm serve --model openai/gpt-oss-120b \\
  --gpu-memory-utilization 0.8 --max-model-len 32768 $EXTRA" "${ARGS[@]}"
""",
        {
            "engine.version": "0.33.0",
            "engine.args": {"enable-prefix-caching": True},
            "engine.bind": "local",
            "model.max_sequences": 4,
            "model.served_name": "oss",
        },
        [],
    ),
    "branches that say otherwise": (
        """\
case $1 in
  big) MODEL=openai/gpt-oss-120b ;;
  small) MODEL=openai/gpt-oss-20b ;;
esac
docker run vllm/vllm-openai:v0.33.0 --model "$MODEL" --gpu-memory-utilization 0.8 --host 10.0.0.11
""",
        {"engine.memory_utilization": 0.8, "model.name": "TODO"},
        [],
    ),
    "a command without a container, with what its script exports": (
        """\
#!/bin/bash
PREFIX=10.20.0
sudo ip addr add ${PREFIX}.1/24 dev enp1s0f0np0
sudo ip link set enp1s0f0np0 mtu 9000 up
sudo ip a add 10.20.1.1/24 dev enP2p1s0f0np0
export NCCL_IB_HCA=rocep1s0f0,roceP2p1s0f0   # both halves
export NCCL_NET_GDR_LEVEL=5
export COMMENT="vllm serve is started below"
echo "vllm serve nothing"
nohup vllm serve openai/gpt-oss-120b --tensor-parallel-size 2 --host 10.0.0.11 \\
  --gpu-memory-utilization 0.8 --max-model-len 32768 > serve.log 2>&1 &
""",
        {
            "nodes": [{"name": "spark1"}, {"name": "spark2"}],
            "cabling": [
                {
                    "endpoints": ["spark1:p0", "spark2:p0"],
                    "addresses": [["10.20.0.1/24", "TODO"], ["10.20.1.1/24", "TODO"]],
                }
            ],
            "engine.env": {"NCCL_NET_GDR_LEVEL": "5"},
        },
        ["SG418"],
    ),
    "files that a script writes, one for each node": (
        """\
sudo tee /etc/netplan/40-cx7.yaml > /dev/null <<EOF
network:
  version: 2
  ethernets:
    enp1s0f1np1: {addresses: [192.168.100.10/24]}
    enP2p1s0f1np1: {addresses: [192.168.101.10/24]}
EOF
sudo tee /etc/nccl.conf <<'EOF'
NCCL_NET_GDR_LEVEL=5
EOF
# on the other node
sudo tee /etc/netplan/40-cx7.yaml > /dev/null <<EOF
network:
  version: 2
  ethernets:
    enp1s0f1np1: {addresses: [192.168.100.11/24]}
    enP2p1s0f1np1: {addresses: [192.168.101.11/24]}
EOF
""",
        {
            "cabling": [
                {
                    "endpoints": ["spark1:p1", "spark2:p1"],
                    "addresses": [
                        ["192.168.100.10/24", "192.168.100.11/24"],
                        ["192.168.101.10/24", "192.168.101.11/24"],
                    ],
                }
            ],
            "engine.env": {"NCCL_NET_GDR_LEVEL": "5"},
        },
        ["SG418"],
    ),
    "what Compose merges, and leaves to the container's shell": (
        """\
x-common: &common
  image: vllm/vllm-openai:v0.33.0
  environment: &env {NCCL_IB_TIMEOUT: 22}
  volumes: ["${HF:-${HOME}/.cache/huggingface}:/root/.cache/huggingface"]
services:
  head:
    <<: *common
    ports: ["8001:8000"]
    environment: {<<: *env, OWN_NAME: "${NOBODY}"}
    command: >
      --model openai/gpt-oss-120b --gpu-memory-utilization 0.8 --max-model-len 32768
      --host 10.0.0.11 --served-model-name $${NAME:-oss}
""",
        {
            "engine.port": 8001,
            "engine.env": {"NCCL_IB_TIMEOUT": "22"},
            "model": {"name": "gpt-oss-120b", "context_length": 32768},
        },
        [],
    ),
    "a network that is nobody's, and a template's gaps": (
        """\
sudo ip addr add 10.0.0.1/24 dev enp1s0f0np0
sudo nmcli con add type ethernet ifname enP2p1s0f0np0 ipv4.method manual ipv4.addresses 10.0.1.1/24
vllm serve openai/gpt-oss-120b --port __PORT__ --tensor-parallel-size 2 --host 10.0.0.1 \\
  --gpu-memory-utilization 0.8 --max-model-len 32768
""",
        {"nodes.0.management": None, "engine.image": "TODO"},
        [],
    ),
}


def lost(adopted: Adoption) -> list[Ended]:
    """What the site file does not hold."""
    return [one for one in adopted.ended if one.end in (None, ItemEnd.LOST)]


def is_valid_or_unfinished(adopted: Adoption) -> bool:
    """Whether there is a site, or else nothing but values that the file says are missing."""
    findings = {finding.rule for finding in adopted.reading.findings}
    return bool(adopted.reading.site) or findings == {"SG880"}


def with_mods(path: str) -> Source:
    """The mods that a recipe names, as if they were copied beside the site."""
    is_mod = path.startswith("mods/")
    run = SourceFile("run.sh", b"true\n", is_executable=True)
    return Source((run,), is_folder=True) if is_mod else nothing_beside(path)


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_recipes_and_docker_run(form: str) -> None:
    text, expected, rules = FORMS[form]
    found = read([Input("", "given", text.encode())])
    adopted = adopt(found, "mine", "mine.yaml", beside=with_mods)
    data = yaml.safe_load(adopted.text)
    assert {path: value(data, path) for path in expected} == expected
    assert [remark.rule for remark in audit(adopted)] == rules
    assert is_valid_or_unfinished(adopted), adopted.text


def test_losses_and_guesses_are_reported(sparkgen: Command, tmp_path: Path) -> None:
    outcome = sparkgen("import", "recipe.yaml", "--format", "json", cwd=FOLDER)
    data = json.loads(outcome.out)
    (loss,) = data["losses"]
    assert (loss["file"], loss["line"]) == ("recipe.yaml", 5)
    assert "spark2, which no file is of" in data["guesses"]
    assert "# guessed: the version of vLLM" in data["text"]


REFUSED = {
    "nothing.txt": (b"hello\n", "it says nothing of a cluster"),
    "site.yaml": (
        b"version: 1\nname: lab\n",
        "it is YAML or JSON of no kind that is known here",
    ),
    "other.sh": (
        b"A=1\ndocker run --rm -e B=2 redis:7 redis-server\n",
        "it says nothing of a cluster",
    ),
    "other.env": (b"PORT=1\n", "it is a file of variables: name the file that reads it, too"),
    "bytes.bin": (b"\xff\xfe\x00", "it is not text"),
    "big.txt": (b"a=b\n" * 300_000, "it has more than 256 KiB"),
    "many.sh": (b"vllm serve a/b\n" * 300, "it has more than 200 containers"),
    "pod.yaml": (
        b"apiVersion: v1\nkind: Pod\nspec: {containers: [{name: vllm}]}\n",
        "it is a manifest of Kubernetes; nothing is known of vllm that serves a model",
    ),
    "tab.yaml": (b"network:\n\tversion: 2\n", "line 2: a tab in the indentation of YAML"),
    "bad.tar.gz": (b"\x1f\x8b\x08\x00broken", "it is cut off"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("form", ["text", "json"])
def test_files_without_a_site(form: str, name: str, sparkgen: Command, tmp_path: Path) -> None:
    raw, why = REFUSED[name]
    (tmp_path / name).write_bytes(raw)
    outcome = sparkgen("import", name, "-o", "mine.yaml", "--format", form, cwd=tmp_path)
    assert outcome.code == 3
    assert not (tmp_path / "mine.yaml").exists()
    if form == "text":
        assert outcome.err.startswith(f"error[SG830]: {why}\n --> {name}\n  = help: ")
    else:
        (finding,) = json.loads(outcome.out)["findings"]
        assert (finding["rule"], finding["message"], finding["file"]) == ("SG830", why, name)


# Users' records of a node's network, in the formats of several programs, and the result.
NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "NetworkManager": (
        "[connection]\nid=CX7\ntype=ethernet\ninterface-name=enp1s0f1np1\n[ethernet]\nmtu=9000\n"
        "[ipv4]\naddress1=192.168.9.{},192.168.9.1\nmethod=manual\n",
        {"cabling.0.endpoints": ["spark1:p1", "spark2:p1"]},
    ),
    "networkd": (
        "[Match]\nName=enp1s0f1np1\n\n[Link]\nMTUBytes=9000\n\n[Network]\nAddress=192.168.9.{}\n",
        {"cabling.0.endpoints": ["spark1:p1", "spark2:p1"]},
    ),
    "ip address": (
        "4: enp1s0f1np1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP\n"
        "    link/ether 4c:bb:47:2c:a8:ae brd ff:ff:ff:ff:ff:ff\n"
        "    inet 192.168.9.{} brd 192.168.9.255 scope global enp1s0f1np1\n",
        {"cabling.0.endpoints": ["spark1:p1", "spark2:p1"]},
    ),
    "ip -br address": (
        "lo UNKNOWN 127.0.0.1/8\nenp1s0f0np0 DOWN\nenp1s0f1np1 UP 192.168.9.{} fe80::1/64\n",
        {"cabling.0.endpoints": ["spark1:p1", "spark2:p1"]},
    ),
    "ip -o address": (
        "1: lo    inet 127.0.0.1/8 scope host lo\\ valid_lft forever\n"
        "3: enp1s0f1np1    inet 192.168.9.{} brd 192.168.9.255 scope global enp1s0f1np1\\\n",
        {"cabling.0.endpoints": ["spark1:p1", "spark2:p1"]},
    ),
    # Its last line has no newline.
    "ibdev2netdev": (
        "rocep1s0f0 port 1 ==> enp1s0f0np0 (Down)\nrocep1s0f1 port 1 ==> enp1s0f1np1 (Up)",
        {"cabling.0.endpoints": ["spark1:p1", "spark2:p1"], "topology.kind": "direct"},
    ),
}


@pytest.mark.parametrize("form", NETWORKS)
def test_networks(form: str) -> None:
    text, expected = NETWORKS[form]
    inputs = [
        Input(f"spark{n}", f"spark{n}.txt", text.replace("{}", f"{n}/24").encode()) for n in (1, 2)
    ]
    adopted = adopt(read(inputs), "mine", "mine.yaml")
    data = yaml.safe_load(adopted.text)
    assert {path: value(data, path) for path in expected} == expected
    if "{}" in text:
        assert value(data, "cabling.0.addresses.0") == ["192.168.9.1/24", "192.168.9.2/24"]


def heard(name: str, *lines: str) -> Machine:
    """A node whose ports have a link but no address, and what LLDP receives on them."""
    links = [address(half, up=True, mtu=9000) for half in ("enp1s0f0np0", "enP2p1s0f0np0")]
    links += [address(half, up=True, mtu=9000) for half in ("enp1s0f1np1", "enP2p1s0f1np1")]
    printed = {
        "ip -j address": json.dumps(links),
        "lldpcli -f keyvalue show neighbors": "".join(f"lldp.{line}\n" for line in lines),
    }
    return Machine(name, {}, printed)


RING = [f"spark{n}:p0 spark{n % 3 + 1}:p1" for n in (1, 2, 3)]


def test_cables_from_lldp(tmp_path: Path) -> None:
    machines = [
        heard(
            f"spark{n}",
            f"enp1s0f0np0.chassis.name=spark{n % 3 + 1}.lan",
            "enp1s0f0np0.port.descr=enp1s0f1np1",
        )
        for n in (1, 2, 3)
    ]
    archives = [machine.capture(tmp_path) for machine in machines]
    inputs = [Input("", str(archive), archive.read_bytes()) for archive in archives]
    data = yaml.safe_load(adopt(read(inputs), "mine", "mine.yaml").text)
    assert data["topology"]["kind"] == "ring"
    assert [" ".join(cable["endpoints"]) for cable in data["cabling"]] == RING


def test_cables_from_options(sparkgen: Command, tmp_path: Path) -> None:
    text = NETWORKS["ibdev2netdev"][0].replace("Down", "Up")
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(text)
    options = [word for cable in RING for word in ("--cable", cable.replace(" ", "="))]
    files = ["spark1=a", "spark2=b", "spark3=c"]
    outcome = sparkgen("import", *files, *options, "--format", "json", cwd=tmp_path)
    data = yaml.safe_load(json.loads(outcome.out)["text"])
    assert [" ".join(cable["endpoints"]) for cable in data["cabling"]] == RING
    assert sparkgen("import", *files, "--cable", "spark1:2=x", cwd=tmp_path).code == 2


@pytest.mark.parametrize(
    ("word", "kind", "is_guess"), [("mesh", "ring", False), ("cluster", "switch", True)]
)
def test_three_nodes_of_a_recipe(word: str, kind: str, is_guess: bool) -> None:
    """A mesh of three is a ring; that a switch joins nodes is a guess if nothing says so."""
    text = (
        f"recipe_version: '1'\ndescription: three Sparks in a {word}\nmodel: a/b\n"
        "container: vllm-node\ndefaults: {pipeline_parallel: 3}\n"
        "command: vllm serve {model} --host 10.0.0.1 -pp {pipeline_parallel}\n"
    )
    adopted = adopt(read([Input("", "recipe.yaml", text.encode())]), "mine", "mine.yaml")
    assert yaml.safe_load(adopted.text)["topology"]["kind"] == kind
    assert ("that a switch joins the nodes" in adopted.text) is is_guess


@pytest.mark.parametrize(
    ("text", "kept", "line"),
    [
        ("{big} --port 8000 &\n{small} --port 8000", "gpt-oss-120b", 1),
        ("{big} --port 8000 &\n{big} --port 8000 --max-num-seqs 4", "gpt-oss-120b", None),
        ('if test -n "$X"; then\n{small} --port 1\nelse\n{big} --port 2\nfi', "gpt-oss-20b", 3),
        ("case $1 in\na) exec {small} --port 1;;\n*) {big} --port 2;;\nesac", "gpt-oss-20b", 2),
        ('if test -n "$X"; then\n{big} --port 1\nelse\n{big} --port 2\nfi', "gpt-oss-120b", 3),
    ],
)
def test_only_one_of_several_engines_runs(text: str, kept: str, line: int | None) -> None:
    """Engines with one port, or in two branches of a condition, never serve together."""
    small, big = (f"vllm serve openai/gpt-oss-{size}" for size in ("20b", "120b"))
    result = import_script(text.format(small=small, big=big))
    why = (
        "it shares a port or a condition with another: a node runs one of them; "
        "none of its settings is here"
    )
    said = [(one.why, one.item.place.span.line - 1) for one in lost(result) if one.why == why]
    assert said == ([(why, line)] if line is not None else [])
    assert result.draft.get("model", "name") == kept


def test_engines_of_one_branch_serve_together() -> None:
    both = "vllm serve openai/gpt-oss-120b --port 1 &\nvllm serve openai/gpt-oss-20b --port 2\n"
    for script in (both, f'if test -n "$X"; then\n{both}fi'):
        groups = import_script(script).draft.get("groups")
        assert [group["model"]["name"] for group in groups] == ["gpt-oss-120b", "gpt-oss-20b"]


def import_script(text: str) -> Adoption:
    return adopt(read([Input("", "run.sh", f"#!/bin/bash\n{text}\n".encode())]), "a", "a.yaml")


def test_a_function_that_hands_its_arguments_on() -> None:
    """A wrapper of a command is that command; one that does more is not."""
    call = "run_it run --gpus all vllm/vllm-openai:v0.23.0 --model openai/gpt-oss-120b --port 8123"
    for wrapper in ('run_it() { docker "$@"; }', 'run_it () {\n  sudo docker "$@"\n}'):
        result = import_script(f"{wrapper}\n{call}")
        assert result.draft.get("engine", "image") == "vllm/vllm-openai:v0.23.0"
        assert str(result.draft.get("engine", "port")) == "8123"
    with pytest.raises(CaptureError, match="starts no engine"):
        import_script("run_it() {" + 9_999 * " " + "x " * 5_000)
    with pytest.raises(CaptureError, match="starts no engine"):
        import_script(f'run_it() {{ echo "$@"; }}\n{call}')


def test_lines_of_a_folded_text_are_one_command() -> None:
    """In YAML's folded text ends of lines are spaces, also in quotes, unless it keeps them."""
    lines = 'bash -c "echo ready &&', "vllm serve openai/gpt-oss-120b", "--max-num-seqs 7", '"'
    for fold, indent, limit in ((">", 0, "7"), (">", 2, "None"), ("|", 0, "None")):
        command = "".join(f"      {' ' * indent * (n == 2)}{own}\n" for n, own in enumerate(lines))
        text = (
            f"services:\n  a:\n    image: vllm/vllm-openai:v0.23.0\n    command: {fold}\n{command}"
        )
        result = adopt(read([Input("", "compose.yaml", text.encode())]), "mine", "mine.yaml")
        assert result.draft.get("model", "name") == "gpt-oss-120b"
        assert str(result.draft.get("model", "max_sequences")) == limit


def test_variables_that_compose_leaves_to_a_shell() -> None:
    """Compose takes one of two dollar signs away, whatever quotes are around them."""
    for quote in "'\"":
        text = (
            "services:\n  a:\n    image: vllm/vllm-openai:v0.33.0\n"
            "    environment: {OWN: openai/gpt-oss-120b}\n    volumes: [/opt/hf:/x/huggingface]\n"
            f"    command: >\n      sh -c {quote}vllm serve $${{OWN}}\n"
            f"      --download-dir /x/huggingface{quote}\n"
        )
        result = adopt(read([Input("", "compose.yaml", text.encode())]), "mine", "mine.yaml")
        assert result.draft.get("model", "name") == "gpt-oss-120b"
        # Models are where the site has them, not also where the setting says.
        assert result.draft.get("model", "cache") == "/opt/hf"
        assert not result.draft.get("engine", "files")
        assert not result.draft.get("engine", "args")
        (moved,) = (one for one in result.ended if one.item.what == "--download-dir")
        assert (moved.end, moved.why[:10]) == (ItemEnd.LOST, "models are")
        assert [f.rule for f in result.findings if f.severity is Severity.ERROR] == []


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("vllm/vllm-openai:vllm-x86_64-cu13-0.25.1-7a33ba9", "0.25.1+own"),
        ("own/vllm:v0.26.1rc1.dev693-cu130", "0.26.1rc1.dev693+own"),
        ("own/vllm:cuda-13.0.1-vllm-0.27.0", "0.27.0+own"),
        ("own/vllm:torch2.9.1", "0.33.0+own"),
    ],
)
def test_version_in_a_tag(image: str, version: str) -> None:
    text = f"docker run {image} vllm serve openai/gpt-oss-20b\n"
    result = adopt(read([Input("", "start.sh", text.encode())]), "mine", "mine.yaml")
    assert yaml.safe_load(result.text)["engine"]["version"] == version


def test_guessed_version_is_one_that_takes_the_settings() -> None:
    """From 0.19 to 0.23, vLLM stops at that variable on a GB10; later ones do not know it."""
    text = "export VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8=1\nvllm serve openai/gpt-oss-120b\n"
    result = adopt(read([Input("", "start.sh", text.encode())]), "mine", "mine.yaml")
    assert yaml.safe_load(result.text)["engine"]["version"] == "0.18.1"


def test_files_beside_a_compose_file() -> None:
    text = (
        "services:\n  vllm:\n    image: own/vllm:1\n    volumes: ['./moe-configs:/moe:ro']\n"
        "    environment: {VLLM_TUNED_CONFIG_FOLDER: /moe, NCCL_IB_GID_INDEX: '${INDEX:-}'}\n"
        "    command: [vllm, serve, openai/gpt-oss-20b]\n"
    )
    result = adopt(read([Input("", "compose.yaml", text.encode())]), "mine", "mine.yaml")
    engine = yaml.safe_load(result.text)["engine"]
    assert engine["files"] == [{"source": "moe-configs", "target": "/moe"}]
    assert list(engine["env"]) == ["VLLM_TUNED_CONFIG_FOLDER"]


def test_plugin_whose_path_only_a_shell_knows() -> None:
    text = (
        "vllm serve openai/gpt-oss-20b --reasoning-parser nano_v3"
        ' --reasoning-parser-plugin "$(dirname "$0")/nano_v3.py"\n'
    )
    result = adopt(read([Input("", "start.sh", text.encode())]), "mine", "mine.yaml")
    assert yaml.safe_load(result.text)["engine"]["args"]["reasoning-parser-plugin"] == "TODO"


def test_engine_that_is_started_in_a_container_with_ray() -> None:
    run = import_script(
        "docker run -d --gpus all --name node vllm/vllm-openai:v0.33.0 ray start --head --block\n"
        "docker exec -d node vllm serve openai/gpt-oss-120b --max-model-len 65536 --port 8001\n"
    )
    assert str(run.draft.get("model", "context_length")) == "65536"
    assert str(run.draft.get("engine", "port")) == "8001"


def test_what_a_script_exports_stays_outside_containers() -> None:
    serve = "vllm serve openai/gpt-oss-120b"
    for start, env in (("", {"NCCL_DEBUG": "INFO"}), ("docker exec -it node ", None)):
        result = import_script(f"export NCCL_DEBUG=INFO\n{start}{serve}")
        assert result.draft.get("engine", "env") == env


def test_macros_of_llama_swap_with_a_hyphen() -> None:
    text = (
        "macros:\n  run-it: /opt/bin/llama-server --port ${PORT}\nmodels:\n  a:\n"
        "    cmd: ${run-it} -m /models/gpt-oss-120b.gguf -c 8192\n"
    )
    result = adopt(read([Input("", "config.yaml", text.encode())]), "mine", "mine.yaml")
    assert str(result.draft.get("model", "context_length")) == "8192"


VLLM = (
    "docker run --network host vllm/vllm-openai:v0.33.0 {} --gpu-memory-utilization 0.4"
    " --max-model-len 8192 --host 10.0.0.1{}"
)
RANKS = "-tp 2 --nnodes 2 --node-rank {} --master-addr 10.0.0.1{}"
LLAMA = "docker run --network host ghcr.io/ggml-org/llama.cpp:server-cuda13-b11434"
RPC = "docker run --network host --entrypoint rpc-server somebody/llama.cpp:own -H"
RAY = "docker run --network host --entrypoint bash somebody/vllm-ray:0.33.0 -c"
PAIR = [("spark1", "192.168.1.1/24"), ("spark2", "192.168.1.2/24")]
TWO_PAIRS = [*PAIR, ("spark3", "192.168.2.1/24"), ("spark4", "192.168.2.2/24")]
# What nodes run, each with its address on p0, and the groups imported from that.
GROUPS: dict[str, tuple[list[tuple[str, str]], dict[str, str], str, list[Any]]] = {
    "two on one node": (
        [("spark1", "")],
        {
            "spark1": VLLM.format("openai/gpt-oss-20b", 1)
            + "\n"
            + VLLM.format("Qwen/Qwen3-Embedding-8B --port 8001", 1)
        },
        "single",
        [
            ("gpt-oss-20b", ["spark1"], "gpt-oss-20b"),
            ("qwen3-embedding-8b", ["spark1"], "qwen3-embedding-8b"),
        ],
    ),
    "two on one node, of which one has its port published as another": (
        [("spark1", "")],
        {
            "spark1": VLLM.format("openai/gpt-oss-20b", 1)
            + "\n"
            + VLLM.format("Qwen/Qwen3-Embedding-8B", 1).replace("--network host", "-p 8001:8000")
        },
        "single",
        [
            ("gpt-oss-20b", ["spark1"], "gpt-oss-20b"),
            ("qwen3-embedding-8b", ["spark1"], "qwen3-embedding-8b"),
        ],
    ),
    "replicas on nodes that no cable joins": (
        [("spark1", ""), ("spark2", "")],
        {f"spark{n}": VLLM.format("openai/gpt-oss-20b", n) for n in (1, 2)},
        "single",
        [("gpt-oss-20b", ["spark1"], "gpt-oss-20b"), ("gpt-oss-20b-2", ["spark2"], "gpt-oss-20b")],
    ),
    "replicas on nodes that a cable joins": (
        PAIR,
        {f"spark{n}": VLLM.format("openai/gpt-oss-20b", n) for n in (1, 2)},
        "direct",
        [("gpt-oss-20b", ["spark1"], "gpt-oss-20b"), ("gpt-oss-20b-2", ["spark2"], "gpt-oss-20b")],
    ),
    "two pairs, of which one is told in another order": (
        TWO_PAIRS,
        {
            "spark1": f"{VLLM.format('openai/gpt-oss-20b', 1)} {RANKS.format(0, 1)}",
            "spark2": f"{VLLM.format('openai/gpt-oss-20b', 2)} {RANKS.format(1, 1)} --headless",
            "spark3": f"{VLLM.format('openai/gpt-oss-120b', 3)} {RANKS.format(1, 4)} --headless",
            "spark4": f"{VLLM.format('openai/gpt-oss-120b', 4)} {RANKS.format(0, 4)}",
        },
        "pairs",
        [
            ("gpt-oss-20b", ["spark1", "spark2"], "gpt-oss-20b"),
            ("gpt-oss-120b", ["spark4", "spark3"], "gpt-oss-120b"),
        ],
    ),
    "a pair under Ray, and one of llama.cpp": (
        TWO_PAIRS,
        {
            "spark1": f"{RAY} 'ray start --head && vllm serve openai/gpt-oss-120b -tp 2 --host"
            " 10.0.0.11 --distributed-executor-backend ray --gpu-memory-utilization 0.8'",
            "spark2": f"{RAY} 'ray start --address=10.0.0.11:6379 --block'",
            "spark3": f"{LLAMA} -m /srv/gpt-oss-20b.gguf --host 10.0.0.13 --rpc 192.168.2.2:50052",
            "spark4": f"{RPC} 192.168.2.2",
        },
        "pairs",
        [
            ("gpt-oss-120b", ["spark1", "spark2"], "gpt-oss-120b"),
            ("gpt-oss-20b", ["spark3", "spark4"], "gpt-oss-20b"),
        ],
    ),
    "a pair of which nobody names the worker, and one node": (
        [*PAIR, ("spark3", "")],
        {
            "spark1": f"{VLLM.format('openai/gpt-oss-120b', 1)} {RANKS.format(0, 1)}",
            "spark3": VLLM.format("openai/gpt-oss-20b", 3),
        },
        "direct",
        [
            ("gpt-oss-120b", ["spark1", "spark2"], "gpt-oss-120b"),
            ("gpt-oss-20b", ["spark3"], "gpt-oss-20b"),
        ],
    ),
}


@pytest.mark.parametrize("case", GROUPS)
def test_groups(case: str) -> None:
    nodes, scripts, kind, expected = GROUPS[case]
    inputs = [Input(name, f"{name}.sh", text.encode()) for name, text in scripts.items()]
    for number, (name, fabric) in enumerate(nodes, start=1):
        printed = f"enP7s7 UP 10.0.0.1{number}/24\n"
        if fabric:
            second = fabric.replace("192.168.", "192.168.10")
            printed += f"enp1s0f0np0 UP {fabric}\nenP2p1s0f0np0 UP {second}\n"
        inputs.append(Input(name, f"{name}.txt", printed.encode()))
    adopted = adopt(read(inputs), "mine", "mine.yaml")
    site = adopted.reading.site
    assert site, adopted.text + text(adopted.reading.document, adopted.reading.findings)
    data = yaml.safe_load(adopted.text)
    assert data["topology"]["kind"] == kind
    groups = {group["name"]: group for group in data["groups"]}
    models = {name: groups[entry.get("same_as", name)]["model"] for name, entry in groups.items()}
    found = [
        (name, entry["nodes"], models[name].get("name", models[name].get("source")))
        for name, entry in groups.items()
    ]
    assert found == expected
    assert any("same_as" in entry for entry in groups.values()) == ("replicas" in case)
    # Ranks of one engine run from one image in a site file.
    assert [one.item.place.text for one in lost(adopted)] == (
        ["somebody/llama.cpp:own"] if "llama.cpp" in case else []
    )
    assert not [remark for remark in audit(adopted) if remark.severity == "error"]


def test_a_site_file_is_never_overwritten(sparkgen: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mine")
    outcome = sparkgen("import", FOLDER / "run.sh", "-o", "mine.yaml", cwd=tmp_path)
    assert (outcome.code, (tmp_path / "mine.yaml").read_text()) == (4, "mine")


# What other people's files say never becomes a key of the site file.

_CRAFTED = """\
docker run --gpus all --network host --memory "3
services: {{web_ui: {{image: 'evil.example/ui:1'}}}}{0}# " \\
  vllm/vllm-openai:v0.33.0 openai/gpt-oss-120b --gpu-memory-utilization 0.8
"""


@pytest.mark.parametrize("line_break", ["\n", "\r", "\x85", "\u2028"])
def test_text_of_others_stays_in_a_comment(
    line_break: str, tmp_path: Path, sparkgen: Command
) -> None:
    (tmp_path / "start.sh").write_text(_CRAFTED.format(line_break), encoding="utf-8")
    done = sparkgen("import", "start.sh", "-o", "mine.yaml", cwd=tmp_path)
    assert done.code == 0
    assert r"not in it: memory 3\nservices: {web_ui:" in done.err
    written = (tmp_path / "mine.yaml").read_text()
    assert r"memory 3\nservices: {web_ui: {image: 'evil.example/ui:1'}}" in written
    assert "services" not in yaml.safe_load(written)


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


@given(TEXT, TEXT, TEXT, TEXT)
def test_any_text_is_kept_as_what_it_is(value: str, comment: str, loss: str, file: str) -> None:
    draft = Draft()
    draft.put(("name",), value, guess=comment)
    draft.put(("nodes", 0), {"name": value})
    draft.put(("engine", "args"), {"flag": [value, value]})
    draft.comments["engine", "args"] = comment
    draft.losses.append(Loss(loss, Word(loss, file, Span(0, 0, 0, 0))))
    assert yaml.safe_load(draft.text()) == {
        "name": value,
        "nodes": [{"name": value}],
        "engine": {"args": {"flag": [value, value]}},
    }


def test_engines_that_ssh_starts_are_on_their_hosts(tmp_path: Path, sparkgen: Command) -> None:
    """Two engines with one port are on two nodes, also if a host is only an address."""
    start = "docker run --gpus all vllm/vllm-openai:v0.32.0 --port 8000 --model openai/gpt-oss-"
    for hosts in (("lab1", "lab2"), ("10.0.0.11", "10.0.0.12")):
        text = f"#!/bin/sh\nssh {hosts[0]} {start}120b\nssh -p 22 me@{hosts[1]} '{start}20b'\n"
        (tmp_path / "start.sh").write_text(text)
        site = yaml.safe_load(sparkgen("import", "start.sh", cwd=tmp_path).out)
        names = hosts if hosts[0].isalnum() else ("spark1", "spark2")
        assert [group["nodes"] for group in site["groups"]] == [[name] for name in names]
