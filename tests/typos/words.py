"""Single mistakes of people who know other tools, units or YAML less well than they think."""

import random
from collections.abc import Callable, Mapping

from typos.text import KeyPath, Mistake, Scalar, Site

# What Compose, Kubernetes, netplan, Slurm, launchers and engines call the same thing.
OTHER_NAMES: Mapping[KeyPath, tuple[str, ...]] = {
    ("nodes",): ("hosts", "workers", "servers", "machines", "inventory", "members"),
    ("cabling",): ("cables", "links", "connections", "wiring", "edges"),
    ("topology",): ("network", "fabric", "layout"),
    ("model",): ("models", "llm", "checkpoint"),
    ("engine",): ("runtime", "backend", "server", "inference", "serving"),
    ("services",): ("addons", "extras", "components"),
    ("nodes", "name"): ("hostname", "host", "id", "node"),
    ("nodes", "management"): ("mgmt", "lan", "mgmt_network", "ethernet"),
    ("nodes", "management", "address"): ("ip", "addr", "addresses", "ipv4", "cidr"),
    ("nodes", "management", "interface"): ("iface", "dev", "device", "nic", "ifname", "if"),
    ("cabling", "endpoints"): ("ends", "between", "nodes", "peers", "ports"),
    ("cabling", "length_m"): ("length", "len", "meters", "length_cm"),
    ("topology", "kind"): ("type", "mode", "shape"),
    ("topology", "subnet_pool"): ("subnet", "cidr", "pool", "network", "ip_range"),
    ("topology", "mtu"): ("mtu_size", "jumbo", "MTU"),
    ("model", "name"): ("model", "id", "repo", "model_id", "hf_repo", "repo_id"),
    ("model", "served_name"): ("served_model_name", "alias", "served-model-name", "model_alias"),
    ("model", "context_length"): (
        *("max_model_len", "ctx_size", "n_ctx", "context", "max-model-len", "ctx", "num_ctx"),
        *("context_size", "max_context_length", "contextLength"),
    ),
    ("model", "max_sequences"): (
        *("max_num_seqs", "max_seqs", "concurrency", "parallel", "max_batch_size", "batch_size"),
        *("max_running_requests", "slots", "max-num-seqs"),
    ),
    ("model", "kv_cache_dtype"): ("kv_dtype", "cache_type", "kv-cache-dtype", "kv_cache"),
    ("model", "speculative"): ("speculative_config", "spec", "draft", "speculation"),
    ("engine", "name"): ("type", "kind", "runtime", "backend"),
    ("engine", "version"): ("tag", "release", "ver"),
    ("engine", "image"): ("container", "docker_image", "container_image", "img"),
    ("engine", "memory_utilization"): (
        *("gpu_memory_utilization", "mem_fraction_static", "gpu-memory-utilization", "gpu_util"),
        *("gpu_mem", "memory_fraction", "gpu_memory"),
    ),
    ("engine", "parallel"): ("parallelism", "tp", "sharding", "tensor_parallel"),
    ("engine", "parallel", "tensor"): ("tp", "tensor_parallel_size", "tensor_parallel", "tp_size"),
    ("engine", "parallel", "pipeline"): ("pp", "pipeline_parallel_size", "pp_size", "stages"),
    ("engine", "args"): ("extra_args", "flags", "command", "options", "arguments", "params"),
    ("engine", "env"): ("environment", "env_vars", "envs", "variables", "envVars"),
    ("engine", "secrets"): ("env_file", "credentials", "tokens", "secret"),
    ("engine", "port"): ("ports", "http_port", "api_port", "listen"),
}


def other_name(rng: random.Random, site: Site) -> Mistake | None:
    """A key under the name that another tool has for it."""
    places = [k for k in site.keys if of_format(k) in OTHER_NAMES]
    if not places:
        return None
    place = rng.choice(places)
    name = rng.choice(OTHER_NAMES[of_format(place)])
    return Mistake("other name", site.replaced(place, name), place.line)


# Lines that people bring along from elsewhere; each by the section that it goes into.
_BROUGHT: tuple[tuple[str, str], ...] = (
    ("engine", "restart: unless-stopped"),
    ("engine", "network_mode: host"),
    ("engine", "shm_size: 16g"),
    ("engine", "ipc: host"),
    ("engine", "gpus: all"),
    ("engine", "privileged: true"),
    ("engine", "replicas: 2"),
    ("engine", "ulimits: {memlock: -1}"),
    ("engine", "runtime: nvidia"),
    ("engine", "entrypoint: bash"),
    ("engine", "volumes: [/models:/models]"),
    ("engine", "healthcheck: {interval: 30s}"),
    ("engine", "depends_on: [web]"),
    ("engine", "container_name: vllm"),
    ("engine", "tensor_parallel_size: 2"),
    ("engine", "gpu_memory_utilization: 0.8"),
    ("engine", "max_model_len: 8192"),
    ("engine", "node_rank: 0"),
    ("engine", "master_addr: 10.0.0.1"),
    ("engine", "dist_init_addr: 10.0.0.1:5000"),
    ("engine", "host: 0.0.0.0"),
    ("model", "quantization: fp8"),
    ("model", "path: /models/llama"),
    ("model", "revision: main"),
    ("model", "temperature: 0.7"),
    ("topology", "gateway: 10.0.0.1"),
    ("topology", "dhcp4: false"),
    ("topology", "dns: [1.1.1.1]"),
    ("topology", "vlan: 100"),
    ("topology", "bond: bond0"),
    ("topology", "routes: true"),
    ("topology", "renderer: networkd"),
    ("topology", "speed: 200G"),
    ("services", "prometheus: true"),
    ("services", "grafana: true"),
    ("services", "open_webui: true"),
    ("services", "litellm: true"),
    ("services", "nginx: true"),
    ("services", "ssh: true"),
    ("services", "ufw: true"),
)


def brought_along(rng: random.Random, site: Site) -> Mistake | None:
    """A line of another tool's file, under a section of ours."""
    section, line = rng.choice(_BROUGHT)
    head = next((k for k in site.keys if k.path == (section,)), None)
    inside = [k for k in site.keys if k.path[:1] == (section,) and len(k.path) == 2]
    if head is None or not inside or site.lines[head.line].strip() != f"{section}:":
        return None
    key = line.partition(":")[0]
    if any(k.text == key for k in inside) or inside[0].line == head.line:
        return None
    new = " " * inside[0].column + line
    text = "\n".join([*site.lines[: head.line + 1], new, *site.lines[head.line + 1 :]])
    # A few of them are keys of ours in the very section.
    return Mistake("brought along", text, head.line + 1, silent=True, several=True)


def unit(rng: random.Random, site: Site) -> Mistake | None:
    """A number with a unit, or in another one."""
    numbers = [v for v in site.values if v.plain and isinstance(v.path[-1], str)]
    numbers = [v for v in numbers if v.path[-1] in _UNITS and "args" not in v.path]
    if not numbers:
        return None
    value = rng.choice(numbers)
    form = rng.choice(_UNITS[str(value.path[-1])])
    try:
        number = float(value.text)
    except ValueError:
        return None
    slip = form.format(
        number=value.text,
        percent=f"{number * 100:g}",
        cm=f"{number * 100:g}",
        k=f"{number / 1024:g}",
    )
    return Mistake("wrong unit", site.replaced(value, slip), value.line)


_UNITS: Mapping[str, tuple[str, ...]] = {
    "mtu": ("{number} bytes", "{number}B", "{k}k"),
    "length_m": ("{number}m", "{number} m", "{cm}cm", "{cm} cm"),
    "memory_utilization": ("{percent}%", "{percent} %", "{percent}"),
    "context_length": ("{number} tokens", "{k}k tokens"),
    "kv_cache_gib": ("{number} GiB", "{number}GB", "{number}G"),
}


def trap(rng: random.Random, site: Site) -> Mistake | None:
    """What YAML reads as something else: a word, a number, a mapping."""
    values = [v for v in site.values if v.plain and isinstance(v.path[-1], str)]
    values = [v for v in values if v.path[-1] not in ("description", "label", "reason")]
    values = [v for v in values if not {"args", "env"} & set(v.path)]
    if not values:
        return None
    value = rng.choice(values)
    word = value.text
    slip = rng.choice(
        [
            f"{word}:",
            f"- {word}",
            f"{word} #",
            f"@{word}",
            f"%{word}",
            f"*{word}",
            f"!{word}",
            f"{{{word}}}",
            f"[{word}]",
            f"{word},",
            f"{word};",
            f"${word}",
            f"`{word}`",
            f"<{word}>",
            f"${{{word}}}",
            f"|{word}",
        ]
    )
    # A comment without text is none.
    same = slip.endswith(" #")
    return Mistake("YAML trap", site.replaced(value, slip), value.line, silent=same, several=True)


def of_format(place: Scalar) -> KeyPath:
    """The path of a key without the numbers of entries."""
    path = tuple(part for part in place.path if isinstance(part, str))
    return path[1:] if path[:1] == ("groups",) else path


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(other_name, brought_along, unit, trap),
)
