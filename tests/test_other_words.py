"""Keys that people know from Compose, netplan, engines and launchers: each gets a help of its own.

Each key is written into a section of a valid site, where it doesn't belong; a list of the keys that
a section has would be no help.
"""

import copy
from typing import Any

import pytest
import yaml

import generator

SITE: dict[str, Any] = {
    "version": 1,
    "name": "lab",
    "nodes": [
        {"name": "spark1", "management": {"address": "10.0.0.11/24"}},
        {"name": "spark2", "management": {"address": "10.0.0.12/24"}},
    ],
    "cabling": [{"endpoints": ["spark1:p0", "spark2:p0"]}],
    "topology": {"mtu": 9000},
    "model": {"name": "gpt-oss-120b", "context_length": 32768},
    "engine": {
        "name": "vllm",
        "version": "0.33.0",
        "image": "vllm/vllm-openai:v0.33.0",
        "parallel": {"tensor": 2},
    },
    "services": {"models": True, "proxy": True},
    "access": {"tls": {"authority": "site"}},
    "jobs": [{"name": "train", "launcher": "torchrun", "command": "train.py"}],
}
WORDS = {
    (): "apiVersion cables connections deploy env environment fabric gateway hosts image inventory "
    "kv_cache links machines metadata network replicas ssh title volumes workers",
    (
        "nodes",
        0,
    ): "address addresses environment fabric_ip gpu gpus hostname interface ip labels mac "
    "management_ip mgmt other_services ports processes qsfp ram rank reserved_gib role ssh_port "
    "ssh_user",
    ("nodes", 0, "management"): "cidr device dhcp dhcp4 dns gateway4 iface ip mac mtu nameservers "
    "netmask prefix routes vlan",
    ("jobs", 0): "cwd workdir working_dir",
    ("access",): "acme domain fqdn http port redirect",
    ("access", "tls"): "acme ca cert crt letsencrypt port private_key self_signed",
    ("cabling", 0): "a b ends from ip ips length mtu speed src subnet target to type",
    ("topology",): "bond cidr jumbo jumbo_frames mode pool roce routing subnet switch type vlan",
    (
        "model",
    ): "adapters cache_dir chat_template concurrency ctx_size dtype gguf gpu_util id kv_cache lora "
    "max-model-len max_num_seqs model_name path quant repo repository size_gb tokenizer "
    "tool_parser trust_remote_code weights",
    ("engine",): "args_extra backend cap_add cmd command container_name devices docker dockerfile "
    "env_file environment executor extra_args kv_cache mods nodeSelector resources solo tensor "
    " flags gpu_memory_utilization healthcheck host ipc "
    "listen mem_fraction_static mounts network_mode options pp privileged replicas restart "
    "shm_size tag tensor_parallel_size tp type ulimits volumes",
    ("engine", "parallel"): "data_parallel dp enable_expert_parallel ep expert_parallel pp tp",
    (
        "services",
    ): "caddy dashboards dcgm grafana litellm load_balancer metrics nginx node_exporter "
    "ntp open_webui openwebui prometheus tailscale traefik ufw",
}


def help_for(section: tuple[str | int, ...], key: str, value: str | bool = "x") -> str:
    """The help of the first error."""
    site = copy.deepcopy(SITE)
    at: Any = site
    for step in section:
        at = at[step]
    at[key] = value
    findings = generator.parse(yaml.safe_dump(site, sort_keys=False)).findings
    return next(f.help or "" for f in findings if f.severity.name == "ERROR")


@pytest.mark.parametrize("section", WORDS, ids=lambda section: ".".join(map(str, section)))
def test_each_is_helped(section: tuple[str | int, ...]) -> None:
    words = WORDS[section].split()
    assert [word for word in words if "the keys here are" in help_for(section, word)] == []


@pytest.mark.parametrize(
    ("section", "key", "expected"),
    [
        (("cabling", 0), "src", "write 'endpoints: [NODE:PORT, NODE:PORT]'"),
        (("model",), "gguf", "did you mean 'file'?"),
        (("engine",), "volumes", "write 'files: [{path: PATH}]' under 'engine'"),
        (("engine",), "listen", "did you mean 'bind'?"),
        (("services",), "grafana", "did you mean 'monitoring'?"),
        (("nodes", 0), "processes", "did you mean 'other'?"),
        (("access",), "port", "write 'port' under 'proxy' in 'services'"),
        (("access", "tls"), "port", "write 'port' under 'proxy' in 'services'"),
        ((), "secrets", "write 'secrets: [NAME]' under 'engine'"),
        (("jobs", 0), "workdir", "did you mean 'directory'?"),
        (("cabling", 0), "ports", "write 'endpoints: [NODE:PORT, NODE:PORT]'"),
        (("engine",), "container_image", "remove it: 'image' is here already"),
        (("engine",), "served_model_name", "write 'served_name: NAME' under 'model'"),
        (("engine",), "kv_cache", "write 'kv_cache_dtype: TYPE' under 'model'"),
        (("model",), "gpu_memory_utilization", "write 'memory_utilization: N' under 'engine'"),
    ],
)
def test_what_is_said(section: tuple[str | int, ...], key: str, expected: str) -> None:
    assert help_for(section, key).startswith(expected)


@pytest.mark.parametrize(
    ("section", "key", "home"), [((), "gateway", "services"), (("services",), "routes", "topology")]
)
def test_switch_of_another_section_is_moved(
    section: tuple[str | int, ...], key: str, home: str
) -> None:
    assert help_for(section, key, value=True) == f"write it under '{home}'"
