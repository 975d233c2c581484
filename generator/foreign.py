"""Words that people bring along from Compose, netplan, engines or launchers.

Some mean what the site format calls otherwise; others are for what nobody has to say here.
"""

from collections.abc import Collection, Mapping

_FABRIC = "take it out: the fabric has no gateway, route or DNS, and sparkgen writes its netplan"
_GATEWAY = "the fabric has none; that of the network of people goes under 'management'"
_UNIT = "take it out: restarts have one owner, the systemd unit of the bundle"
_NETWORK = "take it out: containers are on the network of the host"
_PRIVILEGED = "take it out: the bundle gives containers what RDMA asks for, and no more"
_RANKS = "take it out: the order of 'nodes' gives the ranks, and the first one is the head"
_SCRIPT = "take it out: use 'args' for the engine's flags, and 'env' for variables"

# By key, in lower case and with '_' for '-': the rule that speaks, and what to write.
_KEYS: Mapping[str, tuple[str, str]] = {
    "privileged": ("SG713", _PRIVILEGED),
    **dict.fromkeys(("cap_add", "devices", "security_opt"), ("SG101", _PRIVILEGED)),
    **dict.fromkeys(("gateway4", "nameservers", "routes", "dhcp4"), ("SG101", _FABRIC)),
    "gateway": ("SG101", _GATEWAY),
    **dict.fromkeys(("restart", "restart_policy"), ("SG101", _UNIT)),
    **dict.fromkeys(("network", "network_mode", "networks"), ("SG101", _NETWORK)),
    **dict.fromkeys(("head", "master", "node_rank", "nnodes", "rank", "role"), ("SG101", _RANKS)),
    **dict.fromkeys(("command", "entrypoint"), ("SG101", _SCRIPT)),
}


# By what the site format calls it, in the same section.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "args": ("arguments", "extra_args", "flags", "options"),
    "cabling": ("cables", "connections", "links"),
    "endpoints": ("between", "ends", "from", "to"),
    "env": ("environment", "environment_variables", "envs"),
    "image": ("container", "container_image", "docker_image"),
    "kind": ("type",),
    "name": ("host_name", "hostname", "id", "node"),
    "subnet_pool": ("cidr", "network_pool", "pool", "subnet"),
    "tensor": ("tensor_parallel", "tensor_parallel_size", "tp", "tp_size"),
    "pipeline": ("pipeline_parallel", "pipeline_parallel_size", "pp", "pp_size"),
    "data": ("data_parallel", "data_parallel_size", "dp", "dp_size"),
    "context_length": ("context", "ctx_size", "max_context", "max_model_len"),
    "max_sequences": ("concurrency", "max_num_seqs", "max_seqs"),
}
# In another section, and how it is written there.
_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "management: {address: ADDRESS/LENGTH}": ("address", "ip", "ip_address", "ipv4"),
    "parallel: {tensor: N}": _NAMES["tensor"],
    "parallel: {pipeline: N}": _NAMES["pipeline"],
    "parallel: {data: N}": _NAMES["data"],
    "context_length: N' under 'model": _NAMES["context_length"],
    "max_sequences: N' under 'model": _NAMES["max_sequences"],
}
# Choices by other names.
_VALUES: Mapping[str, tuple[str, ...]] = {
    "single": ("alone", "none", "one", "solo", "standalone"),
    "direct": ("b2b", "back-to-back", "dual", "p2p", "pair", "point-to-point"),
    "ring": ("mesh", "triangle"),
    "switch": ("star", "switched"),
    "tensorrt-llm": ("tensorrt", "trt-llm", "trtllm"),
    "llama.cpp": ("llama-cpp", "llamacpp"),
    "native": ("docker", "mp", "torchrun"),
}


def meant(word: str, known: Collection[str]) -> str:
    """The key or choice among those that are known which has another name elsewhere, or nothing."""
    plain = word.lower().replace("-", "_")
    names = (name for name in known if plain in _NAMES.get(name, ()))
    values = (name for name in known if word.lower() in (name, *_VALUES.get(name, ())))
    return next(names, "") or next(values, "")


def elsewhere(key: str) -> str:
    """How to write what has its place in another section, or nothing."""
    plain = key.lower().replace("-", "_")
    found = next((text for text, keys in _ELSEWHERE.items() if plain in keys), "")
    return f"write '{found}'" if found else ""


def said(key: str) -> tuple[str, str] | None:
    """The rule and the help for a key that is known from elsewhere."""
    return _KEYS.get(key.lower().replace("-", "_"))
