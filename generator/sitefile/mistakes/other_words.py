"""Words that people know from Compose, netplan, engines or launchers.

Some have another name in the site format; others stand for things that nobody has to configure.
"""

from collections.abc import Collection, Iterable, Mapping

from generator.diagnostics import KeyPath
from generator.records import record, replace


@record
class OtherWord:
    """A key known from elsewhere: the rule that reports it, and what to write instead.

    `is_needless` means that the site needs nothing in its place.
    """

    rule: str
    help: str
    is_needless: bool = True


_FABRIC = OtherWord(
    "SG101",
    "remove it: the fabric has no gateway, route or DNS, and sparkgen writes its netplan",
)
_GATEWAY = OtherWord(
    "SG101", "the fabric has none; that of the network of people goes under 'management'", False
)
_UNIT = OtherWord("SG101", "remove it: restarts have one owner, the systemd unit of the bundle")
_NETWORK = OtherWord("SG101", "remove it: containers are on the network of the host")
_PRIVILEGED = OtherWord(
    "SG713", "remove it: the bundle gives containers what RDMA asks for, and no more"
)
_RANKS = OtherWord(
    "SG101", "remove it: the order of 'nodes' gives the ranks, and the first one is the head"
)
_GUARD_ORDER = OtherWord("SG101", "write 'guard: {order: [GROUP, ...]}' under 'services'", False)
_SCRIPT = OtherWord(
    "SG101", "remove it: use 'args' for the engine's flags, and 'env' for variables"
)

# By key, in lower case and with '_' in place of '-'.
_KEYS: Mapping[str, OtherWord] = {
    "privileged": _PRIVILEGED,
    **dict.fromkeys(("cap_add", "devices", "security_opt"), replace(_PRIVILEGED, rule="SG101")),
    **dict.fromkeys(("gateway4", "nameservers", "routes", "dhcp4"), _FABRIC),
    "gateway": _GATEWAY,
    **dict.fromkeys(("restart", "restart_policy"), _UNIT),
    **dict.fromkeys(("network", "network_mode", "networks"), _NETWORK),
    **dict.fromkeys(("head", "master", "node_rank", "nnodes", "rank", "role"), _RANKS),
    **dict.fromkeys(("command", "entrypoint"), _SCRIPT),
    "guard_order": _GUARD_ORDER,
}


# Keys of earlier releases, by their paths.
_ONCE: Mapping[KeyPath, OtherWord] = {
    ("services", "gateway", "port"): OtherWord(
        "SG101", "remove it: clients use 'port' of 'proxy', and the gateway has no other one"
    ),
    ("services", "gateway", "image"): OtherWord(
        "SG101", "remove it: the gateway is the proxy's nginx, and 'image' of 'proxy' names another"
    ),
}

# By name in the site format, in the same section.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "args": ("arguments", "extra_args", "flags", "options", "params"),
    "cabling": ("cables", "connections", "edges", "links", "wiring"),
    "endpoints": ("between", "connect", "connects", "ends", "from", "ports", "to"),
    "env": ("env_vars", "environment", "environment_variables", "envs", "variables", "vars"),
    "image": ("container", "container_image", "docker_image", "img"),
    "kind": ("layout", "mode", "shape", "type"),
    "name": (
        "hf_repo",
        "model",
        "model_id",
        "repo",
        "repo_id",
        "host_name",
        "hostname",
        "id",
        "node",
    ),
    "address": ("addr", "addresses", "cidr", "ip", "ip_address", "ipv4"),
    "architecture": ("arch",),
    "engine": ("backend", "runtime", "serving"),
    "heads": ("n_head", "num_attention_heads", "num_heads"),
    "kv_heads": ("n_head_kv", "num_key_value_heads", "num_kv_heads"),
    "layers": ("n_layer", "num_hidden_layers", "num_layers"),
    "max_context": ("max_position_embeddings",),
    "experts": ("n_routed_experts", "num_experts", "num_local_experts"),
    "kv_cache_dtype": ("kv_cache", "cache_dtype", "cache_type", "kv_dtype"),
    "nodes": ("hosts", "machines", "members"),
    "subnet_pool": ("cidr", "ip_range", "network_pool", "pool", "subnet"),
    "tensor": ("tensor_parallel", "tensor_parallel_size", "tp", "tp_size"),
    "pipeline": ("pipeline_parallel", "pipeline_parallel_size", "pp", "pp_size", "stages"),
    "data": ("data_parallel", "data_parallel_size", "dp", "dp_size"),
    "context_length": (
        *(
            "context",
            "ctx",
            "ctx_size",
            "max_ctx_size",
            "n_ctx",
            "num_ctx",
            "max_context",
            "max_model_len",
            "max_seq_len",
            "context_size",
        ),
        *("context_window", "max_sequence_length", "max_length"),
    ),
    "management": ("ethernet", "lan", "mgmt", "mgmt_network"),
    "interface": ("dev", "device", "if", "iface", "ifname", "nic"),
    "length_m": ("len", "length", "meters", "metres"),
    "served_name": ("alias", "model_alias", "served_model_name"),
    "services": ("addons", "components", "extras"),
    "speculative": ("speculation", "speculative_config"),
    "topology": ("fabric", "layout"),
    "memory_utilization": (
        "free_gpu_memory_fraction",
        "gpu_mem",
        "gpu_memory",
        "gpu_util",
        "memory_fraction",
        "gpu_memory_utilization",
        "mem_fraction_static",
    ),
    "max_sequences": (
        "batch_size",
        "concurrency",
        "max_batch_size",
        "max_num_seqs",
        "max_running_requests",
        "max_seqs",
        "slots",
    ),
}
# In another section; the value is how to write it there.
_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "management: {address: ADDRESS/LENGTH}": ("address", "ip", "ip_address", "ipv4"),
    "parallel: {tensor: N}": _NAMES["tensor"],
    "parallel: {pipeline: N}": _NAMES["pipeline"],
    "parallel: {data: N}": _NAMES["data"],
    "context_length: N' under 'model": _NAMES["context_length"],
    "max_sequences: N' under 'model": _NAMES["max_sequences"],
}


def meant(word: str, known: Collection[str]) -> str:
    """The known key for which a word is another program's name, or nothing."""
    plain = word.lower().replace("-", "_")
    names = (name for name in known if plain in _NAMES.get(name, ()))
    return next(names, "") or choice(word, known, {})


def choice(word: str, known: Iterable[str], also: Mapping[str, Collection[str]]) -> str:
    """The choice with this name, in whatever case, or with an alias from `also`; or nothing."""
    return next((name for name in known if word.lower() in (name, *also.get(name, ()))), "")


def elsewhere(key: str) -> str:
    """How to write what belongs in another section, or nothing."""
    plain = key.lower().replace("-", "_")
    found = next((text for text, keys in _ELSEWHERE.items() if plain in keys), "")
    return f"write '{found}'" if found else ""


def of(key: str, section: KeyPath = ()) -> OtherWord | None:
    """What to report about a key that is known from elsewhere, or that its section once had."""
    return _ONCE.get((*section, key)) or _KEYS.get(key.lower().replace("-", "_"))
